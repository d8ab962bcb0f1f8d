"""Conversion of the events of runs to events of AG-UI, as one run of the protocol per stream.

A client appends what it is sent to what it has, and can take nothing back. So a tool call is sent when its turn has ended, as the stored
message has it; while it is written, custom events tell of it. A run inside a tool is a subagent of the protocol's.
"""

import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

from ag_ui.core import (
    PROTOCOL_VERSION,
    ActivitySnapshotEvent,
    BaseEvent,
    CustomEvent,
    MessagesSnapshotEvent,
    ReasoningEndEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    RunErrorEvent,
    RunFinishedEvent,
    RunStartedEvent,
    StepFinishedEvent,
    StepStartedEvent,
    SubagentErrorEvent,
    SubagentFinishedEvent,
    SubagentStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    TokenUsage,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)
from ag_ui.core.token_usage import aggregate_token_usage, token_usage_from_langchain_metadata
from ag_ui.encoder import EventEncoder
from langchain_core.messages import AIMessage, BaseMessage

from .. import event_types as kinds
from .. import vendor_event_types as vendor_kinds
from ..event_tables import NOTHING, EventTable
from ..event_types import RunEvent
from ..executor import pending_calls
from ..executor.approval.pending import is_apart, page_id
from ..history.expansion import expand
from ..messages.calls import ToolCallRecord
from ..messages.metadata import text_of
from ..strict_json import mend_surrogates
from .ag_ui_content import change_of, content_parts, label
from .ag_ui_history import page_calls, page_messages
from .ag_ui_open_run import OpenRun
from .ag_ui_outcome import outcome_of, result_of, sentence_of
from .ag_ui_vendor import VendorActivities
from .plain import plain
from .streaming import Failure


