"""The view model of runs: their events, combined to the parts that a page shows."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from langchain_core.messages import BaseMessage

from .. import event_types as kinds
from ..addresses import is_page
from ..encoders.public import public, public_message, to_json
from ..event_types import NOTHING, EventTable, FileMade, RunEvent, SourceFound
from ..executor.pending import PendingCall, full_name, page_id
from ..messages.calls import ToolCallRecord
from ..messages.display import escaped

_LATEST: Final = 8  # how many reports of a call are kept
_BRIEF = 160


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
        left: Whether its run ended without a word about it.
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
    """

    event: kinds.RunEnded | kinds.RunFailed
    waiting: list[PendingCall]
    top: bool


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
        parts: What has been seen of it, in order.
        waiting: The calls that it leaves to somebody.
        ended: Whether it has ended.
    """

    name: str
    inside: "tuple[RunView, CallView] | None" = None
    parts: list[PartView] = field(default_factory=list)
    waiting: list[PendingCall] = field(default_factory=list)
    ended: bool = False


class ViewModel:
    """All runs of a stream, built from their events.

    Attributes:
        parts: The parts of all runs that no tool made, in the order in which they began. A run that a tool made stands in its call.
        changed: Those of them that have changed since somebody last emptied this.
    """

    def __init__(self) -> None:
        self.parts: dict[PartView, None] = {}
        self.changed: dict[PartView, None] = {}
        self._runs: dict[str, RunView] = {}
        self._calls: dict[tuple[str | None, str | None], tuple[RunView, CallView]] = {}
        self._vendor_calls: dict[tuple[str, str], VendorCallView] = {}

    def apply(self, event: RunEvent) -> None:
        """Process an event."""
        event = public(event)
        run = self._run(event)
        handler = _HANDLERS.get(type(event))
        part = handler(self, event, run) if handler is not None else None
        if part is not None:
            self._touch(run, part)

    def add_input(self, message: BaseMessage) -> None:
        """Add a message of a model's input."""
        self._touch(RunView(""), MessageView(public_message(message)))

    def break_off(self, error: BaseException) -> None:
        """Record that the stream ended with an exception, which may have no event."""
        for run_id, run in self._runs.items():
            if not run.ended:
                self._touch(run, self._ended(kinds.RunFailed(run_id=run_id, error=error), run))
        if not any(isinstance(part, EndView) and isinstance(part.event, kinds.RunFailed) for part in self.parts):
            self._touch(run := RunView(""), self._ended(kinds.RunFailed(run_id="", error=error), run))

    def _touch(self, run: RunView, part: PartView) -> None:
        while run.inside is not None:
            run, part = run.inside
        self.parts[part] = self.changed[part] = None

    def _run(self, event: RunEvent) -> RunView:
        run = self._runs.get(event.run_id)
        if run is None:
            inside = self._calls.get((event.parent_run_id, event.parent_call_id))
            run = self._runs[event.run_id] = RunView("", inside)
            if inside is not None:
                inside[1].runs.append(run)
        return run

    def _started(self, event: kinds.RunStarted, run: RunView) -> None:
        run.name = event.name

    def _text(self, event: kinds.TextDelta, run: RunView) -> PartView:
        return self._written(event, run, is_reasoning=False)

    def _reasoning(self, event: kinds.ReasoningDelta, run: RunView) -> PartView:
        return self._written(event, run, is_reasoning=True)

    def _written(self, event: kinds.TextDelta | kinds.ReasoningDelta, run: RunView, *, is_reasoning: bool) -> PartView:
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

    def _call_started(self, event: kinds.CallStarted, run: RunView) -> PartView:
        return self._call(event, run, begins=True)

    def _arguments(self, event: kinds.CallArgumentsDelta, run: RunView) -> PartView:
        call = self._call(event, run)
        call.written += event.text
        return call

    def _ready(self, event: kinds.CallReady, run: RunView) -> PartView:
        call = self._call(event, run, begins=True)
        call.record, call.name, call.pending = event.call, event.call.spelling, None
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

    def _vendor_call_started(self, event: kinds.VendorCallStarted, run: RunView) -> PartView:
        return self._vendor_call(event, run)

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
        shown = next((part for part in run.parts if isinstance(part, SourcesView) and part.message_id == event.message_id), None)
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
        end = EndView(event, run.waiting, run.inside is None)
        run.parts.append(end)
        return end


_HANDLERS: Final = EventTable[Callable[[ViewModel, Any, RunView], PartView | None]](
    "view model of notebooks and Gradio",
    {
        kinds.RunStarted: ViewModel._started,
        kinds.TextDelta: ViewModel._text,
        kinds.ReasoningDelta: ViewModel._reasoning,
        kinds.CallStarted: ViewModel._call_started,
        kinds.CallArgumentsDelta: ViewModel._arguments,
        kinds.CallReady: ViewModel._ready,
        kinds.CallDiscarded: ViewModel._discarded,
        kinds.CallProgress: ViewModel._progress,
        kinds.CallResult: ViewModel._result,
        kinds.MessageDone: ViewModel._message_done,
        kinds.MessageDiscarded: ViewModel._message_discarded,
        kinds.ModelChanged: NOTHING,
        kinds.MessagesAdded: NOTHING,
        kinds.TurnUsage: NOTHING,
        kinds.CallsPending: ViewModel._pending,
        kinds.VendorCallStarted: ViewModel._vendor_call_started,
        kinds.VendorCallProgress: ViewModel._vendor_call_progress,
        kinds.VendorCallDone: ViewModel._vendor_call_done,
        kinds.SourceFound: ViewModel._source,
        kinds.FileMade: ViewModel._file,
        kinds.RunEnded: ViewModel._ended,
        kinds.RunFailed: ViewModel._ended,
    },
)


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
    words = ", ".join(value if isinstance(value, str) else to_json(value) for value in (call.args or {}).values())
    line = escaped(" ".join(words[: 2 * _BRIEF].split()))
    return f"{line[:_BRIEF]}…" if len(line) > _BRIEF else line


def vendor_text(part: VendorCallView | SourcesView | FileView) -> str:
    """Return what a vendor does as plain text."""
    if isinstance(part, FileView):
        return f"[{file_name(part.event)}]"
    if isinstance(part, SourcesView):
        return "\n".join(f"[{number}] {source_line(one)}" for number, one in enumerate(part.sources, 1))
    return f"⌕ {part.name} {vendor_call_brief(part)}".rstrip() + f" ({part.state})"
