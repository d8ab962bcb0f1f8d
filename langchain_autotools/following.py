"""Following a run: `events` and `aevents` read a stream and give the events of all runs that are made in it.

A stream of this package's models hands over between its steps by itself, also while tools run: it is read here, step by step. Of any other
stream (a chain, a graph) a step may take a whole run, so each step is taken beside its reader, who hears of what happens in it meanwhile.
"""

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from concurrent.futures import Future
from contextlib import aclosing, suppress
from contextvars import Context, Token, copy_context
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage

from .agent import AgentStream, AsyncAgentStream
from .errors import ConfigurationError
from .event_types import RunEvent
from .executor.threads import NoThreadError, run_beside
from .listening import Alarm, Listener, Place, listening
from .mixin import ToolsAndMessagesMixin

_logger = logging.getLogger("langchain_autotools")

_END: Any = object()
_GRACE_SECONDS = 5.0  # how long a step that is given up may take to notice
_HAND_OVER = {ToolsAndMessagesMixin.stream.__code__, ToolsAndMessagesMixin.astream.__code__}


class _Followed:
    """What both kinds of event streams know of the stream that they read."""

    def __init__(self, stream: Any) -> None:
        around = listening.get()
        run_id, call_id = (None, None) if around is None else (around.run_id, around.call_id)
        self._stream = stream
        self._ended = False
        self._listener = Listener() if around is None else Listener(around.listener)
        self._hands_over = _hands_over(stream)
        self._place = Place(self._listener, run_id, call_id, self._hands_over)

    @property
    def message(self) -> AIMessage:
        """The run message, as `invoke` would have returned it: of the last run in the stream that no tool made.

        Raises:
            ConfigurationError: The events have not been read to their end, or there was no such run.
        """
        if not self._ended:
            raise ConfigurationError("the message is known when the events have been read to their end")
        if self._listener.came_to is None:
            raise ConfigurationError("no run has ended in the stream: there is no message")
        message: AIMessage = self._listener.came_to()
        return message

    def _context(self) -> Context:
        """The context for a step that is taken elsewhere."""
        context = copy_context()
        context.run(listening.set, self._place)
        return context

    def _take(self, chunk: Any, error: Exception | None) -> bool:
        """Take what a step came to; False at the end of the stream."""
        if error is not None:
            raise error
        if chunk is not _END:
            return True
        self._ended = True
        if not self._listener.heard:
            _logger.warning("a stream has ended without events: no run of this package's models began in it while its events were read")
        return False


class EventStream(_Followed, Iterator[RunEvent]):
    """The events of a stream, as they happen. `close` ends the stream, and what runs in it."""

    def __init__(self, stream: Iterator[Any]) -> None:
        super().__init__(stream)
        self._events = self._read() if self._hands_over else self._read_beside()

    def __iter__(self) -> Iterator[RunEvent]:
        return self._events

    def __next__(self) -> RunEvent:
        return next(self._events)

    def close(self) -> None:
        """End the stream, and what runs in it."""
        self._events.close()

    def _read(self) -> Generator[RunEvent, None, None]:
        waiting, goes_on = self._listener.waiting, True
        stream, place, enter, leave = self._stream, self._place, listening.set, listening.reset
        try:
            while goes_on:
                chunk, error, before = None, None, enter(place)
                try:
                    chunk = next(stream, _END)
                except Exception as raised:
                    error = raised
                finally:
                    leave(before)
                while waiting:
                    yield waiting.popleft()
                goes_on = (error is None and chunk is not _END) or self._take(chunk, error)
        finally:
            self._listener.close()
            _close(self._stream)

    def _read_beside(self) -> Generator[RunEvent, None, None]:
        waiting, goes_on = self._listener.waiting, True
        try:
            while goes_on:
                chunk, error = yield from self._step_beside()
                while waiting:
                    yield waiting.popleft()
                goes_on = self._take(chunk, error)
        finally:
            self._listener.close()
            _close(self._stream)

    def _step(self) -> tuple[Any, Exception | None]:
        """The next chunk, or what was raised for it."""
        before = listening.set(self._place)
        try:
            return next(self._stream, _END), None
        except Exception as error:
            return None, error
        finally:
            listening.reset(before)

    def _step_beside(self) -> Generator[RunEvent, None, tuple[Any, Exception | None]]:
        """Like `_step`, taken in a thread; the events of the step as they come. A step that nobody waits for any more closes the stream."""
        outcome: Future[Any] = Future()
        changed, left = threading.Event(), threading.Event()
        waiting, stream = self._listener.waiting, self._stream
        outcome.add_done_callback(lambda _: changed.set())
        try:
            run_beside(partial(self._context().run, _step_into, outcome, stream, left))
        except NoThreadError:
            return self._step()
        self._stream = None
        try:
            with self._listener.waking(changed.set):
                while not outcome.done():
                    changed.wait()
                    changed.clear()
                    while waiting:
                        yield waiting.popleft()
        except BaseException:
            left.set()
            if outcome.done():
                _close(stream)
            raise
        self._stream = stream
        error = outcome.exception()
        if error is not None and not isinstance(error, Exception):
            raise error
        return (None, error) if error is not None else (outcome.result(), None)


