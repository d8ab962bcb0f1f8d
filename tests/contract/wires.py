"""The table of the contract: one row for each provider class. A new wire adds a row, and every contract test runs over it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from langchain_autotools import ChatAnthropic, ChatGoogleGenerativeAI, ChatOllama, ChatOpenAI
from tests.support.anthropic_server import AnthropicServer
from tests.support.google_server import GoogleServer
from tests.support.http_server import Exchange
from tests.support.ollama_server import OllamaServer
from tests.support.openai_server import OpenAIServer
from tests.support.responses_server import ResponsesServer
from tests.support.scripted_server import Script, ScriptedServer
from tests.support.vendor_server import VendorServer
from tests.support.vendors import VENDORS, Vendor

Results = list[tuple[str, str]]


@dataclass(frozen=True)
class Wire:
    """What a contract test needs to know of a wire.

    Attributes:
        name: The row's name in test ids.
        serve: A strict loopback server of the wire that plays a script (tests/support/script.py).
        model: The provider class, pointed at such a server, with these further arguments.
        messages: The bytes of a request that hold its messages, as they were sent.
        results: Id and text of the tool results at the end of a request.
        question: The text of the last user message of a request.
        cannot: What the vendor cannot do: the name of a contract test, and the vendor's reason.
    """

    name: str
    serve: Callable[[Script], ScriptedServer]
    model: Callable[..., Any]
    messages: Callable[[Exchange], bytes]
    results: Callable[[Exchange], Results]
    question: Callable[[Exchange], str]
    cannot: Mapping[str, str] = field(default_factory=dict, hash=False)


def raw_value(body: bytes, key: str) -> bytes:
    """The bytes of one top-level value of a JSON object, as they were sent."""
    text = body.decode()
    start = text.index(f'"{key}":') + len(key) + 3
    start += len(text[start:]) - len(text[start:].lstrip())
    _, end = json.JSONDecoder().raw_decode(text, start)
    return text[start:end].encode()


def _openai_model(server: OpenAIServer, **more: Any) -> ChatOpenAI:
    return ChatOpenAI(
        **{"model": "any", "base_url": server.url, "api_key": "key", "max_retries": 0, "timeout": 60, "stream_usage": True, **more}
    )


def _openai_results(exchange: Exchange) -> Results:
    found: Results = []
    for message in reversed(exchange.json["messages"]):
        if message["role"] == "tool":
            found.insert(0, (message["tool_call_id"], _openai_text(message)))
        elif message["role"] == "assistant":
            break
    return found


def _openai_question(exchange: Exchange) -> str:
    return next(_openai_text(message) for message in reversed(exchange.json["messages"]) if message["role"] == "user")


def _openai_text(message: Mapping[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _responses_model(server: OpenAIServer, **more: Any) -> ChatOpenAI:
    return _openai_model(server, use_responses_api=True, **more)


def _responses_results(exchange: Exchange) -> Results:
    found: Results = []
    for item in reversed(exchange.json["input"]):
        if item.get("type") == "function_call_output":
            found.insert(0, (item["call_id"], _responses_text(item["output"])))
        elif item.get("type") == "function_call" or item.get("role") == "assistant":
            break
    return found


def _responses_question(exchange: Exchange) -> str:
    return next(_responses_text(item["content"]) for item in reversed(exchange.json["input"]) if item.get("role") == "user")


def _responses_text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _anthropic_model(server: AnthropicServer, **more: Any) -> ChatAnthropic:
    return ChatAnthropic(**{"model": "any", "base_url": server.url, "api_key": "key", "max_retries": 0, **more})


def _anthropic_results(exchange: Exchange) -> Results:
    blocks = [block for block in exchange.json["messages"][-1]["content"] if block["type"] == "tool_result"]
    return [(block["tool_use_id"], _openai_text(block)) for block in blocks]


def _anthropic_question(exchange: Exchange) -> str:
    users = [message for message in exchange.json["messages"] if message["role"] == "user"]
    return next(text for text in map(_openai_text, reversed(users)) if text)


def _ollama_model(server: OllamaServer, **more: Any) -> ChatOllama:
    return ChatOllama(**{"model": "any", "base_url": server.url, "max_retries": 0, **more})


def _google_model(server: GoogleServer, **more: Any) -> ChatGoogleGenerativeAI:
    return ChatGoogleGenerativeAI(**{"model": "any", "base_url": server.url, "api_key": "key", "max_retries": 0, **more})


def _google_results(exchange: Exchange) -> Results:
    contents = exchange.json["contents"]
    place = next((place for place in reversed(range(len(contents))) if "functionResponse" in contents[place]["parts"][0]), None)
    if place is None or any(content["role"] == "model" for content in contents[place:]):
        return []
    responses = [part["functionResponse"] for part in contents[place]["parts"]]
    return [(response.get("id", ""), _google_said(response["response"])) for response in responses]


def _google_said(response: Mapping[str, Any]) -> str:
    return str(response["result"]) if response.keys() == {"result"} else json.dumps(response, ensure_ascii=False)


def _google_question(exchange: Exchange) -> str:
    users = [content for content in exchange.json["contents"] if content["role"] == "user"]
    texts = ("".join(part.get("text", "") for part in content["parts"]) for content in reversed(users))
    return next(text for text in texts if text)


WIRES = (
    Wire(
        name="openai-chat",
        serve=OpenAIServer,
        model=_openai_model,
        messages=lambda exchange: raw_value(exchange.body, "messages"),
        results=_openai_results,
        question=_openai_question,
    ),
    Wire(
        name="openai-responses",
        serve=ResponsesServer,
        model=_responses_model,
        messages=lambda exchange: raw_value(exchange.body, "input"),
        results=_responses_results,
        question=_responses_question,
    ),
    Wire(
        name="anthropic",
        serve=AnthropicServer,
        model=_anthropic_model,
        messages=lambda exchange: raw_value(exchange.body, "messages"),
        results=_anthropic_results,
        question=_anthropic_question,
    ),
    Wire(
        name="ollama",
        serve=OllamaServer,
        model=_ollama_model,
        messages=lambda exchange: raw_value(exchange.body, "messages"),
        results=_openai_results,
        question=_openai_question,
    ),
    Wire(
        name="google",
        serve=GoogleServer,
        model=_google_model,
        messages=lambda exchange: raw_value(exchange.body, "contents"),
        results=_google_results,
        question=_google_question,
    ),
)


def _preset_model(vendor: Vendor, server: VendorServer, **more: Any) -> Any:
    return vendor.chat_model(**{"model": "any", "base_url": server.url, "api_key": "key", "max_retries": 0, "timeout": 60, **more})


_CANNOT = {
    "groq": {"test_structured_output_after_a_tool": "Groq gives JSON output only where no tools are declared"},
    "deepseek": {"test_structured_output_after_a_tool": "DeepSeek has no JSON schemas of replies: a call stands for them"},
}

PRESETS = tuple(
    Wire(
        name=vendor.name,
        serve=partial(VendorServer, vendor),
        model=partial(_preset_model, vendor),
        messages=lambda exchange: raw_value(exchange.body, "messages"),
        results=_openai_results,
        question=_openai_question,
        cannot=_CANNOT.get(vendor.name, {}),
    )
    for vendor in VENDORS
)
"""The vendors that speak chat completions in a dialect of their own."""

TOUCHED_BY_A_DIALECT = frozenset(
    {
        "test_a_simple_tool",
        "test_parallel_tools_run_at_once_and_answer_in_order",
        "test_a_tool_without_arguments",
        "test_a_tool_that_returns_an_image",
        "test_a_bound_tool_is_left_to_the_caller",
        "test_every_way_gives_the_same",
        "test_the_run_message_and_its_parts_are_the_same_input",
        "test_each_request_begins_with_the_one_before",
        "test_a_model_that_thinks_between_its_calls",
        "test_thoughts_are_the_same_input_however_they_are_stored",
    }
)
"""The tests of the contract that run over presets too. A preset is `ChatOpenAI` with other data: it shares client, stream, mapper
and loop with the row `openai-chat`, which all tests cover. What its data can change is how calls are cut and read, their ids, what
goes back with a history and what may follow what; these tests see all of it. The rest (cancellation, a hundred runs at once, text
that leaves at once ...) cannot differ, and runs under the marker `exhaustive`."""
