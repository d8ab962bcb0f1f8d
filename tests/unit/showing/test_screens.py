"""Cells of notebooks: what is drawn, and how often."""

import threading
from collections.abc import Iterable
from typing import Any

import pytest

from langchain_autotools.event_types import TextDelta
from langchain_autotools.showing.notebook import CellScreen
from langchain_autotools.showing.page import part_text
from langchain_autotools.showing.view_model import PartView
from tests.support.seen_runs import OUTER, begun, ready, record

PATIENCE = 60.0


class Drawn:
    """A cell that keeps what was drawn into it."""

    def __init__(self, wanted: str = "") -> None:
        self.texts: list[str] = []
        self.threads: set[threading.Thread] = set()
        self.seen = threading.Event()
        self._wanted = wanted

    def draw(self, parts: Iterable[PartView]) -> None:
        """Keep the texts of these parts."""
        self.texts += map(part_text, parts)
        self.threads.add(threading.current_thread())
        if self._wanted in self.texts[-1]:
            self.seen.set()


def words(count: int) -> list[TextDelta]:
    """A text in so many pieces."""
    return [TextDelta(**OUTER, message_id="m", text=f" {number}") for number in range(count)]


def test_many_pieces_are_few_drawings_and_the_last_one_is_among_them() -> None:
    """A reader cannot follow each token."""
    cell = Drawn()
    with CellScreen(cell, threading.Thread) as screen:
        for event in [*begun("0"), *words(5_000)]:
            screen.show(event)
    assert len(cell.texts) < 2_500 and cell.texts[-1].endswith(" 4998 4999")


def test_the_latest_state_is_drawn_while_nothing_happens() -> None:
    """What came shortly after a drawing does not wait for the next event."""
    cell = Drawn("forecast")
    with CellScreen(cell, threading.Thread) as screen:
        for event in [*begun(), *words(10), *ready(record("1", "forecast", {}))]:
            screen.show(event)
        assert cell.seen.wait(PATIENCE)


class NoThread(threading.Thread):
    """A thread that the system does not give."""

    def start(self) -> None:
        """Refuse."""
        raise RuntimeError("can't start new thread")


def test_without_a_thread_events_draw_themselves() -> None:
    """As in a browser's Python."""
    cell = Drawn()
    with CellScreen(cell, NoThread) as screen:
        for event in begun("Hello"):
            screen.show(event)
        assert cell.texts == ["Hello"]
        screen.show(TextDelta(**OUTER, message_id="m", text=" and more"))
    assert cell.texts[-1] == "Hello and more" and cell.threads == {threading.current_thread()}


@pytest.mark.parametrize("new_thread", [threading.Thread, NoThread])
def test_an_exception_is_drawn_and_goes_on(new_thread: Any) -> None:
    """The cell says how it ended, then the caller hears of it."""
    cell = Drawn()
    with pytest.raises(ZeroDivisionError):
        with CellScreen(cell, new_thread) as screen:
            for event in begun():
                screen.show(event)
            1 / 0  # noqa: B018
    assert cell.texts[-1] == "[failed: ZeroDivisionError]"
