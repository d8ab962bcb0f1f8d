"""Where the messages of a run stand: their turn, their number in it, and ids that follow from that."""

import uuid
from collections.abc import Sequence
from typing import Any, TypeVar

from langchain_core.messages import AIMessage, BaseMessage

from ..messages.calls import call_ids
from ..messages.metadata import text_of

__all__ = ["generation_id", "number_messages", "result_id"]

_NAMESPACE = uuid.UUID("6b1f0c0e-7b8e-5d0a-9d59-6f6a1c3c4f11")

_M = TypeVar("_M", bound=BaseMessage)


def number_messages(generation: str, messages: Sequence[_M], first: int = 0) -> list[_M]:
    """Mark the messages of one model turn with where they stand.

    Args:
        generation: The turn's `generation_id`, see `generation_id`.
        messages: The AI message (number 0) and its results, or a part of them.
        first: The number of the first of `messages` within the generation.
    """
    return [_numbered(message, generation, number) for number, message in enumerate(messages, first)]


def _numbered(message: _M, generation: str, number: int) -> _M:
    marks: dict[str, Any] = {"generation_id": generation, "message_order_idx": number}
    if number:
        marks["tool_call_idx"] = number - 1
    return message.model_copy(update={"response_metadata": {**message.response_metadata, **marks}})


def generation_id(message: AIMessage, position: int) -> str:
    """The id of one model turn, derived from its message and the number of messages before it."""
    calls = "\x1f".join(str(call) for call in call_ids(message))
    return str(uuid.uuid5(_NAMESPACE, f"{position}\x1e{message.id}\x1e{calls}\x1e{text_of(message)}"))


def result_id(asked: AIMessage, call_id: str) -> str | None:
    """The id of the result of a call, derived from the message that made the call; None where that has no id either."""
    turn = asked.response_metadata.get("generation_id") or asked.id
    return str(uuid.uuid5(_NAMESPACE, f"{turn}\x1e{call_id}")) if turn else None
