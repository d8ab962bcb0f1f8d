"""The view model of runs: their events, combined to what a page, a notebook or a terminal shows of them."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple, TextIO, TypeAlias

from langchain_core.messages import AIMessage, BaseMessage

from .. import event_types as kinds
from ..addresses import is_page
from ..encoders.public import public, public_message, titled_words_of_tool, to_json
from ..event_types import NOTHING, EventTable, FileMade, RunEvent, SourceFound
from ..executor.pending import PendingCall, full_name, page_id
from ..messages.calls import ToolCallRecord
from ..messages.display import call_text, escaped, printable, quoted, summary_text, text_and_media
from ..messages.metadata import text_of
from ..messages.run_messages import Separators
from ..strict_json import mend_surrogates

_LATEST: Final = 8  # how many reports of a call are kept
_BRIEF: Final = 160
_LONGEST_LINE: Final = 200
_LONGEST_NAME: Final = 60


@dataclass(eq=False)
class MessageView:
    """A message of a model's input.

    Attributes:
        message: The message.
    """

    message: BaseMessage


@dataclass(eq=False)
class TextView:
    """Text of a message, or of its reasoning.

    Attributes:
        message_id: The message's id.
        is_reasoning: Whether it is reasoning.
        text: What has been written.
    """

    message_id: str
    is_reasoning: bool
    text: str = ""

    def clear(self) -> None:
        """Drop the text, which is void."""
        self.text = ""


@dataclass(eq=False)
class CallView:
    """The view of a tool call.

    Attributes:
        name: The tool's name as the model wrote it.
        written: The text of its arguments as far as it has been seen.
        record: The call, once it is whole.
        progress: What its tool reported last.
        result: Its result.
        pending: What there is to decide about it.
        discarded: Why it came to nothing.
        runs: The runs that its tool made.
        left: Whether its run ended without a word about it, or the conversation went on without a decision.
    """

    name: str
    written: str = ""
    record: ToolCallRecord | None = None
    progress: deque[Any] = field(default_factory=lambda: deque(maxlen=_LATEST))
    result: kinds.CallResult | None = None
    pending: PendingCall | None = None
    discarded: str | None = None
    runs: "list[RunView]" = field(default_factory=list)
    left: bool = False

    @property
    def state(self) -> str:
        """The state of the call as one word."""
        if self.result is not None:
            return "failed" if self.result.message.status == "error" else "done"
        if self.discarded is not None:
            return "discarded"
        if self.pending is not None:
            return "waiting"
        if self.left:
            return "interrupted"
        return "writing" if self.record is None else "running"

    @property
    def shown(self) -> ToolCallRecord | None:
        """The call as it is shown: with the arguments that it ran with, once it has a result; None before it is whole."""
        return self.record if self.result is None else self.result.carried_out

    @property
    def is_edited(self) -> bool:
        """Whether the call ran with other arguments than the model wrote."""
        return self.shown is not None and self.shown.edited

    @property
    def has_ended(self) -> bool:
        """Whether nothing more comes of the call: it has a result, was discarded, or was left."""
        return self.result is not None or self.discarded is not None or self.left


@dataclass(eq=False)
class EndView:
    """The end of a run.

    Attributes:
        event: The event that says so.
        waiting: The calls that it left to somebody.
        top: Whether no other run is around it.
        in_history: Whether it is that of a history, which is shown with its questions.
    """

    event: kinds.RunEnded | kinds.RunFailed
    waiting: list[PendingCall]
    top: bool
    in_history: bool = False

    @property
    def error(self) -> BaseException | None:
        """The error of a run that has failed."""
        return self.event.error if isinstance(self.event, kinds.RunFailed) else None

    @property
    def stop_reason(self) -> str | None:
        """Why a run has ended that has not failed."""
        return self.event.stop_reason if isinstance(self.event, kinds.RunEnded) else None

    @property
    def text(self) -> str:
        """The end in words; of an error its class alone."""
        if isinstance(self.event, kinds.RunEnded):
            return summary_text(self.event.turns, self.event.usage, self.event.stop_reason)
        return f"failed: {type(self.error).__name__}" if isinstance(self.error, Exception) else "interrupted"


@dataclass(eq=False)
class VendorCallView:
    """The view of a call of one of the vendor's own tools.

    Attributes:
        name: The tool's name.
        args: What it is called with, as far as it is known.
        written: What it has written, such as code.
        status: The vendor's word for what it does.
        image: The address of the last partial image, with its data.
        done: The event that ends it.
    """

    name: str
    args: Mapping[str, Any] | None = None
    written: str = ""
    status: str = ""
    image: str | None = None
    done: kinds.VendorCallDone | None = None

    @property
    def state(self) -> str:
        """The state of the call as one word."""
        return "running" if self.done is None else "failed" if self.done.failed else "done"


@dataclass(eq=False)
class SourcesView:
    """The sources of a message, each once.

    Attributes:
        message_id: The message's id.
        sources: The first event of each source.
    """

    message_id: str
    sources: list[kinds.SourceFound] = field(default_factory=list)

    def clear(self) -> None:
        """Drop the sources, which are void."""
        self.sources.clear()


@dataclass(eq=False)
class FileView:
    """A file that the model or a tool of the vendor's has made.

    Attributes:
        event: The event with its data, as far as they are known.
    """

    event: kinds.FileMade


PartView: TypeAlias = MessageView | TextView | CallView | VendorCallView | SourcesView | FileView | EndView
"""A displayed part of a run."""


@dataclass(eq=False)
class RunView:
    """The view of a run.

    Attributes:
        name: The model's name.
        inside: The run around it, and the call in which it was made; None where there is none.
        depth: How many runs are around it.
        parts: What has been seen of it, in order.
        turn: The message of its latest calls.
        calls: The calls of that message, by their ids.
        line: What there is of the last line of its text.
        waiting: The calls that it leaves to somebody.
        ended: Whether it has ended.
    """

    name: str
    inside: "tuple[RunView, CallView] | None" = None
    depth: int = 0
    parts: list[PartView] = field(default_factory=list)
    turn: str = ""
    calls: dict[str, CallView] = field(default_factory=dict)
    line: str = ""
    waiting: list[PendingCall] = field(default_factory=list)
    ended: bool = False


class Change(NamedTuple):
    """What has come of an event.

    Attributes:
        event: The event, as a reader may see it.
        run: Its run.
        part: The part that has changed; None for none.
    """

    event: RunEvent
    run: RunView
    part: PartView | None

    def lines(self) -> "Iterator[Line]":
        """Yield what a terminal writes of it on lines of their own. The text of a run that no tool made is written as it comes."""
        event, run, part = self
        shown = _SHOWN.get(type(event))
        if run.depth and isinstance(part, TextView) and not part.is_reasoning:
            *whole, run.line = (run.line + getattr(event, "text", "")).split("\n")
            yield from map(Line, whole)
        elif shown is not None and shown.lines is not None:
            if run.line:
                yield Line(run.line)
            run.line = ""
            yield from shown.lines(event, run, part)


class ViewModel:
    """All runs of a stream, built from their events.

    Attributes:
        parts: The parts of all runs that no tool made, in the order in which they began. A run that a tool made is a part of its call.
        changed: Those of them that have changed since somebody last emptied this.
    """

    def __init__(self) -> None:
        self.parts: dict[PartView, None] = {}
        self.changed: dict[PartView, None] = {}
        self._runs: dict[str, RunView] = {}
        self._calls: dict[tuple[str | None, str | None], tuple[RunView, CallView]] = {}
        self._vendor_calls: dict[tuple[str, str], VendorCallView] = {}
        self._has_questions = False

    def apply(self, event: RunEvent) -> Change:
        """Process an event."""
        event = public(event)
        run, shown = self._run(event), _SHOWN.get(type(event))
        part = shown.part(self, event, run) if shown is not None and shown.part is not None else None
        if part is not None:
            self._touch(run, part)
        return Change(event, run, part)

    def add_input(self, message: BaseMessage) -> None:
        """Add a message of a model's input."""
        self._has_questions = True
        self._touch(RunView(""), MessageView(public_message(message)))

    def break_off(self, error: BaseException) -> None:
        """Record that the stream ended with an exception, which may have no event."""
        for run_id, run in self._runs.items():
            if not run.ended:
                self._touch(run, self._ended(kinds.RunFailed(run_id=run_id, error=error), run))
        if not any(isinstance(part, EndView) and isinstance(part.event, kinds.RunFailed) for part in self.parts):
            self._touch(run := RunView(""), self._ended(kinds.RunFailed(run_id="", error=error), run))

    def leave_waiting(self) -> None:
        """Record that no decision comes any more about the calls that wait, as the conversation went on without one."""
        for run, call in self._calls.values():
            if call.pending is not None:
                call.pending, call.left = None, True
                self._touch(run, call)

    def _touch(self, run: RunView, part: PartView) -> None:
        while run.inside is not None:
            run, part = run.inside
        self.parts[part] = self.changed[part] = None

    def _run(self, event: RunEvent) -> RunView:
        run = self._runs.get(event.run_id)
        if run is None:
            inside = self._calls.get((event.parent_run_id, event.parent_call_id))
            around = self._runs.get(event.parent_run_id or "")
            run = self._runs[event.run_id] = RunView("", inside, 0 if around is None else around.depth + 1)
            if inside is not None:
                inside[1].runs.append(run)
        return run

    def _started(self, event: kinds.RunStarted, run: RunView) -> None:
        run.name = event.name

    def _written(self, event: kinds.TextDelta | kinds.ReasoningDelta, run: RunView, *, is_reasoning: bool = False) -> PartView:
        last = run.parts[-1] if run.parts else None
        if not (isinstance(last, TextView) and (last.message_id, last.is_reasoning) == (event.message_id, is_reasoning)):
            last = TextView(event.message_id, is_reasoning)
            run.parts.append(last)
        last.text += event.text
        return last

    def _call(self, event: Any, run: RunView, *, begins: bool = False) -> CallView:
        """Return the call of an event. One that begins under the id of a finished call is another call."""
        key = event.run_id, event.call_id
        known = self._calls.get(key)
        if known is None or (begins and known[1].has_ended):
            known = self._calls[key] = run, CallView(getattr(event, "name", ""))
            run.parts.append(known[1])
        return known[1]

    def _arguments(self, event: kinds.CallArgumentsDelta, run: RunView) -> PartView:
        call = self._call(event, run)
        call.written += event.text
        return call

    def _ready(self, event: kinds.CallReady, run: RunView) -> PartView:
        call = self._call(event, run, begins=True)
        call.record, call.name, call.pending = event.call, event.call.spelling, None
        if event.message_id != run.turn:
            run.turn, run.calls = event.message_id, {}
        run.calls[event.call_id] = call
        return call

    def _progress(self, event: kinds.CallProgress, run: RunView) -> PartView:
        call = self._call(event, run)
        call.progress.append(event.value)
        return call

    def _result(self, event: kinds.CallResult, run: RunView) -> PartView:
        call = self._call(event, run)
        call.record, call.result, call.pending = event.call, event, None
        call.name = call.name or event.call.spelling  # of a run that was resumed nothing else says it
        return call

    def _discarded(self, event: kinds.CallDiscarded, run: RunView) -> PartView:
        call = self._call(event, run)
        call.discarded = event.reason
        return call

    def _message_discarded(self, event: kinds.MessageDiscarded, run: RunView) -> None:
        for part in run.parts:
            if isinstance(part, TextView | SourcesView) and part.message_id == event.message_id:
                part.clear()
                self._touch(run, part)

    def _vendor_call(self, event: Any, run: RunView) -> VendorCallView:
        key = event.run_id, event.call_id
        if key not in self._vendor_calls:
            self._vendor_calls[key] = VendorCallView(getattr(event, "name", ""))
            run.parts.append(self._vendor_calls[key])
        call = self._vendor_calls[key]
        call.args = getattr(event, "args", None) or call.args
        return call

    def _vendor_call_progress(self, event: kinds.VendorCallProgress, run: RunView) -> PartView:
        call = self._vendor_call(event, run)
        call.written += event.text
        call.status = event.status or call.status
        call.image = f"data:{event.mime_type};base64,{event.image}" if event.image else call.image
        return call

    def _vendor_call_done(self, event: kinds.VendorCallDone, run: RunView) -> PartView:
        call = self._vendor_call(event, run)
        call.done, call.image = event, None
        return call

    def _source(self, event: kinds.SourceFound, run: RunView) -> PartView:
        shown = _sources_of(event, run)
        if shown is None:
            shown = SourcesView(event.message_id)
            run.parts.append(shown)
        if all((one.url, one.document) != (event.url, event.document) for one in shown.sources):
            shown.sources.append(event)
        return shown

    def _file(self, event: kinds.FileMade, run: RunView) -> PartView:
        run.parts.append(file := FileView(event))
        return file

    def _message_done(self, event: kinds.MessageDone, run: RunView) -> PartView | None:
        """Fill in the data that only the message has. The user's, which a run took, is a part of its own."""
        if event.message.type == "human":
            run.parts.append(taken := MessageView(event.message))
            return taken
        for part in run.parts:
            if isinstance(part, FileView) and part.event.message_id == event.message_id and part.event.data is None:
                part.event = part.event.found_in(event.message) or part.event
                self._touch(run, part)
        return None

    def _pending(self, event: kinds.CallsPending, run: RunView) -> None:
        run.waiting = list(event.calls)
        for pending in event.calls:
            key = (event.run_id, page_id(pending))
            call = self._calls[key][1] if key in self._calls else CallView(full_name(pending))
            if key not in self._calls:
                run.parts.append(call)
                self._calls[key] = (run, call)
            call.pending = pending
            self._touch(run, call)

    def _ended(self, event: kinds.RunEnded | kinds.RunFailed, run: RunView) -> PartView:
        run.ended = True
        for call in run.parts:
            if isinstance(call, CallView) and call.state in ("writing", "running"):
                call.left = True
                self._touch(run, call)
        end = EndView(event, run.waiting, run.inside is None, self._has_questions)
        run.parts.append(end)
        return end


