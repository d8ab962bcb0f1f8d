"""Replies in Ollama's format: JSON lines, whole bodies, errors."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tests.support.http_server import Gate, HttpReply, Part, Pause
from tests.support.replies import plain_reply
from tests.support.script import Call, Cut, Events, Failure, Raw, Reply, Turn

_CREATED = "2026-08-04T19:58:15.115854Z"
_LINES = "application/x-ndjson"


@dataclass(frozen=True)
class Asked:
    """What of a request shapes its reply's form."""

    number: int
    model: str
    stream: bool


def reply_to(asked: Asked, reply: Reply) -> HttpReply:
    """The HTTP reply that says `reply` in the form that was asked for."""
    if isinstance(reply, Raw | Failure | Cut):
        return plain_reply(reply, failure, partial(reply_to, asked))
    if isinstance(reply, Events):
        return _events(asked, reply)
    if asked.stream:
        return HttpReply(_turn_parts(asked, reply), headers={"content-type": _LINES})
    return _whole(whole_body(asked, reply), list(reply.holds.values()))


def failure(error: Failure) -> HttpReply:
    """An error in Ollama's shape."""
    body = json.dumps({"error": error.message}, ensure_ascii=False).encode()
    return HttpReply([body], error.status, {"content-type": "application/json; charset=utf-8", **error.headers}, "length")


def line(data: Mapping[str, Any]) -> bytes:
    """One event."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def event_of(asked: Asked, **message: Any) -> dict[str, Any]:
    """An event that brings a part of a message."""
    return {"model": asked.model, "created_at": _CREATED, "message": {"role": "assistant", "content": "", **message}, "done": False}


def wire_calls(asked: Asked, calls: Sequence[Call], style: str = "standard") -> list[dict[str, Any]]:
    """Calls as they are in a message. Of the styles those that releases are known for: without ids and places, all at place 0."""
    entries = []
    for position, call in enumerate(calls):
        function = {"index": 0 if style == "index_zero" else position, "name": call.name, "arguments": _arguments(call.raw)}
        entry = {"id": f"call_{asked.number:04d}{position:02d}" if call.id is None else call.id, "function": function, **call.extra}
        if style == "empty_ids":
            entry["id"] = ""
        elif style == "no_ids":
            entry = {"function": {key: value for key, value in function.items() if key != "index"}}
        entries.append(entry)
    return entries


def _arguments(raw: str) -> Any:
    """The arguments as an object; what is none goes as the text it is, as some gateways send it."""
    try:
        return json.loads(raw)
    except ValueError:
        return raw


def last_event(asked: Asked, turn: Turn, **message: Any) -> dict[str, Any]:
    """The event that ends a reply."""
    put, out = turn.usage
    reason = "stop" if turn.finish in (None, "tool_calls") else turn.finish
    counts = {"prompt_eval_count": put, "prompt_eval_duration": 40_171_834, "eval_count": out, "eval_duration": 98_163_832}
    durations = {"total_duration": 982_325_612, "load_duration": 28_036_792}
    return {**event_of(asked, **message), "done": True, "done_reason": reason, **durations, **counts}


def whole_body(asked: Asked, turn: Turn) -> dict[str, Any]:
    """The turn as one body."""
    thinking = {"thinking": turn.reasoning} if turn.reasoning else {}
    calls = {"tool_calls": wire_calls(asked, turn.calls, turn.style)} if turn.calls else {}
    return last_event(asked, turn, content=turn.text or turn.refusal, **thinking, **calls)


def turn_events(asked: Asked, turn: Turn) -> list[dict[str, Any]]:
    """The turn as stream events, an empty one first, as servers send while they look what comes."""
    events = [event_of(asked)]
    events += [event_of(asked, thinking=piece) for piece in _split(turn.reasoning, turn.characters)]
    events += [event_of(asked, content=piece) for piece in _split(turn.text or turn.refusal, turn.characters)]
    calls = wire_calls(asked, turn.calls, turn.style)
    groups = [calls] if turn.style == "one_chunk" and calls else [[call] for call in calls]
    return [*events, *(event_of(asked, tool_calls=group) for group in groups), last_event(asked, turn)]


def _turn_parts(asked: Asked, turn: Turn) -> list[Part]:
    parts: list[Part] = []
    for position, one in enumerate(turn_events(asked, turn)):
        parts += [turn.holds[position], line(one)] if position in turn.holds else [line(one)]
    return parts


def _split(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def _events(asked: Asked, reply: Events) -> HttpReply:
    if asked.stream or reply.whole is None:
        end = [line(last_event(asked, Turn()))] if reply.done else []
        return HttpReply(
            [*(part if isinstance(part, Gate | Pause) else line(part) for part in reply.events), *end], headers={"content-type": _LINES}
        )
    return _whole(reply.whole)


def _whole(body: Mapping[str, Any], holds: Sequence[Gate | Pause] = ()) -> HttpReply:
    headers = {"content-type": "application/json; charset=utf-8"}
    return HttpReply([*holds, json.dumps(body, ensure_ascii=False).encode()], headers=headers, framing="chunked" if holds else "length")
