"""The events of a run that has ended, made of its messages."""

from collections.abc import Iterator

from langchain_core.messages import AIMessage, ToolMessage

from ..event_types import CallReady, CallResult, CallsPending, MessageDone, ReasoningDelta, RunEnded, RunEvent, TextDelta
from ..executor.pending import pending_calls
from ..messages.calls import ToolCallRecord, calls_of
from ..messages.carrier import run_usage
from ..messages.deltas import deltas_of
from ..messages.endings import HoldsRun, stop_reason
from ..messages.metadata import own_metadata


def events_of(run: HoldsRun) -> Iterator[RunEvent]:
    """The events of a run, as far as its messages know them: not how long its calls took, nor what their tools reported."""
    run_id = str(run.message.id)
    calls: dict[str, tuple[int, ToolCallRecord]] = {}
    for message in run.messages:
        if isinstance(message, AIMessage):
            calls = {call.id: (index, call) for index, call in enumerate(calls_of(message))}
            yield from _reply(run_id, message, calls)
        elif isinstance(message, ToolMessage):
            asked_before = 0, ToolCallRecord(message.tool_call_id, message.name or "a call", "", {})  # of a run that was resumed
            index, call = calls.get(message.tool_call_id, asked_before)
            yield CallResult(run_id=run_id, call=call, index=index, message=message)
            yield MessageDone(run_id=run_id, message=message)
    if waiting := pending_calls(run):
        yield CallsPending(run_id=run_id, calls=waiting)
    turns = own_metadata(run.message).get("turns", 1)
    yield RunEnded(run_id=run_id, stop_reason=stop_reason(run) or "complete", turns=turns, usage=run_usage(run))


def _reply(run_id: str, message: AIMessage, calls: dict[str, tuple[int, ToolCallRecord]]) -> Iterator[RunEvent]:
    message_id = str(message.id)
    for kind, text in deltas_of(message.content, message.additional_kwargs):
        delta = TextDelta if kind == "text" else ReasoningDelta
        yield delta(run_id=run_id, message_id=message_id, text=text)
    for index, call in calls.values():
        yield CallReady(run_id=run_id, message_id=message_id, call=call, index=index)
    yield MessageDone(run_id=run_id, message=message)
