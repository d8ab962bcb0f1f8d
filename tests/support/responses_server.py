"""A loopback server that speaks OpenAI's Responses API: strict about requests, scripted or thinking for itself in its replies.

    with ResponsesServer([Turn(calls=[Call("add", {"a": 1, "b": 2})], reasoning="Hm."), Turn("3")]) as server:
        model = ChatOpenAI(model="any", base_url=server.url, api_key="key", use_responses_api=True, tools=[add])

It remembers the items that it sent, as OpenAI does: one that comes back must come back unchanged, with its neighbours.
"""

from __future__ import annotations

from typing import Any

from tests.support.http_server import Exchange, HttpReply
from tests.support.openai_server import OpenAIServer, Script
from tests.support.responses_wire import Asked, items, reply_to
from tests.support.script import Cut, Events, Reply, Turn
from tests.support.semantic_openai import SemanticOpenAI
from tests.support.strict import Rules
from tests.support.strict_responses import Memory, check_responses_request

__all__ = ["ResponsesServer", "SemanticResponses"]


class ResponsesServer(OpenAIServer):
    """`rules=None` accepts any JSON body."""

    path = "/v1/responses"

    def __init__(self, script: Script = (), *, rules: Rules | None = Rules(longest_id=64)) -> None:  # noqa: B008 - frozen
        super().__init__(script, rules=rules)
        self.memory = Memory()

    def check_body(self, exchange: Exchange, rules: Rules) -> dict[str, Any]:
        """The parsed body, if the wire's rules and what was sent before take it."""
        return check_responses_request(exchange.body, rules, self.memory)

    def encode(self, exchange: Exchange, body: dict[str, Any], reply: Reply) -> HttpReply:
        """The reply in the words of the Responses API."""
        asked = Asked(exchange.number, body)
        turn = reply.reply if isinstance(reply, Cut) else reply
        if isinstance(turn, Turn):
            self.memory.note(asked.id, items(asked, turn), stored=asked.stored)
        elif isinstance(turn, Events) and turn.whole and turn.whole.get("output"):
            self.memory.note(str(turn.whole["id"]), turn.whole["output"], stored=asked.stored)
        return reply_to(asked, reply)


class SemanticResponses(SemanticOpenAI):
    """The thinking model, asked in the words of this wire."""

    def read(self, exchange: Exchange) -> dict[str, Any]:
        """The request in the words of chat completions."""
        request = dict(exchange.json)
        request["messages"] = _messages(request["input"])
        request["tools"] = [_tool(tool) for tool in request.get("tools") or []]
        choice = request.get("tool_choice", "auto")
        if isinstance(choice, dict) and choice["type"] == "function":
            request["tool_choice"] = {"type": "function", "function": {"name": choice["name"]}}
        form = (request.get("text") or {}).get("format")
        if form is not None:
            request["response_format"] = {"type": form["type"], "json_schema": form}
        request["reasoning_effort"] = (request.get("reasoning") or {}).get("effort")
        request["max_completion_tokens"] = request.get("max_output_tokens")
        return request


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": tool} if tool["type"] == "function" else tool


def _messages(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for item in items:
        kind = item.get("type", "message")
        if kind == "message":
            messages.append({"role": item["role"], "content": _parts(item["content"])})
        elif kind == "function_call":
            call = {"id": item["call_id"], "function": {"name": item["name"], "arguments": item["arguments"]}}
            messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        elif kind == "function_call_output":
            messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": _parts(item["output"])})
    return messages


def _parts(content: Any) -> Any:
    if isinstance(content, str):
        return content
    names = {"input_text": "text", "output_text": "text"}
    return [{**part, "type": names.get(part["type"], part["type"])} for part in content]
