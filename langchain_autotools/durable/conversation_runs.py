"""The stored runs of conversations: each is a workflow, numbered within its conversation, with what it is asked.

A conversation has no row of its own: it is its runs, 1, 2, 3 and so on. Whoever adds one takes the next number; the database lets each
number be taken once. All wait in one queue, where each conversation is a partition that has one run at a time, and the lowest number
first.

The end of an incarnation is a row of its own, which stays: the database lets it be made once, by whichever process, and the next
incarnation has the next number. Ids of runs and positions have the number; those of the first incarnation have none.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import count
from typing import Any, cast
from urllib.parse import quote

from dbos import DBOS, WorkflowStatus
from dbos import error as dbos_error
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig

from ..errors import ConfigurationError
from ..event_types import MessageDone
from ..executor import Decision, PendingCall, pending_calls
from ..executor.pending import Refusals, refusal
from ..messages.metadata import attach_messages
from ..messages.run_messages import new_messages
from .engine import VERSION, Transcript, engine, outside
from .journal import with_texts
from .run_reader import ENDED_FROM_OUTSIDE, GOES_ON, ReaderTimeout, events_so_far, followed_runs
from .stored import (
    RunFailedError,
    checked,
    copy_of,
    mapping_of,
    message_of,
    plain_config,
    plain_keywords,
    plain_messages,
    reading,
    reply_of,
    request_of_run,
    stored,
)
from .workers import CANCELLED, STEERS, Execution, start_workflow

SEND, DECIDE, APPEND = "send", "decide", "append"
"""The kinds of runs: answering a message, continuing with decisions, or only adding messages."""

_DECIDED = "autotools_decided"
"""The attribute with the calls that a run decides about, as JSON text, since PostgreSQL's JSON type does not accept every text."""

OWNER, LABELS, TITLE, LAST = "autotools_owner", "autotools_labels", "autotools_title", "autotools_last"
"""Attributes of the first run: the conversation's metadata, and a lower bound of its last run's number."""

LEFT = "autotools_left"
"""The attribute of a finished run that left something: `calls_pending`, or `failed`."""

TAKEN = "autotools_taken"
"""The attribute of a run whose message an earlier run has taken: the id of that one."""

_KEY = "autotools_key"  # what a run was added for: the same is added once
_CONVERSATION = "autotools_conversation"
_ENDED = "langchain_autotools deleted conversation"
_LOOKED_UP = 8  # how many ends are asked for at a time
_LARGEST = 100  # how many runs are deleted at a time
_FIRST_LOOK = 16  # how many runs of a conversation the first look-up asks for; each further one asks for twice as many
_MOST_LOOKED_UP = 1024  # how many it asks for at the most
_FEW = 4  # how many runs the search for the last one asks for at a time
_OPEN = ["ENQUEUED", "PENDING"]  # what DBOS has an index of
_TEXTS = OWNER, TITLE, LEFT, TAKEN, _DECIDED, _KEY, _CONVERSATION
_ATTRIBUTES = {**dict.fromkeys(_TEXTS, str), LABELS: Mapping, LAST: int, STEERS: bool}


# ---------------------------------------------------------------------------------------------- a conversation until it is deleted


