"""What is asked of the events of any run: every start has its end, and they say what the messages say."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata, add_usage

from langchain_autotools import calls_of, new_messages, pending_calls, run_usage, stop_reason
from langchain_autotools.event_types import (
    CallArgumentsDelta,
    CallDiscarded,
    CallProgress,
    CallReady,
    CallResult,
    CallsPending,
    CallStarted,
    MessageDone,
    MessagesAdded,
    ReasoningDelta,
    RunEnded,
    RunEvent,
    RunFailed,
    RunStarted,
    TextDelta,
    TurnUsage,
    VendorCallDone,
    VendorCallProgress,
    VendorCallStarted,
)
from langchain_autotools.messages import text_of
from langchain_autotools.messages.metadata import KEY
from tests.laws.checks import data_of

ENDS = (RunEnded, RunFailed)
_GIVEN_UP = ("cancelled", "deadline")


def of(kind: type[Any], told: Iterable[RunEvent]) -> list[Any]:
    """The events of a kind."""
    return [event for event in told if isinstance(event, kind)]


def by_run(told: Iterable[RunEvent]) -> dict[str, list[RunEvent]]:
    """The events of each run, runs in the order in which they began."""
    runs: defaultdict[str, list[RunEvent]] = defaultdict(list)
    for event in told:
        runs[event.run_id].append(event)
    return dict(runs)


def check_runs(told: Sequence[RunEvent]) -> None:
    """Every run begins once and ends once, with what was told of it between; those of tools inside the call that made them."""
    runs = by_run(told)
    for run_id, events in runs.items():
        begun = 1 if isinstance(events[0], MessagesAdded) else 0  # an agent's question comes before its run
        assert [type(event) for event in events].count(RunStarted) == 1 and isinstance(events[begun], RunStarted)
        assert len({(event.parent_run_id, event.parent_call_id) for event in events}) == 1
        ends = of(ENDS, events)
        assert len(ends) == 1, run_id
        assert events[-1] is ends[0]
        check_calls(events)
        check_vendor_calls(events)
    for place, event in enumerate(told):
        if isinstance(event, RunStarted) and event.parent_run_id is not None:
            around = [one for one in told[:place] if one.run_id == event.parent_run_id]
            assert event.parent_call_id in {one.call_id for one in of(CallReady, around)}
            assert event.parent_call_id not in {one.call_id for one in of(CallResult, around)}


def check_calls(events: Sequence[RunEvent]) -> None:
    """Of one run: every call begins once, becomes whole or is discarded, and if whole has one result or is left to somebody."""
    state: dict[str, str] = {}
    left: list[str] = []
    for event in events:
        if isinstance(event, CallStarted):
            assert state.get(event.call_id, "discarded") == "discarded"  # of a reply that was asked for again it may come once more
            state[event.call_id] = "provisional" if event.provisional else "known"
        elif isinstance(event, CallArgumentsDelta):
            assert state[event.call_id] == "provisional" and event.text
        elif isinstance(event, CallDiscarded):
            assert state[event.call_id] in ("provisional", "ready") and event.reason  # a run that is left has calls without an answer
            state[event.call_id] = "discarded"
        elif isinstance(event, CallReady):
            assert state[event.call_id] in ("provisional", "known")
            state[event.call_id] = "ready"
        elif isinstance(event, CallProgress):
            assert state[event.call_id] == "ready"
        elif isinstance(event, CallResult):
            assert state[event.call_id] == "ready"
            state[event.call_id] = "answered"
        elif isinstance(event, CallsPending):
            assert event.calls and not left
            left = [call.id for call in event.calls]
    assert Counter(state.values()).keys() <= {"discarded", "ready", "answered"}, state
    ready = [call_id for call_id, one in state.items() if one == "ready"]
    assert sorted(left) == sorted(ready)


def check_vendor_calls(events: Sequence[RunEvent]) -> None:
    """Of one run: every call of the vendor's own begins once, goes on only while it is open, and ends once."""
    calls: dict[str, bool] = {}
    for event in events:
        if isinstance(event, VendorCallStarted):
            assert not calls.get(event.call_id, False)
            calls[event.call_id] = True
        elif isinstance(event, VendorCallDone):
            assert calls[event.call_id]
            calls[event.call_id] = False
        elif isinstance(event, VendorCallProgress):
            assert calls[event.call_id]
    assert not any(calls.values()), calls


