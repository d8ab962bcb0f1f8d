"""The strict server refuses what OpenAI refuses, says it in OpenAI's shape, and lets everything else pass."""

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import openai
import pytest

from tests.support.openai_server import OpenAIServer
from tests.support.script import Turn
from tests.support.strict import Rejection, Rules
from tests.support.strict_openai import check_request

Edit = Callable[[dict[str, Any]], Any]
FUNCTION = {
    "name": "f",
    "description": "A tool.",
    "parameters": {"type": "object", "properties": {"q": {"type": "integer"}}, "required": ["q"]},
}
CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"q": 1}'}}


def conversation() -> dict[str, Any]:
    """A request that OpenAI accepts, with a bit of everything."""
    other = {**CALL, "id": "call_2"}
    return {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "json, please"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,eHg="}},
                ],
            },
            {"role": "assistant", "content": None, "tool_calls": [CALL, other]},
            {"role": "tool", "tool_call_id": "call_2", "content": "two"},
            {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "one"}]},
            {"role": "assistant", "content": "Done."},
            {"role": "user", "content": "More."},
        ],
        "tools": [{"type": "function", "function": FUNCTION}],
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "parallel_tool_calls": False,
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.5,
        "stop": ["END"],
        "response_format": {"type": "json_object"},
    }


def put(path: str, value: Any) -> Edit:
    """An edit that sets the value at a dotted path."""

    def edit(request: dict[str, Any]) -> None:
        *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
        place: Any = request
        for step in steps:
            place = place[step]
        place[last] = value

    return edit


def drop(path: str) -> Edit:
    """An edit that removes what is at a dotted path."""

    def edit(request: dict[str, Any]) -> None:
        *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
        place: Any = request
        for step in steps:
            place = place[step]
        del place[last]

    return edit


def both(*edits: Edit) -> Edit:
    """Several edits in order."""
    return lambda request: [edit(request) for edit in edits]


def schema(**more: Any) -> dict[str, Any]:
    """A strict function's definition whose schema has these parts."""
    whole = {"type": "object", "properties": {"q": {"type": "integer"}}, "required": ["q"], "additionalProperties": False, **more}
    return {"name": "f", "strict": True, "parameters": whole}


def formatted(inner: dict[str, Any]) -> Edit:
    """An edit that asks for a JSON schema."""
    return put("response_format", {"type": "json_schema", "json_schema": inner})


