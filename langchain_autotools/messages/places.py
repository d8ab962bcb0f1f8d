"""Positions of messages in a run: their turn, their number in it, and the ids derived from these."""

import uuid
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, TypeVar

from langchain_core.messages import AIMessage, BaseMessage

from ..strict_json import mend_surrogates
from .calls import call_ids
from .metadata import text_of

_NAMESPACE = uuid.UUID("6b1f0c0e-7b8e-5d0a-9d59-6f6a1c3c4f11")

_M = TypeVar("_M", bound=BaseMessage)


def place(generation: str | None, number: int) -> dict[str, Any]:
    """Return a message's position as metadata.

    Args:
        generation: The turn's `generation_id`; None where it is not known.
        number: The message's number within the turn: 0 for the AI message, then its results in call order.
    """
    turn = {} if generation is None else {"generation_id": generation}
    call = {"tool_call_idx": number - 1} if number else {}
    return {**turn, "message_order_idx": number, **call}


def places_of_results(message: AIMessage) -> Iterator[dict[str, Any]]:
    """Yield the positions of the results of an AI message's calls, in call order."""
    generation = message.response_metadata.get("generation_id")
    return (place(generation, number) for number in count(1))


def number_messages(generation: str, messages: Sequence[_M], first: int = 0) -> list[_M]:
    """Return the messages of one model turn with their positions.

    Args:
        generation: The turn's `generation_id`, see `generation_id`.
        messages: The AI message (number 0) and its results, or a part of them.
        first: The number of the first of `messages` within the generation.
    """
    return [_numbered(message, generation, number) for number, message in enumerate(messages, first)]


def numbered_result(message: _M, of: AIMessage, position: int) -> _M:
    """Return the result of the call at `position` with its position; unchanged if the message's turn is unknown."""
    generation = of.response_metadata.get("generation_id")
    return message if generation is None else _numbered(message, generation, position + 1)


def _numbered(message: _M, generation: str, number: int) -> _M:
    return message.model_copy(update={"response_metadata": {**message.response_metadata, **place(generation, number)}})


def generation_id(message: AIMessage, position: int) -> str:
    """Return the id of one model turn, derived from its message and the number of messages before it."""
    calls = "\x1f".join(str(call) for call in call_ids(message))
    return derived_id(_NAMESPACE, f"{position}\x1e{message.id}\x1e{calls}\x1e{text_of(message)}")


def result_id(asked: AIMessage, call_id: str) -> str | None:
    """Return the id of a call's result, derived from the message with the call; None if that has no id."""
    turn = asked.response_metadata.get("generation_id") or asked.id
    return derived_id(_NAMESPACE, f"{turn}\x1e{call_id}") if turn else None


def derived_id(namespace: uuid.UUID, text: str) -> str:
    """Return the UUID derived from any text a model may write; lone surrogates count as U+FFFD."""
    return str(uuid.uuid5(namespace, mend_surrogates(text)))
