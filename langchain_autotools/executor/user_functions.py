"""Where the caller's own functions run, possibly slow or asynchronous: in threads, on event loops, until the run ends."""

import asyncio
import atexit
import inspect
import logging
import os
import queue
import threading
import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable
from concurrent.futures import Future, wait
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from functools import partial
from typing import Any, Generic, TypeVar

from ..deadline import Deadline

NOTHING: Any = object()
"""The return value if the run has ended first."""

_T = TypeVar("_T")

UserFunction = Callable[[Any], Any]
"""A function of the caller's, possibly asynchronous."""

IsOver = Callable[[], bool]
"""A function that says whether something is to be waited for no longer."""

Patience = Callable[[], float | None]
"""A function that returns the seconds until the next check; None for no limit."""

UserCall = tuple[UserFunction, Any]
"""A function of the caller's, possibly asynchronous, and its argument."""


def call_user(function: UserFunction, argument: Any, is_over: IsOver, patience: Patience, threads: int | None = None) -> Any:
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
    task = BackgroundTask(_awaited(result))
    task.start()
    while not task.wait(patience()):
        if is_over():
            task.cancel()
            return NOTHING
    return task.result()


async def acall_user(function: UserFunction, argument: Any, is_over: IsOver, patience: Patience, threads: int | None = None) -> Any:
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


async def _result_of(function: UserFunction, argument: Any, is_over: IsOver, threads: int | None) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(argument)
    outcome, forget = _in_thread(function, argument, is_over, threads)
    try:
        result = await asyncio.wrap_future(outcome)
    finally:
        forget()
    return await result if inspect.isawaitable(result) else result


def _in_thread(function: UserFunction, argument: Any, is_over: IsOver, threads: int | None) -> tuple[Future[Any], Callable[[], object]]:
    """Return a caller's function as a job in a thread, and a function to abandon it, after which it does not begin."""
    outcome: Future[Any] = Future()
    work = partial(deeper(copy_context()).run, _answer_into, outcome, function, argument, is_over)
    if threads is not None:
        return outcome, run_in_thread(work, threads, "question").abandon
    run_beside(work)
    return outcome, outcome.cancel


def _answer_into(outcome: Future[Any], function: UserFunction, argument: Any, is_over: IsOver) -> None:
    if not outcome.set_running_or_notify_cancel():
        return
    settle(outcome, lambda: NOTHING if is_over() else function(argument))  # it may have waited for its thread


def settle(outcome: Future[_T], function: Callable[..., _T], *args: Any) -> None:
    """Set the result of a future to what a function returns or raises."""
    try:
        outcome.set_result(function(*args))
    except BaseException as error:
        outcome.set_exception(error)


# ---------------------------------------------------------------------------------------------- listeners
# Calls of callbacks (`on_executing`, `on_executed`, `on_progress`), which end with their batch.


_logger = logging.getLogger("langchain_autotools")

_NOT_AWAITED = "a listener (on_executing, on_executed or on_progress) is not waited for any longer: its batch of calls has ended"

_Listeners = Iterable[Callable[..., Any]]


class ListenerCalls:
    """Calls the callbacks of a synchronous batch, one at a time.

    A batch that may end early has them called in a thread of their own, in the order in which they are due.

    Args:
        end: When the batch ends.
        is_over: Whether listeners are to be waited for no longer.
        patience: Returns the seconds until the next check; None for no limit.

    Attributes:
        lock: Is held while listeners are called in the thread that they are due in.
    """

    def __init__(self, end: Deadline, is_over: IsOver, patience: Patience) -> None:
        self.lock = threading.RLock()
        self._end, self._is_over, self._patience = end, is_over, patience
        self._queue: deque[Callable[[], None]] = deque()
        self._turn = threading.Lock()
        self._thread: int | None = None

    def call(self, listeners: _Listeners, *values: Any) -> bool:
        """Call the callbacks; False if the batch ended before they did.

        Raises:
            BaseException: What one of them raised.
        """
        if not self._end.may_come or threading.get_ident() == self._thread:
            with self.lock:
                _call_each(listeners, values)
            return True
        outcome: Future[None] = Future()
        self._put(partial(copy_context().run, settle, outcome, _call_each, listeners, values))
        while not wait([outcome], self._patience()).done:
            if self._is_over():
                _logger.warning(_NOT_AWAITED)
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


