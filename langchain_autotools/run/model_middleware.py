"""LangChain's `wrap_model_call` as a wrapper of turns.

A middleware is a function around a whole reply, and a turn is streamed. So the middleware runs beside the turn, in a thread or task of its
own, and the turn's own thread or task makes the requests that it asks for. What may be shown leaves at once; a reply whose text has
left can neither be made again nor be replaced.
"""

import asyncio
import logging
import queue
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, closing
from contextvars import copy_context
from functools import partial
from typing import Any, ClassVar, NamedTuple, cast

from ..deadline import Deadline
from ..executor.workers.threads import run_beside
from .middleware import hook_of
from .model_calls import Attempt, ModelCalls
from .phases import generator_of
from .turn_wrappers import ENDS, AsyncProceed, Proceed, TurnPart, TurnRequest, TurnWrapper

_logger = logging.getLogger("langchain_autotools")

_SECONDS_TO_END = 1.0


class ModelMiddleware(TurnWrapper):
    """The wrapper of turns that holds all middleware around model calls.

    Args:
        middleware: The middleware, the outermost first.
    """

    layer: ClassVar[str] = "middleware"

    def __init__(self, middleware: Sequence[Any]) -> None:
        self._middleware = middleware

    def wrap_turn(self, request: TurnRequest, proceed: Proceed) -> Iterator[TurnPart]:
        """Make a turn inside the middleware."""
        calls, side = ModelCalls(request), _Thread(request.end)
        handler: Callable[[Any], Any] = side.ask
        for one in reversed(self._middleware):
            wrap = hook_of(one, "wrap_model_call", twin="awrap_model_call")
            handler = partial(_layer, calls, one, wrap, handler)
        with closing(side):
            side.start(partial(handler, calls.model_request()))
            while (asked := side.next()).answer is None:
                attempt = calls.attempt(asked.request)
                try:
                    for part in proceed(attempt.request):
                        yield from attempt.feed(part)
                except ENDS:
                    raise
                except Exception as error:
                    side.reply(error=calls.failed(attempt, error))
                else:
                    side.reply(calls.done(attempt))
        yield from calls.parts_of(asked.answer)

    async def awrap_turn(self, request: TurnRequest, proceed: AsyncProceed) -> AsyncIterator[TurnPart]:
        """Make a turn inside the middleware asynchronously."""
        calls, side = ModelCalls(request), _Task()
        handler: Callable[[Any], Awaitable[Any]] = side.ask
        for one in reversed(self._middleware):
            wrap = hook_of(one, "awrap_model_call", twin="wrap_model_call")
            handler = partial(_alayer, calls, one, wrap, handler)
        async with aclosing(side):
            side.start(handler(calls.model_request()))
            while (asked := await side.next()).answer is None:
                attempt = calls.attempt(asked.request)
                try:
                    async for part in _parts(proceed, attempt):
                        yield part
                except ENDS:
                    raise
                except Exception as error:
                    side.reply(error=calls.failed(attempt, error))
                else:
                    side.reply(calls.done(attempt))
        for part in calls.parts_of(asked.answer):
            yield part


def _layer(calls: ModelCalls, middleware: Any, wrap: Callable[..., Any], handler: Callable[[Any], Any], request: Any) -> Any:
    """Call one middleware; `handler` is what stands inside of it."""
    around = calls.layer(middleware)
    return around.checked(wrap(request, lambda inner: handler(around.entered(inner))))


async def _alayer(
    calls: ModelCalls, middleware: Any, wrap: Callable[..., Any], handler: Callable[[Any], Awaitable[Any]], request: Any
) -> Any:
    """Like `_layer`, asynchronously."""
    around = calls.layer(middleware)

    async def inside(inner: Any) -> Any:
        return await handler(around.entered(inner))

    return around.checked(await wrap(request, inside))


async def _parts(proceed: AsyncProceed, attempt: Attempt) -> AsyncIterator[TurnPart]:
    async with aclosing(generator_of(cast("AsyncIterator[Any]", proceed(attempt.request)))) as parts:
        async for part in parts:
            for out in attempt.feed(part):
                yield out


