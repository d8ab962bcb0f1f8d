"""A plain text display: answers on one stream, remarks on another."""

from typing import ClassVar, TextIO

from langchain_autotools import event_types as kinds
from langchain_autotools.event_tables import EventTable
from langchain_autotools.messages.calls import ToolCallRecord
from langchain_autotools.messages.printable import call_text
from langchain_autotools.showing.lines import Lines, LinesRun

from .base import Display, print_error


class PlainDisplay(Lines, Display):
    """Writes text as it arrives, and everything else on lines of its own. A call that needs approval is shown once it may run."""

    prompt = "\n> "
    question = "  Run it? y, n, e (with other arguments), or why not: "
    edit_question = "  The arguments as JSON: "

    def __init__(self, answers: TextIO, remarks: TextIO) -> None:
        super().__init__(answers, remarks)
        self._held: dict[str, ToolCallRecord] = {}

    def model(self, name: str, reason: str | None) -> None:
        """Write the model's name."""
        self.note(f"model: {name}" + (f" ({reason})" if reason else ""))

    def call_waits(self, call: ToolCallRecord) -> None:
        """Write the whole call in Python's syntax."""
        self._held.pop(call.id, None)
        self._line(f"? {call_text(call)}", "call")

    def call_allowed(self, call: ToolCallRecord) -> None:
        """Write the call that runs now."""
        super()._call(call, 0)

    def interrupted(self) -> None:
        """Write a remark."""
        self.note("(interrupted)")

    def offered(self, name: str) -> None:
        """Write the name on a line of its own among the answers."""
        self._write(self._answers, f"{name}\n")

    def error(self, error: Exception) -> None:
        """Print one line on standard error."""
        self._end_answer()
        print_error(error)

    def _call(self, call: ToolCallRecord, depth: int) -> None:
        if depth == 0 and (self.asked is None or call.name in self.asked):
            self._held[call.id] = call
        else:
            super()._call(call, depth)

    def _result(self, event: kinds.CallResult, run: LinesRun) -> None:
        held = self._held.pop(event.call_id, None) if run.depth == 0 else None
        if held is not None:  # nobody was asked: it was refused before
            super()._call(held, 0)
        super()._result(event, run)

    def _failed(self, event: kinds.RunFailed, run: LinesRun) -> None:
        if run.depth:
            super()._failed(event, run)
        else:  # `error` is told of it
            self.joined.piece(event)

    table: ClassVar = EventTable("CLI text", {**Lines.table, kinds.CallResult: _result, kinds.RunFailed: _failed})
