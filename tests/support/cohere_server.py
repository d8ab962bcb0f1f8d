"""A loopback server that speaks Cohere's chat, version 2: https://docs.cohere.com/docs/tool-use-streaming.

The script is as of `OpenAIServer`. Of requests it checks what its own API shares with chat completions: messages, calls and results.
"""

from __future__ import annotations

import json
from typing import Any

from tests.support.http_server import Exchange, HttpReply
from tests.support.replies import plain_reply
from tests.support.script import Cut, Failure, Raw, Reply, Turn
from tests.support.scripted_server import ScriptedServer
from tests.support.strict import Rejection, Rules
from tests.support.strict_messages import check_messages

_REASONS = {"tool_calls": "TOOL_CALL", "stop": "COMPLETE", "length": "MAX_TOKENS", "content_filter": "ERROR"}


class CohereServer(ScriptedServer):
    """Plays a script as Cohere would."""

    path = "/v2/chat"

    def check(self, exchange: Exchange) -> dict[str, Any]:
        """The parsed body, or a `Rejection`."""
        if (exchange.method, exchange.path) != ("POST", self.path):
            raise Rejection("not found", status=404)
        body: dict[str, Any] = exchange.json
        check_messages([_with_texts(message) for message in body["messages"]], Rules(message_keys=("tool_plan",)))
        return body

    def encode(self, exchange: Exchange, body: dict[str, Any], reply: Reply) -> HttpReply:
        """The reply in Cohere's form."""
        if isinstance(reply, Raw | Failure | Cut):
            return plain_reply(reply, _failure, lambda inner: self.encode(exchange, body, inner))
        assert isinstance(reply, Turn)
        return _streamed(exchange.number, reply) if body.get("stream") else _whole(exchange.number, reply)

    def refuse(self, rejection: Rejection) -> HttpReply:
        """The rejection in Cohere's form."""
        return _failure(Failure(rejection.status, rejection.message))


def _with_texts(message: dict[str, Any]) -> dict[str, Any]:
    """A result's documents as texts: https://docs.cohere.com/docs/tool-use-overview."""
    if message["role"] != "tool" or isinstance(message["content"], str):
        return message
    parts = [{"type": "text", "text": json.dumps(part["document"])} if part["type"] == "document" else part for part in message["content"]]
    return {**message, "content": parts}


def _failure(error: Failure) -> HttpReply:
    said = {"id": "failed", "message": error.message}
    return HttpReply([json.dumps(said).encode()], error.status, {"content-type": "application/json", **error.headers}, "length")


def _ending(turn: Turn) -> dict[str, Any]:
    reason = turn.finish or ("tool_calls" if turn.calls else "stop")
    put, out = turn.usage
    usage = {"billed_units": {"input_tokens": put, "output_tokens": out}, "tokens": {"input_tokens": put, "output_tokens": out}}
    return {"finish_reason": _REASONS.get(reason, reason), "usage": usage}


def _calls(number: int, turn: Turn) -> list[dict[str, Any]]:
    return [
        {"id": call.id or f"call_{number}_{place}", "type": "function", "function": {"name": call.name, "arguments": call.raw}}
        for place, call in enumerate(turn.calls)
    ]


def _whole(number: int, turn: Turn) -> HttpReply:
    """With calls the text is the plan."""
    message: dict[str, Any] = {"role": "assistant"}
    if turn.calls:
        message |= {"tool_plan": turn.text, "tool_calls": _calls(number, turn)}
    else:
        message["content"] = [{"type": "text", "text": turn.text}]
    said = {"id": f"reply_{number}", "message": message, **_ending(turn)}
    return HttpReply([json.dumps(said).encode()], headers={"content-type": "application/json"}, framing="length")


def _streamed(number: int, turn: Turn) -> HttpReply:
    content: dict[str, Any] = {"content": [], "tool_plan": "", "tool_calls": [], "citations": []}
    events: list[dict[str, Any]] = [
        {"type": "message-start", "id": f"reply_{number}", "delta": {"message": {"role": "assistant", **content}}}
    ]
    if turn.calls:
        events.append({"type": "tool-plan-delta", "delta": {"message": {"tool_plan": turn.text}}})
    else:
        opened = {"content": {"type": "text", "text": ""}}
        events.append({"type": "content-start", "index": 0, "delta": {"message": opened}})
        events.append({"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": turn.text}}}})
        events.append({"type": "content-end", "index": 0})
    for index, call in enumerate(_calls(number, turn)):
        written = call["function"]["arguments"]
        begun = {**call, "function": {**call["function"], "arguments": ""}}
        events.append({"type": "tool-call-start", "index": index, "delta": {"message": {"tool_calls": begun}}})
        for piece in (written[:5], written[5:]):
            part = {"tool_calls": {"function": {"arguments": piece}}}
            events.append({"type": "tool-call-delta", "index": index, "delta": {"message": part}})
        events.append({"type": "tool-call-end", "index": index})
    events.append({"type": "message-end", "delta": _ending(turn)})
    parts = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events]
    return HttpReply([*parts, b"data: [DONE]\n\n"], headers={"content-type": "text/event-stream"})
