"""Runs that wait for somebody's decision in a synchronous `approve=`: their threads are bounded, and nobody else waits for them."""

import asyncio
import threading
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_autotools import ToolExecutor, stop_reason
from langchain_autotools.executor import user_functions
from langchain_autotools.testing import ScriptedChatModel

ASKS = AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "1"}])


class Human:
    """Somebody who is asked, and waits before he answers."""

    def __init__(self) -> None:
        self.asked = 0
        self.most = 0
        self.waiting = 0
        self.full = threading.Event()
        self.release = threading.Event()
        self._lock = threading.Lock()

    def approve(self, pending: Any) -> Any:
        """Decide, once released."""
        with self._lock:
            self.asked += 1
            self.waiting += 1
            self.most = max(self.most, self.waiting)
            if self.waiting == 3:
                self.full.set()
        self.release.wait(60)
        with self._lock:
            self.waiting -= 1
        return pending.approve()


@pytest.fixture(autouse=True)
def _few_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three threads of each kind; the process's own counts are not touched."""
    monkeypatch.setattr(ToolExecutor, "max_threads", 3)
    monkeypatch.setattr(user_functions, "_depths", type(user_functions._depths)(user_functions._Depth))


def look() -> str:
    """Look."""
    return "seen"


def model(**fields: Any) -> ScriptedChatModel:
    """A model that looks once."""
    return ScriptedChatModel(tools=[look], replies=lambda messages, **_: "Done." if messages[-1].type == "tool" else ASKS, **fields)


async def test_runs_that_wait_for_a_human_share_some_threads() -> None:
    """Of many runs only so many ask at once; tools of another run go on meanwhile; in the end all have been asked once."""
    human = Human()
    waiting = [asyncio.create_task(model(approve=human.approve).ainvoke([HumanMessage("Hi")])) for _ in range(30)]
    while not human.full.is_set():
        await asyncio.sleep(0.005)
    assert stop_reason(await model().ainvoke([HumanMessage("Hi")])) == "complete"
    human.release.set()
    assert {stop_reason(run) for run in await asyncio.gather(*waiting)} == {"complete"}
    assert (human.most, human.asked) == (3, 30)


async def test_nobody_is_asked_for_a_run_that_is_over() -> None:
    """What waited for a thread when its run ended is never asked, and a human who does not answer holds no other run up."""
    human, flag = Human(), threading.Event()
    model_of_human = model(approve=human.approve)
    waiting = [asyncio.create_task(model_of_human.ainvoke([HumanMessage("Hi")], cancel=flag)) for _ in range(8)]
    while not human.full.is_set():
        await asyncio.sleep(0.005)
    flag.set()
    assert {stop_reason(run) for run in await asyncio.gather(*waiting)} <= {"cancelled", "calls_pending"}
    assert human.asked == 3
    quick = model(approve=lambda pending: pending.approve())
    assert stop_reason(await quick.ainvoke([HumanMessage("Hi")])) == "complete"
    human.release.set()


async def test_a_run_inside_a_decision_has_threads_of_its_own() -> None:
    """Whoever decides may ask a model that needs a decision too."""
    inner = model(approve=lambda pending: pending.approve())

    def approve(pending: Any) -> Any:
        assert stop_reason(asyncio.run(inner.ainvoke([HumanMessage("Hi")]))) == "complete"
        return pending.approve()

    runs = [model(approve=approve).ainvoke([HumanMessage("Hi")]) for _ in range(6)]
    assert {stop_reason(run) for run in await asyncio.gather(*runs)} == {"complete"}