# ---------------------------------------------------------------------------------------------- what a vendor does by itself, in words


def source_name(found: SourceFound) -> str:
    """Return what a source is called."""
    return found.title or found.document or found.url or "a source"


def source_line(found: SourceFound) -> str:
    """Return a source on one line, with its address."""
    return f"{source_name(found)} <{found.url}>" if is_page(found.url) and found.url != source_name(found) else source_name(found)


def file_name(event: FileMade) -> str:
    """Return what a file is called, with its type and its size."""
    size = f", {event.size / 1000:.1f} kB" if event.size else ""
    return f"{event.name or event.file_id or 'file'} ({event.mime_type}{size})"


def vendor_call_brief(call: VendorCallView) -> str:
    """Return what a call is called with, for one line."""
    return brief(", ".join(value if isinstance(value, str) else to_json(value) for value in (call.args or {}).values()))


def brief(text: str) -> str:
    """Return the beginning of a text on one line."""
    line = escaped(" ".join(text[: 2 * _BRIEF].split()))
    return f"{line[:_BRIEF]}…" if len(line) > _BRIEF else line


def vendor_text(part: VendorCallView | SourcesView | FileView) -> str:
    """Return what a vendor does as plain text."""
    if isinstance(part, FileView):
        return f"[{file_name(part.event)}]"
    if isinstance(part, SourcesView):
        return "\n".join(f"[{number}] {source_line(one)}" for number, one in enumerate(part.sources, 1))
    return f"⌕ {part.name} {vendor_call_brief(part)}".rstrip() + f" ({part.state})"


