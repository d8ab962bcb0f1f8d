"""Stored rows of conversations that somebody has changed: every reader refuses them by the name of their run."""

import json
import sqlite3
from contextlib import closing
from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from langchain_core.messages import BaseMessage, HumanMessage

from langchain_autotools.durable import RunFailedError, shutdown
from tests.support.durable import Life, answered, asks, counting

INPUT, OUTPUT = ("workflow_input", "inputs"), ("workflow_output", "output")
STEP, EVENTS, ATTRIBUTES = ("operation_outputs", "output"), ("streams", "value"), ("workflow_status", "attributes")
LARGE = "It is large. " * 1_000


def test_a_row_that_is_not_as_a_run_stores_it_is_refused_with_its_run(life: Life) -> None:
    """Whatever is in it, its input or its outcome."""
    chats = life.conversations(counting)
    sent = chats.send("alice", "Hello")
    chats.result(sent, timeout=30)
    shutdown()
    request = {"kind": "send", "messages": [{"type": "human"}]}
    changed = [(INPUT, value) for value in (5, {"positionalArgs": [5]}, {"positionalArgs": [request], "namedArgs": {}})]
    changed += [(OUTPUT, value) for value in ([1], {"message": 5}, {"message": {"type": "human", "data": {"content": "x"}}})]
    for (table, column), value in changed:
        with closing(sqlite3.connect(life.folder / "runs.sqlite", timeout=30)) as database, database:
            (before,) = database.execute(f"select {column} from {table} where workflow_uuid = ?", [sent.run_id]).fetchone()
            write = f"update {table} set {column} = ? where workflow_uuid = ?"
            database.execute(write, [json.dumps(value), sent.run_id])
        with pytest.raises(RunFailedError, match=r"cannot be read: it is not as a run stores it"):
            chats.messages("alice")
        shutdown()
        with closing(sqlite3.connect(life.folder / "runs.sqlite", timeout=30)) as database, database:
            database.execute(write, [before, sent.run_id])
    assert [message.text for message in chats.messages("alice")] == ["Hello", "1: Hello"]


def rewrite(life: Life, place: tuple[str, str], run_id: str, text: str, like: str = "%") -> int:
    """Write a text into a column of a run's rows, where what is there is like this; returns how many rows there were."""
    table, column = place
    with closing(life.database()) as database, database:
        write = f"update {table} set {column} = ? where workflow_uuid = ? and {column} like ?"
        return database.execute(write, [text, run_id, like]).rowcount


def test_a_text_that_no_step_has_is_missed(life: Life) -> None:
    """Where an outcome or events name a large text whose step was changed, they are refused, and not read without it."""
    chats = life.conversations(lambda messages, **_: LARGE)
    sent = chats.send("alice", "Hello")
    chats.result(sent, timeout=30)
    assert len(list(chats.events("alice", timeout=30)))
    shutdown()
    assert rewrite(life, STEP, sent.run_id, '{"at": 0}', f"%{LARGE}%") == 1
    for read in (lambda: chats.result(sent, timeout=30), lambda: chats.messages("alice"), lambda: list(chats.events("alice", timeout=30))):
        with pytest.raises(RunFailedError, match=rf"of run '{sent.run_id}' cannot be read"):
            read()


def test_events_that_are_no_json_end_their_own_reader_alone(life: Life) -> None:
    """By the name of the run; who reads another conversation reads on."""
    chats = life.conversations(counting)
    sent, other = chats.send("alice", "Hello"), chats.send("bob", "Hello")
    assert chats.result(sent, timeout=30).text == chats.result(other, timeout=30).text
    assert rewrite(life, EVENTS, sent.run_id, "{")
    with pytest.raises(RunFailedError, match=rf"events of run '{sent.run_id}' cannot be read"):
        list(chats.events("alice", timeout=30))
    assert [type(event).__name__ for event in chats.events("bob", timeout=30)][-1] == "RunEnded"


@pytest.mark.parametrize("attributes", ["[1]", '{"autotools_last": "x"}', '{"autotools_conversation": "alice", "autotools_labels": [1]}'])
def test_attributes_that_are_none_are_refused(life: Life, attributes: str) -> None:
    """By the list, which names the run; to delete the conversation needs none of them."""
    chats = life.conversations(counting)
    sent = chats.send("alice", "Hello")
    chats.result(sent, timeout=30)
    assert rewrite(life, ATTRIBUTES, sent.run_id, attributes) == 1
    with pytest.raises(RunFailedError, match=rf"the attributes of run '{sent.run_id}' cannot be read"):
        chats.list()
    assert chats.delete("alice") == 1 and chats.list() == []


