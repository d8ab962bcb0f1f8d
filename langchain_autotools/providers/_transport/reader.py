"""Decoding of one streamed reply's bytes to raw chunks, without I/O, so that threads and event loops share it."""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from jiter import from_json
from langchain_core.messages import AIMessageChunk

from ...chunks import new_chunk
from ...deadline import Deadline, current_deadline, reply_begins
from ...errors import StreamError
from ...event_types import RunEvent
from ...messages.live import attach_cut_reply
from ...turn.partial_calls import with_events
from .decoders import Event, parse_json

_DONE = b"[DONE]"
_SHOWN = 200
_STREAM_TYPE = re.compile(r"event-stream|ndjson|jsonl", re.IGNORECASE)
_FIELDS = (b":", b"data:", b"event:", b"id:", b"retry:")

MISREAD = (TypeError, AttributeError, LookupError, ValueError, OverflowError)
"""Errors that a decoder raises for a field of an unexpected type."""


_KEPT_BACK = frozenset({"tool_calls", "function_call"})


class EndedEarly(StreamError):
    """Raised when a stream ends before its wire's end marker although it seems whole.

    Attributes:
        chunks: The chunks of the reply that have not been handed on, including its last one.
    """

    def __init__(self, chunks: list[AIMessageChunk]) -> None:
        super().__init__("the reply ended before the end that its protocol marks")
        self.chunks = chunks


def leaves_at_once(chunk: AIMessageChunk) -> bool:
    """Whether any part of a raw chunk reaches the caller before the turn ends: all but fragments of calls do. These too end a wait for the
    beginning of the reply."""
    if chunk.content or chunk.additional_kwargs.keys() - _KEPT_BACK or chunk.response_metadata:
        return True
    if (begins := reply_begins.get()) is not None and (chunk.tool_call_chunks or chunk.additional_kwargs):
        begins()
    return False


class EventDecoder(Protocol):
    """The interface of decoders from a stream's bytes to its events."""

    def feed(self, piece: bytes) -> list[Event]: ...
    def flush(self) -> list[Event]: ...


class ReplyDecoder(Protocol):
    """The interface of decoders of one reply: the events of a stream, or a whole body.

    Attributes:
        ended: Whether the wire's own end marker has come, where that is one of its events; that event brings no chunk, unless it is a
            whole body. Always false where the end is marked otherwise.
        complete: Whether anything has come by which the wire says that the reply is at its end.
        in_blocks: Whether the content of chunks is a list by now.
    """

    ended: bool

    @property
    def in_blocks(self) -> bool: ...

    @property
    def message_id(self) -> str | None:
        """The reply's id; None as long as it is not known."""

    @property
    def complete(self) -> bool: ...

    def feed(self, event: Any) -> AIMessageChunk | None:
        """Process one event, a JSON object, and return its chunk or None. Raise for an error in the stream."""
        ...

    def done(self) -> None:
        """Record that the wire's own end marker has arrived."""
        ...

    def finish(self) -> AIMessageChunk:
        """Return the last chunk, with the reply's metadata. A stream without its end has the `finish_reason` "incomplete"."""
        ...

    def decode_body(self, body: Any) -> AIMessageChunk:
        """Decode a reply that is not streamed.

        Raises:
            StreamError: The body is no whole reply of this wire.
            Exception: The body holds an error; it is raised as the vendor's own.
        """
        ...


class ReplyWatch(Protocol):
    """The interface of what reads a reply's events beside its decoder, for listeners.

    Attributes:
        marks: What the bytes of its events contain; may change from one event to the next.
    """

    @property
    def marks(self) -> re.Pattern[bytes]: ...

    def feed(self, event: Any) -> Sequence[RunEvent]:
        """Process an event of the wire, or a whole body, and return what listeners are told of it."""
        ...

    def finish(self) -> Sequence[RunEvent]:
        """Return what listeners are told at the end of the reply."""
        ...


