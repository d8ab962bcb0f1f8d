"""The order in which an assistant wrote its content and its calls, for wires that require both in their places."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage

from ...messages.blocks import CALL_BLOCKS
from ...messages.calls import ToolCallRecord
from ...messages.metadata import KEY

CALLS = CALL_BLOCKS | {"custom_tool_call"}
"""Types of content blocks for calls, including OpenAI's custom tools; these calls are in the message's `tool_calls`."""


def in_order(message: AIMessage, records: Sequence[ToolCallRecord]) -> list[str | Mapping[str, Any] | int]:
    """Return the content blocks, and the calls by number, in the order in which they were written.

    Where the calls stood is recorded where content followed them; else their own blocks in the content say it; else they come last.
    """
    content = [message.content] if isinstance(message.content, str) else message.content
    others = [block for block in content if isinstance(block, str) or block.get("type") not in CALLS]
    own = message.response_metadata.get(KEY)
    before = own.get("before_calls") if isinstance(own, Mapping) else None
    if not isinstance(before, list) or len(before) != len(records):
        before = _places(content, records)
    items: list[str | Mapping[str, Any] | int] = []
    waiting = list(range(len(records)))
    for position, block in enumerate(others):
        while waiting and before[waiting[0]] <= position:
            items.append(waiting.pop(0))
        items.append(block)
    return [*items, *waiting]


def _places(content: Sequence[Any], records: Sequence[ToolCallRecord]) -> list[int]:
    """Return the number of other blocks before each call."""
    places: dict[Any, int] = {}
    count = 0
    for block in content:
        if isinstance(block, Mapping) and block.get("type") in CALLS:
            places.setdefault(block.get("id"), count)
        else:
            count += 1
    return [places.get(call.id, count) for call in records]
