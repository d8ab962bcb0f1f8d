"""Inspection of unfinished JSON text: whether it is complete, can continue, or contains several documents."""

import json
import re
from collections.abc import Sequence

from ..compat import is_unterminated
from ..strict_json import mend_surrogates, read_json

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


class JsonScanner:
    """Tracks whether the brackets and strings of a growing JSON text are closed, in linear time."""

    __slots__ = ("_depth", "_escaped", "_in_string", "_seen")

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._seen = False

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
            if character == "\\":
                self._escaped = position == end
                position += 1
            else:
                self._step(character)

    def _step(self, character: str) -> None:
        self._seen = True
        if character == '"':
            self._in_string = not self._in_string
        elif character in "{[":
            self._depth += 1
        else:
            self._depth = max(0, self._depth - 1)


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
