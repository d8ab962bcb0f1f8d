"""A loopback server whose replies never end: each is the raw bytes of a script, head included, a piece at a time until somebody leaves."""

from __future__ import annotations

import contextlib
import itertools
import json
import select
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

__all__ = ["REPLIES", "EndlessServer", "ended", "endless", "head", "silent"]

_PAUSE = 0.01

Reply = Iterable[bytes]


def head(status: int = 200, kind: str = "text/event-stream", **headers: str) -> bytes:
    """The head of a reply whose body ends with the connection."""
    lines = [f"HTTP/1.1 {status} Any", f"content-type: {kind}", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def ended(status: int, body: Any, **headers: str) -> Reply:
    """A whole reply, the only kind here that ends."""
    text = json.dumps(body).encode()
    return [head(status, "application/json", content_length=str(len(text)), **headers) + text]


def endless(*first: bytes, piece: bytes) -> Iterator[bytes]:
    """These pieces, then one for ever."""
    return itertools.chain(first, itertools.repeat(piece))


def silent(*first: bytes) -> Iterator[bytes]:
    """These pieces, then nothing for ever."""
    return endless(*first, piece=b"")


REPLIES: dict[str, Callable[[], Reply]] = {
    "a silent server": silent,
    "a head that drips": lambda: endless(b"HTTP/1.1 200 OK\r\nx-a: ", piece=b"a"),
    "a silent body": lambda: silent(head()),
    "comments for ever": lambda: endless(head(), piece=b": keep-alive\n\n"),
    "white space for ever": lambda: endless(head(kind="application/json"), piece=b"\n"),
    "an error body for ever": lambda: endless(head(400, "application/json"), piece=b"x"),
}
"""Replies that never end and of which nothing can be read, by what they are."""


class EndlessServer:
    """Gives the n-th request the reply `answer(n)`; `requests` counts them, `left` is set once a client has left an open reply."""

    def __init__(self, answer: Callable[[int], Reply]) -> None:
        self._answer = answer
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._connections: list[socket.socket] = []
        self.requests = 0
        self.left = threading.Event()

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._threads.append(threading.Thread(target=self._accept, daemon=True))
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for connection in list(self._connections):
            with contextlib.suppress(OSError):  # it may have ended already
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
        self._listener.close()

    def _accept(self) -> None:
        while not self._stopping.is_set():
            if select.select([self._listener], [], [], _PAUSE)[0]:
                connection, _ = self._listener.accept()
                self._connections.append(connection)
                self._threads.append(threading.Thread(target=self._serve, args=(connection,), daemon=True))
                self._threads[-1].start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as incoming:
            try:
                while self._read(incoming):
                    with self._lock:
                        self.requests += 1
                        number = self.requests - 1
                    for piece in self._answer(number):
                        connection.sendall(piece)
                        readable, _, _ = select.select([connection], [], [], _PAUSE)
                        if self._stopping.is_set():
                            return
                        if readable and not connection.recv(1, socket.MSG_PEEK):
                            raise ConnectionResetError
            except OSError:
                self.left.set()

    def _read(self, incoming: Any) -> bool:
        """Read a request; false at the end of the connection."""
        length, line = 0, incoming.readline()
        while line.strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
            line = incoming.readline()
        incoming.read(length)
        return bool(line)
