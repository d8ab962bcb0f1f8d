"""What single output items say: calls as the accumulator takes them, content blocks, annotations, log probabilities."""

from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.messages import AIMessage

from ..._encode.json_text import dumps
from ..calls import CUSTOM, CUSTOM_ARGUMENT
from .items import CUSTOM_CALL, parts_of

__all__ = ["annotations_of", "fragment", "log_probabilities", "standard"]

_KEPT = ("caller",)
_TRANSLATED = "openai"  # the name of core's translator for items of this wire


def fragment(item: Mapping[str, Any], number: int) -> dict[str, Any]:
    """A complete call as the accumulator takes it; free text for a custom tool as the one argument of a function."""
    known = {"index": number, "id": item.get("call_id") or "", "type": "function", **{key: item[key] for key in _KEPT if item.get(key)}}
    if item.get("type") == CUSTOM_CALL:
        arguments = dumps({CUSTOM_ARGUMENT: str(item.get("input") or "")})
        return {**known, "function": {"name": item.get("name"), "arguments": arguments}, CUSTOM: True}
    return {**known, "function": {"name": item.get("name"), "arguments": item.get("arguments")}}


def standard(block: dict[str, Any]) -> list[dict[str, Any]]:
    """An item or block of this wire as v1 content blocks, by core's own translator."""
    message = AIMessage(content=[block], response_metadata={"model_provider": _TRANSLATED})
    return [dict(one) for one in message.content_blocks]


def _text_parts(item: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return parts_of(item) if item.get("type") == "message" else []


def annotations_of(item: Mapping[str, Any]) -> list[Any]:
    """The annotations of a message item."""
    return [entry for part in _text_parts(item) for entry in part.get("annotations") or ()]


def log_probabilities(items: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The log probabilities of a reply, in the form of chat completions; empty where there are none."""
    content = [entry for item in items for part in _text_parts(item) for entry in part.get("logprobs") or ()]
    return {"content": content} if content else {}
