"""Runs that begin inside a tool that was given up: its call is answered, and they tell of nothing."""

import threading
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool

from langchain_autotools import ToolPolicy, aevents, events
from langchain_autotools.event_types import CallResult, RunEnded, RunStarted
from langchain_autotools.testing import ScriptedChatModel


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("way", ["stream", "astream"])
async def test_a_run_that_begins_after_its_call_was_answered_tells_of_nothing(way: str, depth: int) -> None:
    """Nor does one that is made inside it: a reader has been told that the call is over, and nobody would tell of their ends."""
    timed_out, done = threading.Event(), threading.Event()

    def lookup() -> str:
        """Look."""
        return str(ScriptedChatModel(replies=["Late."]).invoke("Hi.").text)

    @tool
    def slow() -> str:
        """Take too long, then ask a model."""
        timed_out.wait(20)
        text = lookup() if depth == 1 else str(ScriptedChatModel(replies=[_call("lookup"), "Late."], tools=[lookup]).invoke("Hi.").text)
        done.set()
        return text

    def second(*_: Any, **__: Any) -> str:
        timed_out.set()
        assert done.wait(20)
        return "Done."

    model = ScriptedChatModel(replies=[_call("slow"), second], tools=[slow], policies={"slow": ToolPolicy(timeout=0.05)})
    told = list(events(model.stream("Hi."))) if way == "stream" else [event async for event in aevents(model.astream("Hi."))]
    assert done.is_set()
    assert [type(event) for event in told if isinstance(event, RunStarted | CallResult | RunEnded)] == [RunStarted, CallResult, RunEnded]
    assert all(event.parent_run_id is None for event in told)


def _call(name: str) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": {}, "id": f"call of {name}"}])
