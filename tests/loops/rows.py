"""The table of the recorded loops: one row for each wire. A new wire adds a row and its reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_autotools import (
    AzureChatOpenAI,
    ChatAnthropic,
    ChatDeepSeek,
    ChatGoogleGenerativeAI,
    ChatGroq,
    ChatMistralAI,
    ChatOllama,
    ChatOpenAI,
    ChatOpenRouter,
    ChatXAI,
)
from tests.loops import read_anthropic, read_chat, read_google, read_responses
from tests.loops.meaning import Atom
from tests.loops.records import Loop

_TYPES = ("unspecified", "string", "number", "integer", "boolean", "array", "object")


@dataclass(frozen=True)
class Declared:
    """A declared tool: a function with its schema, or one of the vendor's own (`builtin`)."""

    name: str
    description: str = ""
    schema: Mapping[str, Any] | None = None
    builtin: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Row:
    """What replaying a loop needs to know of a wire.

    Attributes:
        wire: The wire, as the recordings name it.
        read: What a request says.
        tools: The tools that a request declares.
        model: The model class for a recorded loop, pointed at an address, with these further arguments.
    """

    wire: str
    read: Callable[[Mapping[str, Any]], list[Atom]]
    tools: Callable[[Mapping[str, Any]], list[Declared]]
    model: Callable[..., Any]


def _flat_tools(tools: Sequence[Mapping[str, Any]], schema: str) -> list[Declared]:
    return [
        Declared(tool["name"], tool.get("description") or "", tool[schema])
        if tool.get("type", "function") in ("function", "custom") and schema in tool
        else Declared(tool.get("name") or tool["type"], builtin=tool)
        for tool in tools
    ]


def _chat_tools(body: Mapping[str, Any]) -> list[Declared]:
    return _flat_tools([tool.get("function") or tool for tool in body.get("tools") or []], "parameters")


_PRESETS = {"deepseek": ChatDeepSeek, "groq": ChatGroq, "mistral": ChatMistralAI, "openrouter": ChatOpenRouter, "xai": ChatXAI}


def _chat_model(address: str, loop: Loop, **more: Any) -> Any:
    """The class of the loop's server: Azure's, a preset, or `ChatOpenAI`."""
    common = {"model": loop.model, "api_key": "key", "max_retries": 0, **more}
    if loop.server == "azure":
        return AzureChatOpenAI(azure_endpoint=address, azure_deployment=loop.model, api_version="2024-10-21", **common)
    made: Any = ChatOpenAI if more.get("use_responses_api") else _PRESETS.get(loop.server, ChatOpenAI)
    return made(base_url=f"{address}/v1", **common)


def _responses_model(address: str, loop: Loop, **more: Any) -> Any:
    refers = any(request.get("previous_response_id") for request in loop.requests)
    asked = _given(loop, "store", "include", "reasoning")
    return _chat_model(address, loop, use_responses_api=True, use_previous_response_id=refers, **asked, **more)


def _anthropic_model(address: str, loop: Loop, **more: Any) -> ChatAnthropic:
    asked = _given(loop, "max_tokens", "thinking")
    return ChatAnthropic(**{"model": loop.model, "base_url": address, "api_key": "key", "max_retries": 0, **asked, **more})


def _google_model(address: str, loop: Loop, **more: Any) -> ChatGoogleGenerativeAI:
    vertex = {"vertexai": True} if loop.server == "google-vertex" else {}
    return ChatGoogleGenerativeAI(**{"model": loop.model, "base_url": address, "api_key": "key", "max_retries": 0, **vertex, **more})


def _google_tools(body: Mapping[str, Any]) -> list[Declared]:
    found: list[Declared] = []
    for tool in body.get("tools") or []:
        functions = tool.get("functionDeclarations") or tool.get("function_declarations") or []
        found += [Declared(function["name"], function.get("description") or "", _google_schema(function)) for function in functions]
        builtin = {key: value for key, value in tool.items() if value is not None and not key.startswith("function")}
        found += [Declared(name, builtin={name: value}) for name, value in builtin.items()]
    return found


def _google_schema(function: Mapping[str, Any]) -> Any:
    """The schema of a function as JSON schema: the vendor's own has types in capitals, or their numbers."""
    found = [function[key] for key in ("parametersJsonSchema", "parameters_json_schema", "parameters") if function.get(key)]
    return _plain_types(found[0]) if found else {}


def _plain_types(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_plain_types(inner) for inner in schema]
    if not isinstance(schema, Mapping):
        return schema
    kind = schema.get("type")
    types = {"type": kind.lower() if isinstance(kind, str) else _TYPES[kind]} if isinstance(kind, str | int) else {}
    return {**{key: _plain_types(value) for key, value in schema.items()}, **types}


def _ollama_model(address: str, loop: Loop, **more: Any) -> ChatOllama:
    return ChatOllama(**{"model": loop.model, "base_url": address, "max_retries": 0, **_given(loop, "think"), **more})


def _given(loop: Loop, *names: str) -> dict[str, Any]:
    """The parameters of these names that the first recorded request has."""
    return {name: loop.requests[0][name] for name in names if loop.requests[0].get(name) is not None}


ROWS = (
    Row("openai-chat", read_chat.read, _chat_tools, _chat_model),
    Row("openai-responses", read_responses.read, lambda body: _flat_tools(body.get("tools") or [], "parameters"), _responses_model),
    Row("anthropic", read_anthropic.read, lambda body: _flat_tools(body.get("tools") or [], "input_schema"), _anthropic_model),
    Row("google", read_google.read, _google_tools, _google_model),
    Row("ollama", read_chat.read, _chat_tools, _ollama_model),
)
