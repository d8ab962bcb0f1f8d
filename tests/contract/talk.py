"""A conversation over real HTTP, and the four ways to run it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, message_chunk_to_message
from langchain_core.runnables.base import RunnableBinding

from langchain_autotools import new_messages
from tests.contract.wires import Results, Wire
from tests.support.scripted_server import ScriptedServer

WAYS = ("invoke", "stream", "ainvoke", "astream")


@dataclass(frozen=True)
class Talk:
    """A model and the server it talks to."""

    wire: Wire
    server: ScriptedServer
    model: Any

    def results(self, request: int = -1) -> Results:
        """Id and text of the tool results at the end of a request."""
        return self.wire.results(self.server.exchanges[request])

    def texts(self, request: int = -1) -> list[str]:
        """The texts of those results."""
        return [text for _, text in self.results(request)]


@dataclass(frozen=True)
class Ran:
    """What a run gave: its message, and the new messages as the caller collected them."""

    message: AIMessage
    new: list[BaseMessage]


Run = Callable[..., Any]
Start = Callable[..., Talk]


async def run_in(way: str, model: Any, messages: Any, **keywords: Any) -> Ran:
    """Run a model in the named way."""
    if way == "invoke":
        message = await asyncio.to_thread(model.invoke, messages, **keywords)
    elif way == "ainvoke":
        message = await model.ainvoke(messages, **keywords)
    else:
        if way == "stream":
            chunks = await asyncio.to_thread(lambda: list(model.stream(messages, **keywords)))
        else:
            chunks = [chunk async for chunk in model.astream(messages, **keywords)]
        return Ran(whole(model, summed(chunks)), [message for chunk in chunks for message in new_messages(chunk)])
    return Ran(message, new_messages(message))


def whole(model: Any, message: AIMessage) -> AIMessage:
    """A sum of chunks with its content as of a whole reply, in which `invoke` hands it out and law 2 compares both."""
    while isinstance(model, RunnableBinding):
        model = model.bound
    form = getattr(model, "_whole_message", None)
    return message if form is None else form(message)


def summed(chunks: list[AIMessageChunk]) -> AIMessage:
    """The message that chunks sum to."""
    return message_chunk_to_message(reduce(add, chunks))  # type: ignore[return-value]
