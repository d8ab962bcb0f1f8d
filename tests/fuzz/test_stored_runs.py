"""Stored runs that somebody has changed: each row is read or refused by name, a run goes on or fails, and nothing runs unapproved."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import strategies as st

pytest.importorskip("dbos", reason="needs the extra `durable`")

from langchain_core.messages import AIMessage, BaseMessage

from langchain_autotools.durable import ConversationInfo, Conversations, DurableModel, shutdown
from langchain_autotools.durable.engine import engine
from langchain_autotools.errors import AutoToolsError
from langchain_autotools.event_types import RunEvent
from tests.fuzz.spoiling import changed
from tests.laws.ways import law
from tests.support.durable import Life, answered, asks

SEEDS = st.integers(0, 2**32)
LARGE = "It is large. " * 1_000
READ: list[str] = []
WIPED: list[str] = []

Table = tuple[str, str]
"""A table with JSON, and the column where it is."""

STEPS: Table = ("operation_outputs", "output")
TABLES: Sequence[Table] = (
    ("workflow_input", "inputs"),
    ("workflow_output", "output"),
    ("workflow_status", "attributes"),
    ("streams", "value"),
    STEPS,
)


def read(name: str) -> str:
    """Read a file."""
    READ.append(name)
    return LARGE


def wipe(name: str) -> str:
    """Wipe a file."""
    WIPED.append(name)
    return "gone"


def reply(messages: list[BaseMessage], **_: Any) -> Any:
    """Reads a file, then answers with its text, or asks to wipe it."""
    if not answered(messages):
        return asks(("wipe" if messages[-1].text == "wipe" else "read", {"name": "a"}), text="Let me see.")
    return f"So: {messages[-1].text}"


@contextmanager
def lived() -> Iterator[Life]:
    """A worker's database of its own; nothing has been wiped at its end."""
    READ.clear()
    WIPED.clear()
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            yield Life(Path(folder))
        finally:
            shutdown()
    assert not WIPED


