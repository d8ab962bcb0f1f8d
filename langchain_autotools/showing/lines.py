"""Live display of runs as plain text: answers on one stream, remarks on another."""

import os
from typing import TextIO

from langchain_core.messages import BaseMessage

from ..encoders.public import public_message
from ..event_types import RunEvent
from ..messages.display import printable, quoted
from ..strict_json import mend_surrogates
from .view_model import EndView, JoinedText, Line, PartView, ViewModel


class Lines:
    """Writes text as it arrives, and everything else on lines of its own. Runs inside tools are indented.

    Args:
        answers: Where the text of answers goes, and nothing else.
        remarks: Where the rest goes: calls, progress, results, usage. May be the same place, as at a terminal.

    Attributes:
        joined: Joins the texts of messages.
        last: The part of its run that the last event has changed; None for none.
    """

    def __init__(self, answers: TextIO, remarks: TextIO) -> None:
        self._answers = answers
        self._remarks = remarks
        self.joined = JoinedText()
        self._together = _same_place(answers, remarks)
        self._line_is_open = False
        self._closed_by_line = self._together
        self._view_model = ViewModel()
        self.last: PartView | None = None

    def show(self, event: RunEvent) -> None:
        """Show an event."""
        event, run, self.last = change = self._view_model.apply(event)
        self._view_model.changed.clear()
        if not run.depth:
            self._answer(self.joined.piece(event))
            if isinstance(self.last, EndView) and self.last.error is None:
                self._end_answer()
        for line in change.lines():
            self._tell(line, run.depth)

    def show_input(self, message: BaseMessage) -> None:
        """Show a message of a model's input."""
        self._line(quoted(public_message(message)), "quiet")

    def note(self, text: str) -> None:
        """Write a remark on a line of its own."""
        self._end_answer()
        self._line(text, "quiet")

    # ------------------------------------------------------------------------------------------ writing

    def _answer(self, text: str) -> None:
        # After the line of a result there is no need for the line end that separates two messages.
        text = printable(mend_surrogates(text.lstrip("\n") if self._closed_by_line else text))
        if text:
            self._write(self._answers, text)
            self._line_is_open = not text.endswith("\n")
            self._closed_by_line = False

    def _tell(self, line: Line, depth: int) -> None:
        """Write a line about the last event, indented."""
        self._line(*line, depth)

    def _line(self, text: str, style: str, depth: int = 0) -> None:
        """Write a line among the remarks, separated from the answers if they share a stream."""
        if self._together:
            self._end_answer()
            self._closed_by_line = True
        self._write(self._remarks, f"{'  ' * depth}{printable(mend_surrogates(text))}\n", style)

    def _end_answer(self) -> None:
        if self._line_is_open:
            self._write(self._answers, "\n")
        self._line_is_open = False

    def _write(self, stream: TextIO, text: str, style: str = "") -> None:
        """Write text to its stream; `style` is the kind of text."""
        stream.write(text)
        stream.flush()


def _same_place(one: TextIO, other: TextIO) -> bool:
    """Whether two streams have the same reader: one terminal, one file, one pipe."""
    if one is other:
        return True
    try:
        return os.path.sameopenfile(one.fileno(), other.fileno())
    except (OSError, ValueError, AttributeError):
        return False
