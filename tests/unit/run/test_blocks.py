"""Content that is a list of a vendor's blocks on its way through a turn and a run: calls as blocks, texts alone, output versions."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage, message_chunk_to_message

from langchain_autotools.messages.calls import ToolCallRecord
from langchain_autotools.messages.metadata import KEY
from langchain_autotools.run.loop import RunOutcome
from langchain_autotools.run.output import RunOutput
from langchain_autotools.turn.accumulator import TurnAccumulator
from langchain_autotools.turn.stored_messages import BlockWriter, canonical_message, with_output_version
from langchain_autotools.turn.turn import generation

FORM = {KEY: {"call_blocks": {"type": "tool_use", "first": 3}}}
VENDOR = {"model_provider": "anthropic"}
SIGNED = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln", "index": 0}


def raw(content: Any = "", fragments: Any = (), **fields: Any) -> AIMessageChunk:
    """A raw chunk, with fragments of calls as a mapper hands them on."""
    chunk = AIMessageChunk(content=content, **fields)
    if fragments:
        chunk.additional_kwargs["tool_calls"] = list(fragments)
    return chunk


def call(index: int, arguments: str, **more: Any) -> dict[str, Any]:
    """A whole call as a fragment."""
    return {"index": index, "id": f"c{index}", "name": "f", "arguments": arguments, **more}


def turn_of(*chunks: AIMessageChunk) -> list[AIMessageChunk]:
    """What leaves of a turn."""
    turn = TurnAccumulator(declared=("f",), new_id=lambda position: f"new_{position}")
    return [*(out for out in map(turn.feed, chunks) if out is not None), turn.finish()]


# ---------------------------------------------------------------------------------------------- a turn


def test_calls_become_blocks_where_the_wire_has_them_so() -> None:
    """The last chunk holds a numbered block for each call that may run, with the keys that came with it; the form itself is not kept."""
    last = turn_of(raw(fragments=[call(0, '{"q": 1}', caller={"type": "direct"}), call(1, '{"q":')]), raw(response_metadata=FORM))[-1]
    assert last.content == [{"caller": {"type": "direct"}, "type": "tool_use", "id": "c0", "name": "f", "input": {"q": 1}, "index": 3}]
    assert "call_blocks" not in last.response_metadata[KEY]
    assert [call["args"] for call in canonical_message(last).tool_calls] == [{"q": 1}]
    assert [call["args"] for call in canonical_message(last).invalid_tool_calls] == ['{"q":']


def test_calls_of_a_blocked_turn_are_no_blocks() -> None:
    """A block would be a call that core believes: a turn that did not end normally has none."""
    metadata = {**FORM, "finish_reason": "max_tokens"}
    last = turn_of(raw(fragments=[call(0, '{"q": 1}')]), raw(response_metadata=metadata))[-1]
    assert (last.content, canonical_message(last).tool_calls) == ([], [])


def test_without_a_form_calls_are_no_blocks() -> None:
    """Other wires keep text as content."""
    assert turn_of(raw("Look.", [call(0, "{}")]))[-1].content == ""


def test_blocks_leave_with_what_they_are_read_by() -> None:
    """A list of blocks leaves at once with the provider that core reads it by; text leaves without."""
    out = turn_of(raw([SIGNED], response_metadata=VENDOR), raw("a", response_metadata=VENDOR))
    assert [chunk.response_metadata for chunk in out] == [VENDOR, {}, VENDOR]
    summed = message_chunk_to_message(reduce(add, out[:1] + out[2:]))
    assert [block["type"] for block in summed.content_blocks] == ["reasoning"]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Hi", "Hi"),
        ([{"type": "text", "text": "Hi", "index": 0}], "Hi"),
        ([{"type": "text", "text": "H"}, {"type": "text", "text": "i"}], "Hi"),
        ([SIGNED], ""),
    ],
)
def test_a_generations_text_is_the_messages(content: Any, text: str) -> None:
    """Whatever form content has, callbacks see its text."""
    made = generation(AIMessageChunk(content=content))
    assert (made.text, made.message.text) == (text, text)


# ---------------------------------------------------------------------------------------------- output versions


def written(*chunks: AIMessageChunk) -> AIMessage:
    """The sum of a turn's chunks as v1 blocks."""
    writer = BlockWriter()
    return message_chunk_to_message(reduce(add, map(writer.chunk, chunks)))  # type: ignore[return-value]


