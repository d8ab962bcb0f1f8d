"""Insertion of calls with their results into a history by a program, in the order that every vendor accepts."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from ..errors import ConfigurationError
from ..executor import ToolCallResult
from ..executor.results import NO_OUTPUT, output_content
from ..messages.calls import NOT_ONE_OBJECT, GivenCall, ToolCallRecord, calls_of, compact, open_end, read_call
from ..messages.metadata import KEY

GivenResults = Iterable[ToolMessage | ToolCallResult] | Mapping[str, Any]
"""Results: tool messages, a `ToolExecutor`'s results, or values by call id."""


def add_assistant_tool_calls(messages: Sequence[BaseMessage], calls: Iterable[GivenCall], text: str = "") -> list[BaseMessage]:
    """Return the messages followed by an AI message with these calls.

    Args:
        messages: The history. It is not changed.
        calls: The calls, in order. The raw text of arguments that are given as JSON is what a vendor is sent again.
        text: The model's text beside the calls.

    Returns:
        A new list. A call without an id has a new one.

    Raises:
        ConfigurationError: A call has no name, its arguments are not one complete JSON object, or two calls have one id.
    """
    records = [_record(call) for call in calls]
    ids = [record.id for record in records]
    if len(set(ids)) < len(ids):
        raise ConfigurationError(f"two calls have one id: {', '.join(map(repr, ids))}")
    if not records:
        raise ConfigurationError("there are no calls to add")
    entries = [{"name": record.name, "args": record.args, "id": record.id, "type": "tool_call"} for record in records]
    raw = [{"id": record.id, "arguments": record.arguments} for record in records]
    return [*messages, AIMessage(text, tool_calls=entries, response_metadata={KEY: {"calls": raw}})]


def add_tool_calls_and_results(
    messages: Sequence[BaseMessage],
    calls: Iterable[GivenCall],
    results: GivenResults,
    *,
    text: str = "",
    auto_assistant_tool_calls: bool = False,
) -> list[BaseMessage]:
    """Return the messages followed by an AI message with these calls, and by the results in the order of the calls.

    Args:
        messages: The history. It is not changed.
        calls: The calls, as for `add_assistant_tool_calls`. Without any, the results answer the calls that the history ends in.
        results: Tool messages, `ToolCallResult`s, or values by call id (a string as it is, all else as JSON). A call without a result
            stays open.
        text: The model's text beside the calls.
        auto_assistant_tool_calls: Make a call, without arguments, for each result that answers none. Without it, such a result is an error.

    Raises:
        ConfigurationError: As of `add_assistant_tool_calls`, a result answers no call, or two answer one.
    """
    given = _by_id(results)
    records = [_record(call) for call in calls]
    asked, there = (None, []) if records else open_end(messages)
    answered = {message.tool_call_id for message in there}
    waiting = [call.id for call in calls_of(asked) if call.id not in answered] if asked else []
    orphans = [call_id for call_id in given if call_id not in {*waiting, *(record.id for record in records)}]
    if orphans and (waiting or not auto_assistant_tool_calls):
        raise ConfigurationError(f"results answer no call that is open: {', '.join(map(repr, orphans))}")
    if asked is not None and waiting:
        end = max(number for number, message in enumerate(messages) if message is asked) + 1
        before = {message.tool_call_id: message for message in messages[end:] if isinstance(message, ToolMessage)}
        return [*messages[:end], *_in_order(asked, {**before, **given})]
    records += [ToolCallRecord(call_id, given[call_id].name or "unnamed_tool", "{}", {}) for call_id in orphans]
    history = add_assistant_tool_calls(messages, records, text)
    return [*history, *_in_order(history[-1], given)]


def _in_order(message: BaseMessage, results: Mapping[str, ToolMessage]) -> list[ToolMessage]:
    """Return the results of a message's calls in the order of the calls, each with its call's name."""
    calls = calls_of(message) if isinstance(message, AIMessage) else []
    return [_named(results[call.id], call.name) for call in calls if call.id in results]


def _record(call: GivenCall) -> ToolCallRecord:
    """Return the call as a record; raise if its arguments cannot be used."""
    try:
        record = read_call(call)
    except TypeError as error:
        nameless = f"call {call.get('id')!r} has no name" if isinstance(call, Mapping) else str(error)
        raise ConfigurationError(nameless) from None
    if not record.name:
        raise ConfigurationError(f"call {record.id!r} has no name")
    if record.args is None:
        why = "are not one complete JSON object" if record.why in (None, NOT_ONE_OBJECT) else f"cannot be used ({record.why})"
        raise ConfigurationError(f"the arguments of call {record.id!r} of {record.name!r} {why}: {record.arguments!r:.200}")
    return replace(record, id=record.id or f"call_{uuid.uuid4().hex}", arguments=record.arguments or compact(record.args))


def _by_id(results: GivenResults) -> dict[str, ToolMessage]:
    """Return the results as tool messages, by the id of the call that each answers."""
    if isinstance(results, Mapping):
        return {call_id: ToolMessage(output_content(value) or NO_OUTPUT, tool_call_id=call_id) for call_id, value in results.items()}
    found: dict[str, ToolMessage] = {}
    for result in results:
        message = result.message if isinstance(result, ToolCallResult) else result
        if not isinstance(message, ToolMessage):
            raise ConfigurationError(f"a result is a ToolMessage or a ToolCallResult, not {result!r:.200}")
        if message.tool_call_id in found:
            raise ConfigurationError(f"two results answer call {message.tool_call_id!r}")
        found[message.tool_call_id] = message
    return found


def _named(message: ToolMessage, name: str) -> ToolMessage:
    return message if message.name else message.model_copy(update={"name": name})
