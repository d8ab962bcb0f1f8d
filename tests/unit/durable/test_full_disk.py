"""Runs whose database cannot be written: they stay, and go on when it can. (A full disk: tests/kills/test_full_disk.py.)"""

import logging
import resource
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from langchain_autotools.durable import Conversations
from langchain_autotools.durable.conversation_runs import Incarnation
from langchain_autotools.durable.conversations import sent_to
from langchain_autotools.durable.engine import Link, engine
from langchain_autotools.durable.run_reader import driven, rows_as_written
from langchain_autotools.event_types import MessagesAdded, RunStarted
from tests.support.durable import Life
from tests.support.full_disk import Runs, Warnings


@contextmanager
def unwritable() -> Iterator[None]:
    """Let no file of this process grow to the size that the database has already: `disk I/O error`."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def unreadable() -> Iterator[None]:
    """Let each statement fail as it does where SQLite cannot roll back what a failed write has left: `disk I/O error`."""

    def fail(*_: Any) -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR
        raise error

    event.listen(engine.database, "do_execute", fail)
    try:
        yield
    finally:
        event.remove(engine.database, "do_execute", fail)


def test_who_waits_for_a_run_waits_for_the_disk(life: Life) -> None:
    """Until its timeout, and not for an error of the database; afterwards it has the run."""
    may_end = threading.Event()
    chats = life.conversations(lambda messages, **_: may_end.wait(60) and "Done.")
    sent = chats.send("alice", "Hello")
    events = chats.events("alice", timeout=60)
    assert [type(next(events)) for _ in range(2)] == [MessagesAdded, RunStarted]
    with unreadable():
        with pytest.raises(TimeoutError):
            chats.result(sent, timeout=0.2)
        with pytest.raises(TimeoutError):
            list(driven(partial(rows_as_written, sent.run_id, None, 0.2, Link())))
    may_end.set()
    assert chats.result(sent, timeout=30).text == "Done."


def test_an_error_of_the_disk_is_no_failure_of_a_run(life: Life) -> None:
    """Runs and what waits behind them stay, and go on when it is over; nothing runs twice. Only who sends is told at once."""
    warnings, runs = Warnings(), Runs(life.url)

    def meanwhile(chats: Conversations) -> None:
        assert warnings.said.wait(20)
        with pytest.raises(OperationalError) as told:
            chats.send("other", "of nobody's business")
        assert "business" not in str(told.value)
        with pytest.raises(TimeoutError):
            chats.result(sent_to(Incarnation(chats.name, "Pay"), 1), timeout=0.2)

    logger = logging.getLogger("langchain_autotools")
    logger.addHandler(warnings)
    try:
        life.begin()
        runs.play(unwritable, meanwhile)
    finally:
        logger.removeHandler(warnings)
