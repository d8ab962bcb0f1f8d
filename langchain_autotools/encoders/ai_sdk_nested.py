"""Runs inside tools as data parts of the UI message, without parts of their own in the outer message."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from langchain_core.messages import AIMessage

from .. import event_types as kinds
from .. import vendor_event_types as vendor_kinds
from ..event_tables import NOTHING, EventTable
from ..event_types import RunEvent
from .ai_sdk_values import Chunk, error_text, shown


class NestedRuns:
    """Collects the data part of each run inside a tool.

    A part `data-run` has the run's id, and is sent anew when its run begins, ends, or something of it is whole; the text between comes as
    transient parts `data-run-text`, which a page gets through `onData` and does not keep.
    """

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._shown: dict[str, Chunk] = {}

    def takes(self, event: RunEvent) -> bool:
        """Whether an event belongs to a run inside a tool."""
        if event.run_id not in self._shown and event.run_id not in self._seen:
            self._seen.add(event.run_id)
            if event.parent_run_id in self._seen:
                place = {"runId": event.run_id, "parentRunId": event.parent_run_id, "toolCallId": event.parent_call_id}
                self._shown[event.run_id] = {**place, "state": "running", "text": "", "calls": []}
        return event.run_id in self._shown

    def feed(self, event: RunEvent) -> Iterator[Chunk]:
        """Yield the chunks for an event of a run inside a tool."""
        maker = _CHUNKS.get(type(event))
        return iter(()) if maker is None else maker(self._shown[event.run_id], event)


def _text(part: Chunk, event: kinds.TextDelta) -> Iterator[Chunk]:
    data = {"runId": event.run_id, "toolCallId": event.parent_call_id, "messageId": event.message_id, "text": event.text}
    if event.separator:
        part["text"] += event.separator
        data["separator"] = event.separator
    yield {"type": "data-run-text", "data": data, "transient": True}


def _run_started(part: Chunk, event: kinds.RunStarted) -> Iterator[Chunk]:
    part["name"] = event.name
    yield _sent(part, event)


def _message_done(part: Chunk, event: kinds.MessageDone) -> Iterator[Chunk]:
    if isinstance(event.message, AIMessage):
        part["text"] += event.message.text
        yield _sent(part, event)


def _call_ready(part: Chunk, event: kinds.CallReady) -> Iterator[Chunk]:
    call = event.call
    written = call.arguments if call.args is None else shown(call.args)
    part["calls"].append({"toolCallId": call.id, "toolName": call.spelling, "input": written})
    yield _sent(part, event)


def _result(part: Chunk, event: kinds.CallResult) -> Iterator[Chunk]:
    made = {one["toolCallId"]: one for one in part["calls"]}.get(event.call_id, {})
    failed = event.message.status == "error"
    made |= {"errorText": error_text(event.message.content)} if failed else {"output": shown(event.message.content)}
    yield _sent(part, event)


def _run_ended(part: Chunk, event: kinds.RunEnded) -> Iterator[Chunk]:
    part |= {"state": "ended", "stop_reason": event.stop_reason}
    yield _sent(part, event)


def _run_failed(part: Chunk, event: kinds.RunFailed) -> Iterator[Chunk]:
    part |= {"state": "failed", "errorText": type(event.error).__name__}
    yield _sent(part, event)


def _sent(part: Chunk, event: RunEvent) -> Chunk:
    return {"type": "data-run", "id": event.run_id, "data": part}


_CHUNKS: Final = EventTable[Callable[[Chunk, Any], Iterator[Chunk]]](
    "AI SDK: runs inside tools",
    {
        kinds.RunStarted: _run_started,
        kinds.TextDelta: _text,
        kinds.ReasoningDelta: NOTHING,
        kinds.CallStarted: NOTHING,
        kinds.CallArgumentsDelta: NOTHING,
        kinds.CallReady: _call_ready,
        kinds.CallDiscarded: NOTHING,
        kinds.CallProgress: NOTHING,
        kinds.CallResult: _result,
        kinds.MessageDone: _message_done,
        kinds.MessageDiscarded: NOTHING,
        kinds.ModelChanged: NOTHING,
        kinds.MessagesAdded: NOTHING,
        kinds.TurnUsage: NOTHING,
        kinds.CallsPending: NOTHING,
        vendor_kinds.VendorCallStarted: NOTHING,
        vendor_kinds.VendorCallProgress: NOTHING,
        vendor_kinds.VendorCallDone: NOTHING,
        vendor_kinds.SourceFound: NOTHING,
        vendor_kinds.FileMade: NOTHING,
        kinds.RunEnded: _run_ended,
        kinds.RunFailed: _run_failed,
    },
)
