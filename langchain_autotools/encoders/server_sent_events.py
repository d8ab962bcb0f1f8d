"""Server-sent events: a named frame with one JSON object for each event of a run, as described in docs/web.md."""

from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from types import MappingProxyType
from typing import Any, Final, cast, overload

from langchain_core.messages import message_to_dict, messages_to_dict

from .. import event_types as kinds
from ..errors import ConfigurationError
from ..event_types import RunEvent
from .public import to_json
from .streaming import Failure, encoded

Data = dict[str, Any]
"""The data of one frame."""

SSE_HEADERS: Final[Mapping[str, str]] = MappingProxyType(
    {"content-type": "text/event-stream", "cache-control": "no-store", "x-accel-buffering": "no"}
)
"""The headers of a response with server-sent events: no cache stores it, and nginx does not buffer its frames."""

_LAST_ID: Final = 2**53 - 1  # of the numbers that JavaScript has


@overload
def sse(
    events: Iterable[RunEvent],
    *,
    heartbeat: float | None = 15.0,
    details: bool = False,
    nested: bool = True,
    artifacts: bool = False,
    first_id: int = 1,
    after: int | str | None = None,
) -> Generator[bytes, None, None]: ...


@overload
def sse(
    events: AsyncIterable[RunEvent],
    *,
    heartbeat: float | None = 15.0,
    details: bool = False,
    nested: bool = True,
    artifacts: bool = False,
    first_id: int = 1,
    after: int | str | None = None,
) -> AsyncGenerator[bytes, None]: ...


def sse(
    events: Iterable[RunEvent] | AsyncIterable[RunEvent],
    *,
    heartbeat: float | None = 15.0,
    details: bool = False,
    nested: bool = True,
    artifacts: bool = False,
    first_id: int = 1,
    after: int | str | None = None,
) -> Generator[bytes, None, None] | AsyncGenerator[bytes, None]:
    """Encode events as server-sent events, for a response with `SSE_HEADERS`.

    Each event is a frame with a name (`event:`), a number (`id:`) and one JSON object (`data:`). The last one is `done` or `error`. Events
    that have a `position` of their own bear it in place of the number: it is what a client that comes back says. The last frame is
    numbered where the events are. Where the reading process shuts down (`EventsInterruptedError`) there is no last frame.

    Args:
        events: What `events` or `aevents` returned, or a list of events that were kept.
        heartbeat: The seconds in which nothing is sent after which a comment is sent, so that nothing on the way closes the connection;
            None for none. Only asynchronous events have them.
        details: Whether the texts of exceptions are sent. They may hold what no reader should see.
        nested: Whether runs that tools make are told of.
        artifacts: Whether the artifacts of tools are sent; what is no plain JSON in them as text.
        first_id: The number of the first frame.
        after: Leave out the frames up to this number: what a client that comes back says in its header `Last-Event-ID`. The same events
            have the same numbers each time, so the server that keeps them can go on where the client stopped. None and "": all frames.

    Returns:
        A generator of bytes, asynchronous for asynchronous events. Closing it closes the events, and so ends the run.

    Raises:
        ConfigurationError: An argument cannot work.
    """
    encoder = FrameEncoder(details=details, nested=nested, artifacts=artifacts, first_id=_first(first_id), after=_after(after))
    return encoded(events, encoder, heartbeat=heartbeat, details=details)


def _first(number: Any) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= _LAST_ID:
        raise ConfigurationError(f"first_id must be a number from 0 on, not {number!r}")
    return number


def _after(number: Any) -> int:
    """Return the number after which frames are sent. Invalid numbers, which may come from anybody, are ignored."""
    if number is None or isinstance(number, str):
        text = (number or "").strip()
        return int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(_LAST_ID)) else -1
    if isinstance(number, bool) or not isinstance(number, int):
        raise ConfigurationError(f"after must be the number of a frame, as Last-Event-ID says it, not {number!r}")
    return number


