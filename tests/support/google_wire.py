"""Replies in the form of Google's generateContent: stream events, whole bodies, errors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tests.support.http_server import Gate, HttpReply, Part, Pause
from tests.support.replies import plain_reply
from tests.support.script import Call, Cut, Events, Failure, Raw, Reply, Turn

_REASONS = {"tool_calls": "STOP", "stop": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}
_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


@dataclass(frozen=True)
class Asked:
    """What of a request shapes its reply's form."""

    number: int
    model: str
    stream: bool
    sse: bool = True
    ids: bool = True

    @property
    def id(self) -> str:
        """The reply's id."""
        return f"resp{self.number:012d}"


def reply_to(asked: Asked, reply: Reply) -> HttpReply:
    """The HTTP reply that says `reply` in the form that was asked for."""
    if isinstance(reply, Raw | Failure | Cut):
        return plain_reply(reply, failure, partial(reply_to, asked))
    if isinstance(reply, Events):
        return _events(asked, reply)
    if asked.stream:
        return _stream(asked, _turn_parts(asked, reply))
    return _whole(whole_body(asked, reply), list(reply.holds.values()))


def failure(error: Failure) -> HttpReply:
    """An error in Google's shape."""
    status = error.code or _STATUSES.get(error.status, "UNKNOWN")
    said = {"error": {"code": error.status, "message": error.message, "status": status}}
    headers = {"content-type": "application/json; charset=UTF-8", **error.headers}
    return HttpReply([json.dumps(said, ensure_ascii=False, indent=2).encode()], error.status, headers, "length")


def signature(asked: Asked, what: str) -> str:
    """An opaque text that only this reply's part carries."""
    return f"c2ln{asked.number:04d}{what}"


def call_parts(asked: Asked, calls: Sequence[Call], style: str = "standard") -> list[dict[str, Any]]:
    """Calls as parts: the first one signed. Of the styles those that servers are known for: no ids, empty ids."""
    parts = []
    for position, call in enumerate(calls):
        said: dict[str, Any] = {"name": call.name, **_args(call)}
        identifier = f"fc{asked.number:04d}{position:02d}" if call.id is None else call.id
        if style == "empty_ids":
            said["id"] = ""
        elif asked.ids and style != "no_ids":
            said["id"] = identifier
        signed = {"thoughtSignature": signature(asked, "call")} if position == 0 else {}
        parts.append({"functionCall": said, **signed, **call.extra})
    return parts


def _args(call: Call) -> dict[str, Any]:
    """The arguments as an object; where they are none, as text, as some gateways send them; none at all: no key."""
    if not call.raw:
        return {}
    try:
        return {"args": json.loads(call.raw)}
    except ValueError:
        return {"args": call.raw}


def usage_of(turn: Turn) -> dict[str, Any]:
    """A usage object; `usage_details` may hold cached and thinking tokens, and the reply's count includes the latter."""
    put, out = turn.usage
    details = turn.usage_details
    thinking = details.get("reasoning", 0)
    cached = {"cachedContentTokenCount": details["cached"]} if details.get("cached") else {}
    thought = {"thoughtsTokenCount": thinking} if thinking else {}
    prompt = {"promptTokenCount": put, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": put}]}
    return {**prompt, "candidatesTokenCount": out - thinking, "totalTokenCount": put + out, **cached, **thought}


def parts_of(asked: Asked, turn: Turn) -> list[dict[str, Any]]:
    """The turn's parts; a turn that thinks and calls nothing signs an empty text at its end."""
    parts: list[dict[str, Any]] = []
    if turn.reasoning:
        parts.append({"text": turn.reasoning, "thought": True})
    if turn.text or turn.refusal:
        parts.append({"text": turn.text or turn.refusal})
    parts += call_parts(asked, turn.calls, turn.style)
    if turn.reasoning and not turn.calls:
        parts.append({"text": "", "thoughtSignature": signature(asked, "text")})
    return parts


def whole_body(asked: Asked, turn: Turn) -> dict[str, Any]:
    """The turn as one reply."""
    return _event(asked, parts_of(asked, turn), usage_of(turn), _reason(turn))


def _reason(turn: Turn) -> str:
    reason = turn.finish or ("tool_calls" if turn.calls else "stop")
    return _REASONS.get(reason, reason)


def _event(asked: Asked, parts: Sequence[Mapping[str, Any]] | None, usage: Mapping[str, Any], reason: str | None = None) -> dict[str, Any]:
    content = {"content": {"parts": list(parts), "role": "model"}} if parts else {}
    candidate = {**content, **({"finishReason": reason} if reason else {}), "index": 0}
    said = {"candidates": [candidate]} if parts is not None else {}
    return {**said, "usageMetadata": usage, "modelVersion": asked.model, "responseId": asked.id}


def _turn_parts(asked: Asked, turn: Turn) -> list[Part]:
    """The turn's events; a place that holds counts the deltas, so that it means the same on every wire."""
    usage = usage_of(turn)
    early = {key: value for key, value in usage.items() if key in ("promptTokenCount", "thoughtsTokenCount")}
    groups: list[bytes] = [_sse(_event(asked, None, early))]
    pieces: list[list[dict[str, Any]]] = []
    for part in parts_of(asked, turn):
        if part.get("text"):
            pieces += [[{**part, "text": piece}] for piece in _split(part["text"], turn.characters)]
        elif pieces and "functionCall" in part and "functionCall" in pieces[-1][0] and turn.style in ("one_chunk", "empty_ids", "no_ids"):
            pieces[-1].append(part)
        else:
            pieces.append([part])
    groups += [_sse(_event(asked, piece, early)) for piece in pieces]
    groups.append(_sse(_event(asked, [], usage, _reason(turn))))
    parts: list[Part] = []
    for position, group in enumerate(groups):
        parts += [turn.holds[position], group] if position in turn.holds else [group]
    return parts


def _sse(data: Mapping[str, Any]) -> bytes:
    return b"data: %s\r\n\r\n" % json.dumps(data, ensure_ascii=False).encode()


def _split(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def _events(asked: Asked, reply: Events) -> HttpReply:
    if asked.stream or reply.whole is None:
        return _stream(asked, [part if isinstance(part, Gate | Pause) else _sse(part) for part in reply.events])
    return _whole(reply.whole)


def _stream(asked: Asked, parts: Iterable[Part]) -> HttpReply:
    """Server-sent events; where they were not asked for, a JSON array of the same."""
    if asked.sse:
        return HttpReply(parts, headers={"content-type": "text/event-stream"})
    events = b"\r\n,\r\n".join(part[6:].strip() for part in parts if isinstance(part, bytes))
    return HttpReply([b"[", events, b"]"], headers={"content-type": "application/json; charset=UTF-8"})


def _whole(body: Mapping[str, Any], holds: Sequence[Gate | Pause] = ()) -> HttpReply:
    headers = {"content-type": "application/json; charset=UTF-8"}
    return HttpReply([*holds, json.dumps(body, ensure_ascii=False).encode()], headers=headers, framing="chunked" if holds else "length")
