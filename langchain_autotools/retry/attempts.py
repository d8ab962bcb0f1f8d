"""The sequence of attempts at one request or call.

Whether another attempt follows, and after which wait, is decided by tenacity's strategies. The loop is not tenacity's: so no frame of
it stands in a traceback, and a wait ends where the run does.
"""

import asyncio
import inspect
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ..deadline import DeadlinePassed, current_deadline
from .strategies import Retry, Strategies, asynchronous_error, call_state, check_synchronous, demanded_wait

if TYPE_CHECKING:
    from tenacity import RetryCallState

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
