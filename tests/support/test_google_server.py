"""The strict server of Google's wire refuses what Google refuses, with its status and shape, and accepts what Google accepts."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.support.google_server import GoogleServer
from tests.support.script import Call, Turn

HELLO: dict[str, Any] = {"role": "user", "parts": [{"text": "Hi"}]}
TOOLS = [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": {"type": "object"}}]}]
ANY = "skip_thought_signature_validator"


def call(name: str = "f", **beside: Any) -> dict[str, Any]:
    """A Content that calls a function."""
    return {"role": "model", "parts": [{"functionCall": {"name": name, "args": {}}, "thoughtSignature": ANY, **beside}]}


def response(name: str = "f", **more: Any) -> dict[str, Any]:
    """A Content that answers it."""
    return {"role": "user", "parts": [{"functionResponse": {"name": name, "response": {"result": "1"}, **more}}]}


def post(server: GoogleServer, body: Any, path: str = "/v1beta/models/m:generateContent", **headers: str) -> tuple[int, dict[str, Any]]:
    """The status and JSON of a reply."""
    said = {"content-type": "application/json", "x-goog-api-key": "k", **headers}
    request = urllib.request.Request(f"{server.url}{path}", json.dumps(body).encode(), said)
    try:
        with urllib.request.urlopen(request) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


REFUSED = [
    ({"contents": []}, "contents is not specified"),
    ({"contents": [HELLO], "n": 1}, 'Unknown name "n"'),
    ({"contents": [{"role": "assistant", "parts": [{"text": "x"}]}]}, "begin with a user turn"),
    ({"contents": [HELLO, {"role": "tool", "parts": [{"text": "x"}]}]}, "valid role"),
    ({"contents": [{"role": "user", "parts": []}]}, "must not be empty"),
    ({"contents": [{"role": "user", "parts": [{"text": ""}]}]}, "non-empty text"),
    ({"contents": [{"role": "user", "parts": [{"text": "a", "inlineData": {}}]}]}, "one initialized field"),
    ({"contents": [{"role": "user", "parts": [{"inlineData": {"data": "QQ=="}}]}]}, "mime_type"),
    ({"contents": [{"role": "user", "parts": [{"fileData": {"fileUri": "files/x"}}]}]}, "file uri"),
    ({"contents": [HELLO, call()]}, "number of function response parts"),
    ({"contents": [HELLO, call(), response("g")]}, "names match"),
    ({"contents": [HELLO, call(), response(id="1")]}, "ids match"),
    ({"contents": [HELLO, call(), {"role": "user", "parts": [*response()["parts"], {"text": "x"}]}]}, "beside other parts"),
    ({"contents": [HELLO, response()]}, "number of function response parts"),
    ({"contents": [HELLO, {"role": "model", "parts": [{"text": "x"}]}, call(), response()]}, "immediately after a user turn"),
    ({"contents": [HELLO, call(thoughtSignature="bWluZQ=="), response()]}, "signature is not valid"),
    ({"contents": [HELLO, call(thoughtSignature=""), response()]}, "missing a thought_signature"),
    ({"contents": [HELLO, call("a b"), response()]}, "Invalid function name"),
    ({"contents": [HELLO], "tools": [{"functionDeclarations": [{"name": "1"}]}]}, "Invalid function name"),
    ({"contents": [HELLO], "tools": [*TOOLS, *TOOLS]}, "Duplicate"),
    ({"contents": [HELLO], "tools": [*TOOLS, {"googleSearch": {}}]}, "include_server_side_tool_invocations"),
    ({"contents": [HELLO], "tools": [{"functionDeclarations": [{"name": "f", "parameters": {"type": "OBJECT", "const": 1}}]}]}, '"const"'),
    ({"contents": [HELLO], "tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": {"type": "array"}}]}]}, "an object"),
    ({"contents": [HELLO], "toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}, "without function_declarations"),
    (
        {"contents": [HELLO], "tools": TOOLS, "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["g"]}}},
        "among",
    ),
    ({"contents": [HELLO], "generationConfig": {"temperature": 3}}, "temperature"),
    ({"contents": [HELLO], "generationConfig": {"responseJsonSchema": {}}}, "response_mime_type"),
    ({"contents": [HELLO], "generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW", "thinkingBudget": 1}}}, "only one of thinking"),
]


@pytest.mark.parametrize(("body", "words"), REFUSED)
def test_what_google_refuses(body: dict[str, Any], words: str) -> None:
    """Each wrong request is refused with 400 in Google's shape, and uses up no reply."""
    with GoogleServer([Turn("Hi.")]) as server:
        status, said = post(server, body)
        assert (status, said["error"]["code"], said["error"]["status"]) == (400, 400, "INVALID_ARGUMENT")
        assert words in said["error"]["message"]
        assert (server.left, len(server.rejections)) == (1, 1)


def test_keys_and_paths() -> None:
    """A request without a key, or to no model, is refused with Google's status."""
    with GoogleServer([Turn("Hi.")]) as server:
        assert post(server, {"contents": [HELLO]}, **{"x-goog-api-key": ""})[0] == 403
        assert post(server, {"contents": [HELLO]}, path="/v1beta/chat")[0] == 404
        assert post(server, {"contents": [HELLO]})[1]["candidates"][0]["content"]["parts"] == [{"text": "Hi."}]


def test_what_the_server_wrote_may_come_back() -> None:
    """The server takes its own signatures and ids on the parts that it wrote, and on no others."""
    with GoogleServer([Turn(calls=[Call("f")]), Turn("Fine.")]) as server:
        [part] = post(server, {"contents": [HELLO]})[1]["candidates"][0]["content"]["parts"]
        answer = response(id=part["functionCall"]["id"])
        moved = {**part, "functionCall": {**part["functionCall"], "args": {"a": 1}}}
        assert post(server, {"contents": [HELLO, {"role": "model", "parts": [moved]}, answer]})[0] == 400
        assert post(server, {"contents": [HELLO, {"role": "model", "parts": [part]}, answer]})[0] == 200


def test_streams_are_events_or_an_array() -> None:
    """Server-sent events come where they are asked for, else one JSON array."""
    with GoogleServer([Turn("Hello.")]) as server:
        status, said = post(server, {"contents": [HELLO]}, path="/v1beta/models/m:streamGenerateContent")
        texts = [part["text"] for event in said for part in event.get("candidates", [{}])[0].get("content", {}).get("parts", ())]  # type: ignore[attr-defined]
    assert (status, "".join(texts)) == (200, "Hello.")
