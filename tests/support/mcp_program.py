"""An MCP server as a program, without the SDK: JSON-RPC in lines. Notes in a file what it has begun, each process under its own id.

A file `tools.json` beside the notes says what is listed otherwise: by the names of tools the keys that are set, or null for one that is
not listed. With a second argument it speaks the protocol of 2026-07-28: no handshake, and a call that asks ends with its questions and a
state. As "hangs up" it ends the stream of changes in place of telling one.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

NOTES = Path(sys.argv[1])
OTHERWISE = NOTES.with_name("tools.json")
MODERN = len(sys.argv) > 2
STATE = "at the first question"
NUMBER = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
QUESTION = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = {
    "double": ("Double a number.", NUMBER),
    "die": ("End the server during the call.", NOTHING),
    "steps": ("Report progress.", NOTHING),
    "ask": ("Ask the user.", NOTHING),
    "think": ("Ask for a model.", NOTHING),
    "folders": ("Name the folders that it knows of.", NOTHING),
    "grow": ("Offer one more tool.", NOTHING),
    "fail": ("Fail.", NOTHING),
    "picture": ("Return a picture, a text and data.", NOTHING),
    "wait": ("Take too long.", NOTHING),
    "kinds": ("Return a part of each other kind.", NOTHING),
    "data": ("Return data alone.", NOTHING),
    "nothing": ("Return nothing.", NOTHING),
    "secret": ("Return an environment variable.", NOTHING),
}
listed = dict(TOOLS)
begun: dict[Any, str] = {}
waiting: list[str] = []
listener: dict[str, Any] = {}


def send(**message: Any) -> None:
    """Write a message."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def note(text: str) -> None:
    """Note what is begun."""
    with NOTES.open("a") as notes:
        notes.write(f"{os.getpid()} {text}\n")


def asked(method: str, params: dict[str, Any], beside: int = 0) -> dict[str, Any]:
    """Send a request to the client, once so many further calls have come; return its answer. It lists its tools meanwhile."""
    calls = 0
    while calls < beside:
        calls += next_message().get("method") == "tools/call"
    send(id=f"of the server: {method}", method=method, params=params)
    while (message := next_message()).get("id") != f"of the server: {method}":
        pass
    waiting.pop()
    return dict(message.get("result") or {"error": message["error"]["message"]})


def next_message() -> dict[str, Any]:
    """What the client sends next, which waits until the server is done with what it does."""
    if not (line := sys.stdin.readline()):
        sys.exit()
    message: dict[str, Any] = json.loads(line)
    if message.get("method") == "tools/list":
        send(id=message["id"], result=answer(message["method"], message.get("params") or {}))
    else:
        waiting.append(line)
    return message


def text(value: Any) -> dict[str, Any]:
    """A result."""
    return {"content": [{"type": "text", "text": value if isinstance(value, str) else json.dumps(value)}]}


def ended(arguments: Any, token: Any) -> dict[str, Any]:
    """End during the call."""
    os._exit(1)


def told(arguments: Any, token: Any) -> dict[str, Any]:
    """Report progress twice."""
    for step in (1, 2):
        send(method="notifications/progress", params={"progressToken": token, "progress": step, "total": 2, "message": f"step {step}"})
    return text("done")


def late(arguments: Any, token: Any) -> dict[str, Any]:
    """Answer too late."""
    time.sleep(1)
    return text("late")


def grown(arguments: Any, token: Any) -> dict[str, Any]:
    """Offer one more tool."""
    listed["more"] = ("One more.", NOTHING)
    if "hangs up" in sys.argv:
        send(id=listener.popitem()[1], result={"resultType": "complete"})
        return text("grown")
    send(method="notifications/tools/list_changed", **({"params": {"_meta": listener}} if listener else {}))
    return text("grown")


