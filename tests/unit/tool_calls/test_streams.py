"""`ToolCallAssembler` on streams of any length and any script: linear, exact where the protocol is kept, never wrong when cut."""

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.tool_calls.test_tool_calls import REFUSED, Fragment, assemble, fragment, meant


@pytest.mark.parametrize("count", [16_000, pytest.param(64_000, marks=pytest.mark.exhaustive)])
def test_long_arguments_in_many_fragments(count: int) -> None:
    """Tens of thousands of fragments make one call, in whatever way they are told apart (wire quirk B-25)."""
    text = json.dumps({"q": "{x} " * (count // 4)})
    pieces = [text[at : at + 1] for at in range(len(text))]
    for known in ({"index": 0}, {}, {"id": "a"}):
        (call,) = assemble([fragment(None, "a", "f"), *({**known, "function": {"arguments": piece}} for piece in pieces)])
        assert call.arguments == text
        assert call.args is not None


@pytest.mark.parametrize("style", ["ids", "headers", "shape", "stray"])
def test_many_calls(style: str) -> None:
    """Thousands of calls are no work of squares: neither whole nor all left open."""
    ids = [fragment(None, f"c{number}", "f", f'{{"q":{number}}}') for number in range(2000)]
    headers = [fragment(None, f"c{number}", "f") for number in range(2000)]
    calls = {
        "ids": ids,
        "headers": [*headers, *(fragment(arguments="x") for _ in headers)],
        "shape": [{"function": one["function"]} for one in ids],
        "stray": [
            *({**one, "index": number} for number, one in enumerate(headers)),
            *(fragment(9000 + n, arguments="{") for n in range(2000)),
        ],
    }[style]
    assert [call.args is not None for call in assemble(calls)].count(style in ("ids", "shape")) == 2000


OBJECTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
CALLS = st.lists(
    st.tuples(st.sampled_from(["f", "g", "get_weather"]), st.dictionaries(st.text(max_size=5), OBJECTS, max_size=3)), max_size=4
)


def standard(calls: list[tuple[str, dict[str, Any]]], data: st.DataObject) -> list[Fragment]:
    """A stream as the protocol means it: a header, then fragments by index; the text cut anywhere, the calls alternating."""
    rows = []
    for index, (name, args) in enumerate(calls):
        text = json.dumps(args, ensure_ascii=data.draw(st.booleans()))
        cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
        pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        rows.append([fragment(index, f"call_{index}", name), *(fragment(index, arguments=piece) for piece in pieces)])
    if data.draw(st.booleans()):
        return [one for row in rows for one in row]
    turns = data.draw(st.permutations([number for number, row in enumerate(rows) for _ in row]))
    return [rows[number].pop(0) for number in turns]


@settings(max_examples=60)
@given(CALLS, st.data())
def test_standard_streams_come_out_as_meant(calls: list[tuple[str, dict[str, Any]]], data: st.DataObject) -> None:
    """Random calls, cut and mixed in any way, come out as they went in, in the order they began."""
    fragments = standard(calls, data)
    order = list(dict.fromkeys(one["index"] for one in fragments))
    expected = [(calls[index][0], json.loads(json.dumps(calls[index][1]).encode("utf-8", "replace"))) for index in order]
    assert meant(assemble(*fragments, declared=("f", "g", "get_weather"))) == expected


@settings(max_examples=60)
@given(CALLS, st.data())
def test_a_cut_stream_never_runs_what_was_not_meant(calls: list[tuple[str, dict[str, Any]]], data: st.DataObject) -> None:
    """Of any beginning of a stream a call is whole, or refused, or has only its header (which alone means: no arguments)."""
    fragments = standard(calls, data)
    for end in range(len(fragments)):
        for call in assemble(*fragments[:end]):
            index = int(call.id.removeprefix("call_"))
            texts = [one["function"]["arguments"] for one in fragments[:end] if one["index"] == index]
            assert call.args in (None, json.loads(json.dumps(calls[index][1]))) or not any(texts)


@pytest.mark.exhaustive
@pytest.mark.parametrize("check", [test_standard_streams_come_out_as_meant, test_a_cut_stream_never_runs_what_was_not_meant])
def test_many_streams(check: Any) -> None:
    """The same of five hundred streams each."""
    settings(max_examples=500)(given(CALLS, st.data())(check.hypothesis.inner_test))()


@pytest.mark.parametrize("seed", range(5))
def test_a_call_inside_itself_is_not_cut_short(seed: int) -> None:
    """`{"a":{"a":1}}` cut before its last bracket is not `{"a":1}`, although it could be cumulative text."""
    draw = random.Random(seed)
    key = draw.choice(["a", "q", "{"])
    pieces = [json.dumps({key: 0})[:-2], json.dumps({key: 1})]
    assert meant(assemble([fragment(0, "a", "f"), *(fragment(0, arguments=piece) for piece in pieces)])) == [("f", REFUSED)]
