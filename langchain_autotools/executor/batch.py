"""The common part of synchronous or asynchronous batches of running calls, with what wraps each call."""

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Protocol, cast

from langchain_core.messages import ToolMessage

from ..deadline import NEVER, Deadline
from ..messages.calls import ToolCallRecord, compact, with_definitions
from ..messages.run_messages import metadata_of_open_run, open_run, serialize_messages
from .approvals import Admission
from .call import NOT_CONTINUED, ToolRun
from .claims import CallClaims, Claims, KeyClaims
from .context import AsyncProgress, Progress
from .pending import definition_changes, plain_json
from .plan import Answer, PlannedCall, not_approved, unknown_tool
from .results import ToolCallResult, cancelled_result, describe, failed, overdue_result
from .run_tool import outer_call
from .steps import PENDING, Attempt, BatchEnded, CallUser, CallWrapper, Outcome, Own, Pause, Proceed, Step, Steps, ends_as, policy_steps
from .tools import source_tool
from .user_functions import NOTHING, UserCall

Concerns = Callable[[ToolCallRecord, ToolCallRecord], bool]
"""A function that says whether a call that a wrapper has changed needs an approval that it does not have, by the call before and after."""


def _as_approved(before: PlannedCall, is_concerned: Concerns, may_wait: bool, proceed: Proceed, planned: PlannedCall) -> Steps:
    """Continue a call after its wrappers; a changed one waits if it needs an approval.

    A call that was approved after a change came to the wrappers as it was before it: they may make the same change again, or none.
    """
    run, call, approved = planned.run, planned.call, before.call.approved
    assert run is not None  # only calls that run have wrappers
    bound = call is not before.call and (approved is not None or is_concerned(before.call, call))
    shown = (before.call, approved or before.call)  # as a human is shown them
    if bound and not any(one.args == call.args or plain_json(one, one.args) == plain_json(call, call.args) for one in shown):
        if not may_wait or run.tried:  # what has run cannot wait
            return ends_as(failed(before.call, _REFUSED, PermissionError))
        tool, waiting = source_tool(run.prepared.tool), before.call
        if waiting.definitions is None and tool is not None and tool.definition is not None:
            waiting = replace(waiting, definitions={waiting.name: tool.definition})
        return ends_as(_waiting_result(run, waiting, call.args or {}, _WAITS))
    if approved is not None:
        planned = replace(planned, call=approved)
    if run.call is not planned.call:
        run.change(planned.call)
    return proceed(planned)


def _as_listed(before: ToolCallRecord, may_wait: bool, proceed: Proceed, planned: PlannedCall) -> Steps:
    """Continue a call whose tool is still the one that was approved; for another one the call waits again, where it can.

    Args:
        before: The call before its wrappers, bound to the definitions that were approved.
        may_wait: Whether it can wait.
        proceed: Goes on with it.
        planned: The call.
    """
    run, call = planned.run, planned.call
    assert run is not None  # only calls that run have wrappers
    approved = (before.definitions or {}).get(before.name)
    now = None if approved is None else (yield from _definition_now(run))
    if isinstance(now, ToolCallResult):
        return now
    changes = {} if approved is None else definition_changes(approved, now)
    if not changes:
        return (yield from proceed(planned))
    if not may_wait or run.tried:
        return failed(before, _OTHER_TOOL, PermissionError)
    return _waiting_result(run, with_definitions(before, None if now is None else {before.name: now}), call.args or {}, _REDEFINED, changes)


def _definition_now(run: ToolRun) -> Generator[CallUser, Any, Mapping[str, Any] | ToolCallResult | None]:
    """Return the definition of a call's tool, as it is now; None for a tool of no source. A result where the tool cannot run."""
    tool, call = source_tool(run.prepared.tool), run.call
    if tool is None or tool.listed is None:
        return None if tool is None else tool.definition
    try:
        now = yield CallUser(partial(tool.listed, timeout=run.timeout), tool.definition)
    except Exception as error:
        return failed(call, describe(error), error)
    if now is NOTHING:
        return overdue_result(call)
    return unknown_tool(call, [other.name for other in run.context.tools if other.name != call.name]) if now is None else now


# ---------------------------------------------------------------------------------------------- changed
# Calls to which a wrapper has given other arguments than were approved, or arguments that need an approval, and calls of other tools.


