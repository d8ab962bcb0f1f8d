"""Who is told what a run does, as it does it: nobody, unless somebody listens."""

from collections.abc import Callable, Sequence

from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata

from ..executor import ToolCallResult
from ..executor.observer import NOBODY, CallObserver
from ..messages.calls import ToolCallRecord
from ..messages.stop_reasons import StopReason


class RunObserver:
    """Observes one run: this one does nothing, a subclass what it is for.

    Its methods are synchronous, return nothing that the run waits for, and raise nothing but `NobodyListens`, which says that the reader
    has left.

    Attributes:
        listens: Whether it does anything.
        due: Whether a reader waits for the next chunk to be handed over.
    """

    listens: bool = False
    due: bool = False

    def begin(self, run_id: str, name: str) -> None:
        """The run begins."""

    def check(self) -> None:
        """Raise if the reader has left."""

    def turn_done(self, message: AIMessage) -> None:
        """A turn has ended; its message as it is stored."""

    def turn_cut(self, message: AIMessage | None) -> None:
        """A turn was ended before its reply was whole; what is kept of it."""

    def calls_begin(self, message: AIMessage, calls: Sequence[ToolCallRecord]) -> None:
        """These calls of a message are about to be answered."""

    def watch(self) -> CallObserver:
        """What observes the calls of one turn."""
        return NOBODY

    def result_done(self, result: ToolCallResult) -> None:
        """A result is handed out."""

    def pending(self, message: AIMessage, calls: Sequence[ToolCallRecord]) -> None:
        """The run is about to end with these calls of a message."""

    def ended(self, reason: StopReason, turns: int, usage: UsageMetadata | None, message: Callable[[], AIMessage]) -> None:
        """The run has ended; `message` makes the run message."""

    def stopped(self, error: BaseException) -> None:
        """Something was raised that ended the run."""

    def leave(self) -> None:
        """The run was left before its end."""


UNOBSERVED = RunObserver()
"""Observes nothing: stands where nobody listens."""
