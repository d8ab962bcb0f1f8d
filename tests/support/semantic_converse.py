"""The fake model of `semantic_openai` behind Bedrock's Converse: the request is read as the same request of chat completions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from tests.support.http_server import Exchange
from tests.support.script import Turn
from tests.support.semantic_anthropic import SemanticAnthropic
from tests.support.semantic_openai import SemanticOpenAI


class SemanticBedrock:
    """Answers requests on either of Bedrock's wires."""

    def __init__(self) -> None:
        self._converse, self._anthropic = SemanticOpenAI(), SemanticAnthropic()

    def __call__(self, exchange: Exchange) -> Turn:
        """The reply to a request."""
        if "converse" not in exchange.path.rsplit("/", 1)[1]:
            listed = [{**message, "content": _listed(message["content"])} for message in exchange.json["messages"]]
            return self._anthropic(cast("Exchange", SimpleNamespace(json={**exchange.json, "messages": listed})))
        turn = self._converse(cast("Exchange", SimpleNamespace(json=_translated(exchange.json))))
        created = max(0, (turn.usage[0] - turn.usage_details.get("cached", 0)) // 2)
        return replace(turn, usage_details={**turn.usage_details, "created": created})


def _listed(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _translated(request: Mapping[str, Any]) -> dict[str, Any]:
    config, tools = request.get("inferenceConfig", {}), request.get("toolConfig", {})
    choice = tools.get("toolChoice") or {"auto": {}}
    forced = {"type": "function", "function": {"name": choice["tool"]["name"]}} if "tool" in choice else "required"
    translated: dict[str, Any] = {
        "messages": [part for message in request["messages"] for part in _messages(message)],
        "tool_choice": "auto" if "auto" in choice else forced,
        "max_tokens": config.get("maxTokens"),
        "stop": config.get("stopSequences"),
    }
    specs = [tool["toolSpec"] for tool in tools.get("tools", ()) if "toolSpec" in tool]
    if specs:
        functions = [{**spec, "parameters": spec["inputSchema"]["json"]} for spec in specs]
        translated["tools"] = [{"type": "function", "function": function} for function in functions]
    return translated


def _messages(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    blocks = message["content"]
    if message["role"] == "assistant":
        used = [block["toolUse"] for block in blocks if "toolUse" in block]
        calls = [{"id": use["toolUseId"], "function": {"name": use["name"]}} for use in used]
        return [{"role": "assistant", "content": _parts(blocks), "tool_calls": calls}]
    results = [block["toolResult"] for block in blocks if "toolResult" in block]
    said = [{"role": "tool", "tool_call_id": one["toolUseId"], "content": _parts(one["content"])} for one in results]
    others = _parts(blocks)
    return [*said, *([{"role": "user", "content": others}] if others else [])]


def _parts(blocks: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": block["text"]} for block in blocks if "text" in block]