def test_a_vendors_blocks_are_written_as_standard_blocks() -> None:
    """Pieces of one block are one block, blocks of two kinds two, calls their own; the vendor's own call blocks are not written twice."""
    message = written(
        AIMessageChunk([{"type": "thinking", "thinking": "Hm", "index": 0}], response_metadata=VENDOR),
        AIMessageChunk([{"type": "thinking", "thinking": ".", "index": 0}], response_metadata=VENDOR),
        AIMessageChunk([{"type": "thinking", "thinking": "", "signature": "c2ln", "index": 0}], response_metadata=VENDOR),
        AIMessageChunk([{"type": "text", "text": "Look", "index": 1}], response_metadata=VENDOR),
        AIMessageChunk([{"type": "text", "text": ".", "index": 1}], response_metadata=VENDOR),
        AIMessageChunk(
            [{"type": "tool_use", "id": "c0", "name": "f", "input": {}, "index": 2}],
            tool_call_chunks=[{"name": "f", "args": "{}", "id": "c0", "index": 0, "type": "tool_call_chunk"}],
            response_metadata=VENDOR,
            chunk_position="last",
        ),
    )
    blocks: list[Any] = message.content_blocks
    assert [block["type"] for block in blocks] == ["reasoning", "text", "tool_call"]
    assert (blocks[0]["reasoning"], blocks[0]["extras"]["signature"], message.text) == ("Hm.", "c2ln", "Look.")
    assert message.response_metadata["output_version"] == "v1"


def v1(*blocks: dict[str, Any]) -> AIMessage:
    """A message that core's event bridge has made v1 blocks of."""
    return AIMessage(content=list(blocks), response_metadata={"output_version": "v1"})


def test_blocks_that_say_no_more_than_text_become_text() -> None:
    """Without an output version the message is what it would have been without the bridge."""
    message = with_output_version(v1({"type": "reasoning", "reasoning": "Hm."}, {"type": "text", "text": "Hi", "index": 1}), None)
    assert (message.content, message.additional_kwargs) == ("Hi", {"reasoning_content": "Hm."})
    assert "output_version" not in message.response_metadata


@pytest.mark.parametrize(
    "block",
    [
        {"type": "reasoning", "reasoning": "Hm.", "extras": {"signature": "c2ln"}},
        {"type": "text", "text": "a", "annotations": [{"type": "citation", "url": "http://x"}]},
    ],
    ids=["signature", "citation"],
)
def test_blocks_that_say_more_stay(block: dict[str, Any]) -> None:
    """A signature or a citation is only in blocks: these are kept, whatever the output version."""
    message = v1(block, {"type": "text", "text": "Hi"})
    assert with_output_version(message, None) is message
    assert with_output_version(message, "v1").content == message.content


# ---------------------------------------------------------------------------------------------- a run


def output() -> RunOutput:
    """The outward side of a run."""
    return RunOutput(position=1, separator="\n", carry_messages=False, blocks=False)


def test_blocks_of_two_turns_do_not_merge() -> None:
    """Each turn numbers its blocks from 0; outside they get numbers of their own, and the separator is a block among them."""
    out = output()
    chunks = out.chunk(AIMessageChunk([{"type": "text", "text": "Look.", "index": 0}], response_metadata=VENDOR, id="m1"))
    turn = AIMessage([{"type": "text", "text": "Look."}], tool_calls=[{"name": "f", "args": {}, "id": "c0"}])
    _, brought = out.message(turn)
    result = out.carrier_chunk(ToolMessage("r", tool_call_id="c0"))
    later = [dict(SIGNED), {"type": "text", "text": "Done.", "index": 1}]
    chunks += [brought, result, *out.chunk(AIMessageChunk(later, response_metadata=VENDOR))]
    summed = message_chunk_to_message(reduce(add, chunks))
    assert [(block["type"], block.get("text")) for block in summed.content] == [
        *[("text", "Look."), ("thinking", None), ("text", "\n"), ("text", "Done.")]
    ]
    assert (summed.text, summed.id) == ("Look.\nDone.", None)


def test_a_message_without_calls_is_gone_on_with() -> None:
    """Between a turn that its server paused and the next one is no separator."""
    out = output()
    chunks = out.chunk(AIMessageChunk("Let me"))
    out.message(AIMessage("Let me"))
    assert "".join(chunk.text for chunk in [*chunks, *out.chunk(AIMessageChunk(" see."))]) == "Let me see."


def test_pending_calls_keep_their_blocks() -> None:
    """Of a turn's call blocks those stay outside whose calls are left to the caller."""
    out = output()
    uses = [{"type": "tool_use", "id": f"c{number}", "name": "f", "input": {}} for number in (0, 1)]
    calls: Any = [{"name": "f", "args": {}, "id": f"c{number}"} for number in (0, 1)]
    assert out.chunk(AIMessageChunk([dict(uses[0])], response_metadata=VENDOR)) == []
    out.message(AIMessage([*uses], tool_calls=calls, response_metadata=VENDOR))
    pending = [ToolCallRecord(id="c1", name="f", arguments="{}", args={})]
    [last] = out.end(RunOutcome("calls_pending", 1, None, pending))
    assert [(block["type"], block["id"]) for block in last.content] == [("tool_use", "c1")]
    assert [call["id"] for call in last.tool_calls] == ["c1"]


def test_blocks_that_nobody_asked_to_be_text_stay_a_list() -> None:
    """Content is rewritten only where it was written as v1 blocks: a vendor's list goes back as it came."""
    message = AIMessage([{"type": "text", "text": "Hi"}])
    assert with_output_version(message, None) is message
