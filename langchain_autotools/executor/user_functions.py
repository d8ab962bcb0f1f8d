"""Calls of the caller's own functions, possibly slow or asynchronous, which end with the run."""

import asyncio
import inspect
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Iterable
from concurrent.futures import Future, wait
from contextvars import copy_context
from functools import partial
from typing import Any, Protocol, TypeVar

from .event_loops import BackgroundTask, awaited
from .threads import NoThreadError, deeper, run_beside, run_in_thread

NOTHING: Any = object()
"""The return value if the run has ended first."""

UserCall = tuple[Callable[[Any], Any], Any]
"""A function of the caller's, possibly asynchronous, and its argument."""

_Step = TypeVar("_Step")
_Result = TypeVar("_Result")


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


def call_user(
    function: Callable[[Any], Any],
    argument: Any,
    is_over: Callable[[], bool],
    patience: Callable[[], float | None],
    threads: int | None = None,
) -> Any:
    """Return the result of a caller's function; `NOTHING` if the run ended first.

    Args:
        function: The function. It is called here, or in a thread where the run may end meanwhile.
        argument: Its argument.
        is_over: Whether it is to be waited for no longer.
        patience: Returns the seconds until the next check; None for no limit.
        threads: The maximum number of threads that wait for such functions in this process; None for no limit.
    """
    if patience() is None:
        result = function(argument)
    else:
        outcome, forget = _in_thread(function, argument, is_over, threads)
        while not wait([outcome], patience()).done:
            if is_over():
                forget()
                return NOTHING
        result = outcome.result()
    if not inspect.isawaitable(result):
        return result
    task = BackgroundTask(awaited(result))
    task.start()
    while not task.wait(patience()):
        if is_over():
            task.cancel()
            return NOTHING
    return task.result()


async def acall_user(
    function: Callable[[Any], Any],
    argument: Any,
    is_over: Callable[[], bool],
    patience: Callable[[], float | None],
    threads: int | None = None,
) -> Any:
    """Like `ask`, asynchronously. A synchronous function, which may wait for a human, is called in a thread."""
    task = asyncio.create_task(_result_of(function, argument, is_over, threads))
    try:
        while not (await asyncio.wait([task], timeout=patience()))[0]:
            if is_over():
                return NOTHING
        return task.result()
    finally:
        task.cancel()
        await asyncio.wait([task], timeout=1.0)


async def _result_of(function: Callable[[Any], Any], argument: Any, is_over: Callable[[], bool], threads: int | None) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(argument)
    outcome, forget = _in_thread(function, argument, is_over, threads)
    try:
        result = await asyncio.wrap_future(outcome)
    finally:
        forget()
    return await result if inspect.isawaitable(result) else result


def _in_thread(
    function: Callable[[Any], Any], argument: Any, is_over: Callable[[], bool], threads: int | None
) -> tuple[Future[Any], Callable[[], object]]:
    """Return a caller's function as a job in a thread, and a function to abandon it, after which it does not begin."""
    outcome: Future[Any] = Future()
    work = partial(deeper(copy_context()).run, _answer_into, outcome, function, argument, is_over)
    if threads is not None:
        return outcome, run_in_thread(work, threads, "question").abandon
    run_beside(work)
    return outcome, outcome.cancel


def _answer_into(outcome: Future[Any], function: Callable[[Any], Any], argument: Any, is_over: Callable[[], bool]) -> None:
    if not outcome.set_running_or_notify_cancel():
        return
    try:
        outcome.set_result(NOTHING if is_over() else function(argument))  # it may have waited for its thread
    except BaseException as error:
        outcome.set_exception(error)


# ---------------------------------------------------------------------------------------------- listeners
# Calls of callbacks (`on_executing`, `on_executed`, `on_progress`), which end with their batch.


_logger = logging.getLogger("langchain_autotools")

_Listeners = Iterable[Callable[..., Any]]


class Bounds(Protocol):
    """The interface of a batch's end, at which all running work stops."""

    @property
    def may_end(self) -> bool:
        """Whether anything but its last result may end the batch."""

    def patience(self) -> float | None:
        """Return the seconds to wait before checking the end again; None for no limit."""

    def grace(self) -> float | None:
        """Return the seconds left for running work when the batch must end; None while it need not."""


class ListenerCalls:
    """Calls the callbacks of a synchronous batch, one at a time.

    A batch that may end early has them called in a thread of their own, in the order in which they are due.

    Args:
        bounds: When the batch ends.

    Attributes:
        lock: Is held while listeners are called in the thread that they are due in.
    """

    def __init__(self, bounds: Bounds) -> None:
        self.lock = threading.RLock()
        self._bounds = bounds
        self._queue: deque[Callable[[], None]] = deque()
        self._turn = threading.Lock()
        self._thread: int | None = None

    def call(self, listeners: _Listeners, *values: Any) -> bool:
        """Call the callbacks; False if the batch ended before they did.

        Raises:
            BaseException: What one of them raised.
        """
        if not listeners:
            return True
        if not self._bounds.may_end or threading.get_ident() == self._thread:
            with self.lock:
                _call_each(listeners, values)
            return True
        outcome: Future[None] = Future()
        self._put(partial(copy_context().run, _settle, outcome, listeners, values))
        while not wait([outcome], _timeout(self._bounds)).done:
            if self._bounds.grace() == 0:
                _warn()
                return False
        outcome.result()
        return True

    def _put(self, work: Callable[[], None]) -> None:
        with self._turn:
            self._queue.append(work)
            if self._thread is not None:
                return
            self._thread = 0
        try:
            run_beside(self._work)
        except NoThreadError:
            self._work()

    def _work(self) -> None:
        while True:
            with self._turn:
                if not self._queue:
                    self._thread = None
                    return
                self._thread = threading.get_ident()
                work = self._queue.popleft()
            work()


def _settle(outcome: Future[None], listeners: _Listeners, values: tuple[Any, ...]) -> None:
    try:
        _call_each(listeners, values)
        outcome.set_result(None)
    except BaseException as error:
        outcome.set_exception(error)


def _call_each(listeners: _Listeners, values: tuple[Any, ...]) -> None:
    for listener in listeners:
        answer = listener(*values)
        if inspect.isawaitable(answer):
            task = BackgroundTask(awaited(answer))
            task.start()
            task.wait()
            task.result()


async def acall_listeners(bounds: Bounds, listeners: _Listeners, *values: Any) -> bool:
    """Call the callbacks on the running loop; False if the batch ended before they did.

    A synchronous listener holds the loop, and cannot be left.
    """
    ended = True
    for listener in listeners:
        answer = listener(*values)
        if inspect.isawaitable(answer):
            ended = await _ends(answer, bounds) and ended
    return ended


async def _ends(answer: Awaitable[Any], bounds: Bounds) -> bool:
    """Whether an asynchronous callback ends before its batch."""
    if not bounds.may_end:
        await answer
        return True
    task = asyncio.ensure_future(answer)
    try:
        while not (await asyncio.wait([task], timeout=_timeout(bounds)))[0]:
            if bounds.grace() == 0:
                _warn()
                return False
        await task
        return True
    finally:
        if not task.done():
            task.add_done_callback(lambda left: left.cancelled() or left.exception())  # nobody else will look at it
            task.cancel()


def _timeout(bounds: Bounds) -> float | None:
    grace = bounds.grace()
    return bounds.patience() if grace is None else grace


def _warn() -> None:
    _logger.warning("a listener (on_executing, on_executed or on_progress) is not waited for any longer: its batch of calls has ended")
