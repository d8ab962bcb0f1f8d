"""A display of JSON events, one per line, described in docs/cli.md."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TextIO

from langchain_autotools import event_types as kinds
from langchain_autotools import vendor_event_types as vendor_kinds
from langchain_autotools.encoders.plain import plain
from langchain_autotools.encoders.server_sent_events import FrameEncoder
from langchain_autotools.event_tables import NOTHING, EventTable
from langchain_autotools.event_types import RunEvent
from langchain_autotools.messages.calls import ToolCallRecord
from langchain_autotools.messages.metadata import text_of
from langchain_autotools.showing.lines import JoinedText

from .base import Display, error_line


class EventDisplay(Display):
    """Prints one JSON object per line, in order of occurrence.

    Args:
        stream: Where to write.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._model: str | None = None
        self._encoder = FrameEncoder(artifacts=True)
        self.joined = JoinedText()

    def model(self, name: str, reason: str | None) -> None:
        """Print nothing: the model's name is part of `done`."""
        self._model = name

    def show(self, event: RunEvent) -> None:
        """Print the event; one of a nested run inside `nested`. The end of the run is `done` or `error`."""
        described, line = self._encoder.described(event), _LINES.get(type(event))
        if described is None or line is None:
            return
        kind, frame = described
        data = line.change({"id" if name == "call_id" else name: value for name, value in frame.items()}, event)
        if "parent_run_id" in data:
            self._write("nested", event={"type": kind, **data})
            return
        if text := self.joined.piece(event):
            message = {"message_id": data["message_id"]} if "message_id" in data else {}  # a result that is the answer has none
            self._write("text", run_id=event.run_id, **message, text=text)
        if line.write is not None:
            line.write(self, kind, **data)

    def _done(self, _: str, **data: Any) -> None:
        self._write("done", **data, model=self._model)

    def call_waits(self, call: ToolCallRecord) -> None:
        """Print `approval`: an answer is read from standard input."""
        self._write("approval", id=call.id, name=call.name, args=call.args)

    def interrupted(self) -> None:
        """Print `error`: nothing follows of this run."""
        self._write("error", error="KeyboardInterrupt", message="interrupted")

    def offered(self, name: str) -> None:
        """Print `model` with its name."""
        self._write("model", name=name)

    def error(self, error: Exception) -> None:
        """Print `error`: nothing follows of this run."""
        self._write("error", error=type(error).__name__, message=error_line(error))

    def _write(self, kind: str, **fields: Any) -> None:
        self._stream.write(json.dumps(plain({"type": kind, **fields})) + "\n")
        self._stream.flush()


def _same(data: dict[str, Any], _: RunEvent) -> dict[str, Any]:
    return data


def _call(data: dict[str, Any], event: kinds.CallReady) -> dict[str, Any]:
    return data if event.call.args is not None else {**data, "args": event.call.arguments}


def _result(data: dict[str, Any], event: kinds.CallResult) -> dict[str, Any]:
    return {**data, "content": text_of(event.message)}


@dataclass(frozen=True)
class _Line:
    """The lines of a kind of event.

    Attributes:
        write: Writes the line; `NOTHING` where the text of the run, or its end, has a line of its own.
        change: Makes the data of the event's frame those of the line.
    """

    write: Callable[..., None] | None = EventDisplay._write
    change: Callable[[dict[str, Any], Any], dict[str, Any]] = _same


_LINES: Final = EventTable(
    "CLI --json",
    {
        kinds.RunStarted: _Line(NOTHING),
        kinds.TextDelta: _Line(NOTHING),
        kinds.ReasoningDelta: _Line(),
        kinds.CallStarted: _Line(),
        kinds.CallArgumentsDelta: _Line(),
        kinds.CallReady: _Line(change=_call),
        kinds.CallDiscarded: _Line(),
        kinds.CallProgress: _Line(),
        kinds.CallResult: _Line(change=_result),
        kinds.MessageDone: _Line(),
        kinds.MessageDiscarded: _Line(),
        kinds.ModelChanged: _Line(),
        kinds.MessagesAdded: _Line(),
        kinds.TurnUsage: _Line(),
        kinds.CallsPending: _Line(),
        vendor_kinds.VendorCallStarted: _Line(),
        vendor_kinds.VendorCallProgress: _Line(),
        vendor_kinds.VendorCallDone: _Line(),
        vendor_kinds.SourceFound: _Line(),
        vendor_kinds.FileMade: _Line(),
        kinds.RunEnded: _Line(EventDisplay._done),
        kinds.RunFailed: _Line(NOTHING),
    },
)
