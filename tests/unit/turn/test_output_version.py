"""Content as v1 blocks, and as text where the blocks say no more than that."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk

from langchain_autotools.turn.stored_messages import BlockWriter, with_output_version

CALL = {"name": "f", "args": {}, "id": "1", "type": "tool_call"}


@pytest.mark.parametrize("calls", [[], [CALL]])
def test_extras_that_core_drops_are_kept(calls: list[Any]) -> None:
    """A vendor's signature on a standard block stays on it, whatever calls are beside it."""
    signed: dict[str, Any] = {"type": "text", "text": "Hi", "extras": {"signature": "s"}}
    message = AIMessage(content=[signed], tool_calls=calls, response_metadata={"model_provider": "anthropic"})
    assert with_output_version(message, "v1").content == [signed, *calls]


def test_text_of_blocks_has_no_reasoning_where_there_was_none() -> None:
    """Nothing is added to a message whose blocks are text alone; reasoning is beside the text."""
    message = AIMessage(content=[{"type": "text", "text": "Hi"}], response_metadata={"output_version": "v1"})
    plain = with_output_version(message, None)
    assert (plain.content, plain.additional_kwargs) == ("Hi", {})
    thought = message.model_copy(update={"content": [{"type": "reasoning", "reasoning": "Hm"}, *message.content]})
    plain = with_output_version(thought, None)
    assert (plain.content, plain.additional_kwargs) == ("Hi", {"reasoning_content": "Hm"})


def test_blocks_that_stay_blocks_lose_their_numbers() -> None:
    """Those tell fragments of a stream apart; a message has none."""
    blocks = [{"type": "text", "text": "Hi"}, {"type": "image", "url": "http://localhost/a.png"}]
    numbered: list[Any] = [{**block, "index": number} for number, block in enumerate(blocks)]
    message = AIMessage(content=numbered, response_metadata={"output_version": "v1"})
    assert with_output_version(message, None).content == blocks


def test_reasoning_beside_the_text_of_a_chunk_is_a_block_before_it() -> None:
    """It leaves the additional keywords, and has a number of its own."""
    chunk = BlockWriter().chunk(AIMessageChunk(content="Hi", additional_kwargs={"reasoning_content": "Hm"}))
    assert chunk.content == [{"type": "reasoning", "reasoning": "Hm", "index": 0}, {"type": "text", "text": "Hi", "index": 1}]
    assert chunk.additional_kwargs == {}
