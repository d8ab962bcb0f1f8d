"""Random changes of replies and of plain data: other types, missing and foreign keys, lost, doubled and swapped events, garbage."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

from tests.faults.kinds import events_of
from tests.faults.proxy import Whole
from tests.support.http_server import HttpReply

_DEEP = 5000

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 1.5, 10**30, 2**63, 1e308, float("inf"), float("nan")),
    *("", " ", "text", "null", "{}", "[]", "\0", "\ud83d", "é" * 50, "[DONE]", "2026-11-26", "https://example.org/a b"),
    *([], [None], ["x"], [[]], [{}], {}, {"x": 1}, {"type": "text"}, {"text": None}, {"error": None}),
)
"""Values in the place of others."""


def changed(chance: random.Random, value: Any) -> Any:
    """The same plain data with one change, somewhere in it."""
    if isinstance(value, dict) and value and chance.random() < 0.85:
        key = chance.choice(sorted(value, key=str))
        how = chance.random()
        if how < 0.1:
            return {name: item for name, item in value.items() if name != key}
        if how < 0.15:
            return {**value, chance.choice(["type", "id", "index", "error", "x", ""]): chance.choice(VALUES)}
        if how < 0.2:
            other = chance.choice(sorted(value, key=str))
            return {**value, key: value[other], other: value[key]}
        return {**value, key: changed(chance, value[key])}
    if isinstance(value, list) and value and chance.random() < 0.85:
        place = chance.randrange(len(value))
        if chance.random() < 0.15:
            return [*value[:place], *chance.choice([[], [value[place]] * 2, [chance.choice(VALUES)]]), *value[place + 1 :]]
        return [*value[:place], changed(chance, value[place]), *value[place + 1 :]]
    return chance.choice(VALUES)


# ---------------------------------------------------------------------------------------------- replies

Events = list[bytes]


def _data(event: bytes) -> tuple[bytes, bytes, bytes]:
    """What comes before the data of an event, the data, and what comes behind."""
    before, mark, data = event.rpartition(b"data: ")
    end = event[len(event.rstrip(b"\n")) :]
    return before + mark, data.rstrip(b"\n"), end


def _other_value(chance: random.Random, events: Events) -> Events:
    place = chance.randrange(len(events))
    before, data, end = _data(events[place])
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):  # it is nested too deeply already
        return events
    for _ in range(chance.choice([1, 1, 2, 5])):
        value = changed(chance, value)
    written = json.dumps(value, ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")
    return [*events[:place], before + written + end, *events[place + 1 :]]


def _lost(chance: random.Random, events: Events) -> Events:
    place = chance.randrange(len(events))
    return [*events[:place], *events[place + 1 :]] if len(events) > 1 else events


def _again(chance: random.Random, events: Events) -> Events:
    event, place = chance.choice(events), chance.randrange(len(events) + 1)
    return [*events[:place], event, *events[place:]]


def _swapped(chance: random.Random, events: Events) -> Events:
    one, other = chance.randrange(len(events)), chance.randrange(len(events))
    mixed = [*events]
    mixed[one], mixed[other] = events[other], events[one]
    return mixed


def _foreign(chance: random.Random, events: Events) -> Events:
    """An event that is no event of this wire."""
    place = chance.randrange(len(events) + 1)
    before, _, end = _data(events[min(place, len(events) - 1)])
    deep = "[" * _DEEP + "]" * _DEEP
    texts = ["", "x", "{", "null", "[]", "{}", '"text"', deep, '{"a":' * 50 + "1" + "}" * 50, '{"a":1}{"b":2}', '{"content":"\\ud800"}']
    data = chance.choice([*(text.encode() for text in texts), b"\xff\xfe", json.dumps(chance.choice(VALUES)).encode()])
    return [*events[:place], before + data + end, *events[place:]]


def _torn(chance: random.Random, events: Events) -> Events:
    place = chance.randrange(len(events))
    event = events[place]
    return [*events[:place], event[: chance.randrange(len(event) + 1)], *events[place + 1 :]]


def _noise(chance: random.Random, events: Events) -> Events:
    place = chance.randrange(len(events))
    noisy = bytearray(events[place])
    for _ in range(chance.choice([1, 3, 20])):
        noisy[chance.randrange(len(noisy))] = chance.randrange(256)
    return [*events[:place], bytes(noisy), *events[place + 1 :]]


_CHANGES: Sequence[Callable[[random.Random, Events], Events]] = (
    *[_other_value] * 6,
    _lost,
    _again,
    _swapped,
    _foreign,
    _torn,
    _noise,
)


def spoilt(chance: random.Random, whole: Whole) -> HttpReply:
    """A reply of 200 with a few changes, in pieces that are cut anywhere."""
    events = list(events_of(whole))
    for _ in range(chance.choice([1, 1, 1, 2, 3, 6])):
        events = [event for event in chance.choice(_CHANGES)(chance, events) if event] or [b"\n"]
    body = b"".join(events)
    cuts = sorted(chance.randrange(len(body)) for _ in range(chance.choice([0, 2, 9])))
    pieces = [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    return HttpReply([piece for piece in pieces if piece], whole.status, whole.headers)
