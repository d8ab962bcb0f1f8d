"""The end of a run, as recorded in its run message."""

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage

from .calls import entries_of_awaited
from .finish_reasons import BLOCKING, stop_reason_of
from .metadata import own_metadata
from .pauses import is_paused
from .stop_reasons import StopReason

_SAID_BY = ("finish_reason", "stop_reason", "done_reason")
_CUT_BY_US: Mapping[str, StopReason] = {"cancelled": "cancelled", "deadline": "deadline"}
_FINISHED = ("complete", "return_direct", None)


class HoldsRun:
    """An object that holds a run message and is accepted in its place, also as a tool's return value.

    Attributes:
        message: The run message.
        messages: The new messages.
        output: The parsed output; None if there is none.
    """

    message: AIMessage
    messages: Sequence[BaseMessage]
    output: Any


def run_message_of(value: Any) -> AIMessage | None:
    """Return the run message that a value is or holds; None for other values."""
    held = held_message(value)
    return held if isinstance(held, AIMessage) else None


def held_message(value: BaseMessage | HoldsRun) -> BaseMessage:
    """Return the run message that a value holds; other values unchanged."""
    return value.message if isinstance(value, HoldsRun) else value


def is_finished(run: AIMessage) -> bool:
    """Whether a run ended by itself: with an answer, or with a result for the user."""
    return stop_reason(run) in _FINISHED


def stop_reason(run: BaseMessage | HoldsRun) -> StopReason | None:
    """Return why a run ended; for a model without tools, from the reply's finish reason.

    Args:
        run: The result of `invoke` or of an agent's `run`, a chunk of `stream`, or the sum of its chunks.

    Returns:
        The reason; None for a chunk that is not the last one.

    Raises:
        ValueError: `run` is not an AI message.
    """
    run = held_message(run)
    if not isinstance(run, AIMessage):
        raise ValueError(f"stop_reason takes what a chat model returned, not a {type(run).__name__}")
    recorded = own_metadata(run).get("stop_reason")
    if recorded in get_args(StopReason):
        return recorded
    finish = next((str(run.response_metadata[name]) for name in _SAID_BY if run.response_metadata.get(name)), "")
    if isinstance(run, AIMessageChunk) and run.chunk_position != "last" and not finish:
        return None
    if run.additional_kwargs.get("refusal"):
        return "refused"
    if finish in _CUT_BY_US:
        return _CUT_BY_US[finish]
    if finish.lower() in BLOCKING:
        return stop_reason_of(finish)
    if run.tool_calls or entries_of_awaited(run):
        return "calls_pending"
    return "incomplete" if is_paused(run) else "complete"


def max_turns_reached(run: BaseMessage | HoldsRun) -> bool:
    """Whether a run ended at its limit of turns (`max_turns`).

    Raises:
        ValueError: `run` is not an AI message.
    """
    return stop_reason(run) == "max_turns"
