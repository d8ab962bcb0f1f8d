"""Reading of a conversation's events, run after run."""

import asyncio
import re
from collections import deque
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import aclosing, closing, suppress
from dataclasses import replace
from itertools import takewhile
from typing import Any

from ..errors import ConfigurationError
from ..event_types import MessagesAdded, RunEvent
from .conversation_runs import APPEND, ConversationRun, ConversationRuns, Incarnation
from .engine import Link, outside
from .run_reader import ReaderTimeout, aread_run, arows_as_written, position_of, read_run, rows_as_written, rows_of

_POSITION = re.compile(r"(?:([1-9][0-9]*)\.)?([1-9][0-9]*)-([0-9]+)")
_AHEAD = 16  # how many runs are looked for at a time
_LONGEST = 100  # of a position: Python reads no number of any length

Start = tuple[Incarnation, int, int]
"""The start of reading: the conversation's incarnation, the number of the run, and the number of events that the reader has."""


def _parse_position(position: str) -> tuple[int, int, int]:
    """Parse a position to the numbers of the incarnation, the run and the event.

    Raises:
        ConfigurationError: It is no position.
    """
    read = _POSITION.fullmatch(position) if isinstance(position, str) and len(position) < _LONGEST else None
    if read is None:
        raise ConfigurationError(f"after takes the position of an event of a conversation, not {position!r}")
    return int(read[1] or 1), int(read[2]), int(read[3])


def check_position(after: str | None) -> None:
    """Raise if `after` is given and cannot be the position of an event of any conversation.

    Raises:
        ConfigurationError: It cannot.
    """
    if after is not None:
        _parse_position(after)


def start_of(runs: ConversationRuns, conversation: str, after: str | None, last_event_id: str | None) -> Start:
    """Return the start of reading: after the position in a header if the conversation has it, else after `after`.

    Raises:
        ConfigurationError: `after` is no position, or one that the conversation does not have.
    """
    check_position(after)
    now = runs.current(conversation)
    with suppress(ConfigurationError):
        if last_event_id:
            return _known_start(runs, now, last_event_id)
    return (now, 1, 0) if after is None else _known_start(runs, now, after)


def _known_start(runs: ConversationRuns, now: Incarnation, position: str) -> Start:
    incarnation, number, event = _parse_position(position)
    if incarnation != now.number or number not in runs.numbered(now, [number], load_input=False):
        raise ConfigurationError(f"conversation {now.conversation!r} has no position {position!r}, or has none since it was deleted")
    return now, number, event


class _ConversationCursor:
    """The state of a conversation's reader.

    Args:
        runs: The runs of all conversations.
        start: Where it starts.
        link: Asks the database.

    Attributes:
        is_gone: Whether the conversation was deleted while it was read.
    """

    def __init__(self, runs: ConversationRuns, start: Start, link: Link) -> None:
        self._runs = runs
        self._where, self._number, self._had = start
        self._link = link
        self._ahead = _AHEAD
        self._found: dict[int, ConversationRun] = {}
        self._rows: dict[str, list[Any]] = {}
        self._before = False  # whether its messages stand before the events of the run
        self.is_gone = False

    def run(self) -> ConversationRun | None:
        """Return the run to read; None if there is none yet, or (`is_gone`) if the conversation was deleted."""
        if self._number not in self._found:
            self._look()
        return self._found.get(self._number)

    def _look(self) -> None:
        """Look for the next runs, and read what those wrote that have ended: no run after one that has not."""
        numbers = range(self._number, self._number + self._ahead)
        found = self._link.ask(self._runs.numbered, self._where, [self._number - 1, *numbers])
        is_there = self._number in found
        self.is_gone = (self._number > 1 and self._number - 1 not in found) or (not is_there and self._link.ask(self._where.is_over))
        ended = [*takewhile(lambda run: run.has_ended, (found[number] for number in numbers if number in found))]
        next_ones = ended or ([found[self._number]] if is_there else [])
        self._found = {} if self.is_gone else {run.number: run for run in next_ones}
        self._rows = self._link.ask(outside, rows_of, {run.id: 0 for run in ended if run.request["kind"] != APPEND})
        self._ahead = _AHEAD if is_there else 1

    @property
    def awaited(self) -> tuple[str, str]:
        """The id of the run to read, and of the mark of the conversation's end."""
        return self._where.run_id(self._number), self._where.mark

    def rows(self, run: ConversationRun) -> list[Any] | None:
        """Return all rows of a run that had ended when it was looked for; None for another one."""
        return self._rows.pop(run.id, None)

    def added(self, run: ConversationRun) -> Iterator[RunEvent]:
        """Yield the event of the messages that a run adds, unless it adds none or the reader has it."""
        messages = run.added()
        self._before = bool(messages)
        if messages:
            yield from self._placed(MessagesAdded(run_id=run.id, messages=messages), 1)

    def placed(self, event: RunEvent) -> Iterator[RunEvent]:
        """Yield an event of the run with its position in the conversation, behind its messages, unless the reader has it."""
        return self._placed(event, self._before + position_of(event) + 1)

    def _placed(self, event: RunEvent, number: int) -> Iterator[RunEvent]:
        if number > self._had:
            yield replace(event, position=self._where.position(self._number, number))

    def go_on(self) -> None:
        """Move on to the next run."""
        self._number, self._had = self._number + 1, 0


def read_conversation(
    runs: ConversationRuns, start: Start, follow: bool, timeout: float | None, link: Link
) -> Generator[RunEvent, None, None]:
    """Yield the events of a conversation: see `Conversations.events`."""
    ReaderTimeout(timeout)  # raises here, also where no run is waited for
    place = _ConversationCursor(runs, start, link)
    while (run := place.run()) is not None or (follow and not place.is_gone):
        if run is None:
            deque(rows_as_written(*place.awaited, timeout, link), 0)
            continue
        yield from place.added(run)
        if run.request["kind"] != APPEND:
            with closing(read_run(run.id, timeout, link, place.rows(run))) as events:
                for event in events:
                    yield from place.placed(event)
        place.go_on()


async def aread_conversation(
    runs: ConversationRuns, start: Start, follow: bool, timeout: float | None, link: Link
) -> AsyncGenerator[RunEvent, None]:
    """Like `read_conversation`, asynchronously."""
    ReaderTimeout(timeout)  # raises here, also where no run is waited for
    place = _ConversationCursor(runs, start, link)
    while (run := await asyncio.to_thread(place.run)) is not None or (follow and not place.is_gone):
        if run is None:
            async for _ in arows_as_written(*place.awaited, timeout, link):
                pass
            continue
        for one in place.added(run):
            yield one
        if run.request["kind"] == APPEND:
            place.go_on()
            continue
        async with aclosing(aread_run(run.id, timeout, link, place.rows(run))) as events:
            async for event in events:
                for one in place.placed(event):
                    yield one
        place.go_on()
