"""Reading of a run's events from the database, by any process, from any position, during the run and after its end."""

from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from .. import event_types as kinds
from .. import vendor_event_types as vendor_kinds
from ..errors import ConfigurationError
from ..event_tables import NOTHING, EventTable
from ..event_types import RunEvent
from .engine import Link, outside
from .errors import RunFailedError
from .event_rows import UnknownEvent, event_of, read_row
from .followed_runs import arows_as_written, rows_as_written
from .streams import rows_of

ENDED_FROM_OUTSIDE = "the run was ended from outside"
"""The error of a run that failed without an end event."""

_DIED = "the process that ran this has ended"


class Story:
    """The events of one run across its executions: each once, without those that died with a process.

    The rows of a stream never change, so the same event has the same position each time, also for a reader that skips events which a later
    release has written.

    Args:
        run_id: The run's id in the database, which stands for the ids that its executions had for it.
    """

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._execution: str | None = None
        self._past: set[str] = set()
        self._own_id: str | None = None
        self._emitted: set[tuple[str, ...]] = set()
        self._writing: str | None = None  # the message whose reply is being written
        self._whole: set[str] = set()  # messages of which nothing more is written
        self._attempt = 1
        self._calls: dict[tuple[str, str], RunEvent] = {}  # what was told last of a call that has no end so far
        self._vendor_calls: dict[tuple[str, str], vendor_kinds.VendorCallStarted] = {}
        self._nested: dict[str, RunEvent] = {}
        self._count = 0

    def events_of(self, row: Any) -> Iterator[RunEvent]:
        """Yield the events of the next row.

        Raises:
            RunFailedError: It cannot be read.
        """
        if isinstance(row, RunFailedError):
            raise RunFailedError(str(row)) from row
        execution, entries = read_row(row) or (self._execution, ())
        if execution in self._past:  # a worker that was slow, and lost the run
            return
        if execution != self._execution:
            if self._execution is not None:
                self._past.add(self._execution)
                yield from map(self._placed, self._voided())
            self._execution, self._own_id = execution, None
        for event in map(event_of, entries):
            if isinstance(event, UnknownEvent):
                self._count += event.nested or self._once(event.kind, event.call_id)
            elif self._is_new(renamed := self._renamed(event)):
                yield self._placed(renamed)

    def end(self) -> Iterator[RunEvent]:
        """Yield the missing events if the run was ended from outside."""
        if not self._once("end"):
            return
        for event in [*self._left(lambda _: True), kinds.RunFailed(run_id=self._run_id, error=RunFailedError(ENDED_FROM_OUTSIDE))]:
            yield self._placed(event)

    def _placed(self, event: RunEvent) -> RunEvent:
        position, self._count = self._count, self._count + 1
        return replace(event, position=str(position))

    def _renamed(self, event: RunEvent) -> RunEvent:
        """Return the event with the run's id in the database."""
        if event.parent_run_id is None:
            self._own_id = event.run_id
            return replace(event, run_id=self._run_id)
        return replace(event, parent_run_id=self._run_id) if event.parent_run_id == self._own_id else event

    # ------------------------------------------------------------------------------------------ what is new

    def _is_new(self, event: RunEvent) -> bool:
        """Whether an event is new; records it."""
        reading = _READINGS.get(type(event))
        if reading is None or (event.parent_run_id is None and not reading.is_new(self, event)):
            return False
        if reading.note is not None:
            reading.note(self, event)
        return True

    def _once(self, *key: str) -> bool:
        """Whether this is new; records it."""
        is_new = key not in self._emitted
        self._emitted.add(key)
        return is_new

    def _is_start(self, _: kinds.RunStarted) -> bool:
        return self._once("RunStarted")

    def _is_more(self, event: Any) -> bool:
        """Whether an event brings more of a message that is being written."""
        if event.message_id in self._whole:
            return False
        self._writing = event.message_id
        return True

    def _is_new_call(self, event: kinds.CallStarted) -> bool:
        return (self._run_id, event.call_id) not in self._calls and ("CallReady", event.call_id) not in self._emitted

    def _is_whole_call(self, event: kinds.CallReady) -> bool:
        return self._once("CallReady", event.call_id) and self._ends_writing(event)

    def _is_open_call(self, event: kinds.CallDiscarded) -> bool:
        return (self._run_id, event.call_id) in self._calls

    def _is_running_call(self, event: kinds.CallProgress) -> bool:
        return ("CallResult", event.call_id) not in self._emitted

    def _is_first_result(self, event: kinds.CallResult) -> bool:
        return self._once("CallResult", event.call_id)

    def _is_new_message(self, event: kinds.MessageDone) -> bool:
        return self._once("MessageDone", event.message_id) and self._ends_writing(event)

    def _ends_writing(self, event: kinds.CallReady | kinds.MessageDone) -> bool:
        self._whole.add(event.message_id)
        self._attempt = 1
        return True

    def _is_void_message(self, event: kinds.MessageDiscarded) -> bool:
        is_open = self._writing == event.message_id and event.message_id not in self._whole
        self._writing = None if is_open else self._writing
        return is_open

    def _is_new_model(self, event: kinds.ModelChanged) -> bool:
        return self._once("ModelChanged", str(event.turn), event.from_model, event.to_model)

    def _is_new_usage(self, event: kinds.TurnUsage) -> bool:
        return self._once("TurnUsage", event.message_id)

    def _is_new_vendor_call(self, event: vendor_kinds.VendorCallStarted) -> bool:
        return (event.run_id, event.call_id) not in self._vendor_calls and self._is_more(event)

    def _is_open_vendor_call(self, event: vendor_kinds.VendorCallProgress | vendor_kinds.VendorCallDone) -> bool:
        return (event.run_id, event.call_id) in self._vendor_calls

    def _is_first_pause(self, _: kinds.CallsPending) -> bool:
        return self._once("CallsPending")

    def _is_end(self, _: kinds.RunEnded | kinds.RunFailed) -> bool:
        return self._once("end")

    # ------------------------------------------------------------------------------------------ what is open

    def _run_opens(self, event: kinds.RunStarted) -> None:
        if event.parent_run_id is not None:
            self._nested[event.run_id] = event

    def _run_closes(self, event: kinds.RunEnded | kinds.RunFailed) -> None:
        self._nested.pop(event.run_id, None)

    def _call_opens(self, event: kinds.CallStarted | kinds.CallReady) -> None:
        self._calls[event.run_id, event.call_id] = event

    def _call_closes(self, event: kinds.CallResult | kinds.CallDiscarded) -> None:
        self._calls.pop((event.run_id, event.call_id), None)

    def _calls_wait(self, event: kinds.CallsPending) -> None:
        for call in event.calls:
            self._calls.pop((event.run_id, call.id), None)

    def _vendor_call_opens(self, event: vendor_kinds.VendorCallStarted) -> None:
        self._vendor_calls[event.run_id, event.call_id] = event

    def _vendor_call_closes(self, event: vendor_kinds.VendorCallDone) -> None:
        self._vendor_calls.pop((event.run_id, event.call_id), None)

    # ------------------------------------------------------------------------------------------ what is void

    def _voided(self) -> Iterator[RunEvent]:
        """Yield the end of unrecorded work when another execution continues."""
        yield from self._left(lambda event: event.run_id != self._run_id or getattr(event, "provisional", False))
        if self._writing is not None and self._writing not in self._whole:
            yield kinds.MessageDiscarded(run_id=self._run_id, message_id=self._writing, attempt=self._attempt)
            self._attempt += 1
        self._writing = None

    def _left(self, ended: Callable[[RunEvent], bool]) -> Iterator[RunEvent]:
        """Yield the ends of calls, and of runs inside tools, that nobody continues."""
        for call in self._vendor_calls.values():
            yield vendor_kinds.VendorCallDone(**{**vars(call), "failed": True})
        self._vendor_calls.clear()
        for key, event in list(self._calls.items()):
            if ended(event):
                del self._calls[key]
                about = {name: getattr(event, name) for name in ("run_id", "parent_run_id", "parent_call_id", "message_id", "call_id")}
                yield kinds.CallDiscarded(**about, reason=_DIED)
        for event in reversed(self._nested.values()):
            about = {name: getattr(event, name) for name in ("run_id", "parent_run_id", "parent_call_id")}
            yield kinds.RunEnded(**about, stop_reason="cancelled", turns=0)
        self._nested.clear()


