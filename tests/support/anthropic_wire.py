"""Replies in the form of Anthropic's Messages API: stream events, whole bodies, errors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tests.support.http_server import Gate, HttpReply, Part, Pause
from tests.support.replies import plain_reply
from tests.support.script import Call, Cut, Events, Failure, Raw, Reply, Turn

_REASONS = {"tool_calls": "tool_use", "stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}
_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error", 529: "overloaded_error"}
SIGNATURE = "c2lnbmVk"


@dataclass(frozen=True)
class Asked:
    """What of a request shapes its reply's form."""

    number: int
    model: str
    stream: bool

    @property
    def id(self) -> str:
        """The message's id."""
        return f"msg_{self.number:012d}"


def reply_to(asked: Asked, reply: Reply) -> HttpReply:
    """The HTTP reply that says `reply` in the form that was asked for."""
    if isinstance(reply, Raw | Failure | Cut):
        return plain_reply(reply, failure, partial(reply_to, asked))
    if isinstance(reply, Events):
        return _events(asked, reply)
    if asked.stream:
        return _stream(_turn_parts(asked, reply))
    return _whole(asked, whole_body(asked, reply), list(reply.holds.values()))


def failure(error: Failure) -> HttpReply:
    """An error in Anthropic's shape."""
    kind = _TYPES.get(error.status, "api_error" if error.status >= 500 else "invalid_request_error")
    said = {"type": "error", "error": {"type": kind, "message": error.message}, "request_id": "req_failed"}
    headers = {"content-type": "application/json", "request-id": "req_failed", **error.headers}
    return HttpReply([json.dumps(said, ensure_ascii=False).encode()], error.status, headers, "length")


def event(data: Mapping[str, Any]) -> bytes:
    """One server-sent event."""
    body = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
    return b"event: %s\ndata: %s\n\n" % (str(data.get("type")).encode(), body)


def call_blocks(asked: Asked, calls: Sequence[Call], style: str = "standard") -> list[dict[str, Any]]:
    """Calls as content blocks. Of the styles those that gateways are known for: no ids, empty ids."""
    blocks = []
    for position, call in enumerate(calls):
        identifier = f"toolu_{asked.number:04d}{position:02d}" if call.id is None else call.id
        block = {"type": "tool_use", "id": identifier, "name": call.name, "input": _input(call), **call.extra}
        if style in ("no_ids", "empty_ids"):
            block |= {"id": ""}
        blocks.append(block)
    return blocks


def _input(call: Call) -> Any:
    try:
        return json.loads(call.raw) if call.raw else {}
    except ValueError:
        return call.raw


def usage_of(turn: Turn) -> dict[str, Any]:
    """A usage object; `usage_details` may hold cached and created tokens, which the wire counts apart."""
    put, out = turn.usage
    details = turn.usage_details
    read, created = details.get("cached", 0), details.get("created", 0)
    said = {"input_tokens": put - read - created, "cache_creation_input_tokens": created, "cache_read_input_tokens": read}
    thinking = {"output_tokens_details": {"thinking_tokens": details["reasoning"]}} if details.get("reasoning") else {}
    return {**said, "output_tokens": out, "service_tier": "standard", **thinking}


def blocks_of(asked: Asked, turn: Turn) -> list[dict[str, Any]]:
    """The turn's content blocks."""
    blocks: list[dict[str, Any]] = []
    if turn.reasoning:
        blocks.append({"type": "thinking", "thinking": turn.reasoning, "signature": SIGNATURE})
    if turn.text or turn.refusal:
        blocks.append({"type": "text", "text": turn.text or turn.refusal})
    return blocks + call_blocks(asked, turn.calls, turn.style)


def whole_body(asked: Asked, turn: Turn) -> dict[str, Any]:
    """The turn as one message."""
    stop = {"stop_reason": _reason(turn), "stop_sequence": None}
    return {**_head(asked), "content": blocks_of(asked, turn), **stop, "usage": usage_of(turn)}


def _reason(turn: Turn) -> str:
    reason = turn.finish or ("tool_calls" if turn.calls else "stop")
    return _REASONS.get(reason, reason)


def _head(asked: Asked) -> dict[str, Any]:
    return {"id": asked.id, "type": "message", "role": "assistant", "model": asked.model}


def _turn_parts(asked: Asked, turn: Turn) -> list[Part]:
    """The turn's events; a place that holds counts the deltas, so that it means the same on every wire."""
    started = {**usage_of(turn), "output_tokens": 1}
    first = {**_head(asked), "content": [], "stop_reason": None, "stop_sequence": None, "usage": started}
    waiting = event({"type": "message_start", "message": first}) + event({"type": "ping"})
    groups: list[bytes] = []
    for number, block in enumerate(blocks_of(asked, turn)):
        raw = _raw(turn.calls[number - len(blocks_of(asked, turn))]) if block["type"] == "tool_use" else ""
        index = 0 if turn.style == "index_zero" else number
        start, deltas = _block_events(block, raw, turn)
        opened = event({"type": "content_block_start", "index": index, "content_block": start})
        if not groups:
            groups, waiting = [waiting + opened], b""
        else:
            waiting += opened
        for delta in deltas:
            groups.append(waiting + event({"type": "content_block_delta", "index": index, "delta": delta}))
            waiting = b""
        waiting += event({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": _reason(turn), "stop_sequence": None}
    end = event({"type": "message_delta", "delta": delta, "usage": {"output_tokens": turn.usage[1], **_late(turn)}})
    groups.append(waiting + end)
    groups.append(event({"type": "message_stop"}))
    parts: list[Part] = []
    for position, group in enumerate(groups):
        parts += [turn.holds[position], group] if position in turn.holds else [group]
    return parts


def _raw(call: Call) -> str:
    """The input as it is streamed: as a whole body has it, where the script gives an object."""
    return call.raw if isinstance(call.args, str) else json.dumps(call.args, ensure_ascii=False, separators=(",", ":"))


def _late(turn: Turn) -> dict[str, Any]:
    details = usage_of(turn).get("output_tokens_details")
    return {"output_tokens_details": details} if details else {}


def _block_events(block: Mapping[str, Any], raw: str, turn: Turn) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A block's start and its deltas."""
    if block["type"] == "text":
        return {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in _split(block["text"], turn.characters)]
    if block["type"] == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _split(block["thinking"], turn.characters)]
        return {"type": "thinking", "thinking": "", "signature": ""}, [
            *deltas,
            {"type": "signature_delta", "signature": block["signature"]},
        ]
    if turn.style in ("whole", "objects"):
        return dict(block), []
    pieces = [raw] if turn.style == "one_chunk" else ["", *_split(raw, 5)]
    return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]


def _split(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def _events(asked: Asked, reply: Events) -> HttpReply:
    if asked.stream or reply.whole is None:
        end = [event({"type": "message_stop"})] if reply.done else []
        return _stream([*(part if isinstance(part, Gate | Pause) else event(part) for part in reply.events), *end])
    return _whole(asked, reply.whole)


def _stream(parts: Iterable[Part]) -> HttpReply:
    return HttpReply(parts, headers={"content-type": "text/event-stream; charset=utf-8", "request-id": "req_stream"})


def _whole(asked: Asked, body: Mapping[str, Any], holds: Sequence[Gate | Pause] = ()) -> HttpReply:
    headers = {"content-type": "application/json", "request-id": f"req_{asked.number}"}
    return HttpReply([*holds, json.dumps(body, ensure_ascii=False).encode()], headers=headers, framing="chunked" if holds else "length")
