"""Reads a reply to its end after its end marker, so that its connection can serve the next request.

HTTP/1.1 needs a body read to its end before a connection is used again; closing it earlier costs the next turn a new
connection. But a server may keep a finished stream open, so the wait is short, and whatever happens in it is no error.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from .closing import uninterrupted

_SECONDS = 0.2

_logger = logging.getLogger("langchain_autotools")


async def adrain(pieces: AsyncIterator[bytes]) -> None:
    """Read `pieces` to their end, for at most a fifth of a second.

    A task of its own reads: whatever ends the wait, a deadline too, the reading is given up once, and has ended then.
    """
    reading = asyncio.ensure_future(_to_the_end(pieces))
    try:
        await asyncio.wait({reading}, timeout=_SECONDS)
    finally:
        reading.cancel()
        await uninterrupted(asyncio.wait({reading}))


async def _to_the_end(pieces: AsyncIterator[bytes]) -> None:
    try:
        async for _ in pieces:
            pass
    except (Exception, asyncio.CancelledError) as error:
        _log(error)


def _log(error: BaseException) -> None:
    _logger.debug("the connection of a finished reply is not used again: %s", type(error).__name__)


def drain(response: Any) -> None:
    """Read the rest of the response, for at most a fifth of a second. The caller closes it, which frees its connection.

    A blocking read cannot be given up from within, so a watchdog ends the connection under it. Where the socket cannot be
    reached through the HTTP library's public extension, nothing is read.
    """
    stream = response.extensions.get("network_stream")
    socket = stream.get_extra_info("socket") if stream is not None else None
    if socket is None:
        return
    watched = _watchdog.watch(socket)
    try:
        # Not `iter_bytes`: at its end it closes the response, and then the socket may be another request's already.
        for _ in response.stream:
            pass
    except Exception as error:
        _log(error)
    finally:
        watched.release()


class _Watched:
    """A socket that is shut down at a set time unless it is released before."""

    __slots__ = ("_lock", "_socket", "time")

    def __init__(self, socket: Any, time: float) -> None:
        self.time = time
        self._socket = socket
        self._lock = threading.Lock()

    def release(self) -> None:
        """Release the socket, so that it is not shut down."""
        with self._lock:
            self._socket = None

    def end(self) -> None:
        """Shut the socket down if it has not been released."""
        with self._lock:
            if self._socket is not None:
                with suppress(OSError):
                    self._socket.shutdown(2)  # both directions: the blocked read returns


class _Watchdog:
    """A thread that shuts sockets down a fifth of a second after they are registered. Starts with the first socket.

    A thread of its own for each reply would cost more than the connection that is saved.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._waiting: deque[_Watched] = deque()
        self._thread: threading.Thread | None = None

    def watch(self, socket: Any) -> _Watched:
        """Register a socket to be shut down in a fifth of a second."""
        watched = _Watched(socket, time.monotonic() + _SECONDS)
        with self._condition:
            self._waiting.append(watched)
            if len(self._waiting) == 1:
                self._condition.notify()
            if self._thread is None or not self._thread.is_alive():  # of a forked process the thread is gone
                self._thread = threading.Thread(target=self._run, name="langchain_autotools:drain", daemon=True)
                self._thread.start()
        return watched

    def _run(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._waiting)
                first = self._waiting[0]
            time.sleep(max(0.0, first.time - time.monotonic()))
            with self._condition:
                self._waiting.popleft()
            first.end()


_watchdog = _Watchdog()
