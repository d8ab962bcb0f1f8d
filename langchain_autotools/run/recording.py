"""What remembers a run for a later process: its turns, the results of its calls, its clock.

A run that is given a journal (the keyword `journal`) does what it always does; where it would make a request or run a
tool it asks the journal,
which has the answer from an earlier process or lets it be made. Nothing here says how a journal keeps what it is told.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

from langchain_core.messages import AIMessage

from ..cancelling import Cancel
from ..executor.steps import CallWrapper


class RunJournal(Protocol):
    """Remembers one run."""

    def turn(self, parts: Iterator[AIMessage], cancel: Cancel) -> Iterator[AIMessage]:
        """The parts of a turn: those given, whose sum will stand in the journal, or the message that stands there.

        Args:
            parts: Makes the request once its first part is asked for, and ends where the run's time does.
            cancel: Tells what has ended it so; a turn that stands in the journal as ended so ends it again.
        """

    def entries(self, count: int) -> Sequence[CallWrapper]:
        """The wrappers that record the outcomes of so many calls, in call order: a result, or `LEFT`. Asked for before any of them begins,
        in the thread of the run."""

    def uuid(self, message_id: str, call_id: str) -> str:
        """A UUID for a call that waits: the same whenever the run goes on, so that what was shown can be decided about."""

    def now(self) -> float:
        """Seconds since the run began for the first time; while the journal is read, those at which what was read was written."""

    def left(self, seconds: float | None) -> float | None:
        """How much is left of the seconds that a run may take; negative where they are over."""

    def is_cancelled(self) -> bool:
        """Whether somebody has cancelled the run; never while the journal is read."""
