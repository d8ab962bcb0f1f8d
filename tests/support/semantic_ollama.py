"""The fake model of `semantic_openai` behind Ollama's format: the request is read as the same request of chat completions.

As with the real server, a format is a grammar: under it no tool is called, and nobody can be forced to call one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from tests.support.http_server import Exchange
from tests.support.script import Turn
from tests.support.semantic_openai import SemanticOpenAI


class SemanticOllama(SemanticOpenAI):
    """Answers requests as a model would; where thinking is asked for, it thinks first."""

    def __call__(self, exchange: Exchange) -> Turn:
        """The reply to a request."""
        request = exchange.json
        turn = super().__call__(cast("Exchange", SimpleNamespace(json=_translated(request))))
        return replace(turn, reasoning="Let me think." if request.get("think") else "")


def _translated(request: Mapping[str, Any]) -> dict[str, Any]:
    options, form = request.get("options", {}), request.get("format")
    translated = {
        "messages": [_message(message) for message in request["messages"]],
        "max_tokens": options.get("num_predict"),
        "stop": options.get("stop"),
    }
    if form:
        inner = {"type": "json_schema", "json_schema": {"schema": form}} if isinstance(form, dict) else {"type": "json_object"}
        return {**translated, "response_format": inner}
    return {**translated, "tools": request["tools"]} if request.get("tools") else translated


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "role": message["role"],
        "content": message["content"],
        **{k: message[k] for k in ("tool_calls", "tool_call_id") if k in message},
    }
