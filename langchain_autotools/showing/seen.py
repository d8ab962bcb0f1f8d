"""What has been seen of runs: their events, put together into what a page shows of them."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from langchain_core.messages import BaseMessage

from ..event_types import (
    CallArgumentsDelta,
    CallDiscarded,
    CallProgress,
    CallReady,
    CallResult,
    CallsPending,
    CallStarted,
    MessageDiscarded,
    ReasoningDelta,
    RunEnded,
    RunEvent,
    RunFailed,
    RunStarted,
    TextDelta,
)
from ..executor.approval.pending import PendingCall
from ..messages.calls import ToolCallRecord

_LATEST: Final = 8  # how many reports of a call are kept


@dataclass(frozen=True, kw_only=True)
class GivenMessage(RunEvent):
    """A message of a history that a model was given: only histories that are shown have this event, no run.

    Attributes:
        message: The message.
    """

    message: BaseMessage


@dataclass(eq=False)
class SeenMessage:
    """A message that a model was given.

    Attributes:
        message: The message.
    """

    message: BaseMessage


@dataclass(eq=False)
class SeenText:
    """Text of a message, or of its reasoning.

    Attributes:
        message_id: The message's id.
        is_reasoning: Whether it is reasoning.
        text: What has been written.
    """

    message_id: str
    is_reasoning: bool
    text: str = ""


@dataclass(eq=False)
class SeenCall:
    """A tool call.

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
    result: CallResult | None = None
    pending: PendingCall | None = None
    discarded: str | None = None
    runs: "list[SeenRun]" = field(default_factory=list)
    left: bool = False

    @property
    def state(self) -> str:
        """One word for where it stands."""
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
    def has_ended(self) -> bool:
        """Whether there is nothing more to come of it."""
        return self.result is not None or self.discarded is not None or self.left


@dataclass(eq=False)
class SeenEnd:
    """How a run ended.

    Attributes:
        event: The event that says so.
        waiting: The calls that it left to somebody.
        top: Whether no other run is around it.
    """

    event: RunEnded | RunFailed
    waiting: list[PendingCall]
    top: bool


SeenPart: TypeAlias = SeenMessage | SeenText | SeenCall | SeenEnd
"""A piece of a run, as it is shown."""


@dataclass(eq=False)
class SeenRun:
    """A run.

    Attributes:
        name: The model's name.
        parts: What has been seen of it, in order.
        waiting: The calls that it leaves to somebody.
        ended: Whether it has ended.
    """

    name: str
    inside: "tuple[SeenRun, SeenCall] | None" = None
    parts: list[SeenPart] = field(default_factory=list)
    waiting: list[PendingCall] = field(default_factory=list)
    ended: bool = False


