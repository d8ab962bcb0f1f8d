"""Conversion of the events of runs to events of AG-UI, as one run of the protocol per stream.

A client appends what it is sent to what it has, and can take nothing back. So a tool call is sent when its turn has ended, as the
stored message has it; while it is written, custom events tell of it. A run inside a tool is a subagent of the protocol's.
"""

import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import ag_ui.core as protocol
from ag_ui.core.token_usage import aggregate_token_usage, token_usage_from_langchain_metadata
from ag_ui.encoder import EventEncoder
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from .. import event_types as kinds
from ..event_types import NOTHING, EventTable, RunEvent
from ..executor import pending_calls
from ..executor.pending import APPROVABLE, ELICITATION, PendingCall, full_name, is_apart, page_id
from ..history.expansion import expand
from ..messages.calls import ToolCallRecord
from ..messages.metadata import text_of
from ..strict_json import mend_surrogates
from .ag_ui_messages import content_parts, page_messages
from .posted import signature_of
from .public import page_calls, plain, titled_words_of_tool, to_json, told_of_tool
from .streaming import Failure

_ANSWER: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean", "description": "Whether the call may run."},
        "editedArgs": {"type": "object", "description": "All arguments to run with instead."},
        "reason": {"type": "string", "description": "Why the call may not run, for the model."},
    },
    "required": ["approved"],
}


