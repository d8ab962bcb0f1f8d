"""`TurnAccumulator` and `canonical_message`: what of a turn leaves at once, what leaves at its end, and the verdict."""

import pickle
from collections.abc import Iterable
from functools import reduce
from operator import add
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AIMessageChunk, message_chunk_to_message, messages_from_dict, messages_to_dict
from langchain_core.messages.tool import tool_call_chunk

from langchain_autotools.messages.calls import calls_of
from langchain_autotools.messages.metadata import KEY
from langchain_autotools.turn.accumulator import BLOCKING, TurnAccumulator
from langchain_autotools.turn.stored_messages import canonical_message
from tests.support.quirks import Quirk, needs_quirks, quirks

REPLY = "reply_0123456789ab"
HEADER = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": ""}}
REST = {"index": 0, "function": {"arguments": '{"q": 1}'}}
CUT = {"index": 0, "function": {"arguments": '{"q": "hel'}}


def raw(*fragments: Any, text: str = "", **fields: Any) -> AIMessageChunk:
    """A raw chunk that brings fragments of calls."""
    return brought(list(fragments), AIMessageChunk(content=text, **fields))


def brought(fragments: Any, chunk: AIMessageChunk) -> AIMessageChunk:
    """The chunk with fragments as its wire has them; core, given them at once, would read them and refuse some."""
    if fragments:
        chunk.additional_kwargs["tool_calls"] = fragments
    return chunk


def accumulator(**options: Any) -> TurnAccumulator:
    """An accumulator that numbers the ids it makes."""
    return TurnAccumulator(**{"declared": ("f", "g"), "new_id": lambda position: f"new_{position}", **options})


def run(chunks: Iterable[AIMessage], cut: bool = False, **options: Any) -> list[AIMessageChunk]:
    """All chunks that leave, the last one included."""
    turn = accumulator(**options)
    left = [chunk for chunk in map(turn.feed, chunks) if chunk is not None]
    return [*left, turn.finish(cut)]


def whole(chunks: Iterable[AIMessage], **options: Any) -> AIMessage:
    """The turn as one message."""
    return canonical_message(reduce(add, run(chunks, **options)))


def test_text_leaves_untouched() -> None:
    """A chunk of text is handed on itself, not a copy; an empty one is not handed on."""
    turn, text = accumulator(), AIMessageChunk("Hi", id=REPLY)
    assert turn.feed(text) is text
    assert turn.feed(AIMessageChunk("")) is None
    last = turn.finish()
    assert last == AIMessageChunk("", id=REPLY, chunk_position="last")
    assert KEY not in last.response_metadata


def test_reasoning_leaves_and_fragments_stay() -> None:
    """Other additional keywords leave with their chunk, fragments of calls do not."""
    turn = accumulator()
    out = turn.feed(AIMessageChunk("a", additional_kwargs={"reasoning_content": "b", "tool_calls": [HEADER], "function_call": None}))
    assert out == AIMessageChunk("a", additional_kwargs={"reasoning_content": "b"})
    assert turn.feed(raw(REST)) is None


def test_metadata_leaves_once() -> None:
    """Scalars leave on the last chunk alone, the last one said; usage is the last, the id the first; lists and objects leave at once."""
    chunks = [
        AIMessageChunk("", id=REPLY),
        AIMessageChunk("a", response_metadata={"model_name": "m", "logprobs": {"content": [1]}}, usage_metadata=usage(1)),
        AIMessageChunk("", response_metadata={"model_name": "m", "system_fingerprint": None}, usage_metadata=usage(2)),
        AIMessageChunk("b", id="m2", response_metadata={"model_name": "m2", "logprobs": {"content": [2]}}),
    ]
    left = run(chunks)
    assert [chunk.content for chunk in left] == ["a", "b", ""]
    message = message_chunk_to_message(reduce(add, left))
    assert message.response_metadata == {"model_name": "m2", "logprobs": {"content": [1, 2]}}
    assert (message.id, message.usage_metadata) == (REPLY, usage(2))


@pytest.mark.parametrize(
    "first", [AIMessageChunk("a"), AIMessageChunk("", tool_call_chunks=[tool_call_chunk(name="f", args="{}", id="1")])]
)
def test_an_id_that_comes_late_names_nothing(first: AIMessageChunk) -> None:
    """Core has named the message by its run then, and whoever reads along knows it by that."""
    left = run([first, AIMessageChunk("b", id=REPLY), AIMessageChunk("", id=REPLY, usage_metadata=usage(1))])
    assert [chunk.id for chunk in left if chunk.id] == []