def _call_each(listeners: _Listeners, values: tuple[Any, ...]) -> None:
    *first, last = values
    for listener in listeners:
        call_user(partial(listener, *first), last, lambda: False, lambda: None)


async def acall_listeners(end: Deadline, is_over: IsOver, patience: Patience, listeners: _Listeners, *values: Any) -> bool:
    """Call the callbacks on the running loop; False if the batch ended before they did. Parameters as of `ListenerCalls`.

    A synchronous listener holds the loop, and cannot be left.
    """
    ended = True
    for listener in listeners:
        answer = listener(*values)
        if inspect.isawaitable(answer) and end.may_come:
            ended = await _ends(answer, is_over, patience) and ended
        elif inspect.isawaitable(answer):
            await answer
    return ended


async def _ends(answer: Awaitable[Any], is_over: IsOver, patience: Patience) -> bool:
    """Whether an asynchronous callback ends before its batch."""
    task = asyncio.ensure_future(answer)
    try:
        while not (await asyncio.wait([task], timeout=patience()))[0]:
            if is_over():
                _logger.warning(_NOT_AWAITED)
                return False
        await task
        return True
    finally:
        if not task.done():
            task.add_done_callback(lambda left: left.cancelled() or left.exception())  # nobody else will look at it
            task.cancel()


# ---------------------------------------------------------------------------------------------- threads
#
# Reused daemon threads for tools, limited in number.
#
# A thread that runs a tool may have to be given up (a timeout, a closed stream). Threads of `concurrent.futures` and of the event
# loop's own executor are joined when the program or the loop ends, so one tool that hangs would hang them too; daemon threads
# do not.
#
# Work beyond the limit waits for a thread. A tool that itself runs tools would wait for threads that wait for it, so each depth of
# such runs counts its own, told by context. Functions that wait for a human (`approve`) are counted for themselves too: tools never
# wait for them. Where the context does not reach (a tool that starts threads without it), and where all work hangs, one thread more is
# started as often as nothing has ended for some seconds: what waits always goes on.

_IDLE_SECONDS = 5.0  # how long a free thread waits for more work
_STALLED_SECONDS = 5.0  # after which time without an end of any work there is one thread more

_depth: ContextVar[int] = ContextVar("autotools_thread_depth", default=0)


class NoThreadError(RuntimeError):
    """Raised when the operating system gives this process no further thread."""


class _Depth:
    """The work of one nesting depth of runs."""

    def __init__(self) -> None:
        self.waiting: deque[Job] = deque()
        self.running = 0
        self.ended = 0


_lock = threading.Lock()
_depths: defaultdict[tuple[str, int], _Depth] = defaultdict(_Depth)
_free: list["_Worker"] = []
_watched = False


class Job:
    """A job for a thread.

    Attributes:
        run: Does it.
    """

    def __init__(self, work: Callable[[], None], depth: _Depth | None) -> None:
        self.run = work
        self._depth = depth  # None: it is not counted, or not any more

    def ended(self) -> "Job | None":
        """Record that the job is done; return the next job of its thread. The caller holds the lock."""
        depth, self._depth = self._depth, None
        if depth is None:
            return None
        depth.ended += 1
        if depth.waiting:
            return depth.waiting.popleft()
        depth.running -= 1
        return None

    def abandon(self) -> bool:
        """Abandon the job. True: it has not begun and never will; else its thread no longer counts."""
        with _lock:
            depth = self._depth
            if depth is None:
                return False
            if self in depth.waiting:
                depth.waiting.remove(self)
                self._depth = None
                return True
            following = self.ended()
        if following is not None:
            _start(following, depth, may_wait=True)
        return False


class _Worker(threading.Thread):
    def __init__(self, job: Job) -> None:
        super().__init__(name="autotools-tool", daemon=True)
        self._inbox: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self.give(job)

    def give(self, job: Job) -> None:
        self._inbox.put(job)

    def run(self) -> None:
        job = self._next()
        while job is not None:
            job.run()
            with _lock:
                job = job.ended()  # what it has done is not kept while it waits
                if job is None:
                    _free.append(self)
            job = job or self._next()

    def _next(self) -> Job | None:
        """Wait for the next job and return it; None if there can be none any more."""
        try:
            return self._inbox.get(timeout=_IDLE_SECONDS)
        except queue.Empty:
            with _lock:
                if self in _free:
                    _free.remove(self)
                    return None
            return self._inbox.get()  # taken out of `_free` a moment ago: its work is on the way


