"""Shapes of the Messages API's streams (wire quirks C-01 to C-17), read through one turn: content, calls, how it ended."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from langchain_core.exceptions import ModelAPIError, ModelRateLimitError
from langchain_core.messages import AIMessage, HumanMessage

from langchain_autotools import StreamError
from langchain_autotools.chunks import sum_chunks
from langchain_autotools.messages.calls import calls_of
from langchain_autotools.providers.anthropic.decode import MessagesDecoder, usage_metadata
from langchain_autotools.testing import ScriptedChatModel
from langchain_autotools.turn.stored_messages import canonical_message
from langchain_autotools.turn.turn import Turn

HEAD = {
    "type": "message_start",
    "message": {"id": "0123456789ab", "model": "m", "content": [], "usage": {"input_tokens": 5, "output_tokens": 1}},
}
END = {"type": "message_stop"}


def stopped(reason: str = "end_turn", **usage: Any) -> dict[str, Any]:
    """A `message_delta`."""
    return {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 7, **usage}}


def start(block: dict[str, Any], index: Any = 0) -> dict[str, Any]:
    """A `content_block_start`."""
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(kind: str, index: Any = 0, **said: Any) -> dict[str, Any]:
    """A `content_block_delta`."""
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **said}}


def end(index: Any = 0) -> dict[str, Any]:
    """A `content_block_stop`."""
    return {"type": "content_block_stop", "index": index}


def call(index: Any = 0, identifier: str = "toolu_1", value: Any = None, **more: Any) -> dict[str, Any]:
    """The start of a call."""
    return start({"type": "tool_use", "id": identifier, "name": "f", "input": {} if value is None else value, **more}, index)


def arguments(text: str, index: Any = 0) -> dict[str, Any]:
    """A piece of a call's input."""
    return delta("input_json_delta", index, partial_json=text)


MADE = count()


def read(*events: dict[str, Any], blocks: bool = True) -> AIMessage:
    """The turn that the events make."""
    model = ScriptedChatModel(replies=[])
    turn = Turn(model, [HumanMessage("x")], {"tools": [{"name": "f"}]}, runs=True, new_id=lambda: f"call_made_{next(MADE)}")
    decoder = MessagesDecoder(origin="home", blocks=blocks)
    raw = [chunk for chunk in map(decoder.feed, events) if chunk is not None]
    left = [out for out in map(turn.feed, [*raw, decoder.finish()]) if out is not None]
    return canonical_message(sum_chunks([*left, turn.finish()]))


def runnable(message: AIMessage) -> list[Any]:
    """Name and arguments of what may run; None for arguments that may not."""
    return [record.args for record in calls_of(message)]


def test_text_alone_is_a_string() -> None:
    """A reply that can be nothing but text has a string for content."""
    texts = [delta("text_delta", text="Hel"), {"type": "ping"}, delta("text_delta", text="lo")]
    message = read(HEAD, start({"type": "text", "text": ""}), *texts, end(), stopped(), END, blocks=False)
    assert (message.content, message.id, message.response_metadata["finish_reason"]) == ("Hello", "0123456789ab", "end_turn")
    assert (message.usage_metadata or {})["output_tokens"] == 7


