"""Runs against replies of chat completions that never end: what such a server says, and the four ways to run a model against it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from langchain_core.exceptions import ModelError
from langchain_core.messages import HumanMessage

from langchain_autotools import ChatAnthropic, ChatGoogleGenerativeAI, ChatOllama, ChatOpenAI, new_messages
from tests.support.endless import EndlessServer, ended, head

__all__ = [
    "CALL",
    "CLASSES",
    "Way",
    "ainvoke",
    "asks",
    "astream",
    "event",
    "every_way",
    "invoke",
    "load_sdks",
    "look",
    "stop_reason",
    "stream",
    "streamed",
]

CLASSES = [ChatOpenAI, ChatAnthropic, ChatGoogleGenerativeAI, ChatOllama]


def look() -> str:
    """Look."""
    return "seen"


def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
    """One event of a stream of chat completions."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"id": "1", "object": "chat.completion.chunk", "model": "any", "choices": [choice]}).encode() + b"\n\n"


CALL = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}


def stream(model: Any, **keywords: Any) -> tuple[Any, list[Any]]:
    """The sum of the chunks, and the new messages that they brought."""
    return _summed(list(model.stream([HumanMessage("Hi")], **keywords)))


def astream(model: Any, **keywords: Any) -> tuple[Any, list[Any]]:
    """The same, asynchronously."""

    async def chunks() -> list[Any]:
        return [chunk async for chunk in model.astream([HumanMessage("Hi")], **keywords)]

    return _summed(asyncio.run(chunks()))


def invoke(model: Any, **keywords: Any) -> tuple[Any, list[Any]]:
    """The run message, and its new messages."""
    message = model.invoke([HumanMessage("Hi")], **keywords)
    return message, new_messages(message)


def ainvoke(model: Any, **keywords: Any) -> tuple[Any, list[Any]]:
    """The same, asynchronously."""
    message = asyncio.run(model.ainvoke([HumanMessage("Hi")], **keywords))
    return message, new_messages(message)


def _summed(chunks: list[Any]) -> tuple[Any, list[Any]]:
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    new = [message for chunk in chunks for message in new_messages(chunk)]
    assert new_messages(whole) == new
    return whole, new


Way = Callable[..., tuple[Any, list[Any]]]
every_way = pytest.mark.parametrize("way", [invoke, stream, ainvoke, astream])
streamed = pytest.mark.parametrize("way", [stream, astream])


def asks(way: Way, *names: str) -> Iterable[bytes]:
    """A reply that calls these tools, in the form that this way asks for."""
    calls = [{**CALL, "index": number, "id": f"call_{number}", "function": {"name": name, "arguments": "{}"}}
             for number, name in enumerate(names)]  # fmt: skip
    if way in (stream, astream):
        return [head() + event({"role": "assistant", "tool_calls": calls}) + event({}, "tool_calls") + b"data: [DONE]\n\n"]
    message = {"role": "assistant", "tool_calls": [{key: value for key, value in call.items() if key != "index"} for call in calls]}
    return ended(200, {"id": "1", "model": "any", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]})


def stop_reason(message: Any) -> str:
    """Why the run ended, as it says."""
    return str(message.response_metadata["autotools"]["stop_reason"])


def load_sdks() -> None:
    """Have the SDKs loaded: the first request takes long."""
    with EndlessServer(lambda _: ended(400, {"error": {"message": "no"}})) as server:
        for chat_model in CLASSES:
            model = chat_model(model="any", base_url=server.address, api_key="key")
            for ask in (model.invoke, lambda text, model=model: asyncio.run(model.ainvoke(text))):
                with pytest.raises(ModelError):
                    ask("Hi")
