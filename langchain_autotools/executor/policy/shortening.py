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
    """Cut a text, or the joined texts of a list of blocks and of commands' outputs; other blocks stay unchanged."""
    blocks = content if isinstance(content, list) else [content]
    texts = [_texts(block) for block in blocks]
    total = sum(len(text) for one in texts for text in one.values())
    if total <= limit:
        return content
    words = _CUT.format(total=total)
    tail = (limit - len(words)) // 2
    head = limit - len(words) - tail
    kept: list[Any] = []
    position = 0
    for block, own in zip(blocks, texts, strict=True):
        short: dict[str, str] = {}
        for name, text in own.items():
            inserted = words if position <= head < position + len(text) else ""
            short[name] = text[: max(0, head - position)] + inserted + text[max(0, total - tail - position) :]
            position += len(text)
        if any(short.values()) or not any(own.values()) or "text" not in own:
            kept.append({**block, **short} if isinstance(block, dict) else short["text"])
    return kept if isinstance(content, list) else kept[0]


def _texts(block: Any) -> dict[str, str]:
    """Return the texts of a block, by their keys: that of a text, the two of a command's output."""
    if isinstance(block, str):
        return {"text": block}
    kind = block.get("type")
    names = ("text",) if kind == "text" else ("stdout", "stderr") if kind is None else ()
    return {name: text for name in names if isinstance(text := block.get(name), str)}
