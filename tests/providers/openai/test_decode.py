"""What replies of chat completions become: whole bodies and streams, of the vendor and of servers that do it their way."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from langchain_core.exceptions import ModelError
from langchain_core.messages import AIMessageChunk
from langchain_core.messages.ai import add_ai_message_chunks

from langchain_autotools.errors import StreamError
from langchain_autotools.messages.metadata import KEY
from langchain_autotools.providers.openai.decode import ChatCompletionsDecoder, usage_metadata

CALL = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def decoder_of(**how: Any) -> ChatCompletionsDecoder:
    """A decoder for one reply."""
    return ChatCompletionsDecoder(origin="home", **how)


def event(delta: Any = None, **choice: Any) -> dict[str, Any]:
    """One event of a stream."""
    return {"id": "r1", "model": "m", "choices": [{"index": 0, "delta": delta, **choice}]}


def chunks(events: Iterable[Mapping[str, Any]], *, done: bool = True, choices: int = 1) -> list[AIMessageChunk]:
    """What a stream of events becomes, the last chunk included."""
    decoder = decoder_of(choices=choices)
    left = [chunk for chunk in map(decoder.feed, events) if chunk is not None]
    if done:
        decoder.done()
    return [*left, decoder.finish()]


def read(*events: Mapping[str, Any], done: bool = True, choices: int = 1) -> AIMessageChunk:
    """The sum of a stream."""
    first, *rest = chunks(events, done=done, choices=choices)
    return add_ai_message_chunks(first, *rest)


def body(message: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A whole reply."""
    choice = {"index": 0, "message": message, "finish_reason": "stop", **more.pop("choice", {})}
    return {"id": "r1", "object": "chat.completion", "model": "m", "choices": [choice], **more}


def test_text_leaves_piece_by_piece_and_bare() -> None:
    """Each piece of text is a chunk of its own that says no more than its message's id; what is said once comes last."""
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    out = chunks([event({"role": "assistant", "content": ""}), event({"content": "a"}), event({"content": "b"}),
                  event({}, finish_reason="stop"), {"id": "r1", "model": "m", "choices": [], "usage": usage}])  # fmt: skip
    assert out[:-1] == [AIMessageChunk(content="a", id="r1"), AIMessageChunk(content="b", id="r1")]
    assert out[-1].id == "r1"
    assert out[-1].response_metadata == {
        "model_provider": "openai", "id": "r1", "model_name": "m", "finish_reason": "stop", "token_usage": usage,
    }  # fmt: skip
    assert out[-1].usage_metadata == {
        "input_tokens": 3, "output_tokens": 2, "total_tokens": 5, "input_token_details": {}, "output_token_details": {},
    }  # fmt: skip


def test_chunks_share_nothing_that_anybody_writes_to() -> None:
    """Two chunks of one stream have their own metadata and extras; two streams have no container in common."""
    first, second, _ = chunks([event({"content": "a"}), event({"content": "b"})])
    first.additional_kwargs["x"] = 1
    first.response_metadata["y"] = 2
    assert second == AIMessageChunk(content="b", id=second.id)
    first.tool_call_chunks.append({"name": "f", "args": "", "id": None, "index": 0, "type": "tool_call_chunk"})
    other, *_ = chunks([event({"content": "b"})])
    assert other == AIMessageChunk(content="b", id=other.id)


def test_two_streams_at_once_keep_apart() -> None:
    """One mapper serves interleaved streams; each keeps its own state."""
    one, two = decoder_of(), decoder_of()
    one.feed(event({"content": "a"}, finish_reason="length"))
    two.feed({**event({"tool_calls": [CALL]}), "id": "r2"})
    two.done()
    first, second = one.finish(), two.finish()
    assert (first.id, first.response_metadata["finish_reason"], KEY in first.response_metadata) == ("r1", "length", False)
    assert (second.id, second.response_metadata.get("finish_reason"), second.response_metadata[KEY]) == ("r2", None, {"origin": "home"})


