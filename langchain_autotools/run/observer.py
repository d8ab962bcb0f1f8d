"""The observer of a run, which does nothing without a listener."""

from collections.abc import Callable, Sequence

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata

from ..executor import ToolCallResult
from ..executor.observer import NOBODY, CallObserver
from ..messages.calls import ToolCallRecord
from ..messages.stop_reasons import StopReason


class RunObserver:
    """Observes one run. This base class does nothing.

    Its methods are synchronous, return nothing that the run waits for, and raise nothing but `NobodyListens`, which says that the reader
    has left.

    Attributes:
        listens: Whether it does anything.
        due: Whether a reader waits for the next chunk to be handed over.
    """

    listens: bool = False
    due: bool = False

    def begin(self, run_id: str, name: str) -> None:
        """Observe that the run begins."""

    def check(self) -> None:
        """Raise if the reader has left."""

    def turn_done(self, message: AIMessage) -> None:
        """Observe the end of a turn, with its stored message."""

    def turn_cut(self, message: AIMessage | None) -> None:
        """Observe the end of a cut turn, with its remaining message."""

    def calls_begin(self, message: AIMessage, calls: Sequence[ToolCallRecord]) -> None:
        """Observe that these calls of a message are about to be answered."""

    def watch(self) -> CallObserver:
        """Return the observer of one turn's calls."""
        return NOBODY

    def result_done(self, result: ToolCallResult) -> None:
        """Observe that a result's message is complete."""

    def pending(self, message: AIMessage, calls: Sequence[ToolCallRecord], opened: Sequence[ToolMessage] = ()) -> None:
        """Observe that the run is about to end with these calls of a message, and with runs that wait inside others."""

    def ended(self, reason: StopReason, turns: int, usage: UsageMetadata | None, message: Callable[[], AIMessage]) -> None:
        """Observe the end of the run; `message` returns the run message."""

    def stopped(self, error: BaseException) -> None:
        """Observe an exception that ended the run."""

    def leave(self) -> None:
        """Observe that the run was left before its end."""


UNOBSERVED = RunObserver()
"""An observer that does nothing, for runs without a listener."""
