"""Few kills of many; `python -m tests.kills` does 200 of each kind."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.postgres import PostgresMissingError, programs

pytest.importorskip("dbos", reason="needs the extra `durable`")

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.kills
@pytest.mark.parametrize(("mode", "database"), [("sync", "sqlite"), ("async", "sqlite"), ("stream", "sqlite"), ("stream", "postgresql")])
def test_nothing_is_lost_doubled_or_swapped_by_kills(mode: str, database: str) -> None:
    """Killed at random moments, a worker leaves runs that go on: no call runs twice, no result is another call's, no message is lost."""
    if database == "postgresql":
        try:
            programs()
        except PostgresMissingError as missing:
            pytest.skip(str(missing))
    command = [sys.executable, "-m", "tests.kills", "--kills", "5", "--mode", mode, "--database", database]
    done = subprocess.run(command, cwd=REPOSITORY, env={**os.environ}, capture_output=True, text=True, timeout=280, check=True)
    figures = json.loads(done.stdout)
    assert figures["kills"] >= 5 and figures["calls"] == 9 * figures["runs"] > 0
    assert (figures["twice"], figures["swapped"], figures["wrong"]) == ([], [], [])
