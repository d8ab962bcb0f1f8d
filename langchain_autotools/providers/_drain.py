"""Reads the rest of a reply whose end marker has come, so that its connection can serve the next request.

HTTP/1.1 needs a body read to its end before a connection is used again; closing it earlier costs the next turn a new
connection. But a server may keep a finished stream open, so the wait is short, and whatever happens in it is no error.
"""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any

__all__ = ["adrain", "drain"]

_SECONDS = 0.2

_logger = logging.getLogger("langchain_autotools")


async def adrain(pieces: AsyncIterator[bytes]) -> None:
    """Read `pieces` to their end, for a fifth of a second at most."""
    try:
        async with asyncio.timeout(_SECONDS):
            async for _ in pieces:
                pass
    except Exception as error:
        _logger.debug("the connection of a finished reply is not used again: %s", type(error).__name__)


def drain(pieces: Iterator[bytes], response: Any) -> None:
    """Read `pieces` to their end, for a fifth of a second at most.

    A blocking read cannot be given up from within, so a timer ends the connection under it. Where the socket cannot be
    reached through the HTTP library's public extension, nothing is read and the caller closes the response.
    """
    stream = response.extensions.get("network_stream")
    socket = stream.get_extra_info("socket") if stream is not None else None
    if socket is None:
        return
    guard = _Guard(socket)
    try:
        guard.start()
        for _ in pieces:
            pass
    except Exception as error:
        _logger.debug("the connection of a finished reply is not used again: %s", type(error).__name__)
    finally:
        guard.cancel()


class _Guard:
    """Ends a socket after a fifth of a second, unless cancelled before."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._timer = threading.Timer(_SECONDS, self._cut)
        self._timer.daemon = True

    def start(self) -> None:
        self._timer.start()

    def cancel(self) -> None:
        self._timer.cancel()

    def _cut(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(2)  # both directions: the blocked read returns
