"""Parsing of a call's complete arguments, by a closed list of accepted forms.

A call may run only if its text reduces, by one of these ways, to exactly one complete JSON object. Nothing is completed, nothing
is guessed: whatever is not on the list is refused, with a reason that the model can act on.

1. nothing, or `null`: no arguments, `{}`;
2. one JSON object; or a string that holds one, at most twice wrapped;
3. cumulative text: every piece begins with the one before it, and the last piece is one object;
4. several objects one after another, of which all but one are placeholders (`{}` in front, sent as a piece of its own) or copies
   (also as a string);
5. an object, then what a careless chat template leaves behind it (`]`, `</function>`, code fences);
6. several different objects inside one piece of text: several calls.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any, Final

from ..strict_json import canonical, decoder, read_json, same
from .json_text import is_prefix, mend_json

_SPACE = re.compile(r"[ \t\n\r]*")
_LEFT_BEHIND = re.compile(r"(?:\s|\]|```|</function>|</tool_call>)*")
_WRAPPED: Final = 2


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of one call.

    Attributes:
        raw: Their JSON text as the model wrote it; where `value` is not None it is exactly one JSON object.
        value: The object, or None if the call must not run.
        why: Why `value` is None, in words for the model.
        cumulative: Whether the text can only be cumulative (way 3).
        otherwise: The value of a rejected text if the server is known to send cumulative text.
    """

    raw: str
    value: dict[str, Any] | None = None
    why: str | None = None
    cumulative: bool = False
    otherwise: "Arguments | None" = None


def read_arguments(pieces: Sequence[str]) -> list[Arguments]:
    """Parse the pieces of one call's argument text. Returns one entry, or several by form 6.

    Args:
        pieces: The fragments as they came, empty ones left out; an object on the wire as its JSON text.
    """
    text = mend_json("".join(pieces))
    bare = text.strip()
    if bare in ("", "null"):
        return [Arguments("{}", {})]
    try:
        value = read_json(bare)
    except ValueError as error:
        return _broken(pieces, text, error)
    found = _unwrapped(text, value)
    return [found or _refused(text, "they are not a JSON object")]


def _unwrapped(text: str, value: object) -> Arguments | None:
    """Return the object that `value` is, or that it contains as a string."""
    for _ in range(_WRAPPED + 1):
        if isinstance(value, dict):
            return Arguments(text, value)
        if not isinstance(value, str):
            return None
        text = mend_json(value)
        try:
            value = read_json(text.strip())
        except ValueError:
            return None
    return None


def _refused(text: str, reason: str) -> Arguments:
    return Arguments(text, None, f"the arguments cannot be used: {reason}")


def _broken(pieces: Sequence[str], text: str, error: ValueError) -> list[Arguments]:
    """Parse pieces that do not form one JSON value together."""
    if len(pieces) > 1 and pieces[0].strip() == "{}":
        return read_arguments(pieces[1:])
    unfinished = is_prefix(text.strip(), error)
    snapshot = _last_snapshot(pieces)
    if snapshot is not None:
        # '{"a":' then '{"a":1}' is cumulative text, or the beginning of {"a":{"a":1}}: nothing tells
        return [replace(_refused(text, "they may be cut off"), otherwise=snapshot)] if unfinished else [snapshot]
    documents, rest = _documents(text)
    if documents and _LEFT_BEHIND.fullmatch(rest):
        return _several(pieces, text, documents)
    if unfinished:
        return [_refused(text, f"they were cut off after {len(text)} characters; write shorter arguments")]
    return [_refused(text, f"they are not valid JSON ({error})")]


def _last_snapshot(pieces: Sequence[str]) -> Arguments | None:
    """Return the last piece of cumulative text if it is one object; None for other text."""
    if len(pieces) < 2 or not all(after.startswith(before) for before, after in pairwise(pieces)):
        return None
    text = mend_json(pieces[-1])
    try:
        value = read_json(text.strip())
    except ValueError:
        return None
    return Arguments(text, value, cumulative=True) if isinstance(value, dict) else None


@dataclass(frozen=True, slots=True)
class _Document:
    """A JSON object at the top level of a text: its position and its value."""

    start: int
    arguments: Arguments
    value: dict[str, Any]


def _documents(text: str) -> tuple[list[_Document], str]:
    """Return the objects at the beginning of `text`, and the text after the last of them."""
    found: list[_Document] = []
    position = _skip_space(text, 0)
    while position < len(text):
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            break
        arguments = _unwrapped(text[position:end], value)
        if arguments is None or arguments.value is None:
            break
        found.append(_Document(position, arguments, arguments.value))
        position = _skip_space(text, end)
    return found, text[position:]


def _skip_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _several(pieces: Sequence[str], text: str, documents: list[_Document]) -> list[Arguments]:
    """Return the objects without placeholders and copies."""
    edges = set(accumulate(map(len, pieces)))
    while len(documents) > 1 and not documents[0].value and documents[1].start in edges:
        documents = documents[1:]
    different = [now for before, now in zip([None, *documents], documents, strict=False) if not (before and same(before.value, now.value))]
    if len(different) == 1:
        return [different[0].arguments]
    if any(document.start in edges for document in different[1:]) or not different[0].value:
        return [_refused(text, "they are several objects, and only one can be meant")]
    return [document.arguments for document in different]


def as_text(value: object) -> str:
    """Return arguments as text: a string unchanged, None as "", anything else as its JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def spelling(found: Sequence[Arguments]) -> str | None:
    """Return arguments in canonical form, whatever their layout and key order; None if they are not one object."""
    return canonical(found[0].value) if len(found) == 1 and found[0].value is not None else None


def spell_text(text: str) -> str | None:
    """Return a fragment's text in canonical form if it is complete arguments by itself; None if it is not."""
    return spelling(read_arguments([text])) if text.lstrip()[:1] in ("{", '"') else None
