"""Scripts and the thinking model as the vendor's own SDK sees them: streamed and whole replies, wire styles, failures."""

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.support.http_server import Gate
from tests.support.openai_server import OpenAIServer
from tests.support.openai_wire import Asked, turn_chunks
from tests.support.script import Call, Cut, Events, Failure, Raw, Reply, Turn
from tests.support.semantic_openai import SemanticOpenAI
from tests.support.wire_styles import STYLES

USER = {"role": "user", "content": "What is add(3, 4)? Then the weather in New York, NY."}
ADD = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "maximum": 3}}, "required": ["a", "b"]}
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}, "unit": {"enum": ["C", "F"]}}, "required": ["city", "unit"]}
TOOLS = [
    {"type": "function", "function": {"name": "add", "parameters": ADD}},
    {"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}},
]


def client_of(server: OpenAIServer) -> openai.OpenAI:
    """The vendor's client, without retries."""
    return openai.OpenAI(base_url=server.url, api_key="k", max_retries=0)


def ask(client: openai.OpenAI, stream: bool, **more: Any) -> Any:
    """One request; the message as a dictionary, whichever way it came."""
    request = {"model": "m", "messages": [USER], **more}
    if not stream:
        message = client.chat.completions.create(**request).choices[0].message
        return message.model_dump(exclude_none=True)
    with client.chat.completions.stream(**request) as chunks:
        return chunks.get_final_completion().choices[0].message.model_dump(exclude_none=True)


def heard(message: dict[str, Any]) -> tuple[str, list[tuple[str, Any]]]:
    """Text and calls of a message."""
    calls = [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in message.get("tool_calls") or []]
    return message.get("content") or "", calls


@pytest.mark.parametrize("stream", [False, True])
def test_one_script_serves_both_forms(stream: bool) -> None:
    """Text, calls, refusals and usage are the same whole and streamed."""
    script = [Turn("Let me look.", [Call("f", {"q": "é"}), Call("g")]), Turn(refusal="No.")]
    with OpenAIServer(script) as server, client_of(server) as client:
        assert heard(ask(client, stream)) == ("Let me look.", [("f", {"q": "é"}), ("g", {})])
        assert ask(client, stream)["refusal"] == "No."
        assert (server.left, len(server.messages)) == (0, 2)
        with pytest.raises(openai.BadRequestError, match="no reply left"):
            ask(client, stream)


@pytest.mark.parametrize("style", STYLES)
def test_styles_keep_the_calls(style: str) -> None:
    """However a style cuts the calls, names stay in order and each call's whole arguments can be read from its fragments."""
    calls = [Call("f", {"q": "one"}), Call("g", {"q": "two"})]
    chunks = turn_chunks(Asked(0, "m", True, False), Turn(calls=calls, style=style))
    entries = [entry for chunk in chunks for entry in chunk["choices"][0]["delta"].get("tool_calls", [])]
    names = [entry["function"].get("name") for entry in entries if entry["function"].get("name")]
    assert list(dict.fromkeys(names)) == ["f", "g"]
    joined: dict[Any, str] = {}
    for entry in entries:
        text = entry["function"]["arguments"]
        for key in ("all", entry.get("index")):
            joined[key] = joined.get(key, "") + (text if isinstance(text, str) else json.dumps(text))
    assert all(any(call.raw in text for text in joined.values()) for call in calls)
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


def failing_streams() -> Iterator[tuple[str, Reply]]:
    """Replies that end badly in the middle."""
    yield "cut with a torn connection", Cut(Turn("Hello"), after=400)
    yield "error in the stream", Events([{"error": {"message": "overloaded", "code": 503}}])
    yield "HTTP error", Failure(503)


@pytest.mark.parametrize("reply", [case[1] for case in failing_streams()], ids=[case[0] for case in failing_streams()])
def test_failures_reach_the_client(reply: Reply) -> None:
    """A reply that ends badly is an error for the vendor's SDK."""
    with OpenAIServer([reply]) as server, client_of(server) as client, pytest.raises((openai.APIError, Exception), match=r"."):
        ask(client, stream=True)


def test_errors_carry_headers() -> None:
    """Status, code and headers of a scripted failure arrive."""
    failure = Failure(429, "Slow down.", "requests", "rate_limit_exceeded", headers={"retry-after": "1"})
    with OpenAIServer([failure]) as server, client_of(server) as client, pytest.raises(openai.RateLimitError) as limited:
        ask(client, stream=False)
    assert (limited.value.code, limited.value.response.headers["retry-after"]) == ("rate_limit_exceeded", "1")


def test_raw_bytes_and_gates() -> None:
    """A body of given pieces is served as it is; a hold before the n-th event stops the stream there."""
    gate = Gate()
    with OpenAIServer([Raw([b"data: [DONE]\n\n"]), Turn("Hello, world", holds={2: gate})]) as server, client_of(server) as client:
        request: dict[str, Any] = {"model": "m", "messages": [USER], "stream": True}
        assert list(client.chat.completions.create(**request)) == []
        chunks = client.chat.completions.create(**request)
        first, second = next(chunks), next(chunks)
        assert (first.choices[0].delta.content, second.choices[0].delta.content) == ("", "Hello,")
        assert gate.reached.wait(10)
        chunks.close()
        assert server.exchanges[1].disconnected.wait(10)


@pytest.mark.parametrize("stream", [False, True])
def test_the_model_calls_what_the_user_names(stream: bool) -> None:
    """Mentioned tools are called with the prompt's numbers and places inside the schema's bounds; after their results comes text."""
    with OpenAIServer(SemanticOpenAI()) as server, client_of(server) as client:
        message = ask(client, stream, tools=TOOLS)
        assert heard(message) == ("", [("add", {"a": 3, "b": 3}), ("get_weather", {"city": "New York, NY", "unit": "C"})])
        results = [
            {"role": "tool", "tool_call_id": call["id"], "content": f"<{position}>"} for position, call in enumerate(message["tool_calls"])
        ]
        said = {
            "role": "assistant",
            "tool_calls": [{key: call[key] for key in ("id", "type")} | {"function": _bare(call)} for call in message["tool_calls"]],
        }
        assert heard(ask(client, stream, tools=TOOLS, messages=[USER, said, *results])) == ("The tools said: <0>; <1>", [])
        assert server.rejections == []


def _bare(call: dict[str, Any]) -> dict[str, Any]:
    return {key: call["function"][key] for key in ("name", "arguments")}


def test_the_model_obeys_its_request() -> None:
    """Tool choice, order words in descriptions, formats, stop sequences and limits decide what is said."""
    hello = [{"role": "user", "content": "Hello"}]
    first = {"type": "function", "function": {"name": "note", "description": "Call this tool first."}}
    shy = {"type": "function", "function": {"name": "shy", "description": "Use only when asked for by name."}}
    schema = {"type": "json_schema", "json_schema": {"name": "s", "schema": ADD}}
    with OpenAIServer(SemanticOpenAI()) as server, client_of(server) as client:

        def names(**more: Any) -> list[str]:
            return [name for name, _ in heard(ask(client, False, messages=hello, **more))[1]]

        assert names(tools=TOOLS) == []
        assert names(tools=TOOLS, tool_choice="required") == ["add"]
        assert names(tools=[shy, *TOOLS], tool_choice="required") == ["add"]
        assert names(tools=[shy, *TOOLS], tool_choice="none") == []
        assert names(tools=TOOLS, tool_choice={"type": "function", "function": {"name": "get_weather"}}) == ["get_weather"]
        assert names(tools=[first, *TOOLS]) == ["note"]
        assert names(tools=[first, *TOOLS], tool_choice="required") == ["note", "add"]
        assert names(tools=[first, *TOOLS], tool_choice="required", parallel_tool_calls=False) == ["note"]
        assert json.loads(ask(client, False, messages=hello, response_format=schema)["content"]) == {"a": 1, "b": 1}
        wish = [{"role": "user", "content": "JSON with 'x' and 'y'"}]
        assert json.loads(ask(client, False, messages=wish, response_format={"type": "json_object"})["content"]).keys() == {"x", "y"}
        assert ask(client, False, messages=hello, stop=["said"])["content"] == "You "
        assert ask(client, False, messages=hello, max_tokens=2)["content"] == "You said:"


def test_the_model_counts_tokens() -> None:
    """Usage grows with the request, and what an earlier request began with is cached."""
    with OpenAIServer(SemanticOpenAI()) as server, client_of(server) as client:
        request: dict[str, Any] = {"model": "m", "messages": [USER], "reasoning_effort": "low"}
        usages = [client.chat.completions.create(**request).usage for _ in range(2)]
    details = [usage.prompt_tokens_details for usage in usages if usage and usage.prompt_tokens_details]
    first, second = details
    assert first.cached_tokens == 0
    assert (second.cached_tokens or 0) > 10
    assert all(usage and usage.completion_tokens_details and usage.completion_tokens_details.reasoning_tokens == 8 for usage in usages)
