"""What each status of a server over HTTP says of a call: it has not run and is sent again, its outcome is unknown, or it is refused."""

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

from langchain_autotools import ConfigurationError, ToolExecutor, mcp_server
from langchain_autotools.mcp_client.connection import http_library
from tests.support.http_server import Drop, Exchange, HttpReply
from tests.support.mcp_http import McpHttp
from tests.unit.mcp_client.test_mcp_server import asks


class Scripted(McpHttp):
    """A server whose next answers to calls are given; after them it doubles numbers.

    Attributes:
        replies: The next answers: each gets the request, and returns the reply.
        seen: The headers of each request.
    """

    def __init__(self, *replies: "Callable[[Exchange], HttpReply]") -> None:
        super().__init__()
        self.replies = list(replies)
        self.seen: list[dict[str, str]] = []

    def _answer(self, exchange: Exchange) -> HttpReply:
        self.seen.append({name.lower(): value for name, value in exchange.headers.items()})
        called = exchange.method == "POST" and exchange.json.get("method") == "tools/call"
        return self.replies.pop(0)(exchange) if called and self.replies else super()._answer(exchange)


def replies(status: int, body: str = "", kind: str = "application/json", **headers: str) -> Callable[[Exchange], HttpReply]:
    """An answer that is the same whatever is asked; `{id}` in it is the id of the request."""

    def answer(exchange: Exchange) -> HttpReply:
        told = {"content-type": kind, **{name.replace("_", "-"): value for name, value in headers.items()}}
        content = body.replace("{id}", str(exchange.json["id"])).encode()
        return HttpReply([content] if content else [], status=status, headers=told, framing="length")

    return answer


def error(words: str, code: int = -32600, identity: str = "{id}") -> str:
    """A JSON-RPC error."""
    return json.dumps({"jsonrpc": "2.0", "id": 0, "error": {"code": code, "message": words}}).replace('"id": 0', f'"id": {identity}')


def event(data: str, **fields: str) -> str:
    """A server-sent event."""
    return "".join(f"{name}: {value}\n" for name, value in {**fields, "data": data}.items()) + "\n"


RESULT = '{"jsonrpc":"2.0","id":{id},"result":{"content":[{"type":"text","text":"ok"}]}}'
UNKNOWN, AGAIN = "interrupted, outcome unknown", "again"


@dataclass
class Case:
    """One answer, and what is to come of the call.

    Attributes:
        reply: The answer of the server to the call.
        words: What the result says, each a part of it; `again`: the call is sent once more, over a new session.
    """

    reply: Callable[[Exchange], HttpReply]
    words: list[str] = field(default_factory=list)


def case(reply: Callable[[Exchange], HttpReply], *words: str) -> Case:
    """Return a case."""
    return Case(reply, list(words))


