"""Raw chunks, made fast: a copy of one validated chunk costs a fraction of validating a new one, and this is the hot path."""

from typing import Any

from langchain_core.messages import AIMessageChunk

from ..messages import derived

__all__ = ["raw_chunk"]

_TEMPLATE = AIMessageChunk(content="", additional_kwargs={}, response_metadata={})


def raw_chunk(content: str | list[Any], extra: dict[str, Any], message_id: str | None) -> AIMessageChunk:
    """A chunk of this content, with these additional keywords."""
    empty: dict[str, Any] = {"response_metadata": {}, "tool_calls": [], "invalid_tool_calls": [], "tool_call_chunks": []}
    return derived(_TEMPLATE, {"content": content, "additional_kwargs": extra, "id": message_id, **empty})
