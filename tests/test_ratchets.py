"""What may only become less: how many modules, functions and names one tool turn and one feature are spread over."""

import sys

import pytest

from tests.ratchets import DEFS, MEASURED, stored

pytestmark = pytest.mark.house


@pytest.mark.parametrize("what", MEASURED)
def test_the_package_becomes_no_more_dispersed(what: str) -> None:
    """No figure is above the stored one, and none a tenth below it: what has been won is kept by lowering what is stored."""
    if what == DEFS and sys.version_info[:2] != (3, 11):
        pytest.skip("a comprehension is a function in Python 3.11 alone, so functions are counted there")
    bound, now = stored()[what], MEASURED[what]()
    assert now <= bound, f"{what}: {now}, which were at most {bound}: put it where the others are, or join what is asked together"
    lower = "`python -m tests.ratchets --write` lowers what is stored"
    assert now == bound or now > bound * 0.9, f"{what}: {now} and no longer {bound}: {lower}"


def test_every_stored_figure_is_measured() -> None:
    """The stored table has a figure for whatever is measured, and none of anything else."""
    assert stored().keys() == MEASURED.keys()
