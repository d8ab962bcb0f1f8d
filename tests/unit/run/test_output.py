"""`RunOutput`: what of a run's turns leaves, in which form; driven by hand."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import add
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage

from langchain_autotools import new_messages
from langchain_autotools.messages.calls import ToolCallRecord
from langchain_autotools.messages.metadata import KEY
from langchain_autotools.messages.run_messages import numbered_result
from langchain_autotools.run.loop import RunOutcome
from langchain_autotools.run.output import RunOutput

CALL = {"name": "f", "args": {}, "id": "call_1", "type": "tool_call"}


def output(**fields: Any) -> RunOutput:
    """The outward side of a run that begins after three messages."""
    return RunOutput(**{"position": 3, "separator": "\n", "carry_messages": True, "blocks": False, **fields})


def outcome(**fields: Any) -> RunOutcome:
    """How the run ended."""
    return RunOutcome(**{"stop_reason": "complete", "turns": 2, "usage": None, **fields})


def texts(chunks: Iterable[AIMessageChunk]) -> list[Any]:
    """The contents of chunks."""
    return [chunk.content for chunk in chunks]


def asking(text: str = "", **fields: Any) -> AIMessage:
    """A turn's message with a call."""
    return AIMessage(text, tool_calls=[CALL], id="turn_1", **fields)


def spoken(text: str, **fields: Any) -> AIMessageChunk:
    """A chunk of text."""
    return AIMessageChunk(content=text, id="turn_1", **fields)


# ---------------------------------------------------------------------------------------------- text


def test_text_leaves_without_id_and_metadata() -> None:
    """These belong to the turn; empty text is no chunk."""
    run = output()
    (chunk,) = run.chunk(spoken("Hi", response_metadata={"logprobs": [1]}))
    assert (chunk.content, chunk.id, chunk.response_metadata) == ("Hi", None, {})
    assert run.chunk(spoken("")) == []


def test_a_separator_stands_between_texts_of_turns() -> None:
    """Once, before the first text after calls, and not before anything else."""
    run = output()
    before = texts(run.chunk(spoken("Let me look.")))
    run.message(asking())
    assert run.chunk(spoken("")) == []
    after = [*texts(run.chunk(spoken("21"))), *texts(run.chunk(spoken(" °C")))]
    assert [*before, *after] == ["Let me look.", "\n", "21", " °C"]


@pytest.mark.parametrize(("first", "separator"), [("done \n", "\n"), ("", "\n"), ("done", "")])
def test_no_separator_where_none_is_needed(first: str, separator: str) -> None:
    """After white space, after no text at all, and where it is switched off."""
    run = output(separator=separator)
    run.chunk(spoken(first))
    run.message(asking())
    assert texts(run.chunk(spoken("21"))) == ["21"]


def test_no_separator_after_a_message_without_calls() -> None:
    """Two turns of which the first was only interrupted are one text."""
    run = output()
    run.chunk(spoken("Let me"))
    run.message(AIMessage("Let me", id="turn_1"))
    assert texts(run.chunk(spoken(" look"))) == [" look"]


def test_the_separator_stands_before_a_text_that_comes_with_its_reasoning() -> None:
    """A turn that came as one message: its text is not cut."""
    run = output()
    run.from_message(asking("One."))
    run.message(asking("One."))
    last = AIMessage("Two.", additional_kwargs={"reasoning_content": "hm"})
    assert texts(run.from_message(last)) == ["\n", "Two."]


def test_calls_never_leave() -> None:
    """Neither as blocks nor beside the text: an agent around the model would run them once more."""
    run = output()
    blocks: list[Any] = [
        {"type": "text", "text": "a", "index": 0},
        {"type": "tool_use", "id": "call_1", "name": "f", "input": {}, "index": 1},
    ]
    (chunk,) = run.from_message(AIMessage(blocks, additional_kwargs={"tool_calls": [{}], "reasoning_content": "hm"}))
    assert texts([chunk]) == [[{"type": "text", "text": "a", "index": 0}]]
    assert chunk.additional_kwargs == {"reasoning_content": "hm"}
    assert run.from_message(AIMessage([blocks[1]])) == []


