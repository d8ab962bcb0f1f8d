"""A turn of a model without tools of its own that its caller can cancel.

There is no run, and so no stop reason: as of any reply that broke off, the message's finish reason says how it ended.
"""

import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing
from typing import TypeVar

from langchain_core.messages import AIMessage, AIMessageChunk

from ..cancelling import Cancel, CancelFlag
from ..deadline import abounded, bounded

_Part = TypeVar("_Part", bound=AIMessage)


def cancellable(parts: Iterator[_Part], flag: CancelFlag) -> Iterator[_Part | AIMessageChunk]:
    """The parts of a turn until the caller cancels; then a last one that says so."""
    cancel, part = Cancel(flag), None
    for part in bounded(parts, cancel):
        yield part
    if cancel.cut is not None:
        yield _end(part)


async def acancellable(parts: AsyncGenerator[_Part, None], flag: CancelFlag) -> AsyncGenerator[_Part | AIMessageChunk, None]:
    """Like `cancellable`, asynchronously."""
    cancel, part = Cancel(flag), None
    async with aclosing(abounded(parts, cancel)) as given:
        async for part in given:
            yield part
    if cancel.cut is not None:
        yield _end(part)


def invoked(invoke: Callable[[], AIMessage], flag: CancelFlag) -> AIMessage:
    """The reply; an empty one if the caller cancels before it is there."""
    return next(cancellable((one() for one in (invoke,)), flag))


async def ainvoked(invoke: Callable[[], Awaitable[AIMessage]], flag: CancelFlag) -> AIMessage:
    """Like `invoked`, asynchronously."""

    async def reply() -> AsyncGenerator[AIMessage, None]:
        yield await invoke()

    async with aclosing(acancellable(reply(), flag)) as parts:
        return await anext(parts)


def _end(last: AIMessage | None) -> AIMessageChunk:
    """The end of a turn after this part."""
    known = None if last is None else last.id
    return AIMessageChunk(
        content="", id=known or str(uuid.uuid4()), response_metadata={"finish_reason": "cancelled"}, chunk_position="last"
    )
