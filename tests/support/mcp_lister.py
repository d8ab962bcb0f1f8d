"""An MCP server as a program that lists the tools in a file, whatever is there, and answers each call with what it got."""

import json
import sys
from pathlib import Path
from typing import Any

LISTED = Path(sys.argv[1])


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The result of a request."""
    if method == "initialize":
        about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "lister", "version": "1"}}
        return {"protocolVersion": params["protocolVersion"], **about}
    if method == "tools/list":
        return {"tools": json.loads(LISTED.read_text())}
    return {"content": [{"type": "text", "text": json.dumps({"name": params["name"], "arguments": params.get("arguments")})}]}


if __name__ == "__main__":
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        if message["method"] in ("initialize", "tools/list", "tools/call"):
            reply = {"result": answer(message["method"], message.get("params") or {})}
        else:
            reply = {"error": {"code": -32601, "message": "unknown"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)
