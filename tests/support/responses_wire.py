"""How the Responses API writes a reply: stream events and whole bodies, for the same scripts as the other wires.

A turn's reasoning comes as a reasoning item with a summary and encrypted content. The preamble of the stream counts as its first event,
so that `holds` mean the same on every wire. Styles that leave out an index leave out `output_index` and `sequence_number` (as llama.cpp
does); those that send calls whole send no argument deltas; the rest are as OpenAI's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from tests.support.http_server import HttpReply, Part
from tests.support.openai_wire import failure, stream_reply, whole_reply
from tests.support.replies import plain_reply
from tests.support.script import Cut, Events, Failure, Raw, Reply, Turn

Item = dict[str, Any]
_CREATED = 1_700_000_000
_UNNUMBERED = frozenset({"no_index", "index_zero", "no_ids"})
_WHOLE = frozenset({"whole", "one_chunk", "empty_ids", "objects"})
_ENDS = {"length": "max_output_tokens", "content_filter": "content_filter"}


@dataclass(frozen=True)
class Asked:
    """What of a request shapes its reply's form."""

    number: int
    request: Mapping[str, Any]

    @property
    def id(self) -> str:
        """The response's id."""
        return f"resp_{self.number:012d}"

    @property
    def stored(self) -> bool:
        """Whether the reply is kept by the server."""
        return self.request.get("store") is not False

    @property
    def encrypted(self) -> bool:
        """Whether reasoning comes encrypted."""
        return "reasoning.encrypted_content" in (self.request.get("include") or ())


def reply_to(asked: Asked, reply: Reply) -> HttpReply:
    """The HTTP reply that says `reply` in the form that was asked for."""
    if isinstance(reply, Raw | Failure | Cut):
        return plain_reply(reply, failure, partial(reply_to, asked))
    if isinstance(reply, Events):
        if asked.request.get("stream") or reply.whole is None:
            return stream_reply([part if not isinstance(part, Mapping) else event(part) for part in reply.events])
        return whole_reply(asked.number, reply.whole)
    if asked.request.get("stream"):
        return stream_reply(_turn_parts(asked, reply))
    return whole_reply(asked.number, body(asked, reply, items(asked, reply)), list(reply.holds.values()))


def event(data: Mapping[str, Any]) -> bytes:
    """One server-sent event."""
    return f"event: {data['type']}\n".encode() + b"data: " + json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"


# ---------------------------------------------------------------------------------------------- items


def items(asked: Asked, turn: Turn) -> list[Item]:
    """The output items of a turn."""
    name = f"{asked.number:04d}"
    status = "incomplete" if turn.finish in _ENDS else "completed"
    found: list[Item] = []
    if turn.reasoning:
        secret = {"encrypted_content": f"sealed:{name}:{turn.reasoning}"} if asked.encrypted else {}
        summary = [{"type": "summary_text", "text": turn.reasoning}]
        found.append({"id": f"rs_{name}", "type": "reasoning", "summary": summary, **secret})
    if turn.text or turn.refusal or not (turn.calls or turn.reasoning):
        text = {"type": "output_text", "annotations": [], "logprobs": [], "text": turn.text}
        part = {"type": "refusal", "refusal": turn.refusal} if turn.refusal else text
        found.append({"id": f"msg_{name}", "type": "message", "status": status, "content": [part], "role": "assistant"})
    for position, call in enumerate(turn.calls):
        known = {"id": f"fc_{name}{position:02d}", "type": "function_call", "status": status, "arguments": call.raw}
        identifier = f"call_{name}{position:02d}" if call.id is None else call.id
        found.append({**known, "call_id": identifier, "name": call.name, **call.extra})
    return [*found, *map(dict, turn.items)]


def body(asked: Asked, turn: Turn, output: list[Item]) -> dict[str, Any]:
    """The whole response."""
    reason = _ENDS.get(turn.finish or "")
    put, out = turn.usage
    details = turn.usage_details
    usage = {
        "input_tokens": put,
        "input_tokens_details": {"cached_tokens": details.get("cached", 0)},
        "output_tokens": out,
        "output_tokens_details": {"reasoning_tokens": details.get("reasoning", 0)},
        "total_tokens": put + out,
    }
    ended = {"status": "incomplete" if reason else "completed", "incomplete_details": {"reason": reason} if reason else None}
    return {**_envelope(asked), **ended, "output": output, "usage": usage}


