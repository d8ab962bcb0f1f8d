"""Live display of runs as plain text: answers on one stream, remarks on another."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, TextIO

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from .. import event_types as kinds
from ..encoders.public import public, public_message, titled_words_of_tool, to_json
from ..event_types import NOTHING, EventTable, RunEvent
from ..executor.pending import full_name
from ..messages.calls import ToolCallRecord
from ..messages.display import call_text, escaped, printable, quoted, summary_text, text_and_media
from ..messages.metadata import text_of
from ..messages.run_messages import Separators
from ..strict_json import mend_surrogates
from .view_model import VendorCallView, file_name, source_line, vendor_call_brief

_LONGEST_LINE: Final = 200
_LONGEST_NAME: Final = 60


@dataclass
class LinesRun:
    """The state of a run: its nesting depth, the calls of its latest turn, an unfinished line, and the sources of its message."""

    depth: int
    calls_of: str = ""
    calls: dict[str, ToolCallRecord] = field(default_factory=dict)
    line: str = ""
    sources: dict[tuple[str | None, str | None], kinds.SourceFound] = field(default_factory=dict)


class JoinedText:
    """The text of a run, as in its run message, from the run's events.

    Args:
        separator: What stands between the texts of two turns where there is no white space.
    """

    def __init__(self, separator: str = "\n") -> None:
        self.separate_by(separator)

    def separate_by(self, separator: str) -> None:
        """Set the separator, and forget the texts so far."""
        self._separator = separator
        self._start_over()

    def _start_over(self) -> None:
        self._joints = Separators(self._separator)
        self._results: list[str] = []  # of the latest turn

    def piece(self, event: RunEvent) -> str:
        """Return an event's contribution to the text."""
        piece = _PIECES.get(type(event))
        return "" if piece is None else piece(self, event)

    def _text(self, event: kinds.TextDelta) -> str:
        return self._next(event.text)

    def _message(self, event: kinds.MessageDone) -> str:
        if isinstance(event.message, AIMessage):
            self._joints.ended(event.message)
            self._results = []
        elif isinstance(event.message, HumanMessage):
            self._joints.ask()
        else:
            self._results.append(text_of(event.message))
        return ""

    def _ended(self, event: kinds.RunEnded) -> str:
        direct = self._results if event.stop_reason == "return_direct" else []
        text = "".join(map(self._direct, direct))
        self._start_over()
        return text

    def _failed(self, event: kinds.RunFailed) -> str:
        self._start_over()
        return ""

    def _direct(self, text: str) -> str:
        self._joints.ask()
        return self._next(text)

    def _next(self, text: str) -> str:
        return self._joints.before(text) + text


_PIECES: Final[Mapping[type[RunEvent], Callable[[JoinedText, Any], str]]] = {
    kinds.TextDelta: JoinedText._text,
    kinds.MessageDone: JoinedText._message,
    kinds.RunEnded: JoinedText._ended,
    kinds.RunFailed: JoinedText._failed,
}
"""The events that tell of the text."""


