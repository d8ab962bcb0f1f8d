"""The rules of failover: which failures another model answers, a reply that begins too late among them."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar, get_args

from langchain_core.exceptions import (
    ContextOverflowError,
    ModelAuthenticationError,
    ModelNotFoundError,
    ModelPermissionDeniedError,
    ModelRateLimitError,
    ModelTimeoutError,
)

from ..deadline import Deadline, DeadlinePassed, reply_begins
from ..errors import ConfigurationError
from ..retry import is_transient

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
        return cls(errors or [_is_failure], min(times, default=None), ended_as, attempts, cooldown, model.after_text)

    def applies(self, error: BaseException) -> bool:
        """Whether another model answers this error."""
        return any(predicate(error) for predicate in self.errors)


def _is_failure(error: BaseException) -> bool:
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


# ---------------------------------------------------------------------------------------------- a limit on the time until a reply begins


_Part = TypeVar("_Part")
_END: Any = object()


def first_in_time(parts: Iterator[_Part], seconds: float | None) -> Generator[_Part, None, None]:
    """Yield parts of which the first must come within so many seconds; None for no limit. Closes them.

    Raises:
        ModelTimeoutError: It does not.
    """
    try:
        if seconds is not None:
            first = _first(parts, seconds)
            if first is _END:
                return
            yield first
        yield from parts
    finally:
        getattr(parts, "close", lambda: None)()


def _first(parts: Iterator[_Part], seconds: float) -> _Part:
    deadline = _BeginDeadline(seconds)
    token = reply_begins.set(deadline.release)
    try:
        with deadline.in_sight():
            return next(parts, _END)
    except DeadlinePassed as passed:
        if passed.deadline is not deadline:
            raise
        raise _too_late(seconds) from None
    finally:
        reply_begins.reset(token)
        deadline.release()


async def afirst_in_time(parts: AsyncGenerator[_Part, None], seconds: float | None) -> AsyncGenerator[_Part, None]:
    """Like `first_in_time`, asynchronously."""
    async with aclosing(parts):
        if seconds is not None:
            first = await _afirst(parts, seconds)
            if first is _END:
                return
            yield first
        async for part in parts:
            yield part


async def _afirst(parts: AsyncGenerator[_Part, None], seconds: float) -> _Part:
    try:
        async with asyncio.timeout(seconds) as scope:
            token = reply_begins.set(lambda: scope.reschedule(None))
            try:
                return await anext(parts, _END)
            finally:
                reply_begins.reset(token)
    except TimeoutError:
        if not scope.expired():
            raise
        raise _too_late(seconds) from None


class _BeginDeadline(Deadline):
    """The end of the wait for a reply's first piece."""

    ends_run = False

    def longest(self) -> float | None:
        """Return the time that the deadlines around this one leave: a reply that has begun may pause for longer than it took to begin."""
        return None if self._around is None else self._around.longest()

    def release(self) -> None:
        """Let the reply go on: from here on only the deadlines around this one count."""
        self.at = float("inf") if self._around is None else self._around.at


def _too_late(seconds: float) -> ModelTimeoutError:
    return ModelTimeoutError(f"the reply had not begun after {seconds:g} s")