@dataclass
class _OpenRun:
    """The open state of a run.

    Attributes:
        id: Its id.
        tag: The id of its subagent; None for a run that no tool made.
        turn: The message of the turn that its step is.
        step: The name of that step.
        text: The message whose text is open.
        shown: Whether anything of the turn's message was sent.
        reasoning: The reasoning that is open.
        thoughts: How many pieces of reasoning the turn's message has.
        model: Who made its last message: vendor and model.
        discarded: How many attempts at the message of each id were discarded: the client keeps what it has of them.
    """

    id: str
    tag: str | None
    turn: str | None = None
    step: str | None = None
    text: str | None = None
    shown: bool = False
    reasoning: str | None = None
    thoughts: int = 0
    model: tuple[str | None, str | None] = (None, None)
    discarded: Counter[str] = field(default_factory=Counter)


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
        self._runs: dict[str, _OpenRun] = {}
        self._open: dict[str, _OpenRun] = {}
        self._owners: dict[str, str] = {}
        self._turns: dict[str | None, int] = {}
        self._snapshot: Any = None if history is None else page_messages(expand(history))
        self._pending = [(mend_surrogates(page_id(call)), call) for call in pending_calls(history or ())]
        self._apart = {page_id(call) for _, call in self._pending if is_apart(call)}  # no result of the run has their ids
        self._usage: list[protocol.TokenUsage] = []
        self._sources: dict[str, list[dict[str, Any]]] = {}
        self._files: Counter[str] = Counter()
        self._elsewhere: dict[str, list[kinds.FileMade]] = {}  # by message: files whose data only the message has
        self._ended: list[kinds.RunEnded] = []

    def encode(self, event: RunEvent) -> bytes:
        """Return the protocol's bytes for an event; empty if it has no form there."""
        hidden = not self._nested and event.parent_run_id in self._seen
        self._seen.add(event.run_id)
        write = _WRITTEN.get(type(event))
        begun = b"" if hidden else self._bytes(self._begin(event.run_id))
        if write is None or (hidden and write is not AgUiEncoder._used):
            return begun
        return begun + self._bytes(write(self, event, self._runs.get(event.run_id)))

    def end(self) -> bytes:
        """Return the end of the protocol's run: its interrupts, or the reason why it ended."""
        return self._bytes(self._finish())

    def fail(self, failure: Failure) -> bytes:
        """Return the end of a run that failed."""
        return self._bytes(self._error(failure))

    def _bytes(self, events: Iterator[protocol.BaseEvent]) -> bytes:
        return "".join(map(self._encoder.encode, events)).encode()

    # ------------------------------------------------------------------------------------------ runs

    def _begin(self, run_id: str) -> Iterator[protocol.BaseEvent]:
        if self._begun:
            return
        self._begun = True
        self._run_id = self._run_id or run_id
        yield protocol.RunStartedEvent(thread_id=self._thread_id, run_id=self._run_id, protocol_version=protocol.PROTOCOL_VERSION)
        if self._snapshot is not None:
            yield protocol.MessagesSnapshotEvent(messages=self._snapshot)

    def _started(self, event: kinds.RunStarted, _: object) -> Iterator[protocol.BaseEvent]:
        around = self._runs.get(event.parent_run_id or "")
        run = self._runs[event.run_id] = self._open[event.run_id] = _OpenRun(event.run_id, event.run_id if around else None)
        if around is not None:
            yield protocol.SubagentStartedEvent(
                subagent_run_id=event.run_id,
                name=mend_surrogates(event.name),
                parent_subagent_run_id=around.tag,
                parent_tool_call_id=self._id(around, event.parent_call_id) if event.parent_call_id else None,
            )
        self._turns.setdefault(run.tag, 0)

    def _run_ended(self, event: kinds.RunEnded, run: _OpenRun) -> Iterator[protocol.BaseEvent]:
        yield from self._close(run)
        if run.tag is None:
            self._ended.append(event)
            self._decided(self._apart if event.stop_reason != "calls_pending" else ())
        else:
            yield protocol.SubagentFinishedEvent(subagent_run_id=run.tag, result={"stopReason": event.stop_reason, "turns": event.turns})

    def _run_failed(self, event: kinds.RunFailed, run: _OpenRun) -> Iterator[protocol.BaseEvent]:
        yield from self._close(run)
        if run.tag is not None:
            failure = Failure.of(event.error, self._details)
            yield protocol.SubagentErrorEvent(subagent_run_id=run.tag, message=_failure_sentence(failure), code=failure.name)

    def _close(self, run: _OpenRun) -> Iterator[protocol.BaseEvent]:
        """End everything that is open in a run."""
        yield from self._end_step(run)
        self._open.pop(run.id, None)

    def _close_all(self) -> Iterator[protocol.BaseEvent]:
        yield from self._begin(str(uuid.uuid4()))
        for run in reversed(list(self._open.values())):
            yield from self._close(run)
            if run.tag is not None:
                yield protocol.SubagentErrorEvent(subagent_run_id=run.tag, message="It was left before it ended.")

    def _finish(self) -> Iterator[protocol.BaseEvent]:
        yield from self._close_all()
        outcome, ended = _outcome_of(self._pending, self._ended), self._ended
        result = {"stopReason": ended[-1].stop_reason, "turns": sum(event.turns for event in ended)} if ended else None
        yield protocol.RunFinishedEvent(
            thread_id=self._thread_id,
            run_id=self._run_id or "",
            result=result if outcome.type == "success" else None,
            outcome=outcome,
            usage=aggregate_token_usage(self._usage) or None,
        )

    def _error(self, failure: Failure) -> Iterator[protocol.BaseEvent]:
        yield from self._close_all()
        yield protocol.RunErrorEvent(
            message=_failure_sentence(failure), code=failure.name, usage=aggregate_token_usage(self._usage) or None
        )

    # ------------------------------------------------------------------------------------------ turns

    def _id(self, run: _OpenRun, given: str) -> str:
        """Return an id for the client: one of a run inside a tool, or of a second run with the same id, includes its run."""
        given = mend_surrogates(given)
        owner = run.id if run.tag is not None else self._owners.setdefault(given, run.id)
        return given if owner == run.id and run.tag is None else f"{run.id}:{given}"

    def _message_id(self, run: _OpenRun, given: str) -> str:
        return self._id(run, f"{given}:{run.discarded[given] + 1}" if given in run.discarded else given)

    def _turn(self, run: _OpenRun, message_id: str) -> Iterator[protocol.BaseEvent]:
        """Begin the turn of a message of the model, if it is not the open one."""
        if run.turn == message_id:
            return
        yield from self._end_step(run)
        run.turn, run.shown, run.thoughts = message_id, False, 0
        self._turns[run.tag] += 1
        run.step = f"turn {self._turns[run.tag]}"
        yield protocol.StepStartedEvent(step_name=run.step, subagent_run_id=run.tag)

    def _end_step(self, run: _OpenRun) -> Iterator[protocol.BaseEvent]:
        yield from self._end_pieces(run)
        if run.step is not None:
            yield protocol.StepFinishedEvent(step_name=run.step, subagent_run_id=run.tag)
            run.step = None

    def _text(self, event: kinds.TextDelta, run: _OpenRun) -> Iterator[protocol.BaseEvent]:
        yield from self._turn(run, event.message_id)
        yield from self._end_reasoning(run)
        yield from self._more_text(run, self._message_id(run, event.message_id), event.text, event.separator)

    def _more_text(self, run: _OpenRun, message_id: str, text: str, separator: str = "") -> Iterator[protocol.BaseEvent]:
        if run.text is None:
            run.text, run.shown = message_id, True
            metadata = {"autotools": {"separator": mend_surrogates(separator)}} if separator else None
            yield protocol.TextMessageStartEvent(message_id=message_id, role="assistant", subagent_run_id=run.tag, metadata=metadata)
        if text:
            yield protocol.TextMessageContentEvent(message_id=message_id, delta=mend_surrogates(text), subagent_run_id=run.tag)

    def _end_pieces(self, run: _OpenRun) -> Iterator[protocol.BaseEvent]:
        """End the reasoning, or the text, of a run that is open."""
        yield from self._end_reasoning(run)
        if run.text is not None:
            yield protocol.TextMessageEndEvent(message_id=run.text, subagent_run_id=run.tag)
            run.text = None

    def _reasoning(self, event: kinds.ReasoningDelta, run: _OpenRun) -> Iterator[protocol.BaseEvent]:
        yield from self._turn(run, event.message_id)
        if run.reasoning is None:
            run.thoughts += 1
            run.reasoning = f"{self._message_id(run, event.message_id)}:reasoning:{run.thoughts}"
            yield protocol.ReasoningStartEvent(message_id=run.reasoning, subagent_run_id=run.tag)
            yield protocol.ReasoningMessageStartEvent(message_id=run.reasoning, role="reasoning", subagent_run_id=run.tag)
        yield protocol.ReasoningMessageContentEvent(message_id=run.reasoning, delta=mend_surrogates(event.text), subagent_run_id=run.tag)

    def _end_reasoning(self, run: _OpenRun) -> Iterator[protocol.BaseEvent]:
        if run.reasoning is not None:
            yield protocol.ReasoningMessageEndEvent(message_id=run.reasoning, subagent_run_id=run.tag)
            yield protocol.ReasoningEndEvent(message_id=run.reasoning, subagent_run_id=run.tag)
            run.reasoning = None

    def _message(self, event: kinds.MessageDone, run: _OpenRun) -> Iterator[protocol.BaseEvent]:
        message = event.message
        if isinstance(message, HumanMessage):  # a client that has it would append the deltas of a text message of its id
            said = {"id": self._id(run, event.message_id), "role": "user", "content": content_parts(message)}
            yield protocol.CustomEvent(name="user_message", value=plain(said), subagent_run_id=run.tag)
        if not isinstance(message, AIMessage):
            return
        yield from self._turn(run, event.message_id)
        yield from self._end_reasoning(run)
        message_id, text, calls = self._message_id(run, event.message_id), text_of(message), page_calls(message)
        if not run.shown and (text or not calls):
            yield from self._more_text(run, message_id, text)
        yield from self._end_pieces(run)
        for call in calls:
            yield from self._call(run, call, message_id)
        run.turn = None
        for made in self._elsewhere.pop(event.message_id, ()):
            if (file := made.found_in(message)) is not None:
                yield from self._known_file(file, run)
        metadata = message.response_metadata
        run.model = (_label(metadata.get("model_provider")), _label(metadata.get("model_name")))

    def _message_discarded(self, event: kinds.MessageDiscarded, run: _OpenRun) -> Iterator[protocol.BaseEvent]:
        yield from self._end_pieces(run)
        run.turn, run.shown = None, False
        value = {"messageId": self._message_id(run, event.message_id), "attempt": event.attempt}
        run.discarded[event.message_id] += 1
        yield protocol.CustomEvent(name="message_discarded", value=value, subagent_run_id=run.tag)

    def _model_changed(self, event: kinds.ModelChanged, run: _OpenRun) -> Iterator[protocol.BaseEvent]:
        value = {"from": mend_surrogates(event.from_model), "to": mend_surrogates(event.to_model), "afterText": event.after_text}
        yield protocol.CustomEvent(name="model_changed", value=value, subagent_run_id=run.tag)

    def _compacted(self, event: kinds.ContextCompacted, run: _OpenRun) -> Iterator[protocol.BaseEvent]:
        value = {"what": event.what, "results": event.results, "from": event.from_tokens, "to": event.to_tokens}
        yield protocol.CustomEvent(name="context_compacted", value=value, subagent_run_id=run.tag)

    def _prefix_changed(self, event: kinds.PrefixChanged, run: _OpenRun) -> Iterator[protocol.BaseEvent]:
        value = {"reason": event.reason, "index": event.index, "turn": event.turn}
        yield protocol.CustomEvent(name="prefix_changed", value=value, subagent_run_id=run.tag)

    def _used(self, event: kinds.TurnUsage, run: _OpenRun | None) -> Iterator[protocol.BaseEvent]:
        """Add what a turn has used, also of a run that the page is not shown, which has no state here."""
        provider, model = (None, None) if run is None else run.model
        usage = token_usage_from_langchain_metadata(event.usage, provider=provider, model=model)
        self._usage += [usage] if usage else []
        yield from ()

    # ------------------------------------------------------------------------------------------ calls

    def _call(self, run: _OpenRun, call: ToolCallRecord, message_id: str) -> Iterator[protocol.BaseEvent]:
        call_id = self._id(run, call.id)
        name = mend_surrogates(call.name)
        yield protocol.ToolCallStartEvent(tool_call_id=call_id, tool_call_name=name, parent_message_id=message_id, subagent_run_id=run.tag)
        yield protocol.ToolCallArgsEvent(tool_call_id=call_id, delta=mend_surrogates(call.arguments), subagent_run_id=run.tag)
        yield protocol.ToolCallEndEvent(tool_call_id=call_id, subagent_run_id=run.tag)

    def _writing(self, event: kinds.CallStarted, run: _OpenRun) -> Iterator[protocol.BaseEvent]:
        if event.provisional:
            yield from self._turn(run, event.message_id)
            yield self._custom(run, "tool_call_started", event.call_id, toolCallName=event.name, index=event.index)

    def _written(self, event: kinds.CallArgumentsDelta, run: _OpenRun) -> Iterator[protocol.BaseEvent]:
        yield self._custom(run, "tool_call_delta", event.call_id, delta=event.text)

    def _discarded(self, event: kinds.CallDiscarded, run: _OpenRun) -> Iterator[protocol.BaseEvent]:
        yield self._custom(run, "tool_call_discarded", event.call_id, reason=event.reason)

    def _custom(self, run: _OpenRun, name: str, call_id: str, **value: Any) -> protocol.BaseEvent:
        return protocol.CustomEvent(name=name, value=plain({"toolCallId": self._id(run, call_id), **value}), subagent_run_id=run.tag)

    def _progress(self, event: kinds.CallProgress, run: _OpenRun) -> Iterator[protocol.BaseEvent]:
        call_id = self._id(run, event.call_id)
        content = {"toolCallId": call_id, "value": plain(event.value)}
        yield protocol.ActivitySnapshotEvent(
            message_id=f"{call_id}:progress", activity_type="tool_progress", content=content, subagent_run_id=run.tag
        )

    def _answered(self, event: kinds.CallResult, run: _OpenRun) -> Iterator[protocol.BaseEvent]:
        outcome = {"status": event.message.status, "executed": event.executed, "duration": event.duration}
        if event.edited_arguments is not None:
            outcome["editedArguments"] = plain(event.edited_arguments)
        content: Any = content_parts(event.message)
        if run.tag is None:
            self._decided({event.call_id})
        yield protocol.ToolCallResultEvent(
            message_id=self._id(run, str(event.message.id)),
            tool_call_id=self._id(run, event.call_id),
            content=content,
            role="tool",
            metadata={"autotools": outcome},
            subagent_run_id=run.tag,
        )

    def _waiting(self, event: kinds.CallsPending, run: _OpenRun) -> Iterator[protocol.BaseEvent]:
        if run.tag is None:
            self._decided({*self._apart, *(page_id(call) for call in event.calls)})
            self._pending += [(self._id(run, page_id(call)), call) for call in event.calls]
        yield from ()

    def _decided(self, ids: Collection[str]) -> None:
        """Remove these calls from the pending ones."""
        self._pending = [(one, call) for one, call in self._pending if page_id(call) not in ids]

    # ------------------------------------------------------------------------------------------ what a vendor does by itself
    #
    # These are activities, which a page shows between the messages and does not post as calls of its own. A call of the vendor's is an
    # activity `vendor_call`, sent anew at its end; the sources of a message are one activity `sources`; each file is an activity `file`.
    # Progress, with partial images, is a custom event: a page that comes later does not get it.

    def _vendor_call_started(self, event: kinds.VendorCallStarted, run: _OpenRun) -> Iterator[protocol.BaseEvent]:
        yield from self._turn(run, event.message_id)
        yield _activity(self._id(run, event.call_id), "vendor_call", {"name": event.name, "status": "running", "args": event.args}, run)

    def _vendor_call_progress(self, event: kinds.VendorCallProgress, run: _OpenRun) -> Iterator[protocol.BaseEvent]:
        image = f"data:{event.mime_type};base64,{event.image}" if event.image else None
        value = {"toolCallId": self._id(run, event.call_id), "status": event.status, "delta": event.text, "image": image}
        yield protocol.CustomEvent(name="vendor_call_progress", value=plain(_without_empty(value)), subagent_run_id=run.tag)

    def _vendor_call_done(self, event: kinds.VendorCallDone, run: _OpenRun) -> Iterator[protocol.BaseEvent]:
        content = {"name": event.name, "status": "failed" if event.failed else "done", "args": event.args, "output": event.output}
        yield _activity(self._id(run, event.call_id), "vendor_call", content, run)

    def _source(self, event: kinds.SourceFound, run: _OpenRun) -> Iterator[protocol.BaseEvent]:
        yield from self._turn(run, event.message_id)
        message_id = self._id(run, event.message_id)
        found = self._sources.setdefault(message_id, [])
        names = ("url", "title", "document", "quote", "start", "end")
        found.append(_without_empty({name: getattr(event, name) for name in names}))
        yield _activity(message_id, "sources", {"sources": found}, run)

    def _file(self, event: kinds.FileMade, run: _OpenRun) -> Iterator[protocol.BaseEvent]:
        yield from self._turn(run, event.message_id)
        yield from self._known_file(event, run)

    def _known_file(self, event: kinds.FileMade, run: _OpenRun) -> Iterator[protocol.BaseEvent]:
        """Yield a file, or keep one whose data only its message has."""
        url = event.url or (f"data:{event.mime_type};base64,{event.data}" if event.data else None)
        if url is None and event.size:
            self._elsewhere.setdefault(event.message_id, []).append(event)
            return
        message_id = self._id(run, event.message_id)
        self._files[message_id] += 1
        content = {"mimeType": event.mime_type, "url": url, "fileId": event.file_id, "name": event.name}
        yield _activity(f"{message_id}:{self._files[message_id]}", "file", content, run)


