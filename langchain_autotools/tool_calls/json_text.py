"""What the text of a JSON document says about itself: is it one object, is it whole, may more of it come?"""

import json
import math
import re
from typing import Any, Final

from ..compat import is_unterminated

__all__ = ["JsonScanner", "canonical", "decoder", "is_prefix", "mend_surrogates", "same", "strict_json"]

_DEEPEST = 200
_OUTSIDE = re.compile(r'["{}\[\]]')
_INSIDE = re.compile(r'["\\]')
_BEGUN = re.compile(r"\s*(?:u[0-9a-fA-F]{0,4}|-|tr?u?|fa?l?s?|nu?l?|\.|[eE][+-]?|)")
"""An escape, a word or a number that has begun, or nothing: what stands where a document that is cut breaks."""
_SURROGATES = re.compile("[\ud800-\udfff]")
_ESCAPES = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is beyond what a number can hold")
    return number


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


class _Decoder(json.JSONDecoder):
    """Refuses what is nested so deeply that reading it succeeds and writing or checking it would not."""

    def raw_decode(self, s: str, idx: int = 0) -> tuple[Any, int]:
        value, end = super().raw_decode(s, idx)
        if s.count("{", idx, end) + s.count("[", idx, end) > _DEEPEST and _is_too_deep(value):
            raise ValueError("nested too deeply")
        return value, end


def _is_too_deep(value: Any) -> bool:
    layer: list[Any] = [value]
    for _ in range(_DEEPEST + 1):
        containers = (one.values() if isinstance(one, dict) else one for one in layer if isinstance(one, dict | list))
        layer = [inner for container in containers for inner in container]
    return bool(layer)


decoder: Final = _Decoder(strict=False, parse_float=_finite, parse_constant=_no_constant)
"""Strict JSON, save that control characters may stand in strings (wire quirk B-22): no NaN, no Infinity, no endless numbers."""


def strict_json(text: str) -> Any:
    """Read exactly one JSON value.

    Raises:
        ValueError: The text is anything else; `str(error)` says why.
    """
    try:
        return decoder.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def is_prefix(text: str, error: ValueError) -> bool:
    """Whether `text`, which broke with `error`, is the beginning of some JSON document: valid as far as it goes."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    if is_unterminated(error):
        return True
    return _BEGUN.fullmatch(text, error.pos) is not None


def canonical(value: Any) -> str:
    """A JSON value in one spelling, whatever the order of its keys. Unlike in Python, true is not 1 and 1.0 is not 1."""
    return json.dumps(value, sort_keys=True)


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal."""
    return canonical(one) == canonical(other)


def mend_surrogates(text: str) -> str:
    """The text with pairs of surrogates joined, and halves of pairs (also written as escapes) as U+FFFD.

    A half alone has no UTF-8: it could not be sent back (wire quirk B-20).
    """
    if _SURROGATES.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if "\\ud" in text or "\\uD" in text:
        text = _ESCAPES.sub(lambda match: r"\ufffd" if match[1] else match[0], text)
    return text


class JsonScanner:
    """Follows a JSON text piece by piece; says whether its brackets and strings are closed. Linear."""

    __slots__ = ("_depth", "_escaped", "_in_string", "_seen")

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._seen = False

    @property
    def closed(self) -> bool:
        """Whether the text so far ends after a closed bracket or string, at the top level."""
        return self._seen and not self._depth and not self._in_string

    def feed(self, piece: str) -> None:
        """Take the next piece of the text."""
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
