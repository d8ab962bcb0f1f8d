"""The stored runs of conversations: each is a workflow, numbered within its conversation.

A conversation has no row of its own: it is its runs, 1, 2, 3 and so on. Whoever adds one takes the next number; the database lets each
number be taken once. All wait in one queue, where each conversation is a partition that has one run at a time, and the lowest number first.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from dbos import DBOS
from dbos import error as dbos_error
from langchain_core.messages import BaseMessage

from ..errors import ConfigurationError
from .conversation_run import CONVERSATION, KEY, LAST, OWNER, ConversationRun
from .engine import VERSION, engine, outside
from .followed_runs import followed_runs
from .incarnations import Incarnation
from .leases import CANCELLED
from .patience import Patience
from .transcripts import Transcript

_LARGEST = 100  # how many runs are deleted at a time
_FIRST_LOOK = 16  # how many runs of a conversation the first look-up asks for; each further one asks for twice as many
_MOST_LOOKED_UP = 1024  # how many it asks for at the most
_FEW = 4  # how many runs the search for the last one asks for at a time


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


def sent_to(where: Incarnation, number: int) -> Sent:
    """Return the receipt for the conversation's run with this number."""
    return Sent(where.conversation, where.run_id(number), where.position(number, 0))


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
        size, where = _FIRST_LOOK, self._incarnation(conversation)
        runs = list(self._kept(where)) if whole else []
        while True:
            found = self.numbered(where, range(len(runs) + 1, len(runs) + 1 + size), load_input=whole, load_output=whole)
            runs += [found[number] for number in sorted(found)]
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
        stored = [*known.stored, *(message for run in runs for message in run.messages)]
        given = known.again(stored)
        if all(run.is_final for run in runs):
            transcript = Transcript(number - 1, known.size + sum(run.size for run in runs), stored, given)
            engine.transcripts.put(own.prefix, transcript, transcript.size)
        return [*given]

    def given(self, conversation: str, run_id: str, messages: Sequence[BaseMessage]) -> None:
        """Keep the messages of a run's last request, with which the next run of the conversation begins."""
        own = Incarnation(self.name, conversation).of_run(run_id)
        known = engine.transcripts.get(own.prefix)
        if known is not None and own.run_id(known.runs + 1) == run_id:
            engine.transcripts.put(own.prefix, replace(known, given=[*messages]), known.size)

    def _ended(self, where: Incarnation, start: int, end: int) -> list[ConversationRun]:
        """Return the runs from a number up to another one, with input and output, when all of them have ended."""
        patience = Patience(None)
        while True:
            runs = [run for first in range(start, end, _MOST_LOOKED_UP) for run in self._whole(where, first, end)]
            if all(run.has_ended for run in runs):
                return runs
            time.sleep(patience.pause())

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

    def one(self, run_id: str) -> ConversationRun | None:
        """Return a run with input and output; None if it does not exist."""
        found = outside(DBOS.list_workflows, workflow_ids=[run_id])
        return ConversationRun(found[0]) if found else None

    def numbered(
        self, conversation: str | Incarnation, numbers: Iterable[int], *, load_input: bool = True, load_output: bool = False
    ) -> dict[int, ConversationRun]:
        """Return the existing ones of these runs, by their numbers. Whole ones that have ended well are read from the database once."""
        where = self._incarnation(conversation)
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
        return {run.number: run for run in runs.values()}

    def _whole(self, where: Incarnation, start: int, end: int) -> list[ConversationRun]:
        """Return the runs from a number up to another one, no more than are looked up at a time, with input and output."""
        found = self.numbered(where, range(start, min(end, start + _MOST_LOOKED_UP)), load_output=True)
        return [found[number] for number in sorted(found)]

    def _kept(self, where: Incarnation) -> Iterator[ConversationRun]:
        """Yield the runs from the first one on as far as they are in memory."""
        for number in count(1):
            run = engine.ended_runs.get(where.run_id(number))
            if run is None:
                return
            yield run

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

    def _incarnation(self, conversation: str | Incarnation) -> Incarnation:
        return self.current(conversation) if isinstance(conversation, str) else conversation

    def add(self, where: Incarnation, number: int, request: Mapping[str, Any], key: str, **attributes: Any) -> bool:
        """Add a run under a number; return whether it exists with the same key, by anyone, in a current conversation."""
        noted = {KEY: key, CONVERSATION: where.conversation, **attributes}
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
        there, is_over = self._added_to(where, number)
        if there is None or there.key != key:
            return False
        followed_runs().look_soon()
        if is_over:  # it was deleted meanwhile, perhaps before this run could be seen
            self.end([there])
            self.delete([there])
        return not is_over

    def _added_to(self, where: Incarnation, number: int) -> tuple[ConversationRun | None, bool]:
        """Return the run with this number, without input and output, and whether its conversation was deleted."""
        found = {run.id: run for run in self.found(workflow_ids=[where.run_id(number), where.mark])}
        return found.get(where.run_id(number)), where.mark in found

    def cancel(self, run: ConversationRun) -> None:
        """Cancel a run, wherever it is executed."""
        flag = engine.cancelled.get(run.id)
        if flag is not None:
            flag.set()
        outside(DBOS.update_workflow_attributes, run.id, {CANCELLED: True}, merge=True)

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