@dataclass(frozen=True)
class _Reading:
    """How events of a kind are read.

    Attributes:
        is_new: Whether an event of the run itself says what was not told before.
        note: Notes of an event that is new, or of a run inside a tool, what it opens or closes.
    """

    is_new: Callable[[Story, Any], bool]
    note: Callable[[Story, Any], None] | None = None


_READINGS: Final = EventTable(
    "durable reader",
    {
        kinds.RunStarted: _Reading(Story._is_start, Story._run_opens),
        kinds.TextDelta: _Reading(Story._is_more),
        kinds.ReasoningDelta: _Reading(Story._is_more),
        kinds.CallStarted: _Reading(Story._is_new_call, Story._call_opens),
        kinds.CallArgumentsDelta: _Reading(Story._is_more),
        kinds.CallReady: _Reading(Story._is_whole_call, Story._call_opens),
        kinds.CallDiscarded: _Reading(Story._is_open_call, Story._call_closes),
        kinds.CallProgress: _Reading(Story._is_running_call),
        kinds.CallResult: _Reading(Story._is_first_result, Story._call_closes),
        kinds.MessageDone: _Reading(Story._is_new_message),
        kinds.MessageDiscarded: _Reading(Story._is_void_message),
        kinds.ModelChanged: _Reading(Story._is_new_model),
        kinds.MessagesAdded: NOTHING,
        kinds.TurnUsage: _Reading(Story._is_new_usage),
        kinds.CallsPending: _Reading(Story._is_first_pause, Story._calls_wait),
        vendor_kinds.VendorCallStarted: _Reading(Story._is_new_vendor_call, Story._vendor_call_opens),
        vendor_kinds.VendorCallProgress: _Reading(Story._is_open_vendor_call),
        vendor_kinds.VendorCallDone: _Reading(Story._is_open_vendor_call, Story._vendor_call_closes),
        vendor_kinds.SourceFound: _Reading(Story._is_more),
        vendor_kinds.FileMade: _Reading(Story._is_more),
        kinds.RunEnded: _Reading(Story._is_end, Story._run_closes),
        kinds.RunFailed: _Reading(Story._is_end, Story._run_closes),
    },
)


