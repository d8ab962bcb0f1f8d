"""What the tests of a server's list of tools have in common."""

import json
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from langchain_autotools import McpServer, mcp_server, results_of

PROGRAM = Path(__file__).parents[1] / "support" / "mcp_lister.py"
TEXT: dict[str, Any] = {"type": "string"}
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
Lists = Callable[..., McpServer]


@pytest.fixture
def lists(tmp_path: Path) -> Iterator[Lists]:
    """Starts servers that list these definitions, each of which may be a name or a schema by a name."""
    opened: list[McpServer] = []

    def start(*definitions: Any, **settings: Any) -> McpServer:
        listed = tmp_path / f"{len(opened)}.json"
        listed.write_text(json.dumps([one if isinstance(one, dict) else {"name": one, "inputSchema": NOTHING} for one in definitions]))
        opened.append(mcp_server([sys.executable, str(PROGRAM), str(listed)], **settings))
        return opened[-1]

    yield start
    for server in opened:
        server.close()


def tool(name: str, schema: Any = NOTHING, **more: Any) -> dict[str, Any]:
    """A definition."""
    return {"name": name, "inputSchema": schema, **more}


def asks(*calls: tuple[str, Any]) -> AIMessage:
    """A turn that calls tools."""
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"id_{number}"} for number, (name, args) in enumerate(calls)])


def got(run: Any) -> list[Any]:
    """What the server got for each call of a run; of a call that did not reach it, the error."""
    return [json.loads(message.text) for message in results_of(run)]


def warnings(caplog: pytest.LogCaptureFixture) -> str:
    """The warnings so far."""
    return "\n".join(record.getMessage() for record in caplog.records if record.levelno == logging.WARNING)


async def echoes(name: str, arguments: Any, context: Any) -> Any:
    """Answer as the program does."""
    return json.dumps({"name": name, "arguments": arguments}), None