class AgUiEncoder:
    """Encodes events as AG-UI's server-sent events.

    Args:
        thread_id: The conversation's id, which the page made.
        run_id: The id that the page gave the run; None for that of the first run.
        details: Whether the texts of exceptions are sent.
        nested: Whether runs inside tools are told of.
        history: What the page is given first; None for nothing.
    """

    heartbeat = b": heartbeat\n\n"

    def __init__(self, thread_id: str, run_id: str | None, *, details: bool, nested: bool, history: Sequence[BaseMessage] | None) -> None:
        self._thread_id, self._run_id, self._details, self._nested = thread_id, run_id, details, nested
        self._encoder = EventEncoder()
        self._begun = False
        self._seen: set[str | None] = set()
        self._runs: dict[str, OpenRun] = {}
        self._open: dict[str, OpenRun] = {}
        self._owners: dict[str, str] = {}
        self._turns: dict[str | None, int] = {}
        self._snapshot: Any = None if history is None else page_messages(expand(history))
        self._pending = [(mend_surrogates(page_id(call)), call) for call in pending_calls(history or ())]
        self._apart = {page_id(call) for _, call in self._pending if is_apart(call)}  # no result of the run has their ids
        self._usage: list[TokenUsage] = []
        self._vendor = VendorActivities()
        self._ended: list[kinds.RunEnded] = []

    def encode(self, event: RunEvent) -> bytes:
        """Return the protocol's bytes for an event; empty if it has no form there."""
        hidden = not self._nested and event.parent_run_id in self._seen
        self._seen.add(event.run_id)
        written = _WRITTEN.get(type(event))
        write = written and (written.hidden if hidden else written.shown)
        begun = b"" if hidden else self._bytes(self._begin(event.run_id))
        return begun + (self._bytes(write(self, event)) if write else b"")

    def end(self) -> bytes:
        """Return the end of the protocol's run: its interrupts, or the reason why it ended."""
        return self._bytes(self._finish())

    def fail(self, failure: Failure) -> bytes:
        """Return the end of a run that failed."""
        return self._bytes(self._error(failure))

    def _bytes(self, events: Iterator[BaseEvent]) -> bytes:
        return "".join(map(self._encoder.encode, events)).encode()

    # ------------------------------------------------------------------------------------------ runs

    def _begin(self, run_id: str) -> Iterator[BaseEvent]:
        if self._begun:
            return
        self._begun = True
        self._run_id = self._run_id or run_id
        yield RunStartedEvent(thread_id=self._thread_id, run_id=self._run_id, protocol_version=PROTOCOL_VERSION)
        if self._snapshot is not None:
            yield MessagesSnapshotEvent(messages=self._snapshot)

    def _started(self, event: kinds.RunStarted) -> Iterator[BaseEvent]:
        around = self._runs.get(event.parent_run_id or "")
        run = self._runs[event.run_id] = self._open[event.run_id] = OpenRun(event.run_id, event.run_id if around else None)
        if around is not None:
            yield SubagentStartedEvent(
                subagent_run_id=event.run_id,
                name=mend_surrogates(event.name),
                parent_subagent_run_id=around.tag,
                parent_tool_call_id=self._id(around, event.parent_call_id) if event.parent_call_id else None,
            )
        self._turns.setdefault(run.tag, 0)

    def _run_ended(self, event: kinds.RunEnded) -> Iterator[BaseEvent]:
        run = self._runs[event.run_id]
        yield from self._close(run)
        if run.tag is None:
            self._ended.append(event)
            self._decided(self._apart if event.stop_reason != "calls_pending" else ())
        else:
            yield SubagentFinishedEvent(subagent_run_id=run.tag, result={"stopReason": event.stop_reason, "turns": event.turns})

    def _run_failed(self, event: kinds.RunFailed) -> Iterator[BaseEvent]:
        run = self._runs[event.run_id]
        yield from self._close(run)
        if run.tag is not None:
            failure = Failure.of(event.error, self._details)
            yield SubagentErrorEvent(subagent_run_id=run.tag, message=sentence_of(failure), code=failure.name)

    def _close(self, run: OpenRun) -> Iterator[BaseEvent]:
        """End everything that is open in a run."""
        yield from self._end_reasoning(run)
        yield from self._end_text(run)
        yield from self._end_step(run)
        self._open.pop(run.id, None)

    def _close_all(self) -> Iterator[BaseEvent]:
        for run in reversed(list(self._open.values())):
            yield from self._close(run)
            if run.tag is not None:
                yield SubagentErrorEvent(subagent_run_id=run.tag, message="It was left before it ended.")

    def _finish(self) -> Iterator[BaseEvent]:
        yield from self._begin(str(uuid.uuid4()))
        yield from self._close_all()
        outcome = outcome_of(self._pending, self._ended)
        yield RunFinishedEvent(
            thread_id=self._thread_id,
            run_id=self._run_id or "",
            result=result_of(self._ended) if outcome.type == "success" else None,
            outcome=outcome,
            usage=aggregate_token_usage(self._usage) or None,
        )

    def _error(self, failure: Failure) -> Iterator[BaseEvent]:
        yield from self._begin(str(uuid.uuid4()))
        yield from self._close_all()
        yield RunErrorEvent(message=sentence_of(failure), code=failure.name, usage=aggregate_token_usage(self._usage) or None)

    # ------------------------------------------------------------------------------------------ turns

    def _id(self, run: OpenRun, given: str) -> str:
        """Return an id for the client: one of a run inside a tool, or of a second run with the same id, includes its run."""
        given = mend_surrogates(given)
        owner = run.id if run.tag is not None else self._owners.setdefault(given, run.id)
        return given if owner == run.id and run.tag is None else f"{run.id}:{given}"

    def _message_id(self, run: OpenRun, given: str) -> str:
        return self._id(run, f"{given}:{run.discarded[given] + 1}" if given in run.discarded else given)

    def _turn(self, run: OpenRun, message_id: str) -> Iterator[BaseEvent]:
        """Begin the turn of a message of the model, if it is not the open one."""
        if run.turn == message_id:
            return
        yield from self._end_reasoning(run)
        yield from self._end_text(run)
        yield from self._end_step(run)
        run.turn, run.shown, run.thoughts = message_id, False, 0
        self._turns[run.tag] += 1
        run.step = f"turn {self._turns[run.tag]}"
        yield StepStartedEvent(step_name=run.step, subagent_run_id=run.tag)

    def _end_step(self, run: OpenRun) -> Iterator[BaseEvent]:
        if run.step is not None:
            yield StepFinishedEvent(step_name=run.step, subagent_run_id=run.tag)
            run.step = None

    def _text(self, event: kinds.TextDelta) -> Iterator[BaseEvent]:
        run = self._runs[event.run_id]
        yield from self._turn(run, event.message_id)
        yield from self._end_reasoning(run)
        yield from self._more_text(run, self._message_id(run, event.message_id), event.text, event.separator)

    def _more_text(self, run: OpenRun, message_id: str, text: str, separator: str = "") -> Iterator[BaseEvent]:
        if run.text is None:
            run.text, run.shown = message_id, True
            metadata = {"autotools": {"separator": mend_surrogates(separator)}} if separator else None
            yield TextMessageStartEvent(message_id=message_id, role="assistant", subagent_run_id=run.tag, metadata=metadata)
        if text:
            yield TextMessageContentEvent(message_id=message_id, delta=mend_surrogates(text), subagent_run_id=run.tag)

    def _end_text(self, run: OpenRun) -> Iterator[BaseEvent]:
        if run.text is not None:
            yield TextMessageEndEvent(message_id=run.text, subagent_run_id=run.tag)
            run.text = None

    def _reasoning(self, event: kinds.ReasoningDelta) -> Iterator[BaseEvent]:
        run = self._runs[event.run_id]
        yield from self._turn(run, event.message_id)
        if run.reasoning is None:
            run.thoughts += 1
            run.reasoning = f"{self._message_id(run, event.message_id)}:reasoning:{run.thoughts}"
            yield ReasoningStartEvent(message_id=run.reasoning, subagent_run_id=run.tag)
            yield ReasoningMessageStartEvent(message_id=run.reasoning, role="reasoning", subagent_run_id=run.tag)
        yield ReasoningMessageContentEvent(message_id=run.reasoning, delta=mend_surrogates(event.text), subagent_run_id=run.tag)

    def _end_reasoning(self, run: OpenRun) -> Iterator[BaseEvent]:
        if run.reasoning is not None:
            yield ReasoningMessageEndEvent(message_id=run.reasoning, subagent_run_id=run.tag)
            yield ReasoningEndEvent(message_id=run.reasoning, subagent_run_id=run.tag)
            run.reasoning = None

    def _message(self, event: kinds.MessageDone) -> Iterator[BaseEvent]:
        message = event.message
        if not isinstance(message, AIMessage):
            return
        run = self._runs[event.run_id]
        yield from self._turn(run, event.message_id)
        yield from self._end_reasoning(run)
        message_id, text, calls = self._message_id(run, event.message_id), text_of(message), page_calls(message)
        if not run.shown and (text or not calls):
            yield from self._more_text(run, message_id, text)
        yield from self._end_text(run)
        for call in calls:
            yield from self._call(run, call, message_id)
        run.turn = None
        yield from self._vendor.message_done(message, run.tag)
        metadata = message.response_metadata
        run.model = (label(metadata.get("model_provider")), label(metadata.get("model_name")))

    def _message_discarded(self, event: kinds.MessageDiscarded) -> Iterator[BaseEvent]:
        run = self._runs[event.run_id]
        yield from self._end_reasoning(run)
        yield from self._end_text(run)
        run.turn, run.shown = None, False
        value = {"messageId": self._message_id(run, event.message_id), "attempt": event.attempt}
        run.discarded[event.message_id] += 1
        yield CustomEvent(name="message_discarded", value=value, subagent_run_id=run.tag)

    def _model_changed(self, event: kinds.ModelChanged) -> Iterator[BaseEvent]:
        yield CustomEvent(name="model_changed", value=change_of(event), subagent_run_id=self._runs[event.run_id].tag)

    def _of_vendor(self, event: Any) -> Iterator[BaseEvent]:
        run = self._runs[event.run_id]
        return self._vendor.events(event, partial(self._id, run), run.tag)

    def _of_vendor_in_turn(self, event: Any) -> Iterator[BaseEvent]:
        yield from self._turn(self._runs[event.run_id], event.message_id)
        yield from self._of_vendor(event)

    def _used(self, event: kinds.TurnUsage) -> Iterator[BaseEvent]:
        run = self._runs.get(event.run_id)  # None for a hidden one
        provider, model = (None, None) if run is None else run.model
        usage = token_usage_from_langchain_metadata(event.usage, provider=provider, model=model)
        self._usage += [usage] if usage else []
        yield from ()

    # ------------------------------------------------------------------------------------------ calls

    def _call(self, run: OpenRun, call: ToolCallRecord, message_id: str) -> Iterator[BaseEvent]:
        call_id = self._id(run, call.id)
        name = mend_surrogates(call.name)
        yield ToolCallStartEvent(tool_call_id=call_id, tool_call_name=name, parent_message_id=message_id, subagent_run_id=run.tag)
        yield ToolCallArgsEvent(tool_call_id=call_id, delta=mend_surrogates(call.arguments), subagent_run_id=run.tag)
        yield ToolCallEndEvent(tool_call_id=call_id, subagent_run_id=run.tag)

    def _writing(self, event: kinds.CallStarted) -> Iterator[BaseEvent]:
        if event.provisional:
            run = self._runs[event.run_id]
            yield from self._turn(run, event.message_id)
            yield self._custom(event, "tool_call_started", event.call_id, toolCallName=event.name, index=event.index)

    def _written(self, event: kinds.CallArgumentsDelta) -> Iterator[BaseEvent]:
        yield self._custom(event, "tool_call_delta", event.call_id, delta=event.text)

    def _discarded(self, event: kinds.CallDiscarded) -> Iterator[BaseEvent]:
        yield self._custom(event, "tool_call_discarded", event.call_id, reason=event.reason)

    def _custom(self, event: RunEvent, name: str, call_id: str, **value: Any) -> BaseEvent:
        run = self._runs[event.run_id]
        return CustomEvent(name=name, value=plain({"toolCallId": self._id(run, call_id), **value}), subagent_run_id=run.tag)

    def _progress(self, event: kinds.CallProgress) -> Iterator[BaseEvent]:
        run = self._runs[event.run_id]
        call_id = self._id(run, event.call_id)
        content = {"toolCallId": call_id, "value": plain(event.value)}
        yield ActivitySnapshotEvent(
            message_id=f"{call_id}:progress", activity_type="tool_progress", content=content, subagent_run_id=run.tag
        )

    def _answered(self, event: kinds.CallResult) -> Iterator[BaseEvent]:
        run = self._runs[event.run_id]
        outcome = {"status": event.message.status, "executed": event.executed, "duration": event.duration}
        content: Any = content_parts(event.message)
        if run.tag is None:
            self._decided({event.call_id})
        yield ToolCallResultEvent(
            message_id=self._id(run, str(event.message.id)),
            tool_call_id=self._id(run, event.call_id),
            content=content,
            role="tool",
            metadata={"autotools": outcome},
            subagent_run_id=run.tag,
        )

    def _waiting(self, event: kinds.CallsPending) -> Iterator[BaseEvent]:
        run = self._runs[event.run_id]
        if run.tag is None:
            self._decided({*self._apart, *(page_id(call) for call in event.calls)})
            self._pending += [(self._id(run, page_id(call)), call) for call in event.calls]
        yield from ()

    def _decided(self, ids: Collection[str]) -> None:
        """Remove these calls from the pending ones."""
        self._pending = [(one, call) for one, call in self._pending if page_id(call) not in ids]


