"""The settings of the execution of calls, joined from the call, the executor, the model."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

from ..errors import ConfigurationError
from ..messages.calls import ToolCallRecord
from .approvals import Approvals
from .pending import Decision, PendingCall
from .policies import Policies
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


# ---------------------------------------------------------------------------------------------- settings
# Settings of the execution of calls, and the rule for joining several sources of them.
#
# Three places may: a call (its keywords), the executor, and the fields of the model that the executor was given to. What restricts holds
# together: every rule of `requires_approval`, and the smallest `max_concurrency`. Of everything else the nearest place decides: the call,
# then the executor, then the fields. (`run/settings.py` reads what no executor says: the call decides, then the fields.)


_V = TypeVar("_V")


class _Layered(Protocol):
    def over(self, other: Any) -> Self:
        """Return the settings of both sources together."""


_L = TypeVar("_L", bound=_Layered)


@dataclass(frozen=True, kw_only=True)
class ExecutionSettings:
    """The settings of the execution of calls, from one source or joined from several. None leaves a setting to the next source.

    Attributes:
        parallel: Whether the calls of one turn run side by side.
        max_concurrency: Maximum number of calls of one turn that run at the same time.
        on_executing: Called with each call just before its tool runs.
        on_executed: Called with each result as soon as there is one.
        on_progress: Called with a call and each value that its tool reports.
        policies: The policies of the tools.
        approvals: The approvals of calls.
    """

    parallel: bool | None = None
    max_concurrency: int | None = None
    on_executing: Callable[..., Any] | None = None
    on_executed: Callable[..., Any] | None = None
    on_progress: Callable[..., Any] | None = None
    policies: Policies | None = None
    approvals: Approvals | None = None

    @classmethod
    def read(
        cls,
        *,
        parallel: Any = None,
        max_concurrency: Any = None,
        on_executing: Any = None,
        on_executed: Any = None,
        on_progress: Any = None,
        policies: Any = None,
        default_policy: Any = None,
        requires_approval: Any = None,
        approve: Any = None,
        approval_key: Any = None,
        claim: Any = None,
    ) -> Self:
        """Return the settings that one place gives.

        Raises:
            ConfigurationError: One of them cannot work.
        """
        if not isinstance(parallel, bool | None):
            raise ConfigurationError(f"parallel must be True or False, not {parallel!r}")
        return cls(
            parallel=parallel,
            max_concurrency=checked_concurrency("max_concurrency", max_concurrency),
            on_executing=checked_listener("on_executing", on_executing),
            on_executed=checked_listener("on_executed", on_executed),
            on_progress=checked_listener("on_progress", on_progress),
            policies=_unless_empty(Policies.read, policies, default_policy),
            approvals=_unless_empty(Approvals.of, requires_approval, approve, approval_key, claim),
        )

    def over(self, other: "ExecutionSettings") -> "ExecutionSettings":
        """Return what holds where this place is nearer to the call than the other one."""
        return ExecutionSettings(
            parallel=nearest(self.parallel, other.parallel),
            max_concurrency=smallest(self.max_concurrency, other.max_concurrency),
            on_executing=nearest(self.on_executing, other.on_executing),
            on_executed=nearest(self.on_executed, other.on_executed),
            on_progress=nearest(self.on_progress, other.on_progress),
            policies=_layered(self.policies, other.policies),
            approvals=_layered(self.approvals, other.approvals),
        )


def nearest(near: _V | None, far: _V | None) -> _V | None:
    """Return the nearer value if it is set, else the other one."""
    return far if near is None else near


def smallest(near: int | None, far: int | None) -> int | None:
    """Return the smaller of two bounds; None where there is none."""
    return min((bound for bound in (near, far) if bound is not None), default=None)


def _unless_empty(read: Callable[..., _V], *values: Any) -> _V | None:
    return None if all(value is None for value in values) else read(*values)


def _layered(near: _L | None, far: _L | None) -> _L | None:
    """Return two values joined part by part."""
    return far if near is None else near if far is None else near.over(far)
