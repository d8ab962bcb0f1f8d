"""Turns that a server has only interrupted: which these are, and whether they bring anything."""

import json
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

_PAUSES = frozenset({"pause_turn", "compaction", "continuation"})
_NOT_SAID = frozenset({"id", "index", "tool_use_id", "signature", "encrypted_content"})


def is_paused(message: BaseMessage) -> bool:
    """Whether a server has only interrupted this turn (wire quirks C-15, G-17): its message goes back as it is, in the next turn."""
    return _finish_reason(message) in _PAUSES


def pause_content(message: AIMessage) -> str:
    """What an interrupted turn brought, whatever its ids. The interruption itself, a block of its name, brings nothing."""
    blocks = message.content if isinstance(message.content, list) else [message.content]
    said = [_without_ids(block) for block in blocks if block]
    kept = [block for block in said if not (isinstance(block, dict) and block.get("type") == _finish_reason(message))]
    return json.dumps(kept, sort_keys=True, default=str)


def _without_ids(block: Any) -> Any:
    if not isinstance(block, dict):
        return block
    inner = block.get("value") if block.get("type") == "non_standard" else block
    return {key: value for key, value in inner.items() if key not in _NOT_SAID} if isinstance(inner, dict) else inner


def _finish_reason(message: BaseMessage) -> str:
    return str(message.response_metadata.get("finish_reason") or "").lower()
