"""Who listens to the runs that are made here: where their events go, and inside which call of which run they are made.

A context variable says it. `events` sets it for each step of a stream; a run finds it when it begins, and for each of its calls says where
what the call's tool runs stands. Where nobody listens it is read, and nothing more is done.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol


class NobodyListens(GeneratorExit):
    """Ends a run whose reader has left, where the stream that it is made in cannot be closed at once, or, as a chain's, reads on then."""


class Run(Protocol):
    """A run that tells of itself."""

    def is_inside(self, run_id: str, call_id: str) -> bool:
        """Whether a call's tool made it."""

    def leave(self) -> None:
        """Tell that nobody waits for it any more, and nothing after that."""


class Listener:
    """Takes the events of runs, in any thread, for whoever reads them.

    Args:
        around: The listener around this one, which is told the same: one who listens inside a tool of a run that is listened to.

    Attributes:
        waiting: The events that have not been read.
        heard: Whether any has come.
        came_to: Makes the message of the last run that has ended here, and that no tool of another run of this listener's made.
    """

    def __init__(self, around: "Listener | None" = None) -> None:
        self.waiting: deque[Any] = deque()
        self.heard = False
        self.came_to: Callable[[], Any] | None = None
        self._around = around
        self._wakers: tuple[Callable[[], None], ...] = ()
        self._lock = threading.Lock()
        self._closed = False
        self._left = False
        self._runs: dict[str, Run] = {}
        self._calls_left: set[tuple[str, str]] = set()

    @property
    def is_alone(self) -> bool:
        """Whether there is no listener around this one."""
        return self._around is None

    def begin(self, run_id: str, run: Run) -> None:
        """Note that a run tells of itself."""
        self._runs[run_id] = run
        if self._around is not None:
            self._around.begin(run_id, run)

    def end(self, run_id: str) -> None:
        """Note that a run has told of its end."""
        self._runs.pop(run_id, None)
        if self._around is not None:
            self._around.end(run_id)

    def leave(self, run_id: str, call_id: str) -> None:
        """Let the runs that a call's tool has made tell that they are left; those that it makes later tell of nothing."""
        self._calls_left.add((run_id, call_id))
        for run in list(self._runs.values()):
            if run.is_inside(run_id, call_id):
                run.leave()

    def has_left(self, run_id: str, call_id: str) -> bool:
        """Whether nobody waits for a call's tool any more: the call has its result, or its run has ended."""
        if run_id in self._runs:
            return (run_id, call_id) in self._calls_left
        return self._around is None or self._around.has_left(run_id, call_id)

    def tell(self, event: Any) -> None:
        """Take an event."""
        if self._around is not None:
            self._around.tell(event)
        if self._closed:
            return
        self.heard = True
        self.waiting.append(event)
        for wake in self._wakers:
            wake()

    def close(self, *, left: bool) -> None:
        """Take no further events: nobody reads them.

        Args:
            left: Whether the reader has left before the end: the runs that tell of themselves here end then, too.
        """
        self._closed, self._left = True, left
        self.waiting.clear()
        for wake in self._wakers:
            wake()

    @property
    def is_left(self) -> bool:
        """Whether the reader, or one around him, has left before the end."""
        return self._left or (self._around is not None and self._around.is_left)

    @contextmanager
    def waking(self, wake: Callable[[], None]) -> Iterator[None]:
        """Call a function at each event, in whichever thread that comes."""
        with self._lock:
            self._wakers = (*self._wakers, wake)
        try:
            yield
        finally:
            with self._lock:
                self._wakers = tuple(other for other in self._wakers if other is not wake)


@dataclass(frozen=True, slots=True)
class Place:
    """Where what runs here stands.

    Attributes:
        listener: Takes its events.
        run_id: The run around it, one of whose tools this is; None for none.
        call_id: The call of that run.
        hands_over: Whether what is made here is read step by step: the reader hears of an event when a step ends.
        is_outermost: Whether the listener listens here, and not only to a run around it.
    """

    listener: Listener
    run_id: str | None = None
    call_id: str | None = None
    hands_over: bool = False
    is_outermost: bool = True

    @property
    def is_read_alone(self) -> bool:
        """Whether whoever takes a step here, and nobody else, reads the events of the step after it."""
        return self.hands_over and self.call_id is None and self.listener.is_alone


listening: ContextVar[Place | None] = ContextVar("autotools_listening", default=None)
"""Where what runs here stands; None where nobody listens."""


class Alarm:
    """Wakes a task of the running event loop, from any thread.

    Attributes:
        rung: Is done once it has rung.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.rung: asyncio.Future[None] = self._loop.create_future()

    def ring(self) -> None:
        """Wake whoever waits for `rung`."""
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here:
            self._ring()
            return
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            self._loop.call_soon_threadsafe(self._ring)

    async def wait(self) -> None:
        """Wait for it to ring, and then for the next time."""
        await self.rung
        self.reset()

    def _ring(self) -> None:
        if not self.rung.done():
            self.rung.set_result(None)

    def reset(self) -> None:
        """Wait for the next time."""
        if self.rung.done():
            self.rung = self._loop.create_future()
