"""What batches of running calls share, whoever waits for them."""

import logging
import time
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any, ClassVar, Protocol

from langchain_core.messages import ToolMessage

from ...deadline import NEVER, Deadline
from ...errors import AlreadyResumedError
from ...messages.calls import ToolCallRecord
from ...messages.live import attach_messages
from ..approval.claims import Claims
from ..approval.gate import Gate
from ..call import ToolRun
from ..context import AsyncProgress, Progress
from ..plan import Answer, PlannedCall
from ..results import ToolCallResult, cancelled_result
from .alone import GivenUp
from .asking import Question

_logger = logging.getLogger("langchain_autotools")

GRACE_SECONDS = 1.0
"""How long a cancelled asynchronous tool may take to notice."""


class Watcher(Protocol):
    """Is told at once what becomes of the calls of a batch."""

    @property
    def due(self) -> bool:
        """Whether it wants the batch to hand over before the next result is there."""

    def waking(self, wake: Callable[[], None]) -> AbstractContextManager[None]:
        """Have a function called, in any thread, whenever it may be due."""

    def entered(self, call: ToolCallRecord) -> None:
        """A call begins, in the context in which its tools will run."""

    def progressed(self, call: ToolCallRecord, value: Any) -> None:
        """A tool of the call reports something."""

    def answered(self, result: ToolCallResult) -> None:
        """The call has its result."""


class CallEntry(Protocol):
    """The place of one call in a journal."""

    def result(self, call: ToolCallRecord, run: Callable[[], ToolCallResult | None]) -> ToolCallResult | None:
        """The call's result: the one that stands there, else what `run` gives, which will stand there. None, where it
        gives none, does not."""

    def recorded(self, call: ToolCallRecord) -> ToolCallResult | None:
        """The result of a call that an earlier process has begun, and for which this one has nothing to run, such as a tool that is gone;
        None where none has."""


class CallJournal(Protocol):
    """Remembers the results of calls for a later process, which will make the same calls in the same order."""

    def entries(self, count: int) -> Sequence[CallEntry]:
        """The places of so many calls, in call order. It is asked before any of them begins, in the thread of the run."""


@dataclass(frozen=True, kw_only=True)
class BatchOptions:
    """How some calls run together.

    Attributes:
        threads: How many threads tools may have in this process.
        limit: How many calls may run at the same time; None for all of them.
        on_executing: Called with each call just before its tool runs.
        on_executed: Called with each result as soon as there is one.
        on_progress: Called with the call and each value that its tool reports.
        end: When it must end; `NEVER` where nothing ends it.
        turn: The number of the model's turn that made the calls; None where there is no run.
        exclusive: The positions of the calls that no other one runs beside.
        gate: Lets the calls pass before any of them runs; None: all of them pass.
    """

    threads: int
    limit: int | None = None
    on_executing: Sequence[Callable[..., Any]] = ()
    on_executed: Sequence[Callable[..., Any]] = ()
    on_progress: Sequence[Callable[..., Any]] = ()
    end: Deadline = NEVER
    turn: int | None = None
    exclusive: Collection[int] = ()
    gate: Gate | None = None


