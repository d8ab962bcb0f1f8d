"""Reading of conversations: what is noted of them, by which they are listed, or found; their events, run after run.

The row of a conversation's first run carries its owner, labels and title, and the number of its last run as far as whoever sent has noted
it: that one may be behind, never ahead. The row of the last run carries what changes: when it was sent, when it ended, and (here) what it
left.
"""

import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain, takewhile
from typing import Any, Literal

from langchain_core.messages import BaseMessage, HumanMessage

from ..errors import ConfigurationError
from ..event_types import MessagesAdded, RunEvent
from .conversation_runs import APPEND, LABELS, LAST, LEFT, OWNER, TITLE, ConversationRun, ConversationRuns, Incarnation
from .engine import Link, engine, outside
from .run_reader import Look, ReaderTimeout, Wait, position_of, read_run, rows_as_written, rows_of
from .stored import check_name, is_storable

State = Literal["idle", "queued", "running", "calls_pending", "failed"]
Order = Literal["begun", "activity"]
_GROWS = 4  # by how much more runs are read where those before were of too few conversations
_PAGE = 1000  # how many conversations are looked at together
_LONGEST_TITLE = 80


@dataclass(frozen=True)
class ConversationInfo:
    """The description of a conversation.

    Attributes:
        id: Its id.
        begun: When it began.
        updated: When its last run was sent or, where that has ended, when it ended.
        title: The beginning of the first text that a user sent, at most 80 characters; empty where there is none.
        state: `queued` (its last run waits for a worker or for the run before it), `running`, and how the last run has ended: `idle`,
            `calls_pending` (calls wait for a decision) or `failed`.
        owner: Its owner, as the first message was sent with; None where that had none.
        labels: Its labels.
    """

    id: str
    begun: datetime
    updated: datetime
    title: str = ""
    state: State = "idle"
    owner: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


class ConversationList:
    """Finds conversations of one name.

    Args:
        runs: Their runs.
    """

    def __init__(self, runs: ConversationRuns) -> None:
        self._runs = runs

    def info(self, conversation: str) -> ConversationInfo | None:
        """Return the description of a conversation; None if it does not exist."""
        return next(iter(self._described(self._runs.numbered(self._runs.current(conversation), [1], load_input=False).values())), None)

    def find(
        self,
        limit: int | None,
        offset: int,
        owner: str | None,
        labels: Mapping[str, str] | None,
        updated_after: datetime | None,
        order: Order,
    ) -> list[ConversationInfo]:
        """See `Conversations.list`."""
        _check(limit, offset, updated_after, order)
        Metadata(owner, labels)  # checks them
        if limit == 0:
            return []
        most = None if limit is None else offset + limit
        then = None if updated_after is None else updated_after.replace(microsecond=0)  # SQLite has no more of the time of sending
        if owner or labels:
            first = self._matching(owner, labels or {})
        elif then is not None:
            first = self._active_since(then)
        elif order == "activity":
            first = self._last_active(most)
        else:
            return self._described(self._runs.found(name=self._runs.first_workflow, limit=limit, offset=offset, sort_desc=True))
        infos = [info for info in self._described(first) if then is None or info.updated >= then]
        return sorted(infos, key=lambda info: info.updated if order == "activity" else info.begun, reverse=True)[offset:most]

    def older_than(self, age: timedelta) -> list[str]:
        """Return the ids of the idle conversations without any activity for this long."""
        then, offset, found = datetime.now(UTC) - age, 0, list[str]()
        while page := self._runs.found(name=self._runs.first_workflow, end_time=then.isoformat(), limit=_PAGE, offset=offset):
            found += [info.id for info in self._described(page) if _is_older(info, age)]
            offset += len(page)
        return found

    def is_older(self, conversation: str, age: timedelta) -> bool:
        """Whether a conversation is idle and has had no activity for this long."""
        info = self.info(conversation)
        return info is not None and _is_older(info, age)

    # ------------------------------------------------------------------------------------------ by their first runs

    def _matching(self, owner: str | None, labels: Mapping[str, str]) -> list[ConversationRun]:
        """Return the first runs of conversations with this owner and these labels, by an index in PostgreSQL; in SQLite by owner only."""
        wanted: dict[str, Any] = ({OWNER: owner} if owner else {}) | ({LABELS: dict(labels)} if labels else {})
        narrowed: dict[str, Any] = {"attributes": wanted} if not engine.is_sqlite else {"user": owner} if owner else {}
        found = self._runs.found(name=self._runs.first_workflow, sort_desc=True, **narrowed)
        return [run for run in found if labels.items() <= run.noted.get(LABELS, {}).items()]

    def _last_active(self, most: int | None) -> list[ConversationRun]:
        """Return the first runs of at least this many conversations, including the most recently active ones."""
        size = most
        while size is not None:
            runs = self._runs.found(name=self._runs.workflows, limit=size, sort_desc=True)
            if len({run.conversation for run in runs}) >= (most or 0):
                return self._active_since(runs[-1].begun)
            size = None if len(runs) < size else size * _GROWS
        return self._runs.found(name=self._runs.first_workflow, sort_desc=True)

    def _active_since(self, then: datetime) -> list[ConversationRun]:
        """Return the first runs of conversations with a run that was sent or has ended since then."""
        names, at = self._runs.workflows, then.isoformat()
        active = [*self._runs.found(name=names, start_time=at), *self._runs.found(name=names, completed_after=at)]
        return self._runs.by_id({run.beside(1) for run in active})

    # ------------------------------------------------------------------------------------------ and their last

    def _described(self, first: Iterable[ConversationRun]) -> list[ConversationInfo]:
        """Return the descriptions of conversations, given their first runs."""
        began = {run.beside(1): run for run in first}
        last, ends = dict(began), {key: int(run.noted.get(LAST, 1)) for key, run in began.items()}
        while ends:
            asked = {began[key].beside(number): key for key, end in ends.items() for number in (end, end + 1)}
            found = self._runs.by_id(asked)
            for run in sorted(found, key=lambda run: run.number):
                last[asked[run.id]] = run
            ends = {key: end + 1 for key, end in ends.items() if last[key].number > end}
        return [_described(run, last[key]) for key, run in began.items()]


