"""Retry of streams that break off after fragments of tool calls have been shown.

Nothing of a reply that has only begun to write calls reaches the caller: where it breaks off it is asked for again, whoever listens. A
listener is shown the pieces as they come, and is told where they count no more; one that hands them to the caller (`Listener.delivered`)
keeps the reply from being asked for again.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import aclosing, closing
from itertools import chain

from langchain_core.messages import AIMessageChunk

from ...event_bus import listening
from ...retry.attempts import Attempts, pause
from ...turn.partial_calls import restart_chunk
from .._transport.reader import EndedEarly, leaves_at_once

Opened = tuple[list[AIMessageChunk], Generator[AIMessageChunk, None, None]]
"""The first chunks of a reply, and an iterator of the rest."""
AsyncOpened = tuple[list[AIMessageChunk], AsyncGenerator[AIMessageChunk, None]]


def retrying_stream(attempts: Attempts, opened: Callable[[], Opened]) -> Generator[AIMessageChunk, None, None]:
    """Yield the chunks of a reply as they arrive, with a restart chunk between two attempts.

    Args:
        attempts: The attempts at its request.
        opened: Makes one, up to the first chunk.
    """
    while True:
        reply = _StreamedReply(attempts)
        begun, rest = opened()
        try:
            with closing(rest):
                for chunk in chain(begun, rest):
                    reply.left = reply.left or leaves_at_once(chunk)
                    yield chunk
        except Exception as error:
            yield from reply.tail(error)
        if reply.wait is None:
            return
        yield restart_chunk()
        pause(reply.wait)


async def aretrying_stream(attempts: Attempts, opened: Callable[[], Awaitable[AsyncOpened]]) -> AsyncGenerator[AIMessageChunk, None]:
    """Like `retrying_stream`, asynchronously."""
    while True:
        reply = _StreamedReply(attempts)
        begun, rest = await opened()
        try:
            async with aclosing(rest):
                for chunk in begun:
                    reply.left = reply.left or leaves_at_once(chunk)
                    yield chunk
                async for chunk in rest:
                    reply.left = reply.left or leaves_at_once(chunk)
                    yield chunk
        except Exception as error:
            for chunk in await reply.atail(error):
                yield chunk
        if reply.wait is None:
            return
        yield restart_chunk()
        await asyncio.sleep(reply.wait)


class _StreamedReply:
    """An open reply whose tool calls are shown while they are written.

    Args:
        attempts: The attempts at its request.

    Attributes:
        left: Whether anything of it has left but pieces of calls.
        wait: Seconds to wait before the reply is asked for again; None where it has come to its end.
    """

    def __init__(self, attempts: Attempts) -> None:
        self._attempts = attempts
        self.left = False
        self.wait: float | None = None

    def tail(self, error: Exception) -> Sequence[AIMessageChunk]:
        """Return the remaining chunks of a reply that broke off; raise the error unless it ends the reply or the reply is retried."""
        self.wait = None if self.left or _is_delivered() else self._attempts.wait_after(error)
        return self._tail(error)

    async def atail(self, error: Exception) -> Sequence[AIMessageChunk]:
        """Like `tail`, asynchronously."""
        self.wait = None if self.left or _is_delivered() else await self._attempts.await_after(error)
        return self._tail(error)

    def _tail(self, error: Exception) -> Sequence[AIMessageChunk]:
        if self.wait is not None:
            return ()
        if isinstance(error, EndedEarly):
            return error.chunks
        raise error


def _is_delivered() -> bool:
    """Whether the caller has received any shown fragment."""
    place = listening.get()
    return place is not None and place.listener.delivered