CASES = {
    "404, the body of the Python SDK": case(replies(404, error("Session not found", identity='"server-error"')), AGAIN),
    "404, the body of the TypeScript SDK": case(replies(404, error("Session not found", -32001, "null")), AGAIN),
    "404, with the request's id": case(replies(404, error("Session not found")), AGAIN),
    "404, a page": case(replies(404, "<h1>Gone</h1>", "text/html"), AGAIN),
    "404, nothing": case(replies(404), AGAIN),
    "400, an error about no request": case(replies(400, error("Bad Request: No valid session ID", -32000, "null")), AGAIN),
    "400, about the request": case(replies(400, error("no such number", -32602)), "HTTP 400", "no such number"),
    "400, in text": case(replies(400, "no such number", "text/plain"), "HTTP 400", "no such number"),
    "401": case(replies(401, '{"error":"invalid_token","error_description":"it has expired"}'), "HTTP 401", "it has expired"),
    "401, an error": case(replies(401, error("log in")), "HTTP 401", "log in"),
    "403": case(replies(403, '{"message":"not you"}'), "HTTP 403", "not you"),
    "403, an error": case(replies(403, error("not you")), "HTTP 403", "not you"),
    "405": case(replies(405), "HTTP 405"),
    "413": case(replies(413, "<h1>Too large</h1>", "text/html"), "HTTP 413"),
    "429": case(replies(429, '{"detail":"slower"}'), "HTTP 429", "slower"),
    "301": case(replies(301, location="/elsewhere"), "HTTP 301", "redirects to /elsewhere"),
    "307, to another server": case(replies(307, location="http://other.invalid/mcp?key=x"), "HTTP 307", "http://other.invalid/mcp:"),
    "307, in a circle": case(replies(308, location="http://127.0.0.1:1/mcp"), "HTTP 308"),
    "500": case(replies(500, "<h1>Oh</h1>", "text/html"), UNKNOWN, "HTTP 500"),
    "500, an error": case(replies(500, error("it failed", -32603)), "HTTP 500", "it failed"),
    "501": case(replies(501), "HTTP 501"),
    "502": case(replies(502, "bad gateway", "text/plain"), UNKNOWN, "HTTP 502", "bad gateway"),
    "503": case(replies(503), UNKNOWN, "HTTP 503"),
    "504": case(replies(504), UNKNOWN, "HTTP 504"),
    "200, an error": case(replies(200, error("no", -32000)), "no"),
    "200, an error without words": case(replies(200, '{"jsonrpc":"2.0","id":{id},"error":{"code":"x"}}'), "code"),
    "200, a page": case(replies(200, "<h1>Hi</h1>", "text/html"), UNKNOWN, "text/html"),
    "200, nothing": case(replies(200), UNKNOWN),
    "200, half an answer": case(replies(200, RESULT[:50]), UNKNOWN, "without an answer that can be read"),
    "200, another id": case(replies(200, RESULT.replace("{id}", "977")), "ok"),
    "200, a batch": case(replies(200, f'[{{"jsonrpc":"2.0","method":"notifications/message","params":{{}}}},{RESULT}]'), "ok"),
    "200, half a character": case(replies(200, RESULT.replace("ok", "\\ud83d ok")), "� ok"),
    "202": case(replies(202), UNKNOWN, "HTTP 202"),
    "204": case(replies(204), UNKNOWN, "HTTP 204"),
    "cut off": case(lambda _: HttpReply([b"{", Drop()], headers={"content-type": "application/json"}), UNKNOWN),
    "no reply": case(lambda _: HttpReply([Drop()], headers={}), UNKNOWN),
    "events": case(replies(200, event(RESULT), "text/event-stream"), "ok"),
    "events, whose texts hold line ends of Unicode": case(
        replies(200, event(RESULT.replace("ok", "a\u2028b\u0085c")), "text/event-stream"), "a\u2028b\u0085c"
    ),
    "events, another id": case(replies(200, event(RESULT.replace("{id}", '"x"')), "text/event-stream"), "ok"),
    "events, what is none first": case(replies(200, event("{") + ": hello\n\n" + event(RESULT), "text/event-stream"), "ok"),
    "events, the answer twice": case(replies(200, event(RESULT) + event(RESULT.replace("ok", "no")), "text/event-stream"), "ok"),
    "events, the last without its end": case(replies(200, event(RESULT).rstrip(), "text/event-stream"), "ok"),
    "events, two megabytes": case(replies(200, event(RESULT.replace("ok", "x" * 2_000_000)), "text/event-stream"), "xxx"),
    "events without an answer": case(replies(200, ": hello\n\n", "text/event-stream"), UNKNOWN, "ended without its result"),
    "events, half an answer": case(replies(200, event(RESULT[:50]), "text/event-stream"), UNKNOWN),
    "events to go on from, for nothing": case(replies(200, event("", id="e1", retry="1"), "text/event-stream"), UNKNOWN),
}


def test_what_a_status_says() -> None:
    """Each call ends as the table says, and the next one works, over the same session where it lives."""
    assert {name: told for name, chosen in CASES.items() if (told := _misfit(chosen))} == {}


def _misfit(chosen: Case) -> Any:
    """What came of a case, if it is not what the table says."""
    with Scripted(chosen.reply) as http, mcp_server(http.url) as server:
        executor = ToolExecutor([server])
        (result,) = executor.execute_all(asks("double", number=21))
        (after,) = executor.execute_all(asks("double", number=4))
        sessions = http.sessions
    known, expected = (after.text, http.calls, sessions), ("8", [4], 1)
    if AGAIN in chosen.words:
        known, expected = (result.text, *known), ("42", "8", [21, 4], 2)
    elif not all(words in result.text for words in chosen.words) or (UNKNOWN in result.text) != (UNKNOWN in chosen.words):
        return result.text
    return None if known == expected else known


@pytest.mark.further
def test_a_session_that_is_never_known_is_no_loop() -> None:
    """A server that forgets each session at once is asked twice; then the call is refused with its words."""
    gone = replies(404, error("Session not found", identity="null"))
    with Scripted(gone, gone, gone) as http, mcp_server(http.url) as server:
        (result,) = ToolExecutor([server]).execute_all(asks("double", number=21))
    assert "HTTP 404" in result.text and "Session not found" in result.text
    assert (http.sessions, http.calls) == (2, [])


# ---------------------------------------------------------------------------------------------- keys that expire


