"""Replies in OpenAI's chat completions format: stream events, whole bodies, errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tests.support.http_server import Gate, HttpReply, Part, Pause
from tests.support.replies import plain_reply
from tests.support.script import Call, Cut, Events, Failure, Raw, Reply, Turn
from tests.support.wire_styles import STYLES

_CREATED = 1_760_000_000
_DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True)
class Asked:
    """What of a request shapes its reply's form."""

    number: int
    model: str
    stream: bool
    include_usage: bool
    choices: int = 1

    @classmethod
    def by(cls, number: int, body: Mapping[str, Any]) -> Asked:
        """Read it from a request's body."""
        options = body.get("stream_options") or {}
        return cls(number, str(body.get("model")), bool(body.get("stream")), bool(options.get("include_usage")), body.get("n") or 1)

    @property
    def id(self) -> str:
        """The completion's id."""
        return f"chatcmpl-{self.number:012d}"


def reply_to(asked: Asked, reply: Reply) -> HttpReply:
    """The HTTP reply that says `reply` in the form that was asked for."""
    if isinstance(reply, Raw | Failure | Cut):
        return plain_reply(reply, failure, partial(reply_to, asked))
    if isinstance(reply, Events):
        return _events(asked, reply)
    if asked.stream:
        return stream_reply([*_turn_events(asked, reply), _DONE])
    return whole_reply(asked.number, whole_body(asked, reply), list(reply.holds.values()))


def failure(error: Failure) -> HttpReply:
    """An error in OpenAI's shape."""
    said = {"message": error.message, "type": error.type, "param": error.param, "code": error.code}
    body = json.dumps({"error": said}, ensure_ascii=False, indent=2).encode()
    return HttpReply([body], error.status, {"content-type": "application/json", "x-request-id": "req_failed", **error.headers}, "length")


def event(data: Mapping[str, Any]) -> bytes:
    """One server-sent event."""
    return b"data: " + json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"


def chunk_of(asked: Asked, delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
    """A `chat.completion.chunk` with this delta in every choice."""
    choice = {"delta": dict(delta), "logprobs": None, "finish_reason": finish}
    choices = [{"index": index, **choice} for index in range(asked.choices)]
    return {**_envelope(asked, "chat.completion.chunk"), "choices": choices, **({"usage": None} if asked.include_usage else {})}


def wire_calls(asked: Asked, calls: Sequence[Call]) -> list[dict[str, Any]]:
    """Calls as they are in a message."""
    return [
        {
            "id": f"call_{asked.number:04d}{position:02d}" if call.id is None else call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.raw},
            **call.extra,
        }
        for position, call in enumerate(calls)
    ]


def usage_of(turn: Turn) -> dict[str, Any]:
    """A usage object; `usage_details` may hold cached, reasoning and audio tokens."""
    put, out = turn.usage
    details = turn.usage_details
    return {
        "prompt_tokens": put,
        "completion_tokens": out,
        "total_tokens": put + out,
        "prompt_tokens_details": {"cached_tokens": details.get("cached", 0), "audio_tokens": details.get("audio_input", 0)},
        "completion_tokens_details": {
            "reasoning_tokens": details.get("reasoning", 0),
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def whole_body(asked: Asked, turn: Turn) -> dict[str, Any]:
    """The turn as one `chat.completion`."""
    message: dict[str, Any] = {"role": "assistant", "content": turn.text or None, "refusal": turn.refusal or None, "annotations": []}
    if turn.reasoning:
        message["reasoning_content"] = turn.reasoning
    if turn.calls:
        chunks = STYLES[turn.style](wire_calls(asked, turn.calls)) if turn.style in {"empty_ids", "objects"} else None
        entries = wire_calls(asked, turn.calls) if chunks is None else [entry for chunk in chunks for entry in chunk]
        message["tool_calls"] = [{key: value for key, value in entry.items() if key != "index"} for entry in entries]
    choice = {"message": message, "logprobs": None, "finish_reason": _finish(turn)}
    choices = [{"index": index, **choice} for index in range(asked.choices)]
    return {**_envelope(asked, "chat.completion"), "choices": choices, "usage": usage_of(turn)}


def turn_chunks(asked: Asked, turn: Turn) -> list[dict[str, Any]]:
    """The turn as stream chunks."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": None if turn.calls and not turn.text else "", "refusal": None}]
    deltas += [{"reasoning_content": piece} for piece in _split(turn.reasoning, turn.characters)]
    deltas += [{"content": piece} for piece in _split(turn.text, turn.characters)]
    deltas += [{"refusal": piece} for piece in _split(turn.refusal, turn.characters)]
    deltas += [{"tool_calls": entries} for entries in STYLES[turn.style](wire_calls(asked, turn.calls))] if turn.calls else []
    chunks = [chunk_of(asked, delta) for delta in deltas]
    chunks.append(chunk_of(asked, {}, _finish(turn)))
    if asked.include_usage:
        chunks.append({**_envelope(asked, "chat.completion.chunk"), "choices": [], "usage": usage_of(turn)})
    return chunks


def _turn_events(asked: Asked, turn: Turn) -> list[Part]:
    parts: list[Part] = []
    for position, chunk in enumerate(turn_chunks(asked, turn)):
        if position in turn.holds:
            parts.append(turn.holds[position])
        parts.append(event(chunk))
    return parts


def _finish(turn: Turn) -> str:
    return turn.finish or ("tool_calls" if turn.calls else "stop")


def _split(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def _envelope(asked: Asked, kind: str) -> dict[str, Any]:
    return {
        "id": asked.id,
        "object": kind,
        "created": _CREATED + asked.number,
        "model": asked.model,
        "service_tier": "default",
        "system_fingerprint": "fp_loopback",
    }


def _events(asked: Asked, reply: Events) -> HttpReply:
    if asked.stream or reply.whole is None:
        parts = [part if isinstance(part, Gate | Pause) else event(part) for part in reply.events]
        return stream_reply([*parts, *([_DONE] if reply.done else [])])
    return whole_reply(asked.number, reply.whole)


def stream_reply(parts: Iterable[Part]) -> HttpReply:
    """An event stream."""
    return HttpReply(parts, headers={"content-type": "text/event-stream; charset=utf-8", "x-request-id": "req_stream"})


def whole_reply(number: int, body: Mapping[str, Any], holds: Sequence[Gate | Pause] = ()) -> HttpReply:
    """A whole body, after what is to be waited for."""
    text = json.dumps(body, ensure_ascii=False, indent=2).encode()
    headers = {"content-type": "application/json", "x-request-id": f"req_{number}"}
    return HttpReply([*holds, text], headers=headers, framing="chunked" if holds else "length")


def rewritten(part: Part, change: Callable[[dict[str, Any]], None]) -> Part:
    """An event or a whole body with choices, after a change to what it says."""
    if not isinstance(part, bytes) or b'"choices"' not in part:
        return part
    head, tail = (b"data: ", b"\n\n") if part.startswith(b"data: ") else (b"", b"")
    body = json.loads(part.removeprefix(head))
    change(body)
    return head + json.dumps(body, ensure_ascii=False).encode() + tail
