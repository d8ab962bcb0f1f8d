"""The retry strategies of a request or call: tenacity's objects, or functions with the same signatures.

tenacity takes 13 ms to import. It is imported at the first failure, or comes with an object of it that a caller gives.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import ConfigurationError

if TYPE_CHECKING:
    from tenacity import RetryCallState


@dataclass(frozen=True, kw_only=True)
class Strategies:
    """The strategies of one request or call. Each takes tenacity's `RetryCallState`, and may be asynchronous.

    Attributes:
        retry: Returns whether the error permits another attempt; None: it does.
        wait: Returns the seconds to wait before the next attempt.
        waits_as_demanded: Whether a wait that a server demands takes the place of `wait`; else the longer of the two counts.
        stops: Each returns whether there is no further attempt.
        before_sleep: Called before the wait; None for nothing.
        retry_after_max: Longest wait in seconds that a server may demand.
        wait_scale: Multiplies the wait that a server demands.
    """

    retry: Callable[[Any], Any] | None
    wait: Callable[[Any], Any]
    waits_as_demanded: bool
    stops: Sequence[Callable[[Any], Any]]
    before_sleep: Callable[[Any], Any] | None
    retry_after_max: float
    wait_scale: float


class Retry(Protocol):
    """The interface of retry settings."""

    @property
    def functions(self) -> Mapping[str, Any]:
        """The caller's functions, by the names of their arguments."""

    def strategies(self) -> Strategies:
        """Return the strategies for these settings."""


def call_state(name: str, started: float | None = None) -> "RetryCallState":
    """Return tenacity's state object of a request or call.

    Args:
        name: The name of the retried operation, as `tenacity.before_sleep_log` shows it.
        started: When the first attempt began, by `time.monotonic`.
    """
    import tenacity

    state = tenacity.RetryCallState(tenacity.Retrying(reraise=True), _named(name), (), {})
    if started is not None:
        state.start_time = started
    return state


def _named(name: str) -> Callable[[], None]:
    """Return a function with this name: tenacity's hooks show the function's name, and its repr could contain secrets."""

    def request() -> None: ...

    request.__module__, request.__name__, request.__qualname__ = "", name, name
    return request


def demanded_wait(error: BaseException | None) -> float | None:
    """Return the server's requested wait in seconds from an error; None if there is none."""
    seconds = getattr(error, "retry_after", None)
    return seconds if isinstance(seconds, int | float) else None


def check_synchronous(retry: Retry) -> None:
    """Raise if the settings have asynchronous functions, which a synchronous run cannot await.

    Raises:
        ConfigurationError: There is one.
    """
    for name, function in retry.functions.items():
        if is_asynchronous(function):
            raise asynchronous_error(name)


def asynchronous_error(name: str) -> ConfigurationError:
    """Return the error for an asynchronous function in a synchronous run.

    Args:
        name: The argument that it was given as.
    """
    return ConfigurationError(
        f"{name} of retry= is asynchronous, and this run is not: give a function, or use ainvoke, astream or aexecute_all"
    )


def is_asynchronous(function: Any) -> bool:
    """Whether a function, or a callable object, returns a coroutine."""
    while isinstance(function, partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004
