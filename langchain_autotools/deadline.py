"""Deadlines of runs: when a run must end, by time or by its caller's `cancel=`.

A turn is a stream of parts. Each step of it (the wait for its next part) is taken with the deadline in sight. An asynchronous step is
cancelled. A synchronous one finds it by `current_deadline` and gives up by itself (the wires of this package do), or is not followed by
another one. Where there is no deadline, `NEVER` takes its place, and nothing of this is done. What a caller cancels ends in the same way:
`cancelling` has a deadline that comes when it is asked for.
"""

import asyncio
import inspect
import math
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import aclosing, contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Literal, TypeVar, cast

from langchain_core.messages import BaseMessageChunk

from .errors import ConfigurationError

_END: Any = object()
_NO_POSITION: Any = object()
_AGAIN_SECONDS = 1.0
_OURS = "the deadline of a run has come"
_current: ContextVar["Deadline | None"] = ContextVar("autotools_deadline", default=None)

reply_begins: ContextVar[Callable[[], None] | None] = ContextVar("autotools_reply_begins", default=None)
"""The function to call as soon as any piece of a reply has come, also one that is held back; None if nobody waits for it."""

_POLL_SECONDS = 0.1
"""Seconds between two checks whether a waiting run is cancelled, if nothing wakes it."""

_EVENTS = (threading.Event, asyncio.Event)
_WANTED = "cancel must be a threading.Event, an asyncio.Event, or a function that returns True or False"
_Part = TypeVar("_Part")


