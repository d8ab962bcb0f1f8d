"""A loopback HTTP/1.1 server for tests: keep-alive, replies in exact pieces, every request recorded, the client's leaving seen.

It knows no vendor: `answer` turns a recorded request (`Exchange`) into an `HttpReply`. A piece of the reply's body is one HTTP chunk,
which HTTP clients hand on as one piece, so bodies can be cut anywhere without any timing.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import select
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Literal, Self

_POLL = 0.002
_BATCH = 1 << 16


class Gate:
    """A place in a reply where the server waits until the test opens it, or the client leaves."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()

    def open(self) -> None:
        """Let the server go on."""
        self.opened.set()


@dataclass(frozen=True)
class Pause:
    """A place in a reply where the server waits this many seconds, or until the client leaves."""

    seconds: float


class Drop:
    """A place in a reply where the server tears the connection down in the middle of the body."""


class Close:
    """A place in a reply after which the server ends the connection, as if nothing were missing, and without having said that it would."""


Part = bytes | Gate | Pause | Drop | Close


@dataclass(frozen=True)
class HttpReply:
    """One HTTP reply. `framing` says how the client learns the end: chunks, a length, or the closed connection; raw: the parts are all."""

    parts: Iterable[Part] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    framing: Literal["chunked", "length", "close", "raw"] = "chunked"


@dataclass
class Exchange:
    """One request as it came, and what became of its reply."""

    number: int
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    lines: list[tuple[str, str]] = field(default_factory=list)
    sent: int = 0
    finished: threading.Event = field(default_factory=threading.Event)
    disconnected: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def json(self) -> Any:
        """The body parsed (raises `ValueError` where it is no JSON)."""
        return json.loads(self.body)


class _ClientLeft(Exception):
    """The client ended the connection before the reply was whole."""


class Dropped(Exception):
    """The script tears the connection down."""


class _Closed(Exception):
    """The script ends the connection."""


class LoopbackServer:
    """Serves `answer` on 127.0.0.1 and a free port while used as a context manager."""

    def __init__(self, answer: Callable[[Exchange], HttpReply]) -> None:
        self._answer = answer
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._stopping = threading.Event()
        self.exchanges: list[Exchange] = []
        self.connections = 0

    def __enter__(self) -> Self:
        """Listen and serve."""
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port: int = self._listener.getsockname()[1]
        self._acceptor = threading.Thread(target=self._accept, name=f"loopback:{self.port}", daemon=True)
        self._acceptor.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End every connection and thread; a second time does nothing."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", self.port)):
            pass
        self._acceptor.join(10)
        self._listener.close()
        with self._lock:
            for connection in self._open:
                _end(connection)
            threads = list(self._threads)
        for thread in threads:
            thread.join(10)

    def refuse(self) -> None:
        """Listen no more: whoever connects from now on is refused. Open connections stay."""
        self._listener.shutdown(socket.SHUT_RDWR)

    @property
    def address(self) -> str:
        """`http://127.0.0.1:<port>`."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def open_connections(self) -> int:
        """How many connections neither side has ended."""
        with self._lock:
            return len(self._open)

    @property
    def bodies(self) -> list[Any]:
        """Every request's body, parsed, in the order of arrival."""
        return [exchange.json for exchange in list(self.exchanges)]

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # it listens no more
                return
            if self._stopping.is_set():
                connection.close()
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            with self._lock:
                self.connections += 1
                self._open.add(connection)
                self._threads = [known for known in self._threads if known.is_alive()] + [thread]
                thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as incoming:
            try:
                while not self._stopping.is_set() and self._one(connection, incoming):
                    pass
            except OSError:
                pass  # the client is gone, or the server stops
            finally:
                with self._lock:
                    self._open.discard(connection)

    def _one(self, connection: socket.socket, incoming: BinaryIO) -> bool:
        """Read one request and send its reply; false ends the connection."""
        request = _read_request(incoming)
        if request is None:
            return False
        method, path, lines, body = request
        with self._lock:
            exchange = Exchange(len(self.exchanges), method, path, dict(lines), body, lines)
            self.exchanges.append(exchange)
        try:
            reply = self._answer(exchange)
            self._send(connection, exchange, reply)
            exchange.finished.set()
            return reply.framing != "close" and exchange.headers.get("connection", "").lower() != "close"
        except Dropped:
            # Linger 0 makes the close a reset: the client cannot take it for the end of the body.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        except _Closed:
            return False
        except (_ClientLeft, OSError):
            exchange.disconnected.set()
            return False
        finally:
            exchange.ended.set()

    def _send(self, connection: socket.socket, exchange: Exchange, reply: HttpReply) -> None:
        parts: Iterable[Part] = reply.parts
        if reply.framing == "length":
            parts = [b"".join(part for part in parts if isinstance(part, bytes))]
        pending = [] if reply.framing == "raw" else [_head(reply, parts)]
        size = 0
        for part in parts:
            if isinstance(part, bytes):
                pending.append(_frame(part) if reply.framing == "chunked" else part)
                size += len(part)
            if not isinstance(part, bytes) or size > _BATCH:
                self._flush(connection, exchange, pending)
                size = 0
            if not isinstance(part, bytes):
                self._wait(connection, part)
        if reply.framing == "chunked":
            pending.append(b"0\r\n\r\n")
        self._flush(connection, exchange, pending)

    @staticmethod
    def _flush(connection: socket.socket, exchange: Exchange, pending: list[bytes]) -> None:
        if pending:
            connection.sendall(b"".join(pending))
            exchange.sent += len(pending)
            pending.clear()

    def _wait(self, connection: socket.socket, part: Gate | Pause | Drop | Close) -> None:
        if isinstance(part, Drop | Close):
            raise Dropped if isinstance(part, Drop) else _Closed
        if isinstance(part, Gate):
            part.reached.set()
            rounds, done = None, part.opened.is_set
        else:
            rounds, done = round(part.seconds / _POLL), self._stopping.is_set
        while not done() and (rounds is None or rounds > 0):
            if self._stopping.is_set() or _has_left(connection):
                raise _ClientLeft
            rounds = None if rounds is None else rounds - 1