# ---------------------------------------------------------------------------------------------- the text of a run


class JoinedText:
    """The text of a run, as in its run message, from the run's events.

    Args:
        separator: What goes between the texts of two turns where there is no white space.
    """

    def __init__(self, separator: str = "\n") -> None:
        self.separate_by(separator)

    def separate_by(self, separator: str) -> None:
        """Set the separator, and forget the texts so far."""
        self._separator = separator
        self._joints = Separators(separator)
        self._results: list[str] = []  # of the latest turn

    def piece(self, event: RunEvent) -> str:
        """Return an event's contribution to the text."""
        piece = _PIECES.get(type(event))
        return "" if piece is None else piece(self, event)

    def _text(self, event: kinds.TextDelta) -> str:
        return self._joints.before(event.text) + event.text

    def _message(self, event: kinds.MessageDone) -> str:
        if isinstance(event.message, AIMessage):
            self._joints.ended(event.message)
            self._results = []
        elif event.message.type == "tool":
            self._results.append(text_of(event.message))
        else:
            self._joints.ask()
        return ""

    def _ended(self, event: kinds.RunEnded | kinds.RunFailed) -> str:
        text = ""
        for result in self._results if getattr(event, "stop_reason", "") == "return_direct" else ():
            self._joints.ask()
            text += self._joints.before(result) + result
        self.separate_by(self._separator)
        return text


