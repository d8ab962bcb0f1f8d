"""The end of a worker: errors raised by it are no failures of runs, which are left as after a crash."""

import asyncio
import concurrent.futures
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

_CANCELLED = (asyncio.CancelledError, concurrent.futures.CancelledError)
_CLOSING_SECONDS = 5.0  # how long a process may take from the end of its event loop to its own
_LOOKS_SECONDS = 0.1


class WorkerEndingError(BaseException):
    """Raised to leave a run without recording anything: DBOS records only errors that are an `Exception`."""


class Lifetime:
    """The time in which a worker executes runs: from a launch until `shutdown`, or the end of its process.

    Attributes:
        is_shut_down: Whether `shutdown` was called.
    """

    def __init__(self) -> None:
        self.is_shut_down = False

    def is_over(self) -> bool:
        """Whether the worker's time is over."""
        return self.is_shut_down or sys.is_finalizing() or _main_thread_has_ended()

    def leave(self, error: BaseException | None) -> None:
        """Leave the run if its worker is ending. After a cancellation, wait a moment: an event loop that closes cancels its tasks.

        Args:
            error: The error.

        Raises:
            WorkerEndingError: The worker is ending.
        """
        until = time.monotonic() + (_CLOSING_SECONDS if isinstance(error, _CANCELLED) else 0.0)
        while not self.is_over():
            if time.monotonic() >= until:
                return
            time.sleep(_LOOKS_SECONDS)
        raise WorkerEndingError("the process that ran this is ending: the run goes on where a worker is launched") from error

    @contextmanager
    def left(self) -> Iterator[None]:
        """A context manager that leaves the run inside if its worker is ending, whatever it raises."""
        try:
            yield
        except WorkerEndingError:
            raise
        except BaseException as error:
            self.leave(error)
            raise


def _main_thread_has_ended() -> bool:
    """Whether the main thread has ended while the interpreter waits for other threads, which only its thread pools know."""
    try:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(int)
    except RuntimeError as error:
        return "interpreter shutdown" in str(error)  # and not: no thread can be started
    return False
