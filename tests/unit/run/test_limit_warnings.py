"""A run that ends at a limit logs one WARNING, which names the limit and its value."""

import asyncio
import logging
import time
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk

from langchain_autotools import LimitReachedError, stop_reason
from langchain_autotools.testing import ScriptedChatModel

USAGE: Any = {"input_tokens": 60, "output_tokens": 40, "total_tokens": 100}


def look(place: int) -> str:
    """Look at a place."""
    return f"{place}"


def asks(number: int) -> AIMessage:
    """A reply with a call."""
    call = {"name": "look", "args": {"place": number}, "id": f"call {number}"}
    return AIMessage("", tool_calls=[call], usage_metadata=USAGE)


def slow(text: str) -> Iterator[Any]:
    """A reply that takes its time."""
    yield AIMessageChunk(text)
    time.sleep(0.25)
    yield AIMessageChunk("late")


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The warnings."""
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


ENOUGH = AIMessage("Enough.", usage_metadata=USAGE)
LIMITS: dict[str, tuple[Any, list[Any]]] = {
    "max_turns": (2, [asks(1), asks(2), ENOUGH]),
    "max_tool_calls": (1, [asks(1), asks(2), ENOUGH]),
    "token_budget": (150, [asks(1), asks(2), ENOUGH]),
    "context_window": (90, [asks(1), ENOUGH]),
    "no_progress": (2, [asks(1), asks(1), ENOUGH]),
    "deadline": (0.2, [lambda messages, **_: slow("Let me"), ENOUGH]),  # without calls: one that it cuts is a warning too
}


@pytest.mark.parametrize("on_limit", ["answer", "return", "raise"])
@pytest.mark.parametrize("limit", LIMITS)
def test_the_limit_and_its_value_are_named(limit: str, on_limit: str, caplog: pytest.LogCaptureFixture) -> None:
    """Once, whatever it leads to."""
    value, replies = LIMITS[limit]
    model = ScriptedChatModel(tools=[look], replies=replies, on_limit=on_limit, **{limit: value})
    if on_limit == "raise":
        with pytest.raises(LimitReachedError) as raised:
            model.invoke("Go")
        assert raised.value.stop_reason == limit
    else:
        assert stop_reason(model.invoke("Go")) == limit
    (warning,) = warned(caplog)
    assert f"limit {limit}={value}" in warning


@pytest.mark.parametrize("way", ["stream", "ainvoke", "astream", "bound", "invoke"])
def test_in_every_way_of_calling(way: str, caplog: pytest.LogCaptureFixture) -> None:
    """Also where the limit is a keyword of one call, or bound."""
    model = ScriptedChatModel(tools=[look], replies=[asks(1), "Enough."])

    async def read() -> None:
        async for _ in model.astream("Go", max_turns=1):
            pass

    match way:
        case "stream":
            list(model.stream("Go", max_turns=1))
        case "ainvoke":
            asyncio.run(model.ainvoke("Go", max_turns=1))
        case "astream":
            asyncio.run(read())
        case "bound":
            model.bind(max_turns=1).invoke("Go")
        case _:
            model.invoke("Go", max_turns=1)
    (warning,) = warned(caplog)
    assert "limit max_turns=1, after 2 turns and 1 tool calls" in warning


def test_a_model_without_tools_too(caplog: pytest.LogCaptureFixture) -> None:
    """Its one limit is the deadline."""
    model = ScriptedChatModel(replies=[slow("Let me")], deadline=0.03)
    assert [stop_reason(chunk) for chunk in model.stream("Go")][-1] == "deadline"
    (warning,) = warned(caplog)
    assert "limit deadline=0.03" in warning


def test_a_run_that_reaches_no_limit_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """Nor does one that its caller cancels."""
    assert stop_reason(ScriptedChatModel(tools=[look], replies=[asks(1), "Done."], max_turns=2).invoke("Go")) == "complete"
    assert stop_reason(ScriptedChatModel(tools=[look], replies=[asks(1)]).invoke("Go", cancel=lambda: True)) == "cancelled"
    assert warned(caplog) == []
