"""A batch of calls for a synchronous caller: in its own thread, in worker threads, or on a background loop."""

import asyncio
import logging
import threading
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, wait
from contextvars import Context, copy_context
from functools import partial
from types import TracebackType
from typing import Any, Self, cast

from ..messages.calls import ToolCallRecord
from .batch import GRACE_SECONDS, Batch, BatchOptions, log_abandoned
from .call import ToolRun, outcome_of, result_of
from .call_hooks import Attempt, BatchEnded, CallUser, Follow, InThread, Pause, Step, Wrap
from .context import Progress, ProgressReport
from .event_loops import BackgroundTask, cancel_tasks, context_of_caller, running_loop
from .plan import Answer
from .results import ToolCallResult, failed, overdue_result
from .threads import Job, NoThreadError, deeper, run_in_thread
from .tools import SourceTool
from .user_functions import NOTHING, ListenerCalls, UserCall, call_user, driven

_logger = logging.getLogger("langchain_autotools")


class ToolCallBatch(Iterator[ToolCallResult]):
    """Running calls, as an iterator over their results in call order.

    Nothing runs before the first `next`. `close`, the end of a `with` block, or letting go of the iterator cancels what is
    still running.

    Attributes:
        calls: The calls, in order.
        delivery: The same results; None whenever the observer of the calls wants to be let in before the next one.
    """

    def __init__(self, answers: Sequence[Answer], options: BatchOptions) -> None:
        self._batch = _ThreadBatch(answers, options)
        self.delivery = self._batch.deliver()
        self.calls: tuple[ToolCallRecord, ...] = self._batch.calls

    def __next__(self) -> ToolCallResult:
        return cast("ToolCallResult", next(self.delivery))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Cancel the batch: asynchronous tools get a second to stop, threads are abandoned."""
        self.delivery.close()

    def settled(self) -> list[ToolCallResult]:
        """Return a result for every call, in call order. Unfinished calls are reported as cancelled.

        For after the iteration has ended, has raised or was closed, when nothing changes any more.
        """
        return self._batch.settled()


class _ThreadBatch(Batch):
    """The batch's threads. It holds no reference to its `ToolCallBatch`, so that dropping that one ends the iteration at once."""

    def __init__(self, answers: Sequence[Answer], options: BatchOptions) -> None:
        super().__init__(answers, options)
        self._lock = self._changed = threading.Condition()
        self._listeners = ListenerCalls(self)
        self._progress: Progress | None = None
        self._tasks: set[BackgroundTask[ToolCallResult | BaseException]] = set()
        self._jobs: list[Job] = []
        self._next = self._active = 0
        self._taken: set[int] = set()  # while some calls must run alone: those that are being executed

    def deliver(self) -> Generator[ToolCallResult | None, None, None]:
        """Run the calls and yield their results."""
        with self._observer.waking(self._wake):
            yield from self._deliver()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _deliver(self) -> Generator[ToolCallResult | None, None, None]:
        try:
            if self._options.admissions:
                driven(self._admission(), self._ask)
            alone = self._limit <= 1
            if not alone:
                self._start_workers()
            for number, places in enumerate(self._places):
                if alone and not self._closed:
                    self._run_alone(number)
                for index in places:
                    yield from self._wait_for(index)
                for due in self._due(number):
                    self._tell_results(self._results_held_back(due))
                    yield self._whole.get(due) or self._answered(due)
        finally:
            self._stop()

    def _start_workers(self) -> None:
        contexts = [deeper(context_of_caller()) for _ in self.calls]
        work = partial(self._work, contexts)
        self._active = wanted = min(self._limit, self._threads)
        try:
            for _ in range(wanted):
                self._jobs.append(run_in_thread(work, self._threads))
        except NoThreadError as error:
            _logger.warning("%s; calls of one turn do not run side by side", error)
            with self._changed:
                self._active -= wanted - max(len(self._jobs), 1)
            if not self._jobs:
                work()

    def _work(self, contexts: Sequence[Context]) -> None:
        """The work of a worker thread: one call after another, until none is left."""
        while (number := self._take()) is not None:
            contexts[number].run(self._execute_all, number)
            if self._exclusive:
                self._give_back(number)
        self._rest()

    def _take(self) -> int | None:
        with self._changed:
            if self._exclusive:
                self._changed.wait_for(self._may_take)
            if self._closed or self._failures or self._next == len(self._answers):
                return None
            number = self._next
            self._next += 1
            if self._exclusive:
                self._taken.add(number)
            return number

    def _give_back(self, number: int) -> None:
        with self._changed:
            self._taken.discard(number)
            self._changed.notify_all()

    def _may_take(self) -> bool:
        """Whether the next call may begin beside the running ones, or none is left to begin."""
        if self._closed or self._failures or self._next == len(self._answers) or not self._taken:
            return True
        return self._next not in self._exclusive and self._taken.isdisjoint(self._exclusive)

    def _rest(self) -> None:
        with self._changed:
            self._active -= 1
            self._changed.notify_all()

    def _run_alone(self, number: int) -> None:
        """Run one call while no other runs, in the caller's thread if possible.

        It is not if an event loop runs there, which tools may not expect, or if the caller must be able to leave, or to observe
        the call meanwhile."""
        context = context_of_caller()
        if running_loop() is None and self._end.poll is None and not self._observer.listens:
            context.run(self._execute_all, number)
            return
        deeper(context)

        def work() -> None:
            context.run(self._execute_all, number)
            self._rest()

        self._active = 1
        try:
            self._jobs.append(run_in_thread(work, self._threads))
        except NoThreadError:
            work()

    def _wait_for(self, index: int) -> Iterator[None]:
        """Wait for a result; yield whenever a watcher needs control meanwhile.

        After a failure running calls end first; a cancelled run waits for nothing."""
        while index not in self._ready and not self._closed:
            with self._changed:
                self._changed.wait_for(partial(self._is_news, index), self._end.poll)
            if index in self._ready:
                return
            if self._observer.due:
                yield
            cancelled = self._end.is_set()
            if cancelled:
                self._stop(all_calls=True)
            if self._failures and (cancelled or not self._active):
                raise self._first_failure()

    def _is_news(self, index: int) -> bool:
        """Whether a call has its result, or the wait for it must end for another reason."""
        ended = index in self._ready or bool(self._failures and not self._active)
        return ended or self._end.came or self._observer.due

    # ------------------------------------------------------------------------------------------ one call

    def _execute_all(self, number: int) -> None:
        self._sight.stay_in_sight()
        self._observer.entered(self._answers[number].call)
        for index in self._places[number]:
            if number not in self._pending:
                self._execute(index)

    def _execute(self, index: int) -> None:
        """Answer one call. Exceptions are recorded; none is raised."""
        try:
            outcome = driven(self._steps(index), partial(self._carry_out, index))
            if self._progress is not None:
                self._progress.end(index)
            with self._changed:
                if not self._take_up(index, outcome):
                    self._changed.notify_all()
                    return
            self._tell_results(self._results_to_tell(index))
            with self._changed:
                if index not in self._failures:
                    self._ready.add(index)
                self._changed.notify_all()
        except BatchEnded:
            return
        except BaseException as error:
            self._fail(index, error)

    def _fail(self, index: int, error: BaseException) -> None:
        with self._changed:
            if not (self._closed and isinstance(error, asyncio.CancelledError)):  # else its call was answered when it was stopped
                self._failures[index] = error
            self._changed.notify_all()

    def _attempt(self, run: ToolRun, number: int) -> ToolCallResult:
        announced = number > 1 or self._listeners.call(self._on_executing, run.call)
        if self._closed or (not announced and self._end.is_set()):
            raise BatchEnded
        return self._run(run)

    def _carry_out(self, index: int, step: Step) -> Any:
        if isinstance(step, Attempt):
            return self._attempt(cast("ToolRun", self._planned[index].run), step.number)
        if isinstance(step, Pause):
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._failures, step.seconds)
        elif isinstance(step, Follow):
            wait([step.flight], self._end.remaining())
        elif isinstance(step, CallUser):
            return call_user(step.function, step.argument, *self._patience_with(step))
        elif isinstance(step, InThread):
            return step.function(lambda steps: driven(steps, partial(self._carry_out, index)))
        elif isinstance(step, Wrap):
            return call_user(step.function, lambda steps: driven(steps, partial(self._carry_out, index)), *self._patience_with(step))
        return None

    def _ask(self, question: UserCall) -> Any:
        """Call a function that decides about a call before it begins."""
        return NOTHING if self._must_end() else call_user(*question, self._must_end, self.patience, self._threads)

    def _reports(self) -> Progress:
        if self._progress is None:
            self._progress = Progress(self._fail, self._tell_progress, self._listeners.lock)
        return self._progress

    def _tell_progress(self, report: ProgressReport) -> None:
        self._observer.progressed(self._answers[self._numbers[report.index]].call, report.value)
        self._listeners.call(self._on_progress, report.call, report.value)

    def _tell_results(self, indexes: Sequence[int]) -> None:
        for index in indexes:
            self._listeners.call(self._on_executed, self._results[index])
            number = self._numbers[index]
            if index == self._places[number][-1]:
                self._observer.answered(self._answered(number))

    def _uses_thread(self, run: ToolRun) -> bool:
        return not run.prepared.only_asynchronous

    def _run(self, run: ToolRun) -> ToolCallResult:
        if not self._in_time(run):
            return overdue_result(run.call)
        if not self._uses_thread(run):
            return self._run_in_background(run)
        return run.invoke() if run.timeout is None else self._run_with_timeout(run)

    def _run_with_timeout(self, run: ToolRun) -> ToolCallResult:
        """Run a synchronous tool in a thread of its own, which is abandoned at its timeout."""
        begun = threading.Event()
        outcome: Future[ToolCallResult] = Future()

        def work() -> None:
            begun.set()
            try:
                outcome.set_result(overdue_result(run.call) if self._end.is_over() else run.invoke())
            except BaseException as error:
                outcome.set_exception(error)

        try:
            job = run_in_thread(partial(deeper(copy_context()).run, work), self._threads)
        except NoThreadError as error:
            return failed(run.call, str(error), error)
        if not begun.wait(self._end.remaining()) and job.abandon():
            return overdue_result(run.call)
        self._in_time(run)
        try:
            return outcome.result(run.timeout)
        except TimeoutError:
            if outcome.done():  # the tool's own, or it ended in this moment
                return outcome.result()
            job.abandon()
            log_abandoned(run)
            return run.timed_out()

    def _run_in_background(self, run: ToolRun) -> ToolCallResult:
        with self._changed:
            if self._closed:
                raise asyncio.CancelledError
            task = BackgroundTask(outcome_of(run), run.home())
            self._tasks.add(task)  # before it starts: an interrupt may come at any moment
        try:
            task.start()
        except NoThreadError as error:
            task.cancel()
            return failed(run.call, str(error), error)
        in_time = has_ended(task, run)
        if not in_time:
            run.stop_for_timeout()
            cancel_tasks([task], GRACE_SECONDS)
        with self._changed:
            self._tasks.discard(task)
        return result_of(task.result()) if in_time else run.timed_out()

    def _stop(self, *, all_calls: bool = False) -> None:
        with self._changed:
            results = [] if self._closed else self._give_up(all_calls=all_calls)
            if results:
                self._changed.notify_all()  # a call may wait to be tried again, or to be alone
            if self._progress is not None:
                self._progress.close()
            tasks, self._tasks = self._tasks, set()
            self._changed.notify_all()
            jobs = self._jobs if results else []
        for job in jobs:
            job.abandon()
        cancel_tasks(tasks, GRACE_SECONDS)
        for result in results:
            try:
                self._listeners.call(self._on_executed, result)
            except Exception:
                if all_calls:
                    raise
                # the batch ends for another reason, which must not be hidden
                _logger.warning("on_executed failed for a call that was cut off", exc_info=True)


# ---------------------------------------------------------------------------------------------- patience
# Waiting of a synchronous caller for an asynchronous tool.


SLOW_SECONDS = 5.0
"""Seconds after which a synchronous caller is warned about a slow asynchronous tool."""

_STRANDED = (
    "a synchronous run has it on an event loop of its own, which never hears of what was opened on another one (a session, a connection); "
    "if it uses such a thing call the model with ainvoke or astream, make the model on that loop, or open the thing within the tool"
)


def has_ended(task: BackgroundTask[Any], run: ToolRun) -> bool:
    """Wait for an asynchronous tool within its timeout; log a warning if the wait may be endless."""
    first = SLOW_SECONDS if run.timeout is None else min(SLOW_SECONDS, run.timeout)
    if task.wait(first) or first == run.timeout:
        return task.wait(0)
    if isinstance(run.prepared.tool, SourceTool):
        return task.wait(None if run.timeout is None else run.timeout - first)
    what = "the event loop that it belongs to may be blocked" if task.is_home else _STRANDED
    _logger.warning("tool %s has not ended after %g s, call %s: %s", run.prepared.tool.name, first, run.call.id, what)
    return task.wait(None if run.timeout is None else run.timeout - first)