CALLS = {
    "C-01 empty input": ([call(), arguments(""), end()], [{}]),
    "C-02 input in the start": ([call(value={"q": 1}), end()], [{"q": 1}]),
    "B-05 placeholder, then deltas": ([call(), arguments('{"q":'), arguments(" 1}"), end()], [{"q": 1}]),
    "C-05 gaps": ([call(3), arguments('{"q":1}', 3), end(3), call(7, "toolu_2"), end(7)], [{"q": 1}, {}]),
    "C-05 no index": ([call(None), arguments('{"q":1}', None), end(None)], [{"q": 1}]),
    "C-06 index used twice": ([call(), arguments('{"q":1}'), end(), call(0, "toolu_2"), arguments('{"q":2}'), end()], [{"q": 1}, {"q": 2}]),
    "C-06 never ended": ([call(), arguments('{"q":1}'), call(0, "toolu_2"), arguments('{"q":2}')], [{"q": 1}, {"q": 2}]),
    "C-13 no JSON": ([call(), arguments('{"q": [1, 2 bad'), end()], [None]),
    "C-13 two objects": ([call(), arguments('{"a":1}{"b":2}'), end()], None),
    "ids missing": ([call(0, ""), end(), call(1, ""), end(1)], [{}, {}]),
    "id twice": ([call(0, "t"), arguments('{"q":1}'), end(), call(1, "t"), arguments('{"q":2}', 1), end(1)], [{"q": 1}, {"q": 2}]),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name: str) -> None:
    """Each way to write a call gives what was meant, or nothing that can run."""
    events, expected = CALLS[name]
    message = read(HEAD, *events, stopped("tool_use"), END)
    ids = [record.id for record in calls_of(message)]
    assert all(ids) and len({*ids}) == len(ids)
    if expected is None:
        assert message.tool_calls == [] or runnable(message) == [{"a": 1}, {"b": 2}]
    else:
        assert runnable(message) == expected
    blocks = [block for block in message.content if isinstance(block, dict)]
    assert [(block["id"], block["input"]) for block in blocks] == [(item["id"], item["args"]) for item in message.tool_calls]
    shown = [block for block in message.content_blocks if block["type"] == "tool_call"]
    assert [block["args"] for block in shown] == [item["args"] for item in message.tool_calls]


def test_a_call_in_the_head() -> None:
    """C-03, C-04: a call may be in `message_start`; the same head again says nothing new; what beside a call is kept."""
    block = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"q": 1}, "caller": {"type": "direct"}}
    head = {"type": "message_start", "message": {**HEAD["message"], "content": [block], "stop_reason": "tool_use"}}  # type: ignore[dict-item]
    message = read(head, head, END)
    assert runnable(message) == [{"q": 1}]
    assert calls_of(message)[0].extra == {"caller": {"type": "direct"}}


def test_a_second_head_is_not_read_again() -> None:
    """C-03: a proxy that sends the head of one reply twice doubles neither its text nor its tokens; another reply's head is read."""
    head = {"type": "message_start", "message": {**HEAD["message"], "content": [{"type": "text", "text": "Hello"}]}}  # type: ignore[dict-item]
    late = {"type": "message_start", "message": {**head["message"], "model": "other", "usage": {"input_tokens": 99}}}  # type: ignore[dict-item]
    message = read(head, late, stopped(), END)
    assert message.text == "Hello"
    assert (message.usage_metadata or {})["input_tokens"] == 5
    assert message.response_metadata["model_name"] == "m"


@pytest.mark.parametrize("events", [[], [end()], [end(), {"type": "ping"}]], ids=["in the middle", "after the block", "after a ping"])
def test_a_cut_stream_runs_nothing(events: list[Any]) -> None:
    """C-14: without the message's own end no call runs, though its block was closed."""
    message = read(HEAD, call(), arguments('{"q":1}'), *events)
    assert (message.tool_calls, len(message.invalid_tool_calls)) == ([], 1)
    assert message.response_metadata["finish_reason"] == "incomplete"


@pytest.mark.parametrize("reason", ["max_tokens", "refusal", "model_context_window_exceeded"])
def test_a_bad_end_runs_nothing(reason: str) -> None:
    """C-15: a turn that ended at a limit or in a refusal runs no call."""
    assert read(HEAD, call(), arguments('{"q":1}'), end(), stopped(reason), END).tool_calls == []


def test_thinking_and_its_signature() -> None:
    """C-09, C-10, C-12: thinking streams, its signature comes with its end, also without any text; redacted thinking comes whole."""
    first = [
        start({"type": "thinking", "thinking": "", "signature": ""}),
        delta("thinking_delta", thinking="Hm"),
        delta("thinking_delta", thinking="m."),
    ]
    first += [delta("signature_delta", signature="s1"), end()]
    second = [start({"type": "thinking", "thinking": ""}, 1), delta("signature_delta", 1, signature="s2"), end(1)]
    third = [start({"type": "redacted_thinking", "data": "opaque"}, 2), end(2)]
    text = [start({"type": "text", "text": ""}, 3), delta("text_delta", 3, text="Hi"), end(3)]
    message = read(HEAD, *first, *second, *third, *text, stopped(), END, blocks=False)
    assert message.content == [
        {"type": "thinking", "thinking": "Hmm.", "signature": "s1", "index": 0},
        {"type": "thinking", "thinking": "", "signature": "s2", "index": 1},
        {"type": "redacted_thinking", "data": "opaque", "index": 2},
        {"type": "text", "text": "Hi", "index": 3},
    ]
    assert [block["type"] for block in message.content_blocks] == ["reasoning", "reasoning", "non_standard", "text"]


