"""A process of a service whose users log in at an MCP server: `python -m tests.support.login_process URL FOLDER finish CODE STATE`.

With `call FIRST LAST`, or `"call locked" FIRST LAST`, it calls the tool with each of these numbers, ten at a time, once a line comes on its
standard input, and prints the results.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from langchain_core.messages import AIMessage

from langchain_autotools import McpServer, ToolExecutor, mcp_server
from tests.support.login_storage import Folder, LockedFolder

AT_ONCE = 10


def doubled(server: McpServer, numbers: range) -> list[str]:
    """The results of calls with these numbers, some of them at once."""
    executor, results = ToolExecutor([server]), list[str]()
    for first in numbers[::AT_ONCE]:
        calls: list[Any] = [
            {"name": "double", "args": {"number": number}, "id": f"call {number}"}
            for number in range(first, min(first + AT_ONCE, numbers.stop))
        ]
        results += [str(message.content) for message in executor.execute_all(AIMessage("", tool_calls=calls))]
    return results


def main(url: str, folder: str, act: str, *values: str) -> None:
    """Do what is asked."""
    if act == "finish":
        mcp_server(url, storage=Folder(folder)).finish_login(*values)
        return
    with mcp_server(url, storage=(LockedFolder if act == "call locked" else Folder)(folder)) as server:
        print("ready", flush=True)
        sys.stdin.readline()
        first, last = map(int, values)
        print(json.dumps(doubled(server, range(first, last))))


if __name__ == "__main__":
    main(*sys.argv[1:])
