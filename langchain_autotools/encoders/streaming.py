"""The driver that runs an encoder over the events of a run.

Asynchronous events are read in a task of their own: what they wait for is begun and ended in one task, and while nothing comes the
encoder's heartbeat is sent. Whoever closes the bytes closes the events, and with them ends the run.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, overload

from langchain_core.messages import AIMessage

from .. import event_types as kinds
from ..errors import ConfigurationError, EventsInterruptedError
from ..event_types import RunEvent
from .public import public

_logger = logging.getLogger("langchain_autotools")
_AHEAD: Final = 64  # events that are read before anybody takes them
_GRACE_SECONDS: Final = 5.0  # how long a run that is given up may take to notice
_END: Final[Any] = object()
_IDLE: Final[Any] = object()
_tasks: set[asyncio.Task[None]] = set()  # the event loop itself keeps no task


@dataclass(frozen=True)
class Failure:
    """The description of an exception for a reader.

    Attributes:
        name: Its class.
        text: A plain sentence, without anything of the exception's own text.
        retryable: Whether the same request may succeed later.
        details: The exception's own text, where that was asked for.
        error: The exception, for an encoder whose protocol tells kinds of errors apart.
    """

    name: str
    text: str
    retryable: bool
    details: str | None = None
    error: BaseException | None = field(default=None, repr=False, compare=False)

    @property
    def interrupted(self) -> bool:
        """Whether only the process that reads the events ends: the run goes on, and a client that comes back can read on."""
        return isinstance(self.error, EventsInterruptedError)

    @classmethod
    def of(cls, error: BaseException, details: bool) -> "Failure":
        """Return the description of an exception; `details`: with its own text."""
        retryable = getattr(error, "is_retryable", False) is True
        text = "The run failed. The same request may succeed later." if retryable else "The run failed."
        return cls(type(error).__name__, text, retryable, _text_of(error) if details else None, error)


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # whatever the exception's own code raises
        return type(error).__name__


class Encoder(Protocol):
    """The interface of encoders of events in a protocol. One encoder writes one stream.

    It gets events as a page may see them: without the transcripts of runs inside tools, system messages and, unless it has an attribute
    `artifacts` that is True, artifacts of tools.

    Attributes:
        heartbeat: What is sent while nothing happens.
    """

    heartbeat: bytes

    def encode(self, event: RunEvent) -> bytes:
        """Return the protocol's bytes for an event; empty if it has no form there."""

    def end(self) -> bytes:
        """Return the bytes after the last event."""

    def fail(self, failure: Failure) -> bytes:
        """Return the last bytes after an exception of the events."""


@overload
def encoded(
    events: Iterable[RunEvent], encoder: Encoder, *, heartbeat: float | None = None, details: bool = False
) -> Generator[bytes, None, None]: ...


@overload
def encoded(
    events: AsyncIterable[RunEvent], encoder: Encoder, *, heartbeat: float | None = None, details: bool = False
) -> AsyncGenerator[bytes, None]: ...


def encoded(
    events: Iterable[RunEvent] | AsyncIterable[RunEvent], encoder: Encoder, *, heartbeat: float | None = None, details: bool = False
) -> Generator[bytes, None, None] | AsyncGenerator[bytes, None]:
    """Yield the bytes of events. An exception of the events is logged, and sent in the encoder's form.

    Args:
        events: What `events` or `aevents` returned, or events that were kept.
        encoder: Writes them.
        heartbeat: The seconds in which nothing is sent after which the encoder's heartbeat is sent, of asynchronous events; None for never.
        details: Whether the texts of exceptions are sent.

    Returns:
        A generator of what is sent, asynchronous for asynchronous events. Closing it closes the events.

    Raises:
        ConfigurationError: `events` is no iterable, or `heartbeat` no number of seconds.
    """
    if isinstance(heartbeat, bool) or not (heartbeat is None or (isinstance(heartbeat, int | float) and heartbeat > 0)):
        raise ConfigurationError(f"heartbeat must be a number of seconds above 0, or None for no heartbeats, not {heartbeat!r}")
    if isinstance(events, AsyncIterable):
        return _encoded_async(events, encoder, heartbeat, details)
    if isinstance(events, Iterable) and not isinstance(events, str | bytes):
        return _encoded(events, encoder, details)
    raise ConfigurationError(f"an encoder takes what events() or aevents() returns, or a list of events, not {type(events).__name__}")


def _checked(event: Any, encoder: Encoder) -> RunEvent:
    """Return an event as the encoder's readers may see it."""
    if not isinstance(event, RunEvent):
        kind = type(event).__name__
        raise ConfigurationError(f"an encoder takes events, not {kind}: give it events(model.stream(...)) or aevents(model.astream(...))")
    return public(event, artifacts=getattr(encoder, "artifacts", False))


def _encoded(events: Iterable[RunEvent], encoder: Encoder, details: bool) -> Generator[bytes, None, None]:
    try:
        for event in events:
            data = encoder.encode(_checked(event, encoder))
            if data:
                yield data
        data = encoder.end()
    except Exception as error:
        _log(error)
        data = encoder.fail(Failure.of(error, details))
    finally:
        getattr(events, "close", lambda: None)()
    if data:
        yield data