HISTORY: list[tuple[str, Edit, str]] = [
    ("unanswered call", drop("messages.3"), "The following tool_call_ids did not have response messages: call_2"),
    (
        "nothing answered at the end",
        lambda request: request["messages"].__delitem__(slice(3, 7)),
        "did not have response messages: call_1, call_2",
    ),
    ("orphan result", drop("messages.2"), "must be a response to a preceeding message"),
    ("unknown id", put("messages.3.tool_call_id", "call_9"), "'call_9' not found in 'tool_calls' of previous message"),
    (
        "answered twice",
        put("messages.3.tool_call_id", "call_1"),
        "Duplicate value for 'tool_call_id' of 'call_1', in messages[3] and messages[4]",
    ),
    ("one id for two calls", put("messages.2.tool_calls.1.id", "call_1"), "Duplicate value for 'tool_call_id'"),
    (
        "a user between call and result",
        lambda r: r["messages"].insert(3, {"role": "user", "content": "?"}),
        "did not have response messages: call_1, call_2",
    ),
    ("no id on the result", drop("messages.3.tool_call_id"), "must have a 'tool_call_id'"),
    ("no messages", put("messages", []), "Invalid 'messages': empty array"),
    ("unknown role", put("messages.0.role", "human"), "Invalid value: 'human'. Supported values are: 'system', 'assistant'"),
    ("unknown key", put("messages.5.reasoning_content", "hm"), "Unknown parameter: 'messages[5].reasoning_content'"),
    ("name on a result", put("messages.3.name", "f"), "Unknown parameter: 'messages[3].name'"),
    ("empty assistant", put("messages.5", {"role": "assistant", "content": None}), "expected a string, got null"),
    ("no content", drop("messages.0.content"), "expected a string, got null"),
    ("empty content list", put("messages.1.content", []), "Invalid 'messages[1].content': empty array"),
    ("content of another type", put("messages.1.content", 3), "expected one of a string or array of objects"),
    (
        "image in a result",
        put("messages.4.content.0", {"type": "image_url", "image_url": {"url": "https://x/y.png"}}),
        "only allowed for messages with role 'user'",
    ),
    (
        "unknown part",
        put("messages.1.content.0", {"type": "thinking", "thinking": "x"}),
        "Supported values are: 'text', 'image_url', 'input_audio', and 'file'",
    ),
    ("part without its value", put("messages.1.content.0", {"type": "text"}), "Missing required parameter: 'messages[1].content[0].text'"),
    ("key in a part", put("messages.1.content.0.cache_control", {}), "Unknown parameter: 'messages[1].content[0].cache_control'"),
    ("bare base64", put("messages.1.content.1.image_url.url", "eHg="), "without the 'data:image/' prefix"),
    (
        "no calls in the list",
        both(put("messages.2.tool_calls", []), drop("messages.3"), drop("messages.3")),
        "Invalid 'messages[2].tool_calls': empty array",
    ),
    ("arguments as an object", put("messages.2.tool_calls.0.function.arguments", {"q": 1}), "expected a string, but got an object"),
    ("broken arguments", put("messages.2.tool_calls.0.function.arguments", '{"q": '), "not a JSON object"),
    (
        "no arguments",
        put("messages.2.tool_calls.0.function", {"name": "f"}),
        "Missing required parameter: 'messages[2].tool_calls[0].function.arguments'",
    ),
    ("illegal name", put("messages.2.tool_calls.0.function", {"name": "f:0", "arguments": "{}"}), "does not match pattern"),
    ("empty id", put("messages.2.tool_calls.0.id", ""), "empty string"),
    ("long id", put("messages.2.tool_calls.0.id", "x" * 41), "maximum length 40, but got a string with length 41"),
    (
        "no type",
        put("messages.2.tool_calls.0", {"id": "call_1", "function": CALL["function"]}),
        "Missing required parameter: 'messages[2].tool_calls[0].type'",
    ),
    ("index in a call", put("messages.2.tool_calls.0", {**CALL, "index": 0}), "Unknown parameter: 'messages[2].tool_calls[0].index'"),
]
PARAMETERS: list[tuple[str, Edit, str]] = [
    ("no model", drop("model"), "you must provide a model parameter"),
    ("no messages key", drop("messages"), "Missing required parameter: 'messages'"),
    ("unknown parameter", put("max_turns", 3), "Unknown parameter: 'max_turns'"),
    ("stream options without stream", put("stream", False), "only allowed when 'stream' is enabled"),
    ("temperature", put("temperature", 3), "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 3"),
    ("top_p", put("top_p", -1), "decimal below minimum value"),
    ("max_tokens", put("max_tokens", 0), "Invalid 'max_tokens': integer below minimum value. Expected a value >= 1"),
    ("two limits", both(put("max_tokens", 5), put("max_completion_tokens", 5)), "at the same time is not supported"),
    ("n", put("n", 1.5), "expected an integer, but got a number"),
    ("five stops", put("stop", ["a", "b", "c", "d", "e"]), "maximum length 4, but got an array with length 5"),
    ("no stops", put("stop", []), "Invalid 'stop': empty array"),
    ("logprobs", put("top_logprobs", 3), "only allowed when 'logprobs' is enabled"),
    ("effort", put("reasoning_effort", "much"), "Supported values are: 'none', 'minimal'"),
    ("boolean as text", put("parallel_tool_calls", "yes"), "expected a boolean"),
    ("json mode unasked", put("messages.1.content.0.text", "hi"), "must contain the word 'json'"),
    ("format without type", put("response_format", {}), "Missing required parameter: 'response_format.type'"),
    ("format without schema", put("response_format", {"type": "json_schema"}), "required parameter: 'response_format.json_schema'"),
    ("format without name", formatted({"schema": FUNCTION["parameters"]}), "required parameter: 'response_format.json_schema.name'"),
    (
        "loose strict format",
        formatted({"name": "x", "strict": True, "schema": FUNCTION["parameters"]}),
        "'additionalProperties' is required",
    ),
]
TOOLS: list[tuple[str, Edit, str]] = [
    ("choice without tools", drop("tools"), "'tool_choice' is only allowed when 'tools' are specified"),
    (
        "parallel without tools",
        both(drop("tools"), drop("tool_choice")),
        "'parallel_tool_calls' is only allowed when 'tools' are specified",
    ),
    ("undeclared choice", put("tool_choice.function.name", "g"), "Tool choice 'g' not found in 'tools' parameter"),
    ("langchain's choice", put("tool_choice", "any"), "Supported values are: 'none', 'auto', and 'required'"),
    ("no tools", put("tools", []), "Invalid 'tools': empty array"),
    ("two of one name", put("tools", [{"type": "function", "function": FUNCTION}] * 2), "duplicate function name 'f'"),
    ("illegal tool name", put("tools.0.function", {"name": "get weather"}), "does not match pattern"),
    ("long tool name", put("tools.0.function", {"name": "f" * 65}), "maximum length 64"),
    ("unknown kind of tool", put("tools.0", {"type": "web_search"}), "Supported values are: 'function' and 'custom'"),
    ("flat tool", put("tools.0", {"type": "function", **FUNCTION}), "Unknown parameter: 'tools[0].name'"),
    ("schema of another type", put("tools.0.function.parameters", {"type": "string"}), "got 'type: \"string\"'"),
    ("no properties", put("tools.0.function.parameters", {"type": "object"}), "object schema missing properties"),
    ("array without items", put("tools.0.function.parameters.properties.q", {"type": "array"}), "array schema missing items"),
    ("dangling reference", put("tools.0.function.parameters.properties.q", {"$ref": "#/$defs/No"}), "reference can only point to"),
    ("unknown type", put("tools.0.function.parameters.properties.q", {"type": "int"}), "'int' is not valid"),
    (
        "strict, open object",
        put("tools.0.function", schema(additionalProperties=True)),
        "'additionalProperties' is required to be supplied and to be false",
    ),
    ("strict, optional property", put("tools.0.function", schema(required=[])), "Missing 'q'"),
    ("strict, default", put("tools.0.function", schema(properties={"q": {"type": "integer", "default": 1}})), "'default' is not permitted"),
    (
        "strict, nested",
        put("tools.0.function", schema(properties={"q": {"type": "object", "properties": {}}})),
        "context=('properties', 'q'), 'additionalProperties'",
    ),
]


