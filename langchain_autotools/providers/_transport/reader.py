"""Decoding of a reply's bytes to raw chunks, without I/O, so that threads share it with event loops.

`ReplyReader` reads one reply: a decoder of this module finds its events, one of the vendor's what they say. Both decoders of bytes have
`feed(bytes) -> events` and `flush() -> events`. They are lenient where servers are known to be careless (wire quirks E-11, E-12): `data:`
without a space, JSON lines without a blank line between them, a last event without one, any line end, a byte order mark. A plain JSON body
where a stream was asked for comes out as one event.
"""

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Protocol, Self

from jiter import from_json
from langchain_core.messages import AIMessageChunk

from ...chunks import merge_chunks, new_chunk
from ...deadline import Deadline, current_deadline
from ...errors import StreamError
from ...event_types import RunEvent
from ...messages.metadata import attach_cut_reply
from ...strict_json import mend_surrogates
from ...turn.accumulator import with_events

_BOM = b"\xef\xbb\xbf"
_SHOWN = 200
_RAW_KEYS = frozenset({"arguments", "partial_json", "args", "input"})


Event = tuple[str | None, bytes]
"""One event of a stream: the value of its `event:` line or None, and its data as UTF-8 bytes without line ends."""


_NAMED = re.compile(rb"^event: (.+)\ndata: (.+)\n\n", re.MULTILINE)
_UNNAMED = re.compile(rb"^data: (.+)\n\n", re.MULTILINE)


