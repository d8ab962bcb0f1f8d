"""Streamed replies of the wires beside chat completions, as bytes that are made before they are asked for.

For each wire `text(count)` is an answer of `count` chunks, `reasoning(count)` is an answer of one chunk after as many chunks of reasoning;
where the wire streams arguments, `arguments(count)` is one call of `note` with `count` fragments. Shapes are those of recorded replies,
with every key that the vendor sends.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

__all__ = ["REPLIES", "fragments"]

_Event = dict[str, Any]
_STAMP = "2026-11-22T08:00:00.115854Z"


def _dumps(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _named(events: Iterable[_Event]) -> bytes:
    return b"".join(b"event: %s\ndata: %s\n\n" % (str(event["type"]).encode(), _dumps(event)) for event in events)


def _words(count: int) -> list[str]:
    return [f" word{number % 10}" for number in range(count)]


def fragments(count: int) -> list[str]:
    """The arguments of one call of `note` in `count` pieces."""
    return ['{"text":"', *["a" * 8] * (count - 2), '"}']


# ---------------------------------------------------------------------------------------------- Anthropic's Messages


def _message(block: _Event, deltas: Sequence[_Event], stop: str, before: Sequence[_Event] = ()) -> bytes:
    """A reply of one block; `before` are the events of blocks before it."""
    usage = {"input_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1}
    message = {"id": "msg_000000000001", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None}
    return _named(
        [
            {"type": "message_start", "message": {**message, "stop_sequence": None, "usage": usage}},
            *before,
            *_block(1 if before else 0, block, deltas),
            {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 5}},
            {"type": "message_stop"},
        ]
    )


def _block(index: int, block: _Event, deltas: Iterable[_Event]) -> list[_Event]:
    written = [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    begin = {"type": "content_block_start", "index": index, "content_block": block}
    return [begin, *written, {"type": "content_block_stop", "index": index}]


def _messages_text(count: int) -> bytes:
    return _message({"type": "text", "text": ""}, [{"type": "text_delta", "text": word} for word in _words(count)], "end_turn")


def _messages_reasoning(count: int) -> bytes:
    thinking = [{"type": "thinking_delta", "thinking": word} for word in _words(count)]
    signed = [*thinking, {"type": "signature_delta", "signature": "c2lnbmVk"}]
    before = _block(0, {"type": "thinking", "thinking": "", "signature": ""}, signed)
    return _message({"type": "text", "text": ""}, [{"type": "text_delta", "text": "end"}], "end_turn", before)


def _messages_arguments(count: int) -> bytes:
    block = {"type": "tool_use", "id": "toolu_1", "name": "note", "input": {}}
    return _message(block, [{"type": "input_json_delta", "partial_json": piece} for piece in fragments(count)], "tool_use")


# ---------------------------------------------------------------------------------------------- OpenAI's Responses


def _response(item: _Event, empty: _Event, inner: Sequence[_Event]) -> bytes:
    """One output item's events; `inner` are those between its beginning and its end."""
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    envelope = {"id": "resp_000000000001", "object": "response", "created_at": 1, "error": None, "model": "m", "output": [], "usage": None}
    envelope |= {"incomplete_details": None, "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "status": "in_progress"}
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15, **details}
    events: list[_Event] = [
        {"type": "response.created", "response": envelope},
        {"type": "response.in_progress", "response": envelope},
        {"type": "response.output_item.added", "output_index": 0, "item": empty},
        *inner,
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {**envelope, "status": "completed", "output": [item], "usage": usage}},
    ]
    return _named({**event, "sequence_number": number} for number, event in enumerate(events))


