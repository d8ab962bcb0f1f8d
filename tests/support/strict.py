"""What the strict validators of requests share: rules, rejections, and checks of one value."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

NAME = re.compile(r"[a-zA-Z0-9_-]+")
_KINDS = {str: "a string", int: "an integer", float: "a number", bool: "a boolean", list: "an array", dict: "an object", type(None): "null"}


@dataclass(frozen=True)
class Rules:
    """What beyond the vendor's own rules a server accepts or demands. `*_keys` are accepted although the vendor does not know them."""

    request_keys: Collection[str] = ()
    message_keys: Collection[str] = ()
    part_keys: Collection[str] = ()
    call_keys: Collection[str] = ()
    json_arguments: bool = True
    ordered_results: bool = False
    longest_id: int = 40


class Rejection(Exception):
    """A request that the vendor would refuse: what it would say, and with which HTTP status."""

    def __init__(self, message: str, param: str | None = None, code: str | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.message, self.param, self.code, self.status = message, param, code, status


def wrong_type(where: str, expected: str, value: Any) -> Rejection:
    """The vendor's words for a value of another type."""
    got = _KINDS.get(type(value), type(value).__name__)
    return Rejection(f"Invalid type for '{where}': expected {expected}, but got {got} instead.", where, "invalid_type")


def missing(where: str) -> Rejection:
    """The vendor's words for an absent key."""
    return Rejection(f"Missing required parameter: '{where}'.", where, "missing_required_parameter")


def not_one_of(where: str, value: Any, values: Collection[str]) -> Rejection:
    """The vendor's words for a value outside a closed list."""
    listed = [f"'{known}'" for known in values]
    named = listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])}, and {listed[-1]}" if len(listed) > 2 else " and ".join(listed)
    return Rejection(f"Invalid value: '{value}'. Supported values are: {named}.", where, "invalid_value")


def need(value: Mapping[str, Any], key: str, where: str) -> Any:
    """The value of a key that must be there."""
    if key not in value:
        raise missing(f"{where}.{key}")
    return value[key]


def known_keys(value: Mapping[str, Any], keys: Collection[str], where: str) -> None:
    """No key but these."""
    for key in value:
        if key not in keys:
            path = f"{where}.{key}" if where else key
            raise Rejection(f"Unknown parameter: '{path}'.", path, "unknown_parameter")


def string(value: Any, where: str, *, longest: int | None = None, empty: bool = False) -> str:
    """A string within its length."""
    if not isinstance(value, str):
        raise wrong_type(where, "a string", value)
    if not value and not empty:
        reason = "empty string. Expected a string with minimum length 1, but got an empty string instead."
        raise Rejection(f"Invalid '{where}': {reason}", where, "empty_string")
    if longest is not None and len(value) > longest:
        reason = f"string too long. Expected a string with maximum length {longest}, but got a string with length {len(value)} instead."
        raise Rejection(f"Invalid '{where}': {reason}", where, "string_above_max_length")
    return value


def name(value: Any, where: str) -> str:
    """A function's or schema's name."""
    text = string(value, where, longest=64)
    if not NAME.fullmatch(text):
        reason = "string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
        raise Rejection(f"Invalid '{where}': {reason}", where, "invalid_value")
    return text


def mapping(value: Any, where: str) -> dict[str, Any]:
    """An object."""
    if not isinstance(value, dict):
        raise wrong_type(where, "an object", value)
    return value


def array(value: Any, where: str, *, longest: int | None = None, empty: bool = False) -> list[Any]:
    """An array within its length."""
    if not isinstance(value, list):
        raise wrong_type(where, "an array", value)
    if not value and not empty:
        reason = "empty array. Expected an array with minimum length 1, but got an empty array instead."
        raise Rejection(f"Invalid '{where}': {reason}", where, "empty_array")
    if longest is not None and len(value) > longest:
        reason = f"array too long. Expected an array with maximum length {longest}, but got an array with length {len(value)} instead."
        raise Rejection(f"Invalid '{where}': {reason}", where, "array_above_max_length")
    return value


def number(low: float, high: float | None = None, *, whole: bool = False) -> Callable[[Any, str], None]:
    """A check for a number between two bounds."""
    kind, noun = (int, "integer") if whole else (int | float, "decimal")

    def check(value: Any, where: str) -> None:
        if isinstance(value, bool) or not isinstance(value, kind):
            raise wrong_type(where, "an integer" if whole else "a decimal", value)
        if value < low:
            reason = f"{noun} below minimum value. Expected a value >= {low}, but got {value} instead."
            raise Rejection(f"Invalid '{where}': {reason}", where, f"{noun}_below_min_value")
        if high is not None and value > high:
            reason = f"{noun} above maximum value. Expected a value <= {high}, but got {value} instead."
            raise Rejection(f"Invalid '{where}': {reason}", where, f"{noun}_above_max_value")

    return check


def one_of(*values: str) -> Callable[[Any, str], None]:
    """A check for a string of a closed list."""

    def check(value: Any, where: str) -> None:
        if string(value, where, empty=True) not in values:
            raise not_one_of(where, value, values)

    return check


def boolean(value: Any, where: str) -> None:
    """True or false."""
    if not isinstance(value, bool):
        raise wrong_type(where, "a boolean", value)