def _described(first: ConversationRun, last: ConversationRun) -> ConversationInfo:
    noted = first.noted
    about = {"title": noted.get(TITLE, ""), "owner": noted.get(OWNER), "labels": noted.get(LABELS, {})}
    return ConversationInfo(first.conversation, first.begun, last.ended or last.begun, state=_state_of(last), **about)


def _is_older(info: ConversationInfo, age: timedelta) -> bool:
    return info.updated < datetime.now(UTC) - age and info.state not in ("queued", "running")


def _state_of(last: ConversationRun) -> State:
    if not last.has_ended:
        return "running" if last.goes_on else "queued"
    state: State = last.noted.get(LEFT, "idle") if last.is_final else "failed"
    return state


def _check(limit: int | None, offset: int, updated_after: datetime | None, order: str) -> None:
    for name, number in (("limit", limit), ("offset", offset)):
        if isinstance(number, bool) or not ((isinstance(number, int) and number >= 0) or (name == "limit" and number is None)):
            raise ConfigurationError(f"{name} must be a number of conversations, not {number!r}")
    if order not in ("begun", "activity"):
        raise ConfigurationError(f'order is "begun" or "activity", not {order!r}')
    if updated_after is not None and not (isinstance(updated_after, datetime) and updated_after.tzinfo):
        raise ConfigurationError(f"updated_after takes a datetime with a time zone, not {updated_after!r}")


# ---------------------------------------------------------------------------------------------- what is noted of a conversation


@dataclass(frozen=True)
class Metadata:
    """The metadata given with a new run of a conversation.

    Attributes:
        owner: Its owner.
        labels: Its labels.
        messages: The added messages.

    Raises:
        ConfigurationError: It is no owner, or they are no labels.
    """

    owner: str | None = None
    labels: Mapping[str, str] | None = None
    messages: Sequence[BaseMessage] = ()

    def __post_init__(self) -> None:
        if self.owner is not None:
            check_name("the owner of a conversation", self.owner)
        labels = {} if self.labels is None else self.labels
        if not isinstance(labels, Mapping) or not all(isinstance(text, str) for pair in labels.items() for text in pair):
            raise ConfigurationError(f"labels are a dict of texts, not {labels!r:.200}")
        if not all(is_storable(text) for pair in labels.items() for text in pair):
            raise ConfigurationError(f"labels have neither NUL nor lone surrogates, which no database can store: {labels!r:.200}")

    def check_owner_of(self, runs: Sequence[ConversationRun]) -> None:
        """Raise if the owner differs from that of the first run.

        Raises:
            ConfigurationError: It is another one, or the conversation has none.
        """
        if self.owner is not None and runs and runs[0].noted.get(OWNER) != self.owner:
            raise ConfigurationError(f"conversation {runs[0].conversation!r} was not begun by the owner {self.owner!r}")

    def noted_first(self) -> dict[str, Any]:
        """Return the attributes of the conversation's first run."""
        noted = {OWNER: self.owner, LABELS: dict(self.labels or {}), TITLE: _title_of(self.messages)}
        return {name: value for name, value in noted.items() if value}

    def noted_later(self, first: ConversationRun, number: int) -> dict[str, Any]:
        """Return the new attributes of the first run when a run with this number is added."""
        title = "" if TITLE in first.noted else _title_of(self.messages)
        return {LAST: number} | ({} if self.labels is None else {LABELS: dict(self.labels)}) | ({TITLE: title} if title else {})


def _title_of(messages: Sequence[BaseMessage]) -> str:
    """Return the beginning of the user's first text, in one line; empty if there is none."""
    question = next((message.text for message in messages if isinstance(message, HumanMessage)), "")
    line = "".join(one if is_storable(one) else "\ufffd" for one in " ".join(question[: 20 * _LONGEST_TITLE].split()))
    return line if len(line) <= _LONGEST_TITLE else line[: _LONGEST_TITLE - 1].rstrip() + "…"


# ---------------------------------------------------------------------------------------------- their events


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
        if run.steers and not run.has_ended and not (yield from _has_begun(run.id, timeout, link, wake)):
            found.clear()  # it has ended without an event: now it says whether its message was taken
            continue
        added = [MessagesAdded(run_id=run.id, messages=messages)] if (messages := run.added()) else []
        is_told = run.request["kind"] != APPEND and run.taken_by is None
        told = read_run(run.id, timeout, link, wake, rows.pop(run.id, None)) if is_told else ()
        for step in chain(added, told):
            if isinstance(step, Wait):
                yield step
            elif (place := position_of(step) + 1 + (step.position is not None and len(added))) > had:
                yield replace(step, position=where.position(number, place))
        number, had = number + 1, 0


def _has_begun(run_id: str, timeout: float | None, link: Link, wake: Callable[[], None]) -> Generator[Wait, None, bool]:
    """Wait until a run has told something, or has ended; return whether it has told something."""
    with closing(rows_as_written(run_id, None, timeout, link, wake)) as rows:
        for row in rows:
            if not isinstance(row, Wait):
                return True
            yield row
    return False


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
