"""The wrappers around each call in their order, down to the attempts that its policy allows."""

import asyncio
import logging
import uuid
from collections.abc import Callable, Generator, Mapping, MutableMapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from ..messages.calls import ToolCallRecord, compact
from ..messages.run_messages import metadata_of_open_run, open_run
from ..retry import Attempts, Decision, RetryPolicy
from .call import ToolRun
from .pending import plain_json
from .plan import Answer, Attempt, CallWrapper, Follow, Pause, PlannedCall, Proceed, Step, Steps, ends_as
from .policies import CachedCall, SharedResult, ToolPolicy, checked_cache
from .results import ToolCallResult, failed, overdue_result, shortened
from .run_tool import outer_call


class Wrappers(NamedTuple):
    """The wrappers of one planned call, outermost first. A call that only needs an answer has at most the first.

    Attributes:
        entry: The journal's entry. Outermost: whatever the others make of the call is recorded, once, and not made again when the run
            goes on in another process, where there may be less time, and other middleware.
        turn: Waits until the call may begin, and answers it where there is no time. Inside the journal, since a later process must find
            the same answer; outside the claim, which is not to be held meanwhile.
        claim: Takes the call from the caller's store. Directly before the call begins, so that a call that is taken has begun, or is given
            back; outside handlers, so that none of them acts on a call that runs elsewhere.
        begin: Notes that the call has begun.
        around: Handlers and middleware. Outside policies: they see one call, however often it is tried, and the result as it is stored.
        attempts: Runs the tool as its policy says: innermost, since a retry makes the tool's own call again and nothing else.
    """

    entry: CallWrapper | None
    turn: CallWrapper
    claim: CallWrapper | None
    begin: CallWrapper
    around: Sequence[CallWrapper]
    attempts: Proceed


def with_wrappers(
    planned: PlannedCall, wrappers: Wrappers, is_concerned: Callable[[ToolCallRecord, ToolCallRecord], bool], *, may_wait: bool
) -> Steps:
    """Return the steps of a planned call within its wrappers.

    Args:
        planned: The call.
        wrappers: What stands around it.
        is_concerned: Whether a call that a wrapper has changed needs an approval that it does not have; it is asked of the call before
            and after.
        may_wait: Whether such a call can wait for it.
    """
    proceed = wrappers.attempts
    if wrappers.around or planned.call.approved is not None:
        proceed = partial(_as_approved, planned, is_concerned, may_wait, proceed)
        for wrapper in reversed(wrappers.around):
            proceed = partial(wrapper, proceed=proceed)
    for outer in (wrappers.begin, wrappers.claim, wrappers.turn, wrappers.entry):
        if outer is not None:
            proceed = partial(outer, proceed=proceed)
    return proceed(planned)


def _as_approved(
    before: PlannedCall,
    is_concerned: Callable[[ToolCallRecord, ToolCallRecord], bool],
    may_wait: bool,
    proceed: Proceed,
    planned: PlannedCall,
) -> Steps:
    """Continue a call after its wrappers; a changed one waits if it needs an approval.

    A call that was approved after a change came to the wrappers as it was before it: they may make the same change again, or none.
    """
    run, call, approved = planned.run, planned.call, before.call.approved
    assert run is not None  # only calls that run have wrappers
    bound = call is not before.call and (approved is not None or is_concerned(before.call, call))
    if bound and not any(is_same(call, one) for one in (before.call, approved or before.call)):
        return ends_as(changed_result(run, before.call, call) if may_wait else refused_change(before.call))
    if approved is not None:
        planned = replace(planned, call=approved)
    if run.call is not planned.call:
        run.change(planned.call)
    return proceed(planned)


# ---------------------------------------------------------------------------------------------- changed
# Calls to which a wrapper has given other arguments than were approved, or arguments that need an approval.


_WAITS = "Not run: the arguments of this call were changed to {arguments}, and with these it waits for approval."
_REFUSED = "Not run: the arguments of this call were changed, and with these it needs an approval that it does not have."


def is_same(one: ToolCallRecord, other: ToolCallRecord) -> bool:
    """Whether two forms of a call have the same arguments, as a human is shown them."""
    return one.args == other.args or plain_json(one, one.args) == plain_json(other, other.args)


def changed_result(run: ToolRun, before: ToolCallRecord, after: ToolCallRecord) -> ToolCallResult:
    """Return the result of a changed call: it waits for approval with the changed arguments, which its metadata keeps.

    Args:
        run: The execution of the call.
        before: The call before its wrappers.
        after: The call as they have changed it.
    """
    if run.tried:  # what has run cannot wait
        return refused_change(before)
    record = replace(outer_call(run), call=before).changed(after.args or {})
    text = _WAITS.format(arguments=compact(record["calls"][0]["args"]))
    result = failed(before, text, PermissionError(text))
    metadata = metadata_of_open_run(record)
    return replace(result, message=result.message.model_copy(update={"id": f"open-{uuid.uuid4()}", "response_metadata": metadata}))


def refused_change(call: ToolCallRecord) -> ToolCallResult:
    """Return the result of a changed call that cannot wait: one inside a bundle, or one that has run before."""
    return failed(call, _REFUSED, PermissionError(_REFUSED))


# ---------------------------------------------------------------------------------------------- attempts
# Execution of a call under its policy: cache lookup, retries, sharing with equal calls, output limit.
#
# `policy_steps` is a generator that does nothing by itself: it yields what is to be done next and is sent what came of it, so that
# threads and tasks follow the same policy.


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
    given: SharedResult | None = None
    try:
        result = yield from attempts.steps()
        if attempts.ended_by_itself(result):
            given = SharedResult(result, run.timeout if run.is_late else None)
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
