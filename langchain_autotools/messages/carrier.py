"""Run messages and the messages they carry: reading, marking, and removal.

Everything here is a pure function of plain LangChain messages.
"""

import logging
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, TypeVar, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage, messages_from_dict, messages_to_dict
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.utils import message_chunk_to_message

from ..compat import UNPARSABLE
from .artifacts import without_artifact
from .calls import records_of
from .endings import HoldsRun, held_message
from .live import attached_messages
from .metadata import ASKED, own_metadata, with_own_metadata
from .open_runs import OPEN_CALLS

_logger = logging.getLogger("langchain_autotools")


_OF_A_RUN = frozenset({"messages", "stop_reason", "turns", "usage", ASKED, OPEN_CALLS})
_DEEPEST = 100
_MISREAD = (LookupError, TypeError, ValueError, AttributeError)
"""Errors that LangChain raises for entries that are no messages."""

_M = TypeVar("_M", bound=BaseMessage)


# ---------------------------------------------------------------------------------------------- the carrier


def carried_messages(message: BaseMessage) -> list[BaseMessage] | None:
    """Return the messages that a run message carries; None for other messages, and where none of what it carries is a message.

    A message that comes from a client may hold anything. A run makes AI and tool messages: all others are left out, or a client
    could put words into the mouth of the system or the user.
    """
    entries = own_metadata(message).get("messages")
    if not isinstance(entries, list):
        return None
    try:
        messages: list[Any] = messages_from_dict(entries)
    except _MISREAD:
        messages = [_read(entry) for entry in entries]
    kept: list[BaseMessage] = [one for one in messages if isinstance(one, AIMessage | ToolMessage)]
    if len(kept) != len(messages):
        foreign = sorted({type(one).__name__ for one in messages} - {type(one).__name__ for one in kept})
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
    return messages_to_dict([_plain(message) for message in messages])


def _plain(message: BaseMessage) -> BaseMessage:
    if not isinstance(message, ToolMessage) or message.artifact is None or _is_plain_data(message.artifact):
        return message
    return without_artifact(message)


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
    if tells(entries, mixed=bool(message.tool_calls and invalid)):
        own["calls"] = entries
    metadata = with_own_metadata(message.response_metadata, own)
    return message.model_copy(update={"invalid_tool_calls": invalid, "response_metadata": metadata})


def tells(entries: Sequence[Mapping[str, Any]], *, mixed: bool) -> bool:
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