class FrameEncoder:
    """Encodes events as frames.

    Attributes:
        details: Whether the texts of exceptions are sent.
        artifacts: Whether the artifacts of tools are sent.
    """

    heartbeat = b": heartbeat\n\n"

    def __init__(self, *, details: bool = False, nested: bool = True, artifacts: bool = False, first_id: int = 1, after: int = -1) -> None:
        self.details, self._nested, self.artifacts = details, nested, artifacts
        self._number, self._after = first_id, after
        self._runs: set[str] = set()
        self._placed = False  # whether the events have positions of their own
        self._numbered = False  # whether frames get numbers: once an event has come that has none
        self._last: RunEvent | None = None  # the end of the last run that no tool made

    def encode(self, event: RunEvent) -> bytes:
        """Return the frame of an event."""
        described = self.described(event)
        if described is None:
            return b""
        self._placed = self._placed or event.position is not None
        self._numbered = not self._placed
        return self._frame(*described, position=event.position)

    def described(self, event: RunEvent) -> tuple[str, Data] | None:
        """The name and the data of the frame of an event; None for no frame. Data of a run inside another has its `parent_run_id`."""
        self._runs.add(event.run_id)
        inside, wire = event.parent_run_id in self._runs, event.wire
        if wire is None or (inside and not self._nested):
            return None
        if wire.ends_run and not inside:
            self._last = event
        place = {"parent_run_id": event.parent_run_id, "parent_call_id": event.parent_call_id} if inside else {}
        return wire.name, {"run_id": event.run_id, **place, **_OTHERWISE.get(type(event), _data)(event, self)}

    def end(self) -> bytes:
        """Return the last frame after all events."""
        if self._last is None:
            return self._frame("done", _NO_RUN)
        error: BaseException | None = getattr(self._last, "error", None)
        if error is not None:  # of events that were kept: the exception is not raised again
            return self.fail(Failure.of(error, self.details))
        return self._frame("done", {**_NO_RUN, "run_id": self._last.run_id, **_data(self._last, self)})

    def fail(self, failure: Failure) -> bytes:
        """Return the last frame after a failure; empty if the client can reconnect and continue."""
        return b"" if failure.interrupted else self._frame("error", _failure(failure))

    def _frame(self, name: str, data: Mapping[str, Any], position: str | None = None) -> bytes:
        number, shown = self._number, position
        if self._numbered:
            self._number += 1
            if number <= self._after:
                return b""
            shown = str(number)
        line = "" if shown is None else f"id: {shown}\n"
        return f"event: {name}\n{line}data: {to_json(data)}\n\n".encode()


# ---------------------------------------------------------------------------------------------- what is in which frame


@cache
def _frame_fields(kind: Any) -> Sequence[tuple[str, str, bool]]:
    """Return of each field of a kind of event its name, its name on the wire, and whether it is left out where it is None or empty."""
    wire = kind.wire
    if wire is None:
        return ()
    own = {one.name for one in fields(kind)} - {one.name for one in fields(RunEvent)} - {*wire.absent}
    names = [*wire.also, *(one.name for one in fields(kind) if one.name in own)]
    return [(name, wire.renamed.get(name, name), name in wire.brief) for name in names]


def _data(event: RunEvent, encoder: FrameEncoder) -> Data:
    data, kind = Data(), cast("Any", type(event))
    for name, written, is_brief in _frame_fields(kind):
        value = getattr(event, name)
        if not is_brief or value not in (None, ""):
            data[written] = _WRITTEN[name](value) if name in _WRITTEN and value is not None else value
    return data


def _call(event: kinds.CallReady, _: FrameEncoder) -> Data:
    call = event.call
    invalid = {"arguments": call.arguments, "why": call.why} if call.args is None else {}
    return {"message_id": event.message_id, "call_id": call.id, "name": call.name, "index": event.index, "args": call.args, **invalid}


def _result(event: kinds.CallResult, _: FrameEncoder) -> Data:
    message, artifact = event.message, event.message.artifact
    call = {"call_id": event.call_id, "name": event.call.name, "index": event.index, "message_id": message.id}
    result = {"status": event.message.status, "content": message.content, "duration": event.duration, "executed": event.executed}
    edited = {} if event.edited_arguments is None else {"edited_arguments": event.edited_arguments}
    return {**call, **result, **edited, **({} if artifact is None else {"artifact": artifact})}


def _failure(failure: Failure) -> Data:
    described = {"error": failure.name, "message": failure.text, "retryable": failure.retryable}
    return described if failure.details is None else {**described, "details": failure.details}


_WRITTEN: Final[Mapping[str, Callable[[Any], Any]]] = {
    "message": message_to_dict,
    "messages": messages_to_dict,
    "calls": lambda calls: [call.to_dict() for call in calls],
    "error": lambda error: type(error).__name__,
}
"""How values of fields are written that are no plain data."""

_OTHERWISE: Final[Mapping[type[RunEvent], Callable[[Any, FrameEncoder], Data]]] = {
    kinds.CallReady: _call,
    kinds.CallResult: _result,
    kinds.FileMade: lambda event, encoder: _data(event.by_reference(), encoder),
    kinds.RunFailed: lambda event, encoder: _failure(Failure.of(event.error, encoder.details)),
}
"""The kinds whose frames are not simply their fields."""

_NO_RUN: Final[Data] = {"run_id": None, "max_turns_reached": False, "stop_reason": None, "turns": 0, "usage": None}