def usage(tokens: int) -> Any:
    """Usage of some tokens."""
    return {"input_tokens": tokens, "output_tokens": tokens, "total_tokens": 2 * tokens}


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        (["stop"], "stop"),
        (["tool_calls", "stop"], "tool_calls"),
        (["stop", None, "length"], "length"),
        (["stop", "tool_calls"], "tool_calls"),
        ([], None),
    ],
)
def test_the_finish_reason_that_says_most(reasons: list[str | None], expected: str | None) -> None:
    """Of several finish reasons the first that is not `stop` counts (E-09)."""
    left = run(AIMessageChunk("", response_metadata={"finish_reason": reason}) for reason in reasons)
    assert left[-1].response_metadata.get("finish_reason") == expected


def test_the_verdict() -> None:
    """The last chunk says of every call its id, name and arguments as written, and whether it may run or why not."""
    (last,) = run(
        [raw(HEADER, {**REST, "extra_content": {"s": 1}}, {**CUT, "index": 1, "id": "", "function": {"name": "g", "arguments": "{"}})]
    )
    assert last.response_metadata == {
        KEY: {
            "calls": [
                {"id": "call_1", "name": "f", "arguments": '{"q": 1}', "ok": True, "extra": {"extra_content": {"s": 1}}},
                {"id": "new_1", "name": "g", "arguments": "{", "ok": False, "why": last.response_metadata[KEY]["calls"][1]["why"]},
            ],
            "blocked": None,
        }
    }
    assert [(chunk["index"], chunk["id"], chunk["name"]) for chunk in last.tool_call_chunks] == [(0, "call_1", "f"), (1, "new_1", "g")]
    assert [call["args"] for call in last.tool_calls] == [{"q": 1}]


@needs_quirks
@pytest.mark.parametrize("quirk", quirks(), ids=lambda quirk: quirk.label)
def test_quirk(quirk: Quirk) -> None:
    """Every stream of the catalogue comes out as meant: in the verdict, in the sum of the chunks, and after any further sums."""
    left = run((brought(chunk, AIMessageChunk("")) for chunk in quirk.chunks), declared=quirk.declared)
    total = reduce(add, [AIMessageChunk("before"), *left, AIMessageChunk(""), AIMessageChunk(""), AIMessageChunk("after")])
    valid = [(name, args) for name, args in quirk.expect if args is not None]
    for message in (left[-1], total, message_chunk_to_message(total), canonical_message(total), canonical_message(total, stored=True)):
        assert [(call["name"], call["args"]) for call in message.tool_calls] == valid
        assert [call["name"] for call in message.invalid_tool_calls] == [name for name, args in quirk.expect if args is None]
    assert [(call.name, call.args) for call in calls_of(canonical_message(total))] == quirk.expect
    ids = [call.id for call in calls_of(canonical_message(total))]
    assert len(set(ids)) == len(ids)
    assert all(ids)


@needs_quirks
@pytest.mark.parametrize("quirk", quirks(), ids=lambda quirk: quirk.label)
@pytest.mark.parametrize("reason", ["length", None])
def test_nothing_of_a_blocked_turn_runs(quirk: Quirk, reason: str | None) -> None:
    """After `length`, or when the stream was cut, no call may run, wherever it was cut."""
    for end in range(1, len(quirk.chunks) + 1):
        chunks = [brought(chunk, AIMessageChunk("")) for chunk in quirk.chunks[:end]]
        ending = [AIMessageChunk("", response_metadata={"finish_reason": reason})] if reason else []
        last = run([*chunks, *ending], cut=not reason)[-1]
        assert last.tool_calls == (last + AIMessageChunk("")).tool_calls == []
        assert last.response_metadata[KEY]["blocked"] == (reason or "stream cut")
        assert not any(call["ok"] for call in last.response_metadata[KEY]["calls"])


@pytest.mark.parametrize("reason", ["CONTENT_FILTER", "Length", *sorted(BLOCKING)])
def test_blocking_reasons(reason: str) -> None:
    """A blocking reason blocks in any case, and says so to the model (wire quirks T-03, T-04, T-05)."""
    message = whole([raw(HEADER, REST), AIMessageChunk("", response_metadata={"finish_reason": reason})])
    assert message.tool_calls == []
    assert reason in str(message.invalid_tool_calls[0]["error"])


@pytest.mark.parametrize("reason", ["stop", "tool_calls", "eos", "", "whatever", 7])
def test_other_reasons_decide_nothing(reason: Any) -> None:
    """Any other finish reason lets calls run (T-01, T-05)."""
    assert whole([raw(HEADER, REST), AIMessageChunk("", response_metadata={"finish_reason": reason})]).tool_calls


