"""Runs whose database cannot be written: they stay, and go on when it can. (A full disk: tests/kills/test_full_disk.py.)"""

import logging
import resource
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from sqlalchemy.exc import OperationalError

from langchain_autotools.durable import Conversations
from langchain_autotools.durable.conversation_runs import sent_to
from langchain_autotools.durable.incarnations import Incarnation
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
