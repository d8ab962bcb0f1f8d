"""How the JSON text of a call's arguments is read, complete or unfinished."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise, product
from typing import Any, Final

from ..compat import is_unterminated
from ..strict_json import canonical, decoder, mend_surrogates, read_json, same

_SPACE = re.compile(r"[ \t\n\r]*")


_END_TOKENS = (
    *("</s>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|call|>", "<|endoftext|>", "<|end_of_text|>", "<end_of_turn>"),
    "<\uff5cend\u2581of\u2581sentence\uff5c>",
)
"""Tokens by which models end a turn, as their templates write them (wire quirk B-34)."""


_LEFT_BEHIND = re.compile(rf"(?:\s|\]|```|</function>|</tool_call>|{'|'.join(map(re.escape, _END_TOKENS))})*")


_WRAPPED: Final = 2


_NOTHING_GIVEN: Final = frozenset({"", "null", "none"})


_CONFLICT: Final = "its arguments came more than once, and not the same"


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of one call.

    Attributes:
        raw: Their JSON text as the model wrote it; where `value` is not None it is exactly one JSON object.
        value: The object, or None if the call must not run.
        why: Why `value` is None, in words for the model.
        cumulative: Whether the text can only be cumulative: each piece repeats what came before.
        otherwise: The value of a rejected text if the server is known to send cumulative text.
    """

    raw: str
    value: dict[str, Any] | None = None
    why: str | None = None
    cumulative: bool = False
    otherwise: "Arguments | None" = None


def read_arguments(pieces: Sequence[str]) -> list[Arguments]:
    """Parse the pieces of one call's argument text. Returns one entry, or several where the text holds several objects.

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


# ---------------------------------------------------------------------------------------------- several accounts of one call


def agreed(accounts: Sequence[Sequence[str]]) -> tuple[str, str | None]:
    """Return the text on which all accounts of one call's arguments agree, and why it must not run if there is none.

    Servers give the arguments of one call several times: in pieces, at the end of them, as an item, in the whole reply. What counts is
    their values: all objects that are not empty are equal; one wins over empty accounts, and over unreadable pieces of itself.

    Args:
        accounts: The pieces of each.
    """
    given = {text: pieces for pieces in accounts if (text := "".join(pieces)).strip().lower() not in _NOTHING_GIVEN}
    if len(given) < 2:
        return next(iter(given), ""), None
    read = {text: read_arguments(pieces) for text, pieces in given.items()}
    broken = [text for text, found in read.items() if any(one.value is None for one in found)]
    whole = [(text, found) for text, found in read.items() if text not in broken and any(one.value for one in found)]
    if not whole:
        return (broken or [*given])[0], _CONFLICT if len(broken) > 1 else None
    (text, first), *others = whole
    if any(_spelled(found) != _spelled(first) for _, found in others) or not all(_is_part_of(piece, whole) for piece in broken):
        return text, _CONFLICT
    return (first[0].raw if len(first) == 1 else text), None


def _spelled(found: Sequence[Arguments]) -> list[str]:
    return [canonical(one.value) for one in found]


def _is_part_of(piece: str, whole: Sequence[tuple[str, list[Arguments]]]) -> bool:
    """Whether a text is a piece of one of these, in the layout of that text or in a usual one."""
    layouts = [text for text, _ in whole]
    for separators, ascii_only in product(((",", ":"), (", ", ": ")), (True, False)):
        layouts += [json.dumps(one.value, separators=separators, ensure_ascii=ascii_only) for _, found in whole for one in found]
    return any(piece.strip() in layout for layout in layouts)


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


# ---------------------------------------------------------------------------------------------- JSON text


_MOST_PIECES = 12


_OUTSIDE = re.compile(r'["{}\[\]]')


_INSIDE = re.compile(r'["\\]')


_BEGUN = re.compile(r"\s*(?:u[0-9a-fA-F]{0,4}|-|tr?u?|fa?l?s?|nu?l?|\.|[eE][+-]?|)")
"""Pattern of an unfinished escape, word or number at the point where a truncated document breaks."""


_ESCAPES = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL)


def is_prefix(text: str, error: ValueError) -> bool:
    """Whether `text`, which failed to parse with `error`, is a prefix of some JSON document."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    if is_unterminated(error):
        return True
    return _BEGUN.fullmatch(text, error.pos) is not None


def mend_json(text: str) -> str:
    """Return JSON text with surrogate pairs joined and lone surrogates (also as escapes) replaced by U+FFFD.

    A half alone has no UTF-8: it could not be sent back (wire quirk B-20).
    """
    text = mend_surrogates(text)
    if "\\ud" in text or "\\uD" in text:
        text = _ESCAPES.sub(lambda match: r"\ufffd" if match[1] else match[0], text)
    return text


@dataclass(slots=True, eq=False, repr=False)
class JsonScanner:
    """Tracks whether the brackets and strings of a growing JSON text are closed, in linear time."""

    _depth: int = 0
    _in_string: bool = False
    _escaped: bool = False
    _seen: bool = False

    @property
    def closed(self) -> bool:
        """Whether the text so far ends after a closed bracket or string at the top level."""
        return self._seen and not self._depth and not self._in_string

    def feed(self, piece: str) -> None:
        """Process the next piece of the text."""
        position, end = 0, len(piece)
        if self._escaped and end:
            position, self._escaped = 1, False
        while position < end:
            match = (_INSIDE if self._in_string else _OUTSIDE).search(piece, position)
            if match is None:
                return
            position = match.end()
            character = match[0]
            self._seen = self._seen or character != "\\"
            if character == "\\":
                self._escaped = position == end
                position += 1
            elif character == '"':
                self._in_string = not self._in_string
            else:
                self._depth = self._depth + 1 if character in "{[" else max(0, self._depth - 1)


# ---------------------------------------------------------------------------------------------- one object, or several


def has_other_split(pieces: Sequence[str]) -> bool:
    """Whether the pieces can be distributed over two or more objects, each valid as far as it goes.

    A new object starts with a piece that begins with a bracket. `{"a":` `{"b":1}` `}` cannot be dealt out: `{"a":}` is nothing.
    `{"a":[` `{"b":1}` `]}` can. More pieces than can be tried out are taken for such a case.
    """
    if len(pieces) > _MOST_PIECES:
        return True
    return _deal((pieces[0],), pieces[1:])


def _deal(objects: tuple[str, ...], pieces: Sequence[str]) -> bool:
    if not pieces:
        return len(objects) > 1
    piece, rest = pieces[0], pieces[1:]
    if piece.lstrip().startswith("{") and _is_valid_so_far(piece) and _deal((*objects, piece), rest):
        return True
    for number, text in enumerate(objects):
        longer = text + piece
        if _is_valid_so_far(longer) and _deal((*objects[:number], longer, *objects[number + 1 :]), rest):
            return True
    return False


def _is_valid_so_far(text: str) -> bool:
    text = text.strip()
    try:
        read_json(text)
    except ValueError as error:
        return is_prefix(text, error)
    return True
