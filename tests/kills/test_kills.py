"""Few kills of many; `python -m tests.kills` does 200 of each kind."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import messages_from_dict

from langchain_autotools import pending_calls
from tests.kills import agents
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
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_conversations_whose_ids_are_alike_stay_apart_whatever_is_killed(database: str) -> None:
    """Ids that differ in case, in Unicode form, or by `%`, `_` and `/`: each conversation has its own messages, calls and decisions."""
    if database == "postgresql":
        needs_postgresql()
    figures = figures_of("tests.kills", "--kills", "3", "--mode", "ids", "--database", database)
    assert figures["kills"] >= 3 and figures["calls"] % 66 == 0 < figures["calls"]
    assert (figures["twice"], figures["swapped"], figures["wrong"]) == ([], [], [])


@pytest.mark.kills
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_messages_that_steer_are_answered_once_and_in_order_whatever_is_killed(database: str) -> None:
    """Sent while a run goes on, killed between sending and reading: each is in the history, the requests and the events once."""
    if database == "postgresql":
        needs_postgresql()
    figures = figures_of("tests.kills", "--kills", "5", "--mode", "steer", "--database", database)
    assert figures["kills"] >= 5 and figures["taken"] > 0
    assert (figures["twice"], figures["swapped"], figures["wrong"]) == ([], [], [])


@pytest.mark.kills
def test_calls_inside_a_model_that_is_given_as_a_tool_run_at_most_once(tmp_path: Path) -> None:
    """Each worker goes on with what the one before it has stored; what one was killed in does not run again, and the run ends."""
    ran = agents.killed(tmp_path, seed=1, kills=4)
    history = messages_from_dict(json.loads((tmp_path / "history").read_text()))
    assert pending_calls(history) == [] and history[-1].text == "Done."
    assert set(ran.values()) == {1} and len(ran) >= agents.CALLS - 4


@pytest.mark.kills
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_of_processes_that_resume_at_once_one_goes_on_whoever_is_killed_or_stopped(database: str) -> None:
    """With `claims(url)`: no call runs twice, and a process that comes later brings what the first one brought."""
    if database == "postgresql":
        needs_postgresql()
    assert figures_of("tests.kills.claims", "--kills", "12", "--database", database)["disturbed"] >= 12


@pytest.mark.kills
@pytest.mark.browser
def test_a_page_shows_all_of_a_conversation_whose_server_is_killed_again_and_again() -> None:
    """A browser's own EventSource, each of its connections cut after one event; the server is killed or stopped at random moments."""
    pytest.importorskip("playwright", reason="needs the extra `browser`")
    if not any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))):
        pytest.skip("no Chromium on this machine")
    figures = figures_of("tests.kills.pages", "--kills", "3")
    assert figures["shows all"] and figures["killed"] + figures["stopped"] == 3 and figures["ended by the server"] == 0


@pytest.mark.kills
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_runs_go_on_where_a_worker_was_asked_to_end(database: str) -> None:
    """SIGTERM during an asynchronous request and an asynchronous tool: the worker ends, and no run has failed by it, nor waits for ever."""
    if database == "postgresql":
        needs_postgresql()
    for figures in figures_of("tests.kills.sigterm", "--database", database).values():
        assert (figures["wrong"], figures["logged"]) == ([], 0)


@pytest.mark.kills
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_a_run_that_kills_its_process_ends_and_others_end_well(database: str) -> None:
    """Of 32 runs one ends the process of each worker, in a request or in a call: it fails with the reason, after four of them."""
    if database == "postgresql":
        needs_postgresql()
    for figures in all_figures_of("tests.kills", "--mode", "poison", "--database", database):
        assert figures["died"] <= 4 and figures["ended_well"] == 31 and "was given up: in 3 executions" in figures["given_up"]
        assert (figures["twice"], figures["wrong"]) == ([], [])


@pytest.mark.kills
def test_a_worker_that_is_frozen_in_a_transaction_loses_its_runs_too() -> None:
    """What it has locked in PostgreSQL is let go within the lease, and another worker ends its runs."""
    needs_postgresql()
    figures = figures_of("tests.kills.frozen")
    assert (figures["runs"], figures["calls"], figures["twice"], figures["swapped"], figures["wrong"]) == (2, 18, [], [], [])


@pytest.mark.kills
def test_a_worker_that_takes_all_conversations_holds_no_more_than_its_settings_say() -> None:
    """Half way one of two workers is killed: the other one answers all in order. At rest it holds no more than after
    its launch, a thread for each run that it takes at once, and DBOS's connections, however many batches there were."""
    needs_postgresql()
    figures = figures_of("tests.kills.many", "40")
    assert (figures["answered in order"], figures["calls that ran twice"], figures["wrong"]) == (3 * figures["conversations"], 0, [])
    holds, allowed = figures["the worker that lives on holds"], figures["its settings allow"]
    assert [batch for batch, held in holds.items() if any(held[what] > most for what, most in allowed.items())] == [], (holds, allowed)
    assert holds["fourth"]["megabytes"] < holds["large"]["megabytes"] + 30, holds


def needs_postgresql() -> None:
    """Skip where there is no server to start."""
    try:
        programs()
    except PostgresMissingError as missing:
        pytest.skip(str(missing))


def figures_of(module: str, *arguments: str) -> dict[str, Any]:
    """What a command prints."""
    (figures,) = all_figures_of(module, *arguments)
    return figures


def all_figures_of(module: str, *arguments: str) -> list[dict[str, Any]]:
    """What a command prints, of each of its parts."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, cwd=REPOSITORY, env={**os.environ}, capture_output=True, text=True, timeout=280, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]
