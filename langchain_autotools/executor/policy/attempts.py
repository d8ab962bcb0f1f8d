"""Execution of a call under its policy: cache lookup, retries, sharing with equal calls, output limit.

`policy_steps` is a generator that does nothing by itself: it yields what is to be done next and is sent what came of it, so that threads
and tasks follow the same policy.
"""

import asyncio
import logging
from collections.abc import Callable, Generator, Mapping, MutableMapping, Sequence
from dataclasses import replace
from typing import Any

from ...messages.open_runs import open_run
from ...retry.attempts import Attempts, Decision
from ...retry.policy import RetryPolicy
from ..call import ToolRun
from ..plan import Answer
from ..results import ToolCallResult, overdue_result
from ..steps import Attempt, Follow, Pause, Step
from .cache import CachedCall, Landing
from .policies import ToolPolicy, checked_cache
from .shortening import shortened

_logger = logging.getLogger("langchain_autotools")

_Attempted = Generator[Step, Any, ToolCallResult]


def apply_policies(answers: Sequence[Answer], policies: Mapping[str, ToolPolicy], cache: MutableMapping[str, Any] | None) -> None:
    """Apply the tools' policies to the calls of a batch.

    Args:
        answers: The answers to the calls.
        policies: By name of tool.
        cache: Keeps the results of those whose policy names no mapping; by default as long as these calls run.
    """
    own = {} if cache is None else checked_cache("cache", cache)
    for run in [planned.run for answer in answers for planned in answer.planned if planned.run is not None]:
        run.policy = policy = policies.get(run.call.name)
        if policy is not None and policy.caches and run.call.run is None:  # what one that goes on is to give is its own
            mapping: Any = own if policy.cache is True else policy.cache
            run.cached = CachedCall(run.call, mapping, policy.cache_key, direct=run.prepared.tool.return_direct)


def policy_steps(
    run: ToolRun, policy: ToolPolicy, may_wait: Callable[[float], bool], *, in_thread: bool, awaits: bool = False
) -> _Attempted:
    """Execute a call under its policy, as a generator of steps.

    Args:
        run: The call.
        policy: The tool's policy.
        may_wait: Tells whether its batch goes on for longer than some seconds.
        in_thread: Whether the tool runs in a thread, which cannot be stopped.
        awaits: Whether the batch awaits what asynchronous strategies of a retry return.

    Returns:
        Its result.

    Raises:
        ConfigurationError: It does not, and there is one.
    """
    attempts = _Attempts(run, policy, may_wait, in_thread=in_thread, awaits=awaits)
    result = yield from (attempts.steps() if run.cached is None else _shared(run, run.cached, attempts))
    tried = run.tried + int(result.executed)
    result = replace(result, executed=tried > 0, attempts=tried)
    return result if policy.max_output is None else shortened(result, policy.max_output)


def _shared(run: ToolRun, cached: CachedCall, attempts: "_Attempts") -> _Attempted:
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
        if landing is not None and landing.is_for(run.timeout):
            return cached.landed(landing.result)
    given: Landing | None = None
    try:
        result = yield from attempts.steps()
        if attempts.ended_by_itself(result):
            given = Landing(result, run.timeout if run.is_late else None)
        return result
    finally:
        cached.leave(given)


class _Attempts:
    """The attempts at one call."""

    def __init__(self, run: ToolRun, policy: ToolPolicy, may_wait: Callable[[float], bool], *, in_thread: bool, awaits: bool) -> None:
        self._run = run
        self._errors = policy.retry_on or ()
        self._retry = policy.retry_settings or RetryPolicy()
        self._may_wait = may_wait
        self._in_thread = in_thread
        self._awaits = awaits

    def steps(self) -> _Attempted:
        """Try until the call succeeds, fails for good, or no attempt or time is left."""
        attempts, number = Attempts(self._retry, self._run.call.name, awaits=self._awaits), 1
        result: ToolCallResult = yield Attempt(number)
        while (wait := (yield from self._wait(result, attempts))) is not None:
            _logger.debug("tool %s has failed, call %s: attempt %d follows in %.2f s", result.call.name, result.call.id, number + 1, wait)
            yield Pause(wait)
            self._run.begin_anew()
            result = yield Attempt(number + 1)
            number += 1
        return result

    def _wait(self, result: ToolCallResult, attempts: Attempts) -> Decision:
        """Return the seconds to wait before the next attempt; None if there is none."""
        error, run = result.error, self._run
        if not isinstance(error, Exception) or not result.executed or not _is_named(error, self._errors):
            return None
        if run.is_late and (self._in_thread or not run.ended):  # it may still be running
            return None
        return (yield from attempts.decide(error, self._may_wait))

    def ended_by_itself(self, result: ToolCallResult) -> bool:
        """Whether the result is the tool's own and valid for other calls, and not caused by this batch's end or timeout."""
        if not result.executed or isinstance(result.error, asyncio.CancelledError) or open_run(result.message) is not None:
            return False
        return not (self._run.is_late and self._run.ends_with_batch)


def _is_named(error: BaseException, errors: tuple[type[Exception], ...]) -> bool:
    """Whether an error is one of these classes; for a group, whether all errors in it are."""
    return error.split(errors)[1] is None if isinstance(error, BaseExceptionGroup) else isinstance(error, errors)
