"""Runs whose database is on a disk that is full for a while: a small one, which root may mount."""

import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from sqlalchemy import Engine, event

from langchain_autotools.durable import Conversations, launch, shutdown
from tests.support.full_disk import Runs
from tests.support.postgres import postgres

from .full_disk import NoDiskError, filled, small_disk
from .test_kills import figures_of, needs_postgresql

_FULL_SECONDS = 3.0


def stays_full(_: Conversations) -> None:
    """Wait while the disk is full."""
    time.sleep(_FULL_SECONDS)


def play(url: str, disk: Path) -> None:
    """Have runs meet the full disk."""
    met: list[str] = []

    def failed(context: Any) -> None:
        met.append(str(context.original_exception))

    event.listen(Engine, "handle_error", failed)
    try:
        runs = Runs(url)
        launch(worker=f"worker of {disk}")
        runs.play(partial(filled, disk), stays_full)
        assert [text for text in met if "disk is full" in text or "No space left" in text]
    finally:
        shutdown()
        event.remove(Engine, "handle_error", failed)


@pytest.fixture(autouse=True)
def _may_mount(tmp_path: Path) -> None:
    """Skip where this user may mount no disk."""
    try:
        with small_disk(tmp_path / "tried", "1m"):
            pass
    except NoDiskError as missing:
        pytest.skip(str(missing))


@pytest.mark.kills
def test_nothing_is_lost_doubled_or_swapped_over_a_full_disk() -> None:
    """Workers are killed at random moments while their disk is full again and again."""
    figures = figures_of("tests.kills.full_disk", "5")
    assert figures["kills"] >= 5 and figures["calls"] == 9 * figures["runs"] > 0
    assert (figures["twice"], figures["swapped"], figures["wrong"]) == ([], [], [])


@pytest.mark.kills
def test_runs_in_sqlite_wait_for_room(tmp_path: Path) -> None:
    """Runs and what waits behind them stay while the disk is full, and go on when there is room; nothing runs twice."""
    with small_disk(tmp_path / "disk", "4m") as disk:
        play(f"sqlite:///{disk / 'runs.sqlite'}", disk)


@pytest.mark.kills
def test_runs_in_postgresql_wait_for_room() -> None:
    """As in SQLite: the tables are in a tablespace of a full disk."""
    needs_postgresql()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # for the user who owns the server
        with small_disk(Path(folder) / "disk", "24m") as disk, postgres() as server:
            play(server.create("small", on=disk), disk)
