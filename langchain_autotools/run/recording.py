"""What remembers a run for a later process: its turns, the results of its calls, its clock.

A run that is given a journal (the keyword `journal`) does what it always does; where it would make a request or run a
tool it asks the journal,
which has the answer from an earlier process or lets it be made. Nothing here says how a journal keeps what it is told.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import ClassVar

from ..errors import ConfigurationError
from ..executor.steps import CallWrapper
from .turn_wrappers import AsyncProceed, Proceed, TurnPart, TurnRequest, TurnWrapper


class RunJournal(TurnWrapper):
    """Remembers one run."""

    layer: ClassVar[str] = "journal"

    def wrap_turn(self, request: TurnRequest, proceed: Proceed) -> Iterator[TurnPart]:
        """Make the parts of a turn, whose sum will stand in the journal, or return the message that stands there.

        Args:
            request: The request. Its `end` tells what has cut the turn; a turn that stands in the journal as cut is cut again.
            proceed: Makes the turn.
        """
        raise NotImplementedError

    def awrap_turn(self, request: TurnRequest, proceed: AsyncProceed) -> AsyncIterator[TurnPart]:
        """Refuse the turn of an asynchronous run.

        Raises:
            ConfigurationError: Always.
        """
        raise ConfigurationError("a journal is for invoke and stream: an asynchronous run has none")

    def entries(self, count: int) -> Sequence[CallWrapper]:
        """The wrappers that record the outcomes of so many calls, in call order: a result, or `LEFT`. Asked for before any of them begins,
        in the thread of the run."""
        raise NotImplementedError

    def uuid(self, message_id: str, call_id: str) -> str:
        """A UUID for a call that waits: the same whenever the run goes on, so that what was shown can be decided about."""
        raise NotImplementedError

    def now(self) -> float:
        """Seconds since the run began for the first time; while the journal is read, those at which what was read was written."""
        raise NotImplementedError

    def left(self, seconds: float | None) -> float | None:
        """How much is left of the seconds that a run may take; negative where they are over."""
        raise NotImplementedError

    def is_cancelled(self) -> bool:
        """Whether somebody has cancelled the run; never while the journal is read."""
        raise NotImplementedError
