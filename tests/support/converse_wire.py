"""Replies in the form of Bedrock's Converse and ConverseStream: events, whole bodies, errors.

The shapes are those of https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html and of
API_runtime_ConverseStream.html; a text has no `contentBlockStart`, which is for tools alone, and usage comes after `messageStop`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.support.aws_event_stream import CONTENT_TYPE, event_frame
from tests.support.http_server import HttpReply, Part
from tests.support.script import Call, Failure, Turn

_REASONS = {"tool_calls": "tool_use", "stop": "end_turn", "length": "max_tokens", "content_filter": "content_filtered"}
_ERRORS = {
    400: "ValidationException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    500: "InternalServerException",
    503: "ServiceUnavailableException",
}
SIGNATURE = "c2lnbmVk"


def failure(error: Failure) -> HttpReply:
    """An error in AWS's shape: its kind is in a header."""
    kind = _ERRORS.get(error.status, "ValidationException" if error.status < 500 else "InternalServerException")
    headers = {"content-type": "application/json", "x-amzn-errortype": kind, "x-amzn-requestid": "req_failed", **error.headers}
    return HttpReply([json.dumps({"message": error.message}, ensure_ascii=False).encode()], error.status, headers, "length")


def whole(number: int, turn: Turn) -> HttpReply:
    """The turn as one body."""
    message = {"role": "assistant", "content": blocks_of(number, turn)}
    said = {"output": {"message": message}, "stopReason": reason_of(turn), "usage": usage_of(turn), "metrics": {"latencyMs": 1}}
    held = list(turn.holds.values())
    headers = {"content-type": "application/json", "x-amzn-requestid": f"req_{number}"}
    return HttpReply([*held, json.dumps(said, ensure_ascii=False).encode()], headers=headers, framing="chunked" if held else "length")


def stream(number: int, turn: Turn) -> HttpReply:
    """The turn as a stream of events."""
    return streamed(_parts(number, turn), number)


def streamed(parts: list[Part], number: int) -> HttpReply:
    """Frames as a reply."""
    return HttpReply(parts, headers={"content-type": CONTENT_TYPE, "x-amzn-requestid": f"req_{number}"})


def reason_of(turn: Turn) -> str:
    """The turn's `stopReason`."""
    reason = turn.finish or ("tool_calls" if turn.calls else "stop")
    return _REASONS.get(reason, reason)


def usage_of(turn: Turn) -> dict[str, Any]:
    """The tokens; those read from a cache and written to it are counted apart."""
    put, out = turn.usage
    read, created = turn.usage_details.get("cached", 0), turn.usage_details.get("created", 0)
    cache = {"cacheReadInputTokens": read, "cacheWriteInputTokens": created}
    return {"inputTokens": put - read - created, "outputTokens": out, "totalTokens": put + out, **cache}


def blocks_of(number: int, turn: Turn) -> list[dict[str, Any]]:
    """The turn's content blocks."""
    blocks: list[dict[str, Any]] = []
    if turn.reasoning:
        blocks.append({"reasoningContent": {"reasoningText": {"text": turn.reasoning, "signature": SIGNATURE}}})
    if turn.text or turn.refusal:
        blocks.append({"text": turn.text or turn.refusal})
    return [*blocks, *(_call_block(number, place, call) for place, call in enumerate(turn.calls))]


def _call_block(number: int, place: int, call: Call) -> dict[str, Any]:
    identifier = f"tooluse_{number:04d}{place:02d}" if call.id is None else call.id
    return {"toolUse": {"toolUseId": identifier, "name": call.name, "input": _input(call), **call.extra}}


def _input(call: Call) -> Any:
    try:
        return json.loads(call.raw) if call.raw else {}
    except ValueError:
        return call.raw


def _parts(number: int, turn: Turn) -> list[Part]:
    """The turn's frames; a place that holds counts the deltas, so that it means the same on every wire."""
    groups: list[bytes] = []
    waiting = event_frame("messageStart", {"role": "assistant"})
    for index, block in enumerate(blocks := blocks_of(number, turn)):
        place = {"contentBlockIndex": index}
        if use := block.get("toolUse"):
            waiting += event_frame("contentBlockStart", {"start": {"toolUse": {key: use[key] for key in use if key != "input"}}, **place})
        if not groups:
            groups, waiting = [waiting], b""
        raw = _raw(turn.calls[index - len(blocks)]) if use else ""
        for delta in _deltas(block, raw, turn):
            groups.append(waiting + event_frame("contentBlockDelta", {"delta": delta, **place}))
            waiting = b""
        waiting += event_frame("contentBlockStop", place)
    groups.append(waiting + event_frame("messageStop", {"stopReason": reason_of(turn)}))
    groups.append(event_frame("metadata", {"usage": usage_of(turn), "metrics": {"latencyMs": 1}}))
    parts: list[Part] = []
    for position, group in enumerate(groups):
        parts += [turn.holds[position], group] if position in turn.holds else [group]
    return parts


def _deltas(block: Mapping[str, Any], raw: str, turn: Turn) -> list[dict[str, Any]]:
    if "text" in block:
        return [{"text": piece} for piece in _split(block["text"], turn.characters)]
    if thought := block.get("reasoningContent", {}).get("reasoningText"):
        pieces = [{"reasoningContent": {"text": piece}} for piece in _split(thought["text"], turn.characters)]
        return [*pieces, {"reasoningContent": {"signature": thought["signature"]}}]
    return [{"toolUse": {"input": piece}} for piece in ([raw] if turn.style in ("one_chunk", "whole", "objects") else _split(raw, 5))]


def _raw(call: Call) -> str:
    return call.raw if isinstance(call.args, str) else json.dumps(call.args, ensure_ascii=False, separators=(",", ":"))


def _split(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]
