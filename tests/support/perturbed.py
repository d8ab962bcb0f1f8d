"""Recorded replies with something in them that was not recorded: what means nothing, and what no vendor documents."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from tests.support.recorded import Recording

Change = Callable[[dict[str, Any], random.Random], dict[str, Any]]

_OF_THE_MODEL = frozenset({"args", "input", "arguments", "parameters", "partial_json", "text", "tools", "format"})
"""What the model or the client wrote: nothing of the vendor's."""
_STRANGE: list[Any] = [None, "", [], {}, 7, "strange", True, [7]]


def with_unknown_keys(record: Recording) -> bytes:
    """The reply of a vendor that has added keys to its objects."""
    return _changed(record, _add_key)


def with_strange_values(record: Recording) -> bytes:
    """The reply of a server that leaves keys out, or gives them values of another type."""
    return _changed(record, _make_strange)


def broken_off(record: Recording) -> bytes:
    """The reply up to one of its events."""
    parts = _parts(record.body)
    return b"".join(parts[: random.Random(record.id).randrange(1, len(parts) + 1)])


def _add_key(value: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    return {**value, "x_unknown": chance.choice([None, {"a": [1]}, [], "s", 3])} if chance.random() < 0.5 else value


def _make_strange(value: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    if not value or chance.random() > 0.08:
        return value
    key = chance.choice(list(value))
    if chance.random() < 0.5:
        return {name: kept for name, kept in value.items() if name != key}
    return {**value, key: chance.choice(_STRANGE)}


def _changed(record: Recording, change: Change) -> bytes:
    chance = random.Random(record.id)
    return b"".join(_changed_part(part, change, chance) for part in _parts(record.body))


def _parts(body: bytes) -> list[bytes]:
    """The lines, with their ends; a document that is spread over several lines is one part."""
    try:
        json.loads(body)
    except ValueError:
        return body.splitlines(keepends=True)
    return [body]


def _changed_part(part: bytes, change: Change, chance: random.Random) -> bytes:
    start = 5 if part.startswith(b"data:") else 0
    try:
        value = json.loads(part[start:])
    except ValueError:
        return part
    end = part[len(part.rstrip(b"\r\n")) :]
    return part[:start] + json.dumps(_walked(value, None, change, chance)).encode() + end


def _walked(value: Any, key: str | None, change: Change, chance: random.Random) -> Any:
    if key in _OF_THE_MODEL:
        return value
    if isinstance(value, dict):
        return change({name: _walked(inner, name, change, chance) for name, inner in value.items()}, chance)
    return [_walked(inner, key, change, chance) for inner in value] if isinstance(value, list) else value
