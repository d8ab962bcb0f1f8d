"""A batch of calls while it runs: in threads for a synchronous caller, as tasks for an asynchronous one."""

import asyncio
import logging
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import nullcontext
from contextvars import Context, copy_context
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from ..errors import ConfigurationError
from ..event_bus import Alarm
from ..messages.calls import ToolCallRecord
from ..retry import Awaited
from .batch import GRACE_SECONDS, Batch, BatchOptions
from .call import ToolRun
from .context import AsyncProgress, Progress, ProgressReport
from .plan import Answer
from .results import ToolCallResult, failed, overdue_result
from .steps import Attempt, BatchEnded, CallUser, Follow, InThread, Own, Pause, Step, Wrap
from .tools import SourceTool
from .user_functions import (
    NOTHING,
    BackgroundTask,
    Job,
    ListenerCalls,
    NoThreadError,
    UserCall,
    acall_listeners,
    acall_user,
    call_user,
    context_of_caller,
    deeper,
    run_in_thread,
    running_loop,
    settle,
)

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
        self._listeners = ListenerCalls(self._end, *self._patience_with())
        self._tasks: set[BackgroundTask[ToolCallResult | BaseException]] = set()
        self._jobs: list[Job] = []
        self._next = self._active = 0
        self._taken: set[int] = set()  # while some calls must run alone: those that are being executed

    def deliver(self) -> Generator[ToolCallResult | None, None, None]:
        """Run the calls and yield their results."""
        with nullcontext() if self._observer is None else self._observer.waking(self._wake):
            try:
                if self._options.admissions:
                    driven(self._admission(), self._ask)
                for number, places in enumerate(self._places):
                    alone = self._limit == 1  # one after another: each when it is asked for
                    begins = not self._closed and (alone or not number)
                    # an event loop may run here, which tools do not expect; the caller may have to leave, or to observe the call meanwhile
                    if begins and alone and self._end.poll is None and self._observer is None and running_loop() is None:
                        context_of_caller().run(self._execute, number)
                    elif begins:
                        self._start_workers(range(number, number + 1 if alone else len(self._places)))
                    if not self._ready.issuperset(places):
                        yield from self._wait_for(places)
                    for due, late in self._due(number):
                        driven(self._telling(late), partial(self._carry_out, number))
                        yield self._whole.get(due) or self._answered(due)
                if self._own_claims is not None:
                    driven(self._ending_claims(self._own_claims), lambda told: call_user(*told, *self._patience_with()))
            finally:
                self._stop()
                if self._own_claims is not None:
                    self._own_claims.abandon()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _start_workers(self, numbers: range) -> None:
        """Start threads that take these calls."""
        work = partial(self._work, {number: deeper(context_of_caller()) for number in numbers})
        wanted = min(self._limit, self._options.threads)
        with self._changed:
            self._next = numbers.start
            self._active += wanted
        try:
            for _ in range(wanted):
                self._jobs.append(run_in_thread(work, self._options.threads))
        except NoThreadError as error:
            if len(numbers) > 1:
                _logger.warning("%s; calls of one turn do not run side by side", error)
            started = len(self._jobs) if len(numbers) > 1 else 0
            with self._changed:
                self._active -= wanted - max(started, 1)
            if not started:
                work()

    def _work(self, contexts: Mapping[int, Context]) -> None:
        """The work of a worker thread: one call after another, until none is left."""
        while (number := self._take(contexts)) is not None:
            contexts[number].run(self._execute, number)
            if self._exclusive:
                with self._changed:
                    self._taken.discard(number)
                    self._changed.notify_all()
        with self._changed:
            self._active -= 1
            self._changed.notify_all()

    def _take(self, contexts: Collection[int]) -> int | None:
        with self._changed:
            if self._exclusive:
                self._changed.wait_for(partial(self._may_take, contexts))
            if self._closed or self._failures or self._next not in contexts:
                return None
            number = self._next
            self._next += 1
            if self._exclusive:
                self._taken.add(number)
            return number

    def _may_take(self, contexts: Collection[int]) -> bool:
        """Whether the next call may begin beside the running ones, or none is left to begin."""
        if self._closed or self._failures or self._next not in contexts or not self._taken:
            return True
        return self._next not in self._exclusive and self._taken.isdisjoint(self._exclusive)

    def _wait_for(self, places: range) -> Iterator[None]:
        """Wait for the results of a call; yield whenever a watcher needs control meanwhile.

        After a failure running calls end first; a cancelled run waits for nothing."""
        while not self._closed and not self._ready.issuperset(places):
            with self._changed:
                self._changed.wait_for(partial(self._is_news, places), self._end.poll)
            if self._ready.issuperset(places):
                return
            if self._observer is not None and self._observer.due:
                yield
            cancelled = self._end.is_set()
            if cancelled:
                self._stop(all_calls=True)
            if self._failures and (cancelled or not self._active):
                raise self._failures[min(self._failures)]

    def _is_news(self, places: range) -> bool:
        """Whether a call has its results, or the wait for them must end for another reason."""
        ended = self._ready.issuperset(places) or bool(self._failures and not self._active)
        return ended or self._end.came or (self._observer is not None and self._observer.due)

    # ------------------------------------------------------------------------------------------ one call

    def _execute(self, number: int) -> None:
        """Answer one call. Exceptions are recorded; none is raised."""
        self._sight.stay_in_sight()
        if self._observer is not None:
            self._observer.entered(self._answers[number].call)
        for index in self._places[number]:
            if number not in self._pending:
                driven(self._answering(index), partial(self._carry_out, index))

    def _attempt(self, run: ToolRun, number: int) -> ToolCallResult:
        announced = number > 1 or not (listeners := self._options.on_executing) or self._tell(listeners, run.call)
        if self._closed or (not announced and self._end.is_set()):
            raise BatchEnded
        if not self._in_time(run):
            return overdue_result(run.call)
        if run.prepared.only_asynchronous:
            return self._run_in_background(run)
        return run.invoke() if run.timeout is None else self._run_with_timeout(run)

    def _carry_out(self, index: int, step: Step) -> Any:
        if isinstance(step, Attempt):
            return self._attempt(cast("ToolRun", self._planned[index].run), step.number)
        if isinstance(step, Pause):
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._failures, step.seconds)
        elif isinstance(step, Follow):
            wait([step.flight], self._end.remaining())
        elif isinstance(step, CallUser):
            return call_user(step.function, step.argument, *self._patience_with(keeps=step.keeps))
        elif isinstance(step, Own):
            return step.function(*step.args)
        elif isinstance(step, InThread):
            return step.function(lambda steps: driven(steps, partial(self._carry_out, index)))
        elif isinstance(step, Wrap):
            carry = partial(driven, execute=partial(self._carry_out, index))
            return call_user(step.function, carry, *self._patience_with(keeps=step.keeps))
        return None

    def _ask(self, question: UserCall) -> Any:
        """Call a function that decides about a call before it begins."""
        return NOTHING if self._must_end() else call_user(*question, self._must_end, self._end.patience, self._options.threads)

    def _reports(self) -> Progress | AsyncProgress:
        return Progress(self._fail, self._tell_progress, self._listeners.lock)

    def _tell_progress(self, report: ProgressReport) -> None:
        if self._observer is not None:
            self._observer.progressed(self._answers[self._numbers[report.index]].call, report.value)
        if self._options.on_progress:
            self._tell(self._options.on_progress, report.call, report.value)

    def _tell(self, listeners: Sequence[Callable[..., Any]], *values: Any) -> bool:
        return self._listeners.call(listeners, *values)

    def _run_with_timeout(self, run: ToolRun) -> ToolCallResult:
        """Run a synchronous tool in a thread of its own, which is abandoned at its timeout."""
        begun = threading.Event()
        outcome: Future[ToolCallResult] = Future()

        def work() -> None:
            begun.set()
            settle(outcome, lambda: overdue_result(run.call) if self._end.is_over() else run.invoke())

        try:
            job = run_in_thread(partial(deeper(copy_context()).run, work), self._options.threads)
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
            self._log_abandoned(run)
            return run.timed_out()

    def _run_in_background(self, run: ToolRun) -> ToolCallResult:
        with self._changed:
            if self._closed:
                raise asyncio.CancelledError
            task = BackgroundTask(_outcome_of(run), run.home())
            self._tasks.add(task)  # before it starts: an interrupt may come at any moment
        try:
            task.start()
        except NoThreadError as error:
            task.cancel()
            return failed(run.call, str(error), error)
        in_time = _has_ended(task, run)
        if not in_time:
            run.stop_for_timeout()
            _cancel_tasks([task], GRACE_SECONDS)
        with self._changed:
            self._tasks.discard(task)
        return result_of(task.result()) if in_time else run.timed_out()

    def _stop(self, *, all_calls: bool = False) -> None:
        with self._changed:
            results = [] if self._closed else self._give_up(all_calls=all_calls)
            if results:
                self._changed.notify_all()  # a call may wait to be tried again, or to be alone
            if self._progress is not None:
                self._progress.stop()
            tasks, self._tasks = self._tasks, set()
            self._changed.notify_all()
            jobs = self._jobs if results else []
        for job in jobs:
            job.abandon()
        if tasks:
            _cancel_tasks(tasks, GRACE_SECONDS)
        if results:
            driven(self._telling_at_end(results, raises=all_calls), partial(self._carry_out, -1))


