"""Copies of messages that a history holds beside the run that brought them, and chunks that somebody stored one by one."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage, messages_to_dict

from langchain_autotools import new_messages, repair
from langchain_autotools.messages.metadata import KEY
from langchain_autotools.testing import ScriptedChatModel

QUESTION = HumanMessage("How warm is it?", id="q")


def f() -> str:
    """Do something."""
    return "21"


def run_of_two_turns() -> AIMessage:
    """A run message that carries an AI message, a result and an answer."""
    asked = AIMessage("Let me look.", id="asked_0123456789ab", tool_calls=[{"name": "f", "args": {}, "id": "call_1", "type": "tool_call"}])
    return ScriptedChatModel(replies=[asked, AIMessage("21", id="answer_0123456789ab")], tools=[f]).invoke([QUESTION])


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
    assert [message.id for message in repair([QUESTION, *copies, run])] == ["q", "asked_0123456789ab", "other", "answer_0123456789ab"]


def test_the_same_id_in_another_generation_is_another_message() -> None:
    """Some servers give every reply the same id."""
    run = run_of_two_turns()
    other = AIMessage("earlier", id="answer_0123456789ab", response_metadata={"generation_id": "another"})
    assert [message.id for message in repair([QUESTION, other, QUESTION, run])][3:] == [part.id for part in new_messages(run)]


def test_an_edit_of_the_run_reaches_a_copy_without_generation() -> None:
    """The text that was edited last is the one that is sent."""
    run = run_of_two_turns()
    parts = [without(part, "generation_id") for part in new_messages(run)]
    edited = run.model_copy(update={"content": "Let me look.\n22"})
    assert [message.content for message in repair([QUESTION, *parts, edited])][-1] == "22"


# ---------------------------------------------------------------------------------------------- another run's messages

AGAIN = HumanMessage("And again?", id="again")


def test_another_run_s_answer_is_sent_whatever_its_id() -> None:
    """Two runs that say the same under the same ids, stored as run messages or as parts: the history is the same, and holds both."""
    run = run_of_two_turns()
    parts = new_messages(run)
    expected = repair([QUESTION, *parts, AGAIN, *parts, AGAIN])
    assert len(expected) == 9
    forms: list[list[BaseMessage]] = [[run], parts, [run, *parts], [*parts, run], [parts[0], run], [run, run]]
    for first in forms:
        for second in forms:
            assert repair([QUESTION, *first, AGAIN, *second, AGAIN]) == expected


def test_an_edit_of_one_run_leaves_the_other_as_it_is() -> None:
    """The edited text wins over the copies beside it, not over those of another run."""
    run = run_of_two_turns()
    parts, edited = new_messages(run), run.model_copy(update={"content": "Let me look.\n22"})
    cases: list[tuple[list[BaseMessage], list[BaseMessage], list[str]]]
    cases = [([run], [edited], ["21", "22"]), ([edited, *parts], [run, *parts], ["22", "21"])]
    for first, second, expected in cases:
        messages = repair([QUESTION, *first, AGAIN, *second, AGAIN])
        assert [message.content for message in messages if message.id == "answer_0123456789ab"] == expected


def test_an_id_that_may_come_twice_needs_the_same_content() -> None:
    """Of a copy without its generation: other words under a short id are another message, under a long one the edited message."""
    for identifier, contents in (("chatcmpl-1", ["20", "21"]), ("chatcmpl-0123456789ab", ["20"])):
        carried = AIMessage("21", id=identifier)
        run = carried.model_copy(update={"response_metadata": {KEY: {"messages": messages_to_dict([carried]), "stop_reason": "complete"}}})
        assert [message.content for message in repair([QUESTION, carried, run])][1:] == ["21"]
        assert [message.content for message in repair([QUESTION, AIMessage("20", id=identifier), run])][1:] == contents


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
