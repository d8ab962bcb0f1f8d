"""JSON text for the wire: compact, deterministic, always valid UTF-8 and always strict JSON.

A body is sent as bytes that this module makes, not as an object that a client library serialises: the same history gives the
same bytes, and what was encoded once is joined, not encoded again.
"""

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from ... import strict_json
from ...errors import ConfigurationError

_STRICT = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_COMPACT = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=str)


def dumps(value: Any) -> str:
    """Return compact JSON. Values without a JSON form become text; NaN and infinities, which servers reject, become null."""
    try:
        return _COMPACT.encode(value)
    except ValueError:
        return _COMPACT.encode(_finite(value))


def encode(value: Any) -> bytes:
    """Return compact JSON as bytes (see `dumps` and `to_bytes`)."""
    return to_bytes(dumps(value))


def request_body(params: Mapping[str, Any], key: str, bodies: Iterable[bytes], before: bytes = b"") -> bytes:
    """Return the body of a request.

    Args:
        params: The parameters: what a caller set is sent as set, or refused.
        key: The name of the parameter that holds the messages; it comes last.
        bodies: The encoded messages.
        before: Encoded parameters that stand before the messages, each with a comma after it.

    Raises:
        ConfigurationError: A parameter is no JSON value; the text names it.
    """
    head = [f"{_STRICT.encode(name)}:{_value(name, value)}," for name, value in params.items() if name != key]
    return b"".join((to_bytes("{" + "".join(head)), before, f'"{key}":['.encode(), b",".join(bodies), b"]}"))


def _value(key: str, value: Any) -> str:
    try:
        return _STRICT.encode(value)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"parameter {key!r} cannot be sent: {error}") from error


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def to_bytes(text: str) -> bytes:
    """Encode a text as UTF-8. Surrogate pairs are joined; a lone surrogate (a truncated character) becomes U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return strict_json.mend_surrogates(text).encode()


def read_object(text: str) -> dict[str, Any] | None:
    """Parse `text` as a strict JSON object; None if it is anything else."""
    return strict_json.read_object(text, control_characters=False)
