"""The shortest whole reply of each wire, with what it is to say in its place."""

from __future__ import annotations

from typing import Any

from tests.vendor_types.rows import Body


def completion_saying(said: Any) -> Body:
    """A whole reply of chat completions that says this, else a text."""
    (message,) = said or [{"role": "assistant", "content": "Well."}]
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "any", "choices": [choice]}


def response_saying(said: Any) -> Body:
    """A whole reply of Responses that says this, else a text."""
    text = {"type": "output_text", "text": "Well.", "annotations": []}
    items = said or [{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]}]
    return {"id": "resp_1", "object": "response", "created_at": 1, "model": "any", "status": "completed", "output": items}


def beta_message_saying(said: Any) -> Body:
    """A whole reply of the Messages API that says this, else a text."""
    usage = {"input_tokens": 1, "output_tokens": 1}
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmVk"}
    return {
        **{"id": "msg_1", "type": "message", "role": "assistant", "model": "any", "stop_reason": "end_turn", "stop_sequence": None},
        **{"content": said or [thinking, {"type": "text", "text": "Well."}], "usage": usage},
    }


def content_saying(said: Any) -> Body:
    """A whole reply of generateContent that says this, else a text."""
    candidate = {"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": said or [{"text": "Well."}]}}
    return {"responseId": "r1", "modelVersion": "any", "candidates": [candidate]}


def chat_saying(said: Any) -> Body:
    """A whole reply of /api/chat that says this, else a text."""
    message = {"role": "assistant", **(said[0] if said else {"content": "Well."})}
    return {"model": "any", "created_at": "2026-01-01T00:00:00Z", "done": True, "done_reason": "stop", "message": message}