_Write: TypeAlias = Callable[[AgUiEncoder, Any], Iterator[BaseEvent]]


@dataclass(frozen=True)
class _Written:
    """What is written of a kind of event.

    Attributes:
        shown: Writes an event of the kind.
        hidden: Writes one of a run that the page is not shown; None for nothing.
    """

    shown: _Write
    hidden: _Write | None = None


_WRITTEN: Final = EventTable(
    "AG-UI",
    {
        kinds.RunStarted: _Written(AgUiEncoder._started),
        kinds.TextDelta: _Written(AgUiEncoder._text),
        kinds.ReasoningDelta: _Written(AgUiEncoder._reasoning),
        kinds.CallStarted: _Written(AgUiEncoder._writing),
        kinds.CallArgumentsDelta: _Written(AgUiEncoder._written),
        kinds.CallReady: NOTHING,
        kinds.CallDiscarded: _Written(AgUiEncoder._discarded),
        kinds.CallProgress: _Written(AgUiEncoder._progress),
        kinds.CallResult: _Written(AgUiEncoder._answered),
        kinds.MessageDone: _Written(AgUiEncoder._message),
        kinds.MessageDiscarded: _Written(AgUiEncoder._message_discarded),
        kinds.ModelChanged: _Written(AgUiEncoder._model_changed),
        kinds.MessagesAdded: NOTHING,
        kinds.TurnUsage: _Written(AgUiEncoder._used, hidden=AgUiEncoder._used),
        kinds.CallsPending: _Written(AgUiEncoder._waiting),
        vendor_kinds.VendorCallStarted: _Written(AgUiEncoder._of_vendor_in_turn),
        vendor_kinds.VendorCallProgress: _Written(AgUiEncoder._of_vendor),
        vendor_kinds.VendorCallDone: _Written(AgUiEncoder._of_vendor),
        vendor_kinds.SourceFound: _Written(AgUiEncoder._of_vendor_in_turn),
        vendor_kinds.FileMade: _Written(AgUiEncoder._of_vendor_in_turn),
        kinds.RunEnded: _Written(AgUiEncoder._run_ended),
        kinds.RunFailed: _Written(AgUiEncoder._run_failed),
    },
)
