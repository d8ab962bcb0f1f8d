"""Conversion of any object to plain JSON, because tools may report and return objects that would break a stream."""

import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel

from ..strict_json import mend_surrogates

_DEEPEST: Final = 100
_LONGEST_TEXT: Final = 2000
_LARGEST: Final = 2**63
_LINE_ENDS: Final = re.compile("[\x85\u2028\u2029]")  # to Python's `splitlines` and to JavaScript's `.`; others are escaped anyway
_write: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode  # made once: it is slow to make


def plain(value: Any, depth: int = _DEEPEST) -> Any:
    """Return a value as plain JSON; objects become text of at most 2,000 characters, lone surrogates U+FFFD.

    Args:
        value: Any value. A pydantic object, such as a message, is its fields.
        depth: How many levels of nesting are kept; what lies deeper, or in itself, is a text.
    """
    if isinstance(value, str):
        return mend_surrogates(str(value))
    if value is None or value is True or value is False:
        return value
    if isinstance(value, int):
        return int(value) if -_LARGEST <= value <= _LARGEST else _text(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    if depth and isinstance(value, Mapping):
        return {_key(key): plain(item, depth - 1) for key, item in value.items()}
    if depth and isinstance(value, list | tuple | set | frozenset):
        return [plain(item, depth - 1) for item in value]
    return plain(_fields(value), depth - 1) if depth and isinstance(value, BaseModel) else _text(value)


def _key(key: Any) -> str:
    return mend_surrogates(str(key)) if isinstance(key, str) else _text(key)


def _fields(value: BaseModel) -> Any:
    try:
        return value.model_dump()
    except Exception:  # whatever the object's own code raises
        return _text(value)


def _text(value: Any) -> str:
    try:
        text = str(value)
    except Exception:  # likewise
        text = f"<{type(value).__name__}>"
    return mend_surrogates(text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…")


def to_json(value: Any) -> str:
    """A value as JSON in one line, also for readers that take more for the end of a line than `\\n` and `\\r`."""
    text = _write(plain(value))
    return text if text.isascii() else _LINE_ENDS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