@pytest.mark.parametrize(
    "odd",
    [
        {"id": "", "model": "", "object": "", "choices": [], "prompt_filter_results": []},
        {"choices": None}, {}, event(None), event({}), {"choices": [{"index": 0}]}, {"choices": [None]}, {"error": None},
        event({"role": "", "content": None, "tool_calls": None, "refusal": None, "function_call": None}),
        event({"function_call": {"name": "", "arguments": ""}, "audio": {"id": "", "data": ""}, "annotations": []}),
        event({"tool_call_generating": "f", "padding": "x", "channel": "final"}),
        event({"content": [7, {}, {"type": "text", "text": None}]}), event({"tool_calls": ["?"]}),
    ],
)  # fmt: skip
def test_events_that_say_nothing_change_nothing(odd: Mapping[str, Any]) -> None:
    """Filter results, null deltas, progress notes and empty fields leave the reply as it is, wherever they are.

    Wire quirks A-34, E-01, E-02, E-03, E-05.
    """
    wanted = read(event({"content": "a"}), event({"content": "b"}, finish_reason="stop"))
    assert read(odd, event({"content": "a"}), odd, event({"content": "b"}, finish_reason="stop"), odd) == wanted


def test_reasoning_is_kept_under_the_key_it_came_in() -> None:
    """Reasoning in any of its spellings leaves at once and adds up under the server's key (wire quirk R-01)."""
    for key in ("reasoning_content", "reasoning", "reasoning_text", "thinking"):
        message = read(event({key: "h"}), event({key: "m", "content": None}), event({"content": "a", key: None}))
        assert (message.content, message.additional_kwargs) == ("a", {key: "hm"})
    assert read(event({"thinking": {"content": "hm"}})).additional_kwargs == {"thinking": "hm"}


def test_content_in_parts_is_text_and_thinking() -> None:
    """A list of parts gives its text as text and its thinking apart; images wait for the end (wire quirk E-07)."""
    picture = {"type": "image_url", "image_url": {"url": "data:", "detail": "low", "other": None}}
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "h"}], "closed": True}, {"type": "text", "text": "a"}, "b", picture]
    message = read(event({"content": parts}), event({"content": {"type": "text", "text": "c"}}))
    drawn = {"type": "image", "url": "data:", "extras": {"detail": "low"}}
    assert (message.content, message.additional_kwargs) == (["abc", drawn], {"thinking_part": "h"})


def test_reasoning_details_are_put_together_in_order() -> None:
    """Fragments of one detail become one; encrypted ones and those that were signed stay apart; nothing is doubled (wire quirk R-04)."""

    def text(**more: Any) -> dict[str, Any]:
        return {"type": "reasoning.text", "index": 0, "format": "x", **more}

    secret = {"type": "reasoning.encrypted", "data": "d", "index": 0}
    pieces = [text(text="h", signature=None), text(text="m"), text(signature="s"), text(text="again"), secret, secret]
    pieces += [
        {"type": "reasoning.summary", "summary": "a", "index": 1, "id": "1"},
        {"type": "reasoning.summary", "summary": "b", "index": 1, "id": "2"},
    ]
    message = read(*(event({"reasoning_details": [piece]}) for piece in [*pieces, "odd"]))
    assert message.additional_kwargs["reasoning_details"] == [
        text(text="hm", signature="s"),
        text(text="again"),
        secret,
        secret,
        *pieces[-2:],
        "odd",
    ]


def test_fragments_of_calls_are_handed_on_as_they_came() -> None:
    """Calls are not put together here: every fragment leaves raw, unknown keys included (wire quirks A-27, A-29)."""
    fragments = [{**CALL, "extra_content": {"a": 1}}, {"index": 0, "function": {"arguments": "x"}}]
    out = chunks(
        [
            event({"tool_calls": [fragments[0]]}),
            event({"tool_calls": fragments[1]}),
            event({"function_call": {"name": "g", "arguments": "{}"}}),
        ]
    )
    assert [chunk.additional_kwargs for chunk in out] == [
        {"tool_calls": [fragments[0]]}, {"tool_calls": [fragments[1]]}, {"function_call": {"name": "g", "arguments": "{}"}}, {},
    ]  # fmt: skip
    assert out[-1].response_metadata[KEY] == {"origin": "home"}