CASES = [
    pytest.param(*case[1:], id=case[0], marks=[pytest.mark.further] if number % 2 else [])
    for number, case in enumerate([*HISTORY, *PARAMETERS, *TOOLS])
]
"""What the server refuses; every second case by default."""


@pytest.mark.parametrize(("edit", "words"), CASES)
def test_refuses(edit: Edit, words: str) -> None:
    """A request with one thing wrong is refused in the vendor's words."""
    request = copy.deepcopy(conversation())
    edit(request)
    with pytest.raises(Rejection) as refused:
        check_request(json.dumps(request).encode(), Rules())
    assert words in refused.value.message


def accepted() -> Iterator[tuple[str, Edit]]:
    """Edits that leave a request as OpenAI accepts it."""
    yield "nothing changed", lambda request: None
    yield "no tools at all", both(drop("tools"), drop("tool_choice"), drop("parallel_tool_calls"))
    yield "text beside calls", put("messages.2.content", "Let me look.")
    yield "a refusal", put("messages.5", {"role": "assistant", "content": None, "refusal": "No."})
    yield "nulls", both(put("temperature", None), put("stop", None), put("max_tokens", None))
    yield "required", put("tool_choice", "required")
    yield "strict tool", put("tools.0.function", schema())
    yield "a tool without parameters", put("tools.0.function", {"name": "f"})
    yield "open dictionary", put("tools.0.function.parameters.properties.q", {"type": "object"})
    yield (
        "allowed tools",
        put(
            "tool_choice",
            {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]}},
        ),
    )
    yield (
        "a file",
        put("messages.1.content.0", {"type": "file", "file": {"filename": "json.pdf", "file_data": "data:application/pdf;base64,eHg="}}),
    )


@pytest.mark.parametrize("edit", [case[1] for case in accepted()], ids=[case[0] for case in accepted()])
def test_accepts(edit: Edit) -> None:
    """A request that OpenAI accepts passes."""
    request = copy.deepcopy(conversation())
    edit(request)
    assert check_request(json.dumps(request).encode(), Rules()) == request


def test_rules_can_widen_and_narrow() -> None:
    """Other servers know more keys, or want results in the order of the calls."""
    request = conversation()
    request["messages"][5]["reasoning_content"] = "hm"
    check_request(json.dumps(request).encode(), Rules(message_keys={"reasoning_content"}))
    with pytest.raises(Rejection, match="out of order"):
        check_request(json.dumps(conversation()).encode(), Rules(ordered_results=True))


def test_the_sdk_reads_the_error() -> None:
    """The vendor's SDK gets status, message, type, param and code; a refused request uses up no reply of the script."""
    with OpenAIServer([Turn("Hello")]) as server, openai.OpenAI(base_url=server.url, api_key="k", max_retries=0) as client:
        with pytest.raises(openai.BadRequestError) as refused:
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}], temperature=9)
        error = refused.value
        assert (error.status_code, error.type, error.param, error.code) == (
            400,
            "invalid_request_error",
            "temperature",
            "decimal_above_max_value",
        )
        assert "decimal above maximum value" in error.message
        assert [rejection.param for rejection in server.rejections] == ["temperature"]
        reply = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
        assert reply.choices[0].message.content == "Hello"


def test_http_itself_is_checked() -> None:
    """A wrong path, a missing key and a body that is no JSON are refused as HTTP errors."""
    with OpenAIServer() as server:
        with (
            openai.OpenAI(base_url=server.address, api_key="k", max_retries=0) as client,
            pytest.raises(openai.NotFoundError, match="Invalid URL"),
        ):
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
        assert httpx.post(f"{server.url}/chat/completions", json=conversation()).status_code == 401
        assert httpx.post(f"{server.url}/chat/completions", content=b"x", headers={"authorization": "Bearer k"}).status_code == 415
    with pytest.raises(Rejection, match="could not parse the JSON body"):
        check_request(b"{", Rules())
