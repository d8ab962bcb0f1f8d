"""Conversion of histories to table rows and back, one row per message with its position."""

from collections.abc import Iterable, Sequence
from typing import Any, TypedDict

from langchain_core.messages import AIMessage, BaseMessage, BaseMessageChunk, ToolMessage, message_chunk_to_message, messages_from_dict

from ..errors import ConfigurationError
from ..messages.calls import call_ids
from ..messages.carrier import serialize_messages
from ..messages.places import generation_id
from .expansion import expand


class GenerationRow(TypedDict):
    """One message of a history, as plain data.

    Attributes:
        position: The message's number in the history.
        generation_id: The model turn that it belongs to; None for a message of the system or the user.
        message_order_idx: Its number within the turn: 0 for the AI message, then its results.
        tool_call_idx: The position of a result's call among the calls of the turn; else None.
        message: The message, as `langchain_core.messages.messages_to_dict` writes it.
    """

    position: int
    generation_id: str | None
    message_order_idx: int
    tool_call_idx: int | None
    message: dict[str, Any]


def split_generations(messages: Sequence[BaseMessage], *, start: int = 0) -> list[GenerationRow]:
    """Turn a history into rows, one for each message.

    A message that says itself where it stands (those of a run do) is believed; for all others that is derived from the history, the same
    each time. The messages are not changed.

    Args:
        messages: The history. A run message is replaced by the messages that it carries, a loose chunk by the message that it is.
        start: The number of the first message, where rows of the messages before it are stored already.

    Returns:
        The rows, in order. An artifact that is not plain data is marked in its row, not kept.
    """
    plain = [message_chunk_to_message(message) if isinstance(message, BaseMessageChunk) else message for message in expand(messages)]
    rows: list[GenerationRow] = []
    turn: AIMessage | None = None
    generation: str | None = None
    results = 0
    for position, (message, data) in enumerate(zip(plain, serialize_messages(plain), strict=True), start):
        call: int | None = None
        number = 0
        if isinstance(message, AIMessage):
            turn, results = message, 0
            generation = message.response_metadata.get("generation_id") or generation_id(message, position)
        elif isinstance(message, ToolMessage) and turn is not None:
            call = _call_position(turn, message, results)
            results += 1
            number = message.response_metadata.get("message_order_idx", call + 1)
        else:
            turn = generation = None
        rows.append(GenerationRow(position=position, generation_id=generation, message_order_idx=number, tool_call_idx=call, message=data))
    return rows


def _call_position(turn: AIMessage, result: ToolMessage, results: int) -> int:
    """Return the position of the call that a result answers; without such a call, the result's own among the results."""
    index = result.response_metadata.get("tool_call_idx")
    if isinstance(index, int):
        return index
    ids = call_ids(turn)
    return ids.index(result.tool_call_id) if result.tool_call_id in ids else results


def join_generations(rows: Iterable[GenerationRow]) -> list[BaseMessage]:
    """Return the history of these rows, given in any order.

    Args:
        rows: Rows as `split_generations` makes them; a database may have added columns.

    Raises:
        ConfigurationError: A row has no message or no position, or two rows have the same one.
    """
    by_position: dict[int, dict[str, Any]] = {}
    for row in rows:
        try:
            position, message = row["position"], row["message"]
        except (KeyError, TypeError, IndexError):
            raise ConfigurationError(f"a row of a history has a position and a message, not {row!r:.200}") from None
        if by_position.setdefault(position, message) is not message:
            raise ConfigurationError(f"two rows have the position {position!r}")
    return messages_from_dict([by_position[position] for position in sorted(by_position)])
