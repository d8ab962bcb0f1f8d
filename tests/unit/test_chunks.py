"""Chunks copied and added up fast are the chunks and the sums that core makes."""

from functools import reduce
from itertools import product
from operator import add
from typing import Any

from langchain_core.messages import AIMessageChunk, message_chunk_to_message

from langchain_autotools.chunks import copier, new_chunk, sum_chunks

PARTS: list[dict[str, Any]] = [
    {"content": "a", "id": "1"},
    {"content": "b", "id": "1"},
    {"content": "c", "id": None},
    {"content": "", "id": "lc_run--2"},
    {"content": "d", "additional_kwargs": {"reasoning_content": "r"}},
    {"content": "e", "response_metadata": {"model_provider": "p"}},
    {"content": [{"type": "text", "text": "f", "index": 0}]},
    {"content": [{"type": "text", "text": "g", "index": 1}], "id": "1"},
    {"content": [{"type": "text", "text": "h", "index": 0, "citations": [{"url": "u"}]}]},
    {"content": [{"type": "text", "text": "i", "index": "lc_1"}]},
    {"content": [{"type": "text", "text": "j"}]},
    {"content": [], "id": "1"},
    {
        "content": "",
        "tool_call_chunks": [{"name": "t", "args": "{}", "id": "x", "index": 0, "type": "tool_call_chunk"}],
        "chunk_position": "last",
    },
]


def test_sums_are_cores() -> None:
    """Whatever chunks are beside one another, their sum is what `+` makes of them, and they themselves do not change."""
    for length in (1, 2, 3):
        for parts in product(PARTS, repeat=length):
            chunks = [AIMessageChunk(**part) for part in parts]
            before = [chunk.model_dump() for chunk in chunks]
            total = sum_chunks(chunks)
            assert [chunk.model_dump() for chunk in chunks] == before
            assert total == message_chunk_to_message(reduce(add, chunks))  # core 1.7.0 changes its summands, so it comes last


def test_copies_are_derived() -> None:
    """A copier's copies equal those of `model_copy`, share nothing that grows, and can be changed without changing the next one."""
    template = AIMessageChunk(content="")
    copy = copier(template, ("content", "id"))
    first, second = copy({"content": "x", "id": "1"}), copy({"content": "x", "id": "1"})
    assert first == second == template.model_copy(update={"content": "x", "id": "1"})
    first.name = first.foreign = "changed"
    assert (second.name, "name" in second.model_fields_set, second.model_fields_set) == (None, False, {"content", "id"})
    assert not second.model_extra


def test_new_chunks_are_their_callers() -> None:
    """A chunk made fast is core's, and whatever a caller does to it shows on no other."""
    first, second = new_chunk("x", {}, "1"), new_chunk("x", {}, "1")
    assert first == second == AIMessageChunk(content="x", id="1")
    first.name = first.foreign = "changed"
    for container in (first.additional_kwargs, first.response_metadata):
        container["changed"] = True
    for calls in (first.tool_calls, first.invalid_tool_calls, first.tool_call_chunks):
        calls.append(Any)
    assert second == AIMessageChunk(content="x", id="1") and not second.model_extra
