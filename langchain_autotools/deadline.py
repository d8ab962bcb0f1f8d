"""The moment at which a run must end, and what ends a model's turn there.

A turn is a stream of parts. Each step of it (the wait for its next part) is taken with the deadline in sight: an asynchronous
step is cancelled, a synchronous one finds it by `current_deadline` and gives up by itself (the wires of this package do), or is
not followed by another one. Nothing of this is done where there is no deadline.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

__all__ = ["Deadline", "DeadlinePassed", "abounded", "bounded", "current_deadline"]

_Part = TypeVar("_Part")

_END: Any = object()
_current: ContextVar["Deadline | None"] = ContextVar("autotools_deadline", default=None)


class Deadline:
    """A moment that a run must not pass.

    Attributes:
        at: The moment, by `time.monotonic`.
        cut: What ended a turn before it was whole; None as long as nothing has.
    """

    def __init__(self, seconds: float) -> None:
        self.at = time.monotonic() + seconds
        self.cut: DeadlinePassed | None = None

    def remaining(self) -> float:
        """Seconds that are left; 0 where there are none."""
        return max(0.0, self.at - time.monotonic())

    @property
    def is_over(self) -> bool:
        """Whether it has passed."""
        return time.monotonic() >= self.at

    @contextmanager
    def in_sight(self) -> Iterator[None]:
        """Let what runs here find this deadline, or the one around it that comes earlier."""
        around = _current.get()
        token = _current.set(self if around is None or self.at < around.at else around)
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


class DeadlinePassed(Exception):
    """A step of a turn could not be done in time, or would have to wait for longer than there is time. Never leaves its run.

    Attributes:
        deadline: The deadline.
    """

    def __init__(self, deadline: Deadline) -> None:
        super().__init__("the deadline of the run has passed")
        self.deadline = deadline


def current_deadline() -> Deadline | None:
    """The deadline of the step that is being taken; None where there is none."""
    return _current.get()


def bounded(parts: Iterator[_Part], deadline: Deadline) -> Generator[_Part, None, None]:
    """The parts of a turn as long as there is time for them. A turn that has its last part is let to its end."""
    whole = False
    try:
        with deadline.ends_turn():
            while True:
                if not whole and deadline.is_over:
                    raise DeadlinePassed(deadline)
                with deadline.in_sight():
                    part = next(parts, _END)
                if part is _END:
                    return
                whole = whole or _is_last(part)
                yield part
    finally:
        getattr(parts, "close", lambda: None)()


async def abounded(parts: AsyncGenerator[_Part, None], deadline: Deadline) -> AsyncGenerator[_Part, None]:
    """Like `bounded`, asynchronously: the step that the deadline meets is cancelled."""
    whole = False
    async with aclosing(parts):
        with deadline.ends_turn():
            while True:
                with deadline.in_sight():
                    part = await anext(parts, _END) if whole else await _in_time(parts, deadline)
                if part is _END:
                    return
                whole = whole or _is_last(part)
                yield part


async def _in_time(parts: AsyncGenerator[_Part, None], deadline: Deadline) -> _Part:
    """The next part, if it comes in time. A cancellation of the caller's own stays one."""
    if deadline.is_over:
        raise DeadlinePassed(deadline)
    try:
        async with asyncio.timeout(deadline.remaining()) as scope:
            return await anext(parts, _END)
    except TimeoutError:
        if not scope.expired():
            raise
        raise DeadlinePassed(deadline) from None


def _is_last(part: Any) -> bool:
    """Whether a turn is whole with this part: its last chunk, or a message."""
    return getattr(part, "chunk_position", "last") == "last"
