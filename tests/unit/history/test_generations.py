"""Histories as rows of a table, and back."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    BaseMessageChunk,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    message_chunk_to_message,
)

from langchain_autotools import ConfigurationError, new_messages
from langchain_autotools.history import expand, join_generations, split_generations
from langchain_autotools.testing import ScriptedChatModel
from tests.laws.test_history_laws import histories


def look(at: str) -> str:
    """Look at a place."""
    return f"{at} is quiet"


def call(identifier: str, at: str) -> Any:
    """An entry of `tool_calls`."""
    return {"id": identifier, "name": "look", "args": {"at": at}, "type": "tool_call"}


HISTORY: list[BaseMessage] = [
    SystemMessage("Be brief."),
    HumanMessage("Look around."),
    AIMessage("", tool_calls=[call("a", "Rome"), call("b", "Oslo")]),
    ToolMessage("Oslo is quiet", tool_call_id="b"),
    ToolMessage("Rome is quiet", tool_call_id="a"),
    AIMessage("All quiet."),
]


@given(histories(), st.randoms(use_true_random=False), st.integers(0, 9))
def test_rows_in_any_order_are_the_history_again(messages: list[BaseMessage], random: Any, start: int) -> None:
    """Splitting loses nothing, is the same each time, and joining needs no order; run messages count as what they carry."""
    rows = split_generations(messages, start=start)
    assert split_generations(messages, start=start) == rows
    shuffled = json.loads(json.dumps(rows))
    random.shuffle(shuffled)
    plain = [message_chunk_to_message(message) if isinstance(message, BaseMessageChunk) else message for message in expand(messages)]
    assert join_generations(shuffled) == plain


def test_rows_say_where_each_message_stands() -> None:
    """A turn and its results are one generation, each result under the position of its call; other messages have none."""
    rows = split_generations(HISTORY)
    system, user, calling, second, first, end = rows
    assert [row["position"] for row in rows] == [0, 1, 2, 3, 4, 5]
    assert (system["generation_id"], user["generation_id"]) == (None, None)
    assert calling["generation_id"] == second["generation_id"] == first["generation_id"] != end["generation_id"]
    assert [(row["message_order_idx"], row["tool_call_idx"]) for row in rows[2:]] == [(0, None), (2, 1), (1, 0), (0, None)]


def test_the_messages_of_a_run_keep_their_places() -> None:
    """What a run says of its messages is in the rows."""
    model = ScriptedChatModel(replies=[AIMessage("", tool_calls=[call("a", "Rome")]), "All quiet."], tools=[look])
    new = new_messages(model.invoke("Look around."))
    rows = split_generations(new, start=1)
    assert [row["generation_id"] for row in rows] == [message.response_metadata["generation_id"] for message in new]
    assert [(row["position"], row["message_order_idx"], row["tool_call_idx"]) for row in rows] == [(1, 0, None), (2, 1, 0), (3, 0, None)]


def test_results_of_no_call_are_numbered_among_the_results() -> None:
    """Where their ids are nobody's, each keeps its place."""
    calls = [{"name": "look", "args": {}, "id": name} for name in ("a", "b", "c")]
    rows = split_generations(
        [AIMessage("", tool_calls=calls, id="m"), *(ToolMessage("Seen.", tool_call_id=name) for name in ("x", "y", "z"))]
    )
    assert [(row["message_order_idx"], row["tool_call_idx"]) for row in rows] == [(0, None), (1, 0), (2, 1), (3, 2)]


@pytest.mark.parametrize("row", [{}, {"position": 1}, 3, []])
def test_what_is_no_row_is_refused(row: Any) -> None:
    """A row has a position and a message."""
    with pytest.raises(ConfigurationError, match="a row of a history"):
        join_generations([row])


def test_two_messages_cannot_have_one_position() -> None:
    """Rows of two histories are not mixed in silence."""
    with pytest.raises(ConfigurationError, match="position 0"):
        join_generations([*split_generations(HISTORY), *split_generations([HumanMessage("Another.")])])