@dataclass(eq=False)
class ReplyReader:
    """Reads one reply.

    Args:
        decoder: Reads the reply's events, in the vendor's terms.
        headers: The reply's headers.
        annotate: Adds to the last chunk what is known besides the events.
        events: Finds the events in the reply's bytes.
        idle_timeout: Seconds that may pass between two events, keep-alive comments apart; None for any time.
        watch: Reads the events for listeners; None where nobody listens.

    Attributes:
        done: Whether the wire's end marker has come; what follows it is not read.
    """

    decoder: ReplyDecoder
    headers: Mapping[str, str]
    events: EventDecoder
    annotate: Callable[[AIMessageChunk], None]
    idle_timeout: float | None = None
    watch: ReplyWatch | None = None
    done: bool = field(default=False, init=False)
    _head: bytes = field(default=b"", init=False)
    _now: bytes = field(default=b"", init=False)
    _begun: bool = field(default=False, init=False)
    _end: Deadline | None = field(default=None, init=False)
    _last_event: float = field(default_factory=time.monotonic, init=False)

    def __enter__(self) -> Self:
        if (end := current_deadline()) is not None:
            self._end = end
            end.reads(self.decoder.finish)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Attach to an error that cuts the reply off what its stream had brought of usage and metadata. A deadline keeps it."""
        if self._end is not None and self._end.passed() is None:
            self._end.reads(None)
        if isinstance(error, Exception) and not isinstance(error, EndedEarly) and self._begun:
            with suppress(Exception):  # what the end would raise is no news: the error that cut the reply off is on its way
                attach_cut_reply(error, self.decoder.finish())

    def feed(self, piece: bytes) -> Iterator[AIMessageChunk]:
        """Yield the chunks that `piece` completes, each created on demand, so that one leaves before the next is read.

        Raises:
            StreamError: An event is no JSON object.
            TimeoutError: The server sends nothing but comments for longer than allowed.
            Exception: The reply holds an error; it is the vendor's own.
        """
        events = self.events.feed(piece)
        if events:
            self._begun = self._begun or _begins(events)
            if self.idle_timeout is not None:
                self._last_event = time.monotonic()
            return self._chunks(events)
        if not self._begun and len(self._head) < _SHOWN:
            self._head += piece[:_SHOWN]
        if self.idle_timeout is not None and time.monotonic() - self._last_event > self.idle_timeout:
            raise TimeoutError(f"the server kept the connection alive but sent no event for {self.idle_timeout:g} s")
        return iter(())

    def finish(self) -> Iterator[AIMessageChunk]:
        """Yield the chunks that only the end of the reply completes; there is always a last one.

        Raises:
            StreamError: The reply is no stream.
            EndedEarly: Nothing has come by which the wire says that the reply is at its end, or nothing at all has come.
        """
        if not self.done:
            rest = self.events.flush()
            self._begun = self._begun or _begins(rest)
            yield from self._chunks(rest)
        if not self._begun:
            raise self._nothing()
        try:
            last = self.decoder.finish()
        except MISREAD as error:
            raise misshapen("the reply", b"", error) from error
        self.annotate(last)
        if self.watch is not None:
            last = with_events(last, self.watch.finish())
        if not self.decoder.complete:
            raise EndedEarly([last])
        yield last

    def _nothing(self) -> StreamError:
        """Return the error for a reply without an event: a stream that ended too early, or no stream."""
        head = self._head.lstrip()
        is_stream = head.startswith(_FIELDS) if head else _STREAM_TYPE.search(self.headers.get("content-type") or "")
        if not (self.done or is_stream):
            return StreamError(f"the reply is no stream of events: {_described(self._head, self.headers)}")
        last = AIMessageChunk(content="", response_metadata={"finish_reason": "incomplete"})
        self.annotate(last)
        return EndedEarly([last])

    def _chunks(self, events: list[Event]) -> Iterator[AIMessageChunk]:
        feed, watch = self.decoder.feed, self.watch
        try:
            for name, data in events:
                self._now = data
                try:
                    event = from_json(data)
                except ValueError:
                    event = self._unusual(data)
                if self.done:
                    return
                if event.__class__ is not dict:
                    yield from self._all_at_once(event, data)
                    continue
                if name == "error" and "error" not in event:
                    event = {"error": event}
                chunk = feed(event)
                if watch is not None and watch.marks.search(data):
                    chunk = self._watched(chunk, event)
                if chunk is not None:
                    yield chunk
                elif self.decoder.ended:  # the wire's end marker is one of its events
                    break
        except MISREAD as error:
            raise misshapen("an event of the reply", self._now, error) from error
        self.done = self.decoder.ended

    def _all_at_once(self, body: Any, data: bytes) -> Iterator[AIMessageChunk]:
        """Yield the chunks of a body that is a list of all events; raise for any other that is no object."""
        for event in body if isinstance(body, list) else [body]:
            chunk = self._watched(self.decoder.feed(_object(event, data)), event)
            if chunk is not None:
                yield chunk

    def _watched(self, chunk: AIMessageChunk | None, event: Any) -> AIMessageChunk | None:
        """Return the chunk of an event with what listeners are told of it; where there is none, one that brings nothing else."""
        if self.watch is None or not (found := self.watch.feed(event)):
            return chunk
        decoder = self.decoder
        return with_events(new_chunk([] if decoder.in_blocks else "", {}, decoder.message_id) if chunk is None else chunk, found)

    def _unusual(self, data: bytes) -> Any:
        """Return what data holds that the fast parser refuses, or record that it is the end marker."""
        if not data.startswith(_DONE):
            return parse_json(data)
        self.done = True
        self.decoder.done()
        return None


def _begins(events: list[Event]) -> bool:
    """Whether a stream that begins with these events has any content."""
    return bool(events) and not events[0][1].startswith(_DONE)


def _object(event: Any, data: bytes) -> dict[str, Any]:
    if not isinstance(event, dict):
        raise StreamError(f"an event of the reply is no JSON object: {data[:_SHOWN].decode('utf-8', 'replace')!r}")
    return event


def misshapen(what: str, data: bytes, error: Exception) -> StreamError:
    """Return the error for JSON with a field of another type than the vendor documents.

    Args:
        what: The unreadable data, for the error's text.
        data: Its bytes; what they begin with is shown.
        error: The decoder's error.
    """
    shown = f": {data[:_SHOWN].decode('utf-8', 'replace')!r}" if data else ""
    return StreamError(f"{what} is not of its vendor's form ({type(error).__name__}: {error}){shown}")


def read_body(body: bytes, headers: Mapping[str, str]) -> Any:
    """Return the JSON of a reply that is not streamed.

    Args:
        body: The reply's bytes.
        headers: The reply's headers.

    Raises:
        StreamError: It is no JSON; the text says what it is instead.
    """
    try:
        return parse_json(body)
    except StreamError as error:
        raise StreamError(f"the reply is no JSON: {_described(body, headers)}") from error


def _described(body: bytes, headers: Mapping[str, str]) -> str:
    """Describe a malformed reply for an error message."""
    kind = headers.get("content-type") or "no content type"
    start = body[:_SHOWN].decode("utf-8", "replace").strip()
    return f"{kind}, beginning {start!r}" if start else f"{kind}, empty"