@dataclass(frozen=True)
class Incarnation:
    """A conversation from its first run until it is deleted.

    Attributes:
        name: The name of the conversations.
        conversation: The id of the conversation.
        number: The number of the incarnation, from 1 on.
    """

    name: str
    conversation: str
    number: int = 1

    @property
    def prefix(self) -> str:
        """The prefix of its run ids before the number."""
        return self._first if self.number == 1 else f"{self._first}/{self.number}"

    @property
    def _first(self) -> str:
        return f"conversations/{quote(self.name, safe='')}/{quote(self.conversation, safe='')}"

    @property
    def mark(self) -> str:
        """The id of the row that marks its end, without the conversation's own id."""
        return f"deleted conversations/{hashlib.sha256(self._first.encode()).hexdigest()}/{self.number}"

    def run_id(self, number: int) -> str:
        """Return the id of one of its runs."""
        return f"{self.prefix}/{number}"

    def position(self, run: int, event: int) -> str:
        """Return the position of an event of one of its runs."""
        return f"{run}-{event}" if self.number == 1 else f"{self.number}.{run}-{event}"

    def of_run(self, run_id: str) -> "Incarnation":
        """Return the incarnation of the same conversation that a run belongs to."""
        number, _, run = run_id.removeprefix(f"{self._first}/").partition("/")
        return replace(self, number=int(number) if run else 1)

    def before(self) -> "Incarnation":
        """The previous incarnation; itself if there is none."""
        return replace(self, number=max(1, self.number - 1))

    def current(self) -> "Incarnation":
        """Return the current incarnation, from this one on."""
        later = [replace(self, number=self.number + number) for number in range(_LOOKED_UP)]
        ended = _there(later)
        following = replace(self, number=self.number + ended)
        return following if ended < _LOOKED_UP else following.current()

    def is_over(self) -> bool:
        """Whether the incarnation has ended."""
        return bool(_there([self]))

    def end(self) -> None:
        """End the incarnation in all processes: later runs belong to the next one."""
        outside(start_workflow, self.mark, _end, self.mark)


def _there(incarnations: list[Incarnation]) -> int:
    """Return the number of ended incarnations."""
    marks = [one.mark for one in incarnations]
    return len(outside(DBOS.list_workflows, workflow_ids=marks, load_input=False, load_output=False))


_end: Any = DBOS.workflow(name=_ENDED)(lambda mark: mark)  # exists to be there


# ---------------------------------------------------------------------------------------------- one run
#
# Its request, its outcome, its attributes are each read when somebody asks for them.


