"""Truncation of results that are too long for a model: head and tail stay, with a note between them."""

from dataclasses import replace
from typing import Any

from ..results import ToolCallResult

_CUT = "\n\n[... {total} characters in all: the middle is left out here ...]\n\n"


def shortened(result: ToolCallResult, limit: int) -> ToolCallResult:
    """Return the result with at most `limit` characters of text in its message, always cut in the same way.

    What was cut stays whole in `full_content`, and in the message's artifact where the tool gave none.
    """
    whole = result.message.content
    content = _cut(whole, limit)
    if content is whole:
        return result
    artifact = whole if result.message.artifact is None else result.message.artifact
    message = result.message.model_copy(update={"content": content, "artifact": artifact})
    return replace(result, message=message, full_content=whole)


def _cut(content: Any, limit: int) -> Any:
    """Cut a text, or the joined texts of a list of blocks; other blocks stay unchanged."""
    blocks = content if isinstance(content, list) else [content]
    total = sum(len(_text(block) or "") for block in blocks)
    if total <= limit:
        return content
    words = _CUT.format(total=total)
    tail = (limit - len(words)) // 2
    head = limit - len(words) - tail
    kept: list[Any] = []
    position = 0
    for block in blocks:
        text = _text(block)
        if text is None:
            kept.append(block)
            continue
        inserted = words if position <= head < position + len(text) else ""
        short = text[: max(0, head - position)] + inserted + text[max(0, total - tail - position) :]
        position += len(text)
        if short or not text:
            kept.append({**block, "text": short} if isinstance(block, dict) else short)
    return kept if isinstance(content, list) else kept[0]


def _text(block: Any) -> str | None:
    """Return the text of a block; None for other blocks."""
    if isinstance(block, str):
        return block
    text = block.get("text") if block.get("type") == "text" else None
    return text if isinstance(text, str) else None
