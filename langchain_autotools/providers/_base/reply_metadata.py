"""What a reply says besides its content: kept under the wire's own names, unless it repeats the request."""

from collections.abc import Collection, Mapping
from typing import Any

from ...messages.metadata import KEY

# What the package and LangChain's core read in a message's metadata is not for a server to set.
_OWN = frozenset(
    {KEY, "finish_reason", "generation_id", "headers", "message_order_idx", "model_provider", "output_version", "tool_call_idx"}
)
# Users look for these in the reply, also where it grants what was asked for.
_ALWAYS = frozenset({"metadata", "service_tier"})
_NOTHING: tuple[Any, ...] = (None, "", [], {})


def reply_metadata(reply: Mapping[str, Any], structure: Collection[str], request: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the metadata in a reply, or in a part of it.

    Args:
        reply: The object on the wire.
        structure: Its keys that are not metadata: content, token counts, what the decoder reads itself.
        request: What the request said; of what the reply repeats at the same place nothing is returned.
    """
    found: dict[str, Any] = {}
    for key, value in reply.items():
        if key in structure or key in _OWN:
            continue
        if request and key not in _ALWAYS and request.get(key) is not None:
            value = without_echo(value, request[key])
        if value not in _NOTHING:
            found[key] = value
    return found


def without_echo(value: Any, asked: Any) -> Any:
    """Return what a value of the reply says that the request's value at the same place does not; None if that is nothing."""
    if asked is None:
        return value
    if isinstance(value, Mapping) and isinstance(asked, Mapping):
        parts = {key: without_echo(item, asked.get(key)) for key, item in value.items()}
        return {key: part for key, part in parts.items() if part not in _NOTHING} or None
    if _are_objects(value) and _are_objects(asked) and len(value) == len(asked):
        rest = [without_echo(item, other) or {} for item, other in zip(value, asked, strict=True)]
        return rest if any(rest) else None
    return None if value == asked else value


def _are_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, Mapping) for item in value)
