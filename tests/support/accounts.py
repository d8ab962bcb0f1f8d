"""What a message of the OpenAI wires says besides text and calls, compared with a record: reasoning, signatures, token counts."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage

from langchain_autotools.messages.metadata import KEY
from tests.support.recorded import Recording

_REASONING = ("reasoning_content", "reasoning", "thinking_part")
"""Where chat completions' servers put it; it stays under the name it came by."""
_COUNTS = {
    "input": ("input_tokens",),
    "output": ("output_tokens",),
    "total": ("total_tokens",),
    "cached": ("input_token_details", "cache_read"),
    "reasoning": ("output_token_details", "reasoning"),
}


def unlike(record: Recording, message: AIMessage) -> list[str]:
    """What a message says of reasoning, signatures and token counts otherwise than the record.

    Of a reply that broke off sealed state need not be kept: Responses refuses it without the item that should have followed.
    """
    expected = record.expected
    pairs: dict[str, tuple[Any, Any]] = {
        "reasoning": (reasoning_of(message), expected["reasoning"] or ""),
    }
    if record.ended_well:
        pairs["signatures"] = signatures_of(message), expected["signatures"]
    for name, count in (expected["usage_norm"] or {}).items():
        if count is not None:
            pairs[f"{name} tokens"] = (_count(message, _COUNTS[name]), count)
    return [f"{name}: {found!r} instead of {wanted!r}" for name, (found, wanted) in pairs.items() if found != wanted]


def reasoning_of(message: AIMessage) -> str:
    """What the model thought."""
    extra = message.additional_kwargs
    told = next((str(extra[name]) for name in _REASONING if extra.get(name)), "")
    return told or "".join(detail.get("text") or "" for detail in extra.get("reasoning_details") or ())


def signatures_of(message: AIMessage) -> int:
    """How many pieces of sealed state came with a message."""
    details = message.additional_kwargs.get("reasoning_details") or ()
    items = (message.response_metadata.get(KEY) or {}).get("items") or ()
    sealed = [detail for detail in details if detail.get("signature") or detail.get("type") == "reasoning.encrypted"]
    return len(sealed) + sum(1 for item in items if item.get("encrypted_content"))


def _count(message: AIMessage, path: tuple[str, ...]) -> Any:
    value: Any = message.usage_metadata
    for name in path:
        value = (value or {}).get(name)
    return value
