"""Calls that a wrapper leaves pending in a durable run."""

from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from langchain_core.tools import tool

from langchain_autotools import ToolExecutor, stop_reason
from langchain_autotools.durable import RunFailedError
from langchain_autotools.executor.plan import PlannedCall
from langchain_autotools.executor.steps import LEFT, Proceed, Steps, ends_as
from tests.support.durable import Life, asks, contents, crash

entered: list[str] = []


def leave(planned: PlannedCall, proceed: Proceed) -> Steps:
    """Leave what is for later, each time in the first life of a run only."""
    who = (planned.call.args or {})["who"]
    entered.append(who)
    return ends_as(LEFT) if who == "later" and entered.count("later") == 1 else proceed(planned)


class Leaving(ToolExecutor):
    """An executor whose batches leave calls."""

    def batch(self, *args: Any, **options: Any) -> Any:
        """Add a wrapper."""
        return super().batch(*args, **{**options, "wrappers": [leave]})


def test_that_a_call_was_left_is_recorded_like_a_result(life: Life) -> None:
    """After a crash the wrapper is not asked again: the call stays pending, as it did before."""
    ran: list[str] = []
    entered.clear()

    @tool
    def pay(who: str) -> str:
        """Pay somebody."""
        ran.append(who)
        if len(ran) == 1:
            crash()
        return f"paid {who}"

    executor = Leaving([pay], parallel=False)
    chat = life.model(lambda messages, **_: asks(("pay", {"who": "later"}), ("pay", {"who": "alice"})), executor, rerun=("pay",))
    life.begin()
    with pytest.raises(RunFailedError):
        chat.invoke("Go", run_id="one")
    life.again()
    run = chat.result("one")
    assert stop_reason(run) == "calls_pending"
    assert contents(run) == ["", "paid alice"]
    assert entered == ["later", "alice", "alice"] and ran == ["alice", "alice"]
