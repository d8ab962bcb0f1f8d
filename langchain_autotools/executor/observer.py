"""The observer of a batch's calls, for events and live progress, or `NOBODY`."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ..messages.calls import ToolCallRecord
from .results import ToolCallResult


class CallObserver:
    """Observes the calls of a batch, at once and in any thread. It returns nothing and raises nothing.

    Attributes:
        listens: Whether anybody observes anything; nobody does here.
    """

    listens = False

    @property
    def due(self) -> bool:
        """Whether the observer needs control before the next result."""
        return False

    def waking(self, wake: Callable[[], None]) -> AbstractContextManager[None]:
        """Return a context in which `wake` is called, in any thread, whenever `due` may become True."""
        return nullcontext()

    def entered(self, call: ToolCallRecord) -> None:
        """Observe that a call begins, in the context in which its tools will run."""

    def progressed(self, call: ToolCallRecord, value: Any) -> None:
        """Observe a value that a tool of the call reports."""

    def answered(self, result: ToolCallResult) -> None:
        """Observe the result of a call, as it will be handed out."""


NOBODY = CallObserver()
"""An observer that does nothing."""
