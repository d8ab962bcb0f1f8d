"""Who listens to the runs that are made here: where their events go, and inside which call of which run they are made.

A context variable says it. `events` sets it for each step of a stream; a run finds it when it begins, and for each of its calls says where
what the call's tool runs stands. Where nobody listens it is read, and nothing more is done.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, Token
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
        delivered: Whether pieces of a call of the current reply have reached the caller, so that the reply is not asked for again.
    """

    delivered = False

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

    @property
    def for_tools(self) -> "Listener | None":
        """Who listens to what the tools of its runs make; None for nobody."""
        return self

    def come_to(self, message: Callable[[], Any]) -> None:
        """Note that a run has ended that no tool of another run of this listener's made; `message` makes its message."""
        self.came_to = message

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
        if self._around is not None:
            self._around.leave(run_id, call_id)

    def has_left(self, run_id: str, call_id: str) -> bool:
        """Whether nobody waits for a call's tool any more: the call has its result, or its run has ended."""
        if run_id in self._runs:
            return (run_id, call_id) in self._calls_left
        return self._around is None or self._around.has_left(run_id, call_id)

    def tell(self, event: Any) -> None:
        """Take an event."""
        if self._around is not None:
            self._around.tell(event)
        if not self._closed:
            self.heard = True
            self._keep(event)

    def _keep(self, item: Any) -> None:
        """Keep something for whoever reads."""
        self.waiting.append(item)
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


class Tap(Listener):
    """Takes what it needs of the events of runs that are made in one place. Whoever listens around it is told all of them.

    A subclass keeps in `take` what is to be read; the runs hand over then. What tools make is for the listener around alone.

    Args:
        around: Where the place stands; None where nobody listens around it.

    Attributes:
        place: Where what runs here stands.
    """

    def __init__(self, around: Place | None) -> None:
        super().__init__(None if around is None else around.listener)
        run_id, call_id, is_outermost = (None, None, True) if around is None else (around.run_id, around.call_id, around.is_outermost)
        self.place = Place(self, run_id, call_id, hands_over=True, is_outermost=is_outermost)

    def take(self, event: Any) -> None:
        """Keep (`_keep`) what is needed of an event."""
        raise NotImplementedError

    def tell(self, event: Any) -> None:
        """Pass an event on, and take what is needed of it."""
        if self._around is not None:
            self._around.tell(event)
        self.take(event)

    @property
    def is_alone(self) -> bool:
        """Never: what it does not take is not to wait here."""
        return False

    @property
    def for_tools(self) -> Listener | None:
        """The listener around it."""
        return self._around

    def come_to(self, message: Callable[[], Any]) -> None:
        """Pass on that a run has ended."""
        if self._around is not None:
            self._around.come_to(message)


def stop_listening(before: Token[Place | None]) -> None:
    """Undo what `listening.set` did; nothing where a generator that was thrown away is closed in another context."""
    try:  # noqa: SIM105 - suppress costs too much for something that is done at each chunk
        listening.reset(before)
    except ValueError:
        pass


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
