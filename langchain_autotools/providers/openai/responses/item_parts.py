"""Conversion of single output items: calls for the accumulator, content blocks, annotations, log probabilities."""

from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.messages import AIMessage

from ..._encode.json_text import dumps
from ..calls import CUSTOM_ARGUMENT
from ..wire import Call
from .items import CUSTOM_CALL, MODEL_MADE, parts_of
from .wire import Item, ItemPart

_TRANSLATED = "openai"  # the name of core's translator for items of this wire


def fragment(item: Item, number: int) -> Call:
    """Return a complete call for the accumulator; a custom tool's free text becomes the argument of a function.

    Args:
        item: The call's item.
        number: Its place among the reply's items.
    """
    call: Call = {"index": number, "id": item.get("call_id") or "", "type": "function"}
    if item.get("caller"):
        call["caller"] = item["caller"]
    if item.get("type") != CUSTOM_CALL:
        return {**call, "function": {"name": item.get("name"), "arguments": item.get("arguments")}}
    arguments = dumps({CUSTOM_ARGUMENT: str(item.get("input") or "")})
    return {**call, "function": {"name": item.get("name"), "arguments": arguments}, "custom": True}


def custom_piece(text: str, *, first: bool, last: bool) -> str:
    """Return a piece of a custom tool's input as a piece of the JSON that `fragment` makes of the whole."""
    return "".join([f'{{"{CUSTOM_ARGUMENT}":"' if first else "", dumps(text)[1:-1], '"}' if last else ""])


def standard(block: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Convert an item or block of this wire to v1 content blocks with core's own translator."""
    message = AIMessage(content=[dict(block)], response_metadata={"model_provider": _TRANSLATED})
    return [dict(one) for one in message.content_blocks]


def _text_parts(item: Item) -> list[ItemPart]:
    return parts_of(item) if item.get("type") == "message" else []


def annotations_of(item: Item) -> list[Any]:
    """Return the annotations of a message item."""
    return [entry for part in _text_parts(item) for entry in part.get("annotations") or ()]


def unfinished(items: Iterable[Item]) -> list[dict[str, Any]]:
    """Return kind, id and status of the model's own items whose status is not "completed", which is not sent back with them."""
    ended = (None, "completed")
    return [
        {"type": item["type"], "id": item.get("id"), "status": item.get("status")}
        for item in items
        if _is_own(item) and item.get("status") not in ended
    ]


def _is_own(item: Item) -> bool:
    return item.get("type") in MODEL_MADE


def log_probabilities(items: Iterable[Item]) -> dict[str, list[Any]]:
    """Return the log probabilities of a reply in the form of chat completions; empty if there are none."""
    content = [entry for item in items for part in _text_parts(item) for entry in part.get("logprobs") or ()]
    return {"content": content} if content else {}
