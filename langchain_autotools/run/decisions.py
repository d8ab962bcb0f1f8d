"""The calls that a history ends in, and what was decided about them.

A history may come from a client. Nothing in it runs unless a decision says so, and a decision is about a call that is there, as
the model wrote it.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from ..errors import ConfigurationError
from ..executor import ToolExecutor
from ..messages.calls import ToolCallRecord, calls_of, records_of
from ..strict_json import read_object
from .loop import Decision, OpenCalls

__all__ = ["open_calls", "ran_with"]

_INTERRUPTED = "This call was interrupted before it ran. Call the tool again if the result is still needed."
_REFUSED = "This call was denied and did not run."
_RAN_WITH = "The arguments of this call were changed before it ran. It ran with: {arguments}"
_MEANT_WITH = "The arguments of this call were changed, and it did not run. They were changed to: {arguments}"
_NOTHING_WAITS = "resume decides about calls without results at the end of the history, and there are none"


def open_calls(
    history: Sequence[BaseMessage],
    decisions: Mapping[str, Decision] | Literal[True] | None,
    executor: ToolExecutor,
    caller_tools: Collection[str],
) -> OpenCalls | None:
    """The calls without results that a history ends in; None if there are none.

    Args:
        history: The repaired history.
        decisions: What to do with these calls, by id; True to execute all. None: they are answered as interrupted.
        executor: Executes them.
        caller_tools: Names of tools that the caller only declared.

    Raises:
        ConfigurationError: A decision is about no such call, there is none to decide about, or one that is to be executed was
            changed since the model wrote it or belongs to no tool of the executor.
    """
    message, answered = _open_end(history)
    calls = [(number, call) for number, call in enumerate(calls_of(message)) if call.id not in answered] if message else []
    if decisions is None:
        refused = [(number, replace(call, args=None, why=_INTERRUPTED)) for number, call in calls]
        return OpenCalls(message, refused) if message and calls else None
    if message is None or not calls:
        raise ConfigurationError(_NOTHING_WAITS)
    waiting = [call.id for _, call in calls]
    unknown = [] if decisions is True else [call_id for call_id in decisions if call_id not in waiting]
    if unknown:
        raise ConfigurationError(f"resume decides about {_listed(unknown)}, but the calls that wait are {_listed(waiting)}")
    by_id = dict.fromkeys(waiting, True) if decisions is True else decisions
    decided = [(number, call) for number, call in calls if call.id in by_id or call.args is None]
    for _, call in decided:
        _check(message, call, by_id.get(call.id), executor, caller_tools)
    edited = {call.id for _, call in decided if isinstance(by_id.get(call.id), Mapping) and by_id[call.id] != call.args}
    pending = [call for _, call in calls if call.id not in by_id and call.args is not None]
    return OpenCalls(message, [(number, _decided(call, by_id.get(call.id, True))) for number, call in decided], pending, edited)


def ran_with(message: ToolMessage, call: ToolCallRecord, *, executed: bool) -> ToolMessage:
    """The result of a call whose arguments a decision replaced, saying what it ran with, or would have: the history has the model's own."""
    note = (_RAN_WITH if executed else _MEANT_WITH).format(arguments=call.arguments)
    content = message.content
    told = f"{note}\n\n{content}" if isinstance(content, str) else [{"type": "text", "text": note}, *content]
    return message.model_copy(update={"content": told})


def _check(message: AIMessage, call: ToolCallRecord, decision: Decision | None, executor: ToolExecutor, callers: Collection[str]) -> None:
    if decision is True and _is_rewritten(message, call):
        raise ConfigurationError(
            f"call {call.id!r} has other arguments than the model wrote: to execute it, give the arguments that it is to run with"
        )
    executed = decision is True or isinstance(decision, Mapping)
    (meant,) = executor.meant([replace(call, args={})], caller_tools=callers)
    if executed and meant.name in callers and executor.find(call.name) is None:
        raise ConfigurationError(
            f"call {call.id!r} cannot be executed: {meant.name!r} was only declared; run it yourself and append its ToolMessage"
        )


def _is_rewritten(message: AIMessage, call: ToolCallRecord) -> bool:
    """Whether the recorded text of the arguments says something else than the call. Where there is no record, the call is believed."""
    raw = records_of(message).get(call.id, {}).get("arguments")
    return raw is not None and (not isinstance(raw, str) or read_object(raw) != call.args)


def _decided(call: ToolCallRecord, decision: Decision) -> ToolCallRecord:
    if decision is True:
        return call
    if isinstance(decision, Mapping):
        return replace(call, args=dict(decision), arguments=json.dumps(decision, ensure_ascii=False, default=str), why=None)
    return replace(call, args=None, why=decision or _REFUSED)


def _listed(ids: Sequence[object]) -> str:
    return ", ".join(repr(one) for one in ids[:20])


def _open_end(history: Sequence[BaseMessage]) -> tuple[AIMessage | None, set[str]]:
    """The AI message whose calls or results the history ends in, and the ids of its results."""
    results: set[str] = set()
    for message in reversed(history):
        if isinstance(message, ToolMessage):
            results.add(message.tool_call_id)
        else:
            return (message if isinstance(message, AIMessage) else None), results
    return None, results
