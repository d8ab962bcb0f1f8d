"""Reading of a run's events from the database, by any process, from any position."""

import asyncio
import json
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any, Final, TypeVar

from dbos import DBOS
from dbos import error as dbos_error
from sqlalchemy import and_, column, or_, select, table
from sqlalchemy.exc import SQLAlchemyError

from .. import event_types as kinds
from ..errors import ConfigurationError
from ..event_bus import Alarm
from ..event_types import RunEvent
from ..executor.user_functions import run_beside
from .engine import Link, engine, outside
from .journal import STREAM, UnknownEvent, event_of, read_row, with_texts
from .stored import RunFailedError, reading
from .workers import is_of_disk

GOES_ON = ("ENQUEUED", "PENDING", "DELAYED")
"""The states of a run that has not ended."""

ENDED_FROM_OUTSIDE = "the run was ended from outside"
"""The error of a run that failed without an end event."""

_DIED = "the process that ran this has ended"
_PORTABLE = "portable_json"  # what DBOS calls the form in which all is stored here
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.05, 0.5  # between two looks into the database: the longer nothing has come, the longer
_SHORTEST_POLL, _LONGEST_POLL = 0.05, 0.2  # between two looks into the database: the longer nothing has come, the longer
_LOOKED_UP = 1000  # how many rows are asked for at a time
_REST_FACTOR = 3  # how many times longer than a look the pause after it is at least
_ALL_EVERY = 5  # in how many looks one asks for all, also the marks of runs that will never be
_NEWEST = 16  # so many runs tell whether there are new ones, also where the clocks of processes differ


class Look:
    """A mark in a reading: the reader looks into the database, beside an event loop, and goes on.

    Args:
        look: Returns what it has found.

    Attributes:
        found: What it has found, once the reading goes on.
    """

    def __init__(self, look: Callable[[], Any]) -> None:
        self._look = look
        self.found: Any = None

    def make(self) -> None:
        """Look into the database."""
        self.found = self._look()


@dataclass(frozen=True)
class Wait:
    """A mark in a reading: nothing is there to read before something wakes the reader.

    Attributes:
        seconds: For how long to wait at most; None for any time.
    """

    seconds: float | None


_T = TypeVar("_T")

Reading = Callable[[Callable[[], None]], Generator[_T | Look | Wait, None, None]]
"""A reading, given what wakes its reader: events or chunks, and marks of what the reader does in between."""


def driven(read: Reading[_T]) -> Generator[_T, None, None]:
    """Yield what a reading brings, and do in this thread what it asks for."""
    changed = threading.Event()
    with closing(read(changed.set)) as steps:
        for step in steps:
            if isinstance(step, Look):
                step.make()
            elif isinstance(step, Wait):
                changed.wait(step.seconds)
                changed.clear()
            else:
                yield step


async def adriven(read: Reading[_T]) -> AsyncGenerator[_T, None]:
    """Like `driven`, asynchronously."""
    changed = Alarm()
    with closing(read(changed.ring)) as steps:
        for step in steps:
            if isinstance(step, Look):
                await asyncio.to_thread(step.make)
            elif isinstance(step, Wait):
                await asyncio.wait([changed.rung], timeout=step.seconds)
                changed.reset()
            else:
                yield step


def read_run(
    run_id: str, timeout: float | None, link: Link, wake: Callable[[], None], ended: list[Any] | None = None
) -> Generator[RunEvent | Wait, None, None]:
    """Yield the events of a run, from the first one on, with marks where to wait.

    Args:
        run_id: The run.
        timeout: After how many seconds in which nothing comes the reader gives up; None for never.
        link: Asks the database.
        wake: Wakes the reader.
        ended: All rows of the run, if it has ended and they were read before.

    Raises:
        TimeoutError: For so many seconds nothing came.
        EventsInterruptedError: The process shuts down.
    """
    story = Story(run_id)
    for row in rows_as_written(run_id, None, timeout, link, wake) if ended is None else ended:
        yield from [row] if isinstance(row, Wait) else story.events_of(row)
    yield from story.end()


def events_so_far(run_id: str) -> list[RunEvent]:
    """Return the events of a run so far."""
    story = Story(run_id)
    return [event for row in outside(rows_of, {run_id: 0})[run_id] for event in story.events_of(row)]


def start_number(after: str | None, last_event_id: str | None) -> int:
    """Return the number of the event after which reading starts: from the header if it is a position, else from `after`; -1 for none.

    Raises:
        ConfigurationError: `after` is no position.
    """
    number = _event_number(after)
    with suppress(ConfigurationError):
        return _event_number(last_event_id) if last_event_id else number
    return number


