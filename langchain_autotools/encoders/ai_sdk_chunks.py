"""Conversion of a run's events to chunks of the AI SDK's UI message stream, version 1.

What the chunks are is said by `uiMessageChunkSchema` of the npm package `ai`; what a page makes of them by its `processUIMessageStream`.
Three of its ways decide how the chunks are ordered here:

- A part of a call is looked for in the current step only while the call is written, so no step begins while one is.
- `tool-input-available` makes a page run a tool of its own (`onToolCall`). A call of an earlier message that a resumed run goes on with was
  announced before, so it is shown without that chunk, and only once there is news of it: the page goes on with the message it has, or, if
  it has none, gets a part for the call.
- A call that was asked about carries the answer, whoever gave it: the request and the answer go before its output or `tool-output-denied`.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata, add_usage

from .. import event_types as kinds
from .. import vendor_event_types as vendor_kinds
from ..event_tables import NOTHING, EventTable
from ..event_types import RunEvent
from ..executor.approval.elicitation import ELICITATION
from ..executor.approval.pending import APPROVABLE, Decision, PendingCall, full_name, is_apart, page_id
from ..messages.calls import ToolCallRecord
from ..messages.open_runs import open_run
from .ai_sdk_nested import NestedRuns
from .ai_sdk_values import Chunk, error_text, shown
from .ai_sdk_vendor import VendorParts
from .plain import to_json
from .posted import signature_of

_FINISH_REASONS = {
    "complete": "stop",
    "return_direct": "stop",
    "calls_pending": "tool-calls",
    "refused": "content-filter",
    "length": "length",
    "incomplete": "error",
}


class UIMessageChunks:
    """Creates the chunks of one UI message: pass it the events of a stream, then call `end`.

    Args:
        message_id: The id of the UI message; None leaves it to the page.
    """

    def __init__(self, message_id: str | None = None) -> None:
        self._message_id = message_id
        self._begun = False
        self._in_step = False
        self._messages: set[str] = set()  # the messages that have had their step
        self._open: dict[str, tuple[str, str]] = {}  # by message: the kind and the id of the part that is being written
        self._parts = 0
        self._written: dict[str, list[str]] = {}  # calls that are being written: their names and the pieces of their arguments
        self._held: dict[str, kinds.CallReady] = {}  # calls that are known, and not yet whether they are new
        self._shown: set[str] = set()
        self._reminded: set[str] = set()  # of these, those of an earlier message
        self._usage: UsageMetadata | None = None
        self._ended: kinds.RunEnded | None = None
        self._nested = NestedRuns()
        self._vendor = VendorParts()

    def feed(self, event: RunEvent) -> Iterator[Chunk]:
        """Yield the chunks for an event."""
        if self._nested.takes(event):
            yield from self._nested.feed(event)
        elif maker := _CHUNKS.get(type(event)):
            yield from self._begin()
            yield from maker(self, event)

    def end(self, error: str | None = None) -> Iterator[Chunk]:
        """Yield the chunks after the last event.

        Args:
            error: What went wrong, in a sentence; None where nothing did.
        """
        yield from self._begin()
        for message_id in list(self._open):
            yield from self._close(message_id)
        yield from self._end_step()
        if error is not None:
            yield {"type": "error", "errorText": error}
            yield {"type": "finish", "finishReason": "error"}
        elif self._ended is not None and self._ended.stop_reason == "cancelled":
            yield {"type": "message-metadata", "messageMetadata": _metadata(self._ended)}
            yield {"type": "abort", "reason": "cancelled"}
        elif self._ended is not None:
            reason = _FINISH_REASONS.get(self._ended.stop_reason, "other")
            yield {"type": "finish", "finishReason": reason, "messageMetadata": _metadata(self._ended)}
        else:
            yield {"type": "finish", "finishReason": "other"}

    # ------------------------------------------------------------------------------------------ runs and steps

    def _begin(self) -> Iterator[Chunk]:
        if not self._begun:
            self._begun = True
            yield {"type": "start"} if self._message_id is None else {"type": "start", "messageId": self._message_id}

    def _run_started(self, event: kinds.RunStarted) -> Iterator[Chunk]:
        self._usage = None
        if self._ended is not None:  # a chain with two models: one message tells of both
            yield {"type": "message-metadata", "messageMetadata": _metadata(self._ended)}
            self._ended = None

    def _run_ended(self, event: kinds.RunEnded) -> Iterator[Chunk]:
        self._ended = event
        yield from ()

    def _turn_usage(self, event: kinds.TurnUsage) -> Iterator[Chunk]:
        self._usage = add_usage(self._usage, event.usage)
        yield {"type": "message-metadata", "messageMetadata": {"turns": event.turn, "usage": self._usage}}

    def _step(self, message_id: str) -> Iterator[Chunk]:
        """Begin the step of a message at its first event."""
        if message_id in self._messages or self._written or self._vendor.open:
            return
        self._messages.add(message_id)
        yield from self._end_step()
        self._in_step = True
        yield {"type": "start-step"}

    def _end_step(self) -> Iterator[Chunk]:
        if self._in_step:
            self._in_step = False
            yield {"type": "finish-step"}

    # ------------------------------------------------------------------------------------------ text

    def _text(self, event: kinds.TextDelta) -> Iterator[Chunk]:
        return self._delta("text", event, event.separator)

    def _reasoning(self, event: kinds.ReasoningDelta) -> Iterator[Chunk]:
        return self._delta("reasoning", event, "")

    def _delta(self, kind: str, event: kinds.TextDelta | kinds.ReasoningDelta, separator: str) -> Iterator[Chunk]:
        opened, part = self._open.get(event.message_id, ("", ""))
        if opened != kind:
            yield from self._close(event.message_id)
            yield from self._step(event.message_id)
            part = f"{event.message_id}-{self._parts}"
            self._parts += 1
            self._open[event.message_id] = (kind, part)
            metadata: Chunk = {"providerMetadata": {"autotools": {"separator": separator}}} if separator else {}
            yield {"type": f"{kind}-start", "id": part, **metadata}
        yield {"type": f"{kind}-delta", "id": part, "delta": event.text}

    def _close(self, message_id: str) -> Iterator[Chunk]:
        if message_id in self._open:
            kind, part = self._open.pop(message_id)
            yield {"type": f"{kind}-end", "id": part}

    def _message_done(self, event: kinds.MessageDone) -> Iterator[Chunk]:
        if not isinstance(event.message, AIMessage):
            return
        yield from self._close(event.message_id)
        yield from self._step(event.message_id)
        for ready in [one for one in self._held.values() if one.message_id == event.message_id]:
            yield from self._announce(self._held.pop(ready.call_id).call)
        yield from self._vendor.message_done(event.message)

    def _vendor_event(self, make: Callable[[VendorParts, Any], Iterator[Chunk]], event: Any) -> Iterator[Chunk]:
        """Yield the chunks of what the vendor does, in the step of its message."""
        yield from self._close(event.message_id)
        yield from self._step(event.message_id)
        yield from make(self._vendor, event)

    def _vendor_call_started(self, event: vendor_kinds.VendorCallStarted) -> Iterator[Chunk]:
        return self._vendor_event(VendorParts.started, event)

    def _vendor_call_progress(self, event: vendor_kinds.VendorCallProgress) -> Iterator[Chunk]:
        return self._vendor.progress(event)

    def _vendor_call_done(self, event: vendor_kinds.VendorCallDone) -> Iterator[Chunk]:
        return self._vendor.done(event)

    def _source(self, event: vendor_kinds.SourceFound) -> Iterator[Chunk]:
        return self._vendor_event(VendorParts.source, event)

    def _file(self, event: vendor_kinds.FileMade) -> Iterator[Chunk]:
        return self._vendor_event(VendorParts.file, event)

    def _message_discarded(self, event: kinds.MessageDiscarded) -> Iterator[Chunk]:
        """Notify the page: the protocol has no way to take text back."""
        yield from self._close(event.message_id)
        yield {"type": "data-message-discarded", "data": {"messageId": event.message_id, "attempt": event.attempt}}

    def _model_changed(self, event: kinds.ModelChanged) -> Iterator[Chunk]:
        data = {"from": event.from_model, "to": event.to_model, "afterText": event.after_text, "turn": event.turn}
        yield {"type": "data-model-changed", "data": data}

    # ------------------------------------------------------------------------------------------ calls being made

    def _call_started(self, event: kinds.CallStarted) -> Iterator[Chunk]:
        yield from self._close(event.message_id)
        if event.provisional:
            yield from self._step(event.message_id)
            self._written[event.call_id] = [event.name]
            yield {"type": "tool-input-start", "toolCallId": event.call_id, "toolName": event.name}

    def _arguments(self, event: kinds.CallArgumentsDelta) -> Iterator[Chunk]:
        self._written[event.call_id].append(event.text)
        yield {"type": "tool-input-delta", "toolCallId": event.call_id, "inputTextDelta": event.text}

    def _call_ready(self, event: kinds.CallReady) -> Iterator[Chunk]:
        if event.call_id in self._written:
            del self._written[event.call_id]
            yield from self._announce(event.call)
        else:
            self._held[event.call_id] = event

    def _discarded(self, event: kinds.CallDiscarded) -> Iterator[Chunk]:
        if event.call_id in self._written:
            name, *pieces = self._written.pop(event.call_id)
            call_fields = {"toolCallId": event.call_id, "toolName": name, "input": "".join(pieces), "errorText": event.reason}
            yield {"type": "tool-input-error", **call_fields, "toolMetadata": {"discarded": True}}
        else:  # a whole call without an answer: the run ended before it had one
            yield from self._remind(event.call_id)
            yield {"type": "tool-output-error", "toolCallId": event.call_id, "errorText": event.reason}

    def _announce(self, call: ToolCallRecord) -> Iterator[Chunk]:
        self._shown.add(call.id)
        call_fields: Chunk = {"toolCallId": call.id, "toolName": call.spelling}
        if call.args is None:
            yield {"type": "tool-input-error", **call_fields, "input": call.arguments, "errorText": call.why or ""}
        else:
            yield {"type": "tool-input-available", **call_fields, "input": shown(call.args)}

    def _remind(self, call_id: str) -> Iterator[Chunk]:
        """Repeat a call of an earlier message that has news."""
        ready = self._held.pop(call_id, None)
        if ready is None:
            return
        self._shown.add(call_id)
        self._reminded.add(call_id)
        call = ready.call
        written = call.arguments if call.args is None else to_json(shown(call.args))
        yield {"type": "tool-input-start", "toolCallId": call_id, "toolName": call.spelling}
        yield {"type": "tool-input-delta", "toolCallId": call_id, "inputTextDelta": written}

    # ------------------------------------------------------------------------------------------ what became of calls

    def _progress(self, event: kinds.CallProgress) -> Iterator[Chunk]:
        yield from self._remind(event.call_id)
        yield {"type": "tool-output-available", "toolCallId": event.call_id, "output": shown(event.value), "preliminary": True}

    def _result(self, event: kinds.CallResult) -> Iterator[Chunk]:
        yield from self._remind(event.call_id)
        call, decision = event.call, event.call.decision
        if decision is not None and decision.action == "edit" and decision.value != call.args:
            data = {"toolCallId": call.id, "input": shown(decision.value)}
            yield {"type": "data-edited-arguments", "id": call.id, "data": data}
        rejected = decision is not None and decision.action == "reject"
        if rejected or (decision is not None and decision.uuid and call.id in self._reminded):
            yield from self._answered(decision)
        if rejected:
            yield {"type": "tool-output-denied", "toolCallId": call.id}
        elif open_run(event.message) is not None:
            text = error_text(event.message.content)
            yield {"type": "tool-output-available", "toolCallId": call.id, "output": text, "preliminary": True}
        elif event.message.status == "error":
            yield {"type": "tool-output-error", "toolCallId": call.id, "errorText": error_text(event.message.content)}
        else:
            yield {"type": "tool-output-available", "toolCallId": call.id, "output": shown(event.message.content)}

    def _answered(self, decision: Decision) -> Iterator[Chunk]:
        """Yield the chunks for a decision about a call, whoever made it."""
        approval, rejected = decision.uuid or decision.id, decision.action == "reject"
        answer = {"approved": not rejected, **({"reason": decision.value} if rejected and decision.value else {})}
        yield {"type": "tool-approval-request", "approvalId": approval, "toolCallId": decision.id}
        yield {"type": "tool-approval-response", "approvalId": approval, **answer}

    def _pending(self, event: kinds.CallsPending) -> Iterator[Chunk]:
        for pending in event.calls:
            yield from self._waits(pending)

    def _waits(self, pending: PendingCall) -> Iterator[Chunk]:
        needs_answer, call_id = pending.kind in ("approval", "queued"), page_id(pending)
        if pending.kind == ELICITATION:  # left to the page like a call of its own tool: the answer is the output
            yield {
                "type": "tool-input-available",
                "toolCallId": call_id,
                "toolName": full_name(pending),
                "input": shown(pending.args),
                "providerMetadata": {"autotools": {"kind": ELICITATION}},
            }
        elif is_apart(pending):
            yield {"type": "tool-input-start", "toolCallId": call_id, "toolName": full_name(pending)}
            yield {"type": "tool-input-delta", "toolCallId": call_id, "inputTextDelta": to_json(shown(pending.args))}
        elif pending.id not in self._held and pending.id not in self._shown:  # an item of a vendor's own
            call_fields = {"toolCallId": pending.id, "toolName": pending.name, "input": shown(pending.args)}
            yield {"type": "tool-input-available", **call_fields}
        elif needs_answer:
            yield from self._remind(pending.id)
        else:
            self._held.pop(pending.id, None)
        if pending.kind in APPROVABLE:
            call_fields = {"approvalId": pending.uuid, "toolCallId": call_id}
            yield {"type": "tool-approval-request", **call_fields, "signature": signature_of(pending)}
        elif needs_answer:  # it runs, without a decision of its own, once those before it are decided
            call_fields = {"approvalId": pending.uuid, "toolCallId": call_id}
            yield {"type": "tool-approval-request", **call_fields, "isAutomatic": True}
            yield {"type": "tool-approval-response", "approvalId": pending.uuid, "approved": True}


def _metadata(ended: kinds.RunEnded) -> Chunk:
    metadata = {"stop_reason": ended.stop_reason, "max_turns_reached": ended.max_turns_reached, "turns": ended.turns}
    return metadata if ended.usage is None else {**metadata, "usage": ended.usage}


_CHUNKS: Final = EventTable[Callable[[UIMessageChunks, Any], Iterator[Chunk]]](
    "AI SDK",
    {
        kinds.RunStarted: UIMessageChunks._run_started,
        kinds.TextDelta: UIMessageChunks._text,
        kinds.ReasoningDelta: UIMessageChunks._reasoning,
        kinds.CallStarted: UIMessageChunks._call_started,
        kinds.CallArgumentsDelta: UIMessageChunks._arguments,
        kinds.CallReady: UIMessageChunks._call_ready,
        kinds.CallDiscarded: UIMessageChunks._discarded,
        kinds.CallProgress: UIMessageChunks._progress,
        kinds.CallResult: UIMessageChunks._result,
        kinds.MessageDone: UIMessageChunks._message_done,
        kinds.MessageDiscarded: UIMessageChunks._message_discarded,
        kinds.ModelChanged: UIMessageChunks._model_changed,
        kinds.MessagesAdded: NOTHING,
        kinds.TurnUsage: UIMessageChunks._turn_usage,
        kinds.CallsPending: UIMessageChunks._pending,
        vendor_kinds.VendorCallStarted: UIMessageChunks._vendor_call_started,
        vendor_kinds.VendorCallProgress: UIMessageChunks._vendor_call_progress,
        vendor_kinds.VendorCallDone: UIMessageChunks._vendor_call_done,
        vendor_kinds.SourceFound: UIMessageChunks._source,
        vendor_kinds.FileMade: UIMessageChunks._file,
        kinds.RunEnded: UIMessageChunks._run_ended,
        kinds.RunFailed: NOTHING,
    },
)
