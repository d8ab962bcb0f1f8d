"""A conversation as plain text: answers in one place, remarks about them in another."""

import os
import threading
from typing import TextIO

from langchain_core.messages import BaseMessage

from langchain_autotools.executor import ToolCallResult
from langchain_autotools.messages.calls import ToolCallRecord
from langchain_autotools.messages.printable import call_text, escaped, printable, run_text

from .base import Display, print_error, result_text


class PlainDisplay(Display):
    """Text as it comes; every other thing on a line of its own.

    Args:
        answers: Where the text of answers goes, and nothing else.
        remarks: Where the rest goes: the model's name, calls, results, usage. May be the same place, as at a terminal.
    """

    prompt = "\n> "
    question = "  Run it? y, n, e (with other arguments), or why not: "
    edit_question = "  The arguments as JSON: "

    def __init__(self, answers: TextIO, remarks: TextIO) -> None:
        self._answers = answers
        self._remarks = remarks
        self._together = _same_place(answers, remarks)
        self._lock = threading.Lock()  # calls are told from the threads they run in
        self._line_is_open = False
        self._closed_by_line = self._together

    def model(self, name: str, reason: str | None) -> None:
        """Name the model."""
        self.note(f"model: {name}" + (f" ({reason})" if reason else ""))

    def note(self, text: str) -> None:
        """A remark on a line of its own."""
        with self._lock:
            self._end_answer()
            self._line(text, "quiet")

    def text(self, text: str) -> None:
        """A piece of the answer, at once."""
        with self._lock:
            # After the line of a result there is no need for the line end that separates two turns.
            text = printable(text.lstrip("\n") if self._closed_by_line else text)
            if text:
                self._write(self._answers, text)
                self._line_is_open = not text.endswith("\n")
                self._closed_by_line = False

    def call_waits(self, call: ToolCallRecord) -> None:
        """The whole call, as it would stand in Python."""
        with self._lock:
            self._line(f"? {call_text(call)}", "call")

    def call_started(self, call: ToolCallRecord) -> None:
        """The call, as it would stand in Python."""
        with self._lock:
            self._line(f"→ {call_text(call)}", "call")

    def call_done(self, result: ToolCallResult) -> None:
        """The result, on one line."""
        style = "failure" if result.message.status == "error" else "result"
        with self._lock:
            self._line(f"← {escaped(result.call.name)}: {result_text(result.message)}", style)

    def done(self, run: BaseMessage) -> None:
        """Turns, tokens, and why the run ended where that is unusual."""
        self.note(f"[{run_text(run)}]")

    def error(self, error: Exception) -> None:
        """One line on standard error."""
        with self._lock:
            self._end_answer()
        print_error(error)

    def _line(self, text: str, style: str) -> None:
        """A line among the remarks; where they share the answers' place it stands apart from them."""
        if self._together:
            self._end_answer()
            self._closed_by_line = True
        self._write(self._remarks, printable(text) + "\n", style)

    def _end_answer(self) -> None:
        if self._line_is_open:
            self._write(self._answers, "\n")
        self._line_is_open = False

    def _write(self, stream: TextIO, text: str, style: str = "") -> None:
        """Put text in its place; `style` says what kind of text it is."""
        stream.write(text)
        stream.flush()


def _same_place(one: TextIO, other: TextIO) -> bool:
    """Whether what is written to both is read by the same reader: one terminal, one file, one pipe."""
    if one is other:
        return True
    try:
        return os.path.sameopenfile(one.fileno(), other.fileno())
    except (OSError, ValueError, AttributeError):
        return False