class Deadline:
    """A moment that a run must not pass, nor those of the runs around it.

    Attributes:
        at: The first of these moments that is known, by `time.monotonic`.
        cut: What ended a turn before it was whole; None as long as nothing has.
        poll: After how many seconds of a wait somebody must look again whether it has come; None where the time alone says so.
        came: Whether the caller was found to have cancelled.
        reply: Returns what is known of the reply that is being read, or that the deadline has cut; None where there is none.
        ends_run: Whether the whole run ends with it, and not a step alone.
    """

    came = False
    ends_run = True

    def __init__(self, seconds: float | None) -> None:
        around = _current.get()
        own = math.inf if seconds is None else time.monotonic() + seconds
        self.at: float = own if around is None else min(own, around.at)
        self.cut: DeadlinePassed | None = None
        self.poll: float | None = None if around is None else around.poll
        self.reply: Callable[[], Any] | None = None
        self._around = around

    @property
    def reason(self) -> Literal["deadline", "cancelled"]:
        """The stop reason of a run that this deadline has ended."""
        return "deadline"

    @property
    def may_come(self) -> bool:
        """Whether the deadline can ever come."""
        return self.at != math.inf or self.poll is not None

    def is_set(self) -> bool:
        """Whether the caller has cancelled."""
        return False

    def is_over(self) -> bool:
        """Whether the time is over, or a run around has ended; a cancellation by the caller of this run does not count."""
        return time.monotonic() >= self.at or (self._around is not None and self._around.passed() is not None)

    def patience(self) -> float | None:
        """Return the seconds to wait before checking again; None for no limit."""
        return min((one for one in (self.remaining(), self.poll) if one is not None), default=None)

    def remaining(self) -> float | None:
        """Return the seconds that are left; 0 if none are, None if there is no time limit."""
        return None if self.at == math.inf else max(0.0, self.at - time.monotonic())

    def longest(self) -> float | None:
        """Return the seconds that a request may take that begins now; None if there is no time limit."""
        return self.remaining()

    def passed(self, within: float = 0.0) -> "Deadline | None":
        """Return the outermost of these deadlines that has passed, or will have within these seconds; None if there is none."""
        around = None if self._around is None else self._around.passed(within)
        return around or (self if self._comes(within) else None)

    def _comes(self, within: float) -> bool:
        return time.monotonic() + within >= self.at

    def check(self, within: float = 0.0) -> None:
        """Raise if the deadline has passed, or will have after a wait of this many seconds.

        Raises:
            DeadlinePassed: There is not.
        """
        passed = self.passed(within)
        if passed is not None:
            raise DeadlinePassed(passed)

    def wait(self, ended: threading.Event) -> None:
        """Wait for an event until the deadline."""
        while not ended.wait(self.patience()) and self.passed() is None:
            pass

    def sleep(self, seconds: float) -> None:
        """Sleep for this many seconds.

        Raises:
            DeadlinePassed: There is not so much time.
        """
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.check(within=left)
            time.sleep(left if self.poll is None else min(left, self.poll))

    def watch(self) -> "asyncio.Future[None]":
        """Return a future that is done once the caller has cancelled; the code that requested it cancels it."""
        return asyncio.get_running_loop().create_future()

    def inside(self) -> "Deadline":
        """Return a deadline for what runs inside, which comes with this one until it is let go."""
        with self.in_sight():
            return Deadline(None)

    def reads(self, reply: Callable[[], Any] | None) -> None:
        """Record, here and in the deadlines around, what returns what is known of the reply that is being read; None if it is read."""
        self.reply = reply
        if self._around is not None:
            self._around.reads(reply)

    def stay_in_sight(self) -> None:
        """Set this deadline for the rest of this context."""
        _current.set(self)

    def let_go(self) -> None:
        """Cancel the deadline for all holders."""
        self.at, self.poll, self._around = math.inf, None, None

    @contextmanager
    def in_sight(self) -> Iterator[None]:
        """A context manager that sets this deadline in its body."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    @contextmanager
    def ends_turn(self) -> Iterator[None]:
        """A context manager that records whether this deadline, and not an outer one, ends its body."""
        self.reply = None
        try:
            yield
        except DeadlinePassed as passed:
            if passed.deadline is not self:
                raise
            self.cut = passed


class DeadlinePassed(Exception):
    """Raised when a step of a turn cannot be done in time, or would wait past the deadline. Never leaves its run.

    Attributes:
        deadline: The deadline.
    """

    def __init__(self, deadline: Deadline) -> None:
        super().__init__("the run was cancelled" if deadline.reason == "cancelled" else "the deadline of the run has passed")
        self.deadline = deadline


class _Never(Deadline):
    """The deadline of a run that nothing ends from outside."""

    def reads(self, reply: Callable[[], Any] | None) -> None:
        """Do nothing: no reply is cut."""

    def inside(self) -> Deadline:
        """Return the same object, since there is nothing to cancel."""
        return self

    def stay_in_sight(self) -> None:
        """Do nothing: without a deadline there is nothing to set."""

    def let_go(self) -> None:
        """Do nothing."""


NEVER: Deadline = _Never(None)
"""The deadline that never comes, for runs without one."""


def current_deadline() -> Deadline | None:
    """Return the deadline of the current step; None if there is none."""
    return _current.get()


def deadline_after(seconds: float | None) -> Deadline:
    """Return a deadline after this many seconds, or with the deadline of the context; `NEVER` if there is neither."""
    return NEVER if seconds is None and _current.get() is None else Deadline(seconds)


def bounded(parts: Iterator[_Part], deadline: Deadline) -> Generator[_Part, None, None]:
    """Yield the parts of a turn until the deadline. A turn whose last part has come is completed."""
    whole = False
    try:
        with deadline.ends_turn():
            while True:
                if not whole:
                    deadline.check()
                with deadline.in_sight():
                    part = next(parts, _END)
                if part is _END:
                    return
                whole = whole or is_last(part)
                yield part
    finally:
        getattr(parts, "close", lambda: None)()


async def abounded(parts: AsyncGenerator[_Part, None], deadline: Deadline) -> AsyncGenerator[_Part, None]:
    """Like `bounded`, asynchronously: the deadline cancels the current step."""
    whole, watch = False, deadline.watch()
    try:
        async with aclosing(parts):
            with deadline.ends_turn():
                while True:
                    with deadline.in_sight():
                        part = await anext(parts, _END) if whole else await _in_time(parts, deadline, watch)
                    if part is _END:
                        return
                    whole = whole or is_last(part)
                    yield part
    finally:
        watch.cancel()


async def _in_time(parts: AsyncGenerator[_Part, None], deadline: Deadline, watch: "asyncio.Future[None]") -> _Part:
    """Return the next part, if it comes in time. A cancellation by the caller stays one."""
    deadline.check()
    scope = _Scope(deadline.remaining())
    watch.add_done_callback(scope.end)
    try:
        part = await anext(parts, _END)
    except BaseException as error:
        if not scope.close(error):
            raise
        await scope.settle()
        deadline.check()
        raise DeadlinePassed(deadline) from None
    finally:
        watch.remove_done_callback(scope.end)
    scope.close(None)
    return part


def is_last(part: Any) -> bool:
    """Whether a part completes a turn: its last chunk, or a message."""
    position = getattr(part, "chunk_position", _NO_POSITION)
    return position == "last" or (position is _NO_POSITION and not isinstance(part, BaseMessageChunk))


class _Scope:
    """Cancels the current task at a moment, and again each second until it is closed: libraries that clean up in a scope of their own have
    been seen to swallow a cancellation, and to leave one of their own counted.

    Args:
        seconds: The time until then; None: only `end` ends it.
    """

    def __init__(self, seconds: float | None) -> None:
        self._loop, self._task = asyncio.get_running_loop(), cast("asyncio.Task[Any]", asyncio.current_task())
        self._before, self._times, self._is_open, self._is_left = self._task.cancelling(), 0, True, False
        self._timer = None if seconds is None else self._loop.call_later(seconds, self._cancel)

    def end(self, _: object) -> None:
        """Cancel the task now."""
        if self._is_open:
            self._stop()
            self._timer = self._loop.call_later(0, self._cancel)

    def _cancel(self) -> None:
        self._times += 1
        self._task.cancel(_OURS)
        self._timer = self._loop.call_later(_AGAIN_SECONDS, self._cancel)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def close(self, error: BaseException | None) -> bool:
        """Return whether an error of the task's step is that of these cancellations, and not the caller's; count them no more."""
        self._is_open = False
        self._stop()
        for _ in range(self._times):
            self._task.uncancel()
        if not self._times or not isinstance(error, asyncio.CancelledError):
            return False
        if self._task.cancelling() > self._before and not _is_ours(error):
            return False
        while self._task.cancelling() > self._before:
            self._task.uncancel()
            self._is_left = True
        return True

    async def settle(self) -> None:
        """Have a cancellation that a library has left arrive here: it would reach the caller's next step. One by the caller is raised."""
        if not self._is_left:
            return
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            if self._task.cancelling() > self._before:
                raise