class Batch:
    """The state of some calls that run together.

    Args:
        answers: What answers each call, in call order.
        options: How they run.
    """

    _awaits: ClassVar[bool] = False
    """Whether it can await what asynchronous functions return."""

    def __init__(self, answers: Sequence[Answer], options: BatchOptions) -> None:
        self.calls: tuple[ToolCallRecord, ...] = tuple(answer.call for answer in answers)
        self._options = options
        self._set(answers)
        self._on_executing = options.on_executing
        self._on_executed = options.on_executed
        self._on_progress = options.on_progress
        self._turn = options.turn
        self._threads = options.threads
        self._end = options.end
        self._ended_at: float | None = None
        self._sight = options.end.inside()  # what runs inside the tools find, as long as the batch lasts
        self._exclusive = options.exclusive
        self._left = GivenUp(options.exclusive)
        self._begun: set[int] = set()
        self._results: dict[int, ToolCallResult] = {}
        self._ready: set[int] = set()  # results that may be delivered: everybody has been told
        self._failures: dict[int, BaseException] = {}
        self._closed = False
        self.watcher: Watcher | None = None
        self.journal: CallJournal | None = None
        self._entries: Sequence[CallEntry] = ()  # of the planned calls in the journal
        self._claims: Claims | None = None
        self._held: list[int] = []  # the calls whose results are there, and wait for a call to be taken
        self._untold: set[int] = set()  # results of which nobody has been told meanwhile

    def _set(self, answers: Sequence[Answer]) -> None:
        """Take up what is to be answered.

        Raises:
            ConfigurationError: A retry has an asynchronous strategy, which this batch cannot await.
        """
        self._answers = answers
        self._planned: list[PlannedCall] = [planned for answer in answers for planned in answer.planned]
        policies = () if self._awaits else [one.run.policy for one in self._planned if one.run is not None and one.run.policy is not None]
        for policy in policies:
            policy.check_synchronous()
        ends = accumulate(len(answer.planned) for answer in answers)
        self._places = [range(end - len(answer.planned), end) for answer, end in zip(answers, ends, strict=True)]  # of each answer's own
        self._limit = min(self._options.limit or len(answers), len(answers))

    def _pass(self, gate: Gate, answers: Sequence[Answer]) -> None:
        """Take up what is left to be answered once everybody was asked."""
        self._exclusive = gate.govern(answers)
        self._left = GivenUp(self._exclusive)
        self._set(answers)
        if any(answer.claim_key for answer in answers):
            self._claims = Claims(gate.approvals.claim, answers, lambda: self._closed or bool(self._failures))

    def settled(self) -> list[ToolCallResult]:
        """A result for every call, in call order; calls that have not ended are reported as cancelled. Those that were to be taken
        and have not begun are left out: they go on waiting."""
        return [self._answered(number) for number in range(len(self._answers)) if not self._is_left(number)]

    def _answered(self, number: int, *, ended: bool = False) -> ToolCallResult:
        """The result of a call, from what became of its planned calls so far."""
        places = self._places[number]
        if self._claims is not None and number in self._claims.given:
            return self._answers[number].placed(self._claims.given[number])
        results = [self._results.get(index) or cancelled_result(self._planned[index].call) for index in places]
        return self._answers[number].result(results, ended=ended or not self._ready.isdisjoint(places))

    # ------------------------------------------------------------------------------------------ claims

    def _is_left(self, number: int) -> bool:
        """Whether a call was to be taken, and nothing became of it."""
        return self._claims is not None and self._claims.waits(number) and self._results.keys().isdisjoint(self._places[number])

    def _claimed(self, index: int, run: ToolRun) -> Generator[Question | None, Any, ToolCallResult | None] | None:
        """The steps around a planned call whose call is to be taken; None where it needs not be."""
        number = -1 if self._claims is None else self._number(index)
        if self._claims is None or not self._claims.concerns(number):
            return None
        return self._claims.steps(number, index, lambda: run.tried + int(run.executed) > 0, partial(self._whole, number, index))

    def _whole(self, number: int, index: int, result: ToolCallResult) -> ToolMessage | None:
        """The message that answers a call, where this was the last of its planned calls that run."""
        places = self._places[number]
        if any(self._planned[later].run is not None for later in places if later > index):
            return None
        known = {**self._results, index: result}
        results = [known.get(place) or self._planned[place].rejected for place in places]
        return self._answers[number].result([one for one in results if one is not None]).message

    def _patience_with(self, question: Question) -> tuple[Callable[[], bool], Callable[[], float | None]]:
        """How long the store of claims is waited for: to keep a result it has a second more than the run."""
        if self._claims is not None and question[0] == self._claims.take:
            return self._must_end, self.patience
        return lambda: self.grace() == 0, lambda: self.patience() if (left := self.grace()) is None else left

    def _results_to_tell(self, index: int) -> Sequence[int]:
        """The results that the listeners are told of: this one, unless it is held back until a call of the batch has been taken."""
        if self._claims is None or not self._claims.holds:
            return (index,)
        self._untold.add(index)
        return ()

    def _due(self, number: int) -> Sequence[int]:
        """The calls whose results leave now that the one of this call is there.

        Raises:
            AlreadyResumedError: All calls that were to run were taken before.
        """
        if self._claims is None:
            return (number,)
        self._held.append(number)
        if self._claims.holds and not self._closed:
            if number + 1 < len(self._answers):
                return ()
            self._claims.end()
        due, self._held = self._held, []
        return due

    def _results_held_back(self, number: int) -> list[int]:
        """The results of a call of which nobody has been told while they were held back."""
        late = sorted(self._untold.intersection(self._places[number]))
        self._untold.difference_update(late)
        return late

    # ------------------------------------------------------------------------------------------ beginning and ending

    def _tell_answer(self, watcher: Watcher, index: int) -> None:
        """Tell of a call's result, where this was the last of its planned calls."""
        number = self._number(index)
        if index == self._places[number][-1]:
            watcher.answered(self._answered(number, ended=True))

    def _number(self, index: int) -> int:
        """The number of the call that a planned call belongs to."""
        return next(number for number, places in enumerate(self._places) if index in places)

    def _first_failure(self) -> BaseException:
        return self._failures[min(self._failures)]

    def _begin(self, index: int) -> bool:
        """Note that a call is about to run; False if it must not any more."""
        if self._closed or self._failures:
            return False
        self._begun.add(index)
        if self._claims is not None:
            self._claims.begins(self._number(index))
        run = self._planned[index].run
        if run is not None and run.prepared.reports:
            run.report_to(self._reports(), index, self._turn)
        return True

    def _reports(self) -> Progress | AsyncProgress:
        """What takes the progress that tools of this batch report, made when the first one begins that may."""
        raise NotImplementedError

    def _may_wait(self, seconds: float) -> bool:
        """Whether a call may wait for so long before it is tried again."""
        left = self._end.remaining()
        ending = self._closed or self._failures or self._end.is_set()
        return not ending and (left is None or seconds < left)

    def _in_time(self, run: ToolRun) -> bool:
        """Whether there is time to run it; it will take no more than there is."""
        left = self._end.remaining()
        if left is not None:
            run.end_within(left)
        return not self._end.is_over()

    def _must_end(self) -> bool:
        """Whether nobody is to be waited for any more."""
        return self._end.is_over() or self._end.is_set()

    def patience(self) -> float | None:
        """How many seconds to wait before asking that; None for any number."""
        return self._end.patience()

    @property
    def may_end(self) -> bool:
        """Whether anything but its last result may end the batch."""
        return self._end.may_come

    def grace(self) -> float | None:
        """Seconds that are left to what is still at work when the batch must end; None as long as it need not."""
        if not self._must_end():
            return None
        if self._ended_at is None:
            self._ended_at = time.monotonic()
        return max(0.0, self._ended_at + GRACE_SECONDS - time.monotonic())

    def _keep(self, index: int, result: ToolCallResult) -> bool:
        """Note a call's result; False if the call was given up before."""
        if index in self._results:
            _logger.debug("tool %s has ended after it was given up, call %s", result.call.name, result.call.id)
            return False
        self._results[index] = result
        self._left.note(self._number(index), self._planned[index].run)
        return True

    def _waits(self, index: int, run: ToolRun) -> Generator[float, None, ToolCallResult | None]:
        """Yield seconds to wait until a call may begin; returns its answer where it may not."""
        return self._left.waits(self._number(index), run, lambda: self._closed or bool(self._failures) or self._must_end())

    def _give_up(self, *, all_calls: bool) -> list[ToolCallResult]:
        """Close the batch; returns the results of the calls that had begun and not ended, or of all that have none."""
        self._closed = True
        if not all_calls and self._end.remaining() != 0:
            self._sight.let_go()  # what a tool has begun may outlive the run
        unfinished = sorted((set(range(len(self._planned))) if all_calls else self._begun) - self._results.keys())
        for index in unfinished:
            planned, error = self._planned[index], self._failures.get(index)
            if self._claims is not None and index in self._claims.kept:
                self._results[index] = self._claims.kept[index]
                continue
            if index not in self._begun:
                self._results[index] = planned.rejected or cancelled_result(planned.call)
                continue
            self._results[index] = planned.unfinished(error)
            run = planned.run
            if error is None and run is not None and run.executed and not run.ended and self._uses_thread(run):
                given_up(run)
        late = sorted(self._untold - set(unfinished)) if self._failures else []
        return [self._results[index] for index in [*late, *unfinished]]

    def _uses_thread(self, run: ToolRun) -> bool:
        """Whether this batch runs the tool in a thread, which cannot be cancelled."""
        raise NotImplementedError


class Settled(Protocol):
    """Running calls."""

    def settled(self) -> list[ToolCallResult]:
        """What became of each."""


@contextmanager
def bringing(results: Settled) -> Iterator[None]:
    """Attach the results of running calls to an exception that ends them."""
    try:
        yield
    except AlreadyResumedError:
        raise
    except BaseException as error:
        attach_messages(error, [result.message for result in results.settled()])
        raise


def given_up(run: ToolRun) -> None:
    """Log that a thread goes on although nobody waits for it."""
    _logger.warning("tool %s is given up while it runs, call %s: a thread cannot be stopped", run.prepared.tool.name, run.call.id)


async def outcome_of(run: ToolRun) -> ToolCallResult | BaseException:
    """What an asynchronous tool comes to, for a task: one that raises SystemExit or KeyboardInterrupt ends the whole loop."""
    try:
        return await run.ainvoke()
    except (KeyboardInterrupt, SystemExit) as error:
        return error


def result_of(outcome: ToolCallResult | BaseException) -> ToolCallResult:
    """The result, of what `outcome_of` returned."""
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome
