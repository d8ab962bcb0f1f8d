"""The rules of failover: which failures another model answers, how often a model is tried, how long it is left alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from langchain_core.exceptions import (
    ContextOverflowError,
    ModelAuthenticationError,
    ModelNotFoundError,
    ModelPermissionDeniedError,
    ModelRateLimitError,
)

from ..errors import ConfigurationError
from ..retry.headers import is_transient

AfterText = Literal["continue", "raise"]
"""Action when a model fails after text has left: another model goes on with the reply, or the error is raised."""

EndedAs = Literal["refused", "length"]
"""A stop reason of a reply without text that may lead to another model."""

_ALWAYS: Final = (ModelAuthenticationError, ModelPermissionDeniedError, ModelNotFoundError, ModelRateLimitError)
_REFUSED_KEYS: Final = (401, 402, 403, 404)
_TRANSPORT: Final = frozenset({"TransportError", "APIConnectionError", "NetworkError"})


@dataclass(frozen=True)
class FirstToken:
    """A condition of `fallback_on`: a streamed reply has not begun within so many seconds.

    It holds for each attempt at a model while another model is left. It begins with its first piece of text, reasoning or a tool call. The
    synchronous methods give up a silent server only in models of this package.

    Attributes:
        seconds: The seconds.

    Raises:
        ConfigurationError: They are not above 0.
    """

    seconds: float

    def __post_init__(self) -> None:
        if isinstance(self.seconds, bool) or not isinstance(self.seconds, int | float) or not self.seconds > 0:
            raise ConfigurationError(f"FirstToken takes a number of seconds above 0, not {self.seconds!r}")


Condition = type[BaseException] | Callable[[Any], bool] | FirstToken | EndedAs
"""A condition of `fallback_on`."""


@dataclass(frozen=True)
class FailoverRules:
    """The rules of one model's failover.

    Attributes:
        errors: Predicates over an error; one of them must hold.
        first_token: Seconds within which a streamed reply must begin; None for no limit.
        ended_as: The stop reasons of a reply without text that lead to another model.
        attempts: Maximum number of attempts at a model, including the first, while another model is left.
        cooldown: Seconds for which a model that failed is asked only where all have failed; None for none.
        after_text: Action when a model fails after text has left.
    """

    errors: Sequence[Callable[[BaseException], bool]]
    first_token: float | None
    ended_as: frozenset[str]
    attempts: int
    cooldown: float | None
    after_text: AfterText

    @classmethod
    def of(cls, model: Any) -> "FailoverRules":
        """Return the rules that a model's fields set.

        Raises:
            ConfigurationError: One of them cannot work.
        """
        conditions = _conditions(model.fallback_on)
        errors = [_predicate(one) for one in conditions if not isinstance(one, FirstToken | str)]
        times = [one.seconds for one in conditions if isinstance(one, FirstToken)]
        attempts, cooldown = model.fallback_attempts, model.cooldown
        if isinstance(attempts, bool) or not isinstance(attempts, int) or attempts < 1:
            raise ConfigurationError(f"fallback_attempts must be a whole number, 1 or more, not {attempts!r}")
        if cooldown is not None and (isinstance(cooldown, bool) or not isinstance(cooldown, int | float) or not cooldown > 0):
            raise ConfigurationError(f"cooldown must be a number of seconds above 0, or None for none, not {cooldown!r}")
        if model.after_text not in get_args(AfterText):
            raise ConfigurationError(f"after_text must be one of {', '.join(get_args(AfterText))}, not {model.after_text!r}")
        ended_as = frozenset(one for one in conditions if isinstance(one, str))
        return cls(errors or [is_failure], min(times, default=None), ended_as, attempts, cooldown, model.after_text)

    def applies(self, error: BaseException) -> bool:
        """Whether another model answers this error."""
        return any(predicate(error) for predicate in self.errors)


def is_failure(error: BaseException) -> bool:
    """Whether an error is a failure of its model or server, which another one need not have: what retries repeat, refused keys, spent
    quotas and unknown models. A request that is wrong, or too long, is none."""
    if isinstance(error, ContextOverflowError):
        return False
    if getattr(error, "is_retryable", False) is True or isinstance(error, (*_ALWAYS, ConnectionError, TimeoutError)):
        return True
    status = _status_of(error)
    if status is not None:
        return status in _REFUSED_KEYS or is_transient(status)
    return not _TRANSPORT.isdisjoint(cls.__name__ for cls in type(error).__mro__)


def _status_of(error: BaseException) -> int | None:
    """Return the HTTP status of an SDK's error; None if it has none."""
    values = (
        getattr(error, "status_code", None),
        getattr(getattr(error, "response", None), "status_code", None),
        getattr(error, "code", None),
    )
    return next((value for value in values if isinstance(value, int) and 400 <= value <= 599), None)


def _conditions(given: Any) -> list[Any]:
    listed = [] if given is None else list(given) if isinstance(given, list | tuple | set | frozenset) else [given]
    for one in listed:
        known = callable(one) if not isinstance(one, str) else one in get_args(EndedAs)
        if not (known or isinstance(one, FirstToken)) or (isinstance(one, type) and not issubclass(one, BaseException)):
            stops = " or ".join(map(repr, get_args(EndedAs)))
            raise ConfigurationError(
                f"fallback_on takes classes of errors, functions of an error, FirstToken(seconds), {stops}; not {one!r}"
            )
    return listed


def _predicate(condition: Any) -> Callable[[BaseException], bool]:
    return (lambda error: isinstance(error, condition)) if isinstance(condition, type) else lambda error: bool(condition(error))
