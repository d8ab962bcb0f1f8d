"""Incarnations of conversations: a deleted conversation starts anew under its id, with its old data kept apart.

The end of an incarnation is a row of its own, which stays: the database lets it be made once, by whichever process, and the next
incarnation has the next number. Ids of runs and positions have the number; those of the first incarnation have none.
"""

import hashlib
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from dbos import DBOS, SetWorkflowID

from .engine import outside

_ENDED = "langchain_autotools deleted conversation"
_LOOKED_UP = 8  # how many ends are asked for at a time


def _ended(mark: str) -> str:
    """Do nothing: only the existence of the workflow matters."""
    return mark


_end: Any = DBOS.workflow(name=_ENDED)(_ended)


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
        outside(self._note_end)

    def _note_end(self) -> None:
        with SetWorkflowID(self.mark):
            DBOS.start_workflow(_end, self.mark)


def _there(incarnations: list[Incarnation]) -> int:
    """Return the number of ended incarnations."""
    marks = [one.mark for one in incarnations]
    return len(outside(DBOS.list_workflows, workflow_ids=marks, load_input=False, load_output=False))
