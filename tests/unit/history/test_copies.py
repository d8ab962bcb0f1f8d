"""Copies of messages that a history holds beside the run that brought them, and chunks that somebody stored one by one."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage

from langchain_autotools import new_messages, repair
from langchain_autotools.testing import ScriptedChatModel

QUESTION = HumanMessage("How warm is it?", id="q")


def f() -> str:
    """Do something."""
    return "21"


def run_of_two_turns() -> AIMessage:
    """A run message that carries an AI message, a result and an answer."""
    asked = AIMessage("Let me look.", id="a1", tool_calls=[{"name": "f", "args": {}, "id": "call_1", "type": "tool_call"}])
    return ScriptedChatModel(replies=[asked, AIMessage("21", id="a2")], tools=[f]).invoke([QUESTION])


def without(message: BaseMessage, *keys: str) -> BaseMessage:
    """The message as a store gives it back that kept none of these keys."""
    kept = {key: value for key, value in message.response_metadata.items() if key not in keys}
    return message.model_copy(update={"response_metadata": kept})


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_copy_without_its_generation_is_the_message(place: int) -> None:
    """Each of the messages: stored before the run message, it is not brought again."""
    run = run_of_two_turns()
    parts = new_messages(run)
    copies = [without(part, "generation_id") for part in parts[: place + 1]]
    assert [message.id for message in repair([QUESTION, *copies, run])] == ["q", *(part.id for part in parts)]


def test_a_result_with_another_id_is_known_by_its_call() -> None:
    """Without its generation too."""
    run = run_of_two_turns()
    asked, result, _ = new_messages(run)
    copies = [without(asked, "generation_id"), without(result, "generation_id").model_copy(update={"id": "other"})]
    assert [message.id for message in repair([QUESTION, *copies, run])] == ["q", "a1", "other", "a2"]


def test_the_same_id_in_another_generation_is_another_message() -> None:
    """Some servers give every reply the same id."""
    run = run_of_two_turns()
    other = AIMessage("earlier", id="a2", response_metadata={"generation_id": "another"})
    assert [message.id for message in repair([QUESTION, other, QUESTION, run])][3:] == [part.id for part in new_messages(run)]


def test_an_edit_of_the_run_reaches_a_copy_without_generation() -> None:
    """The text that was edited last is the one that is sent."""
    run = run_of_two_turns()
    parts = [without(part, "generation_id") for part in new_messages(run)]
    edited = run.model_copy(update={"content": "Let me look.\n22"})
    assert [message.content for message in repair([QUESTION, *parts, edited])][-1] == "22"


# ---------------------------------------------------------------------------------------------- loose chunks


def chunk(text: str, identifier: str | None = None, **fields: Any) -> AIMessageChunk:
    """A chunk."""
    return AIMessageChunk(content=text, id=identifier, **fields)


def contents(messages: list[BaseMessage]) -> list[Any]:
    """The contents of a history after its question."""
    return [message.content for message in repair([QUESTION, *messages])][1:]


def test_chunks_are_one_message_up_to_the_last() -> None:
    """What follows the one that says so is another message, with the same id or without any."""
    assert contents([chunk("a", "x"), chunk("b", "x", chunk_position="last"), chunk("c", "x"), chunk("d", "x")]) == ["ab", "cd"]
    assert contents([chunk("a"), chunk("b", chunk_position="last"), chunk("c")]) == ["ab", "c"]


def test_another_id_begins_another_message() -> None:
    """A chunk without one belongs to those around it."""
    assert contents([chunk("a", "x"), chunk("b"), chunk("c", "x")]) == ["abc"]
    assert contents([chunk("a", "x"), chunk("b", "y")]) == ["a", "b"]


def test_what_is_no_chunk_ends_a_message() -> None:
    """On both sides of it."""
    assert contents([chunk("a"), HumanMessage("and?"), chunk("b")]) == ["a", "and?", "b"]
    assert contents([chunk("a"), AIMessage("b"), chunk("c")]) == ["a", "b", "c"]


def test_calls_in_pieces_are_one_call() -> None:
    """Its result finds it."""
    first = chunk("", "x", tool_call_chunks=[{"name": "f", "args": '{"a":', "id": "call_1", "index": 0, "type": "tool_call_chunk"}])
    rest = chunk("", "x", tool_call_chunks=[{"name": None, "args": " 1}", "id": None, "index": 0, "type": "tool_call_chunk"}])
    whole, result = repair([QUESTION, first, rest, ToolMessage("1", tool_call_id="call_1")])[1:]
    assert isinstance(whole, AIMessage) and not isinstance(whole, AIMessageChunk)
    assert [call["args"] for call in whole.tool_calls] == [{"a": 1}]
    assert isinstance(result, ToolMessage) and result.content == "1"
