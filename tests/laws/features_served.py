"""The feature of the table whose tool is an MCP server's."""

from __future__ import annotations

import itertools
from contextlib import ExitStack
from typing import Any

from langchain_autotools import mcp_server
from tests.laws.feature import Feature
from tests.laws.planned import Plan, Seen
from tests.support.mcp_http import McpHttp
from tests.support.script import Call

_numbers = itertools.count(1000)


class Served:
    """One server over HTTP on loopback for all conversations, and one session with it."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._made: tuple[McpHttp, Any] | None = None

    def open(self) -> tuple[McpHttp, Any]:
        """Return the server, and the session's source of tools."""
        if self._made is None:
            http = self._stack.enter_context(McpHttp())
            self._made = http, self._stack.enter_context(mcp_server(http.url))
        return self._made

    def close(self) -> None:
        """End both."""
        self._stack.close()
        self._made = None


SERVED = Served()


class McpServers(Feature):
    """A server is among the tools, and its tool is called."""

    name = "MCP servers"

    def __init__(self) -> None:
        self.number = next(_numbers)

    def add(self, plan: Plan) -> None:
        """The server, and a call of its tool."""
        self.server, source = SERVED.open()
        plan.sources.append(source)
        plan.turns[0].append(Call("double", {"number": self.number}, "MCP_0"))

    def check(self, seen: Seen) -> None:
        """The server was called once, over the one session that all conversations share; the model has its result."""
        assert self.server.calls.count(self.number) == 1
        assert seen.result("MCP_0").text == str(2 * self.number)
        assert self.server.sessions == 1
