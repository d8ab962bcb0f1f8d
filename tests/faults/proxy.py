"""A proxy on loopback between a client and a strict server, which spoils the replies that a plan names.

It fetches the server's whole reply, and hands on what the fault makes of it: so a body can be spoilt anywhere without any timing.
"""

from __future__ import annotations

import http.client
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from tests.support.http_server import Exchange, HttpReply, LoopbackServer
from tests.support.scripted_server import ScriptedServer

_OF_CONNECTION = frozenset({"transfer-encoding", "content-length", "connection", "keep-alive", "date", "server"})


@dataclass(frozen=True)
class Whole:
    """A server's reply as it came.

    Attributes:
        status: Its HTTP status.
        headers: Its headers, but for those of the connection.
        body: Its body.
    """

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def is_stream(self) -> bool:
        """Whether it is a stream of events."""
        return any(kind in self.headers.get("content-type", "") for kind in ("event-stream", "ndjson"))


Spoil = Callable[[Whole], HttpReply]


class FaultProxy(LoopbackServer):
    """Hands on what a server says, and spoils some of it.

    Args:
        server: The server.
        plan: What becomes of the reply to a request, by its number; None: it is handed on as it is.
        refused: The number of the first request for which nobody listens any more; None: somebody always does.
    """

    def __init__(self, server: ScriptedServer, plan: Callable[[int], Spoil | None], refused: int | None = None) -> None:
        super().__init__(self._handed_on)
        self._server = server
        self._plan = plan
        self._refused = refused

    def __enter__(self) -> Self:
        super().__enter__()
        if self._refused == 0:
            self.refuse()
        return self

    @property
    def url(self) -> str:
        """What a client takes as its base URL."""
        return self._server.url.replace(self._server.address, self.address)

    def _handed_on(self, exchange: Exchange) -> HttpReply:
        spoil = self._plan(exchange.number)
        whole = self._fetched(exchange)
        if exchange.number + 1 == self._refused:
            self.refuse()
            return HttpReply([whole.body], whole.status, whole.headers, "close")
        return HttpReply([whole.body], whole.status, whole.headers) if spoil is None else spoil(whole)

    def _fetched(self, exchange: Exchange) -> Whole:
        connection = http.client.HTTPConnection("127.0.0.1", self._server.port, timeout=30)
        try:
            headers = {name: value for name, value in exchange.headers.items() if name not in _OF_CONNECTION | {"accept-encoding"}}
            connection.request(exchange.method, exchange.path, exchange.body, {**headers, "connection": "close"})
            reply = connection.getresponse()
            kept = {name.lower(): value for name, value in reply.getheaders() if name.lower() not in _OF_CONNECTION}
            return Whole(reply.status, kept, reply.read())
        finally:
            connection.close()
