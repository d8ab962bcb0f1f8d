"""The fake model of `semantic_openai` behind Google's format: the request is read as the same request of chat completions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from tests.support.http_server import Exchange
from tests.support.script import Turn
from tests.support.semantic_openai import SemanticOpenAI

_CHOICES = {"AUTO": "auto", "ANY": "required", "NONE": "none", "VALIDATED": "auto"}


class SemanticGoogle(SemanticOpenAI):
    """Answers requests as a model would."""

    def __call__(self, exchange: Exchange) -> Turn:
        """The reply to a request."""
        request = exchange.json
        turn = super().__call__(cast("Exchange", SimpleNamespace(json=_translated(request))))
        thinking = request.get("generationConfig", {}).get("thinkingConfig", {}).get("includeThoughts")
        details = {**turn.usage_details, **({"reasoning": 8} if thinking else {})}
        usage = (turn.usage[0], turn.usage[1] + (8 if thinking else 0))
        return replace(turn, usage=usage, usage_details=details, reasoning="Let me think." if thinking else "")


def _translated(request: Mapping[str, Any]) -> dict[str, Any]:
    generation = request.get("generationConfig", {})
    config = (request.get("toolConfig") or {}).get("functionCallingConfig") or {}
    allowed = config.get("allowedFunctionNames")
    tools = [declared for tool in request.get("tools", ()) for declared in tool.get("functionDeclarations", ())]
    named = {"type": "function", "function": {"name": allowed[0]}} if allowed else None
    translated: dict[str, Any] = {
        "messages": [message for position, content in enumerate(request["contents"]) for message in _messages(content, position)],
        "tool_choice": named or _CHOICES[config.get("mode", "AUTO")],
        "max_tokens": generation.get("maxOutputTokens"),
        "stop": generation.get("stopSequences"),
    }
    if tools:
        said = [{**tool, "parameters": tool.get("parametersJsonSchema") or {"type": "object"}} for tool in tools]
        translated["tools"] = [{"type": "function", "function": tool} for tool in said]
    if generation.get("responseMimeType") == "application/json":
        schema = generation.get("responseJsonSchema")
        form = {"type": "json_schema", "json_schema": {"schema": schema}} if schema else {"type": "json_object"}
        translated["response_format"] = form
    return translated


def _messages(content: Mapping[str, Any], position: int) -> list[dict[str, Any]]:
    parts = content["parts"]
    if content["role"] == "model":
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        said = [{"id": f"{position}:{number}", "function": {"name": call["name"]}} for number, call in enumerate(calls)]
        return [{"role": "assistant", "content": _text(parts), "tool_calls": said}]
    responses = [part["functionResponse"] for part in parts if "functionResponse" in part]
    if responses:
        ids = [f"{position - 1}:{number}" for number in range(len(responses))]
        return [{"role": "tool", "tool_call_id": one, "content": _said(response)} for one, response in zip(ids, responses, strict=True)]
    return [{"role": "user", "content": _text(parts)}]


def _said(response: Mapping[str, Any]) -> str:
    said = response["response"]
    value = next(iter(said.values())) if len(said) == 1 else said
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _text(parts: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": part["text"]} for part in parts if "text" in part and not part.get("thought")]
