"""`serialize_result`: the text of a result, for wires that programs write themselves."""

import json
from datetime import date
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import ToolException

from langchain_autotools import ConfigurationError, ToolExecutor
from langchain_autotools.executor import serialize_result

BLOCKS = [{"type": "text", "text": "Rome "}, {"type": "text", "text": "21"}]
IMAGE = {"type": "image", "base64": "aGk=", "mime_type": "image/png"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("21 °C", "21 °C"),
        ("", "(no output)"),
        (None, "(no output)"),
        ([], "[]"),
        ({"rome": 21, "day": date(2026, 1, 2)}, '{"rome": 21, "day": "2026-01-02"}'),
        (BLOCKS, "Rome 21"),
        ([*BLOCKS, IMAGE], json.dumps([*BLOCKS, IMAGE])),
        (ToolMessage("21", tool_call_id="a"), "21"),
        (ToolMessage(BLOCKS, tool_call_id="a"), "Rome 21"),
        (ToolMessage("", tool_call_id="a"), "(no output)"),
        (ToolException("no such city"), '{"error": "no such city"}'),
        (ValueError("no"), '{"error": "ValueError: no"}'),
        ("half \ud83d", "half \ufffd"),
    ],
)
def test_the_text_of_a_result(value: Any, text: str) -> None:
    """Text as it is, else JSON; never nothing."""
    assert serialize_result(value) == text


def test_it_says_what_the_executor_says() -> None:
    """Of what a tool returned or raised, and of the result itself."""

    def look(city: str) -> dict[str, int]:
        """Look at a city."""
        if city != "Rome":
            raise ValueError(city)
        return {city: 21}

    calls = [{"name": "look", "args": {"city": city}, "id": city} for city in ("Rome", "Oz")]
    good, bad = ToolExecutor([look]).execute_all(calls)
    assert serialize_result(good) == good.content == serialize_result({"Rome": 21})
    assert serialize_result(bad) == bad.content == serialize_result(ValueError("Oz"))
    result = ToolExecutor([look]).execute(calls[0])
    assert serialize_result(result) == serialize_result(good)


def test_what_is_no_result_is_refused() -> None:
    """A graph's command, and a coroutine that nobody awaited."""
    command = pytest.importorskip("langgraph.types").Command(update={})
    with pytest.raises(ConfigurationError, match="Command"):
        serialize_result(command)

    async def look() -> str:
        return "21"

    with pytest.raises(ToolException, match="unfinished"):
        serialize_result(look())