@dataclass(frozen=True)
class ConversationRun:
    """A run of a conversation.

    Attributes:
        status: Its workflow; with what went in and came out where that was asked for.
    """

    status: WorkflowStatus

    @property
    def id(self) -> str:
        """The run's id in the database."""
        return str(self.status.workflow_id)

    @property
    def number(self) -> int:
        """The run's number in the conversation, from 1 on."""
        return int(self.id.rpartition("/")[2])

    def beside(self, number: int) -> str:
        """Return the id of another run of the same conversation."""
        return f"{self.id.rpartition('/')[0]}/{number}"

    @property
    def has_ended(self) -> bool:
        """Whether the run has ended, successfully or not."""
        return self.status.status not in GOES_ON

    @property
    def is_final(self) -> bool:
        """Whether the run has ended in a way that never changes."""
        return bool(self.status.status == "SUCCESS")

    @stored("the request")
    def request(self) -> Mapping[str, Any]:
        """The request of the run."""
        return mapping_of(cast("Any", self.status.input)["args"][0], "kind", "messages")

    @stored("the outcome")
    def outcome(self) -> Mapping[str, Any]:
        """The outcome of the run."""
        return mapping_of(with_texts(self.id, self.status.output or {}))

    @stored("the outcome")
    def message(self) -> AIMessage:
        """The run message of the finished run."""
        return reply_of(self.outcome["message"])

    @stored("the attributes")
    def noted(self) -> Mapping[str, Any]:
        """The attributes of the run."""
        noted = checked(mapping_of(self.status.attributes or {}, _CONVERSATION), **_ATTRIBUTES)
        left, labels = noted.get(LEFT, "failed"), noted.get(LABELS, {}).values()
        if left not in ("failed", "calls_pending") or not all(isinstance(one, str) for one in labels):
            raise TypeError("attributes of other values")
        return noted

    @property
    def key(self) -> Any:
        """The key under which the run was added."""
        return self.noted.get(_KEY)

    @stored("the decisions")
    def decided(self) -> Mapping[str, Any]:
        """The calls that the run decides about, and the decisions."""
        return mapping_of(json.loads(self.noted.get(_DECIDED, "{}")))

    @property
    def steers(self) -> bool:
        """Whether the run before it may take its message."""
        return bool(self.noted.get(STEERS))

    @property
    def taken_by(self) -> str | None:
        """The id of the earlier run that has taken the message of this run, once this one has ended; None if none has."""
        return cast("str | None", self.noted.get(TAKEN)) if self.has_ended else None

    def joins(self, request: Mapping[str, Any]) -> bool:
        """Whether a run with this request takes the message: what this one was sent with holds for it there, too, and it can be read."""
        with suppress(RunFailedError), reading(f"the request of run {self.id!r}"):
            is_open = self.steers and not self.has_ended and not self.noted.get(CANCELLED)
            same = is_open and _terms(request_of_run(self.request)) == _terms(request)
            return same and all(type(message) is HumanMessage for message in self._added)
        return False

    @property
    def conversation(self) -> str:
        """The conversation of the run."""
        return str(self.noted[_CONVERSATION])

    @property
    def begun(self) -> datetime:
        """The time at which the run was added."""
        return datetime.fromtimestamp((self.status.created_at or 0) / 1000, UTC)

    @property
    def ended(self) -> datetime | None:
        """The time at which the run ended; None while it continues."""
        ended = self.status.completed_at
        return datetime.fromtimestamp(ended / 1000, UTC) if ended and self.has_ended else None

    @property
    def waits(self) -> bool:
        """Whether the run has not begun."""
        return self.status.status in ("ENQUEUED", "DELAYED")

    @property
    def goes_on(self) -> bool:
        """Whether a worker executes the run, or did when it died."""
        return bool(self.status.status == "PENDING")

    @property
    def error(self) -> str | None:
        """The error of the run; None if it has not failed."""
        if not self.has_ended or self.status.status == "SUCCESS":
            error = self.outcome.get("error")
            return None if error is None else str(error)
        return ENDED_FROM_OUTSIDE

    def raise_failed(self) -> None:
        """Raise the run's error, with the messages that it had completed."""
        if self.error is not None:
            failed = RunFailedError(self.error)
            attach_messages(failed, self.made())
            raise failed

    def added(self) -> list[BaseMessage]:
        """The messages that the run was begun with; none if an earlier run has taken them."""
        return [copy_of(message) for message in self._added]

    def made(self) -> list[BaseMessage]:
        """The messages of the finished run."""
        return [copy_of(message) for message in self._made]

    def made_so_far(self) -> list[BaseMessage]:
        """The messages of the run so far."""
        if not self.goes_on:
            return self.made()
        return [one.message for one in events_so_far(self.id) if isinstance(one, MessageDone) and one.parent_run_id is None]

    @cached_property
    def size(self) -> int:
        """The number of characters of the run's input and output as JSON."""
        return len(json.dumps([self.request, self.outcome]))

    @property
    def message_ids(self) -> list[str | None]:
        """The ids of the messages that the run has added and made so far."""
        return [one.id for one in (*self._added, *(self.made_so_far() if self.goes_on else self._made))]

    def taken(self) -> HumanMessage | None:
        """The message of the user that the run was given beside decisions; None if there is none."""
        message = self.request["keywords"].get("message")
        return None if message is None else message_of(message)

    @stored("the request")
    def _added(self) -> list[BaseMessage]:
        return [] if self.taken_by else [message_of(data) for data in self.request["messages"]]

    @stored("the outcome")
    def _made(self) -> list[BaseMessage]:
        outcome = self.outcome
        return new_messages(self.message) if "message" in outcome else [message_of(data) for data in outcome.get("messages", ())]

    def exported(self) -> dict[str, Any]:
        """Return the run's exported data, other than its messages."""
        status = "waits" if self.waits else "goes on" if self.goes_on else "ended" if self.error is None else "failed"
        taken = {} if self.taken_by is None else {"taken_by": self.taken_by}
        about = {"id": self.id, "kind": self.request["kind"], "begun": self.begun.isoformat()}
        return {**about, "status": status, "error": self.error, **taken}