PICTURE = {
    "content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}, *text("a picture")["content"]],
    "structuredContent": {"size": 2},
}
KINDS = [
    {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
    {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "a text"}},
    {"type": "resource", "resource": {"uri": "file:///a.png", "mimeType": "image/png", "blob": "aGk="}},
    {"type": "resource", "resource": {"uri": "file:///a.pdf", "mimeType": "application/pdf", "blob": "aGk="}},
    {"type": "resource_link", "name": "b.txt", "uri": "file:///b.txt"},
]
ASKED = {"mode": "form", "message": "Which city?", "requestedSchema": QUESTION}
CALLED: dict[str, Callable[[Any, Any], dict[str, Any]]] = {
    "double": lambda arguments, _: text(str(2 * arguments["number"])),
    "die": ended,
    "steps": told,
    "ask": lambda arguments, _: text(asked("elicitation/create", ASKED, arguments.get("number", 0))),
    "think": lambda *_: text(asked("sampling/createMessage", {"messages": [], "maxTokens": 1})),
    "folders": lambda *_: text(asked("roots/list", {})),
    "grow": grown,
    "wait": late,
    "fail": lambda arguments, _: {**(PICTURE if arguments.get("number") == 7 else text("no luck")), "isError": True},
    "picture": lambda *_: PICTURE,
    "kinds": lambda *_: {"content": KINDS},
    "data": lambda *_: {"content": [], "structuredContent": {"size": 2}},
    "nothing": lambda *_: {"content": []},
    "secret": lambda *_: text(os.environ.get("SECRET", "none")),
    "more": lambda *_: text("more"),
}


def called(name: str, arguments: dict[str, Any], token: Any) -> dict[str, Any]:
    """The result of a call."""
    note(f"{name} {arguments.get('number', '')}".strip())
    return CALLED[name](arguments, token)


def answered(params: dict[str, Any]) -> dict[str, Any]:
    """The result of a call that asks before it goes on, by the protocol that has no handshake."""
    if "requestState" not in params:
        note("ask")
        return {
            "resultType": "input_required",
            "inputRequests": {
                "city": {"method": "elicitation/create", "params": ASKED},
                **({"folders": {"method": "roots/list"}} if "number" in params["arguments"] else {}),
            },
            "requestState": STATE,
        }
    if params["requestState"] != STATE:
        return {**text("another state"), "isError": True}
    note("goes on")
    return text(params["inputResponses"])


def tools_now() -> list[dict[str, Any]]:
    """The tools as they are listed now."""
    known = {name: {"name": name, "description": words, "inputSchema": schema} for name, (words, schema) in listed.items()}
    for name, keys in json.loads(OTHERWISE.read_text()).items() if OTHERWISE.exists() else ():
        if keys is None:
            known.pop(name, None)
        else:
            known[name] = {**known.get(name, {"name": name, "inputSchema": NOTHING}), **keys}
    return list(known.values())


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The result of a request."""
    match method:
        case "initialize":
            about = {"capabilities": {"tools": {"listChanged": True}}, "serverInfo": {"name": "test", "version": "1"}}
            return {"protocolVersion": params["protocolVersion"], **about}
        case "tools/list":
            tools = tools_now()
            tools = tools[5:] if params.get("cursor") else tools[:5]
            kept = {"ttlMs": 0, "cacheScope": "private"} if MODERN else {}
            return {"tools": tools, **kept, **({} if params.get("cursor") else {"nextCursor": "second"})}
        case "server/discover" if MODERN:
            return {
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {"listChanged": True}},
                "ttlMs": 0,
                "cacheScope": "private",
            }
        case "tools/call" if MODERN and params["name"] == "ask":
            return answered(params)
        case "tools/call" if MODERN and params["name"] == "think":
            model = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}
            return {"resultType": "input_required", "inputRequests": {"model": model}}
        case "tools/call":
            return called(params["name"], params.get("arguments") or {}, params.get("_meta", {}).get("progressToken"))
        case _:
            return {}


if __name__ == "__main__":
    note("began")
    while line := waiting.pop(0) if waiting else sys.stdin.readline():
        message = json.loads(line)
        if message.get("method") == "tools/call":
            begun[message["id"]] = message["params"]["name"]
        if message.get("method") == "subscriptions/listen":
            listener = {"io.modelcontextprotocol/subscriptionId": message["id"]}
            send(method="notifications/subscriptions/acknowledged", params={"_meta": listener, "notifications": {"toolsListChanged": True}})
        elif message.get("method") == "notifications/cancelled":
            note(f"cancelled {begun.get(message['params']['requestId'])}")
        elif "id" in message and "method" in message:
            kind = {"resultType": "complete"} if MODERN else {}
            send(id=message["id"], result={**kind, **answer(message["method"], message.get("params") or {})})
    note("ended")
