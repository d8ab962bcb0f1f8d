"""Stored rows of conversations that somebody has changed: every reader refuses them by the name of their run."""

import json
import sqlite3
from contextlib import closing

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from langchain_autotools.durable import RunFailedError, shutdown
from tests.support.durable import Life, counting

INPUT, OUTPUT = ("workflow_input", "inputs"), ("workflow_output", "output")


def test_a_row_that_is_not_as_a_run_stores_it_is_refused_with_its_run(life: Life) -> None:
    """Whatever stands in it, its input or its outcome."""
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