class Seen:
    """All runs of a stream, put together from their events.

    Attributes:
        parts: The parts of all runs that no tool made, in the order in which they began. A run that a tool made stands in its call.
        changed: Those of them that have changed since somebody last emptied this.
    """

    def __init__(self) -> None:
        self.parts: dict[SeenPart, None] = {}
        self.changed: dict[SeenPart, None] = {}
        self._runs: dict[str, SeenRun] = {}
        self._calls: dict[tuple[str | None, str | None], tuple[SeenRun, SeenCall]] = {}
        self._takers: dict[type[RunEvent], Callable[[Any, SeenRun], SeenPart | None]] = {
            GivenMessage: self._given,
            TextDelta: self._text,
            ReasoningDelta: self._text,
            CallStarted: self._call,
            CallArgumentsDelta: self._arguments,
            CallReady: self._ready,
            CallProgress: self._progress,
            CallResult: self._result,
            CallDiscarded: self._discarded,
            CallsPending: self._pending,
            MessageDiscarded: self._message_discarded,
            RunEnded: self._ended,
            RunFailed: self._ended,
        }

    def take(self, event: RunEvent) -> None:
        """See an event."""
        run = self._run(event)
        taker = self._takers.get(type(event))
        part = taker(event, run) if taker is not None else None
        if part is not None:
            self._touch(run, part)

    def break_off(self, error: BaseException) -> None:
        """See that the stream ended with an exception, which no event may have told of."""
        for run_id, run in self._runs.items():
            if not run.ended:
                self._touch(run, self._ended(RunFailed(run_id=run_id, error=error), run))
        if not any(isinstance(part, SeenEnd) and isinstance(part.event, RunFailed) for part in self.parts):
            self._touch(run := SeenRun(""), self._ended(RunFailed(run_id="", error=error), run))

    def _touch(self, run: SeenRun, part: SeenPart) -> None:
        while run.inside is not None:
            run, part = run.inside
        self.parts[part] = self.changed[part] = None

    def _run(self, event: RunEvent) -> SeenRun:
        run = self._runs.get(event.run_id)
        if run is None:
            inside = self._calls.get((event.parent_run_id, event.parent_call_id))
            run = self._runs[event.run_id] = SeenRun(event.name if isinstance(event, RunStarted) else "", inside)
            if inside is not None:
                inside[1].runs.append(run)
        return run

    def _given(self, event: GivenMessage, run: SeenRun) -> SeenPart:
        part = SeenMessage(event.message)
        run.parts.append(part)
        return part

    def _text(self, event: TextDelta | ReasoningDelta, run: SeenRun) -> SeenPart:
        is_reasoning = isinstance(event, ReasoningDelta)
        last = run.parts[-1] if run.parts else None
        if not (isinstance(last, SeenText) and (last.message_id, last.is_reasoning) == (event.message_id, is_reasoning)):
            last = SeenText(event.message_id, is_reasoning)
            run.parts.append(last)
        last.text += event.text
        return last

    def _call(self, event: Any, run: SeenRun, name: str = "") -> SeenCall:
        """The call that an event is about. One that begins under the id of a call that has ended is another call."""
        key = event.run_id, event.call_id
        known = self._calls.get(key)
        if known is None or (isinstance(event, CallStarted | CallReady) and known[1].has_ended):
            known = self._calls[key] = run, SeenCall(getattr(event, "name", name))
            run.parts.append(known[1])
        return known[1]

    def _arguments(self, event: CallArgumentsDelta, run: SeenRun) -> SeenPart:
        call = self._call(event, run)
        call.written += event.text
        return call

    def _ready(self, event: CallReady, run: SeenRun) -> SeenPart:
        call = self._call(event, run)
        call.record, call.name, call.pending = event.call, event.call.spelling, None
        return call

    def _progress(self, event: CallProgress, run: SeenRun) -> SeenPart:
        call = self._call(event, run)
        call.progress.append(event.value)
        return call

    def _result(self, event: CallResult, run: SeenRun) -> SeenPart:
        call = self._call(event, run)
        call.record, call.result, call.pending = event.call, event, None
        return call

    def _discarded(self, event: CallDiscarded, run: SeenRun) -> SeenPart:
        call = self._call(event, run)
        call.discarded = event.reason
        return call

    def _message_discarded(self, event: MessageDiscarded, run: SeenRun) -> None:
        for part in run.parts:
            if isinstance(part, SeenText) and part.message_id == event.message_id:
                part.text = ""
                self._touch(run, part)

    def _pending(self, event: CallsPending, run: SeenRun) -> None:
        run.waiting = list(event.calls)
        for pending in event.calls:
            found = self._calls.get((event.run_id, pending.id))
            call = SeenCall(pending.name) if found is None else found[1]
            if found is None:
                run.parts.append(call)
            call.pending = pending
            self._touch(run, call)

    def _ended(self, event: RunEnded | RunFailed, run: SeenRun) -> SeenPart:
        run.ended = True
        for call in run.parts:
            if isinstance(call, SeenCall) and call.state in ("writing", "running"):
                call.left = True
                self._touch(run, call)
        end = SeenEnd(event, run.waiting, run.inside is None)
        run.parts.append(end)
        return end