def _without_empty(content: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in content.items() if value not in (None, "")}


def _activity(about: str, kind: str, content: dict[str, Any], run: _OpenRun) -> protocol.BaseEvent:
    shown = plain(_without_empty(content))
    return protocol.ActivitySnapshotEvent(message_id=f"{about}:{kind}", activity_type=kind, content=shown, subagent_run_id=run.tag)


def _label(value: Any) -> str | None:
    """Return a name from a message's metadata; None if it is no text."""
    return mend_surrogates(value) if isinstance(value, str) and value else None


_WRITTEN: Final = EventTable[Callable[[AgUiEncoder, Any, Any], Iterator[protocol.BaseEvent]]](
    "AG-UI",
    {
        kinds.RunStarted: AgUiEncoder._started,
        kinds.TextDelta: AgUiEncoder._text,
        kinds.ReasoningDelta: AgUiEncoder._reasoning,
        kinds.CallStarted: AgUiEncoder._writing,
        kinds.CallArgumentsDelta: AgUiEncoder._written,
        kinds.CallReady: NOTHING,
        kinds.CallDiscarded: AgUiEncoder._discarded,
        kinds.CallProgress: AgUiEncoder._progress,
        kinds.CallResult: AgUiEncoder._answered,
        kinds.MessageDone: AgUiEncoder._message,
        kinds.MessageDiscarded: AgUiEncoder._message_discarded,
        kinds.ModelChanged: AgUiEncoder._model_changed,
        kinds.ContextCompacted: AgUiEncoder._compacted,
        kinds.PrefixChanged: AgUiEncoder._prefix_changed,
        kinds.MessagesAdded: NOTHING,
        kinds.TurnUsage: AgUiEncoder._used,
        kinds.CallsPending: AgUiEncoder._waiting,
        kinds.VendorCallStarted: AgUiEncoder._vendor_call_started,
        kinds.VendorCallProgress: AgUiEncoder._vendor_call_progress,
        kinds.VendorCallDone: AgUiEncoder._vendor_call_done,
        kinds.SourceFound: AgUiEncoder._source,
        kinds.FileMade: AgUiEncoder._file,
        kinds.RunEnded: AgUiEncoder._run_ended,
        kinds.RunFailed: AgUiEncoder._run_failed,
    },
)