def _step_into(outcome: Future[Any], stream: Any, left: threading.Event) -> None:
    try:
        result = next(stream, _END)
    except BaseException as error:
        outcome.set_exception(error)
    else:
        outcome.set_result(result)
    if left.is_set():
        _logger.warning("a stream of events was left while a step of its stream ran, which has ended only now")
        _close(stream)


def _close(stream: Any) -> None:
    """Close a stream; None where the thread that takes a step of it will."""
    with suppress(ValueError):  # it is just being closed, in another thread
        getattr(stream, "close", lambda: None)()


class AsyncEventStream(_Followed, AsyncIterator[RunEvent]):
    """Like `EventStream`, asynchronously; `aclose` ends the stream, and what runs in it."""

    def __init__(self, stream: AsyncIterator[Any]) -> None:
        super().__init__(stream)
        self._outcome: tuple[Any, Exception | None] = (None, None)  # of the last step that was taken beside
        self._events = self._read() if self._hands_over else self._read_beside()

    def __aiter__(self) -> AsyncIterator[RunEvent]:
        return self._events

    async def __anext__(self) -> RunEvent:
        return await anext(self._events)

    async def aclose(self) -> None:
        """End the stream, and what runs in it."""
        await self._events.aclose()

    async def _read(self) -> AsyncGenerator[RunEvent, None]:
        waiting, goes_on = self._listener.waiting, True
        take, place, enter = self._stream.__anext__, self._place, listening.set
        try:
            while goes_on:
                chunk, error, before = _END, None, enter(place)
                try:
                    chunk = await take()
                except StopAsyncIteration:
                    pass
                except Exception as raised:
                    error = raised
                finally:
                    _leave(before)
                while waiting:
                    yield waiting.popleft()
                goes_on = (error is None and chunk is not _END) or self._take(chunk, error)
        finally:
            await self._end()

    async def _read_beside(self) -> AsyncGenerator[RunEvent, None]:
        waiting, goes_on = self._listener.waiting, True
        try:
            while goes_on:
                async with aclosing(self._step_beside()) as beside:
                    async for event in beside:
                        yield event
                while waiting:
                    yield waiting.popleft()
                goes_on = self._take(*self._outcome)
        finally:
            await self._end()

    async def _end(self) -> None:
        self._listener.close()
        if hasattr(self._stream, "aclose"):
            await self._stream.aclose()

    async def _step(self) -> tuple[Any, Exception | None]:
        try:
            return await anext(self._stream, _END), None
        except Exception as error:
            return None, error

    async def _step_beside(self) -> AsyncGenerator[RunEvent, None]:
        """Take a step in a task; gives the events of the step as they come."""
        alarm, waiting = Alarm(), self._listener.waiting
        task = asyncio.create_task(self._step(), context=self._context())
        try:
            with self._listener.waking(alarm.ring):
                while not task.done():
                    waited: list[asyncio.Future[Any]] = [task, alarm.rung]
                    await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
                    alarm.reset()
                    while waiting:
                        yield waiting.popleft()
            self._outcome = task.result()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait([task], timeout=_GRACE_SECONDS)


def _leave(before: Token[Place | None]) -> None:
    try:  # noqa: SIM105 - suppress costs too much for something that is done at each chunk
        listening.reset(before)
    except ValueError:  # a generator that is thrown away is closed in another context
        pass


def _hands_over(stream: Any) -> bool:
    """Whether a stream hands over between its steps by itself."""
    code = getattr(stream, "gi_code", None) or getattr(stream, "ag_code", None)
    return code in _HAND_OVER or isinstance(stream, AgentStream | AsyncAgentStream)


def events(stream: Iterator[Any]) -> EventStream:
    """The events of a run, as they happen: `events(model.stream(messages))`.

    Args:
        stream: What `stream` of a model, an agent, a chain or a graph returned, before anything of it was read. All runs of this package's
            models that are made in it are told of, also those that tools make.

    Returns:
        An iterator over `RunEvent`s. It raises what the stream raises, after the event that says so. After the last event its `message`
        is the run message.

    Raises:
        ConfigurationError: `stream` is none.
    """
    if not isinstance(stream, Iterator):
        raise ConfigurationError(_WRONG.format("events", "stream", _described(stream, AsyncIterator, "aevents")))
    return EventStream(stream)


def aevents(stream: AsyncIterator[Any]) -> AsyncEventStream:
    """Like `events`, asynchronously: `aevents(model.astream(messages))`."""
    if not isinstance(stream, AsyncIterator):
        raise ConfigurationError(_WRONG.format("aevents", "astream", _described(stream, Iterator, "events")))
    return AsyncEventStream(stream)


_WRONG = "{} takes what {}() of a model, an agent, a chain or a graph returns, not {}"


def _described(given: Any, other: type, function: str) -> str:
    kind = type(given).__name__
    return f"{kind}, which is for {function}" if isinstance(given, other) else kind