class Lines:
    """Writes text as it arrives, and everything else on lines of its own. Runs inside tools are indented.

    Args:
        answers: Where the text of answers goes, and nothing else.
        remarks: Where the rest goes: calls, progress, results, usage. May be the same place, as at a terminal.

    Attributes:
        joined: Joins the texts of messages.
    """

    def __init__(self, answers: TextIO, remarks: TextIO) -> None:
        self._answers = answers
        self._remarks = remarks
        self.joined = JoinedText()
        self._together = _same_place(answers, remarks)
        self._line_is_open = False
        self._closed_by_line = self._together
        self._runs: dict[str, LinesRun] = {}

    def show(self, event: RunEvent) -> None:
        """Show an event."""
        event = public(event)
        run = self._runs.get(event.run_id)
        if run is None:
            around = self._runs.get(event.parent_run_id or "")
            run = self._runs[event.run_id] = LinesRun(0 if around is None else around.depth + 1)
        shown = self.table.get(type(event))
        if shown is not None:
            shown(self, event, run)

    def show_input(self, message: BaseMessage) -> None:
        """Show a message of a model's input."""
        self._line(quoted(public_message(message)), "quiet")

    def note(self, text: str) -> None:
        """Write a remark on a line of its own."""
        self._end_answer()
        self._line(text, "quiet")

    # ------------------------------------------------------------------------------------------ events

    def _text(self, event: kinds.TextDelta, run: LinesRun) -> None:
        if not run.depth:
            self._answer(self.joined.piece(event))
            return
        *whole, run.line = (run.line + event.text).split("\n")
        for line in whole:
            self._line(line, "quiet", run.depth)

    def _answer(self, text: str) -> None:
        # After the line of a result there is no need for the line end that separates two messages.
        text = printable(mend_surrogates(text.lstrip("\n") if self._closed_by_line else text))
        if text:
            self._write(self._answers, text)
            self._line_is_open = not text.endswith("\n")
            self._closed_by_line = False

    def _message(self, event: kinds.MessageDone, run: LinesRun) -> None:
        if event.message.type == "human":
            self.show_input(event.message)
            return
        if not run.depth:
            self._answer(self.joined.piece(event))
        self._end_line(run)
        sources, run.sources = run.sources, {}
        for number, found in enumerate(sources.values(), 1):
            self._line(f"[{number}] {_one_line_of(source_line(found))}", "quiet", run.depth)

    def _end_line(self, run: LinesRun) -> None:
        line, run.line = run.line, ""
        if line:
            self._line(line, "quiet", run.depth)

    def _ready(self, event: kinds.CallReady, run: LinesRun) -> None:
        self._end_line(run)
        if event.message_id != run.calls_of:
            run.calls_of, run.calls = event.message_id, {}
        run.calls[event.call_id] = event.call
        self._call(event.call, run.depth)

    def _call(self, call: ToolCallRecord, depth: int) -> None:
        self._line(f"→ {call_text(call)}{' (edited)' if call.edited else ''}", "call", depth)

    def _progress(self, event: kinds.CallProgress, run: LinesRun) -> None:
        value = event.value if isinstance(event.value, str) else to_json(event.value)
        self._line(f"… {self._name(event.call_id, run)}: {_one_line_of(value)}", "quiet", run.depth)

    def _edited(self, call: ToolCallRecord, run: LinesRun) -> None:
        """Write a call again that ran with other arguments than the model wrote."""
        self._call(call, run.depth)

    def _result(self, event: kinds.CallResult, run: LinesRun) -> None:
        if (call := event.carried_out).edited:
            run.calls[event.call_id] = call
            self._edited(call, run)
        style = "failure" if event.message.status == "error" else "result"
        self._line(f"← {self._name(event.call_id, run, event.call.name)}: {_one_line_of(text_and_media(event.message))}", style, run.depth)

    def _name(self, call_id: str, run: LinesRun, tool: str | None = None) -> str:
        """Return the name of a call: its tool's, with arguments if the turn calls the tool more than once."""
        call = run.calls.get(call_id)
        if call is None:  # of a run that was resumed
            return "a call" if tool is None else escaped(tool)
        alone = sum(other.name == call.name for other in run.calls.values()) == 1
        return escaped(call.name) if alone else _one_line_of(call_text(call), _LONGEST_NAME)

    def _discarded(self, event: kinds.CallDiscarded, run: LinesRun) -> None:
        self._line(f"(a call came to nothing: {_one_line_of(event.reason)})", "quiet", run.depth)

    def _model_changed(self, event: kinds.ModelChanged, run: LinesRun) -> None:
        self._line(f"({_one_line_of(event.to_model)} goes on, after {_one_line_of(event.from_model)})", "quiet", run.depth)

    def _pending(self, event: kinds.CallsPending, run: LinesRun) -> None:
        for call in event.calls:
            self._line(f"? {call_text(ToolCallRecord(call.id, full_name(call), '', call.args))} waits", "call", run.depth)
            for title, text in titled_words_of_tool(call).items():
                self._line(f"  {title}: {_one_line_of(text)}", "quiet", run.depth)

    def _ended(self, event: kinds.RunEnded, run: LinesRun) -> None:
        if not run.depth:
            self._answer(self.joined.piece(event))
            self._end_answer()
        self._line(f"[{summary_text(event.turns, event.usage, event.stop_reason)}]", "quiet", run.depth)

    def _failed(self, event: kinds.RunFailed, run: LinesRun) -> None:
        if not run.depth:
            self._answer(self.joined.piece(event))
        self._end_line(run)
        outcome = f"failed: {type(event.error).__name__}" if isinstance(event.error, Exception) else "interrupted"
        self._line(f"[{outcome}]", "failure", run.depth)

    def _vendor_call_started(self, event: kinds.VendorCallStarted, run: LinesRun) -> None:
        self._end_line(run)
        self._line(f"⌕ {_one_line_of(event.name)}…", "call", run.depth)

    def _vendor_call_done(self, event: kinds.VendorCallDone, run: LinesRun) -> None:
        brief = vendor_call_brief(VendorCallView(event.name, event.args))
        line = _one_line_of(f"{event.name}: {brief}" if brief else event.name)
        self._line(f"⌕ {line} (failed)" if event.failed else f"⌕ {line}", "failure" if event.failed else "result", run.depth)

    def _source(self, event: kinds.SourceFound, run: LinesRun) -> None:
        run.sources.setdefault((event.url, event.document), event)

    def _file(self, event: kinds.FileMade, run: LinesRun) -> None:
        self._end_line(run)
        self._line(f"[{_one_line_of(file_name(event))}]", "result", run.depth)

    table: ClassVar = EventTable[Callable[[Any, Any, LinesRun], None]](
        "lines",
        {
            kinds.RunStarted: NOTHING,
            kinds.TextDelta: _text,
            kinds.ReasoningDelta: NOTHING,
            kinds.CallStarted: NOTHING,
            kinds.CallArgumentsDelta: NOTHING,
            kinds.CallReady: _ready,
            kinds.CallDiscarded: _discarded,
            kinds.CallProgress: _progress,
            kinds.CallResult: _result,
            kinds.MessageDone: _message,
            kinds.MessageDiscarded: NOTHING,
            kinds.ModelChanged: _model_changed,
            kinds.MessagesAdded: NOTHING,
            kinds.TurnUsage: NOTHING,
            kinds.CallsPending: _pending,
            kinds.VendorCallStarted: _vendor_call_started,
            kinds.VendorCallProgress: NOTHING,
            kinds.VendorCallDone: _vendor_call_done,
            kinds.SourceFound: _source,
            kinds.FileMade: _file,
            kinds.RunEnded: _ended,
            kinds.RunFailed: _failed,
        },
    )
    """What is shown of each kind of event; a subclass that shows one otherwise has a table of its own."""

    # ------------------------------------------------------------------------------------------ writing

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


def _one_line_of(text: str, longest: int = _LONGEST_LINE) -> str:
    """Return text on one line, shortened if it is long."""
    line = escaped(" ".join(text.split()))
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def _same_place(one: TextIO, other: TextIO) -> bool:
    """Whether two streams have the same reader: one terminal, one file, one pipe."""
    if one is other:
        return True
    try:
        return os.path.sameopenfile(one.fileno(), other.fileno())
    except (OSError, ValueError, AttributeError):
        return False
