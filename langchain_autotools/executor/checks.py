"""What the options of an executor may be."""

import math
from collections.abc import Awaitable, Callable, Sequence
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
    """The number of calls that may run at the same time, or None.

    Raises:
        ConfigurationError: It is no such number.
    """
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise ConfigurationError(f"{name} must be a whole number of at least 1, or None, not {value!r}")
    return value


def checked_seconds(name: str, value: Any) -> float | None:
    """The seconds, or None.

    Raises:
        ConfigurationError: It is no time.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ConfigurationError(f"{name} must be a positive number of seconds, or None, not {value!r}")
    return float(value)


def checked_listener(name: str, listener: Any) -> Any:
    """The listener, or None.

    Raises:
        ConfigurationError: It cannot be called.
    """
    if listener is not None and not callable(listener):
        raise ConfigurationError(f"{name} must be a function that is called, not {type(listener).__name__}")
    return listener


def listeners(name: str, own: Any, call: Any) -> Sequence[Any]:
    """The listeners that there are: the executor's own first, then that of a call.

    Raises:
        ConfigurationError: That of the call cannot be called.
    """
    if call is not None:
        checked_listener(name, call)
    return [listener for listener in (own, call) if listener is not None]