# ----------------------------------------------------------------------------- the end of a run: its interrupts, or the reason why it ended


def _outcome_of(pending: Sequence[tuple[str, PendingCall]], ended: Sequence[kinds.RunEnded]) -> protocol.RunFinishedOutcome:
    """Return the common outcome of a stream's runs. A cancelled one requests nothing, whatever it left pending.

    Args:
        pending: The calls that wait, with the ids that the client has for them.
        ended: The ends of the runs.
    """
    if ended and ended[-1].stop_reason == "cancelled":
        return protocol.RunFinishedCancelledOutcome()
    interrupts = [_INTERRUPTS[call.kind](call_id, call) for call_id, call in pending if call.kind in _INTERRUPTS]
    if interrupts:
        return protocol.RunFinishedInterruptOutcome(interrupts=interrupts)
    left = [call_id for call_id, call in pending if call.kind != "queued"]
    return protocol.RunFinishedSuccessOutcome(pending_tool_call_ids=left or None)


def _approval(call_id: str, call: PendingCall) -> protocol.Interrupt:
    arguments = f" Its arguments: {to_json(call.args)}" if is_apart(call) else ""  # no event of the run has shown them
    sentence, told = f"The tool {full_name(call)} may run only if that is approved.{arguments}", told_of_tool(call)
    return protocol.Interrupt(
        id=signature_of(call),
        reason="tool_call",
        message=mend_surrogates("\n".join([sentence, *(f"{title}: {text}" for title, text in titled_words_of_tool(call).items())])),
        tool_call_id=call_id,
        response_schema=dict(_ANSWER),
        metadata={"autotools": told} if told else None,
    )


def _question(call_id: str, call: PendingCall) -> protocol.Interrupt:
    sentences = [str(call.args[name]) for name in ("message", "url") if name in call.args]
    return protocol.Interrupt(
        id=signature_of(call),
        reason="input_required",
        message=mend_surrogates("\n".join(sentences)),
        response_schema=plain(call.args.get("schema", {"type": "object"})),
    )


_INTERRUPTS: Final[Mapping[str, Callable[[str, PendingCall], protocol.Interrupt]]] = {
    **dict.fromkeys(APPROVABLE, _approval),
    ELICITATION: _question,
}


def _failure_sentence(failure: Failure) -> str:
    """Return the text of a failure for a client: its details if they may be sent, else a plain sentence."""
    return mend_surrogates(failure.text if failure.details is None else failure.details)
