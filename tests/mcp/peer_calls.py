"""Calls to a bad MCP server by one client library, in an environment where that is installed: `python -m tests.mcp.peer_calls NAME`.

Reads cases from its input, one in a line, and writes what came of each. Each runs in a process of its own, which is killed when its time
is over. The library is imported once, before.
"""

import asyncio
import json
import os
import select
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

Call = Callable[[str, int], Awaitable[tuple[str, str]]]
"""Calls a tool with a number, and returns the status and the text of its result."""

GIVEN_UP = 0.5
"""Seconds after which a call is given up that a server never answers."""


def _command(target: dict[str, Any]) -> dict[str, Any]:
    """A program, as most libraries take it."""
    command, *arguments = target["server"]
    return {"command": command, "args": arguments, "cwd": target["cwd"], "env": {**os.environ, **target["env"]}}


def _text(content: Any) -> str:
    """What the content of a result says."""
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, default=str)


async def _by_langchain(tools: Any, name: str, number: int) -> tuple[str, str]:
    """Call one of LangChain's tools."""
    tool = next(tool for tool in tools if tool.name == name)
    result = await tool.ainvoke({"type": "tool_call", "name": name, "args": {"number": number}, "id": "1"})
    return result.status, _text(result.content) + _text(result.artifact)


@asynccontextmanager
async def ours(target: dict[str, Any]) -> AsyncIterator[Call]:
    """langchain-autotools."""
    from langchain_autotools import ToolExecutor, mcp_server

    settings = {"cwd": target["cwd"], "env": target["env"]} if target["env"] else {}
    async with mcp_server(target["server"], **settings) as server:
        executor = await asyncio.to_thread(ToolExecutor, [server])

        async def call(name: str, number: int) -> tuple[str, str]:
            """Call a tool."""
            (result,) = await executor.aexecute_all([{"name": name, "args": {"number": number}, "id": f"{name} {number}"}])
            return result.status, _text(result.content) + _text(result.artifact)

        yield call


@asynccontextmanager
async def adapters(target: dict[str, Any]) -> AsyncIterator[Call]:
    """langchain-mcp-adapters, as its documentation begins: the tools of a client."""
    from langchain_mcp_adapters.client import MultiServerMCPClient

    http = {"transport": "streamable_http", "url": target["server"]}
    connection: Any = {"transport": "stdio", **_command(target)} if target["env"] else http
    tools = await MultiServerMCPClient({"server": connection}).get_tools()
    yield lambda name, number: _by_langchain(tools, name, number)


@asynccontextmanager
async def langchain_mcp(target: dict[str, Any]) -> AsyncIterator[Call]:
    """The module langchain.mcp, on fastmcp."""
    from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
    from langchain.mcp import MCPAdapter

    transport = StdioTransport(**_command(target)) if target["env"] else StreamableHttpTransport(target["server"])
    async with MCPAdapter(transport) as adapter:
        tools = await adapter.list_tools()
        yield lambda name, number: _by_langchain(tools, name, number)


@asynccontextmanager
async def pydantic_ai(target: dict[str, Any]) -> AsyncIterator[Call]:
    """pydantic-ai, on fastmcp."""
    from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
    from pydantic_ai.mcp import MCPToolset

    transport = StdioTransport(**_command(target)) if target["env"] else StreamableHttpTransport(target["server"])
    async with MCPToolset(transport) as server:
        await server.list_tools()

        async def call(name: str, number: int) -> tuple[str, str]:
            """Call a tool."""
            return "success", _text(await server.direct_call_tool(name, {"number": number}))

        yield call


@asynccontextmanager
async def openai_agents(target: dict[str, Any]) -> AsyncIterator[Call]:
    """openai-agents."""
    from agents.mcp import MCPServerStdio, MCPServerStreamableHttp

    made: Any = MCPServerStdio(_command(target)) if target["env"] else MCPServerStreamableHttp({"url": target["server"]})
    async with made as server:
        await server.list_tools()

        async def call(name: str, number: int) -> tuple[str, str]:
            """Call a tool."""
            result = await server.call_tool(name, {"number": number})
            failed = getattr(result, "isError", None) or getattr(result, "is_error", None)
            return "error" if failed else "success", result.model_dump_json()

        yield call


CLIENTS: dict[str, Any] = {one.__name__: one for one in (ours, adapters, langchain_mcp, pydantic_ai, openai_agents)}
MODULES = {
    "ours": ("langchain_autotools", "mcp.client.streamable_http"),
    "adapters": ("langchain_mcp_adapters.client", "mcp.client.streamable_http"),
    "langchain_mcp": ("langchain.mcp", "fastmcp.client.transports"),
    "pydantic_ai": ("pydantic_ai.mcp", "fastmcp.client.transports"),
    "openai_agents": ("agents.mcp",),
}


async def play(client: Any, case: dict[str, Any], told: Callable[..., None]) -> None:
    """Tell what came of a case: of the bad call, of the one beside it, and of the one after."""

    async def one(call: Call, name: str, number: int) -> None:
        waited = GIVEN_UP if case["gives up"] and name == "bad" else None
        try:
            told(f"{name} {number}", *await asyncio.wait_for(call(name, number), waited))
        except Exception as error:
            told(f"{name} {number}", "error", f"{type(error).__name__}: {error}")

    try:
        async with asyncio.timeout(GIVEN_UP if case["never opens"] else None), client(case) as call:
            told("opened")
            await asyncio.gather(one(call, "bad", 1), one(call, "good", 2))
            await one(call, "good", 3)
    except Exception as error:
        told("ended by", "error", f"{type(error).__name__}: {error}{_inside(error)}")
    told("closed")


def _inside(error: BaseException) -> str:
    """What the errors say that an error holds."""
    return " ".join(f"{inner} {_inside(inner)}" for inner in getattr(error, "exceptions", ()))


def run(name: str, case: dict[str, Any], notes: Path) -> None:
    """Run a case, in a process of its own, and write what came of it to a file."""
    os.setpgid(0, 0)
    quiet = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(quiet, descriptor)

    def told(what: str, *values: str) -> None:
        with notes.open("a") as file:
            file.write(json.dumps([what, *values]) + "\n")

    try:
        asyncio.run(play(CLIENTS[name], case, told))
    finally:
        os._exit(0)


def main(name: str) -> None:
    """Run all cases."""
    for module in MODULES[name]:
        __import__(module)
    print("ready", flush=True)
    for line in sys.stdin:
        case = json.loads(line)
        with tempfile.TemporaryDirectory() as folder:
            notes = Path(folder) / "notes"
            notes.touch()
            child = os.fork()
            if not child:
                run(name, case, notes)
            watched = os.pidfd_open(child)
            select.select([watched], [], [], case["seconds"])
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(watched)
            told = [json.loads(one) for one in notes.read_text().splitlines()]
        print(json.dumps({what: values for what, *values in told}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