_Result = TypeVar("_Result")


_Step = TypeVar("_Step")


def driven(steps: Generator[_Step, Any, _Result], execute: Callable[[_Step], Any]) -> _Result:
    """Run a generator whose steps are carried out by `execute`; exceptions are raised at the yield. Returns its result."""
    proceed, value = steps.send, None
    while True:
        try:
            step = proceed(value)
        except StopIteration as end:
            result: _Result = end.value
            return result
        try:
            proceed, value = steps.send, execute(step)
        except BaseException as error:
            proceed, value = steps.throw, error


def _cancel_tasks(tasks: Collection[BackgroundTask[Any]], seconds: float) -> None:
    """Cancel tasks, and wait this many seconds for them to end."""
    for task in tasks:
        task.cancel()
    end = time.monotonic() + seconds
    for task in tasks:
        if not task.wait(max(0.0, end - time.monotonic())):
            _logger.warning("an asynchronous tool goes on although it was cancelled")


# ---------------------------------------------------------------------------------------------- patience
# Waiting of a synchronous caller for an asynchronous tool.


SLOW_SECONDS = 5.0
"""Seconds after which a synchronous caller is warned about a slow asynchronous tool."""

_STRANDED = (
    "a synchronous run has it on an event loop of its own, which never hears of what was opened on another one (a session, a connection). "
    "If it uses such a thing, call the model with ainvoke or astream, make the model on that loop, or open the thing within the tool"
)


