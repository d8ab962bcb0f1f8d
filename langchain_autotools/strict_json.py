"""Strict JSON parsing, shared by everything that reads models' output, histories or requests.

A text is read if it is exactly one JSON value, with white space around it at the most. Refused are `NaN` and `Infinity`, numbers
beyond what a double can hold (`1e999`), and values nested more than 200 levels deep, which could be read but not written or checked.
Of a key that occurs twice in an object the last value counts. Control characters may be in strings (wire quirk B-22): models write
them; what goes back to a server is read without that leave.
"""

import json
import math
from typing import Any, Final, NoReturn

_DEEPEST = 200
_EXACT = 2**53  # below it a double holds every integer exactly


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is beyond what a number can hold")
    return number


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


class _Decoder(json.JSONDecoder):
    """A decoder that rejects JSON nested too deeply to be written or checked."""

    def raw_decode(self, s: str, idx: int = 0) -> tuple[Any, int]:
        value, end = super().raw_decode(s, idx)
        if s.count("{", idx, end) + s.count("[", idx, end) > _DEEPEST and _is_too_deep(value):
            raise ValueError("nested too deeply")
        return value, end


def _is_too_deep(value: object) -> bool:
    layer: list[Any] = [value]
    for _ in range(_DEEPEST + 1):
        containers = (one.values() if isinstance(one, dict) else one for one in layer if isinstance(one, dict | list))
        layer = [inner for container in containers for inner in container]
    return bool(layer)


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("a key occurs twice in an object")
    return value


decoder: Final = _Decoder(strict=False, parse_float=_finite, parse_constant=_no_constant)
_unambiguous: Final = _Decoder(strict=False, parse_float=_finite, parse_constant=_no_constant, object_pairs_hook=_unrepeated)
_without_control_characters: Final = _Decoder(parse_float=_finite, parse_constant=_no_constant)


def read_json(text: str) -> Any:
    """Parse exactly one JSON value.

    Raises:
        ValueError: The text is anything else; `str(error)` says why.
    """
    try:
        return decoder.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def read_object(text: str, *, control_characters: bool = True) -> dict[str, Any] | None:
    """Parse exactly one JSON object; None if the text is anything else.

    Args:
        text: The text.
        control_characters: Whether control characters may be in strings.
    """
    try:
        value = read_json(text) if control_characters else _without_control_characters.decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def canonical(value: object) -> str:
    """Return a JSON value in canonical form, with sorted keys. Unlike in Python, true is not 1 and 1.0 is not 1."""
    return json.dumps(value, sort_keys=True)


def says_only(text: str, value: object) -> bool:
    """Whether a text is the JSON of a value and cannot be read otherwise: no object repeats a key."""
    try:
        read = _unambiguous.decode(text)
    except (ValueError, RecursionError):
        return False
    return equivalent(read, value)


def equivalent(one: object, other: object) -> bool:
    """Whether two JSON values are equal after a trip through other programs (`interchanged`). False for other values."""
    try:
        return same(interchanged(one), interchanged(other))
    except (TypeError, ValueError, RecursionError):
        return False


def interchanged(value: object) -> Any:
    """Return a JSON value as programs with one number type, such as JavaScript, would return it.

    A float without a fraction below 2**53 becomes its integer, and -0.0 becomes 0. Integers stay as they are, however large.

    Raises:
        TypeError, ValueError, RecursionError: The value is not plain JSON.
    """
    return json.loads(json.dumps(value, sort_keys=True, allow_nan=False), parse_float=_number)


def _number(text: str) -> float | int:
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < _EXACT else number


def same(one: object, other: object) -> bool:
    """Whether two JSON values are equal."""
    return canonical(one) == canonical(other)


def is_finite(value: object) -> bool:
    """Whether every number in a value, in its lists and objects too, is one of JSON: neither infinite nor NaN."""
    if isinstance(value, dict):
        return all(map(is_finite, value.values()))
    if isinstance(value, list | tuple | set | frozenset):
        return all(map(is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def mend_surrogates(text: str) -> str:
    """Return the text with surrogate pairs joined and lone surrogates, which have no UTF-8, replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