def test_a_call_in_the_chunk_that_ends_the_reply_is_read() -> None:
    """What is beside a finish reason counts, and so does what follows it (wire quirks A-30, E-06)."""
    message = read(event({"content": "a", "tool_calls": [CALL]}, finish_reason="tool_calls"), event({"content": "b"}))
    assert (message.content, message.additional_kwargs["tool_calls"]) == ("ab", [CALL])


def test_an_input_of_a_custom_tool_becomes_one_argument() -> None:
    """Free text of a custom tool, streamed or whole, is the JSON of one argument; an empty `custom` of a function is nothing.

    Wire quirk A-34.
    """
    stream = [
        {"index": 1, "id": "c", "type": "custom", "custom": {"name": "calc", "input": '4 "'}},
        {"index": 1, "custom": {"input": "\n+"}},
    ]
    out = chunks(event({"tool_calls": [piece]}) for piece in stream)
    pieces = [piece for chunk in out for piece in chunk.additional_kwargs["tool_calls"]]
    assert "".join(piece["function"]["arguments"] for piece in pieces) == '{"__arg1":"4 \\"\\n+"}'
    assert {piece["index"] for piece in pieces} == {1}
    whole = {"id": "c", "type": "custom", "custom": {"name": "calc", "input": "4 + 4"}}
    (call,) = decoder_of().decode_body(body({"content": None, "tool_calls": [whole]})).additional_kwargs["tool_calls"]
    assert call == {"index": 0, "id": "c", "function": {"name": "calc", "arguments": '{"__arg1":"4 + 4"}'}, "custom": True}
    phantom = {**CALL, "custom": {"name": "", "input": ""}}
    assert decoder_of().decode_body(body({"tool_calls": [phantom]})).additional_kwargs["tool_calls"] == [phantom]


def test_calls_of_a_whole_message_are_told_apart_by_their_place() -> None:
    """Whatever ids and indices say, each entry of a whole message is a call of its own."""
    calls = [{"id": "same", "index": 0, "function": {"name": "f", "arguments": raw}} for raw in ("{}", '{"q":1}', "")]
    fragments = decoder_of().decode_body(body({"tool_calls": calls})).additional_kwargs["tool_calls"]
    assert [fragment["index"] for fragment in fragments] == [0, 1, 2]


def test_a_reply_spread_over_choices_is_one_reply() -> None:
    """Where one reply was asked for, text and calls of several choices belong together, and their calls are told apart.

    Wire quirk A-32.
    """
    message = decoder_of().decode_body(
        {"choices": [{"index": 0, "message": {"content": "a"}}, {"index": 1, "message": {"tool_calls": [CALL]}}]}
    )
    assert (message.content, [call["id"] for call in message.additional_kwargs["tool_calls"]]) == ("a", ["c"])
    two = {"choices": [{"index": n, "delta": {"tool_calls": [CALL]}} for n in (0, 1)]}
    first, second = read(two).additional_kwargs["tool_calls"]
    assert first["index"] != second["index"]
    twice = [{"choices": [{"index": n, "delta": {"content": text}}]} for n, text in ((1, "a"), (0, "x"), (1, "b"), (0, "y"))]
    assert read(*twice).content == "ab"


def test_of_alternatives_the_first_is_read() -> None:
    """Where several replies were asked for (`n`), the first one is the reply."""
    events = [event({"content": "a"}), {"choices": [{"index": 1, "delta": {"content": "x"}}]}, event({"content": "b"})]
    assert read(*events, choices=2).content == "ab"
    several = {"choices": [{"index": 0, "message": {"content": "a"}}, {"index": 1, "message": {"content": "x"}}]}
    assert decoder_of(choices=2).decode_body(several).content == "a"


