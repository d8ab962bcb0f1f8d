"""Values in the AI SDK's chunks."""

from typing import Any

from ..strict_json import read_object
from .plain import plain, to_json

Chunk = dict[str, Any]
"""A chunk of the UI message stream."""


def shown(value: Any) -> Any:
    """Return a value as plain JSON for the AI SDK, as text if it has certain keys with which the SDK gives up a whole stream."""
    made = plain(value)
    return to_json(made) if _is_refused(made) else made


def _is_refused(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_is_refused, value))
    if not isinstance(value, dict):
        return False
    maker = value.get("constructor")
    return "__proto__" in value or (isinstance(maker, dict) and "prototype" in maker) or any(map(_is_refused, value.values()))


def error_text(content: Any) -> str:
    """Return the text of an error result."""
    if not isinstance(content, str):
        return to_json(content)
    parsed = read_object(content)
    return parsed["error"] if parsed is not None and list(parsed) == ["error"] and isinstance(parsed["error"], str) else content
