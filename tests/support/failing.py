"""Models that fail by a script, and others that take over."""

from __future__ import annotations

from typing import Any

from langchain_core.exceptions import ModelAPIError
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage

from langchain_autotools import events, pending_calls
from langchain_autotools.testing import ScriptedChatModel
from tests.laws.ways import run

DOWN = ModelAPIError("down")
STREAMS = ("stream", "astream")


class First(ScriptedChatModel):
    """The model that a run begins with."""

    model: str = "first"


class Second(ScriptedChatModel):
    """Another one."""

    model: str = "second"


class Third(ScriptedChatModel):
    """A third one."""

    model: str = "third"


ONE, TWO, THREE = "first/first", "second/second", "third/third"


def look(city: str) -> str:
    """Look at a city."""
    return f"{city}: 21"


def called(number: int = 1) -> AIMessage:
    """A reply with one call."""
    return AIMessage("", tool_calls=[{"name": "look", "args": {"city": f"city {number}"}, "id": f"call_{number}"}])


def thought(text: str) -> AIMessageChunk:
    """A piece of reasoning."""
    return AIMessageChunk("", additional_kwargs={"reasoning_content": text})


def pair(first: list[Any], second: list[Any], **fields: Any) -> tuple[First, Second]:
    """A model and its fallback."""
    other = Second(replies=second)
    return First(replies=first, fallbacks=[other], **{"tools": [look], **fields}), other


def marks(messages: list[BaseMessage]) -> list[Any]:
    """The marks of the AI messages."""
    return [one.response_metadata.get("autotools", {}).get("failover") for one in messages if isinstance(one, AIMessage)]


def answer(way: str, model: Any) -> AIMessage:
    """The run message of a question."""
    message = run(way, model, [HumanMessage("Go.")]).message
    assert message is not None
    return message


def approved(messages: list[BaseMessage]) -> list[Any]:
    """A yes to each call that waits."""
    return [one.approve() for one in pending_calls(messages)]


def collected(stream: Any) -> tuple[list[Any], AIMessage]:
    """The events of a run, and its message as the events say it."""
    told = events(stream)
    return list(told), told.message  # type: ignore[return-value]
