"""What a request says, whatever its wire: a flat sequence of roles with texts, media, reasoning, signatures, calls and results.

The readers of the wires (`read_*.py`) know nothing of this package's mappers: they are written from the vendors' documentation, so that
a request of ours and one of another client can be compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

Role = Literal["system", "user", "assistant", "tool"]
Kind = Literal["text", "media", "reasoning", "signature", "call", "result", "data", "item"]

WRAPPERS = ("result", "output", "return_value", "response")
"""Keys under which clients put a result that is no object, on the wire where results are objects."""
FAILURE = "error"
"""The key under which they put the words of a failure."""


@dataclass(frozen=True)
class Media:
    """An image, a document, a sound or a film: its data, its address, or the vendor's id of the file."""

    kind: str
    mime: str
    source: Literal["base64", "url", "id"]
    value: str


@dataclass(frozen=True)
class Call:
    """A tool call; `number` is its place among the calls of the request, `id` what the wire calls it (None where it has no ids)."""

    id: str | None
    name: str
    arguments: Any
    number: int = -1


@dataclass(frozen=True)
class Result:
    """A tool's result: its parts, and the call it answers."""

    id: str | None
    name: str | None
    parts: tuple[Any, ...]
    error: bool = False
    number: int = -1


@dataclass(frozen=True)
class Atom:
    """One thing that a role says. `message` numbers the messages of the wire, so that atoms of one message can be told."""

    role: Role
    kind: Kind
    value: Any
    message: int = 0


def plain(value: Any) -> Any:
    """A JSON value that can be compared and hashed: as text with sorted keys."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def parsed(text: str) -> Any:
    """What the text of a call's arguments says; no text and `null` are no arguments, and text that is no JSON stays as it is."""
    try:
        return (json.loads(text) or {}) if text else {}
    except ValueError:
        return text


def paired(atoms: Sequence[Atom]) -> list[Atom]:
    """The atoms with every call numbered and every result bearing the number of the call that it answers.

    A result belongs to the latest unanswered call of its id; on a wire without ids to the first unanswered call of its name, else to
    the first unanswered call.
    """
    found: list[Atom] = []
    open_calls: list[Call] = []
    numbers = 0
    for atom in atoms:
        if atom.kind == "call":
            call = replace(atom.value, number=numbers)
            numbers += 1
            open_calls.append(call)
            found.append(replace(atom, value=call))
        elif atom.kind == "result":
            answered = _answered(atom.value, open_calls)
            if answered is not None:
                open_calls.remove(answered)
            name = answered.name if answered is not None else atom.value.name
            number = -1 if answered is None else answered.number
            found.append(replace(atom, value=replace(atom.value, number=number, name=name)))
        else:
            found.append(atom)
    return found


def _answered(result: Result, calls: Sequence[Call]) -> Call | None:
    if result.id:
        return next((call for call in reversed(calls) if call.id == result.id), None)
    named = [call for call in calls if call.name == result.name]
    return next(iter(named or calls), None)


def in_messages(messages: Iterable[tuple[Role, Iterable[tuple[Kind, Any]]]]) -> list[Atom]:
    """Atoms of messages, each a role and what it says; empty texts say nothing."""
    return paired(
        [
            Atom(role, kind, value, number)
            for number, (role, parts) in enumerate(messages)
            for kind, value in parts
            if not (kind == "text" and value == "")
        ]
    )


def data_url(url: str, kind: str) -> Media:
    """Media by its address, which may hold the data itself."""
    if url.startswith("data:") and ";base64," in url:
        mime, _, data = url.removeprefix("data:").partition(";base64,")
        return Media(kind, mime, "base64", data)
    return Media(kind, "", "url", url)


def kind_of(mime: str) -> str:
    """What a MIME type is called as content."""
    family = mime.partition("/")[0]
    return family if family in ("image", "audio", "video") else "file"


def declared(tools: Iterable[Mapping[str, Any]]) -> list[str]:
    """The names of declared tools."""
    return [str(tool.get("name")) for tool in tools]