_REDEFINED = "Not run: this tool is not the one any more for which the call was approved, and the call waits for approval again."
_OTHER_TOOL = (
    "Not run: this tool is not the one any more for which the call was approved. Call it again, by itself, if its result is still needed."
)
_WAITS = "Not run: the arguments of this call were changed to {arguments}, and with these it waits for approval."
_REFUSED = "Not run: the arguments of this call were changed, and with these it needs an approval that it does not have."
_BEHIND = (
    "Not run: a call before it waits for a decision, and calls run one after another. Call it again once that one has its result, if it is "
    "still needed."
)


def _waiting_result(
    run: ToolRun, call: ToolCallRecord, args: Mapping[str, Any], text: str, changes: Mapping[str, Sequence[Any]] | None = None
) -> ToolCallResult:
    """Return the result of a call that waits again.

    Args:
        run: The execution of the call.
        call: The call, bound to the definitions of tools for which it waits.
        args: The arguments with which it waits.
        text: Says so, to the model.
        changes: What has changed in its tool's definition.
    """
    record = replace(outer_call(run), call=call).changed(args, changes)
    text = text.format(arguments=compact(record["calls"][0]["args"]))
    result = failed(call, text, PermissionError)
    metadata = metadata_of_open_run(record)
    return replace(result, message=result.message.model_copy(update={"id": f"open-{uuid.uuid4()}", "response_metadata": metadata}))


_logger = logging.getLogger("langchain_autotools")


# ---------------------------------------------------------------------------------------------- the batch


GRACE_SECONDS = 1.0
"""Seconds that a cancelled asynchronous tool has to end."""

_POLL_SECONDS = 0.02
"""Seconds between two checks whether an abandoned call has ended."""

_NOT_ALONE = "Not run: {name!r} must run alone, and a call of this turn that took too long has not ended yet."


class CallObserver(Protocol):
    """Observes the calls of a batch, for events and live progress: at once, in any thread. It returns nothing and raises nothing."""

    @property
    def due(self) -> bool:
        """Whether the observer needs control before the next result."""

    def waking(self, wake: Callable[[], None]) -> AbstractContextManager[None]:
        """Return a context in which `wake` is called, in any thread, whenever `due` may become True."""

    def entered(self, call: ToolCallRecord) -> None:
        """Observe that a call begins, in the context in which its tools will run."""

    def progressed(self, call: ToolCallRecord, value: Any) -> None:
        """Observe a value that a tool of the call reports."""

    def answered(self, result: ToolCallResult) -> None:
        """Observe the result of a call, as it will be handed out."""


@dataclass(frozen=True, kw_only=True)
class BatchOptions:
    """The options of a batch of calls.

    Attributes:
        threads: The maximum number of threads for tools in this process.
        limit: The maximum number of calls that run at the same time; None for all.
        on_executing: Called with each call just before its tool runs.
        on_executed: Called with each result as soon as there is one.
        on_progress: Called with the call and each value that its tool reports.
        end: When it must end; `NEVER` where nothing ends it.
        turn: The number of the model's turn that made the calls; None where there is no run.
        admissions: What admits the calls before any of them begins, one after another.
        in_order: Whether a call waits for those before it: one behind a call that waits with a run inside, or since it was changed, does.
        claims: What is claimed in the caller's store; None where nothing is.
        in_run: Whether the batch belongs to a run; else what is claimed ends with it.
        wrappers: What wraps each planned call besides the journal, the claim and the policies, the outermost first.
        is_concerned: Whether a call that a wrapper has changed needs an approval, by the call before and after.
        observer: Observes what becomes of the calls; None where nobody does.
    """

    threads: int
    limit: int | None = None
    on_executing: Sequence[Callable[..., Any]] = ()
    on_executed: Sequence[Callable[..., Any]] = ()
    on_progress: Sequence[Callable[..., Any]] = ()
    end: Deadline = NEVER
    turn: int | None = None
    admissions: Sequence[Admission] = ()
    in_order: bool = False
    claims: Claims | None = None
    in_run: bool = False
    wrappers: Sequence[CallWrapper] = ()
    is_concerned: Concerns = lambda before, after: False
    observer: CallObserver | None = None


