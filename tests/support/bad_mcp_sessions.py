"""The kinds of bad MCP servers that are bad in the course of a session: how it begins, what else they send, how programs end."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from tests.support.bad_mcp_kinds import CHANGED, add, kind, secrets
from tests.support.bad_mcp_servers import NEVER, TOOLS, UNKNOWN, Asked, Question, Raw, Script

# ---------------------------------------------------------------------------------------------- several messages for a call


def remember(asked: Asked) -> Iterator[str]:
    """Answer not yet."""
    asked.server.state["late"] = asked
    yield from ()


def answer_late(cancelled: Asked) -> Iterator[str]:
    """Answer what was given up."""
    yield cancelled.server.state["late"].text("late")


_LATE: dict[str, Script] = {"tools/call": remember, "notifications/cancelled": answer_late}
add("an answer after the call was given up", NEVER, "error", over=("stdio", "modern"), scripts=_LATE)


@kind("an answer twice")
def _(asked: Asked) -> Iterator[str]:
    yield asked.text()
    yield asked.text("no")


@kind("an answer, then an error")
def _(asked: Asked) -> Iterator[str]:
    yield asked.text()
    yield asked.error("no")


@kind("an answer to nobody first")
def _(asked: Asked) -> Iterator[str]:
    yield asked.text("no").replace(f'"id": {asked.id}', '"id": 977')
    yield asked.text()


@kind("errors about nothing first")
def _(asked: Asked) -> Iterator[str]:
    yield '{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no"}}'
    yield '{"jsonrpc":"2.0","error":{"code":-32601,"message":"no"}}'
    yield asked.text()


@kind("lines of a log first")
def _(asked: Asked) -> Iterator[str]:
    yield "INFO: starting"
    yield ""
    yield "{ level: 'info' }"
    yield '{"level": "info", "id": 1}'
    yield f"received {json.dumps(asked.message)}"
    yield asked.text()


@kind("lines of a log with secrets first")
def _(asked: Asked) -> Iterator[str]:
    yield f"the key is {secrets(asked)}"
    yield f'{{"key": {json.dumps(secrets(asked))}'
    yield asked.text()


@kind("JSON that is no message first")
def _(asked: Asked) -> Iterator[str]:
    yield from ("42", '"text"', "null", "true", "[]", "{}", "[[]]", '{"jsonrpc":"2.0"}', '{"jsonrpc":"2.0","method":5}', asked.text())


@kind("half a line of nobody first")
def _(asked: Asked) -> Iterator[str]:
    yield '{"jsonrpc":"2.0","id":977,"result":{"content":[{"type":"te'
    yield asked.text()


@kind("half a notification first")
def _(asked: Asked) -> Iterator[str]:
    yield '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"in'
    yield asked.text()


@kind("an answer in a batch with notifications")
def _(asked: Asked) -> Iterator[str]:
    yield f'[{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":1}}}},{asked.text()},5]'


@kind("an answer over several lines", UNKNOWN, "error", over=("stdio", "modern"))
def _(asked: Asked) -> Iterator[str]:
    yield json.dumps(json.loads(asked.text()), indent=2)


@kind("a bar of progress before the answer", over=("stdio", "modern"))
def _(asked: Asked) -> Iterator[Any]:
    yield Raw(b"10 %\r50 %\r")
    yield Raw(b"100 %\r")
    yield asked.text()


@kind("a line without an end", NEVER, "error", over=("stdio", "modern"), lost=True)
def _(asked: Asked) -> Iterator[Any]:
    yield Raw(b"x" * 1_000_000)


@kind("an answer in small pieces", over=("stdio", "modern"))
def _(asked: Asked) -> Iterator[Any]:
    for byte in f"{asked.text('😀 ok')}\n".encode():
        yield Raw(bytes([byte]))


def progress(asked: Asked, **told: Any) -> str:
    """A report of progress."""
    return json.dumps(
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": asked.token, "progress": 1, **told}}
    )


@kind("progress after the answer")
def _(asked: Asked) -> Iterator[str]:
    yield asked.text()
    yield progress(asked)


@kind("progress of nobody")
def _(asked: Asked) -> Iterator[str]:
    yield progress(asked, progressToken="nobody")
    yield progress(asked, progressToken=977)
    yield progress(asked, progressToken=None)
    yield asked.text()


@kind("progress in words")
def _(asked: Asked) -> Iterator[str]:
    yield progress(asked, progress="half", total="all", message=5)
    yield progress(asked, progress=None)
    yield progress(asked, progress=float("nan"), total=float("inf"))
    yield progress(asked, message=r"\ud83d")
    yield asked.text()


@kind("3,000 reports of progress")
def _(asked: Asked) -> Iterator[str]:
    for step in range(3_000):
        yield progress(asked, progress=step)
    yield asked.text()


@kind("notifications without parameters")
def _(asked: Asked) -> Iterator[str]:
    for method in ("progress", "message", "cancelled", "resources/updated", "nothing/known", "elicitation/complete"):
        yield f'{{"jsonrpc":"2.0","method":"notifications/{method}"}}'
        yield f'{{"jsonrpc":"2.0","method":"notifications/{method}","params":null}}'
        yield f'{{"jsonrpc":"2.0","method":"notifications/{method}","params":[1]}}'
        yield f'{{"jsonrpc":"2.0","method":"notifications/{method}","params":"x"}}'
    yield asked.text()


@kind("notifications that the call is cancelled")
def _(asked: Asked) -> Iterator[str]:
    identities: list[Any] = [asked.id, str(asked.id), None, [], 977]
    for identity in identities:
        yield json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": identity}})
    yield asked.text()


# ---------------------------------------------------------------------------------------------- the beginning


def welcome(name: str, refused: str | None = None, /, **keys: Any) -> None:
    """Add a kind whose answer to `initialize` has these keys; `...` leaves one out."""

    def script(asked: Asked) -> Iterator[str]:
        whole = {**json.loads(asked.server.healthy(asked))["result"], **keys}
        yield asked.result({key: value for key, value in whole.items() if value is not ...})

    add(name, scripts={"initialize": script}, over=("stdio", "http"), refused=refused)


welcome("an unknown protocol", "1999", protocolVersion="1999-01-01")
welcome("a protocol that is a number", "", protocolVersion=2)
welcome("no protocol", "", protocolVersion=...)
welcome("no name of the server", serverInfo=...)
welcome("a server without a version", serverInfo={"name": "test"})
welcome("a server whose name is a number", serverInfo={"name": 5, "version": 1})
welcome("a server with odd icons", serverInfo={"name": "test", "version": "1", "title": 5, "icons": "x", "websiteUrl": 5})
welcome("no capabilities", capabilities=...)
welcome("capabilities that are a list", capabilities=["tools"])
welcome("capabilities that are null", capabilities=None)
welcome("capabilities that are odd", capabilities={"tools": True, "prompts": {"listChanged": "often"}, "logging": [], "tasks": 5})
welcome("a capability that is odd inside", capabilities={"tools": {"listChanged": {"often": True}}, "experimental": {"a": 5}})
welcome("instructions that are an object", instructions={"text": "x"}, _meta="x")


@kind("an error at the beginning", at="initialize", over=("stdio", "http"), refused="not today")
def _(asked: Asked) -> Iterator[str]:
    yield asked.error("not today")


@kind("an error at the beginning that repeats its secrets", at="initialize", over=("stdio", "http"), refused="not today")
def _(asked: Asked) -> Iterator[str]:
    yield asked.error(f"not today, {secrets(asked)}")


@kind("no answer at the beginning", at="initialize", over=("stdio", "http"), refused="Timeout")
def _(asked: Asked) -> Iterator[str]:
    yield from ()


@kind("a text at the beginning", at="initialize", over=("stdio", "http"), refused="")
def _(asked: Asked) -> Iterator[str]:
    yield asked.result("hello")


@kind("half an answer at the beginning", at="initialize", over=("stdio", "http"), refused="be read")
def _(asked: Asked) -> Iterator[str]:
    yield asked.server.healthy(asked)[:-10]


@kind("the beginning twice", at="initialize", over=("stdio", "events"))
def _(asked: Asked) -> Iterator[str]:
    yield asked.server.healthy(asked)
    yield asked.server.healthy(asked)


@kind("an answer to what is no request", at="notifications/initialized", over=("stdio", "http", "events"))
def _(asked: Asked) -> Iterator[str]:
    yield '{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no such method"}}'


@kind("lines of a log at the start", at="start", over=("stdio", "modern"))
def _(asked: Asked) -> Iterator[str]:
    yield from ("Starting on port 3000", "{", "  port: 3000", "}", "", '{"port": 3000}')


@kind("secrets in a log at the start", at="start", over=("stdio", "modern"))
def _(asked: Asked) -> Iterator[str]:
    yield f"the key is {secrets(asked)}"


@kind("a beginning in a later protocol", at="server/discover", over=("modern",), refused="")
def _(asked: Asked) -> Iterator[str]:
    yield asked.result({"supportedVersions": ["2999-01-01"], "capabilities": {}, "ttlMs": 0, "cacheScope": "private"})


def discovered(keys: dict[str, Any]) -> Script:
    """A script that begins a session of 2026 with these keys; `...` leaves one out."""

    def script(asked: Asked) -> Iterator[str]:
        whole = {**json.loads(asked.server.healthy(asked))["result"], **keys}
        yield asked.result({key: value for key, value in whole.items() if value is not ...})

    return script


_given: Any
for _name, _given in [
    ("no capabilities", {"capabilities": ...}),
    ("odd capabilities", {"capabilities": {"tools": True, "logging": []}}),
    ("capabilities that are a list", {"capabilities": ["tools"]}),
    ("no time to keep", {"ttlMs": ..., "cacheScope": ...}),
    ("an odd time to keep", {"ttlMs": "long", "cacheScope": 5, "resultType": ...}),
    ("odd instructions", {"instructions": {"text": "x"}, "_meta": "x"}),
    ("more protocols", {"supportedVersions": ["2024-11-05", "2026-07-28", 5]}),
]:
    add(f"a beginning of 2026 with {_name}", over=("modern",), scripts={"server/discover": discovered(_given)})

# ---------------------------------------------------------------------------------------------- requests of the server


def asks(name: str, method: str, *, identity: Any = "q", over: tuple[str, ...] = ("stdio", "events"), **more: Any) -> None:
    """Add a kind that asks this, and tells whether it was answered."""

    def script(asked: Asked) -> Iterator[Any]:
        known = asked.id if identity is ... else identity
        answer: Any = yield Question(json.dumps({"jsonrpc": "2.0", "id": known, "method": method, **more}), known)
        yield asked.text("ok" if "error" in answer or "action" in answer["result"] or method == "ping" else f"no: {answer}")

    add(name, scripts={"tools/call": script}, over=over)


_FORM = {"mode": "form", "message": "Which?"}
_ASKED = {"requestedSchema": {"type": "object", "properties": {}}}
asks("a question that nobody knows", "nothing/known", params={"deep": [[[]]]})
asks("a question without parameters", "sampling/createMessage")
asks("a wish to use the model", "sampling/createMessage", params={"messages": [], "maxTokens": 1})
asks("a wish to use the model that is broken", "sampling/createMessage", params={"messages": "x", "maxTokens": "y"})
asks("a wish for folders that it may not know", "roots/list")
asks("a ping", "ping")
asks("a ping with the id of the call", "ping", identity=...)
asks("a ping whose id is 0", "ping", identity=0)
asks("a ping whose id is empty", "ping", identity="")
asks("a question with the id of the call", "elicitation/create", identity=..., params={**_FORM, **_ASKED})
asks("a question without a schema", "elicitation/create", params=_FORM)
asks("a question with a schema that is a text", "elicitation/create", params={**_FORM, "requestedSchema": "x"})
asks(
    "a question with a schema that is none", "elicitation/create", params={**_FORM, "requestedSchema": {"type": "objekt", "properties": 5}}
)
asks("a question without words", "elicitation/create", params=_ASKED)
asks("a question of an unknown mode", "elicitation/create", params={**_FORM, "mode": "telepathy"})
asks("a question with half a character", "elicitation/create", params={**_FORM, **_ASKED, "message": "\ud83d"})
asks("a wish for a task", "tasks/get", params={"taskId": "x"})


@kind("3,000 pings", over=("stdio", "events", "modern"))
def _(asked: Asked) -> Iterator[str]:
    for number in range(3_000 if asked.exchange is None else 300):
        yield json.dumps({"jsonrpc": "2.0", "id": f"p{number}", "method": "ping"})
    yield asked.text()


@kind("3,000 questions that nobody knows", over=("stdio", "events"))
def _(asked: Asked) -> Iterator[str]:
    for number in range(3_000 if asked.exchange is None else 300):
        yield json.dumps({"jsonrpc": "2.0", "id": f"p{number}", "method": "nothing/known", "params": {"text": "x" * 100}})
    yield asked.text()


@kind("a question that cannot be answered", over=("stdio", "events"))
def _(asked: Asked) -> Iterator[str]:
    for identity in ("null", "1.5", "[]", "{}", "true"):
        yield f'{{"jsonrpc":"2.0","id":{identity},"method":"roots/list"}}'
    yield asked.text()


@kind("a ping before the beginning", at="start", over=("stdio",))
def _(asked: Asked) -> Iterator[Any]:
    yield '{"jsonrpc":"2.0","id":"early","method":"ping"}'


def waits(name: str, told: Any = "ok", status: str = "success", *, over: tuple[str, ...] = ("modern",), **more: Any) -> None:
    """Add a kind whose call ends with questions, as from 2026-07-28 on, and then with the answers."""

    def script(asked: Asked) -> Iterator[str]:
        answers = asked.params.get("inputResponses")
        yield asked.result({"resultType": "input_required", **more}) if answers is None else asked.text(f"ok {json.dumps(answers)}")

    add(name, told, status, over=over, scripts={"tools/call": script})


def question(**params: Any) -> dict[str, Any]:
    """Questions of a call."""
    return {"q": {"method": "elicitation/create", "params": {**_FORM, **_ASKED, **params}}}


_ASKS = "waits for the answer"
waits("a call that waits", _ASKS, "error", inputRequests=question(), requestState="s")
waits("a call that waits without a state", _ASKS, "error", inputRequests=question())
waits(
    "a call that waits for a question with a broken schema", _ASKS, "error", inputRequests=question(requestedSchema="x"), requestState="s"
)
waits("a call that waits for a question whose words are a number", _ASKS, "error", inputRequests=question(message=5), requestState="s")
waits(
    "a call that waits for nothing in particular", _ASKS, "error", inputRequests={"q": {"method": "elicitation/create"}}, requestState="s"
)
waits("a call that waits in an older protocol", over=("stdio", "http"), content=[{"type": "text", "text": "ok"}], inputRequests=question())
waits("a call that waits for a list", UNKNOWN, "error", inputRequests=[question()], requestState="s")
waits("a call that waits for a text", UNKNOWN, "error", inputRequests="Which?", requestState="s")
waits("a call that waits for a question that is a text", UNKNOWN, "error", inputRequests={"q": "Which?"}, requestState="s")
waits("a call that waits for a question without a method", UNKNOWN, "error", inputRequests={"q": {"params": {}}}, requestState="s")
waits("a call that waits with a state that is an object", UNKNOWN, "error", inputRequests=question(), requestState={"a": 1})
waits("a call that waits for a model", "not supported", "error", inputRequests={"q": {"method": "sampling/createMessage", "params": {}}})
waits("a call that waits for what nobody knows", "not supported", "error", inputRequests={"q": {"method": "nothing/known", "params": {}}})


# ---------------------------------------------------------------------------------------------- how programs end


def ends(
    name: str, told: Any = UNKNOWN, *, at: str = "tools/call", over: tuple[str, ...] = ("stdio", "modern"), **more: Any
) -> Callable[[Script], Script]:
    """Make a script a kind of program that ends."""
    settings = {"status": "success" if told == "ok" else "error", "lost": True, "sessions": 3, **more}
    return kind(name, told, at=at, over=over, **settings)


@ends("the end before the beginning", at="start", refused="")
def _(asked: Asked) -> Iterator[Any]:
    sys.exit(3)
    yield


@ends("the end at the beginning", at="initialize", over=("stdio",), refused="")
def _(asked: Asked) -> Iterator[Any]:
    sys.exit(3)
    yield


@ends("the end after the beginning", at="notifications/initialized", over=("stdio",), refused="")
def _(asked: Asked) -> Iterator[Any]:
    sys.exit(3)
    yield


@ends("the end in the list", at="tools/list", refused="")
def _(asked: Asked) -> Iterator[Any]:
    yield Raw(asked.result({"tools": TOOLS}).encode()[:50])
    os._exit(0)


@ends("the end in a call")
def _(asked: Asked) -> Iterator[Any]:
    yield from ()
    os._exit(0)


@ends("the end in a call, with a code")
def _(asked: Asked) -> Iterator[Any]:
    yield from ()
    os._exit(1)


@ends("the end in a call, by a signal")
def _(asked: Asked) -> Iterator[Any]:
    yield from ()
    os.kill(os.getpid(), signal.SIGKILL)


@ends("half a line, then the end")
def _(asked: Asked) -> Iterator[Any]:
    yield Raw(asked.text().encode()[:40])
    os._exit(0)


@ends("an answer without an end of line, then the end", "ok")
def _(asked: Asked) -> Iterator[Any]:
    yield Raw(asked.text().encode())
    os._exit(0)


@ends("an answer, then the end", "ok")
def _(asked: Asked) -> Iterator[Any]:
    yield asked.text()
    os._exit(1)


@ends("an answer, then the output is closed", "ok")
def _(asked: Asked) -> Iterator[Any]:
    yield asked.text()
    os.close(1)


@ends("the output is closed in a call")
def _(asked: Asked) -> Iterator[Any]:
    yield from ()
    os.close(1)


@ends("the input is closed in a call, which is answered", "ok")
def _(asked: Asked) -> Iterator[Any]:
    os.close(0)
    yield asked.text()
    time.sleep(30)


@ends("the end of a program whose child holds the output", NEVER)
def _(asked: Asked) -> Iterator[Any]:
    yield from ()
    child = os.fork()
    if child:
        asked.server.note("has a child")
        os._exit(0)
    asked.server.note("is a child")
    time.sleep(30)
    os._exit(0)


@kind("a program that ignores signals, and the end of its input", over=("stdio", "modern"), at="end")
def _(asked: Asked) -> Iterator[Any]:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(60)
    yield


@kind("a program that writes at the end of its input", over=("stdio", "modern"), at="end")
def _(asked: Asked) -> Iterator[Any]:
    for _ in range(3_000):
        yield CHANGED


@kind("an error output without end", over=("stdio", "modern"))
def _(asked: Asked) -> Iterator[Any]:
    for _ in range(300):
        os.write(2, b"x" * 1_000 + b"\n")
    yield asked.text()


@kind("an input that is not read", NEVER, "error", over=("stdio", "modern"), lost=True)
def _(asked: Asked) -> Iterator[Any]:
    time.sleep(60)
    yield