def _has_ended(task: BackgroundTask[Any], run: ToolRun) -> bool:
    """Wait for an asynchronous tool within its timeout; log a warning if the wait may be endless."""
    first = SLOW_SECONDS if run.timeout is None else min(SLOW_SECONDS, run.timeout)
    if task.wait(first) or first == run.timeout:
        return task.wait(0)
    if isinstance(run.prepared.tool, SourceTool):
        return task.wait(None if run.timeout is None else run.timeout - first)
    what = "the event loop that it belongs to may be blocked" if task.is_home else _STRANDED
    _logger.warning("tool %s has not ended after %g s, call %s: %s", run.prepared.tool.name, first, run.call.id, what)
    return task.wait(None if run.timeout is None else run.timeout - first)


# ---------------------------------------------------------------------------------------------- async batch
#
# A batch of calls for an asynchronous caller: as tasks on its event loop, synchronous tools in threads.


class AsyncToolCallBatch(AsyncIterator[ToolCallResult]):
    """Running calls, as an asynchronous iterator over their results in call order.

    Nothing runs before the first result is asked for. `aclose`, the end of an `async with` block, or cancelling the task that
    waits cancels what is still running.

    Attributes:
        calls: The calls, in order.
        delivery: The same results; None whenever the observer of the calls wants to be let in before the next one.
    """

    def __init__(self, answers: Sequence[Answer], options: BatchOptions) -> None:
        self._batch = _TaskBatch(answers, options)
        self.delivery = self._batch.deliver()
        self.calls: tuple[ToolCallRecord, ...] = self._batch.calls

    async def __anext__(self) -> ToolCallResult:
        return cast("ToolCallResult", await anext(self.delivery))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Cancel the batch: asynchronous tools get a second to stop, threads are abandoned."""
        await self.delivery.aclose()

    def settled(self) -> list[ToolCallResult]:
        """Return a result for every call, in call order. Unfinished calls are reported as cancelled.

        For after the iteration has ended, has raised or was closed, when nothing changes any more.
        """
        return self._batch.settled()


class _TaskBatch(Batch):
    """The batch's tasks. It holds no reference to its `AsyncToolCallBatch`, so that dropping that one ends the iteration."""

    _awaits = True

    def __init__(self, answers: Sequence[Answer], options: BatchOptions) -> None:
        super().__init__(answers, options)
        self._tasks: list[asyncio.Task[None]] = []
        self._watch: asyncio.Future[None]  # for a cancellation

    async def deliver(self) -> AsyncGenerator[ToolCallResult | None, None]:
        """Run the calls and yield their results."""
        self._watch = self._end.watch()
        try:
            if self._options.admissions:
                await adriven(self._admission(), self._ask)
            slots = asyncio.Semaphore(self._limit)
            for number, places in enumerate(self._places):
                if not self._closed and (not number or self._limit == 1):  # one after another: each when it is asked for
                    last = number + 1 if self._limit == 1 else len(self._places)
                    self._start(range(number, last), slots)
                while not self._closed and await self._pauses(self._tasks[number]):
                    yield None
                if not self._closed and not self._ready.issuperset(places):
                    await self._end_early()
                for due, late in self._due(number):
                    await adriven(self._telling(late), partial(self._carry_out, number))
                    yield self._whole.get(due) or self._answered(due)
            if self._own_claims is not None:
                await adriven(self._ending_claims(self._own_claims), lambda told: acall_user(*told, *self._patience_with()))
        finally:
            self._watch.cancel()
            await self._stop()
            if self._own_claims is not None:
                await self._own_claims.aabandon()

    async def _pauses(self, task: asyncio.Task[None]) -> bool:
        """Wait for a call, or the caller's cancellation; True if the watcher needs control first."""
        ends: list[asyncio.Future[None]] = [task, self._watch]
        if self._observer is None:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            return False
        alarm = Alarm()
        with self._observer.waking(alarm.ring):
            while not any(end.done() for end in ends):
                if self._observer.due:
                    return True
                await asyncio.wait([*ends, alarm.rung], return_when=asyncio.FIRST_COMPLETED)
                alarm.reset()
        return False

    def _start(self, numbers: Iterable[int], slots: asyncio.Semaphore) -> None:
        """Start tasks that each find the earlier ones in the list: one may begin at once on a loop with eager tasks."""
        for number in numbers:
            self._tasks.append(asyncio.create_task(self._execute(number, slots)))

    async def _end_early(self) -> None:
        """End a batch with unfinished calls. After a failure running calls end first; a cancelled run waits for nothing."""
        if not self._end.is_set():
            others: asyncio.Future[Any] = asyncio.ensure_future(asyncio.wait(self._tasks))
            await asyncio.wait([others, self._watch], return_when=asyncio.FIRST_COMPLETED)
            others.cancel()
        if self._end.is_set():
            await self._stop(all_calls=True)
        if self._failures:
            raise self._failures[min(self._failures)]

    # ------------------------------------------------------------------------------------------ one call

    async def _execute(self, number: int, slots: asyncio.Semaphore) -> None:
        """Answer one call. Exceptions are recorded; only the batch's own cancellation is raised."""
        self._sight.stay_in_sight()
        if self._observer is not None:
            self._observer.entered(self._answers[number].call)
        alone = self._exclusive  # they begin after all earlier calls, and the others after the earlier ones among them
        before = [task for place, task in enumerate(self._tasks[:number]) if number in alone or place in alone] if alone else ()
        if before:
            await asyncio.wait(before)
        async with slots:
            for index in self._places[number]:
                if number not in self._pending:
                    await adriven(self._answering(index), partial(self._carry_out, index))

    async def _attempt(self, run: ToolRun, number: int) -> ToolCallResult:
        announced = number > 1 or await self._tell(self._options.on_executing, run.call)
        if not announced and self._end.is_set():
            raise BatchEnded
        if not self._in_time(run):
            return overdue_result(run.call)
        return await (_run_as_task(run) if run.prepared.asynchronous else self._run_in_thread(run))

    async def _carry_out(self, index: int, step: Step) -> Any:
        if isinstance(step, Attempt):
            return await self._attempt(cast("ToolRun", self._planned[index].run), step.number)
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
        elif isinstance(step, Awaited):
            return await _outcome_within(self._end.remaining(), step.value)
        elif isinstance(step, CallUser):
            return await acall_user(step.function, step.argument, *self._patience_with(keeps=step.keeps))
        elif isinstance(step, Own):
            return await step.function(*step.args)
        elif isinstance(step, Wrap):
            return await acall_user(
                step.afunction, lambda steps: adriven(steps, partial(self._carry_out, index)), *self._patience_with(keeps=step.keeps)
            )
        elif isinstance(step, InThread):
            raise ConfigurationError("a journal is for synchronous runs: tasks of an event loop have none")
        else:
            loop = asyncio.get_running_loop()
            landed = loop.create_future()
            run = cast("ToolRun", self._planned[index].run)
            step.flight.add_done_callback(lambda _: _tell_loop(loop, landed, run))
            await asyncio.wait([landed], timeout=self._end.remaining())
        return None

    async def _ask(self, question: UserCall) -> Any:
        """Call a function that decides about a call before it begins."""
        return NOTHING if self._must_end() else await acall_user(*question, self._must_end, self._end.patience, self._options.threads)

    def _reports(self) -> Progress | AsyncProgress:
        return AsyncProgress(self._failures.__setitem__, self._tell_progress)

    async def _tell_progress(self, report: ProgressReport) -> None:
        if self._observer is not None:
            self._observer.progressed(self._answers[self._numbers[report.index]].call, report.value)
        await self._tell(self._options.on_progress, report.call, report.value)

    def _tell(self, listeners: Sequence[Callable[..., Any]], *values: Any) -> Awaitable[bool]:
        return acall_listeners(self._end, *self._patience_with(), listeners, *values)

    async def _run_in_thread(self, run: ToolRun) -> ToolCallResult:
        loop = asyncio.get_running_loop()
        begun, ended = loop.create_future(), loop.create_future()
        outcome: list[ToolCallResult | BaseException] = []

        def work() -> None:
            _tell_loop(loop, begun, run)
            try:
                outcome.append(overdue_result(run.call) if self._end.is_over() else run.invoke())
            except BaseException as error:
                outcome.append(error)
            _tell_loop(loop, ended, run)

        try:
            job = run_in_thread(partial(deeper(copy_context()).run, work), self._options.threads)
        except NoThreadError as error:
            return failed(run.call, str(error), error)
        try:
            await asyncio.wait([begun], timeout=self._end.remaining())
            if not begun.done() and job.abandon():
                return overdue_result(run.call)
            self._in_time(run)
            await asyncio.wait([ended], timeout=run.timeout)
        finally:
            if not outcome:
                job.abandon()
        if not outcome:
            self._log_abandoned(run)
            return run.timed_out()
        return result_of(outcome[0])

    async def _stop(self, *, all_calls: bool = False) -> None:
        results = [] if self._closed else self._give_up(all_calls=all_calls)
        unfinished = [task for task in self._tasks if not task.done()]
        if self._progress is not None:
            unfinished += self._progress.stop()
        for task in unfinished:
            task.cancel()
        if unfinished:
            await asyncio.wait(unfinished, timeout=2 * GRACE_SECONDS)
        await adriven(self._telling_at_end(results, raises=all_calls), partial(self._carry_out, -1))


