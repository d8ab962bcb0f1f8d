"""A worker dies half way and is not started again: every prompt is answered, in order, and what ran twice is counted."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.scale.__main__ import reply, saved
from tests.support.openai_server import OpenAIServer
from tests.support.pages import REPOSITORY
from tests.support.postgres import PostgresMissingError, programs

TICKETS = 60


@pytest.mark.scale
@pytest.mark.parametrize(("way", "library", "under_way"), [("dask", "distributed", 16), ("ray", "ray", 16), ("dbos", "dbos", 8)])
def test_every_prompt_is_answered(way: str, library: str, under_way: int) -> None:
    """Tools that ran again are at most those of the runs that were under way on the worker, or had come to nobody yet."""
    if not find_spec(library):
        pytest.skip(f"{library} is not installed: pip install '.[scale,durable]'")
    if way == "dbos":
        try:
            programs()
        except PostgresMissingError as missing:
            pytest.skip(str(missing))
    command = [sys.executable, "-m", "tests.scale", way, str(TICKETS)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert (told["answered in order"], told["tickets labelled"]) == (TICKETS, TICKETS)
    assert told["labels saved again"] <= under_way


@pytest.mark.scale
@pytest.mark.parametrize(("program", "library"), [("on_dask", "distributed"), ("on_ray", "ray"), ("on_dbos", "dbos")])
def test_the_program_runs_as_it_stands(program: str, library: str, tmp_path: Path) -> None:
    """Its tool is a function of `__main__`, which no worker can import."""
    if not find_spec(library):
        pytest.skip(f"{library} is not installed: pip install '.[scale,durable]'")
    ledger = tmp_path / "labels.tsv"
    with OpenAIServer(reply, rules=None) as server:
        place = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "key", "LEDGER": str(ledger), "PYTHONPATH": str(REPOSITORY)}
        command = [sys.executable, str(REPOSITORY / "examples" / "scale" / f"{program}.py")]
        done = subprocess.run(command, cwd=tmp_path, env={**os.environ, **place}, capture_output=True, text=True, timeout=280, check=False)
    assert "20 tickets are labelled" in done.stdout, done.stderr
    assert sorted(saved(ledger).items()) == sorted((str(ticket), 1) for ticket in range(20))
