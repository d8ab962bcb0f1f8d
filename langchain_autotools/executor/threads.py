"""Reused daemon threads for tools, limited in number.

A thread that runs a tool may have to be given up (a timeout, a closed stream). Threads of `concurrent.futures` and of the event
loop's own executor are joined when the program or the loop ends, so one tool that hangs would hang them too; daemon threads
do not.

Work beyond the limit waits for a thread. A tool that itself runs tools would wait for threads that wait for it, so each depth of
such runs counts its own, told by context. Functions that wait for a human (`approve`) are counted for themselves too: tools never
wait for them. Where the context does not reach (a tool that starts threads without it), and where all work hangs, one thread more is
started as often as nothing has ended for some seconds: what waits always goes on.
"""

import os
import queue
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from contextvars import Context, ContextVar

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


def _after_fork() -> None:
    """Reset the state in a forked child process, which has none of its parent's threads but maybe a held lock."""
    global _lock, _watched
    _lock = threading.Lock()
    _free.clear()
    _depths.clear()
    _watched = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