_PIECES: Final[Mapping[type[RunEvent], Callable[[JoinedText, Any], str]]] = {
    kinds.TextDelta: JoinedText._text,
    kinds.MessageDone: JoinedText._message,
    kinds.RunEnded: JoinedText._ended,
    kinds.RunFailed: JoinedText._ended,
}
"""The events that tell of the text."""


# ---------------------------------------------------------------------------------------------- lines of a terminal


class Line(NamedTuple):
    """A line of a terminal.

    Attributes:
        text: What is on it.
        style: What kind of text that is: `quiet`, `call`, `result` or `failure`.
    """

    text: str
    style: str = "quiet"


def call_line(call: ToolCallRecord) -> Line:
    """Return the line of a call."""
    return Line(f"→ {call_text(call)}{' (edited)' if call.edited else ''}", "call")


def _one_line_of(text: str, longest: int = _LONGEST_LINE) -> str:
    """Return text on one line, shortened if it is long."""
    line = escaped(" ".join(text.split()))
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def _called(call_id: str, run: RunView, tool: str | None = None) -> str:
    """Return the name of a call: its tool's, with arguments if the turn calls the tool more than once."""
    calls = {known: view.shown for known, view in run.calls.items() if view.shown is not None}
    call = calls.get(call_id)
    if call is None:  # of a run that was resumed
        return "a call" if tool is None else escaped(tool)
    alone = sum(other.name == call.name for other in calls.values()) == 1
    return escaped(call.name) if alone else _one_line_of(call_text(call), _LONGEST_NAME)


