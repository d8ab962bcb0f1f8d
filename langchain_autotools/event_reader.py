"""Event streams of runs: `events` or `aevents` reads a stream to yield the events of all runs in it.

A stream of this package's models hands over between its steps by itself, also while tools run: it is read here, step by step. Of any other
stream (a chain, a graph) a step may take a whole run, so each step is taken beside its reader, who hears of what happens in it meanwhile.
"""

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextvars import Context, copy_context
from queue import SimpleQueue
from typing import Any, Self

from langchain_core.messages import AIMessage

from .agent import AgentStream, AsyncAgentStream
from .errors import ConfigurationError
from .event_bus import Alarm, Listener, Scope, current_scope, stop_listening
from .event_types import RunEvent
from .executor.user_functions import NoThreadError, run_beside
from .mixin import ToolsAndMessagesMixin

_logger = logging.getLogger("langchain_autotools")

_END: Any = object()
_GRACE_SECONDS = 5.0  # how long a step that is given up may take to notice
_HAND_OVER = {ToolsAndMessagesMixin.stream.__code__, ToolsAndMessagesMixin.astream.__code__}


# A stream of events is not known to the generator that reads for it: one that it knew would live, with its runs, until the garbage
# collector came, which closes generators that lie in one another all at once.


class _Reader:
    """The state of reading one stream for its events.

    Attributes:
        ended: Whether the stream has been read to its end.
        listener: Who hears of the events.
        hands_over: Whether the stream yields control between its steps by itself: it is read in the reader's own thread or task.
    """

    def __init__(self, stream: Any) -> None:
        around = current_scope.get()
        run_id, call_id = (None, None) if around is None else (around.run_id, around.call_id)
        self._stream = stream
        self.ended = False
        self.listener = Listener() if around is None else Listener(around.listener)
        code = getattr(stream, "gi_code", None) or getattr(stream, "ag_code", None)
        self.hands_over = code in _HAND_OVER or isinstance(stream, AgentStream | AsyncAgentStream)
        self._place = Scope(self.listener, run_id, call_id, self.hands_over)

    def _context(self) -> Context:
        """Return the context for a step in another thread or task."""
        context = copy_context()
        context.run(current_scope.set, self._place)
        return context

    def _process(self, chunk: Any, error: BaseException | None) -> bool:
        """Process the result of a step; False at the end of the stream."""
        if error is not None:
            raise error
        if chunk is not _END:
            return True
        self.ended = True
        if not self.listener.heard:
            _logger.warning("a stream has ended without events: no run of this package's models began in it while its events were read")
        return False


class _EventStream:
    """The common base of both kinds of event streams."""

    def __init__(self, reader: _Reader) -> None:
        self._reader = reader

    @property
    def message(self) -> AIMessage:
        """The run message, as from `invoke`, of the last run in the stream outside of tools.

        Raises:
            ConfigurationError: The events have not been read to their end, or there was no such run.
        """
        if not self._reader.ended:
            raise ConfigurationError("the message is known when the events have been read to their end")
        if self._reader.listener.came_to is None:
            raise ConfigurationError("no run has ended in the stream: there is no message")
        message: AIMessage = self._reader.listener.came_to()
        return message


class EventStream(_EventStream, Iterator[RunEvent]):
    """The events of a stream, live. `close`, or the end of a `with` block, ends the stream and its runs."""

    def __init__(self, stream: Iterator[Any]) -> None:
        super().__init__(reader := _SyncReader(stream))
        self._events = reader.events()

    def __iter__(self) -> Iterator[RunEvent]:
        return self._events

    def __next__(self) -> RunEvent:
        return next(self._events)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the stream and its runs."""
        self._events.close()


class AsyncEventStream(_EventStream, AsyncIterator[RunEvent]):
    """Like `EventStream`, asynchronously, with `aclose` and `async with`."""

    def __init__(self, stream: AsyncIterator[Any]) -> None:
        super().__init__(reader := _AsyncReader(stream))
        self._events = reader.events()

    def __aiter__(self) -> AsyncIterator[RunEvent]:
        return self._events

    async def __anext__(self) -> RunEvent:
        return await anext(self._events)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the stream and its runs."""
        await self._events.aclose()


