"""One event loop in a daemon thread, on which asynchronous tools run when the caller is synchronous.

It starts when it is first needed and lives as long as the process, so that what tools keep on a loop (sessions, connection
pools) stays usable from one call to the next. A tool on this loop that itself waits for a synchronous run would wait for its
own loop; such an inner run is given a second loop, and so on.
"""

import asyncio
import atexit
import os
import threading
from collections.abc import Coroutine
from contextlib import suppress
from contextvars import ContextVar, copy_context
from typing import Any, Generic, TypeVar

__all__ = ["BackgroundTask"]

_T = TypeVar("_T")

_level: ContextVar[int] = ContextVar("autotools_background_level", default=0)
_lock = threading.Lock()
_loops: list["_LoopThread"] = []
_left_behind: list["_LoopThread"] = []


class _LoopThread(threading.Thread):
    def __init__(self) -> None:
        super().__init__(name="autotools-loop", daemon=True)
        self.loop = asyncio.new_event_loop()
        self.ending = False
        self.start()

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
        """Run for good: neither what asyncio lets through a loop, nor a tool that stops the loop it finds, ends the tools of others."""
        while not self.ending:
            with suppress(KeyboardInterrupt, SystemExit):
                self.loop.run_forever()


def _loop_at(level: int) -> asyncio.AbstractEventLoop:
    with _lock:
        while len(_loops) <= level:
            _loops.append(_LoopThread())
        return _loops[level].loop


class BackgroundTask(Generic[_T]):
    """A coroutine for the background loop, in a copy of the caller's context. It begins with `start`."""

    def __init__(self, coroutine: Coroutine[Any, Any, _T]) -> None:
        self._coroutine = coroutine
        self._done = threading.Event()
        self._task: asyncio.Task[_T] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Let it run, on a loop that no caller of this run is waiting on."""
        level = _level.get()
        context = copy_context()
        context.run(_level.set, level + 1)
        self._loop = _loop_at(level)

        def begin() -> None:
            self._task = asyncio.get_running_loop().create_task(self._coroutine, context=context)
            self._task.add_done_callback(lambda _: self._done.set())

        self._loop.call_soon_threadsafe(begin)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it has ended; False if it has not after `timeout` seconds."""
        return self._done.wait(timeout)

    def cancel(self) -> None:
        """Ask it to stop, as `asyncio.Task.cancel` does."""
        if self._loop is None:
            self._coroutine.close()
            self._done.set()
        elif not self._done.is_set():
            self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self._task is not None:  # always: `begin` was queued before
            self._task.cancel()

    def result(self) -> _T:
        """What it returned. Call it after `wait`.

        Raises:
            BaseException: what it raised; `asyncio.CancelledError` if it was cancelled.
        """
        if self._task is None:
            raise asyncio.CancelledError
        return self._task.result()


def _after_fork() -> None:
    """A child process has none of its parent's threads. Their loops are kept unused: closing them would close shared files."""
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