def _sources_of(event: Any, run: RunView) -> SourcesView | None:
    """Return the sources of an event's message; None for none."""
    return next((part for part in run.parts if isinstance(part, SourcesView) and part.message_id == event.message_id), None)


def _progress_lines(event: kinds.CallProgress, run: RunView, _: PartView) -> Iterator[Line]:
    value = event.value if isinstance(event.value, str) else to_json(event.value)
    yield Line(f"… {_called(event.call_id, run)}: {_one_line_of(value)}")


def _result_lines(event: kinds.CallResult, run: RunView, _: PartView) -> Iterator[Line]:
    if event.carried_out.edited:
        yield call_line(event.carried_out)
    style = "failure" if event.message.status == "error" else "result"
    yield Line(f"← {_called(event.call_id, run, event.call.name)}: {_one_line_of(text_and_media(event.message))}", style)


def _message_lines(event: kinds.MessageDone, run: RunView, _: PartView | None) -> Iterator[Line]:
    """Yield a message that a run took from its user; of another one, the sources behind it."""
    if event.message.type == "human":
        yield Line(quoted(event.message))
        return
    found = _sources_of(event, run)
    for number, one in enumerate(found.sources if found else (), 1):
        yield Line(f"[{number}] {_one_line_of(source_line(one))}")


def _compaction_lines(event: kinds.ContextCompacted, run: RunView, _: None) -> Iterator[Line]:
    summed = event.what == "summary"
    yield Line(f"({'a summary stands for the oldest turns' if summed else f'{event.results} old results are left out'} from here on)")


def waiting_call(call: PendingCall) -> str:
    """Return a call that waits in Python's syntax, with all of its arguments."""
    return call_text(ToolCallRecord(call.id, full_name(call), "", call.args))


def _pending_lines(event: kinds.CallsPending, run: RunView, _: None) -> Iterator[Line]:
    for call in event.calls:
        yield Line(f"? {waiting_call(call)} waits", "call")
        for title, text in titled_words_of_tool(call).items():
            yield Line(f"  {title}: {_one_line_of(text)}")


