"""How the messages of a run are kept inside one message, its run message, with the reason why it ended."""

import json
import logging
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, Literal, TypeVar, cast, get_args

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage, messages_from_dict, messages_to_dict
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.utils import message_chunk_to_message

from ..compat import UNPARSABLE
from ..strict_json import mend_surrogates
from .calls import awaited_calls, call_ids, entries_of_awaited, records_of
from .metadata import ASKED, KEY, attached_messages, own_metadata, text_of, with_own_metadata, without_artifact

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

The first three are natural ends. `refused` is the model's or the vendor's refusal. `length` and `incomplete` mean that the last reply was
cut off, at its token limit or by anything else. `cancelled` is the caller's cancellation, `stop_when` the caller's condition. The others
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


BLOCKING = frozenset(
    {
        *AT_TOKEN_LIMIT,
        *REFUSALS,
        *("error", "incomplete", "failed", "cancelled", "canceled", "aborted", "abort", "continuation", "other", "language"),
        *("malformed_function_call", "unexpected_tool_call", "too_many_tool_calls", "insufficient_system_resource"),
        *("malformed_response", "missing_thought_signature", "escalation", "pup_limited_disabled", "image_other", "no_image"),
        *("tool_use_failed", "malformed_tool_use", "malformed_model_output", "deadline"),
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
    return str(message.response_metadata.get("finish_reason") or "").lower() in _PAUSES


def pause_content(message: AIMessage) -> str:
    """Return the content of a paused turn without ids and without the pause block itself."""
    blocks, pause = (
        message.content if isinstance(message.content, list) else [message.content],
        message.response_metadata.get("finish_reason"),
    )
    plain = [_without_ids(block) for block in blocks if block]
    kept = [block for block in plain if not (isinstance(block, dict) and block.get("type") == str(pause).lower())]
    return json.dumps(kept, sort_keys=True, default=str)


def _without_ids(block: Any) -> Any:
    if not isinstance(block, dict):
        return block
    inner = block.get("value") if block.get("type") == "non_standard" else block
    return {key: value for key, value in inner.items() if key not in _NOT_SAID} if isinstance(inner, dict) else inner


# ---------------------------------------------------------------------------------------------- endings
# The end of a run, as recorded in its run message.


_SAID_BY = ("finish_reason", "stop_reason", "stopReason", "done_reason", "finishReason")
_CUT_BY_US: Mapping[str, StopReason] = {"cancelled": "cancelled", "deadline": "deadline"}


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


_OPEN_RUN = "open_run"
OPEN_CALLS = "open_calls"
"""The key, in a run message's metadata, of the pending calls of runs inside its tools, as they are shown."""


def open_run(message: BaseMessage) -> Mapping[str, Any] | None:
    """Return the record of the run that waits inside the call of a result; None for other messages, and for an invalid record."""
    record = own_metadata(message).get(_OPEN_RUN)
    return record if isinstance(record, Mapping) and isinstance(record.get("calls"), list) else None


def metadata_of_open_run(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a result with this record."""
    return {KEY: {_OPEN_RUN: record}}


def open_results(results: Iterable[ToolMessage]) -> list[ToolMessage]:
    """Return the last result of each call if a run waits inside it."""
    last = {result.tool_call_id: result for result in results}
    return [result for result in last.values() if open_run(result) is not None]


def in_call_order(message: AIMessage, results: Iterable[ToolMessage]) -> list[ToolMessage]:
    """Return results of a message's calls in the order of the calls."""
    places = {call_id: place for place, call_id in enumerate(call_ids(message))}
    return sorted(results, key=lambda result: places.get(result.tool_call_id, len(places)))


def shown_entries(message: BaseMessage | None, results: Iterable[ToolMessage]) -> Sequence[Any]:
    """Return the pending calls of runs inside tools, as their dicts: those that a run message names, and those in results."""
    named = () if message is None else own_metadata(message).get(OPEN_CALLS)
    opened = open_results(results)
    ordered = in_call_order(message, opened) if opened and isinstance(message, AIMessage) else opened
    inside = [entry for result in ordered for entry in (open_run(result) or {})["calls"]]
    return [*(named if isinstance(named, list) else ()), *inside]


# ---------------------------------------------------------------------------------------------- carrier
# Run messages and the messages they carry: reading, marking, and removal.
#
# Everything here is a pure function of plain LangChain messages.


_logger = logging.getLogger("langchain_autotools")


_OF_A_RUN = frozenset({"messages", "stop_reason", "turns", "usage", ASKED, OPEN_CALLS, "message_sent"})
_DEEPEST = 100
_MISREAD = (LookupError, TypeError, ValueError, AttributeError)
"""Errors that LangChain raises for entries that are no messages."""

_M = TypeVar("_M", bound=BaseMessage)


# ---------------------------------------------------------------------------------------------- the carrier


def carried_messages(message: BaseMessage) -> list[BaseMessage] | None:
    """Return the messages that a run message carries; None for other messages, and where none of what it carries is a message.

    A message that comes from a client may hold anything. A run makes AI and tool messages, and takes messages of the user, which have an
    id then: all others are left out, or a client could put words into the mouth of the system.
    """
    entries = own_metadata(message).get("messages")
    if not isinstance(entries, list):
        return None
    try:
        messages: list[Any] = messages_from_dict(entries)
    except _MISREAD:
        messages = [_read(entry) for entry in entries]
    kept: list[BaseMessage] = [
        one for one in messages if isinstance(one, AIMessage | ToolMessage) or (type(one) is HumanMessage and bool(one.id))
    ]
    if len(kept) != len(messages):
        known = set(map(id, kept))
        foreign = sorted({type(one).__name__ for one in messages if id(one) not in known})
        _logger.warning("a message carries what no run makes, which is left out: %s", ", ".join(foreign))
    return kept if not entries or any(isinstance(one, BaseMessage) for one in messages) else None


def _read(entry: Any) -> Any:
    """Return the message of an entry; an entry that is none unchanged."""
    try:
        return messages_from_dict([entry])[0]
    except _MISREAD:
        return entry


def serialize_messages(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """Return messages as plain data for the carrier. Artifacts that are not plain data are replaced by a mark."""
    plain = [
        without_artifact(one) if isinstance(one, ToolMessage) and one.artifact is not None and not _is_plain_data(one.artifact) else one
        for one in messages
    ]
    return messages_to_dict(plain)


def _is_plain_data(value: Any, depth: int = _DEEPEST) -> bool:
    """Whether a value is plain data, nested at most `depth` levels deep."""
    if value is None or isinstance(value, bool | int | float | str):
        return True
    if not depth:
        return False
    if type(value) is dict:
        return all(type(key) is str and _is_plain_data(item, depth - 1) for key, item in value.items())
    return type(value) is list and all(_is_plain_data(item, depth - 1) for item in value)


def without_carrier(message: _M) -> _M:
    """Return the message without metadata of a run; the same object if there is none."""
    own = own_metadata(message)
    if not _OF_A_RUN & own.keys():
        return message
    kept = {key: value for key, value in own.items() if key not in _OF_A_RUN}
    return message.model_copy(update={"response_metadata": with_own_metadata(message.response_metadata, kept)})


# ---------------------------------------------------------------------------------------------- for users


def new_messages(source: BaseMessage | HoldsRun | BaseException) -> list[BaseMessage]:
    """Return the plain messages of a chunk, a run message or an error of a run.

    Over a stream: the messages of all chunks, one after another, are those of their sum and those of `invoke`.

    Args:
        source: A chunk of `stream`, the result of `invoke` (also without constructor tools), an `AgentResult`, or the exception
            that ended a run. Of an exception it is what had completed and no chunk has delivered; it is found through
            `__cause__`, `__context__` and exception groups too.

    Returns:
        New messages in order, ready to be appended to the history. Empty for a chunk that completes none.

    Raises:
        ValueError: `source` is neither a message nor an exception.
    """
    if isinstance(source, BaseException):
        return _of_error(source, set()) or []
    if isinstance(source, HoldsRun):
        return list(source.messages)
    messages = attached_messages(source)
    try:
        messages = carried_messages(source) if messages is None else messages
    except AttributeError:
        raise _no_message("new_messages", source) from None
    if messages is not None:
        return messages
    if not isinstance(source, AIMessageChunk):
        return [source]
    says = source.content or source.tool_call_chunks or source.tool_calls or source.invalid_tool_calls or source.additional_kwargs
    return [_with_decided_calls(message_chunk_to_message(source))] if says and source.chunk_position == "last" else []


def results_of(run: BaseMessage | HoldsRun | BaseException) -> list[ToolMessage]:
    """Return the tool results of a run, a chunk or an error of a run: the tool messages among its `new_messages`.

    Args:
        run: As of `new_messages`.
    """
    return [message for message in new_messages(run) if isinstance(message, ToolMessage)]


def _with_decided_calls(message: BaseMessage) -> BaseMessage:
    """Return the message of summed chunks with the calls that the turn's end decided, since chunks may hold more."""
    records = records_of(message)
    if not isinstance(message, AIMessage) or not (records or message.invalid_tool_calls):
        return message
    invalid = [
        {**call, "args": str(call["args"] or "").removeprefix(UNPARSABLE), "error": call["error"] or records.get(call["id"], {}).get("why")}
        for call in message.invalid_tool_calls
    ]
    entries = [{key: value for key, value in entry.items() if key != "why"} for entry in records.values()]
    own = {key: value for key, value in own_metadata(message).items() if key != "calls"}
    if adds_to_message(entries, mixed=bool(message.tool_calls and invalid)):
        own["calls"] = entries
    metadata = with_own_metadata(message.response_metadata, own)
    return message.model_copy(update={"invalid_tool_calls": invalid, "response_metadata": metadata})


def adds_to_message(entries: Sequence[Mapping[str, Any]], *, mixed: bool) -> bool:
    """Whether the call records hold more than the message itself: more than ids, or the order among invalid calls."""
    return mixed or any(entry.keys() != {"id"} for entry in entries)


def _no_message(function: str, value: object) -> ValueError:
    return ValueError(f"{function} takes what a chat model returned, not a {type(value).__name__}")


def _of_error(error: BaseException | None, seen: set[int]) -> list[BaseMessage] | None:
    if error is None or id(error) in seen:
        return None
    seen.add(id(error))
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    others = (_of_error(other, seen) for other in (error.__cause__, error.__context__, *inner))
    return next((found for found in chain([attached_messages(error)], others) if found is not None), None)


def final_message(run: BaseMessage | HoldsRun) -> AIMessage:
    """Return the last AI message of a run, without the texts of earlier turns: `model | final_message | parser`.

    Raises:
        ValueError: `run` is not an AI message.
    """
    run = held_message(run)
    if not isinstance(run, AIMessage):
        raise _no_message("final_message", run)
    for message in reversed(carried_messages(run) or attached_messages(run) or ()):
        if isinstance(message, AIMessage):
            return message
    plain = _with_decided_calls(message_chunk_to_message(run)) if isinstance(run, AIMessageChunk) else run
    return without_carrier(cast("AIMessage", plain))


def run_usage(run: BaseMessage | HoldsRun) -> UsageMetadata | None:
    """Return the token usage of all turns of a run; None if no turn reported any.

    Replies for which a turn was made again count too, and those of models and agents that are given as tools.
    (`usage_metadata` of a run message is its last turn's: the size of the context.)

    Raises:
        ValueError: `run` is not a message.
    """
    run = held_message(run)
    if not isinstance(run, BaseMessage):
        raise _no_message("run_usage", run)
    usage = own_metadata(run).get("usage")
    return usage if usage is not None else getattr(run, "usage_metadata", None)


# ---------------------------------------------------------------------------------------------- places
# Positions of messages in a run: their turn, their number in it, and the ids derived from these.


_NAMESPACE = uuid.UUID("6b1f0c0e-7b8e-5d0a-9d59-6f6a1c3c4f11")

may_repeat: Final = re.compile(r"(?s)(?!.{22})([A-Za-z]+[-_])*.{0,11}").fullmatch
"""Whether a server may give two replies this id: words such as `chatcmpl-` are followed by fewer than 12 characters. 22 characters can hold
128 random bits in base64, whose letters and dashes may look like words."""


def position_metadata(generation: str | None, number: int) -> dict[str, Any]:
    """Return a message's position as metadata.

    Args:
        generation: The turn's `generation_id`; None where it is not known.
        number: The message's number within the turn: 0 for the AI message, then its results in call order.
    """
    turn = {} if generation is None else {"generation_id": generation}
    call = {"tool_call_idx": number - 1} if number else {}
    return {**turn, "message_order_idx": number, **call}


def numbered_result(message: _M, of: AIMessage, position: int) -> _M:
    """Return the result of the call at `position` with its position; unchanged if the message's turn is unknown."""
    generation = of.response_metadata.get("generation_id")
    return message if generation is None else numbered(message, generation, position + 1)


def numbered(message: _M, generation: str, number: int) -> _M:
    """Return a message of a model turn with its position: 0 for the AI message, then its results in call order."""
    return message.model_copy(update={"response_metadata": {**message.response_metadata, **position_metadata(generation, number)}})


def generation_id(message: AIMessage, position: int, cached_id: str | None = None) -> str:
    """Return the id of one model turn, derived from its message and the number of messages before it.

    Args:
        message: The message.
        position: The number of messages before it.
        cached_id: The id under which LangChain's cache has the message. The next request holds what is derived from it, and must be found
            in the cache too.
    """
    calls = "\x1f".join(str(call) for call in call_ids(message))
    return derived_id(_NAMESPACE, f"{position}\x1e{cached_id or message.id}\x1e{calls}\x1e{text_of(message)}")


def result_id(asked: AIMessage, call_id: str) -> str | None:
    """Return the id of a call's result, derived from the message with the call; None if that has no id.

    Replies from a cache share their `generation_id`; their messages' ids differ."""
    generation = asked.response_metadata.get("generation_id")
    turn = f"{generation}\x1e{asked.id}" if generation and asked.id else generation or asked.id
    return derived_id(_NAMESPACE, f"{turn}\x1e{call_id}") if turn else None


def derived_id(namespace: uuid.UUID, text: str) -> str:
    """Return the UUID derived from any text a model may write; lone surrogates count as U+FFFD."""
    return str(uuid.uuid5(namespace, mend_surrogates(text)))


# ---------------------------------------------------------------------------------------------- joints
# Separators between the texts of a run's messages.


@dataclass(eq=False, repr=False)
class Separators:
    """Tracks the texts of a run's messages, in order, and returns the separators between them.

    A separator precedes the first text after tool calls or a message of the user, unless the text so far ends in white space. A turn
    that continues a paused one continues its text too.

    Args:
        separator: The separator.

    Attributes:
        is_due: Whether tool calls or a message of the user are between the text so far and the next one.
        last: The last text; may be set in place of calling `before` while no separator is due.
    """

    separator: str
    is_due: bool = False
    last: str = ""

    @property
    def pending(self) -> str:
        """The separator before the next text; empty if none is due."""
        return self.separator if self.is_due and self.last and not self.last[-1].isspace() else ""

    def before(self, text: str) -> str:
        """Record the next text, and return the separator before it; empty if none is due."""
        if not text:
            return ""
        separator = self.pending if self.is_due else ""
        self.last, self.is_due = text, False
        return separator

    def ended(self, message: AIMessage) -> None:
        """Record the end of a message: a separator is due after one with tool calls, or with the vendor's own that the caller answers."""
        self.is_due = self.is_due or bool(message.tool_calls or message.invalid_tool_calls or awaited_calls(message))

    def ask(self) -> None:
        """Record that a separator is due before the next text: a direct result, or what comes after a message of the user."""
        self.is_due = True
