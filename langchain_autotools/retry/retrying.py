"""tenacity's `Retrying` and `AsyncRetrying` as retry settings."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from ..errors import ConfigurationError
from .policy import RetryPolicy
from .strategies import Strategies

_NOTHING_MORE = {
    "sleep": "waits end with their run, at its deadline and when it is cancelled",
    "before": "on_executing and events show what begins; before_sleep is called before each wait",
    "after": "before_sleep is called before each wait",
    "retry_error_cls": "the last error itself is raised",
    "retry_error_callback": "the last error itself is raised",
}
"""Arguments of tenacity's objects without effect here, with the alternatives."""
_FUNCTIONS = ("stop", "wait", "retry", "before_sleep")


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
        given = {name: value for name in (*_NOTHING_MORE, *_FUNCTIONS) if (value := getattr(retrying, name)) is not getattr(default, name)}
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
        return {name: function for name in _FUNCTIONS if (function := getattr(self, name)) is not None}

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
