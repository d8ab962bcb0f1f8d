"""Several raw chunks as one."""

from typing import Any

from langchain_core.messages import AIMessageChunk

from ..messages import new_chunk

__all__ = ["joined", "summed"]

_GROWING = frozenset({"text", "thinking", "citations"})


def summed(*chunks: AIMessageChunk | None) -> AIMessageChunk | None:
    """Those of the raw chunks that there are, as one; None if there is none."""
    given = [chunk for chunk in chunks if chunk is not None]
    return joined(given) if given else None


def joined(chunks: list[AIMessageChunk]) -> AIMessageChunk:
    """Several raw chunks as one. (Core's sum would also merge fragments of calls, which the assembler must see as they came.)"""
    if len(chunks) == 1:
        return chunks[0]
    fragments = [fragment for chunk in chunks for fragment in chunk.additional_kwargs.get("tool_calls", ())]
    whole = new_chunk(_contents(chunks), {"tool_calls": fragments} if fragments else {}, chunks[0].id)
    for chunk in chunks:
        whole.__dict__["response_metadata"] |= chunk.response_metadata
        whole.__dict__["usage_metadata"] = chunk.usage_metadata or whole.usage_metadata
    return whole


def _contents(chunks: list[AIMessageChunk]) -> str | list[Any]:
    """The contents one after another; parts of one block become one."""
    if all(isinstance(chunk.content, str) for chunk in chunks):
        return "".join(str(chunk.content) for chunk in chunks)
    parts: list[Any] = []
    for chunk in chunks:
        for part in [chunk.content] if isinstance(chunk.content, str) else chunk.content:
            last = parts[-1] if parts else None
            if isinstance(part, dict) and isinstance(last, dict) and part["index"] == last["index"]:
                grown = {key: last[key] + part[key] for key in _GROWING & part.keys() & last.keys()}
                parts[-1] = {**last, **part, **grown}
            elif isinstance(part, str) and isinstance(last, str):
                parts[-1] = last + part
            elif part:
                parts.append(part)
    return parts