def test_a_whole_message_in_a_stream_is_read_once() -> None:
    """A server that answers a stream with a whole message is understood; a message that repeats the deltas adds nothing.

    Wire quirks A-33, E-12.
    """
    whole = {"role": "assistant", "content": "ab", "tool_calls": [CALL]}
    assert read(body(whole)) == read(event(None, message=whole, finish_reason="stop"))
    assert read(body(whole)).content == "ab"
    assert read(event({"content": "a"}), event({"content": "b"}), event({}, message=whole, finish_reason="stop")).content == "ab"
    assert read(event({"content": "a"}), event(None, message=whole)).additional_kwargs["tool_calls"] == [CALL]
    assert read(event(None, message={"content": "a"}), event(None, message={"content": "b"})).content == "ab"


@pytest.mark.parametrize(
    ("reasons", "wanted"),
    [(["tool_calls", "stop"], "tool_calls"), (["stop", "tool_calls"], "tool_calls"), (["", None, "length"], "length")],
)
def test_of_two_finish_reasons_the_telling_one_counts(reasons: list[str | None], wanted: str) -> None:
    """A server may end its reply twice; the reason that says more than "stop" is kept, once (wire quirk E-09)."""
    assert read(*(event({}, finish_reason=reason) for reason in reasons)).response_metadata["finish_reason"] == wanted


def test_a_stream_without_its_end_says_so() -> None:
    """Neither a finish reason nor the end marker: the reply is incomplete. One of both is enough (wire quirk E-10)."""
    assert read(event({"content": "a"}), done=False).response_metadata["finish_reason"] == "incomplete"
    assert "finish_reason" not in read(event({"content": "a"})).response_metadata
    assert read(event({"content": "a"}, finish_reason="stop"), done=False).response_metadata["finish_reason"] == "stop"


def test_what_is_known_only_whole_comes_last() -> None:
    """Speech, sources, log probabilities and metadata are put together and said once."""
    first = {
        **event({"audio": {"id": "a", "transcript": "Hel", "data": "x"}, "annotations": [1]}, logprobs={"content": [1], "refusal": None}),
        "service_tier": "flex",
    }
    last = {**event({"audio": {"transcript": "lo", "expires_at": 9}, "annotations": [2]}, logprobs={"content": [2]}, finish_reason="stop"),
            "citations": ["u"], "system_fingerprint": "fp"}  # fmt: skip
    out = chunks([first, last])
    assert len(out) == 1
    assert out[0].additional_kwargs == {"annotations": [1, 2], "audio": {"id": "a", "transcript": "Hello", "data": "x", "expires_at": 9}}
    wanted = {"logprobs": {"content": [1, 2]}, "service_tier": "flex", "citations": ["u"], "system_fingerprint": "fp"}
    assert {key: out[0].response_metadata[key] for key in wanted} == wanted


def test_state_of_the_whole_message_is_kept() -> None:
    """Opaque state beside the text is kept under its key; log probabilities that are no lists of tokens are not."""
    message = read(event({"extra_content": {"a": 1}}), event({"content": "x"}, logprobs=-0.5))
    assert (message.additional_kwargs, "logprobs" in message.response_metadata) == ({"extra_content": {"a": 1}}, False)


def test_a_refusal_leaves_at_once() -> None:
    """The words of a refusal are streamed, apart from text."""
    message = read(event({"refusal": "I "}), event({"refusal": "won't."}, finish_reason="stop"))
    assert (message.content, message.additional_kwargs) == ("", {"refusal": "I won't."})


@pytest.mark.parametrize(
    "where",
    [
        lambda usage: [{"choices": [], "usage": usage}],
        lambda usage: [{**event({"content": "x"}), "usage": {"prompt_tokens": 1}}, {**event({}), "usage": usage}],
        lambda usage: [event({}, finish_reason="stop", usage=usage)],
        lambda usage: [{**event({}, finish_reason="stop"), "x_groq": {"usage": usage}}],
        lambda usage: [event({}, finish_reason="stop", usage=usage), {"choices": [], "usage": dict.fromkeys(usage, 0)}],
    ],
    ids=["apart", "cumulative", "in the choice", "under x_groq", "before zeros"],
)
def test_usage_is_the_last_that_was_said(where: Any) -> None:
    """Token counts are found where servers put them; of several the last is the reply's, but for
    zeros at the end of a stream whose tokens are known (wire quirks E-04, E-13)."""
    usage = {"prompt_tokens": 10, "completion_tokens": None, "total_tokens": 12,
             "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 0},
             "completion_tokens_details": {"reasoning_tokens": 2}}  # fmt: skip
    assert read(*where(usage)).usage_metadata == {
        "input_tokens": 10, "output_tokens": 2, "total_tokens": 12,
        "input_token_details": {"audio": 0, "cache_read": 4}, "output_token_details": {"reasoning": 2},
    }  # fmt: skip


