"""Merging of consecutive messages with one role, for wires on which the roles must alternate.

No general repair: most vendors take messages of one role in a row, and joining would change what was sent before.
"""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage


def merge_runs(messages: Sequence[BaseMessage], *, separator: str = "\n\n") -> list[BaseMessage]:
    """Merge consecutive human, system and AI messages of the same kind.

    Texts are joined by `separator`, lists of content blocks one after another. The joined message keeps the id of the
    first and, of everything else that both have, what the last one says. An AI message with calls only ends a run: its
    results must follow it. Tool results are never joined.

    Returns:
        A new list. Messages that are not joined are the same objects.
    """
    merged: list[BaseMessage] = []
    for message in messages:
        if merged and _joinable(merged[-1], message):
            merged[-1] = _merged_pair(merged[-1], message, separator)
        else:
            merged.append(message)
    return merged


def _joinable(left: BaseMessage, right: BaseMessage) -> bool:
    role = next((role for role in (HumanMessage, SystemMessage, AIMessage) if isinstance(left, role)), None)
    if role is None or not isinstance(right, role):
        return False
    return not isinstance(left, AIMessage) or not (left.tool_calls or left.invalid_tool_calls)


def _merged_pair(left: BaseMessage, right: BaseMessage, separator: str) -> BaseMessage:
    update: dict[str, Any] = {
        "id": left.id,
        "content": _joined_content(left.content, right.content, separator),
        "additional_kwargs": {**left.additional_kwargs, **right.additional_kwargs},
        "response_metadata": {**left.response_metadata, **right.response_metadata},
        "name": left.name if left.name == right.name else None,
    }
    return right.model_copy(update=update)


def _joined_content(left: str | list[Any], right: str | list[Any], separator: str) -> str | list[Any]:
    if isinstance(left, str) and isinstance(right, str):
        return separator.join(part for part in (left, right) if part)
    return [*_as_blocks(left), *_as_blocks(right)]


def _as_blocks(content: str | list[Any]) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content
