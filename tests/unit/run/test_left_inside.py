"""Runs that tools make after their call has its result, or the outermost reader has left: nothing more is told, nothing more is done."""

from __future__ import annotations

import threading
from typing import Any

from langchain_core.messages import AIMessage

from langchain_autotools import ToolPolicy, events
from langchain_autotools.event_types import CallResult, RunStarted, TextDelta
from langchain_autotools.testing import ScriptedChatModel

WAIT = 20


def calling(name: str) -> AIMessage:
    """A reply that calls a tool."""
    return AIMessage("Look.", tool_calls=[{"id": name, "name": name, "args": {}}])


def test_a_listener_inside_a_tool_learns_that_the_reader_around_it_left() -> None:
    """The tool reads the events of a run of its own; once the outermost reader has left, that run executes nothing more."""
    left, ended = threading.Event(), threading.Event()
    noted: list[str] = []

    def note() -> str:
        """Note something."""
        noted.append("noted")
        return "noted"

    def ask() -> str:
        """Ask another model."""
        try:
            for event in events(ScriptedChatModel(tools=[note], replies=[calling("note"), "Never."]).stream("Ask.")):
                if isinstance(event, TextDelta):
                    assert left.wait(WAIT)
        finally:
            ended.set()
        return "asked"

    stream = events(ScriptedChatModel(tools=[ask], replies=[calling("ask"), "Never."]).stream("Ask."))
    assert any(isinstance(event, TextDelta) and event.parent_call_id == "ask" for event in stream)
    stream.close()
    left.set()
    assert ended.wait(WAIT)
    assert noted == []


def test_a_run_made_by_a_tool_whose_call_was_left_tells_nothing() -> None:
    """The call has timed out; the run that its thread makes then is nobody's. One that is made in time is told of."""
    goes_on, ended = threading.Event(), threading.Event()

    def ask(late: bool = False) -> str:
        """Ask another model."""
        return ScriptedChatModel(replies=["Late." if late else "In time."]).invoke("Ask.").text

    def slow() -> str:
        """Take too long, and ask then."""
        assert goes_on.wait(WAIT)
        try:
            return ask(late=True)
        finally:
            ended.set()

    def wait() -> str:
        """Wait until the slow one has asked."""
        goes_on.set()
        assert ended.wait(WAIT)
        return "waited"

    replies: list[Any] = [calling("slow"), calling("wait"), calling("ask"), "Done."]
    model = ScriptedChatModel(tools=[slow, wait, ask], replies=replies, policies={"slow": ToolPolicy(timeout=0.05)})
    told = list(events(model.stream("Ask.")))
    assert [one.call.id for one in told if isinstance(one, CallResult)] == ["slow", "wait", "ask"]
    assert [one.parent_call_id for one in told if isinstance(one, RunStarted)] == [None, "ask"]
    assert "".join(one.text for one in told if isinstance(one, TextDelta) and one.parent_call_id) == "In time."