def _vendor_call_lines(event: kinds.VendorCallDone, run: RunView, call: VendorCallView) -> Iterator[Line]:
    brief = vendor_call_brief(call)
    line = f"⌕ {_one_line_of(f'{event.name}: {brief}' if brief else event.name)}"
    yield Line(f"{line} (failed)", "failure") if event.failed else Line(line, "result")


def _end_lines(event: kinds.RunEnded | kinds.RunFailed, run: RunView, end: EndView) -> Iterator[Line]:
    yield Line(f"[{end.text}]", "quiet" if end.error is None else "failure")


# ---------------------------------------------------------------------------------------------- what is shown of which event


class _Shown(NamedTuple):
    """What is shown of a kind of event.

    Attributes:
        part: Changes the view of its run, and returns the part that has changed; None for nothing.
        lines: Returns the lines of a terminal; None for none.
    """

    part: Callable[[ViewModel, Any, RunView], PartView | None] | None
    lines: Callable[[Any, RunView, Any], Iterable[Line]] | None = None


_SHOWN: Final = EventTable(
    "pages, notebooks and terminals",
    {
        kinds.RunStarted: _Shown(ViewModel._started),
        kinds.TextDelta: _Shown(ViewModel._written),
        kinds.ReasoningDelta: _Shown(partial(ViewModel._written, is_reasoning=True)),
        kinds.CallStarted: _Shown(partial(ViewModel._call, begins=True)),
        kinds.CallArgumentsDelta: _Shown(ViewModel._arguments),
        kinds.CallReady: _Shown(ViewModel._ready, lambda event, run, _: [call_line(event.call)]),
        kinds.CallDiscarded: _Shown(
            ViewModel._discarded, lambda event, run, _: [Line(f"(a call came to nothing: {_one_line_of(event.reason)})")]
        ),
        kinds.CallProgress: _Shown(ViewModel._progress, _progress_lines),
        kinds.CallResult: _Shown(ViewModel._result, _result_lines),
        kinds.MessageDone: _Shown(ViewModel._message_done, _message_lines),
        kinds.MessageDiscarded: _Shown(ViewModel._message_discarded),
        kinds.ModelChanged: _Shown(
            NOTHING, lambda event, run, _: [Line(f"({_one_line_of(event.to_model)} goes on, after {_one_line_of(event.from_model)})")]
        ),
        kinds.ContextCompacted: _Shown(NOTHING, _compaction_lines),
        kinds.PrefixChanged: _Shown(
            NOTHING, lambda event, run, _: [Line(f"(the prompt cache ends before message {event.index}: {event.reason.replace('_', ' ')})")]
        ),
        kinds.MessagesAdded: NOTHING,
        kinds.TurnUsage: NOTHING,
        kinds.CallsPending: _Shown(ViewModel._pending, _pending_lines),
        kinds.VendorCallStarted: _Shown(ViewModel._vendor_call, lambda event, run, _: [Line(f"⌕ {_one_line_of(event.name)}…", "call")]),
        kinds.VendorCallProgress: _Shown(ViewModel._vendor_call_progress),
        kinds.VendorCallDone: _Shown(ViewModel._vendor_call_done, _vendor_call_lines),
        kinds.SourceFound: _Shown(ViewModel._source),
        kinds.FileMade: _Shown(ViewModel._file, lambda event, run, _: [Line(f"[{_one_line_of(file_name(event))}]", "result")]),
        kinds.RunEnded: _Shown(ViewModel._ended, _end_lines),
        kinds.RunFailed: _Shown(ViewModel._ended, _end_lines),
    },
)


# ---------------------------------------------------------------------------------------------- a terminal


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

    def show(self, one: RunEvent | BaseMessage) -> None:
        """Show an event, or a message of a model's input."""
        if isinstance(one, BaseMessage):
            self._view_model.add_input(one)
            self._line(quoted(public_message(one)), "quiet")
            return
        event, run, self.last = change = self._view_model.apply(one)
        self._view_model.changed.clear()
        if not run.depth:
            self._answer(self.joined.piece(event))
            if isinstance(self.last, EndView) and self.last.error is None:
                self._end_answer()
        for line in change.lines():
            self._tell(line, run.depth)

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
