"""The features of the table whose tools are those of MCP servers."""

from __future__ import annotations

import itertools
import json
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from langchain_autotools import Decision, PendingCall, mcp_server
from tests.laws.feature import Feature
from tests.laws.planned import Plan, Seen
from tests.support.mcp_http import McpHttp
from tests.support.script import Call

_numbers = itertools.count(1000)


PROGRAM = Path(__file__).resolve().parents[1] / "support" / "mcp_program.py"


class Served:
    """One server over HTTP on loopback for all conversations, and one session with it; the same of one that asks, which is a program."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._made: tuple[McpHttp, Any] | None = None
        self._asking: Any = None

    def open(self) -> tuple[McpHttp, Any]:
        """Return the server, and the session's source of tools."""
        if self._made is None:
            http = self._stack.enter_context(McpHttp())
            self._made = http, self._stack.enter_context(mcp_server(http.url))
        return self._made

    def asking(self) -> Any:
        """Return the source of tools of the server that asks before a call goes on."""
        if self._asking is None:
            notes = Path(self._stack.enter_context(TemporaryDirectory())) / "notes"
            made = mcp_server([sys.executable, str(PROGRAM), str(notes), "modern"], prefix="asking_")
            self._asking = self._stack.enter_context(made)
        return self._asking

    def close(self) -> None:
        """End them."""
        self._stack.close()
        self._made = self._asking = None


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


class Questions(Feature):
    """A server asks before a call goes on, and somebody answers later."""

    name = "questions of servers"
    waits = True

    def __init__(self) -> None:
        self.city = f"City {next(_numbers)}"

    def add(self, plan: Plan) -> None:
        """The server, and a call that it asks about."""
        plan.sources.append(SERVED.asking())
        plan.turns[0].append(Call("asking_ask", {}, "questions_0"))

    def decide(self, call: PendingCall) -> Decision:
        """Answer it."""
        assert (call.kind, call.path, call.args["message"]) == ("elicitation", ("asking_ask",), "Which city?")
        return call.respond({"city": self.city})

    def check(self, seen: Seen) -> None:
        """The answer has reached the server, whose result the model has."""
        assert json.loads(seen.result("questions_0").text) == {"city": {"action": "accept", "content": {"city": self.city}}}
