"""Histories that real runs of every row made: with thinking, signatures, server tools, images in results, calls that went wrong."""

from __future__ import annotations

import base64
import functools
from collections.abc import Iterator, Mapping
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool

from langchain_autotools import new_messages
from tests.contract.wires import Wire
from tests.support.script import Call, Events, Reply, Turn

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
THOUGHT = "A thought that is nobody else's."


@tool
def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    return f"{city}: 21 °C"


@tool
def take_picture() -> list[dict[str, Any]]:
    """Take a picture."""
    return [{"type": "text", "text": "One pixel."}, {"type": "image", "base64": PIXEL, "mime_type": "image/png"}]


@tool
def break_down(city: str) -> str:
    """Fail always."""
    raise ValueError(f"no such city: {city}")


TOOLS = [get_temperature, take_picture, break_down]
QUESTION = [SystemMessage("Be brief."), HumanMessage("How warm is it in Zürich?")]


def script(wire: Wire) -> list[Reply]:
    """The replies of a run in which everything happens."""
    return [
        Turn("Let me look.", [Call("get_temperature", {"city": "Zürich"}), Call("take_picture")], reasoning=THOUGHT),
        *SERVER_TOOLS.get(wire.name, ()),
        Turn("", [Call("break_down", {"city": "Atlantis"}), Call("no_such_tool", {"x": [1, {"y": None}]})], reasoning=THOUGHT),
        Turn("Once more.", [Call("get_temperature", '{"city": "Par'), Call("take_picture", "")]),
        Turn("21 °C.", reasoning=THOUGHT),
    ]


@functools.cache
def history(wire: Wire, version: str | None = None) -> tuple[AIMessage, tuple[BaseMessage, ...]]:
    """The run message of that run and its new messages."""
    with wire.serve(script(wire)) as server:
        message = wire.model(server, tools=TOOLS, output_version=version).invoke(QUESTION)
        assert [rejection.message for rejection in server.rejections] == []
        assert server.left == 0
    return message, tuple(new_messages(message))


# ---------------------------------------------------------------------------------------------- what servers do themselves


def _anthropic(number: int, *blocks: Mapping[str, Any], reason: str = "end_turn") -> Events:
    head = {"id": f"msg_server_{number}", "type": "message", "role": "assistant", "model": "any"}
    whole = {**head, "content": list(blocks), "stop_reason": reason, "usage": {"input_tokens": 3, "output_tokens": 2}}
    return Events([], whole)


_SEARCHED = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "Zürich"}}
_FOUND = {"type": "web_search_result", "url": "http://x", "title": "X", "encrypted_content": "sealed-by-anthropic", "page_age": None}
_CITED = {
    "type": "web_search_result_location",
    "url": "http://x",
    "title": "X",
    "encrypted_index": "index-by-anthropic",
    "cited_text": "21",
}
_CALLED = {"type": "tool_use", "id": "toolu_server", "name": "get_temperature", "input": {"city": "Bern"}}


def _responses(*items: Mapping[str, Any]) -> Events:
    usage = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
    said = {"id": "resp_server", "object": "response", "created_at": 1, "model": "any", "status": "completed", "error": None}
    return Events([], {**said, "output": list(items), "usage": usage})


SERVER_TOOLS: Mapping[str, list[Reply]] = {
    "anthropic": [
        _anthropic(
            1,
            {"type": "thinking", "thinking": "", "signature": "signed-by-anthropic"},
            {"type": "redacted_thinking", "data": "redacted-by-anthropic"},
            {"type": "text", "text": "Searching."},
            _SEARCHED,
            reason="pause_turn",
        ),
        _anthropic(
            2,
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [_FOUND]},
            {"type": "text", "text": "Found 21.", "citations": [_CITED]},
            _CALLED,
            reason="tool_use",
        ),
    ],
    "openai-responses": [
        _responses(
            {"id": "rs_server", "type": "reasoning", "summary": [], "encrypted_content": "sealed-by-openai"},
            {"id": "ws_server", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "Zürich"}},
            {
                "id": "fc_server",
                "type": "function_call",
                "call_id": "call_server",
                "name": "get_temperature",
                "arguments": '{"city":"Bern"}',
            },
        ),
    ],
}
"""Replies of a row's server that use tools of its own. A row without any needs no entry."""


# ---------------------------------------------------------------------------------------------- what is nobody else's

_OPAQUE = frozenset(
    {
        *("signature", "thought_signature", "encrypted_content", "encrypted_index", "encrypted_stdout", "data", "redacted"),
        *("reasoning", "thinking", "reasoning_content", "reasoning_details", "thoughtSignature"),
    }
)


def opaque(messages: tuple[BaseMessage, ...]) -> set[str]:
    """What in these messages only their own server may see again: thoughts, signatures, sealed state, the server's ids of messages."""
    found = {text for message in messages if isinstance(message, AIMessage) for text in _walk(message.model_dump())}
    return found | {message.id for message in messages if isinstance(message, AIMessage) and message.id}


def _walk(value: Any, key: str = "") -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _walk(inner, key if key in _OPAQUE else str(name))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _walk(inner, key)
    elif isinstance(value, bytes) and key in _OPAQUE:
        yield base64.b64encode(value).decode()
    elif isinstance(value, str) and key in _OPAQUE and len(value) > 7:
        yield value
