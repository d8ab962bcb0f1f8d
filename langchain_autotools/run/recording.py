"""The interface of a journal that records a run for a later process: its turns, the results of its calls, its clock.

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
    """The journal of one run."""

    layer: ClassVar[str] = "journal"

    def wrap_turn(self, request: TurnRequest, proceed: Proceed) -> Iterator[TurnPart]:
        """Yield the parts of a turn and record their sum, or yield the recorded message.

        Args:
            request: The request. Its `end` tells what has cut the turn; a turn that stands in the journal as cut is cut again.
            proceed: Makes the turn.
        """
        raise NotImplementedError

    def awrap_turn(self, request: TurnRequest, proceed: AsyncProceed) -> AsyncIterator[TurnPart]:
        """Raise, because turns of an asynchronous run cannot be recorded.

        Raises:
            ConfigurationError: Always.
        """
        raise ConfigurationError("a journal is for invoke and stream: an asynchronous run has none")

    def entries(self, count: int) -> Sequence[CallWrapper]:
        """Return the wrappers that record the outcomes (a result, or `LEFT`) of this number of calls, in call order.

        It is called before any of the calls begins, in the thread of the run.
        """
        raise NotImplementedError

    def uuid(self, message_id: str, call_id: str) -> str:
        """Return a UUID for a waiting call, the same in every process that continues the run."""
        raise NotImplementedError

    def now(self) -> float:
        """Return the seconds since the run first began; during replay those at which the replayed entry was written."""
        raise NotImplementedError

    def left(self, seconds: float | None) -> float | None:
        """Return the rest of a run's time limit; negative after its end."""
        raise NotImplementedError

    def is_cancelled(self) -> bool:
        """Whether the run has been cancelled; never during replay."""
        raise NotImplementedError
