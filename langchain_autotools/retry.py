"""Retries of a failed request or call: which failure is followed by another attempt, after which wait."""

import asyncio
import email.utils
import inspect
import logging
import math
import re
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast

from .deadline import DeadlinePassed, current_deadline
from .errors import ConfigurationError

if TYPE_CHECKING:
    from tenacity import RetryCallState

__all__ = ["RetryPolicy", "is_transient", "retry_after", "should_retry"]

_Result = TypeVar("_Result")


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


def _call_state(name: str, started: float | None = None) -> "RetryCallState":
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


def check_synchronous(retry: "RetryPolicy | RetryStrategies") -> None:
    """Raise if the settings have asynchronous functions, which a synchronous run cannot await.

    Raises:
        ConfigurationError: There is one.
    """
    for name, function in retry.functions.items():
        if is_asynchronous(function):
            raise _asynchronous_error(name)


def _asynchronous_error(name: str) -> ConfigurationError:
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


# ---------------------------------------------------------------------------------------------- policy
#
# The settings of retries: `RetryPolicy`, or tenacity's own objects.
#
# This is the only owner of retries: the vendors' SDKs get `max_retries=0`. It knows no vendor: an error says itself whether the same
# request may succeed (`is_retryable`, as `langchain_core.exceptions` defines it) and how long the server asked to wait (`retry_after`,
# seconds).

_NUMBERS = ("attempts", "wait_initial", "wait_max", "jitter", "retry_after_max", "timeout", "wait_scale")
_FUNCTIONS = ("retry_if", "before_sleep")
_NO_FUNCTIONS: Mapping[str, Any] = {}


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """Retry policy: how often, and after which waits, a failed request is retried.

    The waits and stops are tenacity's strategies: `wait_exponential` with a random part (`wait_random_exponential`), `stop_after_attempt`
    and `stop_before_delay`. Where others are wanted, `retry=` takes a `tenacity.Retrying` or `AsyncRetrying` in place of a policy.

    Attributes:
        attempts: Maximum number of attempts, including the first.
        wait_initial: Seconds before the second attempt; doubled before each further one.
        wait_max: Longest of these waits, in seconds.
        jitter: Largest share of itself, 0 to 1, by which a wait is shortened at random, so that many clients do not return at once.
        retry_after_max: Longest wait in seconds that a server may demand. If it demands more, the error is raised at once
            (its `retry_after` is what the server demanded).
        timeout: Seconds after which no further attempt starts, waits included; None for no such limit.
        wait_scale: Multiplies every wait. Zero in tests.
        retry_if: Predicate over the error: another attempt is made only if it returns True. It is called only for errors after
            which a request may be made again at all; it can forbid a retry, not permit one. A strategy of tenacity
            (`retry_if_exception_message(...)`) may be given too. Asynchronous predicates need an asynchronous run.
        before_sleep: Hook that is called before each wait with tenacity's `RetryCallState`: `attempt_number`,
            `outcome.exception()`, `next_action.sleep`; `tenacity.before_sleep_log(logger, level)` makes one. Asynchronous hooks need an
            asynchronous run. What it raises ends the run.

    Raises:
        ConfigurationError: A number that cannot work, or something that is no function.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}  # a dict may be given for a policy

    attempts: int = 3
    wait_initial: float = 0.5
    wait_max: float = 8.0
    jitter: float = 0.25
    retry_after_max: float = 60.0
    timeout: float | None = None
    wait_scale: float = 1.0
    retry_if: Callable[[Any], Awaitable[bool] | bool] | None = field(default=None, repr=False)
    before_sleep: Callable[[Any], Awaitable[None] | None] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Raise if a setting cannot work."""
        for name in _NUMBERS:
            value = getattr(self, name)
            is_number = isinstance(value, int if name == "attempts" else int | float) and not isinstance(value, bool)
            if not is_number and not (name == "timeout" and value is None):
                raise ConfigurationError(f"{name} is {value!r}: it must be a {'whole ' if name == 'attempts' else ''}number")
        if self.attempts < 1:
            raise ConfigurationError(f"attempts is {self.attempts}: a request is made at least once (max_retries counts from zero)")
        if not 0 <= self.jitter <= 1:
            raise ConfigurationError(f"jitter is {self.jitter}: it is a share between 0 and 1")
        for name in ("wait_initial", "wait_max", "retry_after_max", "wait_scale"):
            if not getattr(self, name) >= 0:
                raise ConfigurationError(f"{name} is {getattr(self, name)}: it cannot be negative")
        if self.timeout is not None and not self.timeout > 0:
            raise ConfigurationError(f"timeout is {self.timeout}: it must be above 0, or None for no limit")
        for name, function in self.functions.items():
            if not callable(function) or isinstance(function, type):
                what = "the error" if name == "retry_if" else "tenacity's RetryCallState"
                raise ConfigurationError(f"{name} must be a function of {what}, not {function!r}")

    def __deepcopy__(self, memo: Any) -> Self:
        """Return the same object: settings never change, and a strategy may hold an event, which cannot be copied."""
        return self

    @property
    def functions(self) -> Mapping[str, Any]:
        """The functions `retry_if` and `before_sleep`, if given."""
        if self.retry_if is None and self.before_sleep is None:  # before each request
            return _NO_FUNCTIONS
        return {name: function for name in _FUNCTIONS if (function := getattr(self, name)) is not None}

    @property
    def certain_retries(self) -> int:
        """The number of retries that `retry_if` cannot prevent."""
        return self.attempts - 1 if self.retry_if is None else 0

    def with_retries(self, retries: int) -> "RetryPolicy":
        """Return the policy with this number of retries after the first attempt, as vendors' `max_retries` counts them.

        Raises:
            ConfigurationError: The number is negative.
        """
        if retries < 0:
            raise ConfigurationError(f"max_retries is {retries}: it cannot be negative")
        return replace(self, attempts=retries + 1)

    def call(self, attempt: Callable[[], _Result]) -> _Result:
        """Call `attempt` until it succeeds, fails for good, or no attempt is left; then raise its last error.

        Raises:
            ConfigurationError: `retry_if` or `before_sleep` is asynchronous.
        """
        return Attempts(self).call(attempt)

    async def acall(self, attempt: Callable[[], Awaitable[_Result]]) -> _Result:
        """Like `call`, asynchronously. A cancelled attempt is not repeated."""
        return await Attempts(self, awaits=True).acall(attempt)

    def wait(self, failures: int, asked: float | None = None) -> float:
        """Return the seconds to wait after this many failures; `asked` is the server's requested wait, if any."""
        if asked is not None:
            return asked * self.wait_scale
        state = _call_state("request")
        state.attempt_number = failures
        return self._backoff()(state)

    def strategies(self) -> Strategies:
        """Return the policy as tenacity's strategies."""
        import tenacity

        predicate = self.retry_if
        if predicate is not None and not isinstance(predicate, tenacity.retry_base):
            predicate = tenacity.retry_if_exception(predicate)  # type: ignore[arg-type]
        stops: list[Any] = [tenacity.stop_after_attempt(self.attempts)]
        if self.timeout is not None:
            stops.append(tenacity.stop_before_delay(self.timeout))
        return Strategies(
            retry=predicate,
            wait=self._backoff(),
            waits_as_demanded=True,
            stops=stops,
            before_sleep=self.before_sleep,
            retry_after_max=self.retry_after_max,
            wait_scale=self.wait_scale,
        )

    def _backoff(self) -> Callable[[Any], float]:
        """Return tenacity's exponential wait, with the share `jitter` of each wait random."""
        import tenacity

        initial = self.wait_initial * self.wait_scale
        longest = self.wait_max * self.wait_scale if self.wait_initial else 0.0
        fixed = tenacity.wait_exponential(multiplier=initial * (1 - self.jitter), max=longest * (1 - self.jitter))
        return fixed + tenacity.wait_random_exponential(multiplier=initial * self.jitter, max=longest * self.jitter)


