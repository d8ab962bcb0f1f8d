"""Long conversations: a message costs as many statements as in a short one, and what has ended is read once."""

from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from langchain_autotools.durable import Conversations
from langchain_autotools.durable.ended_runs import EndedRuns
from langchain_autotools.durable.engine import engine
from tests.support.durable import Life, counting
from tests.support.statements import statements

EXECUTES = "dbos-executor"  # the threads in which runs are executed


def test_a_message_costs_as_many_statements_in_a_long_conversation(life: Life) -> None:
    """Sending looks for the first and the last run; executing reads the one run before that is not in memory."""
    chats, sent, made = life.conversations(counting), [], []
    life.begin()
    for number in range(1, 13):
        with statements() as here, statements(EXECUTES) as there:
            one = chats.send("alice", "Hello")
            sent.append(len(here))
            assert chats.result(one).text == f"{2 * number - 1}: Hello"
        made.append(len(there))
    assert sent == [5, *[6] * 3, *[7] * 8]  # from the fifth message on it takes one more to find the last run
    assert made == [4, *[5] * 11]


def test_a_message_with_an_id_costs_no_more_where_all_that_ended_is_in_memory(life: Life) -> None:
    """To find whether a message was sent before takes one statement, however many runs there are."""
    chats = life.conversations(counting)
    for number in range(6):
        chats.result(chats.send("alice", HumanMessage("Hello", id=f"m{number}")))
    chats.messages("alice")
    with statements() as here:
        again = chats.send("alice", HumanMessage("Hello", id="m2"))
    assert (again.run_id[-1], len(here)) == ("3", 4)
    with statements() as here:
        assert len(chats.messages("alice")) == 12
    assert len(here) == 2


@pytest.mark.parametrize("limit", [0, 900, 1_000_000])
def test_what_does_not_fit_into_memory_is_read_again(life: Life, limit: int) -> None:
    """However little is kept, nothing is missing from the history, in order."""
    chats = life.conversations(counting)
    life.begin()
    engine.ended_runs = EndedRuns(limit)
    for number in range(5):
        assert chats.result(chats.send("alice", HumanMessage("Hello", id=f"m{number}"))).text == f"{2 * number + 1}: Hello"
        assert [one.id for one in chats.messages("alice")][::2] == [f"m{before}" for before in range(number + 1)]


def test_who_changes_a_message_of_the_history_changes_his_own(life: Life) -> None:
    """Messages are kept in memory, and each reader has copies: whoever edits one leaves the next run's as it was."""
    received: list[Any] = []

    def reply(messages: list[BaseMessage], **_: Any) -> Any:
        received.append([one.model_copy(deep=True) for one in messages])
        for one in messages:
            one.content = "edited"
            one.additional_kwargs["edited"] = True
        return "Yes."

    chats = life.conversations(reply)
    for text in ("one", "two", "three"):
        chats.result(chats.send("alice", HumanMessage([{"type": "text", "text": text}])))
        for message in chats.messages("alice"):
            message.content = message.response_metadata["edited"] = "edited"
    assert [one.text for one in received[-1]] == ["one", "Yes.", "two", "Yes.", "three"]
    assert not any(one.additional_kwargs or "edited" in one.response_metadata for one in received[-1])
    assert [one.text for one in chats.messages("alice")] == ["one", "Yes.", "two", "Yes.", "three", "Yes."]


def test_a_deleted_conversation_is_forgotten(life: Life) -> None:
    """Neither its messages nor its title come back with the next one of the same id; a title that came later stays."""
    chats = life.conversations(counting)
    chats.append("alice", [SystemMessage("Be brief.", id="s")])
    chats.result(chats.send("alice", HumanMessage("Hello", id="m1")))
    assert len(chats.messages("alice")) == 3
    chats.result(chats.send("alice", HumanMessage("Bye", id="m2")))
    assert _title(chats) == "Hello"
    chats.delete("alice")
    assert chats.messages("alice") == []
    chats.result(chats.send("alice", HumanMessage("Again", id="m1")))
    assert [one.text for one in chats.messages("alice")] == ["Again", "1: Again"]


def _title(chats: Conversations) -> str:
    info = chats.info("alice")
    assert info is not None
    return info.title