def _responses_text(count: int) -> bytes:
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    text = "".join(_words(count))
    part = {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
    item = {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "content": [part]}
    name = "response.output_text"
    deltas = ({"type": f"{name}.delta", **place, "delta": word, "logprobs": [], "obfuscation": "aBcDeFgH"} for word in _words(count))
    inner = [
        {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
        *deltas,
        {"type": f"{name}.done", **place, "text": text, "logprobs": []},
        {"type": "response.content_part.done", **place, "part": part},
    ]
    return _response(item, {**item, "status": "in_progress", "content": []}, inner)


def _responses_reasoning(count: int) -> bytes:
    place = {"item_id": "rs_1", "output_index": 0, "summary_index": 0}
    part = {"type": "summary_text", "text": "".join(_words(count))}
    item = {"id": "rs_1", "type": "reasoning", "summary": [part]}
    name = "response.reasoning_summary"
    deltas = ({"type": f"{name}_text.delta", **place, "delta": word, "obfuscation": "aBcDeFgH"} for word in _words(count))
    inner = [
        {"type": f"{name}_part.added", **place, "part": {**part, "text": ""}},
        *deltas,
        {"type": f"{name}_text.done", **place, "text": part["text"]},
        {"type": f"{name}_part.done", **place, "part": part},
    ]
    return _response(item, {**item, "summary": []}, inner)


def _responses_arguments(count: int) -> bytes:
    place = {"item_id": "fc_1", "output_index": 0}
    text = "".join(fragments(count))
    item = {"id": "fc_1", "type": "function_call", "status": "completed", "arguments": text, "call_id": "call_1", "name": "note"}
    name = "response.function_call_arguments"
    deltas = ({"type": f"{name}.delta", **place, "delta": piece, "obfuscation": "aBcDeFgH"} for piece in fragments(count))
    inner = [*deltas, {"type": f"{name}.done", **place, "arguments": text, "name": "note"}]
    return _response(item, {**item, "status": "in_progress", "arguments": ""}, inner)


# ---------------------------------------------------------------------------------------------- Google's and Ollama's


def _google_text(count: int, *, thought: bool = False) -> bytes:
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    common = {"usageMetadata": usage, "modelVersion": "m", "responseId": "resp_000000000001"}

    def event(text: str, **more: Any) -> bytes:
        part = {"text": text, "thought": True} if thought and not more else {"text": text}
        candidate = {"content": {"parts": [part], "role": "model"}, **more, "index": 0}
        return b"data: " + _dumps({"candidates": [candidate], **common}) + b"\r\n\r\n"

    return b"".join(map(event, _words(count - 1))) + event(" end", finishReason="STOP")


def _google_reasoning(count: int) -> bytes:
    return _google_text(count + 1, thought=True)


def _ollama_text(count: int, *, thought: bool = False) -> bytes:
    head = {"model": "m", "created_at": _STAMP}
    contents: list[_Event] = [{"content": "", "thinking": word} if thought else {"content": word} for word in _words(count)]
    contents += [{"content": "end"}] if thought else []
    said = [{**head, "message": {"role": "assistant", **content}, "done": False} for content in contents]
    counts = {
        "total_duration": 9,
        "load_duration": 1,
        "prompt_eval_count": 10,
        "prompt_eval_duration": 2,
        "eval_count": 5,
        "eval_duration": 6,
    }
    last = {**head, "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop", **counts}
    return b"".join(_dumps(event) + b"\n" for event in [*said, last])


def _ollama_reasoning(count: int) -> bytes:
    return _ollama_text(count, thought=True)


_MAKERS: dict[str, dict[str, Callable[[int], bytes]]] = {
    "/v1/messages": {"text": _messages_text, "reasoning": _messages_reasoning, "arguments": _messages_arguments},
    "/v1/responses": {"text": _responses_text, "reasoning": _responses_reasoning, "arguments": _responses_arguments},
    "/v1beta/models": {"text": _google_text, "reasoning": _google_reasoning},
    "/api/chat": {"text": _ollama_text, "reasoning": _ollama_reasoning},
}
REPLIES: dict[tuple[str, str], Callable[[int], bytes]] = {
    (path, kind): cache(make) for path, makers in _MAKERS.items() for kind, make in makers.items()
}
"""The reply to a request, by the beginning of its path and by what is wanted."""