class Batch:
    """The state of a batch of calls.

    Args:
        answers: The answers to the calls, in call order.
        options: The options of the batch.
    """

    _awaits: ClassVar[bool] = False
    """Whether the batch can await results of asynchronous functions."""
    _lock: AbstractContextManager[Any] = nullcontext()
    """The lock that is held while a call begins."""

    def __init__(self, answers: Sequence[Answer], options: BatchOptions) -> None:
        self.calls: tuple[ToolCallRecord, ...] = tuple(answer.call for answer in answers)
        self._options = options
        self._end = options.end
        self._observer = options.observer
        self._ended_at: float | None = None
        self._sight = options.end.inside()  # what runs inside the tools find, as long as the batch lasts
        self._begun: set[int] = set()
        self._results: dict[int, ToolCallResult] = {}
        self._whole: dict[int, ToolCallResult] = {}  # of the calls, as they are handed out
        self._pending: set[int] = set()  # the calls that a wrapper has left
        self._ready: set[int] = set()  # results that may be delivered: everybody has been told
        self._failures: dict[int, BaseException] = {}
        self._closed = False
        self._waits = False  # whether a call waits, and those behind it with it
        self._claims: CallClaims | None = None
        self._own_claims = None if options.in_run else options.claims
        self._held: list[int] = []  # the calls whose results are there, and wait for a call to be taken
        self._unreported: set[int] = set()  # results of which nobody has been told meanwhile
        self._progress: Progress | AsyncProgress | None = None
        self._set(answers)

    def _set(self, answers: Sequence[Answer]) -> None:
        """Set the calls to answer.

        Raises:
            ConfigurationError: A retry has an asynchronous strategy, which this batch cannot await.
        """
        self._answers = answers
        self._planned: list[PlannedCall] = []
        self._numbers: list[int] = []  # of the calls that the planned calls belong to
        self._places: list[range] = []  # of each call's own planned calls
        for number, answer in enumerate(answers):
            self._places.append(range(len(self._planned), len(self._planned) + len(answer.planned)))
            self._planned += answer.planned
            self._numbers += [number] * len(answer.planned)
        policies = [one.run.policy for one in self._planned if one.run is not None and one.run.policy is not None]
        for policy in () if self._awaits else policies:
            policy.check_synchronous()
        exclusive = [one.run is not None and one.run.policy is not None and one.run.policy.exclusive for one in self._planned]
        self._exclusive = {number for number, alone in zip(self._numbers, exclusive, strict=True) if alone}
        self._late: list[tuple[int, ToolRun]] = []  # beside exclusive calls: those that have timed out, and may still run
        self._limit = min(self._options.limit or len(answers), len(answers))
        if (claims := self._options.claims) is not None and any(answer.claim_key for answer in answers):
            kind = CallClaims if claims.owned else KeyClaims
            self._claims = kind(claims, answers, lambda: self._closed or bool(self._failures))

    def _admission(self) -> Generator[UserCall, Any, None]:
        """Yield the questions before any call begins, then set the admitted calls."""
        answers = self._answers
        try:
            for admission in self._options.admissions:
                answers = yield from admission.admit(answers)
        except BaseException:
            if self._options.claims is not None:
                self._pending.update(range(len(self._answers)))  # they wait as before
            raise
        self._set(answers)

    def settled(self) -> list[ToolCallResult]:
        """Return a result for every call but pending ones, in call order; unfinished calls are reported as cancelled."""
        return [self._answered(number) for number in range(len(self._answers)) if not self._is_left(number)]

    def _answered(self, number: int) -> ToolCallResult:
        """Return the result of a call in its outgoing form, from the outcomes of its planned calls so far."""
        known = self._whole.get(number)
        if known is not None:
            return known
        places, answer = self._places[number], self._answers[number]
        if self._claims is not None and number in self._claims.given:
            result = answer.placed(self._claims.given[number])
        else:
            results = [self._results.get(index) or cancelled_result(self._planned[index].call) for index in places]
            result = answer.result(results, ended=places[-1] in self._results or not self._ready.isdisjoint(places))
        return self._whole.setdefault(number, result)  # whoever is first: a worker, or who gives the batch up

    # ------------------------------------------------------------------------------------------ claims

    def _ending_claims(self, claims: Claims) -> Generator[UserCall, Any, None]:
        """Yield what the store of claims is told at the end of a batch that belongs to no run."""
        messages = [result.message for result in self.settled()]
        waits = self._pending or any(open_run(message) is not None for message in messages)
        gives_back = waits and claims.release("") is not None
        yield from claims.ending(None if gives_back else {"messages": serialize_messages(messages)})

    def _is_left(self, number: int) -> bool:
        """Whether a call stays pending because a wrapper left it or because it could not be claimed."""
        if self._claims is None or number in self._pending:
            return number in self._pending
        return self._claims.waits(number) and self._results.keys().isdisjoint(self._places[number])

    def _message_with(self, number: int, index: int, result: ToolCallResult) -> ToolMessage | None:
        """Return the message that answers a call if this was the last of its planned calls; else None."""
        places = self._places[number]
        if any(self._planned[later].run is not None for later in places if later > index):
            return None
        known = {**self._results, index: result}
        results = [known.get(place) or self._planned[place].rejected for place in places]
        return self._answers[number].result([one for one in results if one is not None]).message

    def _patience_with(self, *, keeps: bool = True) -> tuple[Callable[[], bool], Callable[[], float | None]]:
        """Return the limits of waiting for a function of the caller's; one that keeps what was done has a second more than the run."""
        if not keeps:
            return self._must_end, self._end.patience
        return lambda: self._grace() == 0, lambda: self._end.patience() if (left := self._grace()) is None else left

    def _due(self, number: int) -> Iterator[tuple[int, Sequence[int]]]:
        """Yield the calls whose results can be delivered now that this call has one, each with its results that nobody was told of.

        Raises:
            AlreadyResumedError: All calls that were to run were taken before.
        """
        due = [] if number in self._pending else [number]
        if self._claims is not None:
            self._held += due
            if self._claims.holds and not self._closed:
                if number + 1 < len(self._answers):
                    return
                self._claims.end()
            due, self._held = self._held, []
        for one in due:
            late = sorted(self._unreported.intersection(self._places[one])) if self._unreported else ()
            self._unreported.difference_update(late)
            yield one, late

    # ------------------------------------------------------------------------------------------ one call

    def _answering(self, index: int) -> Generator[Step, Any, None]:
        """Yield the steps of a planned call and of telling its result. Exceptions are recorded; only the batch's cancellation is raised."""
        try:
            outcome = yield from self._steps(index)
            if self._progress is not None:
                yield Own(self._progress.end, (index,))
            with self._lock:
                told = self._take_up(index, outcome)
            if told is None:
                self._wake()
                return
            yield from self._telling(told)
            with self._lock:
                self._ready |= {index} - self._failures.keys()
                self._wake()
        except BatchEnded:
            pass
        except asyncio.CancelledError as error:
            if self._awaits and self._closed:
                raise
            self._fail(index, error)
        except BaseException as error:
            self._fail(index, error)

    def _telling(self, indexes: Sequence[int]) -> Generator[Step, Any, None]:
        """Yield the steps of telling results."""
        for index in indexes:
            if self._options.on_executed:
                yield Own(self._tell, (self._options.on_executed, self._results[index]))
            number = self._numbers[index]
            if self._observer is not None and index == self._places[number][-1]:
                self._observer.answered(self._answered(number))

    def _telling_at_end(self, results: Sequence[ToolCallResult], *, raises: bool) -> Generator[Step, Any, None]:
        """Yield the steps of telling results of calls that were cut off; what a listener raises may be only logged."""
        for result in results if self._options.on_executed else ():
            try:
                yield Own(self._tell, (self._options.on_executed, result))
            except Exception:
                if raises:
                    raise
                # the batch ends for another reason, which must not be hidden
                _logger.warning("on_executed failed for a call that was cut off", exc_info=True)

    def _tell(self, listeners: Sequence[Callable[..., Any]], *values: Any) -> Any:
        """Call the caller's functions; False, or an awaitable of it, if the batch ended before they did."""
        raise NotImplementedError

    def _wake(self) -> None:
        """Let whoever waits for a result look again."""

    def _fail(self, index: int, error: BaseException) -> None:
        """Record what has ended a call, unless that was answered when it was stopped."""
        with self._lock:
            if not (self._closed and isinstance(error, asyncio.CancelledError)):
                self._failures[index] = error
            self._wake()

    def _steps(self, index: int) -> Steps:
        """Return the steps of a planned call with its wrappers. A call that only needs an answer has at most the outermost of them.

        The outermost first: the journal's entry records the call once, whatever the others make of it, and it is not made again when the
        run goes on in another process, where there may be less time, and other middleware. Then it waits until it may begin, and is
        answered where there is no time, which a later process must find as well. It is claimed in the caller's store, which is not to be
        held meanwhile, and its result is kept there. It has begun. Handlers and middleware do not act on a call that runs elsewhere, see
        one call, however often it is tried, and the result as it is stored. Innermost the tool runs as its policy says: a retry makes
        its own call again and nothing else.
        """
        planned, claims, number = self._planned[index], self._claims, self._numbers[index]
        run, call, claim = planned.run, planned.call, None
        if claims is not None and claims.concerns(number):
            claim = partial(claims.wrap, number, index, partial(self._message_with, number, index))
        if run is None:
            rejected = cast("ToolCallResult", planned.rejected)
            outer = planned.entry or (claim if claims is not None and claims.keeps_all else None)  # never both
            return ends_as(rejected) if outer is None else outer(planned, lambda one: ends_as(rejected))
        proceed: Proceed = _attempted_once if run.policy is None else self._attempts
        if claims is not None and claim is not None:
            proceed = partial(claims.begin, number, proceed=proceed)
        may_wait, around = call is self._answers[number].call, self._options.wrappers  # a bundle has one result
        if call.definitions is not None:
            proceed = partial(_as_listed, call, may_wait, proceed)
        if around or call.approved is not None:
            proceed = partial(_as_approved, planned, self._options.is_concerned, may_wait, proceed)
        for wrapper in (*reversed(around), partial(self._begin, index), claim, partial(self._in_turn, number), planned.entry):
            if wrapper is not None:
                proceed = partial(wrapper, proceed=proceed)
        return proceed(planned)

    def _in_turn(self, number: int, planned: PlannedCall, proceed: Proceed) -> Steps:
        """Wait until a call may begin; leave it pending, or answer it, if one before it waits, or no time is left."""
        if self._waits and planned.call.run is None:
            is_reply = self._options.in_run and self._options.turn
            return ends_as(failed(planned.call, _BEHIND, RuntimeError) if is_reply else PENDING)
        if self._exclusive:
            return self._after_others(number, planned, proceed)
        return ends_as(overdue_result(planned.call)) if self._end.is_over() else proceed(planned)

    def _after_others(self, number: int, planned: PlannedCall, proceed: Proceed) -> Steps:
        """Wait for abandoned calls that still run, at most as long as the call, or what it waits for, may take."""
        run = cast("ToolRun", planned.run)
        beside = [other for place, other in self._late if number in self._exclusive or place in self._exclusive]
        end = time.monotonic() + (run.timeout or max((other.timeout or 0.0 for other in beside), default=0.0))
        while any(not other.ended for other in beside) and not (self._closed or self._failures or self._must_end()):
            if time.monotonic() >= end:
                alone = run if number in self._exclusive else beside[0]
                return failed(run.call, _NOT_ALONE.format(name=alone.call.name), TimeoutError)
            yield Pause(_POLL_SECONDS)
        return overdue_result(planned.call) if self._end.is_over() else (yield from proceed(planned))

    def _begin(self, index: int, planned: PlannedCall, proceed: Proceed) -> Steps:
        """Record that a call begins.

        Raises:
            BatchEnded: It must not any more.
        """
        if self._end.is_set():
            raise BatchEnded
        with self._lock:
            if self._closed or self._failures:
                raise BatchEnded
            self._begun.add(index)
            if self._claims is not None:
                self._claims.begins(self._numbers[index])
            run = planned.run
            if run is not None and run.prepared.reports:
                self._progress = self._progress or self._reports()
                run.report_to(self._progress, index, self._options.turn)
        return proceed(planned)

    def _attempts(self, planned: PlannedCall) -> Steps:
        """Run the tool under its policy."""
        run = cast("ToolRun", planned.run)
        return policy_steps(run, self._may_wait, in_thread=self._uses_thread(run), awaits=self._awaits)

    def _take_up(self, index: int, outcome: Outcome) -> Sequence[int] | None:
        """Record the outcome of a planned call. Return the results to tell of now; None if it is not one to deliver.

        There is none to tell of while results are held back until a call has been claimed.
        """
        number = self._numbers[index]
        places = self._places[number]
        if outcome is PENDING:
            self._waits = self._options.in_order
            if not any(self._results[before].executed for before in places if before < index):
                self._pending.add(number)
                self._ready.update(places)
                return None
            outcome = not_approved(self._planned[index].call)  # a bundle that has begun is answered
        elif outcome.message.response_metadata and open_run(outcome.message) is not None:
            self._waits = self._options.in_order
        if index in self._results:
            _logger.debug("tool %s has ended after it was given up, call %s", outcome.call.name, outcome.call.id)
            return None
        self._results[index] = outcome
        run = self._planned[index].run
        if self._exclusive and run is not None and run.is_late and not run.ended:
            self._late.append((number, run))
        if self._claims is None or not self._claims.holds:
            return (index,)
        self._unreported.add(index)
        return ()

    def _reports(self) -> Progress | AsyncProgress:
        """Return a receiver of progress reports, for when the first reporting call begins."""
        raise NotImplementedError

    def _may_wait(self, seconds: float) -> bool:
        """Whether a call may wait this long before a retry."""
        left = self._end.remaining()
        ending = self._closed or self._failures or self._end.is_set()
        return not ending and (left is None or seconds < left)

    def _in_time(self, run: ToolRun) -> bool:
        """Whether there is time to run the call; its timeout is shortened to the remaining time."""
        left = self._end.remaining()
        if left is not None:
            run.end_within(left)
        return not self._end.is_over()

    def _must_end(self) -> bool:
        """Whether the batch must end now."""
        return self._end.is_over() or self._end.is_set()

    def _grace(self) -> float | None:
        """Return the seconds left for running work when the batch must end; None while it need not."""
        if not self._must_end():
            return None
        if self._ended_at is None:
            self._ended_at = time.monotonic()
        return max(0.0, self._ended_at + GRACE_SECONDS - time.monotonic())

    def _give_up(self, *, all_calls: bool) -> list[ToolCallResult]:
        """Close the batch; return the results of the unfinished calls, or of all calls without a result."""
        self._closed = True
        if not all_calls and self._end.remaining() != 0:
            self._sight.let_go()  # what a tool has begun may outlive the run
        pending = {index for number in self._pending for index in self._places[number]}
        unfinished = sorted((set(range(len(self._planned))) if all_calls else self._begun) - self._results.keys() - pending)
        for index in unfinished:
            planned, error = self._planned[index], self._failures.get(index)
            if planned.call.run is not None and isinstance(error, NOT_CONTINUED):
                self._pending.add(self._numbers[index])
                continue
            if self._claims is not None and index in self._claims.kept:
                self._results[index] = self._claims.kept[index]
                continue
            if index not in self._begun:
                self._results[index] = planned.rejected or cancelled_result(planned.call)
                continue
            if self._claims is not None and self._claims.waits(self._numbers[index]):
                self._pending.add(self._numbers[index])
                continue
            self._results[index] = planned.unfinished(error)
            run = planned.run
            if error is None and run is not None and run.executed and not run.ended and self._uses_thread(run):
                self._log_abandoned(run)
        late = sorted(self._unreported - set(unfinished)) if self._failures else []
        return [self._results[index] for index in [*late, *unfinished] if index in self._results]

    def _log_abandoned(self, run: ToolRun) -> None:
        """Log that a thread continues although its result is no longer awaited."""
        _logger.warning("tool %s is given up while it runs, call %s: a thread cannot be stopped", run.prepared.tool.name, run.call.id)

    def _uses_thread(self, run: ToolRun) -> bool:
        """Whether this batch runs the tool in a thread, which cannot be cancelled."""
        return not (run.prepared.asynchronous if self._awaits else run.prepared.only_asynchronous)


def _attempted_once(planned: PlannedCall) -> Steps:
    """Run the tool once, and return its result."""
    result: ToolCallResult = yield Attempt(1)
    return result