class _Lines:
    """Splits pieces of bytes into whole lines, in linear time however small the pieces are."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._started = False
        self._after_return = False

    def feed(self, piece: bytes) -> bytes:
        """Return the lines that `piece` completes, each ended by a line feed; empty if it completes none."""
        if not self._started:
            piece = self._begin(piece)
        if b"\r" in piece or self._after_return:
            piece = self._unified(piece)
        if b"\n" not in piece:
            if piece:
                self._pieces.append(piece)
            return b""
        if self._pieces:
            self._pieces.append(piece)
            piece = b"".join(self._pieces)
        end = piece.rfind(b"\n") + 1
        self._pieces = [piece[end:]] if end < len(piece) else []
        return piece[:end]

    def flush(self) -> list[bytes]:
        """Return the last line if it has no line end."""
        rest = b"".join(self._pieces)
        self._pieces, self._after_return = [], False
        return [rest] if rest else []

    def _begin(self, piece: bytes) -> bytes:
        """Return the first bytes without a byte order mark; empty while they may still be part of one."""
        piece = b"".join([*self._pieces, piece])
        self._pieces = []
        if len(piece) < len(_BOM) and _BOM.startswith(piece):
            self._pieces = [piece] if piece else []
            return b""
        self._started = True
        return piece.removeprefix(_BOM)

    def _unified(self, piece: bytes) -> bytes:
        """Return the piece with every line end as a line feed. A CR ends its line at once; an LF after it belongs to it."""
        if not piece:
            return piece
        if self._after_return and piece.startswith(b"\n"):
            piece = piece[1:]
            if not piece:
                self._after_return = False
                return piece
        self._after_return = piece.endswith(b"\r")
        return piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


class SSEDecoder:
    """Decodes server-sent events from bytes (https://html.spec.whatwg.org/multipage/server-sent-events.html)."""

    def __init__(self) -> None:
        self._lines = _Lines()
        self._event: str | None = None
        self._data: list[bytes] = []
        self._body: list[bytes] | None = None
        self._blank = True
        self._names: dict[bytes, str] = {}

    def feed(self, piece: bytes) -> list[Event]:
        """Return the events that `piece` completes, in order."""
        lines = self._lines.feed(piece)
        if not lines:
            return []
        start, end = self._event_start(lines), lines.rfind(b"\n\n")
        end = 0 if end < 0 else end + 2
        events = self._plain(lines[start:end]) if start < end else None
        if events is None:
            return self._decode(lines.split(b"\n")[:-1])
        before = self._decode(lines[:start].split(b"\n")[:-1]) if start else []
        return before + events + (self._decode(lines[end:].split(b"\n")[:-1]) if end < len(lines) else [])

    def _event_start(self, lines: bytes) -> int:
        """Return the position of the first event that begins within these lines; their end if there is none."""
        if self._body is not None or self._blank:
            return len(lines)
        if not self._data and self._event is None:
            return 0
        if lines.startswith(b"\n"):
            return 1
        end = lines.find(b"\n\n")
        return len(lines) if end < 0 else end + 2

    def _plain(self, lines: bytes) -> list[Event] | None:
        """Return the events of lines in the usual, uniform layout; None for any other layout."""
        if lines.startswith(b"event: "):
            found = _NAMED.findall(lines)
            if lines.count(b"\n") != 3 * len(found):
                return None
            names = self._names
            names.update({name: name.decode("utf-8", "replace") for name, _ in found if name not in names})
            return [(names[name], data) for name, data in found]
        found = _UNNAMED.findall(lines)
        return [(None, data) for data in found] if lines.count(b"\n") == 2 * len(found) else None

    def flush(self) -> list[Event]:
        """Return the rest at the end of the stream: an event without its blank line, or a body that was not a stream."""
        events = self._decode(self._lines.flush())
        if self._body is not None:
            body, self._body = self._body, None
            return events + _body_events(body)
        if self._data:
            events.append(self._dispatch())
        return events

    def _decode(self, lines: list[bytes]) -> list[Event]:
        if self._blank:
            lines = self._begin(lines)
        if self._body is not None:
            self._body += lines
            return []
        events: list[Event] = []
        data = self._data
        for line in lines:
            if line.startswith(b"data: ") and not data and len(line) > 6:
                data.append(line[6:])
            elif line.startswith(b"event: "):
                self._event = line[7:].decode("utf-8", "replace")
            elif line:
                self._field(line, events)
            elif data:
                events.append((self._event, data[0] if len(data) == 1 else b"\n".join(data)))
                data.clear()
                self._event = None
            else:
                self._event = None
        return events

    def _begin(self, lines: list[bytes]) -> list[bytes]:
        """Inspect the first line that is not blank: a bracket marks a plain JSON body, since no field starts with one."""
        for number, line in enumerate(lines):
            if line.strip():
                self._blank = False
                if line.lstrip()[:1] in (b"{", b"["):
                    self._body = []
                return lines[number:]
        return []

    def _field(self, line: bytes, events: list[Event]) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            if len(self._data) == 1 and _is_document(self._data[0]) and _is_document(value):
                events.append(self._dispatch())  # no blank line between two documents
            if value or self._data:
                self._data.append(value)
        elif name == b"event":
            self._event = value.decode("utf-8", "replace")

    def _dispatch(self) -> Event:
        event = (self._event, b"\n".join(self._data))
        self._data.clear()
        self._event = None
        return event


def _body_events(lines: list[bytes]) -> list[Event]:
    """Return a body that is not an event stream as events: one document, or one per line."""
    body = b"\n".join(lines).strip()
    written = [line for line in lines if line.strip()]
    if not _is_json(body) and all(map(_is_json, written)):
        return [(None, line.strip()) for line in written]
    return [(None, body)]


def _is_document(data: bytes) -> bool:
    """Whether a data line is a JSON document by itself."""
    return data == b"[DONE]" or (data.startswith(b"{") and data.rstrip().endswith(b"}") and _is_json(data))


def _is_json(data: bytes) -> bool:
    try:
        parse_json(data)
    except StreamError:
        return False
    return True


class NDJSONDecoder:
    """Decodes JSON lines from bytes; a document over several lines is returned whole at the end."""

    def __init__(self) -> None:
        self._lines = _Lines()
        self._body: list[bytes] = []

    def feed(self, piece: bytes) -> list[Event]:
        """Return the documents that `piece` completes, in order; `event` is always None."""
        lines = self._lines.feed(piece)
        return self._decode(lines.split(b"\n")) if lines else []

    def flush(self) -> list[Event]:
        """Return the rest at the end of the stream."""
        events = self._decode(self._lines.flush())
        if self._body:
            events.append((None, b"\n".join(self._body)))
            self._body = []
        return events

    def _decode(self, lines: Iterable[bytes]) -> list[Event]:
        events: list[Event] = []
        for line in lines:
            if line.startswith(b"{") and line.endswith(b"}") and not self._body:
                events.append((None, line))
                continue
            document = line.strip()
            if not document or (document.startswith(b":") and not self._body):  # a proxy's comment, which keeps the connection open
                continue
            if self._body or (document[:1] in (b"{", b"[") and document[-1:] not in (b"}", b"]")):
                self._body.append(document)
            else:
                events.append((None, document))
        return events


def parse_json(data: bytes | str) -> Any:
    """Parse one JSON document of a reply.

    Half a surrogate pair, which no Python text may hold, becomes U+FFFD; in the argument text of a tool call it is kept,
    because the other half may come with the next fragment.

    Raises:
        StreamError: It is no JSON; the text says where it breaks and how it begins.
    """
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogatepass")
    try:
        return from_json(data)
    except ValueError:
        if data.startswith(_BOM):
            return parse_json(data.removeprefix(_BOM))
    # jiter refuses what json takes: raw control characters in strings, halves of surrogate pairs, bytes that are no UTF-8
    try:
        return _mended(json.loads(data.decode("utf-8", "replace"), strict=False), None)
    except (ValueError, RecursionError) as error:
        shown = data[:_SHOWN].decode("utf-8", "replace")
        raise StreamError(f"the reply holds something that is not JSON ({error}): {shown!r}") from error


def _mended(value: Any, key: str | None) -> Any:
    if isinstance(value, str):
        return value if key in _RAW_KEYS else mend_surrogates(value)
    if isinstance(value, dict):
        return {mend_surrogates(name): _mended(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_mended(item, key) for item in value]
    return value


# ---------------------------------------------------------------------------------------------- reader
# Decoding of one streamed reply's bytes to raw chunks, without I/O, so that threads and event loops share it.


_DONE = b"[DONE]"
_STREAM_TYPE = re.compile(r"event-stream|ndjson|jsonl", re.IGNORECASE)
_FIELDS = (b":", b"data:", b"event:", b"id:", b"retry:")

MISREAD = (TypeError, AttributeError, LookupError, ValueError, OverflowError)
"""Errors that a decoder raises for a field of an unexpected type."""


class EndedEarly(StreamError):
    """Raised when a stream ends before its wire's end marker although what came seems whole, or is nothing.

    Attributes:
        chunks: The chunks of the reply that have not been handed on, including its last one.
    """

    def __init__(self, chunks: list[AIMessageChunk]) -> None:
        super().__init__("the reply ended before the end that its protocol marks")
        self.chunks = chunks


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
        events: Finds the events in the reply's bytes.
        annotate: Adds to the last chunk what is known besides the events.
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
            self._begun = self._begun or not events[0][1].startswith(_DONE)
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
            self._begun = self._begun or (bool(rest) and not rest[0][1].startswith(_DONE))
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
        feed, watch, data = self.decoder.feed, self.watch, b""
        try:
            for name, data in events:
                try:
                    event = from_json(data)
                except ValueError:
                    event = self._unusual(data)
                if self.done:
                    return
                if event.__class__ is not dict:
                    yield from self._all_at_once(event, data)
                    continue
                if name == "error" and not event.get("error"):
                    event = {"error": event or {"message": "the server sent an error without a word"}}
                chunk = feed(event)
                if watch is not None and watch.marks.search(data):
                    chunk = self._watched(chunk, event)
                if chunk is not None:
                    yield chunk
                elif self.decoder.ended:  # the wire's end marker is one of its events
                    break
        except MISREAD as error:
            raise misshapen("an event of the reply", data, error) from error
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


def is_unasked_stream(body: bytes, headers: Mapping[str, str]) -> bool:
    """Whether a reply is a stream of events although a whole one was asked for.

    Args:
        body: The reply's bytes.
        headers: The reply's headers.
    """
    return body.lstrip(b"\xef\xbb\xbf \t\r\n")[:6].startswith(_FIELDS) or "ndjson" in (headers.get("content-type") or "")


def read_stream(reader: ReplyReader, body: bytes) -> AIMessageChunk:
    """Return a stream that has come whole as one chunk.

    Args:
        reader: Reads the reply.
        body: The reply's bytes.

    Raises:
        EndedEarly: It breaks off before its end.
        Exception: What reading it raises.
    """
    chunks: list[AIMessageChunk] = []
    with reader:
        try:
            for chunk in chain(reader.feed(body), reader.finish()):
                chunks.append(chunk)
        except EndedEarly as early:
            early.chunks[:0] = chunks
            raise
    return merge_chunks(chunks)


def _described(body: bytes, headers: Mapping[str, str]) -> str:
    """Describe a malformed reply for an error message."""
    kind = headers.get("content-type") or "no content type"
    start = body[:_SHOWN].decode("utf-8", "replace").strip()
    return f"{kind}, beginning {start!r}" if start else f"{kind}, empty"
