"""Displays of a conversation: as text, or as JSON events described in docs/cli.md."""

import json
import os
import re
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any, Final, TextIO

from ..encoders.public import plain, public, titled_words_of_tool, told_of_tool
from ..encoders.server_sent_events import FrameEncoder
from ..errors import ConfigurationError
from ..event_types import NOTHING, RunEvent
from ..executor import PendingCall
from ..messages.calls import ToolCallRecord
from ..messages.display import call_text, escaped, printable
from ..messages.metadata import text_of
from ..showing.view_model import CallView, EndView, JoinedText, Line, Lines, call_line

_STYLES: Final = {"quiet": "dim", "call": "cyan", "result": "green", "failure": "red"}


class Display:
    """A display that shows nothing, with a method for each notification."""

    prompt = ""
    """The prompt before the user's line in a session."""

    question = ""
    """The prompt for approval of a call."""

    edit_question = ""
    """The prompt for the edited arguments of a call."""

    asked: Collection[str] | None = ()
    """The tools whose calls need the human's approval; None for all."""

    joined: JoinedText
    """Joins the texts of a run's messages."""

    def model(self, name: str, reason: str | None) -> None:
        """Show the model that answers, and the reason for a default choice."""

    def note(self, text: str) -> None:
        """Show a remark, before or after a reply."""

    def show(self, event: RunEvent) -> None:
        """Show an event of the run."""

    def call_waits(self, call: ToolCallRecord, pending: PendingCall) -> None:
        """Show a tool call that waits for approval, with what is known of its tool."""

    def call_allowed(self, call: ToolCallRecord) -> None:
        """Show an approved call."""

    def interrupted(self) -> None:
        """Show that the human has interrupted the run."""

    def offered(self, name: str) -> None:
        """Show a model's name that may be requested."""

    def error(self, error: Exception) -> None:
        """Show an error."""


def make_display(*, as_json: bool) -> Display:
    """Return the display for the output: JSON events on request, colours at a terminal with `rich`, else plain text.

    Plain text keeps answers (standard output) apart from everything else (standard error). NO_COLOR, if set, means no colours.
    """
    if as_json:
        return EventDisplay(sys.stdout)
    if not os.environ.get("NO_COLOR") and (sys.stdout.isatty() or sys.stderr.isatty()):
        with suppress(ImportError):
            return RichDisplay(sys.stdout, sys.stderr)
    return PlainDisplay(sys.stdout, sys.stderr)


def one_line(error: BaseException) -> str:
    """Return an error as one line: its text, with its type if the text alone says little."""
    text = printable(" ".join(str(error).split()))
    if not text:
        return type(error).__name__
    return text if " " in text else f"{type(error).__name__}: {text}"


def _error_line(error: BaseException) -> str:
    """Return an error as one line, with the option for a missing constructor argument."""
    text = one_line(error)
    wanted = re.search(r"\bgive (\w+)", text, re.IGNORECASE) if isinstance(error, ConfigurationError) else None
    return f"{text} (on the command line: -o {wanted[1]} VALUE)" if wanted else text


# ------------------------------------------------------------------------------------ plain text: answers on one stream, remarks on another


class PlainDisplay(Lines, Display):
    """Writes text as it arrives, and everything else on lines of its own. A call that needs approval is shown once it may run."""

    prompt = "\n> "
    question = "  Run it? y, n, e (with other arguments), or why not: "
    edit_question = "  The arguments as JSON: "

    def __init__(self, answers: TextIO, remarks: TextIO) -> None:
        super().__init__(answers, remarks)
        self._held: dict[str, Line] = {}

    def model(self, name: str, reason: str | None) -> None:
        """Write the model's name."""
        self.note(f"model: {name}" + (f" ({reason})" if reason else ""))

    def call_waits(self, call: ToolCallRecord, pending: PendingCall) -> None:
        """Write the whole call in Python's syntax, and what its tool's server says of the tool."""
        self._held.pop(call.id, None)
        self._line(f"? {call_text(call)}", "call")
        for title, text in titled_words_of_tool(pending).items():
            self._line(f"  {title}: {escaped(text)}", "quiet")

    def call_allowed(self, call: ToolCallRecord) -> None:
        """Write the call that runs now."""
        self._line(*call_line(call))

    def interrupted(self) -> None:
        """Write a remark."""
        self.note("(interrupted)")

    def offered(self, name: str) -> None:
        """Write the name on a line of its own among the answers."""
        self._write(self._answers, f"{name}\n")

    def error(self, error: Exception) -> None:
        """Print one line on standard error."""
        self._end_answer()
        self._answers.flush()
        print(f"error: {_error_line(error)}", file=sys.stderr, flush=True)

    def _tell(self, line: Line, depth: int) -> None:
        """Write a line. One of a call that needs approval waits until nobody can be asked: the call was refused before."""
        part = None if depth else self.last
        if isinstance(part, EndView) and part.error is not None:
            return  # `error` is told of it
        if isinstance(part, CallView) and (call := part.shown) is not None:
            if line.style == "call" and (self.asked is None or call.name in self.asked) and not (call.edited and part.result is None):
                if not call.edited:  # else it was shown when it was allowed
                    self._held[call.id] = line
                return
            if line.style in ("result", "failure") and (held := self._held.pop(call.id, None)) is not None:
                super()._tell(held, depth)
        super()._tell(line, depth)


