"""A conversation as plain text on standard output."""

import threading
from typing import Any, TextIO

from langchain_core.messages import BaseMessage

from .base import RunSummary, call_text, print_error, printable, result_text, usage_text

__all__ = ["PlainDisplay"]


class PlainDisplay:
    """Text as it comes; every other thing on a line of its own.

    Args:
        stream: Where to write.
    """

    prompt = "\n> "

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()  # calls are told from the threads they run in
        self._line_is_open = False
        self._closed_by_line = True

    def model(self, name: str, reason: str | None) -> None:
        """Name the model."""
        self._line(f"model: {name}" + (f" ({reason})" if reason else ""), "quiet")

    def note(self, text: str) -> None:
        """A remark on a line of its own."""
        self._line(text, "quiet")

    def text(self, text: str) -> None:
        """A piece of the answer, at once."""
        with self._lock:
            # After the line of a result there is no need for the line end that separates two turns.
            text = printable(text.lstrip("\n") if self._closed_by_line else text)
            if text:
                self._write(text)
                self._line_is_open = not text.endswith("\n")
                self._closed_by_line = False

    def call_started(self, call: Any) -> None:
        """The call, as it would stand in Python."""
        self._line(f"→ {call_text(call.name, call.arguments if call.args is None else call.args)}", "call")

    def call_done(self, result: Any) -> None:
        """The result, on one line."""
        failed = result.message.status == "error"
        self._line(f"← {result.call.name}: {result_text(result.message)}", "failure" if failed else "result")

    def message(self, message: BaseMessage) -> None:
        """Nothing: its parts have been shown."""

    def done(self, summary: RunSummary) -> None:
        """Turns, tokens, and why the run ended where that is unusual."""
        self._line(f"[{usage_text(summary)}]", "quiet")

    def error(self, error: Exception) -> None:
        """One line on standard error."""
        with self._lock:
            self._close_line()
        print_error(error)

    def _line(self, text: str, style: str) -> None:
        with self._lock:
            self._close_line()
            self._write(text + "\n", style)
            self._closed_by_line = True

    def _close_line(self) -> None:
        if self._line_is_open:
            self._write("\n")
        self._line_is_open = False

    def _write(self, text: str, style: str = "") -> None:
        """Put text on the screen; `style` says what kind of text it is."""
        self._stream.write(text)
        self._stream.flush()
