"""Decoders of a reply's bytes to events: server-sent events and JSON lines, in pieces cut anywhere.

Both decoders have `feed(bytes) -> events` and `flush() -> events` and do no I/O. They are lenient where servers are known to
be careless (wire quirks E-11, E-12): `data:` without a space, JSON lines without a blank line between them, a last event without
one, any line end, a byte order mark, and a plain JSON body where a stream was asked for, which comes out as one event.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

from jiter import from_json

from ...errors import StreamError
from ...strict_json import mend_surrogates

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
        pass
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
