"""Reading of a conversation's events, run after run."""

import re
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import chain, takewhile
from typing import Any

from ..errors import ConfigurationError
from ..event_types import MessagesAdded, RunEvent
from .conversation_runs import APPEND, ConversationRun, ConversationRuns, Incarnation
from .engine import Link, outside
from .run_reader import Look, ReaderTimeout, Wait, position_of, read_run, rows_as_written, rows_of

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


def read_conversation(
    runs: ConversationRuns, start: Start, follow: bool, timeout: float | None, link: Link, wake: Callable[[], None]
) -> Generator[RunEvent | Look | Wait, None, None]:
    """Yield the events of a conversation, with marks where to look and to wait: see `Conversations.events`."""
    ReaderTimeout(timeout)  # raises here, also where no run is waited for
    where, number, had = start
    ahead, is_gone = _AHEAD, False
    found: dict[int, ConversationRun] = {}
    rows: dict[str, list[Any]] = {}
    while True:
        if number not in found:
            yield (look := Look(partial(_look, runs, where, range(number, number + ahead), link)))
            found, rows, is_gone = look.found
            ahead = _AHEAD if number in found else 1
        if (run := found.get(number)) is None and (is_gone or not follow):
            return
        if run is None:
            yield from rows_as_written(where.run_id(number), where.mark, timeout, link, wake)
            continue
        added = [MessagesAdded(run_id=run.id, messages=messages)] if (messages := run.added()) else []
        told = read_run(run.id, timeout, link, wake, rows.pop(run.id, None)) if run.request["kind"] != APPEND else ()
        for step in chain(added, told):
            if isinstance(step, Wait):
                yield step
            elif (place := position_of(step) + 1 + (step.position is not None and len(added))) > had:
                yield replace(step, position=where.position(number, place))
        number, had = number + 1, 0


def _look(
    runs: ConversationRuns, where: Incarnation, numbers: range, link: Link
) -> tuple[dict[int, ConversationRun], dict[str, list[Any]], bool]:
    """Look for the next runs, and read what those wrote that have ended: no run after one that has not.

    Returns:
        The runs by their numbers, the rows of those that have ended, and whether the conversation was deleted while it was read.
    """
    first = numbers[0]
    found = link.ask(runs.numbered, where, [first - 1, *numbers])
    is_gone = (first > 1 and first - 1 not in found) or (first not in found and link.ask(where.is_over))
    ended = [*takewhile(lambda run: run.has_ended, (found[number] for number in numbers if number in found))]
    next_ones = ended or ([found[first]] if first in found else [])
    rows = link.ask(outside, rows_of, {run.id: 0 for run in ended if run.request["kind"] != APPEND})
    return {} if is_gone else {run.number: run for run in next_ones}, rows, is_gone
