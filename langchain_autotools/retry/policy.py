"""The settings of retries: `RetryPolicy`, or tenacity's own objects.

It is the only owner of retries: the vendors' SDKs get `max_retries=0`. It knows no vendor: an error says itself whether the same request
may succeed (`is_retryable`, as `langchain_core.exceptions` defines it) and how long the server asked to wait (`retry_after`, seconds).
"""

import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, TypeVar

from ..errors import ConfigurationError
from .attempts import Attempts, Strategies, call_state

_Result = TypeVar("_Result")

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
        state = call_state("request")
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


def read_retry(value: Any, handler: Callable[[Any], Any]) -> Any:
    """Validate a model's field `retry`, which also accepts a dict."""
    return handler(value) if isinstance(value, Mapping) else checked_retry("retry", value)
