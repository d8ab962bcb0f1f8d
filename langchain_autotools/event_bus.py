"""The event bus: which listeners receive the events of the runs in a context.

A context variable says it. `events` sets it for each step of a stream; a run finds it when it begins, and for each of its calls says where
the runs of the call's tool belong. Where nobody listens it is read, and nothing more is done.
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
    """Raised to end a run whose reader has left, in streams that cannot be closed at once."""


class Run(Protocol):
    """The interface of a run that emits events."""

    def is_inside(self, run_id: str, call_id: str) -> bool:
        """Whether the run belongs to a call's tool."""

    def leave(self) -> None:
        """Emit that the run's result is no longer awaited, and nothing after that."""


class Listener:
    """Receives the events of runs, in any thread, for a reader.

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
        """Return the listener for runs inside tools; None if there is none."""
        return self

    def come_to(self, message: Callable[[], Any]) -> None:
        """Record the end of a run outside of tools; `message` returns its message."""
        self.came_to = message

    def begin(self, run_id: str, run: Run) -> None:
        """Register a run that emits events."""
        self._runs[run_id] = run
        if self._around is not None:
            self._around.begin(run_id, run)

    def end(self, run_id: str) -> None:
        """Remove a run that has emitted its end."""
        self._runs.pop(run_id, None)
        if self._around is not None:
            self._around.end(run_id)

    def leave(self, run_id: str, call_id: str) -> None:
        """End the events of the runs of a call's tool; later runs of the tool emit none."""
        self._calls_left.add((run_id, call_id))
        for run in list(self._runs.values()):
            if run.is_inside(run_id, call_id):
                run.leave()
        if self._around is not None:
            self._around.leave(run_id, call_id)

    def has_left(self, run_id: str, call_id: str) -> bool:
        """Whether a call's tool is no longer awaited: the call has its result, or its run has ended."""
        if run_id in self._runs:
            return (run_id, call_id) in self._calls_left
        return self._around is None or self._around.has_left(run_id, call_id)

    def tell(self, event: Any) -> None:
        """Process an event."""
        if self._around is not None:
            self._around.tell(event)
        if not self._closed:
            self.heard = True
            self._keep(event)

    def _keep(self, item: Any) -> None:
        """Keep an item for the reader."""
        self.waiting.append(item)
        for wake in self._wakers:
            wake()

    def close(self, *, left: bool) -> None:
        """Stop processing events, because nobody reads them.

        Args:
            left: Whether the reader has left before the end: the runs that tell of themselves here end then, too.
        """
        self._closed, self._left = True, left
        self.waiting.clear()
        for wake in self._wakers:
            wake()

    @property
    def is_left(self) -> bool:
        """Whether the reader, or an outer one, has left before the end."""
        return self._left or (self._around is not None and self._around.is_left)

    @contextmanager
    def waking(self, wake: Callable[[], None]) -> Iterator[None]:
        """A context manager that calls a function at each event, in any thread."""
        with self._lock:
            self._wakers = (*self._wakers, wake)
        try:
            yield
        finally:
            with self._lock:
                self._wakers = tuple(other for other in self._wakers if other is not wake)


@dataclass(frozen=True, slots=True)
class Scope:
    """The position of a run in a listener's runs.

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
        """Whether the code that takes a step here is the only reader of events."""
        return self.hands_over and self.call_id is None and self.listener.is_alone


current_scope: ContextVar[Scope | None] = ContextVar("autotools_listening", default=None)
"""The position of the current context; None without a listener."""


class Tap(Listener):
    """Collects data from the events of runs in one place, and passes all events on to the listener around.

    A subclass keeps in `take` what is to be read; the runs hand over then. What tools make is for the listener around alone.

    Args:
        around: Where the place is; None where nobody listens around it.

    Attributes:
        place: Where what runs here is.
    """

    def __init__(self, around: Scope | None) -> None:
        super().__init__(None if around is None else around.listener)
        run_id, call_id, is_outermost = (None, None, True) if around is None else (around.run_id, around.call_id, around.is_outermost)
        self.place = Scope(self, run_id, call_id, hands_over=True, is_outermost=is_outermost)

    def handle(self, event: Any) -> None:
        """Keep (`_keep`) the needed data of an event."""
        raise NotImplementedError

    def tell(self, event: Any) -> None:
        """Pass an event on, and collect its data."""
        if self._around is not None:
            self._around.tell(event)
        self.handle(event)

    @property
    def is_alone(self) -> bool:
        """Return False: events that it does not keep must not wait for it."""
        return False

    @property
    def for_tools(self) -> Listener | None:
        """Return the listener around it."""
        return self._around

    def come_to(self, message: Callable[[], Any]) -> None:
        """Pass on the end of a run."""
        if self._around is not None:
            self._around.come_to(message)


def stop_listening(before: Token[Scope | None]) -> None:
    """Undo `listening.set`; a no-op in another context, as when a discarded generator is closed."""
    try:  # noqa: SIM105 - suppress costs too much for something that is done at each chunk
        current_scope.reset(before)
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
        """Wake the tasks that wait for `rung`."""
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
        """Wait for it to ring, and reset it."""
        await self.rung
        self.reset()

    def _ring(self) -> None:
        if not self.rung.done():
            self.rung.set_result(None)

    def reset(self) -> None:
        """Reset it for the next time."""
        if self.rung.done():
            self.rung = self._loop.create_future()