_MESSAGES = (_OURS, "Cancelled by cancel scope", "Cancelled via cancel scope")


def _is_ours(error: BaseException | None) -> bool:
    """Whether all cancellations that led to an error were made here, or by a scope of a library."""
    while error is not None:
        if isinstance(error, asyncio.CancelledError) and not str(error).startswith(_MESSAGES):
            return False
        error = error.__context__
    return True


# ---------------------------------------------------------------------------------- the argument `cancel=`, which ends one run from outside
#
# A cancelled run is one whose deadline has come: what it waits for ends in the same way. A run that nobody can
# cancel enters nothing of this.


CancelFlag = threading.Event | asyncio.Event | Callable[[], bool]
"""The values of `cancel=`: an event, or a function that returns whether the run is cancelled."""


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
        self.poll = _POLL_SECONDS
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

        async def until_set() -> None:
            with suppress(Exception):
                while not self.is_set():
                    await self._pause()

        return asyncio.create_task(until_set())

    async def _pause(self) -> None:
        """Wait until the next check; an event of this loop wakes by itself."""
        if isinstance(self._flag, asyncio.Event):
            try:
                async with asyncio.timeout(_POLL_SECONDS):
                    await self._flag.wait()
            except TimeoutError:
                return
            except RuntimeError:  # it belongs to another loop
                await asyncio.sleep(_POLL_SECONDS)
        else:
            await asyncio.sleep(_POLL_SECONDS)
