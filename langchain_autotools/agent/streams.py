"""Streams of an agent's answers."""

import asyncio
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from contextlib import aclosing, closing
from typing import Any, Self

from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.runnables import RunnableConfig

from ..errors import ConfigurationError
from .exchange import Exchange
from .floor import busy
from .results import AgentResult

Ask = Callable[[list[BaseMessage], RunnableConfig | None], Any]
"""A function that returns the stream of a run."""

_CLOSED = "the stream was closed: its agent was asked the next question"
_closing: set[asyncio.Task[None]] = set()  # streams that are closed on the loop on which they were read


class _Stream:
    """The common base of synchronous and asynchronous answer streams."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    @property
    def result(self) -> AgentResult:
        """The result of the answer.

        Raises:
            ConfigurationError: The stream has not been read to its end.
        """
        if self._exchange.outcome is None:
            raise ConfigurationError("the result is known when the stream has been read to its end")
        return self._exchange.outcome


class AgentStream(_Stream, Iterator[AIMessageChunk]):
    """An iterator over the chunks of an answer; the first one carries the question.

    `close` ends the run, and so does the end of a `with` block, the next question to the agent, or to drop the stream.
    """

    def __init__(self, exchange: Exchange, ask: Ask, config: RunnableConfig | None) -> None:
        super().__init__(exchange)
        exchange.stream = weakref.ref(self)
        self._chunks: Any = _read(exchange, ask, config)

    def __next__(self) -> AIMessageChunk:
        chunk: AIMessageChunk = next(self._chunks)
        return chunk

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the run. Its completed messages stay in the agent's history."""
        self._chunks.close()

    def supersede(self) -> None:
        """End the run for the next question; further reading raises an error.

        Raises:
            ConfigurationError: The next chunk is being made.
        """
        if self._chunks.gi_running:
            raise busy()
        chunks, self._chunks = self._chunks, _refuse()
        chunks.close()

    async def asupersede(self) -> None:
        """Like `supersede`, asynchronously."""
        self.supersede()


class AsyncAgentStream(_Stream, AsyncIterator[AIMessageChunk]):
    """Like `AgentStream`, asynchronously, with `aclose` and `async with`."""

    def __init__(self, exchange: Exchange, ask: Ask, config: RunnableConfig | None) -> None:
        super().__init__(exchange)
        exchange.stream = weakref.ref(self)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed: asyncio.Future[None] | None = None  # is there once somebody closes the stream, done when it is closed
        self._chunks: Any = _aread(exchange, ask, config)

    async def __anext__(self) -> AIMessageChunk:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        chunk: AIMessageChunk = await anext(self._chunks)
        return chunk

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the run. Its completed messages stay in the agent's history."""
        closed = self._closed = asyncio.get_running_loop().create_future()
        try:
            await self._chunks.aclose()
        except BaseException:
            self._closed = None  # a stream that is being read is not closed
            raise
        finally:
            closed.set_result(None)

    def supersede(self) -> None:
        """End the run for the next question; further reading raises an error. Its event loop closes the request.

        Raises:
            ConfigurationError: The next chunk is being made.
        """
        if self._closed is None:
            chunks = self._superseded()
            if self._loop is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(_close_soon, chunks)
        self._exchange.end()

    async def asupersede(self) -> None:
        """Like `supersede`, asynchronously."""
        if self._loop is not asyncio.get_running_loop():
            self.supersede()
        elif self._closed is None:
            await self._superseded().aclose()
        else:
            await asyncio.wait([self._closed])

    def _superseded(self) -> Any:
        if self._chunks.ag_running:
            raise busy()
        chunks, self._chunks = self._chunks, _arefuse()
        return chunks


# The generators do not know their streams: one that did would live, with its request, until the garbage collector came.


def _read(exchange: Exchange, ask: Ask, config: RunnableConfig | None) -> Generator[AIMessageChunk, None, None]:
    with exchange as messages:
        config = exchange.announced(config)
        with closing(ask(messages, config)) as chunks:
            for chunk in chunks:
                yield exchange.add(chunk)
        exchange.finish()
        yield from exchange.closing()


async def _aread(exchange: Exchange, ask: Ask, config: RunnableConfig | None) -> AsyncGenerator[AIMessageChunk, None]:
    async with exchange as messages:
        config = exchange.announced(config)
        async with aclosing(ask(messages, config)) as chunks:
            async for chunk in chunks:
                yield exchange.add(chunk)
        exchange.finish()
        for chunk in exchange.closing():
            yield chunk


def _refuse() -> Generator[AIMessageChunk, None, None]:
    raise ConfigurationError(_CLOSED)
    yield


async def _arefuse() -> AsyncGenerator[AIMessageChunk, None]:
    raise ConfigurationError(_CLOSED)
    yield


def _close_soon(chunks: AsyncGenerator[AIMessageChunk, None]) -> None:
    task = asyncio.ensure_future(_close(chunks))
    _closing.add(task)
    task.add_done_callback(_closing.discard)


async def _close(chunks: AsyncGenerator[AIMessageChunk, None]) -> None:
    await chunks.aclose()
