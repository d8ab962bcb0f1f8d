"""The fake model of `semantic_openai` behind Anthropic's format: the request is read as the same request of chat completions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from tests.support.http_server import Exchange
from tests.support.script import Turn
from tests.support.semantic_openai import SemanticOpenAI

_CHOICES = {"auto": "auto", "any": "required", "none": "none"}


class SemanticAnthropic(SemanticOpenAI):
    """Answers requests as a model would. What an earlier request began with counts as read from the cache, the rest as written to it."""

    def __call__(self, exchange: Exchange) -> Turn:
        """The reply to a request."""
        request = exchange.json
        turn = super().__call__(cast("Exchange", SimpleNamespace(json=_translated(request))))
        details = {**turn.usage_details, "created": max(0, (turn.usage[0] - turn.usage_details.get("cached", 0)) // 2)}
        thinking = (request.get("thinking") or {}).get("type") in {"enabled", "adaptive"}
        return replace(turn, usage_details=details, reasoning="Let me think." if thinking else "")


def _translated(request: Mapping[str, Any]) -> dict[str, Any]:
    choice = request.get("tool_choice") or {"type": "auto"}
    named = {"type": "function", "function": {"name": choice.get("name")}}
    form = (request.get("output_config") or {}).get("format")
    translated: dict[str, Any] = {
        "messages": [part for message in request["messages"] for part in _messages(message)],
        "tool_choice": _CHOICES.get(choice["type"], named),
        "parallel_tool_calls": not choice.get("disable_parallel_tool_use"),
        "max_tokens": request["max_tokens"],
        "stop": request.get("stop_sequences"),
    }
    tools = [tool for tool in request.get("tools", ()) if "input_schema" in tool]
    if tools:
        translated["tools"] = [{"type": "function", "function": {**tool, "parameters": tool["input_schema"]}} for tool in tools]
    if form:
        translated["response_format"] = {"type": "json_schema", "json_schema": {"schema": form["schema"]}}
    return translated


def _messages(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    blocks = message["content"]
    if message["role"] == "assistant":
        calls = [{"id": block["id"], "function": {"name": block["name"]}} for block in blocks if block["type"] == "tool_use"]
        return [{"role": "assistant", "content": _parts(blocks), "tool_calls": calls}]
    results = [block for block in blocks if block["type"] == "tool_result"]
    said = [{"role": "tool", "tool_call_id": block["tool_use_id"], "content": _parts(block["content"])} for block in results]
    others = [block for block in blocks if block["type"] != "tool_result"]
    return [*said, *([{"role": "user", "content": _parts(others)}] if others else [])]


def _parts(content: Any) -> Any:
    return content if isinstance(content, str) else [block for block in content if block["type"] in {"text", "image", "document"}]
