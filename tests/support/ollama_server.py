"""A loopback server that speaks Ollama's /api/chat: strict about requests, scripted or thinking for itself in its replies.

    with OllamaServer([Turn(calls=[Call("add", {"a": 1, "b": 2})]), Turn("3")]) as server:
        model = ChatOllama(model="any", base_url=server.url, tools=[add])

The script is as of `OpenAIServer`. A request that Ollama refuses, or whose parts it would drop, is refused and kept in `rejections`.
"""

from __future__ import annotations

import json
from typing import Any

from tests.support.http_server import Exchange, HttpReply
from tests.support.ollama_wire import Asked, failure, reply_to
from tests.support.script import Failure, Reply
from tests.support.scripted_server import Script, ScriptedServer
from tests.support.strict import Rejection
from tests.support.strict_ollama import check_request


class OllamaServer(ScriptedServer):
    """`strict=False` accepts any JSON body. `models` are those that the server has; empty for any."""

    path = "/api/chat"

    def __init__(self, script: Script = (), *, strict: bool = True, models: tuple[str, ...] = ()) -> None:
        super().__init__(script)
        self._strict = strict
        self._models = models

    def check(self, exchange: Exchange) -> dict[str, Any]:
        """The parsed body, or Ollama's `Rejection`."""
        if (exchange.method, exchange.path.partition("?")[0]) != ("POST", self.path):
            raise Rejection("404 page not found", status=404)
        if not self._strict:
            body: dict[str, Any] = exchange.json
            return body
        return check_request(exchange.body, self._models)

    def encode(self, exchange: Exchange, body: dict[str, Any], reply: Reply) -> HttpReply:
        """The reply in Ollama's form."""
        return reply_to(Asked(exchange.number, str(body.get("model")), bool(body.get("stream", True))), reply)

    def refuse(self, rejection: Rejection) -> HttpReply:
        """The rejection in Ollama's form."""
        return failure(Failure(rejection.status, rejection.message))

    def _reply(self, exchange: Exchange) -> HttpReply:
        if (exchange.method, exchange.path) == ("GET", "/api/tags"):
            models = [{"name": name, "model": name} for name in self._models]
            return HttpReply([json.dumps({"models": models}).encode()], headers={"content-type": "application/json"}, framing="length")
        return super()._reply(exchange)