def test_a_last_number_that_is_ahead_of_what_is_there_does_not_count(life: Life) -> None:
    """The next message has the next number, as the conversation is looked through."""
    chats = life.conversations(counting)
    first, *_ = [chats.append("alice", [HumanMessage(f"{number}")]) for number in range(5)]
    ahead = '{"autotools_conversation": "alice", "autotools_last": 1000}'
    assert rewrite(life, ATTRIBUTES, first.run_id, ahead) == 1
    assert chats.send("alice", "Hello").run_id.endswith("/6")


OTHERS = ['{"at": 0}', '{"at": 0, "error": null, "cut": null, "message": {"type": "human", "data": {"content": "x"}}}']


@pytest.mark.parametrize(("step", "record"), [*(("turn 2", record) for record in (None, "{", *OTHERS)), ("events", None)])
def test_a_step_that_is_none_fails_its_run(life: Life, step: str, record: str | None) -> None:
    """After a crash: the run ends by its name, and nothing of it is done again."""
    runs: list[str] = []

    def note(text: str) -> str:
        runs.append(text)
        return "noted"

    def replies(messages: list[BaseMessage], **_: Any) -> Any:
        return "Done." if answered(messages) else asks(("note", {"text": "a"}))

    model = life.model(replies, [note])
    life.begin()
    model.invoke("Go.", run_id="a run")
    shutdown()
    with closing(life.database()) as database, database:
        database.execute("delete from workflow_output where workflow_uuid = 'a run'")
        database.execute("update workflow_status set status = 'PENDING', completed_at = null where workflow_uuid = 'a run'")
        changed = "update operation_outputs set output = ? where workflow_uuid = 'a run' and function_name = ?"
        assert database.execute(changed, [record, step]).rowcount == 1
    life.begin()
    for wait in (lambda: model.result("a run"), lambda: model.invoke("Go.", run_id="a run")):
        with pytest.raises(RunFailedError, match="a step of run 'a run' cannot be read"):
            wait()
    assert runs == ["a"]


def test_an_input_that_is_none_fails_its_run(life: Life) -> None:
    """After a crash: the run ends by its name, for all who wait for it."""
    model = life.model(counting, [])
    life.begin()
    named = {"a run": [1], "b run": "x", "c run": 5}
    for run in named:
        model.invoke("Go.", run_id=run)
    shutdown()
    with closing(life.database()) as database, database:
        (stored,) = database.execute("select inputs from workflow_input where workflow_uuid = 'a run'").fetchone()
        database.execute("delete from workflow_output")
        database.execute("update workflow_status set status = 'PENDING', completed_at = null")
    for run, value in named.items():
        assert rewrite(life, INPUT, run, json.dumps({**json.loads(stored), "namedArgs": value})) == 1
    life.begin()
    for run in named:
        for wait in (lambda run=run: model.result(run), lambda run=run: model.invoke("Go.", run_id=run)):
            with pytest.raises(RunFailedError, match=f"of run '{run}' cannot be read"):
                wait()


def without_input(life: Life, run: str, lost: str) -> None:
    """Make a run as after a crash whose stored request is lost as well: deleted, or emptied."""
    with closing(life.database()) as database, database:
        for name in ("workflow_output", "operation_outputs", "streams"):
            database.execute(f"delete from {name} where workflow_uuid = ?", [run])
        database.execute("update workflow_status set status = 'PENDING', completed_at = null where workflow_uuid = ?", [run])
        assert database.execute(f"{lost} where workflow_uuid = ?", [run]).rowcount == 1


DELETED, EMPTIED = "delete from workflow_input", "update workflow_input set inputs = null"


def test_an_input_that_is_missing_fails_its_run(life: Life) -> None:
    """After a crash: for all who wait for it, and for who asks for the same run again, which does not begin a run that was taken."""
    model = life.model(counting, [])
    life.begin()
    for run in ("a run", "b run"):
        model.invoke("Go.", run_id=run)
    shutdown()
    for run, lost in {"a run": DELETED, "b run": EMPTIED}.items():
        without_input(life, run, lost)
    life.begin(lease=1.0)
    for run in ("a run", "b run"):
        for wait in (lambda run=run: model.result(run), lambda run=run: list(model.events(run))):
            with pytest.raises(RunFailedError, match=f"the request of run '{run}' cannot be read: it is missing"):
                wait()
    with pytest.raises(RunFailedError, match="b run"):
        model.invoke("Go.", run_id="b run")


@pytest.mark.parametrize("lost", [DELETED, EMPTIED])
def test_a_conversation_goes_on_behind_a_run_without_input(life: Life, lost: str) -> None:
    """The run fails by its name, and the one behind it too, which cannot know what was said: neither waits for ever."""
    chats = life.conversations(counting)
    sent = chats.send("alice", "Hello")
    chats.result(sent, timeout=30)
    shutdown()
    without_input(life, sent.run_id, lost)
    life.begin(lease=1.0)
    following = chats.send("alice", "And?")
    for one in (sent, following):
        with pytest.raises(RunFailedError, match=f"the request of run '{sent.run_id}' cannot be read"):
            chats.result(one, timeout=30)
