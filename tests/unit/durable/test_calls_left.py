"""Calls that a wrapper leaves pending in a durable run."""

from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.tools import tool

from langchain_autotools import ToolExecutor, new_messages, pending_calls, stop_reason
from langchain_autotools.durable import RunFailedError
from langchain_autotools.executor.plan import PlannedCall
from langchain_autotools.executor.steps import PENDING, Proceed, Steps, ends_as
from tests.support.durable import Life, asks, contents, crash

entered: list[str] = []


def leave(planned: PlannedCall, proceed: Proceed) -> Steps:
    """Leave what is for later, each time in the first life of a run only."""
    who = (planned.call.args or {})["who"]
    entered.append(who)
    return ends_as(PENDING) if who == "later" and entered.count("later") == 1 else proceed(planned)


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

    executor = Leaving([pay], max_concurrency=1)
    chat = life.model(lambda messages, **_: asks(("pay", {"who": "later"}), ("pay", {"who": "alice"})), executor, rerun=("pay",))
    life.begin()
    with pytest.raises(RunFailedError):
        chat.invoke("Go", run_id="one")
    life.again()
    run = chat.result("one")
    assert stop_reason(run) == "calls_pending"
    assert contents(run) == ["", "paid alice"]
    assert entered == ["later", "alice", "alice"] and ran == ["alice", "alice"]


def test_a_changed_call_waits_in_every_process(life: Life) -> None:
    """After a crash the middleware is not asked again: the call waits with the arguments of the first time, and runs with them once."""
    pytest.importorskip("langchain.agents.middleware", reason="needs LangChain")
    from tests.support.middleware import Around

    ran: list[str] = []
    changes: list[str] = []

    @tool
    def pay(who: str) -> str:
        """Pay somebody."""
        ran.append(who)
        if len(ran) == 1:
            crash()
        return f"paid {who}"

    def change(request: Any) -> Any:
        asked = request.tool_call
        if asked["args"]["who"] == "alice":
            changes.append(f"alice {len(changes)}")
            asked = {**asked, "args": {"who": changes[0]}}
        return (yield request.override(tool_call=asked))

    fields: Any = {"middleware": [Around(tool=change)], "requires_approval": True, "max_concurrency": 1}
    chat = life.model([asks(("pay", {"who": "alice"}), ("pay", {"who": "bob"})), "Paid."], [pay], rerun=("pay",), **fields)
    life.begin()
    history: list[BaseMessage] = [HumanMessage("Go")]
    history += new_messages(chat.invoke(history))
    with pytest.raises(RunFailedError):
        chat.invoke(history, resume=[one.approve() for one in pending_calls(history)], run_id="one")
    life.again()
    waits = chat.result("one")
    history += new_messages(waits)
    assert [one.args for one in pending_calls(waits)] == [{"who": "alice 0"}] and len(changes) == 1
    done = chat.invoke(history, resume=[one.approve() for one in pending_calls(waits)])
    assert stop_reason(done) == "complete" and ran == ["bob", "bob", "alice 0"]
