"""The steps of a call: what a wrapper around it yields, what is tried of it under its policy.

A generator of steps does nothing by itself. It yields what has to be waited for or carried out and is sent what came of it, so that one
text serves threads and tasks. It returns a result, or `PENDING`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator
from dataclasses import replace
from enum import Enum
from typing import Any, Final, Literal, NamedTuple, Protocol, cast

from ..messages.run_messages import open_run
from ..retry import Attempts, Awaited, RetryPolicy
from .call import ToolRun
from .plan import PlannedCall
from .policies import CachedCall, SharedFuture, SharedResult, ToolPolicy
from .results import OutcomeUnknownError, ToolCallResult, overdue_result, shortened
from .tools import source_tool

_logger = logging.getLogger("langchain_autotools")


class _Pending(Enum):
    LEFT = "left"


PENDING: Final = _Pending.LEFT
"""The outcome of a call without a result that stays pending, as if there were no decision about it."""


Outcome = ToolCallResult | Literal[_Pending.LEFT]
"""The outcome of a call."""


class BatchEnded(BaseException):
    """Raised to stop a call whose batch has ended, without a record. Wrappers cannot swallow it as an error of the tool."""


class Attempt(NamedTuple):
    """A step: run the tool. The generator receives its result.

    Attributes:
        number: Which attempt it is. `on_executing` is called before the first.
    """

    number: int


class Pause(NamedTuple):
    """A step: wait before the next step.

    Attributes:
        seconds: How long.
    """

    seconds: float


class Follow(NamedTuple):
    """A step: wait for an equal call that is already running, within the available time.

    Attributes:
        flight: That call.
    """

    flight: SharedFuture


class CallUser(NamedTuple):
    """A step: call a caller's function, possibly asynchronous. The generator receives its result, or `NOTHING` if the batch ended first.

    Attributes:
        function: The function.
        argument: Its argument.
        keeps: Whether it keeps what has been done: it has a second more than the batch.
    """

    function: Callable[[Any], Any]
    argument: Any
    keeps: bool = False


class Own(NamedTuple):
    """A step: call a function of the batch's own, whose result a batch of tasks awaits. The generator receives the result.

    Attributes:
        function: The function.
        args: Its arguments.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]


class InThread(NamedTuple):
    """A step: call a function in the thread of the call. The generator receives its result. For threads only.

    Attributes:
        function: Gets what carries out further steps there, and returns their outcome.
    """

    function: Callable[["Carry"], Outcome | None]


class Wrap(NamedTuple):
    """A step: call a caller's function that carries out further steps itself. The generator receives its result, or `NOTHING` if the
    batch ended first.

    Attributes:
        function: Gets what carries out further steps, and returns their outcome.
        afunction: The same for tasks: a coroutine function, whose argument returns an awaitable.
        keeps: Whether it has a second more than the batch.
    """

    function: Callable[["Carry"], Any]
    afunction: Callable[[Any], Awaitable[Any]]
    keeps: bool = True


Step = Attempt | Pause | Follow | CallUser | Own | InThread | Wrap | Awaited


Steps = Generator[Step, Any, Outcome]


Carry = Callable[[Steps], Outcome]


Proceed = Callable[[PlannedCall], Steps]
"""A function that continues a call with the inner wrappers, down to its tool."""


class CallWrapper(Protocol):
    """A wrapper around a planned call, which continues it with `proceed`, or does not."""

    def __call__(self, planned: PlannedCall, proceed: Proceed) -> Steps:
        """Yield steps around those of `proceed(planned)`, and return the outcome."""


def ends_as(outcome: Outcome) -> Steps:
    """Return an outcome without yielding any step."""
    return outcome
    yield  # makes it a generator


# ---------------------------------------------------------------------------------------------- attempts
# Execution of a call under its policy: cache lookup, retries, sharing with equal calls, output limit.


_Attempted = Generator[Step, Any, ToolCallResult]


def policy_steps(run: ToolRun, may_wait: Callable[[float], bool], *, in_thread: bool, awaits: bool = False) -> _Attempted:
    """Execute a call under its tool's policy, as a generator of steps.

    Args:
        run: The call.
        may_wait: Tells whether its batch goes on for longer than some seconds.
        in_thread: Whether the tool runs in a thread, which cannot be stopped.
        awaits: Whether the batch awaits what asynchronous strategies of a retry return.

    Returns:
        Its result.

    Raises:
        ConfigurationError: It does not, and there is one.
    """
    policy = cast("ToolPolicy", run.policy)
    tries = _tries(run, policy, may_wait, in_thread=in_thread, awaits=awaits)
    result = yield from (tries if run.cached is None else _shared(run, run.cached, tries))
    tried = run.tried + int(result.executed)
    result = replace(result, executed=tried > 0, attempts=tried)
    return result if policy.max_output is None else shortened(result, policy.max_output)


def _shared(run: ToolRun, cached: CachedCall, tries: _Attempted) -> _Attempted:
    """Take the result of an equal call, or try for all equal calls that are made meanwhile."""
    while True:
        found = cached.enter()
        if isinstance(found, ToolCallResult):
            return found
        if found is None:
            break
        yield Follow(found)
        if not found.done():
            return overdue_result(run.call)
        landing = found.result()
        # one that took too long may succeed in a longer time
        if landing is not None and (landing.timeout is None or (run.timeout is not None and run.timeout <= landing.timeout)):
            return cached.landed(landing.result)
    given: SharedResult | None = None
    try:
        result = yield from tries
        is_own = result.executed and not isinstance(result.error, asyncio.CancelledError) and open_run(result.message) is None
        if is_own and not (run.is_late and run.ends_with_batch):  # else it is caused by the end of this batch
            given = SharedResult(result, run.timeout if run.is_late else None)
        return result
    finally:
        cached.leave(given)


def _tries(run: ToolRun, policy: ToolPolicy, may_wait: Callable[[float], bool], *, in_thread: bool, awaits: bool) -> _Attempted:
    """Try until the call succeeds, fails for good, or no attempt or time is left."""
    attempts, number = Attempts(policy.retry_settings or RetryPolicy(), run.call.name, awaits=awaits), 1
    result: ToolCallResult = yield Attempt(number)
    while (error := _repeatable(run, policy, result, in_thread=in_thread)) is not None:
        wait = yield from attempts.decide(error, may_wait)
        if wait is None:
            break
        _logger.debug("tool %s has failed, call %s: attempt %d follows in %.2f s", result.call.name, result.call.id, number + 1, wait)
        yield Pause(wait)
        run.begin_anew()
        number += 1
        result = yield Attempt(number)
    return result


def _repeatable(run: ToolRun, policy: ToolPolicy, result: ToolCallResult, *, in_thread: bool) -> Exception | None:
    """Return the error of a call that its policy may try again; None if that is not to be."""
    error, errors = result.error, policy.retry_on or ()
    if not isinstance(error, Exception) or not result.executed:
        return None
    # a group is named if all errors in it are, and unknown if one of them is
    is_named = error.split(errors)[1] is None if isinstance(error, ExceptionGroup) else isinstance(error, errors)
    if not is_named or (run.is_late and (in_thread or not run.ended)):  # it may still be running
        return None
    source = source_tool(run.prepared.tool)
    may_repeat = (source is not None and source.repeatable) if policy.rerun is None else policy.rerun
    found = error.subgroup(OutcomeUnknownError) if isinstance(error, ExceptionGroup) else isinstance(error, OutcomeUnknownError)
    had_effect = bool(found) or (run.is_late and source is not None)  # or may have had it
    return error if may_repeat or not had_effect else None
