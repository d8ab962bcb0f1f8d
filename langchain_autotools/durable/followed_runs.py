"""Runs that somebody in this process follows: one thread looks into the database for all of them, while there are any."""

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from dbos import DBOS

from ..event_bus import Alarm
from ..executor.workers.threads import run_beside
from .engine import Link, outside
from .patience import Patience
from .storage import is_of_disk
from .streams import GOES_ON, rows_of

_SHORTEST_SECONDS, _LONGEST_SECONDS = 0.05, 0.2  # between two looks into the database: the longer nothing has come, the longer
_LOOKED_UP = 1000  # how many rows are asked for at a time
_RESTS = 3  # how many times longer than a look the pause after it is at least
_ALL_EVERY = 5  # in how many looks one asks for all, also the marks of runs that will never be
_NEWEST = 16  # so many runs tell whether there are new ones, also where the clocks of processes differ


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
        pause, looks, is_woken = _SHORTEST_SECONDS, count(), True
        newest: list[str] = []
        while runs := self._open():
            began, for_all = time.monotonic(), next(looks) % _ALL_EVERY == 0
            try:
                found = self.link.ask(outside, _newest)
                awaited = for_all or is_woken or found != newest
                sought = [run for run in runs if not run.has_ended and (awaited or run.mark is None)]
                has_news = self.link.ask(outside, _look, sought, for_all)
                newest = found
            except Exception as error:
                if not is_of_disk(error):
                    self._fail(error)
                    continue
                has_news = False
            pause = _SHORTEST_SECONDS if has_news else min(pause * 1.2, _LONGEST_SECONDS)
            time.sleep(min(_RESTS * (time.monotonic() - began), _LONGEST_SECONDS))  # also while many begin to follow
            if is_woken := self._changed.wait(pause):
                pause = _SHORTEST_SECONDS
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


def _newest() -> list[str]:
    """Return the ids of the newest runs of the database: while they are the same, no run that is waited for has come."""
    return [run.workflow_id for run in DBOS.list_workflows(limit=_NEWEST, sort_desc=True, load_input=False, load_output=False)]


def _look(runs: list[FollowedRun], with_marks: bool) -> bool:
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


def rows_as_written(run_id: str, mark: str | None, timeout: float | None, link: Link) -> Iterator[Any]:
    """Yield the rows of a run as they are written; of one that is waited for none, until it exists or its mark does.

    Raises:
        TimeoutError: For so many seconds nothing came.
        EventsInterruptedError: The process shuts down.
    """
    patience, had, changed = Patience(timeout), 0, threading.Event()
    with followed_runs().following(run_id, mark, changed.set) as run:
        while True:
            rows, has_ended = run.behind(had, link)
            yield from rows
            had += len(rows)
            if rows:
                patience.renew()
            elif has_ended:
                return
            else:
                changed.wait(patience.left())
                changed.clear()


async def arows_as_written(run_id: str, mark: str | None, timeout: float | None, link: Link) -> AsyncGenerator[Any, None]:
    """Like `rows_as_written`, asynchronously."""
    patience, had, changed = Patience(timeout), 0, Alarm()
    with followed_runs().following(run_id, mark, changed.ring) as run:
        while True:
            rows, has_ended = run.behind(had, link)
            for row in rows:
                yield row
            had += len(rows)
            if rows:
                patience.renew()
            elif has_ended:
                return
            else:
                await asyncio.wait([changed.rung], timeout=patience.left())
                changed.reset()