def _has_left(connection: socket.socket) -> bool:
    """Whether the other side has closed; waits a moment for it."""
    readable, _, _ = select.select([connection], [], [], _POLL)
    return bool(readable) and connection.recv(1, socket.MSG_PEEK) == b""


def _end(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it may have ended already
        connection.shutdown(socket.SHUT_RDWR)


def _frame(part: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(part), part) if part else b""


def _head(reply: HttpReply, parts: Iterable[Part]) -> bytes:
    lines = [f"HTTP/1.1 {reply.status} {http.client.responses.get(reply.status, 'Unknown')}"]
    lines += [f"{name}: {value}" for name, value in reply.headers.items()]
    if reply.framing == "chunked":
        lines.append("transfer-encoding: chunked")
    elif reply.framing == "length":
        lines.append(f"content-length: {sum(len(part) for part in parts if isinstance(part, bytes))}")
    else:
        lines.append("connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _read_request(incoming: BinaryIO) -> tuple[str, str, list[tuple[str, str]], bytes] | None:
    """The next request, or None where the client ended the connection between two requests, or within one."""
    line = incoming.readline()
    if not line.strip():
        return None
    method, path, _ = line.decode("latin-1").split(" ", 2)
    lines: list[tuple[str, str]] = []
    while (line := incoming.readline()).strip():
        name, _, value = line.decode("latin-1").partition(":")
        lines.append((name.strip().lower(), value.strip()))
    headers = dict(lines)
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return method, path, lines, _read_chunks(incoming)
    length = int(headers.get("content-length", "0"))
    body = incoming.read(length)
    return None if len(body) < length else (method, path, lines, body)


def _read_chunks(incoming: BinaryIO) -> bytes:
    pieces = []
    while size := int(incoming.readline().split(b";")[0], 16):
        pieces.append(incoming.read(size))
        incoming.readline()
    while incoming.readline().strip():
        pass
    return b"".join(pieces)
