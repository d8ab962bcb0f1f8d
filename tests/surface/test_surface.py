"""Our classes beside the partner packages': every difference is listed and has a reason."""

from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from langchain_autotools import ChatOllama
from tests.partner.verdicts import Verdicts
from tests.surface.differences import Difference
from tests.surface.listed import judged, news, probed
from tests.surface.page import PAGE, PINS, page
from tests.surface.pairs import PAIRS, THEIRS, Pair
from tests.surface.recorded import compared, told
from tests.surface.rules import KINDS, RECORDED, RULES

pytestmark = [pytest.mark.surface, pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def found() -> list[Difference]:
    """All differences."""
    return list(probed())


@pytest.fixture(scope="module")
def verdicts(found: list[Difference]) -> Verdicts:
    """The same, judged."""
    return judged(found)


def test_the_releases_are_those_of_the_list() -> None:
    """Other releases have other differences: `pip install --constraint tests/surface/pins.txt`."""
    pins = [line.partition("==") for line in PINS.read_text(encoding="utf-8").splitlines() if "==" in line]
    assert {name: version(name) for name, _, _ in pins} == {name: pinned for name, _, pinned in pins}


def test_no_difference_is_new_and_none_is_gone(found: list[Difference], verdicts: Verdicts) -> None:
    """What is found is what tests/surface/differences.csv has, each with a rule, and a page has the words that a rule quotes.

    `python -m tests.surface --write` stores it for review.
    """
    assert news(found, verdicts) == []


def test_the_page_says_what_was_found(found: list[Difference], verdicts: Verdicts) -> None:
    """docs/partner_surface.md has every reason."""
    assert PAGE.read_text(encoding="utf-8") == page(found, verdicts)


def test_no_difference_is_worse_and_unsaid() -> None:
    """Every reason is one of those that are allowed."""
    assert {rule.kind for rule in (*RULES, *RECORDED)} <= set(KINDS)


def test_recorded_replies_differ_as_the_rules_say(wire_folder: Path) -> None:
    """What real servers sent comes out alike, whole and streamed, but where a rule says why (`python -m tests.surface --recorded`)."""
    assert told(compared(wire_folder)) == []


class Forgetful(ChatOllama):
    """Its messages lack text, calls and usage."""

    def invoke(self, *args: Any, **kwargs: Any) -> Any:
        """An empty message."""
        return super().invoke(*args, **kwargs).model_copy(update={"content": "", "tool_calls": [], "usage_metadata": None})


def test_what_is_lost_of_recorded_replies_is_found(wire_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No rule covers a class that loses text, calls or usage of whole replies."""
    class_of = Pair.class_of
    monkeypatch.setattr(Pair, "class_of", lambda self, side: class_of(self, side) if side == THEIRS else Forgetful)
    lines = told(compared(wire_folder, [pair for pair in PAIRS if pair.name == "ollama"]), whole=False)
    for path in (
        "text: theirs there",
        "content_blocks: theirs text",
        "tool_calls: theirs tool_call",
        "usage_metadata.input_tokens: theirs there",
    ):
        assert any(line.startswith(path) for line in lines), (path, lines)