def test_server_tools_come_whole_and_never_run() -> None:
    """C-16: what the vendor's tools did is content, its input put together; it is no call."""
    used = [
        start({"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}),
        arguments('{"query":'),
        arguments('"x"}'),
        end(),
    ]
    result = {
        "type": "web_search_tool_result",
        "tool_use_id": "srv_1",
        "content": [{"type": "web_search_result", "encrypted_content": "e"}],
    }
    text = [start({"type": "text", "text": "", "citations": []}, 2), delta("text_delta", 2, text="So"), end(2)]
    cited = delta(
        "citations_delta", 2, citation={"type": "web_search_result_location", "url": "u", "cited_text": "c", "encrypted_index": "i"}
    )
    message = read(HEAD, *used, start(result, 1), end(1), *text[:2], cited, text[2], stopped("pause_turn"), END)
    assert (message.tool_calls, message.invalid_tool_calls) == ([], [])
    assert message.content[0] == {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}, "index": 0}
    assert message.content[2]["citations"][0]["encrypted_index"] == "i"  # type: ignore[index,call-overload]
    kinds = [block["type"] for block in message.content_blocks]
    assert kinds == ["server_tool_call", "server_tool_result", "text"]


def test_counts_of_the_end_replace_those_of_the_head() -> None:
    """C-17: later counts replace what they name and leave the rest; cached tokens are part of the input."""
    usage = {"input_tokens": 5, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 30, "output_tokens": 1}
    head = {"type": "message_start", "message": {**HEAD["message"], "usage": usage}}  # type: ignore[dict-item]
    message = read(head, stopped(input_tokens=None), END)
    counts = message.usage_metadata
    assert counts is not None
    assert (counts["input_tokens"], counts["output_tokens"], counts["total_tokens"]) == (135, 7, 142)
    assert counts["input_token_details"] == {"cache_read": 100, "cache_creation": 30}
    written = {"cache_creation_input_tokens": 9, "cache_creation": {"ephemeral_5m_input_tokens": 9}}
    zeros = read(HEAD, stopped(), stopped(input_tokens=0, output_tokens=0), END).usage_metadata  # as some proxies end a stream
    assert zeros is not None and (zeros["input_tokens"], zeros["output_tokens"], zeros["total_tokens"]) == (5, 7, 12)
    lived = usage_metadata({"input_tokens": 1, "output_tokens": 2, **written})
    assert lived is not None
    assert (lived["input_tokens"], lived["input_token_details"]) == (10, {"cache_creation": 0, "ephemeral_5m_input_tokens": 9})


@pytest.mark.parametrize(
    ("kind", "expected", "again"),
    [
        ("overloaded_error", ModelAPIError, True),
        ("rate_limit_error", ModelRateLimitError, True),
        ("invalid_request_error", Exception, False),
    ],
)
def test_errors_inside_a_stream_are_typed(kind: str, expected: type[Exception], again: bool) -> None:
    """C-08: an error event raises what its status outside a stream would have raised, with the vendor's words."""
    decoder = MessagesDecoder()
    decoder.feed(HEAD)
    with pytest.raises(expected, match="Too much") as raised:
        decoder.feed({"type": "error", "error": {"type": kind, "message": "Too much"}, "request_id": "r"})
    assert (raised.value.type, raised.value.is_retryable) == (kind, again)  # type: ignore[attr-defined]


def test_what_is_no_message_is_a_stream_error() -> None:
    """A stream without an event of this wire, and a body that is no message, are told as such."""
    with pytest.raises(StreamError):
        MessagesDecoder().finish()
    with pytest.raises(StreamError):
        MessagesDecoder().decode_body({"choices": []})
