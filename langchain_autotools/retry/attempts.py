"""The attempts at a request or call: which failure is followed by another one, after which wait."""

import asyncio
import email.utils
import inspect
import logging
import math
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from ..deadline import DeadlinePassed, current_deadline
from ..errors import ConfigurationError

if TYPE_CHECKING:
    from tenacity import RetryCallState


_PART = re.compile(r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,[^,]+|[^,]+")  # a date has a comma of its own, after the day of the week


def is_transient(status: int) -> bool:
    """Whether an HTTP status means that the same request may succeed later: 408, 409, 425, 429 and every 5xx."""
    return status in (408, 409, 425, 429) or status >= 500


def should_retry(headers: Mapping[str, str]) -> bool | None:
    """Return the value of the header `x-should-retry`; None if it is missing or invalid."""
    said = {part.strip() for part in headers.get("x-should-retry", "").lower().split(",")}
    return False if "false" in said else True if "true" in said else None


def retry_after(headers: Mapping[str, str], now: Callable[[], float] = time.time) -> float | None:
    """Return the server's requested wait in seconds, from `retry-after-ms`, or `retry-after` as a number or HTTP date (RFC 9110, 10.2.3).

    Args:
        headers: The reply's headers, looked up by lower-case names.
        now: The clock that dates are compared with, in seconds since 1970.

    Returns:
        A positive number, or None where nothing usable is said.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        seconds = _seconds(headers.get(name))
        if seconds is not None:
            return seconds * unit if seconds > 0 else None
    date = _timestamp(headers.get("retry-after"))
    if date is None:
        return None
    return date - now() if date > now() else None


def _seconds(text: str | None) -> float | None:
    """Return the longest of the numbers; libraries join a header that a server and a proxy both send."""
    return max((value for part in _PART.findall(text or "") if (value := _number(part)) is not None), default=None)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _timestamp(text: str | None) -> float | None:
    """Return the latest of the dates."""
    return max((value for part in _PART.findall(text or "") if (value := _date(part)) is not None), default=None)


def _date(text: str) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


# ---------------------------------------------------------------------------------------------- strategies
# The retry strategies of a request or call: tenacity's objects, or functions with the same signatures.
#
# tenacity takes 13 ms to import. It is imported at the first failure, or comes with an object of it that a caller gives.


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


# ---------------------------------------------------------------------------------------------- attempts
# The sequence of attempts at one request or call.
#
# Whether another attempt follows, and after which wait, is decided by tenacity's strategies. The loop is not tenacity's: so no frame of
# it stands in a traceback, and a wait ends where the run does.


_logger = logging.getLogger("langchain_autotools")

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Awaited:
    """An awaitable returned by an asynchronous strategy; its result is sent back to the generator.

    Attributes:
        value: The awaitable.
    """

    value: Awaitable[Any]


Decision = Generator[Awaited, Any, float | None]
"""A generator that yields awaitables and returns the seconds before the next attempt, or None to give up."""


class Attempts:
    """The sequence of attempts at one request or call.

    Args:
        retry: The settings of its retries.
        name: The name of the retried operation, for hooks.
        awaits: Whether asynchronous strategies can be awaited.

    Raises:
        ConfigurationError: They cannot, and there is one.
    """

    def __init__(self, retry: Retry, name: str = "request", *, awaits: bool = False) -> None:
        if not awaits:
            check_synchronous(retry)
        self._retry, self._name, self._awaits = retry, name, awaits
        self._started = time.monotonic()
        self._strategies: Strategies | None = None
        self._state: Any = None

    def call(self, attempt: Callable[[], _Result]) -> _Result:
        """Call `attempt` until it succeeds or no attempt is left; then raise its last error."""
        while True:
            try:
                return attempt()
            except Exception as error:
                wait = self.wait_after(error)
                if wait is None:
                    raise
            pause(wait)

    async def acall(self, attempt: Callable[[], Awaitable[_Result]]) -> _Result:
        """Like `call`, asynchronously."""
        while True:
            try:
                return await attempt()
            except Exception as error:
                wait = await self.await_after(error)
                if wait is None:
                    raise
            await asyncio.sleep(wait)

    def wait_after(self, error: Exception) -> float | None:
        """Return the seconds to wait before a failed request is retried; None if it is not.

        Args:
            error: The error of the last attempt.

        Raises:
            ConfigurationError: A strategy is asynchronous.
            DeadlinePassed: The wait is longer than the run may take, or the run is cancelled.
        """
        try:
            next(self._request_decision(error))
        except StopIteration as end:
            return cast("float | None", end.value)
        raise AssertionError("a synchronous decision awaits nothing")

    async def await_after(self, error: Exception) -> float | None:
        """Like `wait_after`; asynchronous strategies are awaited."""
        value: Any = None
        with closing(self._request_decision(error)) as decision:
            while True:
                try:
                    step = decision.send(value)
                except StopIteration as end:
                    return cast("float | None", end.value)
                value = await step.value

    def _request_decision(self, error: Exception) -> Decision:
        """Decide about a request: it is retried only after an error that marks it as retryable."""
        if not getattr(error, "is_retryable", False):
            return None
        wait = yield from self.decide(error, lambda seconds: _in_time(error, seconds))
        if wait is not None:  # the text of the error may hold content
            _logger.debug("attempt %d failed (%s): next in %.2f s", self._state.attempt_number - 1, type(error).__name__, wait)
        return wait

    def decide(self, error: Exception, may_wait: Callable[[float], bool]) -> Decision:
        """Decide whether another attempt follows an error that permits one.

        Args:
            error: The error of the last attempt.
            may_wait: Returns whether there is time for a wait of so many seconds. It is called before the hook.

        Raises:
            ConfigurationError: A strategy is asynchronous and cannot be awaited.
        """
        import tenacity

        if self._strategies is None:
            self._strategies, self._state = self._retry.strategies(), call_state(self._name, self._started)
        strategies, state = self._strategies, cast("RetryCallState", self._state)
        state.set_exception((type(error), error, error.__traceback__))
        try:
            wait = yield from self._next_wait(strategies, state, error)
            if wait is None or not may_wait(wait):
                return None
            state.next_action = tenacity.RetryAction(wait)
            state.idle_for += wait
            if strategies.before_sleep is not None:
                yield from self._result("before_sleep", strategies.before_sleep(state))
            state.prepare_for_next_attempt()
            return wait
        finally:
            state.outcome = None  # its error holds this frame by its traceback

    def _next_wait(self, strategies: Strategies, state: "RetryCallState", error: Exception) -> Decision:
        demanded = demanded_wait(error)
        if demanded is not None and demanded > strategies.retry_after_max:
            return None
        if strategies.retry is not None and not (
            yield from self._result("retry_if" if "retry_if" in self._retry.functions else "retry", strategies.retry(state))
        ):
            return None
        obeys = demanded is not None and strategies.waits_as_demanded
        own = None if obeys else (yield from self._result("wait", strategies.wait(state)))
        state.upcoming_sleep = max(0.0, float(own or 0), (demanded or 0) * strategies.wait_scale)
        for stop in strategies.stops:
            if (yield from self._result("stop", stop(state))):
                return None
        return state.upcoming_sleep

    def _result(self, name: str, value: Any) -> Generator[Awaited, Any, Any]:
        """Return a strategy's result, awaited if necessary."""
        if not inspect.isawaitable(value):
            return value
        if not self._awaits:
            if isinstance(value, Coroutine):
                value.close()
            raise asynchronous_error(name)
        return (yield Awaited(value))


def _in_time(error: Exception, seconds: float) -> bool:
    """Whether the run's deadline, if there is one, leaves so many seconds.

    Raises:
        DeadlinePassed: It does not.
    """
    deadline = current_deadline()
    passed = None if deadline is None else deadline.passed(within=seconds)
    if passed is not None:
        raise DeadlinePassed(passed) from error
    return True


def pause(seconds: float) -> None:
    """Sleep before the next attempt.

    Raises:
        DeadlinePassed: The run may not take so long.
    """
    deadline = current_deadline()
    if deadline is None:
        time.sleep(seconds)
    else:
        deadline.sleep(seconds)
