"""The strict server of the Responses API refuses what OpenAI refuses, in its words, with its status and error shape."""

import json
from typing import Any

import httpx
import pytest

from tests.support.responses_server import ResponsesServer
from tests.support.script import Call, Turn
from tests.support.strict import Rejection, Rules
from tests.support.strict_responses import Memory, check_responses_request

USER = {"role": "user", "content": "q"}
REASONING = {"id": "rs_1", "type": "reasoning", "summary": []}
CALL = {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "x"}
BARE = {key: value for key, value in CALL.items() if key != "id"}


def check(items: list[dict[str, Any]], **more: Any) -> None:
    """Check a request against a server that has sent reasoning and a call."""
    memory = Memory()
    memory.note("resp_1", [REASONING, CALL], stored=True)
    check_responses_request(json.dumps({"model": "m", "input": items, **more}).encode(), Rules(longest_id=64), memory)


def test_what_it_sent_is_taken_back() -> None:
    """Reasoning and its call together, a call without its id, and a continued response are fine."""
    check([USER, REASONING, CALL, OUTPUT])
    check([USER, BARE, OUTPUT])
    check([OUTPUT], previous_response_id="resp_1")


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ([USER, REASONING, USER], "without its required following item"),
        ([USER, REASONING, BARE, OUTPUT], "without its required following item"),
        ([USER, CALL, OUTPUT], "without its required 'reasoning' item: 'rs_1'"),
        ([USER, REASONING, {**CALL, "arguments": '{"a":1}'}, OUTPUT], "was changed"),
        ([USER, {**REASONING, "id": "rs_2"}, BARE, OUTPUT], "'rs_2' not found"),
        ([USER, {**REASONING, "id": "x_1"}, BARE, OUTPUT], "begins with 'rs'"),
        ([USER, {**REASONING, "encrypted_content": "forged"}, CALL, OUTPUT], "could not be verified"),
        ([USER, BARE], "No tool output found for function call call_1"),
        ([USER, OUTPUT], "No tool call found for function call output with call_id call_1"),
        ([USER, BARE, BARE, OUTPUT], "Duplicate call_id"),
        ([USER, {**BARE, "call_id": "x" * 65}, {**OUTPUT, "call_id": "x" * 65}], "maximum length 64"),
        ([USER, {**BARE, "name": "get it"}, OUTPUT], "does not match pattern"),
        ([USER, {**BARE, "arguments": "{"}, OUTPUT], "not a JSON object"),
        ([{**USER, "name": "ada"}], "Unknown parameter: 'input[0].name'"),
        ([{"role": "tool", "content": "x"}], "Invalid value: 'tool'"),
        ([{"role": "user", "content": [{"type": "text", "text": "x"}]}], "Invalid value: 'text'"),
        ([USER, BARE, {**OUTPUT, "output": [{"type": "input_audio", "input_audio": {}}]}], "Invalid value: 'input_audio'"),
    ],
)
def test_items_that_are_refused(items: list[dict[str, Any]], said: str) -> None:
    """Each breach of the rules of items is refused in the vendor's words."""
    with pytest.raises(Rejection, match=said.replace("[", r"\[")):
        check(items)


@pytest.mark.parametrize("name", ["stop", "messages", "max_tokens", "response_format", "reasoning_effort", "seed"])
def test_parameters_of_chat_completions_are_refused(name: str) -> None:
    """Names that only chat completions has are unknown here."""
    with pytest.raises(Rejection, match=f"Unknown parameter: '{name}'"):
        check([USER], **{name: 1})


def test_a_refusal_has_the_vendors_shape() -> None:
    """Over HTTP: the status, and an error object with message, type, param and code; the script keeps its reply."""
    with ResponsesServer([Turn(calls=[Call("f")], reasoning="Hm.")]) as server:
        reply = httpx.post(f"{server.url}/responses", headers={"authorization": "Bearer k"}, json={"model": "m", "input": [USER, OUTPUT]})
    assert (reply.status_code, server.left) == (400, 1)
    assert reply.json()["error"].keys() == {"message", "type", "param", "code"}