def _envelope(asked: Asked) -> dict[str, Any]:
    return {
        "id": asked.id,
        "object": "response",
        "created_at": _CREATED,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "model": asked.request.get("model"),
        "output": [],
        "service_tier": "default",
        "store": asked.stored,
        "usage": None,
    }


# ---------------------------------------------------------------------------------------------- streams


def _turn_parts(asked: Asked, turn: Turn) -> list[Part]:
    steps = _steps(asked, turn)
    parts: list[Part] = []
    number = 0
    for position, step in enumerate(steps):
        if position in turn.holds:
            parts.append(turn.holds[position])
        for data in step:
            numbered = {**data, "sequence_number": number}
            number += 1
            if turn.style in _UNNUMBERED:
                numbered = {key: value for key, value in numbered.items() if key not in ("output_index", "sequence_number")}
            parts.append(event(numbered))
    return parts


def _steps(asked: Asked, turn: Turn) -> list[list[Item]]:
    """The events of a turn: the preamble, then each delta with what follows it, then the end."""
    output = items(asked, turn)
    steps: list[list[Item]] = [[{"type": f"response.{name}", "response": _envelope(asked)} for name in ("created", "in_progress")]]
    for index, item in enumerate(output):
        for data in _item_events(item, index, turn):
            if data["type"].endswith(".delta"):
                steps.append([])
            steps[-1].append(data)
    response = body(asked, turn, output)
    kind = "response.incomplete" if response["status"] == "incomplete" else "response.completed"
    return [*steps, [{"type": kind, "response": response}]]


def _item_events(item: Item, index: int, turn: Turn) -> list[Item]:
    place = {"item_id": item["id"], "output_index": index}
    empty = {key: value for key, value in item.items() if key != "encrypted_content"} | {"status": "in_progress"}
    if item["type"] == "reasoning":
        del empty["status"]
        inner = _reasoning_events(item, place, turn)
        empty["summary"] = []
    elif item["type"] == "message":
        inner = _message_events(item["content"][0], place, turn)
        empty["content"] = []
    elif item["type"] == "function_call":
        inner = _call_events(item, place, turn)
        empty["arguments"] = ""
    else:
        inner = []
    added = {"type": "response.output_item.added", "output_index": index, "item": empty}
    return [added, *inner, {"type": "response.output_item.done", "output_index": index, "item": item}]


def _reasoning_events(item: Item, place: Item, turn: Turn) -> list[Item]:
    text = item["summary"][0]["text"]
    place = {**place, "summary_index": 0}
    name = "response.reasoning_summary"
    return [
        {"type": f"{name}_part.added", **place, "part": {"type": "summary_text", "text": ""}},
        *({"type": f"{name}_text.delta", **place, "delta": piece} for piece in _split(text, turn.characters)),
        {"type": f"{name}_text.done", **place, "text": text},
        {"type": f"{name}_part.done", **place, "part": item["summary"][0]},
    ]


def _message_events(part: Item, place: Item, turn: Turn) -> list[Item]:
    place = {**place, "content_index": 0}
    key = "refusal" if part["type"] == "refusal" else "text"
    name = "response.refusal" if key == "refusal" else "response.output_text"
    return [
        {"type": "response.content_part.added", **place, "part": {**part, key: ""}},
        *({"type": f"{name}.delta", **place, "delta": piece} for piece in _split(part[key], turn.characters)),
        {"type": f"{name}.done", **place, key: part[key]},
        {"type": "response.content_part.done", **place, "part": part},
    ]


def _call_events(item: Item, place: Item, turn: Turn) -> list[Item]:
    name = "response.function_call_arguments"
    pieces = [] if turn.style in _WHOLE else _split(item["arguments"], 5)
    deltas: list[Item] = [{"type": f"{name}.delta", **place, "delta": piece} for piece in pieces]
    return [*deltas, {"type": f"{name}.done", **place, "arguments": item["arguments"], "name": item["name"]}]


def _split(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]
