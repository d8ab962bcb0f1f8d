"""Validation of an executor's options."""

from collections.abc import Awaitable, Callable
from typing import Any

from ..errors import ConfigurationError
from ..messages.calls import ToolCallRecord
from .approval.pending import Decision, PendingCall
from .results import ToolCallResult

OnExecuting = Callable[[ToolCallRecord], Awaitable[None] | None]
OnExecuted = Callable[[ToolCallResult], Awaitable[None] | None]
OnProgress = Callable[[ToolCallRecord, Any], Awaitable[None] | None]
Approve = Callable[[PendingCall], Awaitable[Decision | None] | Decision | None]


def checked_concurrency(name: str, value: Any) -> int | None:
    """Return the maximum number of parallel calls, or None; raise if it is invalid.

    Raises:
        ConfigurationError: It is no such number.
    """
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise ConfigurationError(f"{name} must be a whole number of at least 1, or None, not {value!r}")
    return value


def checked_listener(name: str, listener: Any) -> Any:
    """Return the callback, or None; raise if it is not callable.

    Raises:
        ConfigurationError: It cannot be called.
    """
    if listener is not None and not callable(listener):
        raise ConfigurationError(f"{name} must be a function that is called, not {type(listener).__name__}")
    return listener
