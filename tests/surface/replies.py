"""The replies that both classes are given, on each wire."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.support import vendor_replies
from tests.support.script import Call, Events, Failure, Reply, Turn

OSLO, ROME = (
    Call("get_temperature", {"city": "Oslo"}, id="call_aaaaaaaaaaaa"),
    Call("get_temperature", {"city": "Rome"}, id="call_bbbbbbbbbbbb"),
)

TURNS: Mapping[str, Reply] = {
    "text": Turn("Hello there."),
    "usage": Turn("Hello.", usage=(20, 9), usage_details={"cached": 4, "reasoning": 3, "created": 2}),
    "thinking": Turn("Hello.", reasoning="Let me think."),
    "calls": Turn("Look.", calls=[OSLO, ROME]),
    "call without text": Turn(calls=[OSLO]),
    "thinking and call": Turn("", reasoning="Let me think.", calls=[OSLO]),
    "call without arguments": Turn(calls=[Call("now", "", id="call_aaaaaaaaaaaa")]),
    "broken call": Turn(calls=[Call("get_temperature", '{"city": "Os', id="call_aaaaaaaaaaaa")]),
    "cut text": Turn("Hel", finish="length"),
    "cut call": Turn(calls=[Call("get_temperature", '{"city": "Os', id="call_aaaaaaaaaaaa")], finish="length"),
    "filtered": Turn("Hel", finish="content_filter"),
    "refusal": Turn(refusal="I cannot say."),
    "empty": Turn(""),
}
"""Of every wire."""

FAILURES: Mapping[str, Reply] = {str(status): Failure(status, "No.") for status in (400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 503)}
"""Errors by status."""

_OF_WIRES: Mapping[str, Mapping[str, Reply]] = {}


def _chat(delta: Mapping[str, Any], finish: str = "stop", **choice: Any) -> Events:
    """A reply of chat completions that has one chunk besides its last."""
    head = {"id": "chatcmpl-1234567890ab", "model": "any", "created": 1, "system_fingerprint": "fp_1", "service_tier": "default"}
    chunk = {**head, "object": "chat.completion.chunk"}
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    calls = [{"index": place, **call} for place, call in enumerate(delta.get("tool_calls", ()))]
    told = {"role": "assistant", **delta, **({"tool_calls": calls} if calls else {})}
    events = [
        {**chunk, "choices": [{"index": 0, "delta": told, "finish_reason": None, **choice}]},
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
        {**chunk, "choices": [], "usage": usage},
    ]
    message = {"role": "assistant", "content": None, **delta}
    whole = {**head, "object": "chat.completion", "usage": usage}
    return Events(events, {**whole, "choices": [{"index": 0, "message": message, "finish_reason": finish, **choice}]})


_LOGPROBS = [{"token": "Hi", "logprob": -0.5, "bytes": [72, 105], "top_logprobs": [{"token": "Hi", "logprob": -0.5, "bytes": None}]}]


def _chat_replies() -> Iterator[tuple[str, Reply]]:
    yield "vendor's tools", vendor_replies.chat()
    yield "logprobs", _chat({"content": "Hi"}, logprobs={"content": _LOGPROBS, "refusal": None})
    yield "audio", _chat({"content": None, "audio": {"id": "audio_1", "data": "AAAA", "transcript": "Hi", "expires_at": 9}})
    custom = {"id": "call_aaaaaaaaaaaa", "type": "custom", "custom": {"name": "shell", "input": "ls"}}
    yield "custom call", _chat({"content": None, "tool_calls": [custom]}, "tool_calls")
    cited = [{"type": "url_citation", "url_citation": {"url": "https://a.example", "title": "A", "start_index": 0, "end_index": 2}}]
    yield "citation", _chat({"content": "Hi", "annotations": cited})


def _responses(*items: Mapping[str, Any], **more: Any) -> Events:
    """A reply of the Responses API whose items come whole."""
    usage = {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    head = {"id": "resp_1234567890ab", "object": "response", "created_at": 1, "model": "any", "parallel_tool_calls": True, "tools": []}
    whole = {**head, "tool_choice": "auto", "status": "completed", "output": list(items), "usage": {**usage, **details}, **more}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**whole, "status": "in_progress", "output": [], "usage": None}}
    ]
    for place, item in enumerate(items):
        at = {"output_index": place, "item_id": item["id"]}
        events.append({"type": "response.output_item.added", "output_index": place, "item": {**item, **_UNWRITTEN.get(item["type"], {})}})
        events += [{**event, **at} for event in _written(item)]
        events.append({"type": "response.output_item.done", "output_index": place, "item": item})
    events.append({"type": "response.completed", "response": whole})
    return Events([{**event, "sequence_number": number} for number, event in enumerate(events)], whole)


_UNWRITTEN: Mapping[str, Mapping[str, Any]] = {"message": {"content": []}, "reasoning": {"summary": []}, "custom_tool_call": {"input": ""}}


def _written(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The events that bring what an item says."""
    if item["type"] == "custom_tool_call":
        yield {"type": "response.custom_tool_call_input.delta", "delta": item["input"]}
    for place, part in enumerate(item.get("content") or () if item["type"] == "message" else ()):
        at, key = {"content_index": place}, "refusal" if part["type"] == "refusal" else "text"
        yield {"type": "response.content_part.added", **at, "part": {**part, key: ""}}
        name = "refusal" if key == "refusal" else "output_text"
        yield {
            "type": f"response.{name}.delta",
            **at,
            "delta": part[key],
            **({"logprobs": part["logprobs"]} if part.get("logprobs") else {}),
        }
        for number, annotation in enumerate(part.get("annotations") or ()):
            said = {"annotation_index": number, "annotation": annotation}
            yield {"type": "response.output_text.annotation.added", **at, **said}
        yield {"type": "response.content_part.done", **at, "part": part}
    for place, part in enumerate(item.get("summary") or ()):
        at = {"summary_index": place}
        yield {"type": "response.reasoning_summary_part.added", **at, "part": {**part, "text": ""}}
        yield {"type": "response.reasoning_summary_text.delta", **at, "delta": part["text"]}
        yield {"type": "response.reasoning_summary_part.done", **at, "part": part}


