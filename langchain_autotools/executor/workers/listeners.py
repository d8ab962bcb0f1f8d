"""Calls of callbacks (`on_executing`, `on_executed`, `on_progress`), which end with their batch."""

import asyncio
import inspect
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Future, wait
from contextvars import copy_context
from functools import partial
from typing import Any, Protocol

from .background import BackgroundTask, awaited
from .threads import NoThreadError, run_beside

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


async def acall(bounds: Bounds, listeners: _Listeners, *values: Any) -> bool:
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