class _Asked(NamedTuple):
    """What comes from beside a turn: a request to make, or the answer."""

    request: Any = None
    answer: Any = None


class _Closed(BaseException):
    """Raised inside a middleware whose turn is over. No `except Exception` catches it."""


class _Thread:
    """Middleware in a thread beside a turn.

    Args:
        end: The end of the run, before which it is waited for.
    """

    def __init__(self, end: Deadline) -> None:
        self._end = end
        self._asked: queue.SimpleQueue[tuple[_Asked | None, BaseException | None]] = queue.SimpleQueue()
        self._replies: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        self._closed = False
        self._news, self._ended = threading.Event(), threading.Event()

    def start(self, work: Callable[[], Any]) -> None:
        """Begin."""
        run_beside(partial(copy_context().run, self._work, work))

    def _work(self, work: Callable[[], Any]) -> None:
        try:
            self._put(_Asked(answer=work()))
        except BaseException as error:
            self._put(None, error)
        finally:
            self._ended.set()

    def _put(self, asked: _Asked | None, error: BaseException | None = None) -> None:
        self._asked.put((asked, error))
        self._news.set()

    def ask(self, request: Any) -> Any:
        """Have the turn's thread make a request; returns the response, or raises. Called in the middleware's thread."""
        if self._closed:
            raise _Closed
        self._put(_Asked(request))
        reply, error = self._replies.get()
        if error is not None:
            raise error
        return reply

    def next(self) -> _Asked:
        """Return what the middleware asks for next.

        Raises:
            BaseException: What the middleware has raised, or the end of the run.
        """
        self._end.wait(self._news)
        if not self._news.is_set():
            self._end.check()
        self._news.clear()
        asked, error = self._asked.get()
        if asked is None:
            raise cast("BaseException", error)
        return asked

    def reply(self, response: Any = None, error: BaseException | None = None) -> None:
        """Answer the request that was asked for."""
        self._replies.put((response, error))

    def close(self) -> None:
        """End the middleware, wherever it waits. A thread that does not end within a second is left behind."""
        self._closed = True
        self._replies.put((None, _Closed()))
        if not self._ended.wait(_SECONDS_TO_END):
            _logger.warning("a middleware goes on although its turn is over: a thread cannot be stopped")


class _Task:
    """Middleware in a task beside a turn."""

    def __init__(self) -> None:
        self._asked: asyncio.Queue[_Asked] = asyncio.Queue()
        self._reply: asyncio.Future[Any]
        self._task: asyncio.Task[Any]

    def start(self, work: Awaitable[Any]) -> None:
        """Begin."""
        self._task = asyncio.ensure_future(_as_coroutine(work))

    async def ask(self, request: Any) -> Any:
        """Have the turn's task make a request; returns the response, or raises. Called in the middleware's task."""
        self._reply = asyncio.get_running_loop().create_future()
        self._asked.put_nowait(_Asked(request))
        return await self._reply

    async def next(self) -> _Asked:
        """Return what the middleware asks for next.

        Raises:
            BaseException: What the middleware has raised.
        """
        asked = asyncio.ensure_future(self._asked.get())
        try:
            await asyncio.wait([asked, self._task], return_when=asyncio.FIRST_COMPLETED)
            return asked.result() if asked.done() else _Asked(answer=self._task.result())
        finally:
            asked.cancel()

    def reply(self, response: Any = None, error: BaseException | None = None) -> None:
        """Answer the request that was asked for."""
        if self._reply.done():
            return
        if error is None:
            self._reply.set_result(response)
        else:
            self._reply.set_exception(error)

    async def aclose(self) -> None:
        """End the middleware. A task that swallows its cancellation for a second is left behind."""
        self._task.cancel()
        await asyncio.wait([self._task], timeout=_SECONDS_TO_END)
        if not self._task.done():
            _logger.warning("a middleware goes on although its turn is over and it was cancelled")
        elif not self._task.cancelled():
            self._task.exception()


async def _as_coroutine(work: Awaitable[Any]) -> Any:
    return await work
