"""Turns that a server has paused: detection and content."""

import json
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

_PAUSES = frozenset({"pause_turn", "compaction", "continuation"})
_NOT_SAID = frozenset({"id", "index", "tool_use_id", "signature", "encrypted_content"})


def is_paused(message: BaseMessage) -> bool:
    """Whether a server has paused this turn (wire quirks C-15, G-17): the next request sends its message back unchanged."""
    return _finish_reason(message) in _PAUSES


def pause_content(message: AIMessage) -> str:
    """Return the content of a paused turn without ids and without the pause block itself."""
    blocks = message.content if isinstance(message.content, list) else [message.content]
    plain = [_without_ids(block) for block in blocks if block]
    kept = [block for block in plain if not (isinstance(block, dict) and block.get("type") == _finish_reason(message))]
    return json.dumps(kept, sort_keys=True, default=str)


def _without_ids(block: Any) -> Any:
    if not isinstance(block, dict):
        return block
    inner = block.get("value") if block.get("type") == "non_standard" else block
    return {key: value for key, value in inner.items() if key not in _NOT_SAID} if isinstance(inner, dict) else inner


def _finish_reason(message: BaseMessage) -> str:
    return str(message.response_metadata.get("finish_reason") or "").lower()