def _event_number(position: str | None) -> int:
    """Return the number of the event at a position; -1 for None.

    Raises:
        ConfigurationError: It is no position.
    """
    if position is not None and not (isinstance(position, str) and position.isascii() and position.isdigit()):
        raise ConfigurationError(f"after takes the position of an event, not {position!r}")
    return -1 if position is None else int(position)


def position_of(event: RunEvent) -> int:
    """Return the number of a read event within its run."""
    return int(event.position or 0)


class ReaderTimeout:
    """The timeout of a reader, and its polling interval.

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
        """Restart the timeout, after new data."""
        self._until = None if self._seconds is None else time.monotonic() + self._seconds
        self._pause = _SHORTEST_PAUSE

    def left(self) -> float | None:
        """Return the seconds that are left; None for any number.

        Raises:
            TimeoutError: The time is over.
        """
        left = None if self._until is None else self._until - time.monotonic()
        if left is not None and left <= 0:
            raise TimeoutError(f"nothing came within {self._seconds} s")
        return left

    def pause(self) -> float:
        """Return the seconds to wait before polling again.

        Raises:
            TimeoutError: The time is over.
        """
        self.left()
        self._pause = min(self._pause * 1.2, _LONGEST_PAUSE)
        return self._pause


# ---------------------------------------------------------------------------------------------- the events of a run, from its rows


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
        self._vendor_calls: dict[tuple[str, str], kinds.VendorCallStarted] = {}
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
        reading = _READINGS.get(type(event)) or (_PIECE if event.wire and event.wire.is_piece else _OTHER)
        if event.parent_run_id is None and not reading.is_new(self, event):
            return False
        if reading.note is not None:
            reading.note(self, event)
        return True

    def _once(self, *key: str) -> bool:
        """Whether this is new; records it."""
        is_new = key not in self._emitted
        self._emitted.add(key)
        return is_new

    def _is_more(self, event: Any) -> bool:
        """Whether an event brings more of a message that is being written."""
        if event.message_id in self._whole:
            return False
        self._writing = event.message_id
        return True

    def _ends_writing(self, event: kinds.CallReady | kinds.MessageDone) -> bool:
        """Record that a message is whole; True."""
        self._whole.add(event.message_id)
        self._attempt = 1
        return True

    def _is_void_message(self, event: kinds.MessageDiscarded) -> bool:
        """Whether the discarded message was being written; nothing is, after it."""
        is_open = self._writing == event.message_id and event.message_id not in self._whole
        self._writing = None if is_open else self._writing
        return is_open

    def _is_first(self, event: RunEvent) -> bool:
        """Whether no event of the kind has said the same of the same."""
        said = [str(value) for name, value in vars(event).items() if type(value) in (str, int) and name != "position"]
        return self._once(type(event).__name__, *said)

    def _is_new_call(self, event: kinds.CallStarted) -> bool:
        """Whether nothing has been told of a call."""
        return (self._run_id, event.call_id) not in self._calls and ("CallReady", event.call_id) not in self._emitted

    def _is_open_vendor_call(self, event: Any) -> bool:
        """Whether a call that the vendor runs goes on."""
        return (event.run_id, event.call_id) in self._vendor_calls

    def _call_opens(self, event: kinds.CallStarted | kinds.CallReady) -> None:
        """Record a call that has no end so far."""
        self._calls[event.run_id, event.call_id] = event

    def _call_closes(self, event: kinds.CallResult | kinds.CallDiscarded) -> None:
        """Record the end of a call."""
        self._calls.pop((event.run_id, event.call_id), None)

    def _run_opens(self, event: kinds.RunStarted) -> None:
        """Record a run inside a tool."""
        if event.parent_run_id is not None:
            self._nested[event.run_id] = event

    def _calls_wait(self, event: kinds.CallsPending) -> None:
        """Record that calls have ended their run pending."""
        for call in event.calls:
            self._calls.pop((event.run_id, call.id), None)

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
            yield kinds.VendorCallDone(**{**vars(call), "failed": True})
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
    note: Callable[[Story, Any], object] | None = None


_READINGS: Final[Mapping[type[RunEvent], _Reading]] = {
    kinds.RunStarted: _Reading(lambda story, _: story._once("RunStarted"), Story._run_opens),
    kinds.CallStarted: _Reading(Story._is_new_call, Story._call_opens),
    kinds.CallReady: _Reading(
        lambda story, event: story._once("CallReady", event.call_id) and story._ends_writing(event), Story._call_opens
    ),
    kinds.CallDiscarded: _Reading(lambda story, event: (event.run_id, event.call_id) in story._calls, Story._call_closes),
    kinds.CallProgress: _Reading(lambda story, event: ("CallResult", event.call_id) not in story._emitted),
    kinds.CallResult: _Reading(lambda story, event: story._once("CallResult", event.call_id), Story._call_closes),
    kinds.MessageDone: _Reading(lambda story, event: story._once("MessageDone", event.message_id) and story._ends_writing(event)),
    kinds.MessageDiscarded: _Reading(Story._is_void_message),
    kinds.CallsPending: _Reading(lambda story, _: story._once("CallsPending"), Story._calls_wait),
    kinds.VendorCallStarted: _Reading(
        lambda story, event: not story._is_open_vendor_call(event) and story._is_more(event),
        lambda story, event: story._vendor_calls.update({(event.run_id, event.call_id): event}),
    ),
    kinds.VendorCallProgress: _Reading(Story._is_open_vendor_call),
    kinds.VendorCallDone: _Reading(
        Story._is_open_vendor_call, lambda story, event: story._vendor_calls.pop((event.run_id, event.call_id), None)
    ),
    **dict.fromkeys(
        (kinds.RunEnded, kinds.RunFailed),
        _Reading(lambda story, _: story._once("end"), lambda story, event: story._nested.pop(event.run_id, None)),
    ),
}
"""The kinds that open or close something."""

_PIECE: Final = _Reading(Story._is_more)
"""A piece of a message, which is new while the message is written."""
_OTHER: Final = _Reading(Story._is_first)
"""Any other event, which is new once."""


# ---------------------------------------------------------------------------------------------- rows while they are written
#
# One thread looks into the database for all runs that somebody in this process follows, while there are any.


def rows_as_written(
    run_id: str, mark: str | None, timeout: float | None, link: Link, wake: Callable[[], None]
) -> Generator[Any, None, None]:
    """Yield the rows of a run as they are written; of one that is waited for none, until it exists or its mark does.

    Raises:
        TimeoutError: For so many seconds nothing came.
        EventsInterruptedError: The process shuts down.
    """
    limit, had = ReaderTimeout(timeout), 0
    with followed_runs().following(run_id, mark, wake) as run:
        while True:
            rows, has_ended = run.behind(had, link)
            yield from rows
            had += len(rows)
            if rows:
                limit.renew()
            elif has_ended:
                return
            else:
                yield Wait(limit.left())


class FollowedRun:
    """A run that readers of this process follow.

    Args:
        run_id: The run.
        mark: The row that says that the run will never be; None if the run exists.

    Attributes:
        rows: The rows of its events so far, of a run that existed from the beginning.
        has_ended: Whether these are all; of a run that is waited for, whether the waiting is over.
        error: What the look into the database raised, which ends the following.
        wakers: Functions that wake its readers.
    """

    def __init__(self, run_id: str, mark: str | None) -> None:
        self.run_id = run_id
        self.mark = mark
        self.rows: list[Any] = []
        self.has_ended = False
        self.error: Exception | None = None
        self.wakers: list[Callable[[], None]] = []

    def behind(self, had: int, link: Link) -> tuple[list[Any], bool]:
        """Return the rows after this many, and whether they are the last.

        Raises:
            EventsInterruptedError: The process has shut down since the link was made.
        """
        link.check()
        if self.error is not None:
            raise self.error
        has_ended = self.has_ended  # before the rows: none is written after it is set
        return self.rows[had:], has_ended

    def add(self, rows: list[Any], has_ended: bool) -> bool:
        """Add what a look has found, and wake the readers if it is news; return whether it is."""
        self.rows += rows
        self.has_ended = has_ended
        if rows or has_ended:
            self.wake()
        return bool(rows or has_ended)

    def wake(self) -> None:
        """Wake the readers."""
        for wake in list(self.wakers):
            wake()


class FollowedRuns:
    """The runs that are followed in this process between a launch and the shutdown after it."""

    def __init__(self) -> None:
        self.link = Link()
        self._runs: dict[tuple[str, str | None], FollowedRun] = {}
        self._lock = threading.Lock()
        self._changed = threading.Event()
        self._looks = False

    @contextmanager
    def following(self, run_id: str, mark: str | None, wake: Callable[[], None]) -> Iterator[FollowedRun]:
        """A context manager for one reader of a run, who is woken when there is news."""
        key = run_id, mark
        with self._lock:
            run = self._runs.setdefault(key, FollowedRun(run_id, mark))
            run.wakers.append(wake)
            begins, self._looks = not self._looks, True
        self._changed.set()
        if begins:
            run_beside(self._work)
        try:
            yield run
        finally:
            with self._lock:
                run.wakers.remove(wake)
                if not run.wakers and self._runs.get(key) is run:
                    del self._runs[key]

    def look_soon(self) -> None:
        """Look at once, as something has changed in this process."""
        self._changed.set()

    def _work(self) -> None:
        pause, looks, is_woken = _SHORTEST_POLL, count(), True
        newest: list[str] = []
        while runs := self._open():
            began, for_all = time.monotonic(), next(looks) % _ALL_EVERY == 0
            try:
                newest_runs = partial(DBOS.list_workflows, limit=_NEWEST, sort_desc=True, load_input=False, load_output=False)
                found = [run.workflow_id for run in self.link.ask(outside, newest_runs)]
                awaited = for_all or is_woken or found != newest
                sought = [run for run in runs if not run.has_ended and (awaited or run.mark is None)]
                has_news = self.link.ask(outside, _look_for_news, sought, for_all)
                newest = found
            except Exception as error:
                if not is_of_disk(error):
                    self._fail(error)
                    continue
                has_news = False
            pause = _SHORTEST_POLL if has_news else min(pause * 1.2, _LONGEST_POLL)
            time.sleep(min(_REST_FACTOR * (time.monotonic() - began), _LONGEST_POLL))  # also while many begin to follow
            if is_woken := self._changed.wait(pause):
                pause = _SHORTEST_POLL
                self._changed.clear()

    def _open(self) -> list[FollowedRun]:
        """Return the runs that are followed; if there are none, the looking ends."""
        with self._lock:
            self._looks = bool(self._runs)
            return list(self._runs.values())

    def _fail(self, error: Exception) -> None:
        with self._lock:
            runs, self._runs = list(self._runs.values()), {}
        for run in runs:
            run.error = error
            run.wake()


def _look_for_news(runs: list[FollowedRun], with_marks: bool) -> bool:
    """Look for news of runs; return whether there are any."""
    ids = [run.run_id for run in runs] + [run.mark for run in runs if with_marks and run.mark is not None]
    pages = [ids[start : start + _LOOKED_UP] for start in range(0, len(ids), _LOOKED_UP)]
    found = [row for page in pages for row in DBOS.list_workflows(workflow_ids=page, load_input=False, load_output=False)]
    there = {row.workflow_id: row.status for row in found}
    awaited, read = [run for run in runs if run.mark is not None], [run for run in runs if run.mark is None]
    rows = rows_of({run.run_id: len(run.rows) for run in read})
    news = [run.add([], has_ended=run.run_id in there or run.mark in there) for run in awaited]
    return any([*news, *(run.add(rows[run.run_id], there.get(run.run_id) not in GOES_ON) for run in read)])


_followed: list[FollowedRuns] = []  # those of the last launch in which somebody followed


def followed_runs() -> FollowedRuns:
    """Return the followed runs of the current launch."""
    while not (_followed and _followed[-1].link.is_current):
        _followed[:] = [FollowedRuns()]
    return _followed[-1]


# --------------------------------------------------------------------------------------------- rows as they are in the database's streams


def rows_of(had: Mapping[str, int]) -> dict[str, list[Any]]:
    """Return the rows of runs, of each those after so many, in one statement. One that cannot be read is replaced by the error.

    DBOS reads streams one by one, so its table is read here. What goes wrong with that does not matter: DBOS reads it then.
    """
    if not had:
        return {}
    rows: dict[str, list[Any]] = {run_id: [] for run_id in had}
    try:
        for run_id, value, form in _select_rows(had):
            if form != _PORTABLE:
                raise LookupError(form)
            rows[run_id].append(_readable_row(run_id, value, json.loads))
    except (LookupError, SQLAlchemyError):
        return {run_id: _rows_of_one(run_id, number) for run_id, number in had.items()}
    return rows


def _rows_of_one(run_id: str, had: int) -> list[Any]:
    rows: list[Any] = []
    try:
        with (
            reading(f"a row of the events of run {run_id!r}"),
            suppress(dbos_error.DBOSStreamTimeoutError, dbos_error.DBOSNonExistentWorkflowError),  # it goes on, or was deleted
            closing(DBOS.read_stream(run_id, STREAM, offset=had, timeout_seconds=0)) as stream,
        ):
            rows.extend(_readable_row(run_id, row, lambda read: read) for row in stream)
    except RunFailedError as error:
        rows.append(error)
    return rows


def _readable_row(run_id: str, value: Any, read: Callable[[Any], Any]) -> Any:
    try:
        with reading(f"a row of the events of run {run_id!r}"):
            return with_texts(run_id, read(value))
    except RunFailedError as error:
        return error


def _select_rows(had: Mapping[str, int]) -> list[Any]:
    names = ("workflow_uuid", "value", "serialization", "key", "offset")
    streams = table("streams", *map(column, names), schema=None if engine.is_sqlite else "dbos")
    run_id, value, form, key, offset = (streams.c[name] for name in names)
    whole = [one for one, number in had.items() if not number]
    behind = [and_(run_id == one, offset >= number) for one, number in had.items() if number]
    wanted = select(run_id, value, form).where(key == STREAM, or_(run_id.in_(whole), *behind)).order_by(run_id, offset)
    with engine.database.connect() as connection:
        return list(connection.execute(wanted))
