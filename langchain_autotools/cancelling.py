"""The argument `cancel=`, which ends one run from outside.

A cancelled run is one whose deadline has come: what it waits for ends in the same way. Nothing of this module is entered by a run that
nobody can cancel.
"""

import asyncio
import inspect
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal

from .deadline import Deadline, deadline_after
from .errors import ConfigurationError

POLL_SECONDS = 0.1
"""Seconds between two checks whether a waiting run is cancelled, if nothing wakes it."""

CancelFlag = threading.Event | asyncio.Event | Callable[[], bool]
"""The values of `cancel=`: an event, or a function that returns whether the run is cancelled."""

_EVENTS = (threading.Event, asyncio.Event)
_WANTED = "cancel must be a threading.Event, an asyncio.Event, or a function that returns True or False"


class Cancel(Deadline):
    """A deadline that comes when the caller cancels the run, or after some seconds.

    Whoever has cancelled cannot take it back: an event that is cleared, or a function that changes its mind, changes nothing. What
    the function raises it raises here, each time.

    Args:
        flag: An event that somebody sets, or a function that is asked.
        seconds: The time limit in seconds; None for no limit.
    """

    def __init__(self, flag: CancelFlag, seconds: float | None = None) -> None:
        super().__init__(seconds)
        self.poll = POLL_SECONDS
        self._flag = flag
        self._error: BaseException | None = None

    @property
    def reason(self) -> Literal["deadline", "cancelled"]:
        """The stop reason of a run that this deadline has ended."""
        return "cancelled" if self.came else "deadline"

    def is_set(self) -> bool:
        """Whether the caller has cancelled.

        Raises:
            BaseException: What the caller's function raised.
            ConfigurationError: It returned neither True nor False.
        """
        if self._error is not None:
            raise self._error
        if not self.came:
            try:
                self.came = self._asked()
            except BaseException as error:
                self._error = error
                raise
        return self.came

    def _asked(self) -> bool:
        if isinstance(self._flag, _EVENTS):
            return self._flag.is_set()
        answer = self._flag()
        if not isinstance(answer, bool):
            raise ConfigurationError(f"{_WANTED}: it returned {type(answer).__name__}")
        return answer

    def _comes(self, within: float) -> bool:
        return self.is_set() or super()._comes(within)

    def watch(self) -> "asyncio.Task[None]":
        """Return a task that ends when the caller has cancelled, or when the caller's function has raised; see `is_set`."""
        return asyncio.create_task(self._until_set())

    async def _until_set(self) -> None:
        with suppress(Exception):
            while not self.is_set():
                await self._pause()

    async def _pause(self) -> None:
        """Wait until the next check; an event of this loop wakes by itself."""
        if isinstance(self._flag, asyncio.Event):
            try:
                async with asyncio.timeout(POLL_SECONDS):
                    await self._flag.wait()
            except TimeoutError:
                return
            except RuntimeError:  # it belongs to another loop
                await asyncio.sleep(POLL_SECONDS)
        else:
            await asyncio.sleep(POLL_SECONDS)


def deadline_of(flag: CancelFlag | None, seconds: float | None) -> Deadline:
    """Return the deadline of a run from the caller's flag and time limit, either of which may be None.

    Raises:
        ConfigurationError: The flag is neither an event nor a function.
    """
    return deadline_after(seconds) if flag is None else Cancel(checked_cancel(flag), seconds)


def checked_cancel(flag: Any) -> Any:
    """Return the value of `cancel=`; raise if it is invalid.

    Raises:
        ConfigurationError: It is neither an event nor a function.
    """
    if not isinstance(flag, _EVENTS) and (not callable(flag) or inspect.iscoroutinefunction(flag) or isinstance(flag, type)):
        other = " (of another kind of event, its is_set)" if hasattr(flag, "is_set") else ""
        raise ConfigurationError(f"{_WANTED}{other}, not {type(flag).__name__}")
    return flag