async def _encoded_async(
    events: AsyncIterable[RunEvent], encoder: Encoder, heartbeat: float | None, details: bool
) -> AsyncGenerator[bytes, None]:
    reader, now = _Reader(events), asyncio.get_running_loop().time
    due = None if heartbeat is None else now() + heartbeat
    try:
        while (event := await reader.next(due)) is not _END:
            data = b"" if event is _IDLE else encoder.encode(_checked(event, encoder))
            if not data and due is not None and now() >= due:  # events that are nothing in the protocol keep no connection open
                data = encoder.heartbeat
            if data:
                yield data
                due = None if heartbeat is None else now() + heartbeat
        data = encoder.end()
    except Exception as error:
        _log(error)
        data = encoder.fail(Failure.of(error, details))
    finally:
        await reader.close()
    if data:
        yield data


def _log(error: Exception) -> None:
    if isinstance(error, EventsInterruptedError):
        _logger.info("a stream that was being sent ends with its process: its client may read on elsewhere")
        return
    _logger.error("a stream that was being sent has failed: %s", type(error).__name__, exc_info=error)


class _Reader:
    """Reads events in a task of its own, some ahead of the consumer.

    Args:
        events: The events. They are read, and closed, in the task alone.
    """

    def __init__(self, events: AsyncIterable[RunEvent]) -> None:
        self._waiting: deque[RunEvent] = deque()
        self._changed, self._room = asyncio.Event(), asyncio.Event()
        self._task = asyncio.create_task(self._read(events))
        _tasks.add(self._task)
        self._task.add_done_callback(self._done)

    async def _read(self, events: AsyncIterable[RunEvent]) -> None:
        try:
            async for event in events:
                self._waiting.append(event)
                self._changed.set()
                if len(self._waiting) >= _AHEAD:
                    self._room.clear()
                    await self._room.wait()
        finally:
            if hasattr(events, "aclose"):
                await events.aclose()

    def _done(self, task: asyncio.Task[None]) -> None:
        _tasks.discard(task)
        self._changed.set()

    async def next(self, until: float | None) -> Any:
        """Return the next event; `_IDLE` if none came until that time of the loop, `_END` after the last. Raises errors of the events."""
        while not self._waiting:
            if self._task.done():
                self._task.result()
                return _END
            self._room.set()
            try:
                async with asyncio.timeout_at(until):
                    await self._changed.wait()
            except TimeoutError:
                return _IDLE
            self._changed.clear()
        return self._waiting.popleft()

    async def close(self) -> None:
        """Stop reading, and close the events."""
        if self._task.done():
            return
        self._task.cancel()
        await asyncio.wait([self._task], timeout=_GRACE_SECONDS)


# ------------------------------------------------------------------------------------------ messages held back until their turn is complete
#
# For protocols that cannot take back what was sent.


class WholeTurns:
    """A filter before another encoder that passes the fragments of a message only when the message is complete.

    Pieces are dropped where their message is discarded, and where their run ends without it: no history has them.

    Args:
        encoder: Writes the events.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.heartbeat, self.end, self.fail = encoder.heartbeat, encoder.end, encoder.fail
        self._encoder = encoder
        self._held: dict[str, list[RunEvent]] = {}  # by run: the pieces of the message that is being written

    def encode(self, event: RunEvent) -> bytes:
        """Return the bytes of an event, after those of the fragments that it completes."""
        return b"".join(map(self._encoder.encode, self._released(event)))

    def _released(self, event: RunEvent) -> list[RunEvent]:
        wire, held = event.wire, self._held.setdefault(event.run_id, [])
        if wire is not None and wire.ends_run:
            del self._held[event.run_id]
        elif release := _RELEASES.get(type(event)):
            return release(held, event)
        elif wire is not None and wire.is_piece:
            held.append(event)
            return []
        return [event]


def _release(held: list[RunEvent], event: RunEvent) -> list[RunEvent]:
    released = [*held, event]
    held.clear()
    return released


def _drop(held: list[RunEvent], _: kinds.MessageDiscarded) -> list[RunEvent]:
    held.clear()
    return []


def _hold_end(held: list[RunEvent], done: kinds.VendorCallDone) -> list[RunEvent]:
    """Hold the end of a vendor's call with its start; pass on the end of one that began in an earlier message."""
    if all(getattr(piece, "call_id", None) != done.call_id for piece in held):
        return [done]
    held.append(done)
    return []


def _discard_call(held: list[RunEvent], discarded: kinds.CallDiscarded) -> list[RunEvent]:
    """Drop the pieces of a call that is still held; pass the event on if none are."""
    kept = [piece for piece in held if getattr(piece, "call_id", None) != discarded.call_id]
    is_held = len(kept) < len(held)
    held[:] = kept
    return [] if is_held else [discarded]


_RELEASES: Final[Mapping[type[RunEvent], Callable[[list[RunEvent], Any], list[RunEvent]]]] = {
    kinds.VendorCallDone: _hold_end,
    kinds.CallReady: _release,
    kinds.CallDiscarded: _discard_call,
    kinds.MessageDone: lambda held, event: _release(held, event) if isinstance(event.message, AIMessage) else [event],
    kinds.MessageDiscarded: _drop,
}
"""What is passed on at events that are no pieces of a message, of those that are held and of themselves; all others are passed on."""