def _said(text: str, **more: Any) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": [], **more}
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}


def _responses_replies() -> Iterator[tuple[str, Reply]]:
    yield "vendor's tools", vendor_replies.responses()
    yield "logprobs", _responses(_said("Hi", logprobs=_LOGPROBS))
    cited = {"type": "url_citation", "url": "https://a.example", "title": "A", "start_index": 0, "end_index": 2}
    filed = {"type": "file_citation", "file_id": "file_1", "filename": "a.txt", "index": 2}
    yield "citation", _responses(_said("Hi", annotations=[cited, filed]))
    custom = {
        "id": "ctc_1",
        "type": "custom_tool_call",
        "call_id": "call_aaaaaaaaaaaa",
        "name": "shell",
        "input": "ls",
        "status": "completed",
    }
    yield "custom call", _responses(custom)
    parts = [{"type": "summary_text", "text": text} for text in ("First.", "Second.")]
    yield "two summaries", _responses({"id": "rs_1", "type": "reasoning", "summary": parts, "encrypted_content": "ZW5j"}, _said("Hi"))
    yield "two texts", _responses({**_said("Hi"), "phase": "commentary"}, {**_said("there"), "id": "msg_2", "phase": "final_answer"})


def _ollama_replies() -> Iterator[tuple[str, Reply]]:
    yield "vendor's image", vendor_replies.ollama()
    head = {"model": "any", "created_at": "2026-11-25T12:00:00Z"}
    counts = {"done_reason": "stop", "total_duration": 5, "prompt_eval_count": 11, "eval_count": 7}
    said = {"message": {"role": "assistant", "content": "Hi"}, "logprobs": [{"token": "Hi", "logprob": -0.5}]}
    end = {**head, "message": {"role": "assistant", "content": ""}, "done": True, **counts}
    yield "logprobs", Events([{**head, **said, "done": False}, end], {**end, **said})


def replies_of(wire: str) -> dict[str, Reply]:
    """The replies of a wire, by name."""
    own = {
        "chat": _chat_replies,
        "responses": _responses_replies,
        "anthropic": lambda: iter([("vendor's tools", vendor_replies.anthropic())]),
        "google": lambda: iter([("vendor's tools", vendor_replies.google())]),
        "ollama": _ollama_replies,
    }[wire.removeprefix("azure-")]
    return {**TURNS, **dict(own())}
