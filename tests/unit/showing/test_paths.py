"""Calls that wait inside models given as tools, where runs are shown to people: with the path to them, beside calls with their id."""

from __future__ import annotations

import threading
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest

from langchain_autotools import events, new_messages, pending_calls, show
from langchain_autotools.event_types import RunEvent
from langchain_autotools.showing import GradioChat
from langchain_autotools.showing.notebook import CellScreen
from tests.unit.encoders.test_calls_inside import QUESTION, paying
from tests.unit.showing.test_gradio_chat import shown
from tests.unit.showing.test_screens import Drawn


def gradio(seen: list[RunEvent]) -> str:
    """The conversation in Gradio's chat."""
    chat = GradioChat()
    for event in seen:
        chat.show(event)
    (call,) = chat.pending
    assert (call.path, call.name, call.id) == (("clerk",), "pay", "c")
    return unescape("\n".join(shown(chat)))


def cell(seen: list[RunEvent]) -> str:
    """What is drawn in a notebook's cell."""
    drawn = Drawn()
    with CellScreen(drawn, threading.Thread) as screen:
        for event in seen:
            screen.show(event)
    return "\n".join(drawn.texts)


@pytest.mark.parametrize("read", [gradio, cell])
def test_a_call_inside_is_shown_with_its_path(read: Callable[[list[RunEvent]], str]) -> None:
    """It is a call of its own at the outer run, which waits; the call around it, which has the same id, does not."""
    seen = list(events(paying([]).stream([QUESTION])))
    text = read(seen)
    assert "clerk > pay" in text and "Anna" in text


def test_a_gradio_chat_goes_on_with_what_was_decided() -> None:
    """Once the run has gone on nothing waits, and the call has no panel of its own any more."""
    paid: list[str] = []
    model, chat = paying(paid), GradioChat()
    history: list[Any] = [QUESTION]
    for decided in (False, True):
        keywords = {"resume": [call.approve() for call in chat.pending]} if decided else {}
        stream = events(model.stream(history, **keywords))
        for event in stream:
            chat.show(event)
        assert sum("clerk > pay" in unescape(line) for line in shown(chat)) == (not decided)
        history += new_messages(stream.message)
    assert (chat.pending, chat.is_running, paid) == ([], False, ["Anna"])


def test_show_prints_the_path(capsys: pytest.CaptureFixture[str]) -> None:
    """Outside of notebooks, before the name of the tool."""
    run = show(paying([]).stream([QUESTION]))
    assert '? clerk > pay(to="Anna") waits' in capsys.readouterr().out
    assert [call.path for call in pending_calls(run)] == [("clerk",)]
