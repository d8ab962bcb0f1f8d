"""Iteration over the text and reasoning of a chunk or a whole reply, in order."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

Kind = Literal["text", "reasoning"]

_REASONING_KEYS = ("reasoning_content", "reasoning")
_TEXT_OF_REASONING = ("reasoning", "thinking")


def deltas_of(content: str | list[Any], extra: Mapping[str, Any]) -> Iterator[tuple[Kind, str]]:
    """Yield the text and reasoning of a chunk, piece by piece. Reasoning beside the content comes first.

    Args:
        content: The content of the message or chunk.
        extra: Its `additional_kwargs`.
    """
    for key in _REASONING_KEYS:
        if isinstance(extra.get(key), str) and extra[key]:
            yield "reasoning", extra[key]
            break
    for part in [content] if isinstance(content, str) else content:
        if not isinstance(part, str):
            yield from _block_deltas(part)
        elif part:
            yield "text", part


def _block_deltas(block: Mapping[str, Any]) -> Iterator[tuple[Kind, str]]:
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str) and block["text"]:
        yield "text", block["text"]
    if kind not in _TEXT_OF_REASONING:
        return
    written = [block[key] for key in _TEXT_OF_REASONING if isinstance(block.get(key), str)]
    summary = block.get("summary")
    parts = summary if isinstance(summary, list) and not written else []
    text = "".join(written) or "\n\n".join(str(part.get("text") or "") for part in parts if isinstance(part, Mapping))
    if text:
        yield "reasoning", text
