"""A loopback server that plays a script of replies and refuses what its vendor refuses; each wire's server is made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tests.support.http_server import Exchange, HttpReply, LoopbackServer
from tests.support.script import Failure, Reply
from tests.support.strict import Rejection

Script = Iterable[Reply] | Callable[[Exchange], Reply]


class ScriptedServer(LoopbackServer):
    """A list of replies, or a function from the request to a reply. A refused request uses up no reply.

    A wire's server gives `path`, `check` (raises `Rejection`), `encode` and `refuse`.
    """

    path = ""

    def __init__(self, script: Script = ()) -> None:
        super().__init__(self._reply)
        self._script = script if callable(script) else None
        self._replies: list[Reply] = [] if callable(script) else list(script)
        self.rejections: list[Rejection] = []

    @property
    def url(self) -> str:
        """What a client takes as its base URL."""
        return self.address

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The parsed bodies of the replies that were asked for, refused ones included."""
        return [exchange.json for exchange in list(self.exchanges) if exchange.path.partition("?")[0] == self.path]

    @property
    def messages(self) -> list[list[dict[str, Any]]]:
        """The messages of each request."""
        return [request["messages"] for request in self.requests]

    @property
    def left(self) -> int:
        """How many scripted replies were not asked for."""
        return len(self._replies)

    def extend(self, replies: Sequence[Reply]) -> None:
        """Append to a list script."""
        with self._lock:
            self._replies.extend(replies)

    def check(self, exchange: Exchange) -> dict[str, Any]:
        """The parsed body, or the vendor's `Rejection`."""
        raise NotImplementedError

    def encode(self, exchange: Exchange, body: dict[str, Any], reply: Reply) -> HttpReply:
        """The HTTP reply that says `reply` in the wire's form."""
        raise NotImplementedError

    def refuse(self, rejection: Rejection) -> HttpReply:
        """The HTTP reply to a refused request."""
        raise NotImplementedError

    def _reply(self, exchange: Exchange) -> HttpReply:
        try:
            body = self.check(exchange)
        except Rejection as rejection:
            self.rejections.append(rejection)
            return self.refuse(rejection)
        return self.encode(exchange, body, self._next(exchange))

    def _next(self, exchange: Exchange) -> Reply:
        if self._script is not None:
            return self._script(exchange)
        with self._lock:
            if self._replies:
                return self._replies.pop(0)
        return Failure(400, "The script has no reply left.", "invalid_request_error", "script_exhausted")
