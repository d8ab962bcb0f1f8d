"""The reason why a reply or a run has ended, in one vocabulary for all vendors."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage

from .calls import entries_of_awaited
from .metadata import own_metadata

StopReason = Literal[
    "complete",
    "calls_pending",
    "return_direct",
    "max_turns",
    "max_tool_calls",
    "token_budget",
    "max_cost",
    "context_window",
    "deadline",
    "no_progress",
    "refused",
    "length",
    "incomplete",
    "cancelled",
    "stop_when",
]
"""The reason why a run ended.

The first three are natural ends; `refused` is the model's or the vendor's refusal; `length` and `incomplete` mean that the last reply was
cut off, at its token limit or by anything else; `cancelled` is the caller's cancellation, `stop_when` the caller's condition; the others
are limits."""


# ---------------------------------------------------------------------------------------------- finish reasons
# Groups of finish reasons, in every vendor's terms.


REFUSALS = frozenset(
    {
        *("refusal", "refused", "content_filter", "content_filtered", "guardrail_intervened", "prompt_blocked", "model_armor"),
        *("safety", "recitation", "blocklist", "prohibited_content", "spii"),
        *("image_safety", "image_prohibited_content", "image_recitation"),
    }
)
"""Finish reasons, in lower case, of a refusal by the model or its vendor (wire quirks T-04, T-05)."""


AT_TOKEN_LIMIT = frozenset({"length", "max_tokens", "model_length", "max_output_tokens", "model_context_window_exceeded"})
"""Finish reasons, in lower case, of a reply cut off at a token limit (wire quirks T-03, C-15)."""


BROKEN_OFF = frozenset({"incomplete", "error", "failed", "aborted", "abort", "insufficient_system_resource"})
"""Finish reasons, in lower case, of a reply that its server could not complete (wire quirks T-03, E-08)."""


BLOCKING = frozenset(
    {
        *AT_TOKEN_LIMIT,
        *REFUSALS,
        *("error", "incomplete", "failed", "cancelled", "canceled", "aborted", "abort", "continuation", "other", "language"),
        *("malformed_function_call", "unexpected_tool_call", "too_many_tool_calls", "insufficient_system_resource"),
        *("malformed_response", "missing_thought_signature", "escalation", "pup_limited_disabled", "image_other", "no_image"),
        *("tool_use_failed", "deadline"),
    }
)
"""Finish reasons, in lower case, after which no call of the turn may run (wire quirks T-03, T-04, E-08)."""


def stop_reason_of(blocked: str | None) -> StopReason:
    """Return the stop reason of a run whose last reply has no calls.

    Args:
        blocked: The reply's finish reason, where it says that the reply did not end normally.
    """
    reason = (blocked or "").lower()
    if not reason:
        return "complete"
    if reason in REFUSALS:
        return "refused"
    if reason == "deadline":
        return "deadline"
    return "length" if reason in AT_TOKEN_LIMIT else "incomplete"


# ---------------------------------------------------------------------------------------------- pauses
# Turns that a server has paused: detection and content.


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


# ---------------------------------------------------------------------------------------------- endings
# The end of a run, as recorded in its run message.


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
