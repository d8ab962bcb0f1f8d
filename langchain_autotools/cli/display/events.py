"""A conversation as JSON events, one a line; docs/cli.md describes them."""

import json
import threading
from typing import Any, TextIO

from langchain_core.messages import BaseMessage, message_to_dict

from langchain_autotools.executor import ToolCallResult
from langchain_autotools.messages.calls import ToolCallRecord
from langchain_autotools.messages.carrier import run_usage
from langchain_autotools.messages.metadata import own_metadata, text_of

from .base import Display, one_line


class EventDisplay(Display):
    """One JSON object a line, in the order things happen.

    Args:
        stream: Where to write.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()  # calls are told from the threads they run in
        self._announced: set[str] = set()
        self._model: str | None = None

    def model(self, name: str, reason: str | None) -> None:
        """Nothing yet: the model's name stands in `done`."""
        self._model = name

    def text(self, text: str) -> None:
        """`text`: a piece of the answer."""
        self._event("text", text=text)

    def call_waits(self, call: ToolCallRecord) -> None:
        """`approval`: an answer is read from standard input."""
        self._event("approval", id=call.id, name=call.name, args=call.args)

    def call_started(self, call: ToolCallRecord) -> None:
        """`tool_call_start` and `tool_call`: the call begins to run."""
        self._announced.add(call.id)
        with self._lock:
            self._write("tool_call_start", id=call.id, name=call.name)
            self._write("tool_call", id=call.id, name=call.name, args=call.arguments if call.args is None else call.args)

    def call_done(self, result: ToolCallResult) -> None:
        """`tool_result`; a call that was refused before it could run is announced first."""
        if result.call.id not in self._announced:
            self.call_started(result.call)
        message = result.message
        self._event("tool_result", id=result.call.id, name=result.call.name, status=message.status, content=text_of(message))

    def message(self, message: BaseMessage) -> None:
        """`message`: a complete message in LangChain's plain form."""
        self._event("message", message=message_to_dict(message))

    def done(self, run: BaseMessage) -> None:
        """`done`: the run has ended."""
        own = own_metadata(run)
        stop_reason = own.get("stop_reason", "complete")
        self._event(
            "done",
            stop_reason=stop_reason,
            max_turns_reached=stop_reason == "max_turns",
            usage=run_usage(run),
            turns=own.get("turns", 1),
            model=self._model,
        )

    def error(self, error: Exception) -> None:
        """`error`: something failed; nothing follows of this run."""
        self._event("error", error=type(error).__name__, message=one_line(error))

    def _event(self, kind: str, **fields: Any) -> None:
        with self._lock:
            self._write(kind, **fields)

    def _write(self, kind: str, **fields: Any) -> None:
        self._stream.write(json.dumps({"type": kind, **fields}, default=str) + "\n")
        self._stream.flush()