def test_a_blocked_turn_without_calls_says_so() -> None:
    """The verdict names the reason where there is no call as well."""
    assert run([], cut=True)[-1].response_metadata == {KEY: {"calls": [], "blocked": "stream cut"}}


def test_ids() -> None:
    """The server's ids stay unless they are missing, used in the history or given twice; the old one is remembered."""
    names = ["a", "", "null", "b", "b", "used"]
    fragments = [{"index": at, "id": name, "function": {"name": "f", "arguments": f'{{"q":{at}}}'}} for at, name in enumerate(names)]
    (last,) = run([raw(*fragments)], is_used={"used"}.__contains__)
    records = last.response_metadata[KEY]["calls"]
    assert [record["id"] for record in records] == ["a", "new_1", "new_2", "b", "new_4", "new_5"]
    assert [record.get("wire_id") for record in records] == [None, None, None, None, "b", "used"]


def test_every_form_of_raw_chunk() -> None:
    """Wire dicts, one alone, the older form, LangChain's chunks and whole messages are read alike."""
    legacy = [
        AIMessageChunk("", additional_kwargs={"function_call": part})
        for part in ({"name": "f", "arguments": ""}, {"arguments": '{"q": 1}'})
    ]
    parts = [{"name": "f", "args": "", "id": "call_1", "index": 0}, {"name": None, "args": '{"q": 1}', "id": None, "index": 0}]
    call = {"name": "f", "args": {"q": 1}, "id": "call_1"}
    for chunks in (
        [raw(HEADER), raw(REST)],
        [brought(HEADER, AIMessageChunk("")), raw(REST)],
        legacy,
        [AIMessageChunk("", tool_call_chunks=[part]) for part in parts],
        [AIMessageChunk("", tool_calls=[call])],
        [AIMessage("", tool_calls=[call])],
    ):
        assert [(one["name"], one["args"]) for one in whole(chunks).tool_calls] == [("f", {"q": 1})]


def test_the_calls_of_a_whole_message_are_each_one() -> None:
    """What a stream would leave unclear is clear in a whole message: calls without arguments, and equal ones."""
    calls = [{"name": "f", "args": args, "id": name, "type": "tool_call"} for args, name in (({}, "a"), ({"q": 1}, "b"), ({"q": 1}, "c"))]
    invalid = [{"name": "f", "args": '{"q"', "id": "d", "error": None, "type": "invalid_tool_call"}]
    message = whole([AIMessage("Hi", id=REPLY, tool_calls=calls, invalid_tool_calls=invalid)])
    assert message.tool_calls == calls
    assert [(call["id"], call["args"]) for call in message.invalid_tool_calls] == [("d", '{"q"')]
    assert (message.content, message.id) == ("Hi", REPLY)
    wire = [{"id": name, "function": {"name": "f", "arguments": text}} for text, name in (("{}", "a"), ('{"q":1}', "b"), ('{"q":1}', "c"))]
    content: Any = ["Hi", {"type": "tool_use", "id": "a", "name": "f", "input": {}}]
    partner = AIMessage(content, additional_kwargs={"tool_calls": wire, "refusal": "no"}, tool_calls=calls)
    message = whole([partner])
    assert (message.content, message.additional_kwargs, message.tool_calls) == (["Hi"], {"refusal": "no"}, calls)


def test_wire_dicts_count_once() -> None:
    """Where core or a partner package has made call chunks of the wire's dicts, only the dicts are read."""
    part = {"name": "f", "args": '{"q": 1}', "id": "call_1", "index": 0}
    chunk = AIMessageChunk(
        "", additional_kwargs={"tool_calls": [{**HEADER, "function": {"name": "f", "arguments": '{"q": 1}'}}]}, tool_call_chunks=[part]
    )
    assert [call["args"] for call in whole([chunk]).tool_calls] == [{"q": 1}]


def test_blocks_of_calls_do_not_leave() -> None:
    """Content blocks that repeat the fragments of a call are left out; other blocks leave."""
    content: list[Any] = [
        {"type": "text", "text": "Hi", "index": 0},
        {"type": "tool_use", "id": "a", "name": "f", "input": {}, "index": 1},
        "!",
    ]
    left = run([AIMessageChunk(content, tool_call_chunks=[{"name": "f", "args": "{}", "id": "a", "index": 1}])])
    assert left[0].content == [content[0], "!"]
    assert [call["name"] for call in left[-1].tool_calls] == ["f"]


def test_a_raw_chunk_cannot_bring_a_verdict() -> None:
    """What a raw chunk says under our key of calls or of a run is not believed; what its wire keeps there stays."""
    own = {"calls": [{"id": "x", "name": "f", "arguments": "{}", "ok": True}], "blocked": None, "messages": [], "origin": "o"}
    last = run([AIMessageChunk("a", response_metadata={KEY: own})])[-1]
    assert last.response_metadata == {KEY: {"origin": "o"}}
    assert run([AIMessageChunk("a", response_metadata={KEY: "x"})])[-1].response_metadata == {}


