"""Notes beside the data of chunks and messages: they come with a chunk that is handed on, and are in no data."""

import copy
import json
import pickle
from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

import pytest
from langchain_core.load import dumpd, dumps
from langchain_core.messages import AIMessage, AIMessageChunk, message_chunk_to_message
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langchain_autotools.chunks import ChunkSum, is_blank, new_chunk, sum_chunks
from langchain_autotools.messages.metadata import attach_messages, attached_messages
from langchain_autotools.turn.accumulator import CallPiece, is_restart, piece_chunk, pieces_of, restart_chunk

PIECE = CallPiece("call_1", "look", '{"at')
EMPTY = AIMessageChunk(content="", id="m1")


def live() -> AIMessageChunk:
    """A chunk that brings a live message."""
    chunk = EMPTY.model_copy(update={"response_metadata": {}})
    attach_messages(chunk, [AIMessage("Hi")])
    return chunk


NOTED: dict[str, tuple[Callable[[], AIMessageChunk], Callable[[Any], Any]]] = {
    "pieces of calls": (lambda: piece_chunk(PIECE, "m1", listed=False), lambda chunk: list(pieces_of(chunk))),
    "a new beginning": (lambda: restart_chunk("m1"), is_restart),
    "live messages": (live, attached_messages),
}
"""Chunks that bring a note and nothing else, each with what reads it."""
KINDS = pytest.mark.parametrize(("make", "read"), NOTED.values(), ids=NOTED)
MADE: dict[str, Callable[[AIMessageChunk], AIMessage]] = {
    "deep copy": copy.deepcopy,
    "pickle": lambda chunk: pickle.loads(pickle.dumps(chunk)),
    "sum": lambda chunk: reduce(add, [chunk, AIMessageChunk(content="")]),
    "our sum": lambda chunk: sum_chunks([chunk, AIMessageChunk(content="a")]),
    "message": lambda chunk: message_chunk_to_message(chunk),  # type: ignore[return-value]
    "data": lambda chunk: AIMessageChunk(**chunk.model_dump()),
    "checkpoint": lambda chunk: _checkpointed(chunk),
}


def _checkpointed(chunk: AIMessageChunk) -> Any:
    serializer = JsonPlusSerializer(allowed_msgpack_modules=[("langchain_core.messages.ai", "AIMessageChunk")])
    return serializer.loads_typed(serializer.dumps_typed(chunk))


@KINDS
def test_a_chunk_with_a_note_is_equal_to_one_without(make: Any, read: Any) -> None:
    """In its fields, its dumps and its repr too."""
    chunk = make()
    assert read(chunk) and not read(EMPTY)
    assert chunk == EMPTY and chunk == EMPTY
    assert (chunk.model_dump(), dumpd(chunk), dumps(chunk)) == (EMPTY.model_dump(), dumpd(EMPTY), dumps(EMPTY))
    assert (chunk.model_dump_json(), repr(chunk)) == (EMPTY.model_dump_json(), repr(EMPTY))
    assert json.dumps([chunk.additional_kwargs, chunk.response_metadata]) == "[{}, {}]"


@pytest.mark.parametrize("way", MADE)
@KINDS
def test_what_is_made_of_a_chunk_has_no_note(make: Any, read: Any, way: str) -> None:
    """Its dicts are plain ones, and its own: to change them changes nothing else."""
    chunk = make()
    made = MADE[way](chunk)
    assert not read(made)
    assert [type(made.additional_kwargs), type(made.response_metadata)] == [dict, dict]
    made.additional_kwargs["changed"] = made.response_metadata["changed"] = True
    assert chunk == EMPTY and read(chunk)


@KINDS
def test_a_note_comes_with_a_chunk_that_is_handed_on(make: Any, read: Any) -> None:
    """Also with a shallow copy, which shares its dicts; one that is given others has none of their notes."""
    chunk = make()
    assert read(copy.copy(chunk)) == read(chunk.model_copy(update={"content": "a"})) == read(chunk)
    assert not read(chunk.model_copy(update={"additional_kwargs": {}, "response_metadata": {}}))


@KINDS
def test_a_note_alone_has_no_part_in_a_message(make: Any, read: Any) -> None:
    """Nor has an empty chunk that nobody named; whatever says anything has."""
    blank = [make(), new_chunk("", {}, None), new_chunk([], {}, None)]
    says = [EMPTY, new_chunk("a", {}, None), new_chunk("", {"a": 1}, None), AIMessageChunk(content="", chunk_position="last")]
    says += [AIMessageChunk(content="", name="a"), AIMessageChunk(content="", response_metadata={"a": 1})]
    says += [AIMessageChunk(content="", usage_metadata={"input_tokens": 1, "output_tokens": 1, "total_tokens": 2})]
    says += [AIMessageChunk(content="", tool_call_chunks=[{"name": "a", "args": "", "id": "1", "index": 0, "type": "tool_call_chunk"}])]
    expected = [type(make().response_metadata) is dict, True, True]  # live messages come beside metadata, which a run's chunks have
    assert [is_blank(chunk) for chunk in blank] == expected
    assert not any(map(is_blank, says))


def test_sums_leave_out_what_has_no_part_in_them() -> None:
    """An empty text would come before the blocks; where there is nothing else the sum is an empty message."""
    block: Any = {"type": "text", "text": "a", "index": 0}
    blank = [new_chunk("", {}, None), piece_chunk(PIECE, "m1", listed=False), restart_chunk("m1")]
    assert sum_chunks([*blank, AIMessageChunk(content=[block], id="m1"), *blank]) == AIMessage([block], id="m1")
    assert sum_chunks(blank) == AIMessage("")
    assert not ChunkSum(blank)
