"""Few kills of many; `python -m tests.kills` does 200 of each kind."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from tests.support.postgres import PostgresMissingError, programs

pytest.importorskip("dbos", reason="needs the extra `durable`")

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.kills
@pytest.mark.parametrize(("mode", "database"), [("sync", "sqlite"), ("async", "sqlite"), ("stream", "sqlite"), ("stream", "postgresql")])
def test_nothing_is_lost_doubled_or_swapped_by_kills(mode: str, database: str) -> None:
    """Killed at random moments, a worker leaves runs that go on: no call runs twice, no result is another call's, no message is lost."""
    if database == "postgresql":
        needs_postgresql()
    figures = figures_of("tests.kills", "--kills", "5", "--mode", mode, "--database", database)
    assert figures["kills"] >= 5 and figures["calls"] == 9 * figures["runs"] > 0
    assert (figures["twice"], figures["swapped"], figures["wrong"]) == ([], [], [])


@pytest.mark.kills
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_conversations_are_answered_in_order_whatever_is_killed(database: str) -> None:
    """Each message once, one run at a time; what was decided from two sides runs at most once; readers see the same from any position."""
    if database == "postgresql":
        needs_postgresql()
    figures = figures_of("tests.kills", "--kills", "5", "--mode", "queue", "--database", database)
    assert figures["kills"] >= 5 and figures["calls"] % 66 == 0 < figures["calls"]
    assert (figures["twice"], figures["swapped"], figures["wrong"]) == ([], [], [])


@pytest.mark.kills
def test_a_worker_that_is_frozen_in_a_transaction_loses_its_runs_too() -> None:
    """What it has locked in PostgreSQL is let go within the lease, and another worker ends its runs."""
    needs_postgresql()
    figures = figures_of("tests.kills.frozen")
    assert (figures["runs"], figures["calls"], figures["twice"], figures["swapped"], figures["wrong"]) == (2, 18, [], [], [])


@pytest.mark.kills
def test_a_worker_that_takes_all_conversations_holds_no_more_than_before() -> None:
    """Half way one of two workers is killed: the other one answers all in order, and holds no more afterwards."""
    needs_postgresql()
    figures = figures_of("tests.kills.many", "40")
    assert (figures["answered in order"], figures["calls that ran twice"], figures["wrong"]) == (3 * figures["conversations"], 0, [])
    before, after = (figures["the worker that lives on holds"][batch] for batch in ("large", "third"))
    assert after["megabytes"] < before["megabytes"] + 30
    assert all(after[what] < before[what] + 8 for what in ("threads", "files", "sockets"))


def needs_postgresql() -> None:
    """Skip where there is no server to start."""
    try:
        programs()
    except PostgresMissingError as missing:
        pytest.skip(str(missing))


def figures_of(module: str, *arguments: str) -> dict[str, Any]:
    """What a command prints."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, cwd=REPOSITORY, env={**os.environ}, capture_output=True, text=True, timeout=280, check=True)
    return cast("dict[str, Any]", json.loads(done.stdout))
