"""An MCP server over streamable HTTP, without the SDK: each answer is one JSON body."""

import json
from typing import Any, Self

from tests.support.http_server import Drop, Exchange, HttpReply, LoopbackServer

_SCHEMA = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}


class McpHttp:
    """A server with one tool, `double`; a number below 0 tears the connection down.

    Attributes:
        sessions: How many sessions have begun.
        ended: How many have been ended by their client.
        calls: The numbers that were to be doubled.
        keys: What requests had as their key.
    """

    def __init__(self) -> None:
        self.sessions = self.ended = 0
        self.calls: list[int] = []
        self.keys: set[str | None] = set()
        self._known: set[str] = set()
        self._server = LoopbackServer(self._answer)

    def __enter__(self) -> Self:
        self._server.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.__exit__(*error)

    @property
    def url(self) -> str:
        """Its address."""
        return f"{self._server.address}/mcp"

    def forget(self) -> None:
        """Forget all sessions, as a server that was started again."""
        self._known.clear()

    def _answer(self, exchange: Exchange) -> HttpReply:
        headers = {name.lower(): value for name, value in exchange.headers.items()}
        self.keys.add(headers.get("authorization"))
        if exchange.method == "GET":
            return _reply(405)
        message = exchange.json if exchange.method == "POST" else {}
        if message.get("method") == "initialize":
            self.sessions += 1
            name = f"session-{self.sessions}"
            self._known.add(name)
            about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "test", "version": "1"}}
            return _result(message, {"protocolVersion": message["params"]["protocolVersion"], **about}, {"mcp-session-id": name})
        if headers.get("mcp-session-id") not in self._known:
            return _reply(404)
        if exchange.method == "DELETE":
            self.ended += 1
            return _reply(200)
        return self._of_session(message)

    def _of_session(self, message: dict[str, Any]) -> HttpReply:
        if "id" not in message or "method" not in message:
            return _reply(202)
        if message["method"] == "tools/list":
            return _result(message, {"tools": [{"name": "double", "description": "Double a number.", "inputSchema": _SCHEMA}]})
        number = message["params"]["arguments"]["number"]
        self.calls.append(number)
        if number < 0:
            return HttpReply([b"{", Drop()], headers={"content-type": "application/json"})
        return _result(message, {"content": [{"type": "text", "text": str(2 * number)}]})


def _result(message: dict[str, Any], result: dict[str, Any], headers: dict[str, str] | None = None) -> HttpReply:
    body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
    return HttpReply([body], headers={"content-type": "application/json", **(headers or {})}, framing="length")


def _reply(status: int) -> HttpReply:
    return HttpReply(status=status, framing="length")