def run_in_thread(work: Callable[[], None], limit: int, kind: str = "tool") -> Job:
    """Run `work` in a daemon thread: at once if this depth has fewer than `limit`, else when one is free. It must not raise.

    Args:
        work: The work.
        limit: The maximum number of threads.
        kind: The kind of work, each with a separate count of threads.

    Raises:
        NoThreadError: No thread can be started, and none is at work that could do it later.
    """
    with _lock:
        depth = _depths[kind, _depth.get()]
        job = Job(work, depth)
        waits = depth.running >= max(1, limit)
        if waits:
            depth.waiting.append(job)
        else:
            depth.running += 1
    if waits:
        _watch()
    else:
        _start(job, depth)
    return job


def run_beside(work: Callable[[], None]) -> None:
    """Run `work` in a daemon thread that counts towards no limit.

    Raises:
        NoThreadError: No thread can be started.
    """
    _start(Job(work, None), None)


def deeper(context: Context) -> Context:
    """Return the context one depth deeper, so that a tool's own tools have threads of their own."""
    context.run(lambda: _depth.set(_depth.get() + 1))
    return context


def _start(job: Job, depth: _Depth | None, *, may_wait: bool = False) -> None:
    """Begin a job, or queue it if no thread can be started while others run, or if it has waited before."""
    with _lock:
        worker = _free.pop() if _free else None
    if worker is not None:
        worker.give(job)
        return
    try:
        _Worker(job).start()
    except RuntimeError as error:
        if depth is not None and _waits_again(job, depth, may_wait):
            _watch()
            return
        raise NoThreadError("no thread can be started to run the tool: the system's limit is reached") from error


def _waits_again(job: Job, depth: _Depth, may_wait: bool) -> bool:
    with _lock:
        depth.running -= 1
        waits = may_wait or depth.running > 0
        if waits:
            depth.waiting.appendleft(job)
        return waits


def _watch() -> None:
    """Start a watcher that keeps queued jobs going."""
    global _watched
    with _lock:
        if _watched:
            return
        _watched = True
    try:
        threading.Thread(target=_start_stalled, name="autotools-tool-watch", daemon=True).start()
    except RuntimeError:  # the next one to wait tries again
        _watched = False


def _start_stalled() -> None:
    """Start one more thread for each depth with queued jobs and no progress for some time, until the queues are empty."""
    global _watched
    ended: dict[_Depth, int] = {}
    while True:
        time.sleep(_STALLED_SECONDS)
        with _lock:
            waiting = [depth for depth in _depths.values() if depth.waiting]
            stalled = [(depth.waiting.popleft(), depth) for depth in waiting if ended.get(depth) == depth.ended]
            for _, depth in stalled:
                depth.running += 1
            ended = {depth: depth.ended for depth in waiting}
            if not waiting:
                _watched = False
                return
        for job, depth in stalled:
            _start(job, depth, may_wait=True)


# ---------------------------------------------------------------------------------------------- event loops
#
# Event loops for the asynchronous tools of synchronous callers.
#
# A tool whose executor was made on an event loop belongs there, with the sessions and connections that it opened: where that loop runs
# in another thread, and answers, the tool runs on it. All others run on one loop in a daemon thread. It starts when it is first needed
# and lives as long as the process, so that what tools keep on it stays usable from one call to the next. A tool that itself waits, on
# its loop, for a synchronous run would wait for its own loop; such an inner run is given another one, and so on.

Home = Callable[[], asyncio.AbstractEventLoop | None]
"""A function that returns the loop that tools belong to; None if it is unknown or gone."""

_ANSWER_SECONDS = 1.0  # how long a loop may take to begin a task before it is taken to be blocked

_waiting: ContextVar[tuple[asyncio.AbstractEventLoop, ...]] = ContextVar("autotools_waiting_loops", default=())
"""Loops whose threads wait for a background task, so that nothing can run on them."""
_loops: list["_LoopThread"] = []
_left_behind: list["_LoopThread"] = []


class _LoopThread(threading.Thread):
    def __init__(self) -> None:
        super().__init__(name="autotools-loop", daemon=True)
        self.loop = asyncio.new_event_loop()
        self.ending = False
        try:
            self.start()
        except RuntimeError as error:
            self.loop.close()
            raise NoThreadError("no thread can be started for the event loop of asynchronous tools") from error

    def run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            while not self.ending:  # exceptions that pass through asyncio, or a tool that stops the loop, do not end other tools
                with suppress(KeyboardInterrupt, SystemExit):
                    self.loop.run_forever()
        finally:
            tasks = asyncio.all_tasks(self.loop)
            for task in tasks:
                task.cancel()
            self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the loop that runs in this thread; None if there is none."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def context_of_caller() -> Context:
    """Return a copy of the waiting caller's context in which the caller's loop is marked as waiting."""
    context = copy_context()
    loop = running_loop()
    if loop is not None:
        context.run(_waiting.set, (*_waiting.get(), loop))
    return context


