"""What a run has told, read from the database: by any process, from any position, while it runs and when it has ended."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any

from dbos import DBOS
from dbos import error as dbos_error

from ..errors import ConfigurationError
from ..event_types import (
    CallArgumentsDelta,
    CallDiscarded,
    CallProgress,
    CallReady,
    CallResult,
    CallsPending,
    CallStarted,
    MessageDiscarded,
    MessageDone,
    ReasoningDelta,
    RunEnded,
    RunEvent,
    RunFailed,
    RunStarted,
    TextDelta,
    TurnUsage,
)
from .engine import Link, outside
from .errors import RunFailedError
from .event_rows import UnknownEvent, event_of
from .live import STREAM

ENDED_FROM_OUTSIDE = "the run was ended from outside"
"""Why a run has failed that told of no end."""

_SHORTEST_SECONDS, _LONGEST_SECONDS = 0.05, 0.5  # between two looks into the database: the longer nothing has come, the longer
_DIED = "the process that ran this has ended"


class Story:
    """The events of one run, whichever executions told of them: each thing once, and void what died with its process.

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
        self._told: set[tuple[str, ...]] = set()
        self._writing: str | None = None  # the message whose reply is being written
        self._whole: set[str] = set()  # messages of which nothing more is written
        self._attempt = 1
        self._calls: dict[tuple[str, str], RunEvent] = {}  # what was told last of a call that has no end so far
        self._nested: dict[str, RunEvent] = {}
        self._count = 0

    def take(self, row: Mapping[str, Any]) -> Iterator[RunEvent]:
        """The events of the next row."""
        if row["execution"] in self._past:  # a worker that was slow, and lost the run
            return
        if row["execution"] != self._execution:
            if self._execution is not None:
                self._past.add(self._execution)
                yield from map(self._placed, self._voided())
            self._execution, self._own_id = row["execution"], None
        for event in map(event_of, row["events"]):
            own = self._renamed(event)
            if self._is_new(own) and not isinstance(placed := self._placed(own), UnknownEvent):
                yield placed

    def end(self) -> Iterator[RunEvent]:
        """The events that are missing where the run was ended from outside."""
        if ("end",) in self._told:
            return
        self._told.add(("end",))
        for event in [*self._left(lambda _: True), RunFailed(run_id=self._run_id, error=RunFailedError(ENDED_FROM_OUTSIDE))]:
            yield self._placed(event)

    def _placed(self, event: RunEvent) -> RunEvent:
        position, self._count = self._count, self._count + 1
        return replace(event, position=str(position))

    def _renamed(self, event: RunEvent) -> RunEvent:
        """The event, with the id that the run has in the database."""
        if event.parent_run_id is None:
            self._own_id = event.run_id
            return replace(event, run_id=self._run_id)
        return replace(event, parent_run_id=self._run_id) if event.parent_run_id == self._own_id else event

    # ------------------------------------------------------------------------------------------ what is new

    def _is_new(self, event: RunEvent) -> bool:
        """Whether an event says what was not told before; notes it."""
        if event.parent_run_id is not None:
            self._note_nested(event)
        elif isinstance(event, CallStarted):
            if (self._run_id, event.call_id) in self._calls or ("CallReady", event.call_id) in self._told:
                return False
        elif isinstance(event, TextDelta | ReasoningDelta | CallArgumentsDelta):
            if event.message_id in self._whole:
                return False
            self._writing = event.message_id
        elif isinstance(event, CallDiscarded):
            return self._calls.pop((self._run_id, event.call_id), None) is not None
        elif isinstance(event, CallProgress):
            return ("CallResult", event.call_id) not in self._told
        else:
            return self._once(event)
        self._note_call(event)
        return True

    def _once(self, event: RunEvent) -> bool:
        key = _key(event)
        if key in self._told:
            return False
        self._told.add(key)
        if isinstance(event, CallReady | MessageDone):
            self._whole.add(event.message_id)
            self._attempt = 1
        self._note_call(event)
        return True

    def _note_call(self, event: RunEvent) -> None:
        if isinstance(event, CallStarted | CallReady):
            self._calls[event.run_id, event.call_id] = event
        elif isinstance(event, CallResult | CallDiscarded):
            self._calls.pop((event.run_id, event.call_id), None)
        elif isinstance(event, CallsPending):
            for call in event.calls:
                self._calls.pop((event.run_id, call.id), None)

    def _note_nested(self, event: RunEvent) -> None:
        if isinstance(event, RunStarted):
            self._nested[event.run_id] = event
        elif isinstance(event, RunEnded | RunFailed):
            self._nested.pop(event.run_id, None)

    # ------------------------------------------------------------------------------------------ what is void

    def _voided(self) -> Iterator[RunEvent]:
        """What is told where another execution goes on: the end of what the last one began and did not record."""
        yield from self._left(lambda event: event.run_id != self._run_id or getattr(event, "provisional", False))
        if self._writing is not None and self._writing not in self._whole:
            yield MessageDiscarded(run_id=self._run_id, message_id=self._writing, attempt=self._attempt)
            self._attempt += 1
        self._writing = None

    def _left(self, ended: Callable[[RunEvent], bool]) -> Iterator[RunEvent]:
        """The ends of calls, and of runs inside tools, that nobody goes on with."""
        for key, event in list(self._calls.items()):
            if ended(event):
                del self._calls[key]
                about = {name: getattr(event, name) for name in ("run_id", "parent_run_id", "parent_call_id", "message_id", "call_id")}
                yield CallDiscarded(**about, reason=_DIED)
        for event in reversed(self._nested.values()):
            about = {name: getattr(event, name) for name in ("run_id", "parent_run_id", "parent_call_id")}
            yield RunEnded(**about, stop_reason="cancelled", turns=0)
        self._nested.clear()


