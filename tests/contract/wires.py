"""The table of the contract: a row for each wire of each provider class. Every contract test runs over every row."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from langchain_core.language_models import BaseChatModel

from langchain_autotools import AzureChatOpenAI, ChatAnthropic, ChatGoogleGenerativeAI, ChatOllama, ChatOpenAI
from tests.support.anthropic_server import AnthropicServer
from tests.support.azure_server import KEY, VERSION, AzureResponsesServer, AzureServer
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
        chat_model: The provider class.
        model: A model of it, pointed at such a server, with these further arguments.
        messages: The bytes of a request that hold its messages, as they were sent.
        results: Id and text of the tool results at the end of a request.
        question: The text of the last user message of a request.
        cannot: What the vendor cannot do: the name of a contract test, the value of one of its parameters, and the vendor's reason.
    """

    name: str
    serve: Callable[[Script], ScriptedServer]
    chat_model: type[BaseChatModel]
    model: Callable[..., Any]
    messages: Callable[[Exchange], bytes]
    results: Callable[[Exchange], Results]
    question: Callable[[Exchange], str]
    cannot: Mapping[tuple[str, str], str] = field(default_factory=dict, hash=False)


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


def _azure_model(server: OpenAIServer, model: str = "mine", **more: Any) -> AzureChatOpenAI:
    """On Azure a model is a deployment."""
    place = {"azure_endpoint": server.address, "azure_deployment": model, "api_version": VERSION, "api_key": KEY}
    return AzureChatOpenAI(**{**place, "max_retries": 0, "timeout": 60, **more})


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


_chat_row = partial(
    Wire, messages=lambda exchange: raw_value(exchange.body, "messages"), results=_openai_results, question=_openai_question
)
_responses_row = partial(
    Wire, messages=lambda exchange: raw_value(exchange.body, "input"), results=_responses_results, question=_responses_question
)

WIRES = (
    _chat_row(name="openai-chat", serve=OpenAIServer, chat_model=ChatOpenAI, model=_openai_model),
    _responses_row(
        name="openai-responses", serve=ResponsesServer, chat_model=ChatOpenAI, model=partial(_openai_model, use_responses_api=True)
    ),
    _chat_row(name="azure-chat", serve=AzureServer, chat_model=AzureChatOpenAI, model=_azure_model),
    _responses_row(
        name="azure-responses", serve=AzureResponsesServer, chat_model=AzureChatOpenAI, model=partial(_azure_model, use_responses_api=True)
    ),
    Wire(
        name="anthropic",
        serve=AnthropicServer,
        chat_model=ChatAnthropic,
        model=_anthropic_model,
        messages=lambda exchange: raw_value(exchange.body, "messages"),
        results=_anthropic_results,
        question=_anthropic_question,
    ),
    _chat_row(name="ollama", serve=OllamaServer, chat_model=ChatOllama, model=_ollama_model),
    Wire(
        name="google",
        serve=GoogleServer,
        chat_model=ChatGoogleGenerativeAI,
        model=_google_model,
        messages=lambda exchange: raw_value(exchange.body, "contents"),
        results=_google_results,
        question=_google_question,
    ),
)


def _preset_model(vendor: Vendor, server: VendorServer, **more: Any) -> Any:
    return vendor.chat_model(**{"model": "any", "base_url": server.url, "api_key": "key", "max_retries": 0, "timeout": 60, **more})


_STRUCTURED = "test_structured_output_after_a_tool"
_NO_TOOLS = "Groq gives JSON output only where no tools are declared"
_CANNOT = {"groq": {(_STRUCTURED, method): _NO_TOOLS for method in ("json_schema", "json_mode")}}

PRESETS = tuple(
    _chat_row(
        name=vendor.name,
        serve=partial(VendorServer, vendor),
        chat_model=vendor.chat_model,
        model=partial(_preset_model, vendor),
        cannot=_CANNOT.get(vendor.name, {}),
    )
    for vendor in VENDORS
)
"""The vendors that speak chat completions in a dialect of their own."""

ROWS = (*WIRES, *PRESETS)