def spoil(life: Life, chance: random.Random, table: Table, runs: str) -> Callable[[], None]:
    """Change one row of runs whose ids are like this; returns what restores it."""
    name, column = table
    with closing(life.database()) as database, database:
        asked = f"select rowid, {column} from {name} where {column} is not null and workflow_uuid like ? order by rowid"
        row, text = chance.choice(database.execute(asked, [runs]).fetchall())
        value = json.loads(text)
        for _ in range(chance.choice([1, 1, 2, 5])):
            value = changed(chance, value)
        torn = column != "attributes" and chance.random() < 0.05  # a JSON column of PostgreSQL has nothing else
        spoilt = chance.choice(["", "{", text[: len(text) // 2]]) if torn else json.dumps(value)
        if name != "streams" and chance.random() < 0.05:  # their column cannot be empty
            spoilt = None
        write = f"update {name} set {column} = ? where rowid = ?"
        database.execute(write, [spoilt, row])

    def restore() -> None:
        with closing(life.database()) as database, database:
            database.execute(write, [text, row])

    return restore


def outcome(ask: Callable[[], Any]) -> Any:
    """What a reader returns; None where it refuses."""
    try:
        return ask()
    except AutoToolsError:
        return None


def check_readers(chats: Conversations, sent: list[Any]) -> None:
    """Each gives what it promises, or refuses."""
    for one in sent:
        assert isinstance(outcome(lambda one=one: chats.result(one, timeout=20)), AIMessage | None)
    assert all(isinstance(one, BaseMessage) for one in outcome(lambda: chats.messages("a")) or ())
    assert all(isinstance(one, RunEvent) for one in outcome(lambda: list(chats.events("a", timeout=20))) or ())
    assert all(call.name for call in outcome(lambda: chats.pending("a")) or ())
    assert all(isinstance(one, ConversationInfo) for one in outcome(chats.list) or ())
    assert all(isinstance(one, ConversationInfo) for one in outcome(lambda: chats.list(1, owner="me", labels={"a": "b"})) or ())
    assert all(isinstance(one, ConversationInfo) for one in outcome(lambda: chats.list(order="activity")) or ())
    outcome(chats.health)
    outcome(lambda: json.dumps(chats.export("a")))


@law(1, 100, shrinks=False)
def test_a_conversation_with_a_changed_row_is_read_or_refused(data: st.DataObject) -> None:
    """By every reader: of its input, its outcome, its attributes, a step with a large text, or its events."""
    chance = random.Random(data.draw(SEEDS))
    with lived() as life:
        chats = life.conversations(reply, [read, wipe], requires_approval=["wipe"])
        sent = [chats.send("a", "read", owner="me", labels={"a": "b"}), chats.send("a", "wipe")]
        assert LARGE in chats.result(sent[0]).text and chats.result(sent[1]).tool_calls
        engine.ended_runs.forget(one.run_id for one in sent)
        for _ in range(6):
            restore = spoil(life, chance, chance.choice(TABLES), "conversations/%")
            check_readers(chats, sent)
            restore()
            engine.ended_runs.forget(one.run_id for one in sent)
        assert LARGE in chats.result(sent[0]).text and [call.name for call in chats.pending("a")] == ["wipe"]


def begin_again(life: Life, chance: random.Random, runs: list[str]) -> int:
    """Launch again as after crashes: of each run, the last steps are lost and one row is changed; returns how many may read again."""
    shutdown()
    may_read = 0
    with closing(life.database()) as database, database:
        for run in runs:
            steps = [number for (number,) in database.execute("select function_id from operation_outputs where workflow_uuid = ?", [run])]
            database.execute("delete from operation_outputs where workflow_uuid = ? and function_id > ?", [run, chance.choice(steps)])
            begun = "select 1 from operation_outputs where workflow_uuid = ? and function_name like 'begin %'"
            may_read += not database.execute(begun, [run]).fetchall()
            database.execute("delete from streams where workflow_uuid = ?", [run])
            database.execute("delete from workflow_output where workflow_uuid = ?", [run])
            database.execute("update workflow_status set status = 'PENDING', completed_at = null where workflow_uuid = ?", [run])
    for run in runs:
        spoil(life, chance, chance.choice([STEPS, STEPS, ("workflow_input", "inputs"), ("workflow_status", "attributes")]), run)
    READ.clear()
    life.begin(lease=2.0)
    return may_read


@law(1, 100, shrinks=False)
def test_a_run_whose_journal_was_changed_goes_on_or_fails(data: st.DataObject) -> None:
    """After a crash: it ends, no call has run again, and none that was not approved."""
    chance = random.Random(data.draw(SEEDS))
    with lived() as life:
        model = life.model(reply, [read, wipe], requires_approval=["wipe"])
        life.begin()
        runs = [f"run {number}" for number in range(3)]
        for run in runs:
            model.invoke(chance.choice(["read", "wipe"]), run_id=run)
        may_read = begin_again(life, chance, runs)
        for run in runs:
            check_run(model, run)
        assert len(READ) <= may_read


def check_run(model: DurableModel, run: str) -> None:
    """It ends, and its readers give what they promise or refuse."""
    assert isinstance(outcome(lambda: model.invoke("read", run_id=run)), AIMessage | None)
    assert all(isinstance(one, RunEvent) for one in outcome(lambda: list(model.events(run, timeout=20))) or ())
    assert isinstance(outcome(lambda: model.result(run)), AIMessage | None)


@law(1, 100, shrinks=False)
def test_a_conversation_whose_journal_was_changed_goes_on_or_fails(data: st.DataObject) -> None:
    """After a crash: each of its runs ends, and the next one too."""
    chance = random.Random(data.draw(SEEDS))
    with lived() as life:
        chats = life.conversations(reply, [read, wipe], requires_approval=["wipe"])
        life.begin()
        names = [f"chat {number}" for number in range(2)]
        sent = [chats.send(name, chance.choice(["read", "wipe"])) for name in names]
        for one in sent:
            chats.result(one)
        may_read = begin_again(life, chance, [one.run_id for one in sent])
        for one in sent:
            assert isinstance(outcome(lambda one=one: chats.result(one, timeout=60)), AIMessage | None)
        assert len(READ) <= may_read
        for name in names:
            following = outcome(lambda name=name: chats.send(name, "wipe"))
            if following is not None:
                assert isinstance(outcome(lambda one=following: chats.result(one, timeout=60)), AIMessage | None)