def test_raw_chunks_are_left_alone() -> None:
    """Chunks may be used again: nothing in them is changed."""
    chunks = [raw(HEADER, text="a", response_metadata={"finish_reason": "stop"}), raw(REST)]
    before = [chunk.model_copy(deep=True) for chunk in chunks]
    assert whole(chunks) == whole(chunks)
    assert chunks == before


def test_the_canonical_message() -> None:
    """A turn is one plain message, its calls as the verdict has them, whatever was made of its chunks."""
    total = reduce(add, run([raw(HEADER, REST, text="Hi"), raw({**CUT, "index": 1, "function": {"name": "g", "arguments": '{"p":"hel'}})]))
    total.tool_calls, total.invalid_tool_calls = [{"name": "g", "args": {"p": "hel"}, "id": "x", "type": "tool_call"}], []
    for source in (total, message_chunk_to_message(total)):
        message = canonical_message(source)
        assert type(message) is AIMessage
        assert [(call["name"], call["args"]) for call in message.tool_calls] == [("f", {"q": 1})]
        assert [(call["name"], call["args"]) for call in message.invalid_tool_calls] == [("g", '{"p":"hel')]
        assert "cut off" in str(message.invalid_tool_calls[0]["error"])
    stored = canonical_message(total, stored=True)
    assert stored.response_metadata == {
        KEY: {"calls": [{"id": "call_1", "arguments": '{"q": 1}'}, {"id": "new_1", "arguments": '{"p":"hel'}]}
    }
    assert canonical_message(stored) == stored


def test_the_canonical_message_of_no_turn() -> None:
    """Without a verdict a message keeps its calls, as a plain message."""
    call = {"name": "f", "args": {}, "id": "a", "type": "tool_call"}
    message = canonical_message(AIMessageChunk("Hi", tool_calls=[call]))
    assert message == AIMessage("Hi", tool_calls=[call])
    assert canonical_message(whole([AIMessageChunk("Hi")], cut=True), stored=True) == AIMessage("Hi")


def test_the_verdict_survives_storage() -> None:
    """A turn that went through core's serialisations says the same."""
    last = run([raw(HEADER, REST), raw(CUT)])[-1]
    message = message_chunk_to_message(last)
    for copy in (
        messages_from_dict(messages_to_dict([message]))[0],
        AIMessage(**message.model_dump()),
        pickle.loads(pickle.dumps(message)),
    ):
        assert canonical_message(copy) == canonical_message(message)


BROKEN = st.text('{}[]":,\\ab1 \n\u0000é', min_size=1, max_size=40)


@given(BROKEN, st.integers(0, 3))
def test_what_must_not_run_stays_invalid(text: str, times: int) -> None:
    """Whatever a refused call's text is, core's repair of JSON makes no call of it, however often chunks are summed."""
    chunks = run([raw(HEADER, {"index": 0, "function": {"arguments": "{" + text}})], cut=True)
    total = reduce(add, [*chunks, *(AIMessageChunk("") for _ in range(times))])
    assert total.tool_calls == message_chunk_to_message(total).tool_calls == []
    assert total.invalid_tool_calls
    assert [call["name"] for call in canonical_message(total).invalid_tool_calls] == ["f"] * len(total.invalid_tool_calls)


def test_long_refused_arguments_cost_little() -> None:
    """Core gives up at once on a refused call, however long its arguments are (its repair would take minutes on these)."""
    last = run([raw(HEADER, {"index": 0, "function": {"arguments": '{"q":"' + "x{" * 500_000}})])[-1]
    assert (last + AIMessageChunk("")).tool_calls == []


def test_an_object_that_comes_again_counts_as_it_came_last() -> None:
    """Core would put the texts of two objects together, and add up their numbers; what comes with the last content stays with it."""
    states = [{"stage": "PREVIEW", "step": 1}, {"stage": "STABLE", "step": 2}]
    chunks = [AIMessageChunk(text, response_metadata={"state": state}) for text, state in zip("ab", states, strict=True)]
    assert whole(chunks).response_metadata == {"state": states[1]}
    ending = AIMessageChunk("c", response_metadata={"state": states[1]}, chunk_position="last")
    left = run([chunks[0], ending])
    assert [chunk.response_metadata.get("state") for chunk in left if chunk.content] == [None, states[1]]
    assert whole([chunks[0], ending]).response_metadata == {"state": states[1]}
