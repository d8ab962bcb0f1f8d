"""The moment at which a run must end, and what ends a model's turn there.

A turn is a stream of parts. Each step of it (the wait for its next part) is taken with the deadline in sight: an asynchronous
step is cancelled, a synchronous one finds it by `current_deadline` and gives up by itself (the wires of this package do), or is
not followed by another one. Where there is no deadline, `NEVER` stands in its place, and nothing of this is done. What a caller
cancels ends in the same way: `cancelling` has a deadline that comes when it is asked for.
"""

import asyncio
import math
import threading
import time
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from typing import Any, Literal, TypeVar

_Part = TypeVar("_Part")

_END: Any = object()
_current: ContextVar["Deadline | None"] = ContextVar("autotools_deadline", default=None)


class Deadline:
    """A moment that a run must not pass, nor any of those that the runs around it must not pass.

    Attributes:
        at: The first of these moments that is known, by `time.monotonic`.
        cut: What ended a turn before it was whole; None as long as nothing has.
        poll: After how many seconds of a wait somebody must look again whether it has come; None where the time alone says so.
        came: Whether the caller was found to have cancelled.
    """

    came = False

    def __init__(self, seconds: float | None) -> None:
        around = _current.get()
        own = math.inf if seconds is None else time.monotonic() + seconds
        self.at: float = own if around is None else min(own, around.at)
        self.cut: DeadlinePassed | None = None
        self.poll: float | None = None if around is None else around.poll
        self._around = around

    @property
    def reason(self) -> Literal["deadline", "cancelled"]:
        """What a run that it has ended gives as its stop reason."""
        return "deadline"

    @property
    def may_come(self) -> bool:
        """Whether there is anything that this deadline could come by."""
        return self.at != math.inf or self.poll is not None

    def is_set(self) -> bool:
        """Whether the caller has cancelled."""
        return False

    def is_over(self) -> bool:
        """Whether the time is over, or a run around has ended; a cancellation by the caller of this run does not count."""
        return time.monotonic() >= self.at or (self._around is not None and self._around.passed() is not None)

    def patience(self) -> float | None:
        """Seconds to wait before looking whether it has come; None for any number."""
        return _shorter(self.remaining(), self.poll)

    def remaining(self) -> float | None:
        """Seconds that are left; 0 where there are none, None where nobody counts them."""
        return None if self.at == math.inf else max(0.0, self.at - time.monotonic())

    def passed(self, within: float = 0.0) -> "Deadline | None":
        """Which of these moments has passed, or will have in so many seconds, the outermost first; None where none has."""
        around = None if self._around is None else self._around.passed(within)
        return around or (self if self._comes(within) else None)

    def _comes(self, within: float) -> bool:
        return time.monotonic() + within >= self.at

    def check(self, within: float = 0.0) -> None:
        """See that there is time left for something, or for a wait of so many seconds.

        Raises:
            DeadlinePassed: There is not.
        """
        passed = self.passed(within)
        if passed is not None:
            raise DeadlinePassed(passed)

    def wait(self, ended: threading.Event) -> None:
        """Wait for an event, as long as there is time."""
        while not ended.wait(self.patience()) and self.passed() is None:
            pass

    def sleep(self, seconds: float) -> None:
        """Sleep for so many seconds.

        Raises:
            DeadlinePassed: There is not so much time.
        """
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.check(within=left)
            time.sleep(left if self.poll is None else min(left, self.poll))

    def watch(self) -> "asyncio.Future[None]":
        """Return a future that is done once the caller has cancelled: never, where nobody can. To be cancelled by who asked for it."""
        return asyncio.get_running_loop().create_future()

    def inside(self) -> "Deadline":
        """Return a deadline for what runs inside, which comes with this one until it is let go."""
        with self.in_sight():
            return Deadline(None)

    def stay_in_sight(self) -> None:
        """Let all that runs in this context from now on find this deadline."""
        _current.set(self)

    def let_go(self) -> None:
        """It never comes, also for those who still see it."""
        self.at, self.poll, self._around = math.inf, None, None

    @contextmanager
    def in_sight(self) -> Iterator[None]:
        """Let what runs here find this deadline."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    @contextmanager
    def ends_turn(self) -> Iterator[None]:
        """Take note where this deadline, and not one around it, ends what runs here."""
        try:
            yield
        except DeadlinePassed as passed:
            if passed.deadline is not self:
                raise
            self.cut = passed


class _Never(Deadline):
    """The deadline of a run that nothing ends from outside."""

    def is_over(self) -> bool:
        """Never."""
        return False

    def remaining(self) -> float | None:
        """Any number of seconds."""
        return None

    def patience(self) -> float | None:
        """Any number of seconds."""
        return None

    def passed(self, within: float = 0.0) -> Deadline | None:
        """Never."""
        return None

    def inside(self) -> Deadline:
        """Return the same: there is nothing to let go."""
        return self

    def stay_in_sight(self) -> None:
        """Do nothing: where no deadline is found, there is none."""

    def let_go(self) -> None:
        """Do nothing."""


class DeadlinePassed(Exception):
    """A step of a turn could not be done in time, or would have to wait for longer than there is time. Never leaves its run.

    Attributes:
        deadline: The deadline.
    """

    def __init__(self, deadline: Deadline) -> None:
        super().__init__("the run was cancelled" if deadline.reason == "cancelled" else "the deadline of the run has passed")
        self.deadline = deadline


def current_deadline() -> Deadline | None:
    """The deadline of the step that is being taken; None where there is none."""
    return _current.get()


NEVER: Deadline = _Never(None)
"""The deadline that never comes: stands where a run has none."""


def deadline_after(seconds: float | None) -> Deadline:
    """Return a deadline that comes after so many seconds, or with one that is in sight; `NEVER` where neither can be."""
    return NEVER if seconds is None and _current.get() is None else Deadline(seconds)


def bounded(parts: Iterator[_Part], deadline: Deadline) -> Generator[_Part, None, None]:
    """The parts of a turn as long as there is time for them. A turn that has its last part is let to its end."""
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
    """Like `bounded`, asynchronously: the step that the deadline meets is cancelled."""
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
    """The next part, if it comes in time. A cancellation of the caller's own stays one."""
    deadline.check()
    try:
        async with asyncio.timeout(deadline.remaining()) as scope:
            with _ended_by(watch, scope):
                return await anext(parts, _END)
    except TimeoutError:
        if not scope.expired():
            raise
        deadline.check()
        raise DeadlinePassed(deadline) from None


@contextmanager
def _ended_by(watch: "asyncio.Future[None]", scope: asyncio.Timeout) -> Iterator[None]:
    """Let the scope end with the future, while this lasts."""
    waits = True

    def end(_: object) -> None:
        if waits:
            scope.reschedule(asyncio.get_running_loop().time())

    watch.add_done_callback(end)
    try:
        yield
    finally:
        waits = False
        watch.remove_done_callback(end)


def _shorter(*seconds: float | None) -> float | None:
    return min((one for one in seconds if one is not None), default=None)


def is_last(part: Any) -> bool:
    """Whether a turn is whole with this part: its last chunk, or a message."""
    return getattr(part, "chunk_position", "last") == "last"
