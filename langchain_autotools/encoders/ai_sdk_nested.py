"""Runs inside tools as data parts of the UI message: they open no part of the outer message."""

from collections.abc import Iterator

from langchain_core.messages import AIMessage

from ..event_types import (
    CallReady,
    CallResult,
    MessageDone,
    RunEnded,
    RunEvent,
    RunFailed,
    RunStarted,
    TextDelta,
)
from .ai_sdk_values import Chunk, error_text, shown


class NestedRuns:
    """Keeps what the data part of each run inside a tool shows.

    A part `data-run` has the run's id, and is sent anew when its run begins, ends, or something of it is whole; the text between comes as
    transient parts `data-run-text`, which a page gets through `onData` and does not keep.
    """

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._shown: dict[str, Chunk] = {}

    def takes(self, event: RunEvent) -> bool:
        """Whether an event is of a run inside a tool."""
        if event.run_id not in self._shown and event.run_id not in self._seen:
            self._seen.add(event.run_id)
            if event.parent_run_id in self._seen:
                said = {"runId": event.run_id, "parentRunId": event.parent_run_id, "toolCallId": event.parent_call_id}
                self._shown[event.run_id] = {**said, "state": "running", "text": "", "calls": []}
        return event.run_id in self._shown

    def feed(self, event: RunEvent) -> Iterator[Chunk]:
        """The chunks that such an event makes."""
        part = self._shown[event.run_id]
        if isinstance(event, TextDelta):
            data = {"runId": event.run_id, "toolCallId": event.parent_call_id, "messageId": event.message_id, "text": event.text}
            if event.separator:
                part["text"] += event.separator
                data["separator"] = event.separator
            yield {"type": "data-run-text", "data": data, "transient": True}
        elif _note(part, event):
            yield {"type": "data-run", "id": event.run_id, "data": part}


def _note(part: Chunk, event: RunEvent) -> bool:
    """Note an event in the part of its run; whether that is something to show."""
    match event:
        case RunStarted():
            part["name"] = event.name
        case MessageDone(message=AIMessage()):
            part["text"] += event.message.text
        case CallReady(call=call):
            part["calls"].append(
                {"toolCallId": call.id, "toolName": call.spelling, "input": call.arguments if call.args is None else shown(call.args)}
            )
        case CallResult():
            made = {one["toolCallId"]: one for one in part["calls"]}.get(event.call_id, {})
            failed = event.message.status == "error"
            made |= {"errorText": error_text(event.message.content)} if failed else {"output": shown(event.message.content)}
        case RunEnded():
            part |= {"state": "ended", "stop_reason": event.stop_reason}
        case RunFailed():
            part |= {"state": "failed", "errorText": type(event.error).__name__}
        case _:
            return False
    return True
