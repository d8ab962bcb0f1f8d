"""What a planted row does: DBOS reads each value in the form that its own row names, whatever serializer is configured.

docs/durable.md says so, and how to guard the database. Where this test fails DBOS has a switch: use it, and correct the page.
"""

import base64
import os
import pickle
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from langchain_autotools.durable import DurableModel
from tests.support.durable import Life

READERS: dict[str, tuple[list[str], Callable[[DurableModel], Any]]] = {
    "result": (
        [
            "update workflow_output set output = :value",
            "update workflow_status set serialization = 'py_pickle' where workflow_uuid = 'one'",
        ],
        lambda chat: chat.result("one"),
    ),
    "events": (
        ["update streams set value = :value, serialization = 'py_pickle'"],
        lambda chat: list(chat.events("one", timeout=1.0)),
    ),
}


class Planted:
    """Makes a folder where it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)

    def __reduce__(self) -> Any:
        return os.mkdir, (self._folder,)


def test_a_pickle_that_somebody_has_written_into_the_database_is_read(life: Life) -> None:
    """We write none; but whoever can write to the database runs code in whoever reads the row."""
    chat = life.model(["Hello."])
    life.begin()
    chat.invoke("Go", run_id="one")
    assert "py_pickle" not in life.dump()
    for reader, (statements, read) in READERS.items():
        folder = life.folder / reader
        value = base64.b64encode(pickle.dumps(Planted(folder))).decode()
        with closing(sqlite3.connect(life.folder / "runs.sqlite", timeout=30)) as database, database:
            for statement in statements:
                assert database.execute(statement, {"value": value} if ":value" in statement else {}).rowcount
        with suppress(Exception):  # what it makes of the row is not the point
            read(chat)
        assert folder.exists(), reader