def check_messages(events: Sequence[RunEvent]) -> None:
    """Of one run: pieces of text and reasoning, calls and results are those of its messages, and come before them."""
    said: defaultdict[str, str] = defaultdict(str)
    thought: defaultdict[str, str] = defaultdict(str)
    ready: defaultdict[str, list[CallReady]] = defaultdict(list)
    results: dict[str, CallResult] = {}
    for event in events:
        if isinstance(event, TextDelta):
            assert event.text
            said[event.message_id] += event.text
        elif isinstance(event, ReasoningDelta):
            assert event.text
            thought[event.message_id] += event.text
        elif isinstance(event, CallReady):
            ready[event.message_id].append(event)
        elif isinstance(event, CallResult):
            results[event.call_id] = event
        elif isinstance(event, MessageDone) and isinstance(event.message, AIMessage):
            assert event.message_id == event.message.id
            assert said.pop(event.message_id, "") == text_of(event.message)
            thoughts, kept = thought.pop(event.message_id, ""), reasoning_of(event.message)
            assert thoughts == kept or (not kept and _was_cut(events))
            check_ready(ready.pop(event.message_id, []), event.message)
        elif isinstance(event, MessageDone) and not isinstance(event.message, HumanMessage):
            assert isinstance(event.message, ToolMessage)
            result = results[event.message.tool_call_id]
            assert result.message == event.message and result.message.id == event.message.id
            assert event.message.response_metadata.get("tool_call_idx", result.index) == result.index
    left = events[0].parent_run_id is not None and _was_cut(events)  # nobody waited for its messages
    if isinstance(events[-1], RunEnded) and not left:
        assert not said and (not thought or _was_cut(events))
        assert len(results) == sum(isinstance(event.message, ToolMessage) for event in of(MessageDone, events))


def _was_cut(events: Sequence[RunEvent]) -> bool:
    """Whether the run was ended before its last reply was whole: of that only the text is kept."""
    return isinstance(events[-1], RunEnded) and events[-1].stop_reason in _GIVEN_UP


def check_ready(ready: Sequence[CallReady], message: AIMessage) -> None:
    """The calls that were told of are those of the message, in order."""
    told = [(one.index, one.call.id, one.call.spelling, one.call.arguments, one.call.args) for one in ready]
    stored = [(index, one.id, one.name, one.arguments, one.args) for index, one in enumerate(calls_of(message))]
    assert told == stored
    assert all(one.call.why for one in ready if one.call.args is None)


def reasoning_of(message: AIMessage) -> str:
    """What a message has of reasoning, in whichever form."""
    blocks = [block for block in message.content if isinstance(block, dict)] if isinstance(message.content, list) else []
    texts = [block.get("thinking") or block.get("reasoning") or "" for block in blocks if block["type"] in ("thinking", "reasoning")]
    return message.additional_kwargs.get("reasoning_content", "") + "".join(texts)


def check_end(events: Sequence[RunEvent], message: AIMessage, history: Sequence[BaseMessage]) -> None:
    """Of a run that has ended: its messages, its pending calls and its end are those of the run message. (A function behind a model without
    tools is given the sum of its chunks, whose blocks are numbered.)"""
    new = new_messages(message)
    done = [event.message for event in of(MessageDone, events)]
    aside = frozenset({"index"}) if len(new) == 1 else frozenset[str]()
    assert [data_of(one, aside=aside) for one in done] == [data_of(one, aside=aside) for one in new]
    assert [one.id for one in done] == [one.id for one in new]
    ended = events[-1]
    assert isinstance(ended, RunEnded)
    assert ended.stop_reason == stop_reason(message)
    own = message.response_metadata.get(KEY) or {}
    assert ended.turns == own.get("turns", 1)
    assert ended.usage == run_usage(message)
    check_usage(events, ended)
    left = [list(event.calls) for event in of(CallsPending, events)]
    waiting = pending_calls([*history, *new]) if ended.stop_reason == "calls_pending" or left else []
    assert left == ([waiting] if waiting else [])


def check_usage(events: Sequence[RunEvent], ended: RunEnded) -> None:
    """The tokens of the turns add up to those of the run, and each turn's come after its message."""
    total: UsageMetadata | None = None
    last = 0
    done: set[str | None] = set()
    for event in events:
        if isinstance(event, MessageDone):
            done.add(event.message.id)
        elif isinstance(event, TurnUsage):
            assert last < event.turn <= ended.turns and event.message_id in done
            last, total = event.turn, add_usage(total, event.usage) if total else event.usage
    assert ended.usage == total