def _terms(request: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what a run allows its model and tools, and for whom they act."""
    keywords = {name: value for name, value in request["keywords"].items() if name not in ("resume", "message")}
    return keywords, (request["config"] or {}).get("configurable")


def untaken(runs: Iterable[ConversationRun]) -> list[ConversationRun]:
    """Return the runs without those whose message an earlier one has taken, also where they have not ended."""
    kept: list[ConversationRun] = []
    for run in runs:
        waits = bool(kept) and run.steers and not run.has_ended
        if run.taken_by is None and not (waits and {*run.message_ids} <= {*kept[-1].message_ids}):
            kept.append(run)
    return kept


@dataclass(frozen=True)
class Sent:
    """A receipt for data sent to a conversation, with the run that answers it.

    Attributes:
        conversation: The conversation.
        run_id: The run. `RunEvent.run_id` says the same.
        position: The events behind this position are those of the run, and of what follows.
    """

    conversation: str
    run_id: str
    position: str


# ---------------------------------------------------------------------------------------------- all runs


class ConversationRuns:
    """The runs of all conversations of one name.

    Args:
        name: The name.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.first_workflow = f"langchain_autotools.Conversations first {name}"  # its name tells which conversations there are
        self.workflow = f"langchain_autotools.Conversations next {name}"
        self.workflows = [self.first_workflow, self.workflow]
        self.queue = f"langchain_autotools.Conversations {name}"

    def current(self, conversation: str) -> Incarnation:
        """Return the current incarnation of a conversation, or the one that the next run will begin."""
        return Incarnation(self.name, conversation).current()

    def of(self, conversation: str | Incarnation, *, whole: bool = False) -> list[ConversationRun]:
        """Return the runs of a conversation, in order; with input and output if `whole`.

        They are looked up by their exact ids: what a database takes for a prefix may belong to another conversation, and finding it may
        mean to read the rows of all of them. Numbers have no gaps, so the first one that is missing is the end.
        """
        where = self.current(conversation) if isinstance(conversation, str) else conversation
        size, numbers = _FIRST_LOOK, count(1)
        kept = iter(lambda: engine.ended_runs.get(where.run_id(next(numbers))), None)
        runs: list[ConversationRun] = [*kept] if whole else []
        while True:
            found = self.numbered(where, range(len(runs) + 1, len(runs) + 1 + size), load_input=whole, load_output=whole)
            runs += found.values()
            if len(found) < size:
                return runs
            size = min(2 * size, _MOST_LOOKED_UP)

    def before(self, conversation: str, run_id: str) -> list[BaseMessage]:
        """Return the messages of all runs before a run, waiting for one that another worker has not finished."""
        own, number = Incarnation(self.name, conversation).of_run(run_id), int(run_id.rpartition("/")[2])
        known = engine.transcripts.get(own.prefix)
        if known is None or known.runs >= number:
            known = Transcript()
        runs = self._ended(own, known.runs + 1, number)
        stored = [*known.stored, *(message for run in runs for message in (*run._added, *run._made))]
        given = known.again(stored)
        if all(run.is_final for run in runs):
            transcript = Transcript(number - 1, known.size + sum(run.size for run in runs), stored, given)
            engine.transcripts.put(own.prefix, transcript, transcript.size)
        return [*given]

    def steering(self, request: Mapping[str, Any], execution: Execution) -> Callable[[int], list[Any]]:
        """Return the function that returns the messages that steer a run, behind so many that it has taken, as plain JSON."""
        own = Incarnation(self.name, request["conversation"]).of_run(execution.run_id)
        behind = int(execution.run_id.rpartition("/")[2]) + 1

        def messages(taken: int) -> list[Any]:
            execution.await_run(own.run_id(behind + taken))
            return [message for run in self._joining(own, behind + taken, request) for message in run.request["messages"]]

        return messages

    def _joining(self, where: Incarnation, number: int, request: Mapping[str, Any]) -> Iterator[ConversationRun]:
        """Yield the runs from a number on that join a run with this request, up to one that does not."""
        while found := self.numbered(where, range(number, number + _FEW)):
            for run in found.values():
                if not run.joins(request):
                    return
                yield run
            number += _FEW

    def end_taken(self, conversation: str, run_id: str) -> dict[str, Any]:
        """Note which run has taken the message of a run, and that the conversation is left as that one has left it; return the outcome."""
        own, number = Incarnation(self.name, conversation).of_run(run_id), int(run_id.rpartition("/")[2]) - 1
        before = self.numbered(own, [number], load_input=False)[number]
        left = {name: value for name, value in before.noted.items() if name == LEFT}
        self.note(run_id, {TAKEN: before.taken_by or before.id, **left})
        return {"messages": []}

    def given(self, conversation: str, run_id: str, messages: Sequence[BaseMessage]) -> None:
        """Keep the messages of a run's last request, with which the next run of the conversation begins."""
        own = Incarnation(self.name, conversation).of_run(run_id)
        known = engine.transcripts.get(own.prefix)
        if known is not None and own.run_id(known.runs + 1) == run_id:
            engine.transcripts.put(own.prefix, replace(known, given=[*messages]), known.size)

    def _ended(self, where: Incarnation, start: int, end: int) -> list[ConversationRun]:
        """Return the runs from a number up to another one, with input and output, when all of them have ended."""
        limit = ReaderTimeout(None)
        while True:
            pages = [range(first, min(end, first + _MOST_LOOKED_UP)) for first in range(start, end, _MOST_LOOKED_UP)]
            runs = [run for page in pages for run in self.numbered(where, page, load_output=True).values()]
            if all(run.has_ended for run in runs):
                return runs
            time.sleep(limit.pause())

    def ends(self, where: Incarnation) -> list[ConversationRun]:
        """Return the first and the last run of a conversation, in no more statements for a long one: the first says where to look.

        They are the same run if there is one, and none if there is none.
        """
        found = self.numbered(where, range(1, _FEW + 1), load_input=False)
        if 1 not in found:
            return []
        first, last = found[1], found[max(found)]
        known = int(first.noted.get(LAST, 1))
        while len(found) == _FEW:
            start = max(last.number + 1, known)
            next_ones = self.numbered(where, range(start, start + _FEW), load_input=False)
            if not next_ones and start == known:  # it is not ahead of what is there, unless somebody has changed it
                known = 1
                continue
            found, last = next_ones, next_ones[max(next_ones)] if next_ones else last
        return [first, last]

    def messages(self, conversation: str) -> list[BaseMessage]:
        """Return the messages of a conversation, in order, also of a run that goes on."""
        runs = untaken(self.of(conversation, whole=True))
        return [message for run in runs for message in (*run.added(), *run.made_so_far())]

    def one(self, run_id: str) -> ConversationRun | None:
        """Return a run with input and output; None if it does not exist."""
        found = outside(DBOS.list_workflows, workflow_ids=[run_id])
        return ConversationRun(found[0]) if found else None

    def numbered(
        self, where: Incarnation, numbers: Iterable[int], *, load_input: bool = True, load_output: bool = False
    ) -> dict[int, ConversationRun]:
        """Return the existing ones of these runs, by their numbers. Whole ones that have ended well are read from the database once."""
        whole, kept = load_input and load_output, engine.ended_runs
        ids = [where.run_id(number) for number in numbers]
        runs: dict[str, ConversationRun] = {key: run for key in ids if (run := kept.get(key)) is not None} if whole else {}
        asked = [key for key in ids if key not in runs]
        found = outside(DBOS.list_workflows, workflow_ids=asked, load_input=load_input, load_output=load_output) if asked else []
        for run in map(ConversationRun, found):
            if run.status.name in self.workflows:
                runs[run.id] = run
                if whole and run.is_final:
                    kept.put(run.id, run, run.size)
        return {run.number: run for run in sorted(runs.values(), key=lambda run: run.number)}

    def found(self, **where: Any) -> list[ConversationRun]:
        """Return the runs that DBOS finds, oldest first, without input and output."""
        return [ConversationRun(status) for status in outside(DBOS.list_workflows, **where, load_input=False, load_output=False)]

    def by_id(self, ids: Iterable[str]) -> list[ConversationRun]:
        """Return the existing ones of these runs, without input and output."""
        asked = list(ids)
        pages = [asked[start : start + _MOST_LOOKED_UP] for start in range(0, len(asked), _MOST_LOOKED_UP)]
        return [run for page in pages for run in self.found(workflow_ids=page) if run.status.name in self.workflows]

    def note(self, run_id: str, noted: Mapping[str, Any]) -> None:
        """Set attributes of a run, if there are any."""
        if noted:
            outside(DBOS.update_workflow_attributes, run_id, noted, merge=True)

    def add(self, where: Incarnation, number: int, request: Mapping[str, Any], key: str, **attributes: Any) -> bool:
        """Add a run under a number; return whether it exists with the same key, by anyone, in a current conversation."""
        noted = {_KEY: key, _CONVERSATION: where.conversation, **attributes}
        options: Any = {
            "workflow_name": self.first_workflow if number == 1 else self.workflow,
            "queue_name": self.queue,
            "workflow_id": where.run_id(number),
            "app_version": VERSION,
            "priority": number,
            "queue_partition_key": where.prefix,
            "attributes": noted,
            **({"authenticated_user": noted[OWNER]} if OWNER in noted else {}),
        }
        try:
            outside(DBOS.enqueue_workflow_with_options, options, request)
        except dbos_error.DBOSConflictingWorkflowError as error:
            raise ConfigurationError(f"another workflow has the id of a run of a conversation: {error}") from None
        found = {run.id: run for run in self.found(workflow_ids=[where.run_id(number), where.mark])}
        there, is_over = found.get(where.run_id(number)), where.mark in found
        if there is None or there.key != key:
            return False
        followed_runs().look_soon()
        if STEERS in attributes and engine.executions is not None:
            engine.executions.tell(where.run_id(number))
        if is_over:  # it was deleted meanwhile, perhaps before this run could be seen
            self.end([there])
            self.delete([there])
        return not is_over

    def end(self, runs: Sequence[ConversationRun]) -> None:
        """End runs from outside: they are not begun, and not recovered."""
        if runs:
            outside(DBOS.cancel_workflows, [run.id for run in runs])

    def delete(self, runs: Sequence[ConversationRun]) -> None:
        """Delete runs with all their data, the last ones first, so that the remaining ones have no gap."""
        engine.ended_runs.forget(run.id for run in runs)
        engine.transcripts.forget({run.id.rpartition("/")[0] for run in runs})
        for end in range(len(runs), 0, -_LARGEST):
            outside(DBOS.delete_workflows, [run.id for run in runs[max(0, end - _LARGEST) : end]])

    def health(self, stalled_after: float) -> "Health":
        """See `Conversations.health`."""
        now = time.time()
        found = self.found(queue_name=self.queue, status=_OPEN)
        waiting, running = [run for run in found if run.waits], [run for run in found if run.goes_on]
        oldest = min(_since(self, found), default=now)
        stalled = tuple(run.id for run in running if _progress(run, now - stalled_after) < now - stalled_after)
        return Health(len(waiting), len(running), max(0.0, now - oldest), stalled)


# ---------------------------------------------------------------------------------------------- their health


@dataclass(frozen=True)
class Health:
    """The health of the runs of all conversations of one name, in all processes.

    Attributes:
        queued: Number of runs that wait, for a worker or for the run before them in their conversation.
        running: Number of runs that a worker executes, or executed when it died.
        oldest_waiting: For how many seconds the run has waited that has waited longest for a worker; 0.0 where none does. A run that
            waits for another one of its conversation waits for no worker.
        stalled: The ids of the running ones that have recorded nothing for long.
    """

    queued: int
    running: int
    oldest_waiting: float
    stalled: tuple[str, ...]


def _since(runs: ConversationRuns, found: Iterable[ConversationRun]) -> list[float]:
    """Return the times since which runs have waited for a worker: since sending, or since the end of the run before."""
    next_ones: dict[str, ConversationRun] = {}
    for run in sorted(found, key=lambda run: run.number, reverse=True):
        next_ones[run.conversation] = run
    ready = {run.beside(run.number - 1): run for run in next_ones.values() if run.waits}
    since = {key: run.begun for key, run in ready.items()}
    for before in runs.by_id(ready):
        since[before.id] = max(since[before.id], before.ended or before.begun)
    return [when.timestamp() for when in since.values()]


def _progress(run: ConversationRun, enough: float) -> float:
    """Return the time of a run's last record; any time not before `enough` if that is recent enough."""
    begun = (run.status.dequeued_at or run.status.updated_at or 0) / 1000
    if begun >= enough:
        return begun
    steps = outside(DBOS.list_workflow_steps, run.id, load_output=False)
    return max([begun, *((step["completed_at_epoch_ms"] or 0) / 1000 for step in steps)])


# ---------------------------------------------------------------------------------------------- conversation requests
#
# Requests of runs of conversations: what each is asked to answer, append, decide or repeat.


def request_of(
    kind: str, messages: Sequence[BaseMessage], config: RunnableConfig | None = None, keywords: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the request of a run as plain JSON."""
    body = {"messages": plain_messages(messages), "config": plain_config(config), "keywords": plain_keywords(keywords or {})}
    return {"kind": kind, **body}


def request_of_appended(
    runs: Sequence[ConversationRun], messages: Sequence[BaseMessage]
) -> ConversationRun | tuple[dict[str, Any], dict[str, Any]]:
    """Return the request of a run that appends the messages that the conversation lacks; the last one's run if it has all."""
    there, new = _runs_by_message(runs), dict[str | None, BaseMessage]()
    for one in messages:
        if one.id not in there:
            new.setdefault(one.id, one)
    return (request_of(APPEND, list(new.values())), {}) if new else there[messages[-1].id]


def request_of_sent(
    runs: Sequence[ConversationRun], message: BaseMessage | None, request: dict[str, Any], *, steers: bool = False
) -> "NewRun":
    """Return the request of a run that answers a message, which it includes unless that is already the last one.

    Args:
        runs: The runs of the conversation.
        message: The message; None where its id was made just now.
        request: The request of the run.
        steers: Whether the run before it may take the message, if that goes on.

    Raises:
        ConfigurationError: The conversation has a message with this id elsewhere.
    """
    run = None if message is None else _runs_by_message(runs).get(message.id)
    if message is None or run is None:
        return request, {STEERS: True} if steers and runs and not runs[-1].has_ended else {}
    if run is runs[-1] and run.request["kind"] == APPEND and run.added()[-1].id == message.id:
        return {**request, "messages": []}, {}
    raise ConfigurationError(f"the conversation has a message {message.id!r} already, and others behind it: send one with an id of its own")


def _runs_by_message(runs: Sequence[ConversationRun]) -> dict[str | None, ConversationRun]:
    """Return the runs by the ids of the messages that they added."""
    return {message_id: run for run in runs for message_id in run.message_ids}


# ---------------------------------------------------------------------------------------------- what is decided


def _call_key(one: PendingCall | Decision) -> str:
    """Return the digest of a call as it was shown."""
    return f"{one.id} {one.digest}"


def undecided_calls(runs: Sequence[ConversationRun]) -> list[PendingCall]:
    """Return the undecided calls at the end of a conversation."""
    decided = {name for run in runs if not run.has_ended for name in run.decided}
    return [call for call in pending_calls(_ended_history(runs)) if _call_key(call) not in decided]


def _ended_history(runs: Sequence[ConversationRun]) -> list[BaseMessage]:
    """Return the messages of a conversation up to decisions that runs are going on with; empty where another run is going on."""
    runs = untaken(runs)
    if any(not run.has_ended and run.request["kind"] != DECIDE for run in runs):
        return []
    return [message for run in runs if run.has_ended for message in (*run.added(), *run.made())]


NewRun = tuple[dict[str, Any], dict[str, Any]]
"""The request of a run, and its attributes."""


def request_of_decisions(
    runs: Sequence[ConversationRun],
    given: Sequence[Decision],
    config: RunnableConfig | None,
    check: Callable[[Sequence[BaseMessage], dict[str, Any]], None],
    message: HumanMessage | None = None,
) -> ConversationRun | NewRun:
    """Return request and attributes of a run that continues with decisions; the run that has followed them if none is new.

    It has the keywords of the run that left the calls, and its configuration unless one is given: what that one was not allowed to do, it
    is not either, and its tools act for the same user.

    Args:
        runs: The runs of the conversation.
        given: The decisions.
        config: The configuration that was given.
        check: Raises where a run over a history with these keywords cannot carry out its decisions.
        message: The message of the user behind the results of the calls; None if there is none.

    Raises:
        DecisionsError: As `decide` does.
    """
    last = next((run for run in reversed(untaken(runs)) if run.request["kind"] != APPEND), None)
    before = {"config": None, "keywords": {}} if last is None else last.request
    keywords = {name: value for name, value in before["keywords"].items() if name != "message"}
    with Refusals() as refusals:
        new = _new_decisions(runs, given, refusals)
        if isinstance(new, list) and new:
            with refusals.collected():
                check(_ended_history(runs), {**keywords, "resume": new})
    if isinstance(new, ConversationRun):
        if message is not None and message.content != getattr(new.taken(), "content", None):
            raise ConfigurationError("all of this was decided before, without this message: send it")
        return new
    if message is not None and message.id in _runs_by_message(runs):
        raise ConfigurationError(f"the conversation has a message {message.id!r} already: give one with an id of its own")
    keywords |= {"resume": new} if message is None else {"resume": new, "message": message}
    request = request_of(DECIDE, [], before["config"] if config is None else config, keywords)
    return request, {_DECIDED: json.dumps({_call_key(one): one.to_dict() for one in new})}


def _new_decisions(runs: Sequence[ConversationRun], given: Sequence[Decision], refusals: Refusals) -> ConversationRun | list[Decision]:
    """Return the new ones of the decisions; if there is none, the run that has followed them.

    Args:
        runs: The runs of the conversation.
        given: The decisions.
        refusals: Collects the errors of those about calls that do not wait.
    """
    open_calls = {_call_key(call): call for call in undecided_calls(runs)}
    made = {name: (run, decision) for run in runs for name, decision in run.decided.items()}
    new, followed = [], None
    for one in given:
        run, before = made.get(_call_key(one), (None, None))
        if _call_key(one) in open_calls and open_calls[_call_key(one)].uuid == one.uuid:
            new.append(one)
        elif before == one.to_dict():
            followed = run
        elif run is not None:
            refusals.append(
                refusal(one.uuid, one.id, f"call {one.id!r} was decided otherwise before", "This call was decided otherwise before.")
            )
        else:
            text = f"call {one.id!r} does not wait for a decision, or is another call than was shown"
            refusals.append(refusal(one.uuid, one.id, text, "This call does not wait, or is another one than was shown."))
    return new if new or followed is None else followed


# ---------------------------------------------------------------------------------------------- what is tried again


def request_of_retry(runs: Sequence[ConversationRun], failed: ConversationRun) -> NewRun:
    """Return the request of a run that repeats the unfinished part of a failed one.

    What that one had completed is in the history: this one adds no message, and goes on from there.

    Raises:
        ConfigurationError: It has not failed, it is not the last one, or it has left calls that wait for decisions.
    """
    if failed.error is None:
        raise ConfigurationError(f"run {failed.id!r} has not failed: there is nothing to try again")
    if untaken(runs)[-1].id != failed.id:
        raise ConfigurationError(f"run {failed.id!r} is not the last one of its conversation: others went on from what it had come to")
    if undecided_calls(runs):
        raise ConfigurationError(
            f"run {failed.id!r} has left calls that wait, and what it did of them is not known: decide about them again"
        )
    keywords = {name: value for name, value in failed.request["keywords"].items() if name not in ("resume", "message")}
    message = failed.taken()
    again = [] if message is None or message.id in failed.message_ids else [message]  # it had failed before it sent this one
    return request_of(SEND, again, failed.request["config"], keywords), {}