class RichDisplay(PlainDisplay):
    """The plain display with a colour for each kind of line, by `rich`.

    Args:
        answers: Where the text of answers goes.
        remarks: Where the rest goes. Of the two, what is no terminal gets no colours.

    Raises:
        ImportError: `rich` is not installed.
    """

    def __init__(self, answers: TextIO, remarks: TextIO) -> None:
        from rich.console import Console
        from rich.text import Text

        super().__init__(answers, remarks)
        self._consoles = {stream: Console(file=stream, highlight=False) for stream in (answers, remarks)}
        self._coloured = Text

    def _write(self, stream: TextIO, text: str, style: str = "") -> None:
        self._consoles[stream].print(self._coloured(text, style=_STYLES.get(style, "")), end="", soft_wrap=True)
        stream.flush()


# ---------------------------------------------------------------------------------------- JSON events, one a line, described in docs/cli.md


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
        event = public(event, artifacts=self._encoder.artifacts)
        described = self._encoder.described(event)
        if described is None:
            return
        kind, frame = described
        data = {"id" if name == "call_id" else name: value for name, value in frame.items()}
        if kind in _CHANGED:
            data |= _CHANGED[kind](event)
        if "parent_run_id" in data:
            self._write("nested", event={"type": kind, **data})
            return
        if text := self.joined.piece(event):
            message = {"message_id": data["message_id"]} if "message_id" in data else {}  # a result that is the answer has none
            self._write("text", run_id=event.run_id, **message, text=text)
        write: Callable[..., None] | None = _WRITES.get(kind, EventDisplay._write)
        if write is not None:
            write(self, kind, **data)

    def _done(self, _: str, **data: Any) -> None:
        self._write("done", **data, model=self._model)

    def call_waits(self, call: ToolCallRecord, pending: PendingCall) -> None:
        """Print `approval`: an answer is read from standard input."""
        self._write("approval", id=call.id, name=call.name, args=call.args, **told_of_tool(pending))

    def interrupted(self) -> None:
        """Print `error`: nothing follows of this run."""
        self._write("error", error="KeyboardInterrupt", message="interrupted")

    def offered(self, name: str) -> None:
        """Print `model` with its name."""
        self._write("model", name=name)

    def error(self, error: Exception) -> None:
        """Print `error`: nothing follows of this run."""
        self._write("error", error=type(error).__name__, message=_error_line(error))

    def _write(self, kind: str, **fields: Any) -> None:
        self._stream.write(json.dumps(plain({"type": kind, **fields})) + "\n")
        self._stream.flush()


_CHANGED: Final[Mapping[str, Callable[[Any], dict[str, Any]]]] = {
    "tool_call": lambda event: {} if event.call.args is not None else {"args": event.call.arguments},
    "tool_result": lambda event: {"content": text_of(event.message)},
}
"""What the line of an event says otherwise than its frame, by the frame's name."""

_WRITES: Final[Mapping[str, Callable[..., None] | None]] = {
    "run_start": NOTHING,
    "text": NOTHING,
    "run_end": EventDisplay._done,
    "run_error": NOTHING,
}
"""What writes an event's line, where it has none of its own: the text of the run, and its end, have one."""
