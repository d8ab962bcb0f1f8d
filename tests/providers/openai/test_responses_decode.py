"""Events and bodies of the Responses API as chunks: every way to tell a call, text once, ends and errors."""

from collections.abc import Mapping
from typing import Any

import pytest
from langchain_core.messages import AIMessageChunk

from langchain_autotools import StreamError
from langchain_autotools.providers.openai.decode import responses_usage
from langchain_autotools.providers.openai.responses_decode import ResponsesDecoder

# ---------------------------------------------------------------------------------------------- replies


def read(events: list[dict[str, Any]], **how: Any) -> tuple[list[AIMessageChunk], AIMessageChunk]:
    """The chunks of a stream, and its last one."""
    decoder = ResponsesDecoder(origin="home", **how)
    return [chunk for chunk in map(decoder.feed, events) if chunk is not None], decoder.finish()


def completed(output: list[Mapping[str, Any]] | None, **more: Any) -> dict[str, Any]:
    """The last event."""
    return {"type": "response.completed", "response": {"id": "resp_1", "status": "completed", "model": "m", "output": output, **more}}


CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": '{"a":1}', "status": "completed"}
EMPTY = {**CALL, "arguments": "", "status": "in_progress"}
STREAMS = {
    "canonical": [
        {"type": "response.output_item.added", "output_index": 0, "item": EMPTY},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "fc_1", "delta": '{"a":1}'},
        {"type": "response.function_call_arguments.done", "output_index": 0, "item_id": "fc_1", "arguments": '{"a":1}'},
        {"type": "response.output_item.done", "output_index": 0, "item": CALL},
        completed([CALL]),
    ],
    "no index": [
        {"type": "response.output_item.added", "item": EMPTY},
        {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "delta": '{"a":1}'},
        {"type": "response.output_item.done", "item": CALL},
        completed([CALL]),
    ],
    "done only, output missing": [{"type": "response.output_item.done", "output_index": 0, "item": CALL}, completed(None)],
    "output only": [completed([CALL])],
    "arguments done only": [
        {"type": "response.output_item.added", "output_index": 0, "item": EMPTY},
        {"type": "response.function_call_arguments.done", "output_index": 0, "arguments": '{"a":1}'},
        completed([]),
    ],
    "deltas only, no ids": [
        {"type": "response.output_item.added", "item": {**EMPTY, "id": None}},
        {"type": "response.function_call_arguments.delta", "delta": '{"a'},
        {"type": "response.function_call_arguments.delta", "delta": '":1}'},
        completed([]),
    ],
    "another id in the end": [
        {"type": "response.output_item.added", "item": {**EMPTY, "id": "fc_0"}},
        {"type": "response.output_item.done", "item": CALL},
        completed([{**CALL, "id": "fc_2"}]),
    ],
    "another call id in the reply as a whole": [
        {"type": "response.output_item.added", "output_index": 0, "item": EMPTY},
        {"type": "response.output_item.done", "output_index": 0, "item": CALL},
        completed([{**CALL, "call_id": "call_2"}]),
    ],
}


@pytest.mark.parametrize("name", STREAMS)
def test_a_call_is_found_however_it_is_told(name: str) -> None:
    """One call, by index, by item id, by neither, at its end or only in the reply as a whole: always once, whole, with its call id.

    Wire quirks P-01, P-02, P-03, P-04.
    """
    _, last = read(STREAMS[name])
    [fragment] = last.additional_kwargs["tool_calls"]
    assert (fragment["id"], fragment["function"]) == ("call_1", {"name": "f", "arguments": '{"a":1}'})
    assert last.response_metadata["finish_reason"] == "tool_calls"


def test_text_without_deltas_is_read_once() -> None:
    """Text that only a complete item or the whole reply brings is read; text that deltas brought is not repeated."""
    message = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "Hello."}]}
    done = {"type": "response.output_item.done", "output_index": 0, "item": message}
    delta = {"type": "response.output_text.delta", "output_index": 0, "item_id": "msg_1", "delta": "Hel"}
    for events in (
        [delta, done, completed([message])],
        [done, completed([message])],
        [completed([message])],
        [delta, completed([message])],
    ):
        chunks, last = read(events)
        assert "".join(str(chunk.content) for chunk in [*chunks, last]) == "Hello."


def test_a_stream_without_its_end_is_incomplete() -> None:
    """Without a last event nothing of the turn may run, and nothing opaque goes back."""
    _, last = read(STREAMS["canonical"][:-1])
    assert last.response_metadata["finish_reason"] == "incomplete"
    assert "items" not in last.response_metadata["autotools"]


def test_what_is_no_reply_is_an_error() -> None:
    """Bodies of another API, and replies that are not finished, are named."""
    with pytest.raises(StreamError, match="no output"):
        ResponsesDecoder().decode_body({"id": "x", "choices": []})
    with pytest.raises(StreamError, match="'queued'"):
        ResponsesDecoder().decode_body({"id": "x", "status": "queued", "output": []})
    with pytest.raises(StreamError, match="no events"):
        ResponsesDecoder().finish()


def test_a_plain_reply_costs_nothing_more() -> None:
    """Of a reply that text and calls say wholly, nothing is kept beside them but where it came from."""
    message = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Hi."}],
    }
    _, last = read([completed([message, CALL])])
    assert last.response_metadata["autotools"] == {"origin": "home"}


def test_usage_details() -> None:
    """Cached and reasoning tokens are told in LangChain's terms."""
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens": 6,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 16,
    }
    assert responses_usage(usage) == {
        "input_tokens": 10, "output_tokens": 6, "total_tokens": 16,
        "input_token_details": {"cache_read": 4}, "output_token_details": {"reasoning": 2},
    }  # fmt: skip
