"""A limit on the time until a reply begins."""

import asyncio
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import aclosing
from typing import Any, TypeVar

from langchain_core.exceptions import ModelTimeoutError

from ..deadline import Deadline, DeadlinePassed, reply_begins

_Part = TypeVar("_Part")

_END: Any = object()


class _FirstToken(Deadline):
    """The end of the wait for a reply's first piece."""

    ends_run = False

    def longest(self) -> float | None:
        """Return the time that the deadlines around this one leave: a reply that has begun may pause for longer than it took to begin."""
        return None if self._around is None else self._around.longest()

    def release(self) -> None:
        """Let the reply go on: from here on only the deadlines around this one count."""
        self.at = float("inf") if self._around is None else self._around.at


def first_in_time(parts: Iterator[_Part], seconds: float | None) -> Generator[_Part, None, None]:
    """Yield parts of which the first must come within so many seconds; None for no limit. Closes them.

    Raises:
        ModelTimeoutError: It does not.
    """
    try:
        if seconds is not None:
            first = _first(parts, seconds)
            if first is _END:
                return
            yield first
        yield from parts
    finally:
        getattr(parts, "close", lambda: None)()


def _first(parts: Iterator[_Part], seconds: float) -> _Part:
    deadline = _FirstToken(seconds)
    token = reply_begins.set(deadline.release)
    try:
        with deadline.in_sight():
            return next(parts, _END)
    except DeadlinePassed as passed:
        if passed.deadline is not deadline:
            raise
        raise _too_late(seconds) from None
    finally:
        reply_begins.reset(token)
        deadline.release()


async def afirst_in_time(parts: AsyncGenerator[_Part, None], seconds: float | None) -> AsyncGenerator[_Part, None]:
    """Like `first_in_time`, asynchronously."""
    async with aclosing(parts):
        if seconds is not None:
            first = await _afirst(parts, seconds)
            if first is _END:
                return
            yield first
        async for part in parts:
            yield part


async def _afirst(parts: AsyncGenerator[_Part, None], seconds: float) -> _Part:
    try:
        async with asyncio.timeout(seconds) as scope:
            token = reply_begins.set(lambda: scope.reschedule(None))
            try:
                return await anext(parts, _END)
            finally:
                reply_begins.reset(token)
    except TimeoutError:
        if not scope.expired():
            raise
        raise _too_late(seconds) from None


def _too_late(seconds: float) -> ModelTimeoutError:
    return ModelTimeoutError(f"the reply had not begun after {seconds:g} s")