def _loop_beside(waiting: Collection[asyncio.AbstractEventLoop]) -> asyncio.AbstractEventLoop:
    """Return the first background loop that is not waiting."""
    with _lock:
        for thread in _loops:
            if thread.loop not in waiting:
                return thread.loop
        _loops.append(_LoopThread())
        return _loops[-1].loop


def background_loop() -> asyncio.AbstractEventLoop:
    """Return a background loop for tasks of their own, other than the loop of this thread and those that wait for this caller."""
    running = running_loop()
    return _loop_beside((*_waiting.get(), *(() if running is None else (running,))))


class BackgroundTask(Generic[_T]):
    """A coroutine for a loop in another thread, in a copy of the caller's context. It begins with `start`.

    Args:
        coroutine: The coroutine.
        home: The loop that it belongs to, if that is known.

    Attributes:
        is_home: Whether it runs on that loop.
    """

    def __init__(self, coroutine: Coroutine[Any, Any, _T], home: asyncio.AbstractEventLoop | None = None) -> None:
        self.is_home = False
        self._coroutine = coroutine
        self._home = home
        self._begun = threading.Event()
        self._done = threading.Event()
        self._task: asyncio.Task[_T] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start the coroutine on a loop that no caller of this run is waiting on."""
        if self._done.is_set():  # cancelled before
            return
        context = context_of_caller()
        waiting = context.run(_waiting.get)
        home = self._home
        if home is not None and home not in waiting and home.is_running() and self._begins_on(home, context):
            self.is_home = True
        else:
            self._begins_on(_loop_beside(waiting), context, timeout=None)

    def _begins_on(self, loop: asyncio.AbstractEventLoop, context: Context, timeout: float | None = _ANSWER_SECONDS) -> bool:
        """Whether the coroutine begins on a loop within the timeout. Otherwise it never begins there."""
        withdrawn = False

        def begin() -> None:
            with self._lock:
                if withdrawn or self._done.is_set():
                    return
                self._loop = loop
            self._task = loop.create_task(self._coroutine, context=context)
            self._task.add_done_callback(lambda _: self._done.set())
            self._begun.set()

        try:
            loop.call_soon_threadsafe(begin)
        except RuntimeError:  # it is closed
            return False
        if timeout is None:
            self._loop = loop
            return True
        self._begun.wait(timeout)
        with self._lock:
            withdrawn = self._loop is None
        return not withdrawn

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it has ended; False if it has not after `timeout` seconds."""
        return self._done.wait(timeout)

    def cancel(self) -> None:
        """Cancel it, like `asyncio.Task.cancel`."""
        with self._lock:
            if self._loop is None:
                self._coroutine.close()
                self._done.set()
        if self._loop is not None and not self._done.is_set():
            with suppress(RuntimeError):  # a loop of somebody else's that is closed
                self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self._task is not None:  # always: `begin` was queued before
            self._task.cancel()

    def result(self) -> _T:
        """Return its result. Call it after `wait`.

        Raises:
            BaseException: what it raised; `asyncio.CancelledError` if it was cancelled.
        """
        if self._task is None:
            raise asyncio.CancelledError
        return self._task.result()


async def _awaited(awaitable: Awaitable[_T]) -> _T:
    """Return the result of an awaitable, as a coroutine."""
    return await awaitable


def _threads_after_fork() -> None:
    """Reset the state in a forked child process, which has none of its parent's threads but maybe a held lock.

    The parent's loops are kept unused: closing them would close shared files.
    """
    global _lock, _watched
    _lock = threading.Lock()
    _free.clear()
    _depths.clear()
    _watched = False
    _left_behind.extend(_loops)
    _loops.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_threads_after_fork)


@atexit.register
def _stop_loops() -> None:
    for thread in _loops:
        thread.ending = True
        thread.loop.call_soon_threadsafe(thread.loop.stop)
    for thread in _loops:
        thread.join(timeout=1.0)  # a tool that blocks its loop must not keep the program alive
