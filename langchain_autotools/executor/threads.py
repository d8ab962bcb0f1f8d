"""Daemon threads for tools, used again when they become free.

A thread that runs a tool may have to be given up (a timeout, a closed stream). Threads of `concurrent.futures` and of the event
loop's own executor are joined when the program or the loop ends, so one tool that hangs would hang them too; daemon threads
do not. There is no upper number: a call never waits for another call's thread.
"""

import os
import queue
import threading
from collections.abc import Callable

__all__ = ["run_in_thread"]

_IDLE_SECONDS = 5.0  # how long a free thread waits for more work

_lock = threading.Lock()
_free: list["_Worker"] = []


class _Worker(threading.Thread):
    def __init__(self, work: Callable[[], None]) -> None:
        super().__init__(name="autotools-tool", daemon=True)
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.give(work)

    def give(self, work: Callable[[], None]) -> None:
        self._inbox.put(work)

    def run(self) -> None:
        while not self._is_done():
            with _lock:
                _free.append(self)

    def _is_done(self) -> bool:
        """Do one piece of work; True if none came and none can come any more."""
        try:
            work = self._inbox.get(timeout=_IDLE_SECONDS)
        except queue.Empty:
            with _lock:
                if self in _free:
                    _free.remove(self)
                    return True
            work = self._inbox.get()  # taken out of `_free` a moment ago: its work is on the way
        work()
        return False


def run_in_thread(work: Callable[[], None]) -> None:
    """Run `work` in a daemon thread, at once. It must not raise."""
    with _lock:
        worker = _free.pop() if _free else None
    if worker is not None:
        worker.give(work)
    else:
        _Worker(work).start()


def _after_fork() -> None:
    """A child process has none of its parent's threads, and perhaps a lock that one of them held."""
    global _lock
    _lock = threading.Lock()
    _free.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