# ---------------------------------------------------------------------------------------------- readers


def behind(position: str | None) -> int:
    """Return the number of the event at a position; -1 for None.

    Raises:
        ConfigurationError: It is no position.
    """
    if position is not None and not (isinstance(position, str) and position.isascii() and position.isdigit()):
        raise ConfigurationError(f"after takes the position of an event, not {position!r}")
    return -1 if position is None else int(position)


def behind_of(after: str | None, last_event_id: str | None) -> int:
    """Return the number of the event after which reading starts: from the header if it is a position, else from `after`; -1 for none.

    Raises:
        ConfigurationError: `after` is no position.
    """
    number = behind(after)
    with suppress(ConfigurationError):
        return behind(last_event_id) if last_event_id else number
    return number


def position_of(event: RunEvent) -> int:
    """Return the number of a read event within its run."""
    return int(event.position or 0)


def raise_failed(event: RunEvent) -> None:
    """Raise the error of a failed run, after its event."""
    if isinstance(event, kinds.RunFailed) and event.parent_run_id is None:
        raise event.error


def read_run(run_id: str, timeout: float | None, link: Link, ended: list[Any] | None = None) -> Generator[RunEvent, None, None]:
    """Yield the events of a run, from the first one on.

    Args:
        run_id: The run.
        timeout: After how many seconds in which nothing comes the reader gives up; None for never.
        link: Asks the database.
        ended: All rows of the run, if it has ended and they were read before.

    Raises:
        TimeoutError: For so many seconds nothing came.
        EventsInterruptedError: The process shuts down.
    """
    story = Story(run_id)
    for row in rows_as_written(run_id, None, timeout, link) if ended is None else ended:
        yield from story.events_of(row)
    yield from story.end()


async def aread_run(run_id: str, timeout: float | None, link: Link, ended: list[Any] | None = None) -> AsyncGenerator[RunEvent, None]:
    """Like `read_run`, asynchronously."""
    story = Story(run_id)
    if ended is None:
        async with aclosing(arows_as_written(run_id, None, timeout, link)) as rows:
            async for row in rows:
                for event in story.events_of(row):
                    yield event
    for row in ended or ():
        for event in story.events_of(row):
            yield event
    for event in story.end():
        yield event


def events_so_far(run_id: str) -> list[RunEvent]:
    """Return the events of a run so far."""
    story = Story(run_id)
    return [event for row in outside(rows_of, {run_id: 0})[run_id] for event in story.events_of(row)]
