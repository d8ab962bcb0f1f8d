"""Events of finished runs, recreated from their messages."""

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import groupby

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata, add_usage

from ..event_types import CallReady, CallResult, CallsPending, MessageDone, ReasoningDelta, RunEnded, RunEvent, TextDelta
from ..executor.approval.pending import PendingCall, pending_calls
from ..history.expansion import expand
from ..messages.calls import ToolCallRecord, calls_of
from ..messages.carrier import new_messages, run_usage
from ..messages.deltas import deltas_of
from ..messages.endings import HoldsRun, held_message, stop_reason
from ..messages.metadata import own_metadata
from .kept_finds import finds_of


def events_of(run: HoldsRun | AIMessage) -> Iterator[RunEvent]:
    """Yield the events of a run that its messages contain: without durations and progress reports."""
    message = held_message(run)
    run_id = str(message.id)
    yield from _messages(run_id, new_messages(run) or [message], pending_calls(run))
    turns = own_metadata(message).get("turns", 1)
    yield RunEnded(run_id=run_id, stop_reason=stop_reason(run) or "complete", turns=turns, usage=run_usage(run))


def history_events(history: Sequence[BaseMessage]) -> Iterator[RunEvent | BaseMessage]:
    """The messages of a history that a model was given, and the events of what followed as a run each time. Run messages are expanded."""
    waiting = pending_calls(history)
    groups = [(given, list(group)) for given, group in groupby(expand(history), lambda one: not isinstance(one, AIMessage | ToolMessage))]
    for number, (given, messages) in enumerate(groups):
        run_id = f"run {number}"
        if given:
            yield from messages
            continue
        open_calls = waiting if number == len(groups) - 1 else []
        yield from _messages(run_id, messages, open_calls)
        replies = [message for message in messages if isinstance(message, AIMessage)]
        if not replies:
            continue
        used: list[UsageMetadata] = [one.usage_metadata for one in replies if one.usage_metadata]
        usage = reduce(add_usage, used) if used else None
        reason = "calls_pending" if open_calls else stop_reason(replies[-1]) if messages[-1] is replies[-1] else None
        yield RunEnded(run_id=run_id, stop_reason=reason or "complete", turns=len(replies), usage=usage)


def _messages(run_id: str, messages: Sequence[BaseMessage], waiting: Sequence[PendingCall]) -> Iterator[RunEvent]:
    calls: dict[str, tuple[int, ToolCallRecord]] = {}
    for message in messages:
        if isinstance(message, AIMessage):
            calls = {call.id: (index, call) for index, call in enumerate(calls_of(message))}
            yield from _reply(run_id, message, calls)
        elif isinstance(message, ToolMessage):
            asked_before = 0, ToolCallRecord(message.tool_call_id, message.name or "a call", "", {})  # of a run that was resumed
            index, call = calls.get(message.tool_call_id, asked_before)
            yield CallResult(run_id=run_id, call=call, index=index, message=message)
            yield MessageDone(run_id=run_id, message=message)
    if waiting:
        yield CallsPending(run_id=run_id, calls=waiting)


def _reply(run_id: str, message: AIMessage, calls: dict[str, tuple[int, ToolCallRecord]]) -> Iterator[RunEvent]:
    message_id = str(message.id)
    for kind, text in deltas_of(message.content, message.additional_kwargs):
        delta = TextDelta if kind == "text" else ReasoningDelta
        yield delta(run_id=run_id, message_id=message_id, text=text)
    yield from finds_of(run_id, message)
    for index, call in calls.values():
        yield CallReady(run_id=run_id, message_id=message_id, call=call, index=index)
    yield MessageDone(run_id=run_id, message=message)