async def adriven(steps: Generator[_Step, Any, _Result], execute: Callable[[_Step], Awaitable[Any]]) -> _Result:
    """Like `driven`, asynchronously."""
    proceed, value = steps.send, None
    while True:
        try:
            step = proceed(value)
        except StopIteration as end:
            result: _Result = end.value
            return result
        try:
            proceed, value = steps.send, await execute(step)
        except BaseException as error:
            proceed, value = steps.throw, error


async def _outcome_within(seconds: float | None, value: Awaitable[Any]) -> Any:
    """Return the result of an awaitable; None if it takes longer."""
    try:
        async with asyncio.timeout(seconds) as scope:
            return await value
    except TimeoutError:
        if not scope.expired():
            raise
        return None


async def _run_as_task(run: ToolRun) -> ToolCallResult:
    task = asyncio.create_task(_outcome_of(run))
    try:
        await asyncio.wait([task], timeout=run.timeout)
    except asyncio.CancelledError:
        await _cancel(task)
        raise
    if task.done():
        return result_of(task.result())
    run.stop_for_timeout()
    await _cancel(task)
    return run.timed_out()


def result_of(outcome: ToolCallResult | BaseException) -> ToolCallResult:
    """Return the result, or raise the exception, from `_outcome_of`."""
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


async def _outcome_of(run: ToolRun) -> ToolCallResult | BaseException:
    """Return the result or exception of an asynchronous tool, because SystemExit or KeyboardInterrupt in a task would end the loop."""
    try:
        return await run.ainvoke()
    except (KeyboardInterrupt, SystemExit) as error:
        return error


async def _cancel(task: asyncio.Task[Any]) -> None:
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # nobody else will look at it
    task.cancel()
    await asyncio.wait([task], timeout=GRACE_SECONDS)
    if not task.done():
        _logger.warning("an asynchronous tool goes on although it was cancelled")


def _tell_loop(loop: asyncio.AbstractEventLoop, event: asyncio.Future[None], run: ToolRun) -> None:
    """Wake the waiting loop if it still runs."""

    def tell() -> None:
        if not event.done():
            event.set_result(None)

    try:
        loop.call_soon_threadsafe(tell)
    except RuntimeError:  # the loop is closed: nobody waits any more
        _logger.debug("tool %s goes on, or has ended, after its event loop, call %s", run.prepared.tool.name, run.call.id)