def _key(event: RunEvent) -> tuple[str, ...]:
    """What an event that is told once is about."""
    if isinstance(event, RunEnded | RunFailed):
        return ("end",)
    if isinstance(event, MessageDone | TurnUsage):
        return type(event).__name__, event.message_id
    if isinstance(event, UnknownEvent):
        return event.kind, event.call_id
    return type(event).__name__, getattr(event, "call_id", "")


# ---------------------------------------------------------------------------------------------- readers


def behind(position: str | None) -> int:
    """The number of the event at a position; -1 for none.

    Raises:
        ConfigurationError: It is no position.
    """
    if position is not None and not (isinstance(position, str) and position.isascii() and position.isdigit()):
        raise ConfigurationError(f"after takes the position of an event, not {position!r}")
    return -1 if position is None else int(position)


def behind_of(after: str | None, last_event_id: str | None) -> int:
    """The number of the event after which reading starts: that of the header, where it is a position, else of `after`; -1 for none.

    Raises:
        ConfigurationError: `after` is no position.
    """
    number = behind(after)
    with suppress(ConfigurationError):
        return behind(last_event_id) if last_event_id else number
    return number


def position_of(event: RunEvent) -> int:
    """The number of an event that was read, among those of its run."""
    return int(event.position or 0)


def raise_failed(event: RunEvent) -> None:
    """Raise what a run has failed with, after its event."""
    if isinstance(event, RunFailed) and event.parent_run_id is None:
        raise event.error


class Patience:
    """How long somebody waits, and how often he looks.

    Args:
        seconds: After how many seconds in which nothing comes he gives up; None for never.

    Raises:
        ConfigurationError: It is no number of seconds.
    """

    def __init__(self, seconds: float | None) -> None:
        if isinstance(seconds, bool) or not (seconds is None or (isinstance(seconds, int | float) and seconds >= 0)):
            raise ConfigurationError(f"timeout must be a number of seconds, or None, not {seconds!r}")
        self._seconds = seconds
        self.renew()

    def renew(self) -> None:
        """Begin anew: something came."""
        self._until = None if self._seconds is None else time.monotonic() + self._seconds
        self._pause = _SHORTEST_SECONDS

    def pause(self) -> float:
        """For how many seconds to wait before the next look.

        Raises:
            TimeoutError: The time is over.
        """
        if self._until is not None and time.monotonic() >= self._until:
            raise TimeoutError(f"nothing came within {self._seconds} s")
        self._pause = min(self._pause * 1.2, _LONGEST_SECONDS)
        return self._pause


def read_run(run_id: str, timeout: float | None, link: Link) -> Generator[RunEvent, None, None]:
    """The events of a run, from the first one on.

    Raises:
        TimeoutError: For so many seconds nothing came.
        EventsInterruptedError: The process shuts down.
    """
    story, patience, had, has_ended = Story(run_id), Patience(timeout), 0, False
    while not has_ended:
        rows, has_ended = link.ask(outside, _rows, run_id, had)
        for row in rows:
            yield from story.take(row)
        had += len(rows)
        if rows:
            patience.renew()
        elif not has_ended:
            time.sleep(patience.pause())
    yield from story.end()


async def aread_run(run_id: str, timeout: float | None, link: Link) -> AsyncGenerator[RunEvent, None]:
    """Like `read_run`, asynchronously.

    DBOS's own asynchronous readers would make the pool of its threads that of the caller's event loop, which it would not survive.
    """
    story, patience, had, has_ended = Story(run_id), Patience(timeout), 0, False
    while not has_ended:
        rows, has_ended = await asyncio.to_thread(link.ask, outside, _rows, run_id, had)
        for row in rows:
            for event in story.take(row):
                yield event
        had += len(rows)
        if rows:
            patience.renew()
        elif not has_ended:
            await asyncio.sleep(patience.pause())
    for event in story.end():
        yield event


def told_so_far(run_id: str) -> list[RunEvent]:
    """The events that a run has told until now."""
    story = Story(run_id)
    return [event for row in outside(_rows, run_id, 0)[0] for event in story.take(row)]


def _rows(run_id: str, had: int) -> tuple[list[Any], bool]:
    """The rows that are there behind so many, and whether they are the last."""
    rows: list[Any] = []
    try:
        with closing(DBOS.read_stream(run_id, STREAM, offset=had, timeout_seconds=0)) as stream:
            rows.extend(stream)
    except dbos_error.DBOSStreamTimeoutError:
        return rows, False
    except dbos_error.DBOSNonExistentWorkflowError:  # it was deleted
        return rows, True
    return rows, True
