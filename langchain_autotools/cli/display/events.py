"""A conversation as JSON events, one a line; docs/cli.md describes them."""

import json
from typing import Any, TextIO

from langchain_autotools.encoders.plain import plain
from langchain_autotools.encoders.server_sent_events import FrameEncoder
from langchain_autotools.event_types import CallReady, CallResult, RunEnded, RunEvent, RunFailed, RunStarted, TextDelta
from langchain_autotools.messages.calls import ToolCallRecord
from langchain_autotools.messages.metadata import text_of
from langchain_autotools.showing.lines import JoinedText

from .base import Display, error_line


class EventDisplay(Display):
    """One JSON object a line, in the order things happen.

    Args:
        stream: Where to write.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._model: str | None = None
        self._encoder = FrameEncoder(artifacts=True)
        self.joined = JoinedText()

    def model(self, name: str, reason: str | None) -> None:
        """Nothing yet: the model's name stands in `done`."""
        self._model = name

    def take(self, event: RunEvent) -> None:
        """The event; of a run inside another in a `nested`. The end of the run is `done`, or what `error` says."""
        told = self._encoder.described(event)
        if told is None:
            return
        kind, data = told
        if "parent_run_id" in data:
            self._write("nested", event={"type": kind, **_changed(event, data)})
            return
        text = self.joined.piece(event)
        if text:
            message = {"message_id": event.message_id} if isinstance(event, TextDelta) else {}
            self._write("text", run_id=event.run_id, **message, text=text)
        if isinstance(event, RunEnded):
            self._write("done", **data, model=self._model)
        elif not isinstance(event, RunStarted | RunFailed | TextDelta):
            self._write(kind, **_changed(event, data))

    def call_waits(self, call: ToolCallRecord) -> None:
        """`approval`: an answer is read from standard input."""
        self._write("approval", id=call.id, name=call.name, args=call.args)

    def interrupted(self) -> None:
        """`error`: nothing follows of this run."""
        self._write("error", error="KeyboardInterrupt", message="interrupted")

    def offered(self, name: str) -> None:
        """`model`: its name."""
        self._write("model", name=name)

    def error(self, error: Exception) -> None:
        """`error`: something failed; nothing follows of this run."""
        self._write("error", error=type(error).__name__, message=error_line(error))

    def _write(self, kind: str, **fields: Any) -> None:
        self._stream.write(json.dumps(plain({"type": kind, **fields})) + "\n")
        self._stream.flush()


def _changed(event: RunEvent, data: dict[str, Any]) -> dict[str, Any]:
    """What is said of an event, in the words of this display: a call's id is `id`, arguments that are no object and results are text."""
    said = {"id" if name == "call_id" else name: value for name, value in data.items()}
    if isinstance(event, CallReady) and event.call.args is None:
        said["args"] = event.call.arguments
    elif isinstance(event, CallResult):
        said["content"] = text_of(event.message)
    return said