class _SyncReader(_Reader):
    """Reads a synchronous stream."""

    def events(self) -> Generator[RunEvent, None, None]:
        """Yield the events, live."""
        return self._read() if self.hands_over else self._read_beside()

    def _read(self) -> Generator[RunEvent, None, None]:
        waiting, goes_on = self.listener.waiting, True
        stream, place, enter, leave = self._stream, self._place, current_scope.set, current_scope.reset
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
                goes_on = (error is None and chunk is not _END) or self._process(chunk, error)
        finally:
            self.listener.close(left=not self.ended)
            _close(self._stream)

    def _read_beside(self) -> Generator[RunEvent, None, None]:
        try:
            steps = _Steps(self._stream)
        except NoThreadError:
            yield from self._read()
            return
        goes_on = True
        try:
            with self.listener.waking(steps.changed.set):
                while goes_on:
                    steps.begin(self._context())
                    yield from self._events_of_step(steps)
                    goes_on = self._process(*steps.outcome)
        finally:
            self.listener.close(left=not self.ended)
            steps.end()

    def _events_of_step(self, steps: "_Steps") -> Generator[RunEvent, None, None]:
        """Yield the events of a step, live, until it has ended."""
        waiting = self.listener.waiting
        while steps.runs:
            steps.changed.wait()
            steps.changed.clear()
            while waiting:
                yield waiting.popleft()
        while waiting:
            yield waiting.popleft()


class _Steps:
    """Takes the steps of a stream in a thread, each on request.

    Attributes:
        changed: Is set when a step has ended.
        runs: Whether a step is being taken.
        outcome: The chunk that the last step gave, and what it raised.

    Raises:
        NoThreadError: No thread can be started.
    """

    def __init__(self, stream: Iterator[Any]) -> None:
        self.changed = threading.Event()
        self.runs = False
        self.outcome: tuple[Any, BaseException | None] = (None, None)
        self._stream = stream
        self._contexts: SimpleQueue[Context | None] = SimpleQueue()
        self._closed = threading.Event()
        run_beside(self._work)

    def begin(self, context: Context) -> None:
        """Begin a step, in a context."""
        self.runs = True
        self._contexts.put(context)

    def end(self) -> None:
        """Close the stream after its current step, without waiting for that."""
        self._contexts.put(None)
        if self.runs:
            _logger.info("a stream of events is left while a step of its stream runs: its runs end with their next piece")
        else:
            self._closed.wait()

    def _work(self) -> None:
        while (context := self._contexts.get()) is not None:
            self.outcome = context.run(self._step)
            self.runs = False
            self.changed.set()
        try:
            _close(self._stream)
        finally:
            self._closed.set()

    def _step(self) -> tuple[Any, BaseException | None]:
        try:
            return next(self._stream, _END), None
        except BaseException as error:
            return None, error


def _close(stream: Any) -> None:
    getattr(stream, "close", lambda: None)()


class _AsyncReader(_Reader):
    """Reads an asynchronous stream."""

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self._task: asyncio.Task[tuple[Any, Exception | None]] | None = None  # takes a step beside the reader

    def events(self) -> AsyncGenerator[RunEvent, None]:
        """Yield the events, live."""
        return self._read() if self.hands_over else self._read_beside()

    async def _read(self) -> AsyncGenerator[RunEvent, None]:
        waiting, goes_on = self.listener.waiting, True
        next_chunk, place, enter = self._stream.__anext__, self._place, current_scope.set
        try:
            while goes_on:
                chunk, error, before = _END, None, enter(place)
                try:
                    chunk = await next_chunk()
                except StopAsyncIteration:
                    pass
                except Exception as raised:
                    error = raised
                finally:
                    stop_listening(before)
                while waiting:
                    yield waiting.popleft()
                goes_on = (error is None and chunk is not _END) or self._process(chunk, error)
        finally:
            await self._end()

    async def _read_beside(self) -> AsyncGenerator[RunEvent, None]:
        waiting, alarm, goes_on = self.listener.waiting, Alarm(), True
        try:
            with self.listener.waking(alarm.ring):
                while goes_on:
                    self._task = step = asyncio.create_task(self._step(), context=self._context())
                    step.add_done_callback(lambda _: alarm.ring())
                    while await self._comes(alarm, step):
                        yield waiting.popleft()
                    goes_on = self._process(*step.result())
        finally:
            await self._end()

    async def _comes(self, alarm: Alarm, step: asyncio.Task[Any]) -> bool:
        """Whether an event comes before the step has ended."""
        waiting = self.listener.waiting
        while not waiting and not step.done():
            await alarm.wait()
        return bool(waiting)

    async def _step(self) -> tuple[Any, Exception | None]:
        try:
            return await anext(self._stream, _END), None
        except Exception as error:
            return None, error

    async def _end(self) -> None:
        self.listener.close(left=not self.ended)
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task], timeout=_GRACE_SECONDS)
        self._task = None  # it knows where it was cancelled, and so all that was at work there
        if hasattr(self._stream, "aclose"):
            await self._stream.aclose()


def events(stream: Iterator[Any]) -> EventStream:
    """Yield the events of a run, live: `events(model.stream(messages))`.

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
