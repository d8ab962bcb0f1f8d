"""The table of the recorded loops: one row for each wire. A new wire adds a row and its reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_autotools import ChatAnthropic, ChatOpenAI
from tests.loops import read_anthropic, read_chat, read_responses
from tests.loops.meaning import Atom

Requests = Sequence[Mapping[str, Any]]


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
        model: The model class for the recorded requests of a loop, pointed at an address, with these further arguments.
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


def _openai_model(address: str, requests: Requests, **more: Any) -> ChatOpenAI:
    model = requests[0].get("model", "any")
    return ChatOpenAI(**{"model": model, "base_url": f"{address}/v1", "api_key": "key", "max_retries": 0, **more})


def _responses_model(address: str, requests: Requests, **more: Any) -> ChatOpenAI:
    kept = {name: requests[0][name] for name in ("store", "include", "reasoning") if requests[0].get(name) is not None}
    refers = any(request.get("previous_response_id") for request in requests)
    return _openai_model(address, requests, use_responses_api=True, use_previous_response_id=refers, **kept, **more)


def _anthropic_model(address: str, requests: Requests, **more: Any) -> ChatAnthropic:
    kept = {name: requests[0][name] for name in ("max_tokens", "thinking") if requests[0].get(name) is not None}
    model = requests[0].get("model", "any")
    return ChatAnthropic(**{"model": model, "base_url": address, "api_key": "key", "max_retries": 0, **kept, **more})


ROWS = (
    Row("openai-chat", read_chat.read, _chat_tools, _openai_model),
    Row("openai-responses", read_responses.read, lambda body: _flat_tools(body.get("tools") or [], "parameters"), _responses_model),
    Row("anthropic", read_anthropic.read, lambda body: _flat_tools(body.get("tools") or [], "input_schema"), _anthropic_model),
)