@pytest.mark.parametrize("kind", ["function", "asynchronous function", "auth"])
@pytest.mark.further
def test_a_key_that_has_expired_is_asked_for_once_more(kind: str) -> None:
    """A 401 in mid-session: the call did not run, and runs once with the new key."""
    keys = iter(f"key-{number}" for number in range(1_000))
    library = http_library()

    class Signs(library.Auth):  # type: ignore[misc, name-defined]
        """A provider that has a new key after each refusal."""

        key = next(keys)

        def auth_flow(self, request: Any) -> Any:
            request.headers["Authorization"] = self.key
            response = yield request
            if response.status_code == 401:
                self.key = request.headers["Authorization"] = next(keys)
                yield request

    async def asked() -> dict[str, str]:
        return {"Authorization": next(keys)}

    ways: dict[str, Any] = {
        "function": {"headers": lambda: {"Authorization": next(keys)}},
        "asynchronous function": {"headers": asked},
        "auth": {"auth": Signs()},
    }
    with Scripted(replies(401)) as http, mcp_server(http.url, **ways[kind]) as server:
        (result,) = ToolExecutor([server]).execute_all(asks("double", number=21))
        assert (result.text, http.calls, http.sessions) == ("42", [21], 1)
        assert not any(key is None or "key" in repr(server) for key in http.keys)


@pytest.mark.further
def test_an_auth_of_another_library_is_refused() -> None:
    """By its name, with the library that the installed SDK takes."""
    with pytest.raises(ConfigurationError, match=rf"auth must be an {http_library().__name__}\.Auth"):
        mcp_server("http://127.0.0.1:1/mcp", auth=object())
    with pytest.raises(ConfigurationError, match="auth is for servers that have a URL"):
        mcp_server("program", auth=object())


# ---------------------------------------------------------------------------------------------- secrets


@pytest.mark.further
@pytest.mark.parametrize("given", ["HTTP://user:hush-pass@{}?key=whisper%20key&ü=1", "http://user:hush-pass@{}?key=whisper key"])
def test_secrets_are_in_no_log_and_no_error(given: str, caplog: pytest.LogCaptureFixture) -> None:
    """Of any library, at any level; not where a server repeats them, nor the address where it is gone. The server gets all of them."""
    told = replies(500, json.dumps({"error": "no whisper key for hush-pass, nor whisper%20key, nor s3cret"}))
    with Scripted(told) as http, caplog.at_level(logging.DEBUG):
        address = given.format(http.url.removeprefix("http://"))
        with mcp_server(address, headers={"X-Key": "s3cret-header"}) as server:
            shown = [result.text for _ in range(2) for result in ToolExecutor([server]).execute_all(asks("double", number=21))]
            shown += [repr(server), server.name]
    with pytest.raises(ConfigurationError) as gone:
        mcp_server(address, open_timeout=5).tools()
    assert shown[1] == "42" and {headers["authorization"] for headers in http.seen} == {"Basic dXNlcjpodXNoLXBhc3M="}
    assert {headers["x-key"] for headers in http.seen} == {"s3cret-header"}
    texts = [*shown, caplog.text, repr(gone.value)]
    assert not [text for text in texts for secret in ("hush", "whisper", "s3cret-header") if secret in text]


@pytest.mark.further
def test_a_server_that_has_moved_on_itself_is_followed(caplog: pytest.LogCaptureFixture) -> None:
    """To a path with another end, as frameworks want it, with the query that the server adds; the log has no query."""
    moved = replies(307, location="/mcp?key=whisper")
    with Scripted(moved) as http, caplog.at_level(logging.INFO), mcp_server(f"{http.url}?key=whisper") as server:
        (result,) = ToolExecutor([server]).execute_all(asks("double", number=21))
    assert (result.text, http.calls, http.sessions) == ("42", [21], 1)
    assert "whisper" not in caplog.text


class Modern(McpHttp):
    """A server of protocol 2026-07-28, which knows no sessions, with a tool whose argument is in a header too."""

    headers: dict[str, str]

    def _answer(self, exchange: Exchange) -> HttpReply:
        if exchange.method != "POST":
            return HttpReply(status=405, framing="length")
        message = exchange.json
        about = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        region = {"type": "string", "x-mcp-header": "Region"}
        tools = [
            {"name": "double", "inputSchema": {"type": "object", "properties": {"region": region}}},
            {"name": "bad", "inputSchema": {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "no header"}}}},
        ]
        results: dict[str, dict[str, Any]] = {
            "server/discover": {**about, "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}},
            "tools/list": {**about, "tools": tools},
            "tools/call": {"resultType": "complete", "content": [{"type": "text", "text": "ok"}]},
        }
        if message["method"] == "tools/call":
            self.headers = {name.lower(): value for name, value in exchange.headers.items()}
        if message["method"] not in results:
            return replies(404, error("Method not found", -32601))(exchange)
        return replies(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]}))(exchange)


@pytest.mark.further
@pytest.mark.skipif(http_library().__name__ == "httpx", reason="the protocol of version 2 of `mcp`")
def test_arguments_that_stand_in_headers_too() -> None:
    """As the list of tools says; a tool whose header is none is left out, as the protocol demands."""
    with Modern() as http, mcp_server(http.url) as server:
        assert [tool.name for tool in server.tools()] == ["double"]
        (result,) = ToolExecutor([server]).execute_all(asks("double", region="eu"))
        assert (result.text, http.headers["mcp-param-region"], http.headers["mcp-name"]) == ("ok", "eu", "double")
