"""Incarnations of conversations: one that was deleted begins anew under its id, and nothing of before is taken for something of now.

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
    """Does nothing: its workflow is there to be found."""
    return mark


_end: Any = DBOS.workflow(name=_ENDED)(_ended)


@dataclass(frozen=True)
class Incarnation:
    """A conversation from its first run until it is deleted.

    Attributes:
        name: The name of the conversations.
        conversation: The id of the conversation.
        number: How many it is, from 1 on.
    """

    name: str
    conversation: str
    number: int = 1

    @property
    def prefix(self) -> str:
        """What stands before the numbers in the ids of its runs."""
        return self._first if self.number == 1 else f"{self._first}/{self.number}"

    @property
    def _first(self) -> str:
        return f"conversations/{quote(self.name, safe='')}/{quote(self.conversation, safe='')}"

    @property
    def _mark(self) -> str:
        """The id of the row that says that it has ended, which does not tell the conversation's own."""
        return f"deleted conversations/{hashlib.sha256(self._first.encode()).hexdigest()}/{self.number}"

    def run_id(self, number: int) -> str:
        """The id of one of its runs."""
        return f"{self.prefix}/{number}"

    def position(self, run: int, event: int) -> str:
        """The position of an event of one of its runs."""
        return f"{run}-{event}" if self.number == 1 else f"{self.number}.{run}-{event}"

    def of_run(self, run_id: str) -> "Incarnation":
        """The incarnation of the same conversation that a run belongs to."""
        number, _, run = run_id.removeprefix(f"{self._first}/").partition("/")
        return replace(self, number=int(number) if run else 1)

    def before(self) -> "Incarnation":
        """The one before; itself where there is none."""
        return replace(self, number=max(1, self.number - 1))

    def current(self) -> "Incarnation":
        """The one that has not ended, from this one on."""
        later = [replace(self, number=self.number + number) for number in range(_LOOKED_UP)]
        ended = _there(later)
        following = replace(self, number=self.number + ended)
        return following if ended < _LOOKED_UP else following.current()

    def is_over(self) -> bool:
        """Whether it has ended."""
        return bool(_there([self]))

    def end(self) -> None:
        """Have it end, in all processes: what is added from now on belongs to the next one."""
        outside(self._note_end)

    def _note_end(self) -> None:
        with SetWorkflowID(self._mark):
            DBOS.start_workflow(_end, self._mark)


def _there(incarnations: list[Incarnation]) -> int:
    """How many of the incarnations have ended."""
    marks = [one._mark for one in incarnations]
    return len(outside(DBOS.list_workflows, workflow_ids=marks, load_input=False, load_output=False))
