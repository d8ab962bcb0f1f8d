"""LangGraph's checkpointer over SQLite: what another process finds, also after `kill -9`, and turns at once."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from langchain_autotools import PendingCall, pending_calls
from tests.compat.checkpointed_turn import sends
from tests.compositions.test_approvals import approving_graph
from tests.support.checkpoints import THREAD, lose_three_of_four_tasks, lose_three_of_four_threads, one_node, stored

pytestmark = pytest.mark.compat
REPOSITORY = Path(__file__).resolve().parents[2]


def turn(folder: Path, what: str, durability: str = "sync") -> int:
    """Run a turn in another process; how that ended."""
    command = [sys.executable, "-m", "tests.compat.checkpointed_turn", str(folder / "file"), str(folder / "log"), what, durability]
    return subprocess.run(command, cwd=REPOSITORY, timeout=120).returncode


def test_after_a_kill_the_node_runs_again_with_every_call(tmp_path: Path) -> None:
    """The file has the question; what ran behind it is not known to anybody."""
    assert turn(tmp_path, "dies") == -signal.SIGKILL
    with SqliteSaver.from_conn_string(str(tmp_path / "file")) as saver:
        app = one_node(sends(tmp_path / "log"), saver)
        assert [message.type for message in stored(app)] == ["human"]
        assert app.invoke(None, THREAD)["messages"][-1].text == "Done."
    assert (tmp_path / "log").read_text() == "Anna\nBen\nCem\n" * 2


def test_with_durability_exit_a_kill_loses_the_question_too(tmp_path: Path) -> None:
    """Nothing is written before the graph ends: there is nothing to go on with, and the call has run."""
    assert turn(tmp_path, "dies", "exit") == -signal.SIGKILL
    with SqliteSaver.from_conn_string(str(tmp_path / "file")) as saver:
        assert one_node(sends(tmp_path / "log"), saver).get_state(THREAD).values == {}
    assert (tmp_path / "log").read_text() == "Anna\nBen\nCem\n"


def test_a_call_that_waits_is_decided_in_another_process(tmp_path: Path) -> None:
    """It runs there, once, as it was shown, and the next one is asked about."""
    assert turn(tmp_path, "asks") == 0
    with SqliteSaver.from_conn_string(str(tmp_path / "file")) as saver:
        app = approving_graph(sends(tmp_path / "log", requires_approval=["send"]), saver)
        (shown,) = app.get_state(THREAD).interrupts[0].value
        assert [PendingCall.from_dict(shown)] == pending_calls(stored(app))
        decision = PendingCall.from_dict(shown).approve()
        (following,) = app.invoke(Command(resume=[decision.to_dict()]), THREAD)["__interrupt__"][0].value
    assert (tmp_path / "log").read_text() == "Anna\n" and following["args"] == {"to": "Ben"}


def test_of_four_turns_at_once_in_threads_one_stays(tmp_path: Path) -> None:
    """As in memory: no error says so."""
    with SqliteSaver.from_conn_string(str(tmp_path / "file")) as saver:
        lose_three_of_four_threads(saver)


async def test_of_four_turns_at_once_in_tasks_one_stays(tmp_path: Path) -> None:
    """As in memory: no error says so."""
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "file")) as saver:
        await lose_three_of_four_tasks(saver)