def test_usage_of_priced_tiers_and_of_other_servers() -> None:
    """A tier with its own price is counted under its name; cached tokens are found under other servers' keys."""
    usage = usage_metadata({"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}}, "flex")
    assert usage is not None
    assert usage["input_token_details"] == {"flex_cache_read": 4, "flex": 6}
    assert usage["output_token_details"] == {"flex": 5}
    assert usage["total_tokens"] == 15
    other = usage_metadata({"prompt_tokens": 4, "completion_tokens": 5, "prompt_cache_hit_tokens": 3})
    assert other is not None and other["input_token_details"] == {"cache_read": 3}
    nested: Any = {"prompt_tokens": 4, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 0}, "prompt_cache_hit_tokens": 3}
    both = usage_metadata(nested)
    assert both is not None and both["input_token_details"] == {"cache_read": 3}


@pytest.mark.parametrize(
    "failing",
    [
        {"error": {"message": "overloaded", "code": 503}},
        {"error": "overloaded"},
        {"object": "error", "message": "overloaded", "code": 400},
        {"type": "error", "message": "overloaded"},
        event({}, error={"message": "overloaded", "code": "502"}),
        event({"content": "x"}, finish_reason="error") | {"error": {"message": "overloaded", "status_code": 429}},
    ],
)
def test_an_error_inside_a_reply_is_raised(failing: Mapping[str, Any]) -> None:
    """An error in an event, in a choice or in a whole body is raised as the vendor's own, with its message (wire quirk E-08)."""
    decoder = decoder_of()
    decoder.feed(event({"content": "a"}))
    decoder.feed(event({"content": "b"}))
    with pytest.raises(ModelError, match="overloaded"):
        decoder.feed(failing)
    with pytest.raises(ModelError, match="overloaded"):
        decoder_of().decode_body(failing)


def test_a_finish_reason_that_is_an_error_is_raised() -> None:
    """A reply that ends in "error" without saying why is an error."""
    with pytest.raises(ModelError, match="finish reason"):
        decoder_of().decode_body(body({"content": "a"}, choice={"finish_reason": "error"}))


def test_a_reply_that_is_none_is_an_error() -> None:
    """No events, no choices, or no JSON object at all: the reply broke its protocol."""
    with pytest.raises(StreamError, match="no events"):
        chunks([])
    with pytest.raises(StreamError, match="no choices"):
        decoder_of().decode_body({"note": "?", "choices": None})
    with pytest.raises(StreamError, match="<html>"):
        decoder_of().decode_body("<html>")  # type: ignore[arg-type]


def test_a_whole_reply_is_one_raw_chunk() -> None:
    """A whole body gives text, reasoning, calls, usage and metadata in one chunk, like the sum of its stream."""
    message = {"role": "assistant", "content": "a", "reasoning_content": "hm", "tool_calls": [CALL], "refusal": None}
    chunk = decoder_of().decode_body(
        body(message, usage={"prompt_tokens": 1, "completion_tokens": 2}, choice={"finish_reason": "tool_calls"})
    )
    assert (chunk.content, chunk.additional_kwargs) == ("a", {"reasoning_content": "hm", "tool_calls": [CALL]})
    assert (chunk.response_metadata["finish_reason"], chunk.response_metadata[KEY]) == ("tool_calls", {"origin": "home"})
    assert chunk.usage_metadata is not None and chunk.usage_metadata["input_tokens"] == 1
