"""Event loops for the asynchronous tools of synchronous callers.

A tool whose executor was made on an event loop belongs there, with the sessions and connections that it opened: where that loop runs
in another thread, and answers, the tool runs on it. All others run on one loop in a daemon thread. It starts when it is first needed
and lives as long as the process, so that what tools keep on it stays usable from one call to the next. A tool that itself waits, on
its loop, for a synchronous run would wait for its own loop; such an inner run is given another one, and so on.
"""

import asyncio
import atexit
import logging
import os
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Collection, Coroutine
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from typing import Any, Generic, TypeVar

from .threads import NoThreadError

_logger = logging.getLogger("langchain_autotools")

_T = TypeVar("_T")

Home = Callable[[], asyncio.AbstractEventLoop | None]
"""A function that returns the loop that tools belong to; None if it is unknown or gone."""

_ANSWER_SECONDS = 1.0  # how long a loop may take to begin a task before it is taken to be blocked

_waiting: ContextVar[tuple[asyncio.AbstractEventLoop, ...]] = ContextVar("autotools_waiting_loops", default=())
"""Loops whose threads wait for a background task, so that nothing can run on them."""
_lock = threading.Lock()
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
            self._serve()
        finally:
            tasks = asyncio.all_tasks(self.loop)
            for task in tasks:
                task.cancel()
            self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()

    def _serve(self) -> None:
        """Run the loop permanently: exceptions that pass through asyncio, or a tool that stops the loop, do not end other tools."""
        while not self.ending:
            with suppress(KeyboardInterrupt, SystemExit):
                self.loop.run_forever()


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the loop that runs in this thread; None if there is none."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def home_of_caller() -> Home:
    """Return a function that returns the loop running in this thread. The loop is not kept alive."""
    loop = running_loop()
    return (lambda: None) if loop is None else weakref.ref(loop)


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


async def awaited(awaitable: Awaitable[_T]) -> _T:
    """Return the result of an awaitable, as a coroutine."""
    return await awaitable


def _after_fork() -> None:
    """Reset the loops in a forked child process. The parent's loops are kept unused: closing them would close shared files."""
    global _lock
    _lock = threading.Lock()
    _left_behind.extend(_loops)
    _loops.clear()


@atexit.register
def _stop_loops() -> None:
    for thread in _loops:
        thread.ending = True
        thread.loop.call_soon_threadsafe(thread.loop.stop)
    for thread in _loops:
        thread.join(timeout=1.0)  # a tool that blocks its loop must not keep the program alive


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def cancel_tasks(tasks: Collection[BackgroundTask[Any]], seconds: float) -> None:
    """Cancel tasks, and wait this many seconds for them to end."""
    for task in tasks:
        task.cancel()
    end = time.monotonic() + seconds
    for task in tasks:
        if not task.wait(max(0.0, end - time.monotonic())):
            _logger.warning("an asynchronous tool goes on although it was cancelled")