# ---------------------------------------------------------------------------------------------- retrying
# tenacity's `Retrying` and `AsyncRetrying` as retry settings.


_NOTHING_MORE = {
    "sleep": "waits end with their run, at its deadline and when it is cancelled",
    "before": "on_executing and events show what begins; before_sleep is called before each wait",
    "after": "before_sleep is called before each wait",
    "retry_error_cls": "the last error itself is raised",
    "retry_error_callback": "the last error itself is raised",
}
"""Arguments of tenacity's objects without effect here, with the alternatives."""
_STRATEGIES = ("stop", "wait", "retry", "before_sleep")


@dataclass(frozen=True, kw_only=True)
class RetryStrategies:
    """The strategies of a `tenacity.Retrying` or `AsyncRetrying` given as `retry=`. None: tenacity's default.

    Attributes:
        stop: Its stop strategy; without one there are three attempts.
        wait: Its wait strategy; without one there is no wait but that which a server demands.
        retry: Its retry strategy, asked about errors after which a request may be made again at all.
        before_sleep: Its hook before each wait.
        attempts: Maximum number of attempts that holds besides `stop`; None for no other.
    """

    stop: Any = None
    wait: Any = None
    retry: Any = field(default=None, repr=False)
    before_sleep: Any = field(default=None, repr=False)
    attempts: int | None = None

    @classmethod
    def of(cls, retrying: Any) -> "RetryStrategies":
        """Return the strategies of tenacity's object.

        Raises:
            ConfigurationError: It has an argument that would have no effect.
        """
        import tenacity

        default = (tenacity.AsyncRetrying if isinstance(retrying, tenacity.AsyncRetrying) else tenacity.Retrying)()
        given = {name: value for name in (*_NOTHING_MORE, *_STRATEGIES) if (value := getattr(retrying, name)) is not getattr(default, name)}
        for name, instead in _NOTHING_MORE.items():
            if name in given:
                raise ConfigurationError(f"{name}= of tenacity's {type(retrying).__name__} has no effect here: {instead}")
        return cls(**given)

    def __deepcopy__(self, memo: Any) -> Self:
        """Return the same object: settings never change, and a strategy may hold an event, which cannot be copied."""
        return self

    @property
    def functions(self) -> Mapping[str, Any]:
        """The strategies that were given, by name."""
        return {name: function for name in _STRATEGIES if (function := getattr(self, name)) is not None}

    @property
    def certain_retries(self) -> int:
        """The number of retries that no strategy can prevent."""
        return self._limit - 1 if self._limit and self.stop is None and self.retry is None else 0

    @property
    def _limit(self) -> int | None:
        """The maximum number of attempts, in addition to `stop`."""
        return RetryPolicy.attempts if self.attempts is None and self.stop is None else self.attempts

    def with_retries(self, retries: int) -> "RetryStrategies":
        """Return the strategies with at most this many retries after the first attempt."""
        return replace(self, attempts=retries + 1)

    def strategies(self) -> Strategies:
        """Return the strategies to call after each failure."""
        import tenacity

        own, limit = RetryPolicy(), self._limit
        stops = [self.stop, None if limit is None else tenacity.stop_after_attempt(limit)]
        return Strategies(
            retry=self.retry,
            wait=self.wait or tenacity.wait_none(),
            waits_as_demanded=False,
            stops=[stop for stop in stops if stop is not None],
            before_sleep=self.before_sleep,
            retry_after_max=own.retry_after_max,
            wait_scale=own.wait_scale,
        )


