"""Long conversations: a message costs as many statements as in a short one, and what has ended is read once."""

import asyncio
import contextlib
from collections import Counter
from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

import sqlalchemy
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from langchain_autotools.durable import Conversations, RunFailedError
from langchain_autotools.durable.engine import EndedRuns, engine
from langchain_autotools.event_types import RunEnded, RunEvent
from tests.support.counted import counting as counting_calls
from tests.support.durable import Life, counting, double
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
    engine.ended_runs, engine.transcripts = EndedRuns(limit), EndedRuns(limit)
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


def test_a_run_has_the_messages_of_the_run_before_it(life: Life) -> None:
    """A run is given the objects that the run before it had, also those it made, so that what was derived from them is found again."""
    received: list[list[BaseMessage]] = []

    def reply(messages: list[BaseMessage], **_: Any) -> Any:
        received.append(messages)
        text = messages[-1].text
        return AIMessage("", tool_calls=[{"name": "double", "args": {"number": 2}, "id": f"c{len(messages)}"}]) if text == "two" else "Yes."

    chats = life.conversations(reply, [double])
    for text in ("one", "two", "three"):
        chats.result(chats.send("alice", text))
    *_, before, last = received
    assert [one.text for one in last] == ["one", "Yes.", "two", "", "4", "Yes.", "three"]
    assert [*map(id, last[: len(before)])] == [*map(id, before)]


def test_a_run_that_failed_is_followed_by_what_it_made(life: Life) -> None:
    """What a failed run had made is in the history of the next, once, however often the one before it was kept."""
    received: list[list[BaseMessage]] = []

    def reply(messages: list[BaseMessage], **_: Any) -> Any:
        received.append(messages)
        if messages[-1].text == "fail":
            raise ValueError("no")
        return "Yes."

    chats = life.conversations(reply)
    for text in ("one", "two", "fail", "three", "four"):
        sent = chats.send("alice", text)
        with contextlib.suppress(RunFailedError):
            chats.result(sent)
    assert [one.text for one in received[-1]] == ["one", "Yes.", "two", "Yes.", "fail", "three", "Yes.", "four"]


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


@pytest.mark.parametrize("asynchronous", [False, True])
def test_the_events_of_runs_that_have_ended_are_read_together(life: Life, asynchronous: bool) -> None:
    """Sixteen runs take two statements; events and positions are those that each run has alone, and one that goes on is waited for."""
    chats = life.conversations(counting, [double])
    for number in range(17):
        last = chats.send("alice", "double 1 2") if number % 8 == 0 else chats.append("alice", [HumanMessage(f"Note {number}")])
        chats.result(last) if number % 8 == 0 else None
    chats.send("alice", "double 4")
    with statements() as here:
        events = list(chats.events("alice"))
    assert [one.stop_reason for one in events if isinstance(one, RunEnded)] == ["complete"] * 4
    assert len({one.position for one in events}) == len(events)
    if asynchronous:
        with statements("") as here:
            again = asyncio.run(_events(chats))
        here = [one for one in here if "streams" in one or "ORDER BY main.workflow_status.created_at" in one]
    else:
        with statements() as here:
            again = list(chats.events("alice"))
    assert again == events
    assert sum("streams" in one for one in here) == 2
    for place in (0, 7, len(events) - 2):
        assert list(chats.events("alice", after=events[place].position)) == events[place + 1 :]


def test_runs_that_cannot_be_read_together_are_read_alone(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the one statement, or rows in another form, cost statements and no event."""
    chats = life.conversations(counting)
    chats.result(chats.send("alice", "Hello"))
    events = list(chats.events("alice"))
    monkeypatch.setattr(engine, "database", sqlalchemy.create_engine("sqlite://"))  # it has no such table
    assert list(chats.events("alice")) == events
    engine.database.dispose()


async def _events(chats: Conversations) -> list[RunEvent]:
    return [event async for event in chats.aevents("alice")]


def _title(chats: Conversations) -> str:
    info = chats.info("alice")
    assert info is not None
    return info.title


def test_a_late_turn_of_a_durable_run_takes_as_many_calls_as_an_early_one(life: Life) -> None:
    """In whatever threads it is made: of the package's functions, and of the built-in ones that they call."""
    calls: Counter[str] = Counter()
    before: list[Counter[str]] = []

    def reply(messages: list[BaseMessage], **_: Any) -> AIMessage:
        before.append(calls.copy())
        number = len(before)
        call = {"name": "double", "args": {"number": number}, "id": f"call {number}"}
        return AIMessage("Done.") if number > 55 else AIMessage("", tool_calls=[call])

    chat = life.model(reply, [double], max_turns=None, no_progress=None)
    with counting_calls(calls, new_threads=True, builtins=True):
        life.begin()
        assert chat.invoke("Go", run_id="one").text == "Done."
    early, late = before[15] - before[5], before[55] - before[45]
    assert early.total() > 5_000
    assert late.total() <= early.total() * 1.02, late - early