def test_reasoning_beside_the_text_leaves() -> None:
    """It is a text of its own; lists and objects stay with the message."""
    run = output()
    (chunk,) = run.chunk(spoken("", additional_kwargs={"reasoning_content": "hm", "audio": {}}))
    assert chunk.additional_kwargs == {"reasoning_content": "hm"}


# ---------------------------------------------------------------------------------------------- blocks


def test_blocks_of_two_turns_never_merge() -> None:
    """One counter numbers them; parts of one block keep theirs, which `+` goes by."""
    run = output(blocks=True)
    text = {"type": "text", "text": "a", "index": 0}
    for number, turn in enumerate(("one", "two")):
        left = [chunk for _ in range(2) for chunk in run.chunk(AIMessageChunk(content=[text]))]
        indices = [block["index"] for chunk in left for block in chunk.content]  # type: ignore[index]
        assert indices == ([0, 0] if not number else [1, 2, 2])  # the separator is a block too
        assert all(chunk.response_metadata == {"output_version": "v1"} for chunk in left)
        run.message(AIMessage([text], tool_calls=[CALL], id=turn))


def test_reasoning_comes_before_the_separator() -> None:
    """The line break is directly before the text that it separates."""
    run = output()
    run.chunk(spoken("a"))
    run.message(asking("a"))
    blocks: list[Any] = [{"type": "thinking", "thinking": "hm", "index": 0}, {"type": "text", "text": "b", "index": 1}]
    left = run.from_message(AIMessage(blocks))
    assert [block["type"] for chunk in left for block in chunk.content] == ["thinking", "text", "text"]  # type: ignore[index]
    assert [block["index"] for chunk in left for block in chunk.content] == [0, 1, 2]  # type: ignore[index]
    assert left[1].content[0]["text"] == "\n"  # type: ignore[index]


def test_blocks_without_a_number_get_one_where_all_have_one() -> None:
    """Of v1 content; a vendor's own blocks are left as they are, and so is a text among them."""
    (chunk,) = output(blocks=True).from_message(AIMessage([{"type": "text", "text": "a"}]))
    assert chunk.content[0]["index"] == 0  # type: ignore[index]
    (chunk,) = output().from_message(AIMessage(["a", {"type": "text", "text": "b"}], response_metadata={"model_provider": "anthropic"}))
    assert chunk.content == ["a", {"type": "text", "text": "b"}]
    assert chunk.response_metadata == {"model_provider": "anthropic"}


# ---------------------------------------------------------------------------------------------- messages


def test_messages_say_where_they_stand() -> None:
    """The AI message is number 0 of its generation, its results follow; the generation is derived from the place."""
    run = output()
    message, chunk = run.message(asking("a"))
    generation = message.response_metadata["generation_id"]
    assert message.response_metadata["message_order_idx"] == 0
    assert new_messages(chunk) == [message]
    result = numbered_result(ToolMessage("1", tool_call_id="call_1", id="r"), message, 2)
    assert result.response_metadata == {"generation_id": generation, "message_order_idx": 3, "tool_call_idx": 2}
    assert new_messages(run.carrier_chunk(result)) == [result]
    assert output().message(asking("a"))[0].response_metadata["generation_id"] == generation
    assert run.message(asking("a"))[0].response_metadata["generation_id"] != generation
    third = run.message(asking("b"))[0].response_metadata["generation_id"]
    assert output(position=4).message(asking("a"))[0].response_metadata["generation_id"] != generation
    assert output(position=6).message(asking("b"))[0].response_metadata["generation_id"] == third


def test_results_of_a_message_without_generation_have_none() -> None:
    """A message of the input, whose calls are resumed, may have come from anywhere."""
    result = numbered_result(ToolMessage("1", tool_call_id="call_1"), AIMessage("", tool_calls=[CALL]), 0)
    assert result.response_metadata == {}


def test_what_was_delivered_is_not_brought_again() -> None:
    """An error brings what no chunk has brought."""
    run = output()
    first, _ = run.message(asking())
    assert run.undelivered() == [first]
    run.delivered()
    second, _ = run.message(AIMessage("b", id="turn_2"))
    assert run.undelivered() == [second]


def test_without_carrying_the_data_is_plain() -> None:
    """The live messages are remembered all the same."""
    run = output(carry_messages=False)
    message, chunk = run.message(AIMessage("a", id="turn_1"))
    assert KEY not in chunk.response_metadata
    assert new_messages(chunk) == [message]
    (last,) = run.end(outcome())
    assert "messages" not in last.response_metadata[KEY]


