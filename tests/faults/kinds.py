"""The faults by name: what a proxy makes of a reply."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from tests.faults.proxy import Spoil, Whole
from tests.support.http_server import Drop, Dropped, HttpReply, Part, Pause

LONG = 50_000_000
_FOREVER = Pause(3600)


@dataclass(frozen=True)
class Fault:
    """A fault.

    Attributes:
        spoil: Makes the spoilt reply of a whole one; the wire's name says how it writes an error.
        harmless: Whether a client must not mind it.
        hangs: Whether nothing ends it but a limit in time.
        seconds: Whether it costs much time or memory.
        refuses: Whether nobody listens any more: then it lasts, and spoils no reply.
        rare: Whether it is so much like another one that the sample leaves it out.
    """

    spoil: Callable[[str, Whole], HttpReply]
    harmless: bool = False
    hangs: bool = False
    seconds: bool = False
    refuses: bool = False
    rare: bool = False

    def of(self, wire: str) -> Spoil:
        """What spoils the replies of a wire."""
        return partial(self.spoil, wire)


def _reply(whole: Whole, *parts: Part, **headers: str) -> HttpReply:
    return HttpReply(list(parts), whole.status, {**whole.headers, **headers})


# ---------------------------------------------------------------------------------------------- connections


def _cut(share: float, last: Part | None, _: str, whole: Whole) -> HttpReply:
    """The body up to a share of it, and then something else."""
    return _reply(whole, whole.body[: int(len(whole.body) * share)], *([] if last is None else [last]))


def _no_head(_: str, whole: Whole) -> HttpReply:
    raise ConnectionResetError  # on the server's side: it closes without an answer


def _reset(_: str, whole: Whole) -> HttpReply:
    raise Dropped


def _mid_chunk(_: str, whole: Whole) -> HttpReply:
    """A chunk of HTTP that ends before its length is reached."""
    half = whole.body[: len(whole.body) // 2]
    head = b"%x\r\n" % (len(half) + 100)
    return HttpReply([head + half, Drop()], whole.status, {**whole.headers, "transfer-encoding": "chunked"}, "close")


def _mid_character(_: str, whole: Whole) -> HttpReply:
    """A body that breaks off inside a character; where all are of one byte, inside an escape of JSON."""
    body = whole.body
    inside = next((place for place, byte in enumerate(body) if byte & 0xC0 == 0x80), body.find(b"\\u") + 2)
    return _reply(whole, body[: inside if inside > 1 else len(body) // 2], Drop())


def _drip(_: str, whole: Whole) -> HttpReply:
    return _reply(whole, *(bytes([byte]) for byte in whole.body))


# ---------------------------------------------------------------------------------------------- statuses


def _refusal(status: int, headers: Mapping[str, str], wire: str, whole: Whole) -> HttpReply:
    return HttpReply([json.dumps(_error(wire, status)).encode()], status, {"content-type": "application/json", **headers}, "length")


def _error(wire: str, status: int = 503) -> Mapping[str, Any]:
    """An error in the words of a wire."""
    if wire == "ollama":
        return {"error": "the model runner has stopped"}
    if wire == "anthropic":
        return {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    if wire == "google":
        return {"error": {"code": status, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}
    return {"error": {"message": "The server had an error.", "type": "server_error", "param": None, "code": None}}


RETRY_AFTER = {
    "none": {},
    "zero": {"retry-after": "0"},
    "decimal": {"retry-after": "0.001"},
    "negative": {"retry-after": "-1"},
    "words": {"retry-after": "soon"},
    "empty": {"retry-after": ""},
    "past": {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"},
    "no-date": {"retry-after": "Wed, 99 Oct 2015 07:28:00 GMT"},
    "nan": {"retry-after": "nan"},
    "endless": {"retry-after": "inf"},
    "huge": {"retry-after": "9" * 400},
    "digits": {"retry-after": "²"},
    "hour": {"retry-after": "3600"},
    "far": {"retry-after": "Tue, 31 Dec 2199 23:59:59 GMT"},
    "milliseconds": {"retry-after-ms": "1"},
    "bad-milliseconds": {"retry-after-ms": "x", "retry-after": "0"},
    "should-not": {"x-should-retry": "false"},
}
_BUSY = (503, 429, 408, 409, 425)
_STATUSES = (401, 403, 404, 408, 409, 425, 429, 500, 502, 503, 504, 520, 529)

# ---------------------------------------------------------------------------------------------- bodies


def _page(status: int, _: str, whole: Whole) -> HttpReply:
    return HttpReply([b"<!doctype html><html><body>Bad gateway</body></html>"], status, {"content-type": "text/html"}, "length")


def _empty(_: str, whole: Whole) -> HttpReply:
    return _reply(whole)


def _bad_gzip(_: str, whole: Whole) -> HttpReply:
    return _reply(whole, b"\x1f\x8b\x08\x00" + whole.body, **{"content-encoding": "gzip"})


def _half_gzip(_: str, whole: Whole) -> HttpReply:
    import gzip

    packed = gzip.compress(whole.body)
    return _reply(whole, packed[: len(packed) // 2], **{"content-encoding": "gzip"})


def _error_inside(wire: str, whole: Whole) -> HttpReply:
    return _reply(whole, _written(wire, _error(wire), whole))


def _error_after(share: float, wire: str, whole: Whole) -> HttpReply:
    events = list(events_of(whole))
    if not whole.is_stream:
        return _error_inside(wire, whole)
    return _reply(whole, *events[: int(len(events) * share)], _written(wire, _error(wire), whole))


def _written(wire: str, said: Any, whole: Whole) -> bytes:
    data = json.dumps(said).encode()
    if not whole.is_stream:
        return data
    if wire == "ollama":
        return data + b"\n"
    name = b"event: error\n" if wire in ("anthropic", "responses") else b""
    return name + b"data: " + data + b"\n\n"


def events_of(whole: Whole) -> Iterator[bytes]:
    """The events of a stream, each with its end; a body that is none is one."""
    if not whole.is_stream:
        yield whole.body
        return
    end = b"\n" if "ndjson" in whole.headers["content-type"] else b"\n\n"
    yield from (event + end for event in whole.body.split(end) if event)


def _end_again(_: str, whole: Whole) -> HttpReply:
    events = list(events_of(whole))
    return _reply(whole, *events, *(events[-1:] if whole.is_stream else []))


def _data_after_the_end(_: str, whole: Whole) -> HttpReply:
    return _reply(whole, whole.body, whole.body if whole.is_stream else b"\n\n")


def _never_ends(_: str, whole: Whole) -> HttpReply:
    return _reply(whole, *list(events_of(whole))[:-2], _FOREVER)


def _only_comments(_: str, whole: Whole) -> HttpReply:
    if not whole.is_stream:
        return _never_ends(_, whole)
    beat = b"\n" if "ndjson" in whole.headers["content-type"] else b": still here\n\n"
    return HttpReply((part for _ in range(10_000) for part in (beat, Pause(0.02))), whole.status, whole.headers)


def _long_line(_: str, whole: Whole) -> HttpReply:
    return _reply(whole, b"data: " if whole.is_stream else b"", b"x" * LONG, b"\n\n", whole.body)


def _long_text(_: str, whole: Whole) -> HttpReply:
    """A text of 50 MB in one event, of the right form."""
    return _reply(whole, whole.body.replace(b"Let me", b"Let me" + b"e" * LONG, 1))


def _wrong_type(seed: int, _: str, whole: Whole) -> HttpReply:
    """One value of one event has another type."""
    chance = random.Random(seed)
    events = list(events_of(whole))
    number = chance.randrange(len(events))
    before, mark, data = events[number].rpartition(b"data: ")
    try:
        value = json.loads(data)
    except ValueError:
        return _reply(whole, *events)
    spoilt = _other_types(value, chance)
    events[number] = before + mark + json.dumps(spoilt).encode() + (b"\n\n" if mark else b"\n")
    return _reply(whole, *events)


_OTHERS: tuple[Any, ...] = (None, True, 0, -1, 1.5, 10**30, "", "text", [], [None], ["x"], {}, {"x": 1})


def _other_types(value: Any, chance: random.Random) -> Any:
    """The same data, in which one value, chosen by chance, has another type."""
    if isinstance(value, dict) and value and chance.random() < 0.85:
        key = chance.choice(sorted(value))
        return {**value, key: _other_types(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.85:
        place = chance.randrange(len(value))
        return [*value[:place], _other_types(value[place], chance), *value[place + 1 :]]
    return chance.choice(_OTHERS)


FAULTS: Mapping[str, Fault] = {
    "none": Fault(lambda _, whole: _reply(whole, whole.body), harmless=True),
    "refused": Fault(lambda _, whole: _reply(whole, whole.body), refuses=True),
    "closed without an answer": Fault(_no_head),
    "reset before the head": Fault(_reset),
    "reset after the head": Fault(partial(_cut, 0.0, Drop())),
    **{f"reset at {share:.0%}": Fault(partial(_cut, share, Drop())) for share in (0.2, 0.5, 0.8, 0.97)},
    **{f"ends at {share:.0%}": Fault(partial(_cut, share, None)) for share in (0.2, 0.5, 0.8, 0.97)},
    "reset in a chunk": Fault(_mid_chunk),
    "reset in a character": Fault(_mid_character),
    "drip": Fault(_drip, harmless=True),
    "stalls after the head": Fault(partial(_cut, 0.0, _FOREVER), hangs=True),
    "stalls at 50%": Fault(partial(_cut, 0.5, _FOREVER), hangs=True),
    "never ends": Fault(_never_ends, hangs=True),
    "only comments": Fault(_only_comments, hangs=True),
    **{f"status {status}": Fault(partial(_refusal, status, {})) for status in _STATUSES},
    **{
        f"retry-after {name}": Fault(partial(_refusal, _BUSY[place % 5], headers))
        for place, (name, headers) in enumerate(RETRY_AFTER.items())
    },
    **{
        f"status {status}, retry-after {name}": Fault(partial(_refusal, status, headers), rare=True)
        for status in _BUSY
        for name, headers in RETRY_AFTER.items()
    },
    "a page": Fault(partial(_page, 200)),
    "a page, 502": Fault(partial(_page, 502)),
    "an empty body": Fault(_empty),
    "no gzip": Fault(_bad_gzip),
    "half a gzip": Fault(_half_gzip),
    "an error inside": Fault(_error_inside),
    "an error at 30%": Fault(partial(_error_after, 0.3)),
    "an error at 80%": Fault(partial(_error_after, 0.8)),
    "its end twice": Fault(_end_again, harmless=True),
    "data after the end": Fault(_data_after_the_end, harmless=True),
    **{f"another type {seed}": Fault(partial(_wrong_type, seed)) for seed in range(12)},
    "a line of 50 MB": Fault(_long_line, seconds=True),
    "a text of 50 MB": Fault(_long_text, seconds=True),
}
