"""docs/development.md says truly which functions a call of `stream` enters, and where something is added."""

import pytest

from tests.frames import BEGIN, END, PAGE, parts

pytestmark = pytest.mark.house


@pytest.mark.parametrize("name", ["frames", "files"])
def test_the_page_is_true_of_the_code(name: str) -> None:
    """What is on the page is what the code does: `python -m tests.frames` writes it."""
    page = PAGE.read_text(encoding="utf-8")
    shown = page.partition(BEGIN.format(name))[2].partition(END)[0]
    assert shown.strip().splitlines() == parts()[name].strip().splitlines()