def checked_retry(name: str, value: Any) -> RetryPolicy | RetryStrategies:
    """Return the retry settings for a caller's value; raise if they cannot work.

    Args:
        name: The argument's name.
        value: A `RetryPolicy`, or tenacity's `Retrying` or `AsyncRetrying`.

    Raises:
        ConfigurationError: It is neither, or has an argument that would have no effect.
    """
    if isinstance(value, RetryPolicy | RetryStrategies):
        return value
    tenacity = sys.modules.get("tenacity")  # whoever gives an object of it has imported it
    if tenacity is not None and isinstance(value, tenacity.Retrying | tenacity.AsyncRetrying):
        return RetryStrategies.of(value)
    raise ConfigurationError(f"{name} must be a RetryPolicy, or tenacity's Retrying or AsyncRetrying, not {value!r}")


# ---------------------------------------------------------------------------------------------- attempts
# The sequence of attempts at one request or call.
#
# Whether another attempt follows, and after which wait, is decided by tenacity's strategies. The loop is not tenacity's: so no frame of
# it is in a traceback, and a wait ends where the run does.


_logger = logging.getLogger("langchain_autotools")


@dataclass(frozen=True)
class Awaited:
    """An awaitable returned by an asynchronous strategy; its result is sent back to the generator.

    Attributes:
        value: The awaitable.
    """

    value: Awaitable[Any]


RetrySteps = Generator[Awaited, Any, float | None]
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

    def __init__(self, retry: RetryPolicy | RetryStrategies, name: str = "request", *, awaits: bool = False) -> None:
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

    def _request_decision(self, error: Exception) -> RetrySteps:
        """Decide about a request: it is retried only after an error that marks it as retryable."""
        if not getattr(error, "is_retryable", False):
            return None
        wait = yield from self.decide(error, lambda seconds: _in_time(error, seconds))
        if wait is not None:  # the text of the error may hold content
            _logger.debug("attempt %d failed (%s): next in %.2f s", self._state.attempt_number - 1, type(error).__name__, wait)
        return wait

    def decide(self, error: Exception, may_wait: Callable[[float], bool]) -> RetrySteps:
        """Decide whether another attempt follows an error that permits one.

        Args:
            error: The error of the last attempt.
            may_wait: Returns whether there is time for a wait of so many seconds. It is called before the hook.

        Raises:
            ConfigurationError: A strategy is asynchronous and cannot be awaited.
        """
        import tenacity

        if self._strategies is None:
            self._strategies, self._state = self._retry.strategies(), _call_state(self._name, self._started)
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

    def _next_wait(self, strategies: Strategies, state: "RetryCallState", error: Exception) -> RetrySteps:
        seconds = getattr(error, "retry_after", None)
        demanded = seconds if isinstance(seconds, int | float) else None
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
            raise _asynchronous_error(name)
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


# ---------------------------------------------------------------------------------------------- headers
# What a server's status and headers ask of whoever would try again.


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
        seconds = _largest(headers.get(name), _number)
        if seconds is not None:
            return seconds * unit if seconds > 0 else None
    date = _largest(headers.get("retry-after"), _date)
    if date is None:
        return None
    return date - now() if date > now() else None


def _largest(text: str | None, read: Callable[[str], float | None]) -> float | None:
    """Return the largest of the values in a header; libraries join those that a server and a proxy both send."""
    return max((value for part in _PART.findall(text or "") if (value := read(part)) is not None), default=None)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _date(text: str) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
