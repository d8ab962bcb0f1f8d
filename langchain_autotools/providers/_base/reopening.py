"""Streams that are asked for again although pieces of calls have been shown already.

Nothing of a reply that has only begun to write calls reaches the caller: where it breaks off it is asked for again, whoever listens. A
listener is shown the pieces as they come, and is told where they count no more.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import aclosing, closing

from langchain_core.messages import AIMessageChunk

from ...retry import Attempts, pause
from ...turn.forming import restart_chunk
from .._transport.reader import EndedEarly, leaves_at_once

Opened = tuple[list[AIMessageChunk], Generator[AIMessageChunk, None, None]]
"""The first chunks of a reply, and the others."""
AsyncOpened = tuple[list[AIMessageChunk], AsyncGenerator[AIMessageChunk, None]]


def shown(attempts: Attempts, opened: Callable[[], Opened]) -> Generator[AIMessageChunk, None, None]:
    """The chunks of a reply as they come. Between two attempts comes one that says so.

    Args:
        attempts: The attempts at its request.
        opened: Makes one, up to the first chunk.
    """
    while True:
        reply = _ShownReply(attempts)
        yield from reply.chunks(*opened())
        if reply.wait is None:
            return
        yield restart_chunk()
        pause(reply.wait)


async def ashown(attempts: Attempts, opened: Callable[[], Awaitable[AsyncOpened]]) -> AsyncGenerator[AIMessageChunk, None]:
    """Like `shown`, asynchronously."""
    while True:
        reply = _ShownReply(attempts)
        async with aclosing(reply.achunks(*await opened())) as chunks:
            async for chunk in chunks:
                yield chunk
        if reply.wait is None:
            return
        yield restart_chunk()
        await asyncio.sleep(reply.wait)


class _ShownReply:
    """An opened reply whose calls are shown while they are written.

    Args:
        attempts: The attempts at its request.

    Attributes:
        wait: Seconds to wait before the reply is asked for again; None where it has come to its end.
    """

    def __init__(self, attempts: Attempts) -> None:
        self._attempts = attempts
        self._held = True  # nothing of it has left but pieces of calls
        self.wait: float | None = None

    def chunks(self, begun: Sequence[AIMessageChunk], rest: Generator[AIMessageChunk, None, None]) -> Generator[AIMessageChunk, None, None]:
        """The chunks of the reply, as far as it comes."""
        try:
            with closing(rest):
                yield from (self._seen(chunk) for chunk in begun)
                yield from (self._seen(chunk) for chunk in rest)
        except EndedEarly as early:
            if not self._is_again(early):
                yield from early.chunks
        except Exception as error:
            if not self._is_again(error):
                raise

    async def achunks(
        self, begun: Sequence[AIMessageChunk], rest: AsyncGenerator[AIMessageChunk, None]
    ) -> AsyncGenerator[AIMessageChunk, None]:
        """Like `chunks`, asynchronously."""
        try:
            async with aclosing(rest):
                for chunk in begun:
                    yield self._seen(chunk)
                async for chunk in rest:
                    yield self._seen(chunk)
        except EndedEarly as early:
            if not self._is_again(early):
                for chunk in early.chunks:
                    yield chunk
        except Exception as error:
            if not self._is_again(error):
                raise

    def _seen(self, chunk: AIMessageChunk) -> AIMessageChunk:
        self._held = self._held and not leaves_at_once(chunk)
        return chunk

    def _is_again(self, error: Exception) -> bool:
        self.wait = self._attempts.wait_after(error) if self._held else None
        return self.wait is not None