# ---------------------------------------------------------------------------------------------- the end


def test_the_last_chunk_says_what_is_true_of_the_run() -> None:
    """The last turn's id, usage and metadata; how the run ended; an empty part of the messages, so that the sum has the key."""
    run = output()
    usage: Any = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    run.message(asking(response_metadata={"model_name": "old"}))
    run.message(AIMessage("b", id="turn_2", response_metadata={"model_name": "m", "output_version": "v0"}, usage_metadata=usage))
    (last,) = run.end(outcome(usage=usage))
    assert (last.id, last.usage_metadata, last.chunk_position, last.content) == ("turn_2", usage, "last", "")
    own = {"messages": [], "stop_reason": "complete", "turns": 2, "usage": usage}
    assert last.response_metadata == {"model_name": "m", KEY: own}
    assert new_messages(last) == []


def test_a_run_without_a_turn_has_an_end() -> None:
    """All calls of the input were left pending: nothing was said."""
    (last,) = output().end(outcome(stop_reason="calls_pending", turns=0))
    assert (last.id, last.content, last.response_metadata[KEY]["turns"]) == (None, "", 0)


def test_pending_calls_are_on_the_last_chunk() -> None:
    """With the name and the arguments as the model wrote them, and what is recorded of them alone."""
    run = output()
    entries = [{"id": "call_1", "arguments": "{ }"}, {"id": "call_2", "arguments": "{}"}]
    run.message(message := asking(response_metadata={KEY: {"calls": entries, "origin": "home"}}))
    wanted = ToolCallRecord("call_1", "tool", "{ }", {}, written_name="Tool")
    bare = ToolCallRecord("call_3", "g", "", {"a": 1})
    (last,) = run.end(outcome(pending=[wanted, bare], asked=message))
    assert [(call["name"], call["args"], call["id"], call["index"]) for call in last.tool_call_chunks] == [
        ("Tool", "{ }", "call_1", 0),
        ("g", '{"a": 1}', "call_3", 1),
    ]
    assert last.response_metadata[KEY]["calls"] == entries[:1]
    assert last.response_metadata[KEY]["origin"] == "home"


@pytest.mark.parametrize("key", ["id", "call_id"])
def test_pending_calls_are_blocks_where_content_is(key: str) -> None:
    """In the vendor's form those of its message, in v1 LangChain's; numbered on."""
    run, block = output(), {"type": "function_call", "name": "f", key: "call_1"}
    run.message(AIMessage([block, {**block, key: "call_2"}], tool_calls=[CALL], id="turn_1"))
    (last,) = run.end(outcome(pending=[ToolCallRecord("call_1", "f", "{}", {})]))
    assert last.content == [{**block, "index": 1}]
    (last,) = output(blocks=True).end(outcome(pending=[ToolCallRecord("call_1", "f", "{}", {})]))
    assert [(one["type"], one["id"]) for one in last.content] == [("tool_call", "call_1")]  # type: ignore[index]


def test_direct_results_are_the_last_texts() -> None:
    """Each after a separator; one without text adds nothing."""
    run = output()
    run.chunk(spoken("Here:"))
    run.message(asking("Here:"))
    direct = [ToolMessage(text, tool_call_id="call_1") for text in ("21 °C", "", "wind")]
    left = list(run.end(outcome(stop_reason="return_direct", direct=direct)))
    assert texts(left[:-1]) == ["\n", "21 °C", "\n", "wind"]
    assert left[-1].chunk_position == "last"


def test_the_parts_add_up() -> None:
    """The sum of the chunks carries every message, once, in order."""
    run = output()
    chunks = run.chunk(spoken("a"))
    message, chunk = run.message(asking("a"))
    chunks.append(chunk)
    result = numbered_result(ToolMessage("1", tool_call_id="call_1", id="r"), message, 0)
    chunks = [*chunks, run.carrier_chunk(result), *run.chunk(spoken("b"))]
    last, chunk = run.message(AIMessage("b", id="turn_2"))
    whole = reduce(add, [*chunks, chunk, *run.end(outcome())])
    assert whole.text == "a\nb"
    assert new_messages(whole) == [message, result, last]
