"""The strict Anthropic server refuses what the vendor refuses, in the vendor's shape, and plays its script in it."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.support.anthropic_server import AnthropicServer
from tests.support.script import Call, Turn
from tests.support.strict import Rejection
from tests.support.strict_anthropic import check_request, opaque

USER = {"role": "user", "content": [{"type": "text", "text": "q"}]}
CALL = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]}
RESULT = {"type": "tool_result", "tool_use_id": "t", "content": "r"}
TOOL = {"name": "f", "input_schema": {"type": "object"}}


def request(*messages: Any, **more: Any) -> dict[str, Any]:
    """A request with these messages."""
    return {"model": "m", "max_tokens": 2000, "messages": list(messages), **more}


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no max_tokens": ({"model": "m", "messages": [USER]}, "max_tokens: Field required"),
    "unknown key": (request(USER, seed=1), "seed: Extra inputs are not permitted"),
    "no message": (request(), "at least one message"),
    "assistant first": (request(CALL), "first message"),
    "system role": (request(USER, {"role": "system", "content": "s"}), "role: Input should be"),
    "empty text": (request({"role": "user", "content": [{"type": "text", "text": ""}]}), "must be non-empty"),
    "blank text": (request({"role": "user", "content": " "}), "non-whitespace"),
    "no content": (request({"role": "user", "content": []}), "non-empty content"),
    "call unanswered": (request(USER, CALL), "without `tool_result`"),
    "call answered late": (request(USER, CALL, USER), "without `tool_result`"),
    "result of nothing": (request({"role": "user", "content": [RESULT]}), "unexpected `tool_use_id`"),
    "result twice": (request(USER, CALL, {"role": "user", "content": [RESULT, RESULT]}), "single result"),
    "text before result": (request(USER, CALL, {"role": "user", "content": [{"type": "text", "text": "x"}, RESULT]}), "must come before"),
    "empty error": (request(USER, CALL, {"role": "user", "content": [{**RESULT, "content": "", "is_error": True}]}), "cannot be empty"),
    "picture in an error": (
        request(USER, CALL, {"role": "user", "content": [{**RESULT, "content": [{"type": "image", "source": {}}], "is_error": True}]}),
        "must be type `text`",
    ),
    "illegal id": (request(USER, {"role": "assistant", "content": [{**CALL["content"][0], "id": "a.b"}]}), "String should match"),  # type: ignore[dict-item]
    "input no object": (request(USER, {"role": "assistant", "content": [{**CALL["content"][0], "input": "x"}]}), "valid dictionary"),  # type: ignore[dict-item]
    "trailing space": (request(USER, {"role": "assistant", "content": "Well, "}), "trailing whitespace"),
    "unsigned": (request(USER, {"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}]}), "signature: Field required"),
    "forced thinker": (
        request(USER, tools=[TOOL], tool_choice={"type": "any"}, thinking={"type": "enabled", "budget_tokens": 1024}),
        "when tool_choice forces",
    ),
    "tool without type": (request(USER, tools=[{"name": "f", "input_schema": {"$ref": "x"}}]), "input_schema.type: Field required"),
    "choice without tools": (request(USER, tool_choice={"type": "auto"}), "while providing tools"),
    "hot": (request(USER, temperature=1.5), "range: 0..1"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_vendor_refuses_is_refused(name: str) -> None:
    """Each request that breaks one rule is refused with words of that rule."""
    body, words = REFUSED[name]
    with pytest.raises(Rejection, match=words):
        check_request(json.dumps(body).encode(), ())


def test_foreign_thinking_is_refused() -> None:
    """Thinking that the server did not write, or that was changed, is refused."""
    said = {"role": "assistant", "content": [{"type": "thinking", "thinking": "x", "signature": "s"}]}
    body = json.dumps(request(USER, said, USER)).encode()
    known = opaque(said["content"][0])
    check_request(body, {str(known)})
    with pytest.raises(Rejection, match="Invalid `signature`"):
        check_request(body, {str(known).replace("x", "y")})
    searched = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    open_end = [USER, {"role": "assistant", "content": [searched]}]
    check_request(json.dumps(request(*open_end)).encode())
    with pytest.raises(Rejection, match="without a corresponding"):
        check_request(json.dumps(request(*open_end, USER)).encode())


def post(server: AnthropicServer, body: Any, **headers: str) -> tuple[int, Any]:
    """Status and body of a reply."""
    sent = {"content-type": "application/json", "anthropic-version": "2023-06-01", "x-api-key": "k", **headers}
    asked = urllib.request.Request(f"{server.url}/v1/messages", json.dumps(body).encode(), sent)
    try:
        with urllib.request.urlopen(asked, timeout=20) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def test_a_signature_is_bound_to_its_model() -> None:
    """Thinking of one model is refused for another one of the same server; what the vendor's tools did is not."""
    with AnthropicServer([Turn("Hi", reasoning="Hm"), Turn("Yes")]) as server:
        _, whole = post(server, request(USER))
        history = request(USER, {"role": "assistant", "content": json.loads(whole)["content"]}, USER)
        status, refused = post(server, {**history, "model": "another"})
        assert status == 400 and "Invalid `signature`" in refused["error"]["message"]
        assert post(server, history)[0] == 200


def test_replies_and_refusals_have_the_vendors_shape() -> None:
    """A turn is a message or its events; a refusal an error object with its status."""
    with AnthropicServer([Turn("Hi", [Call("f", {"a": 1})], reasoning="Hm")] * 2) as server:
        status, whole = post(server, request(USER))
        assert (status, [block["type"] for block in json.loads(whole)["content"]]) == (200, ["thinking", "text", "tool_use"])
        _, stream = post(server, request(USER, stream=True))
        kinds = [line.removeprefix("event: ") for line in stream.splitlines() if line.startswith("event: ")]
        assert (kinds[0], kinds[-2:], kinds.count("content_block_start")) == ("message_start", ["message_delta", "message_stop"], 3)
        status, refused = post(server, request(CALL))
        assert (status, refused["type"], refused["error"]["type"]) == (400, "error", "invalid_request_error")
        assert post(server, request(USER), **{"x-api-key": ""})[0] == 401
