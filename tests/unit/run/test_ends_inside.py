"""A run inside a tool ends with the run around it: what has not begun there does not begin."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from langchain_autotools import Agent, ToolExecutor, new_messages, stop_reason
from langchain_autotools.testing import ScriptedChatModel
from tests.laws.ways import WAYS, run
from tests.support.desk import asking, call

WHILE_IT_RUNS = asking(call("first", "1"), call("second", "2"))


class Inside:
    """A run inside a tool, of two calls one after another, of which the first one ends the run around it.

    Args:
        kind: How the tool makes its run.
        first: What the first call does.
    """

    def __init__(self, kind: str, first: Callable[[], str]) -> None:
        self.ran: list[str] = []
        self.ended = threading.Event()
        self._first = first
        tools = {"first": self.first, "second": self.second}
        self.model = ScriptedChatModel(tools=tools, replies=[WHILE_IT_RUNS, "Done."], parallel=False)
        self._kinds: dict[str, Callable[[], Any]] = {
            "model": lambda: self.model.invoke("Go."),
            "stream": lambda: [*self.model.stream("Go.")][-1].text,
            "a cancellation of its own": lambda: self.model.invoke("Go.", cancel=threading.Event()),
            "a deadline of its own": lambda: self.model.invoke("Go.", deadline=60.0),
            "agent": lambda: Agent(self.model).run("Go.").text,
            "executor": lambda: str(ToolExecutor(tools, parallel=False).execute_all(AIMessage("", tool_calls=WHILE_IT_RUNS.tool_calls))),
        }
        self._made = self._kinds[kind]

    def first(self) -> str:
        """Run first."""
        self.ran.append("first")
        return self._first()

    def second(self) -> str:
        """Run second."""
        self.ran.append("second")
        return "second"

    def delegate(self) -> Any:
        """Have somebody else do it."""
        try:
            return self._made()
        finally:
            self.ended.set()

    def around(self, **fields: Any) -> ScriptedChatModel:
        """The model whose tool this is."""
        return ScriptedChatModel(tools=[self.delegate], replies=[asking(call("delegate", "outer")), "Told."], **fields)


KINDS = ("model", "stream", "a cancellation of its own", "a deadline of its own", "agent", "executor")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_what_has_not_begun_inside_a_cancelled_run_does_not_begin(kind: str, way: str) -> None:
    """The call behind the one that cancels does not run, and the model inside is not asked again."""
    cancel = threading.Event()

    def ends() -> str:
        cancel.set()
        return "first"

    inside = Inside(kind, ends)
    ran = run(way, inside.around(), "Go.", cancel=cancel)
    assert inside.ended.wait(20)
    assert ran.message is not None and stop_reason(ran.message) == "cancelled"
    assert inside.ran == ["first"]
    assert len(inside.model.requests) == (kind != "executor")
    assert kind == "executor" or "cancelled" in new_messages(ran.message)[-1].text


@pytest.mark.parametrize("way", ("invoke", "astream"))
@pytest.mark.parametrize("kind", KINDS)
def test_what_has_not_begun_inside_a_run_at_its_deadline_does_not_begin(kind: str, way: str) -> None:
    """A thread cannot be stopped, but what it would begin after the deadline of the run around it does not run."""
    release = threading.Event()

    def waits() -> str:
        release.wait(20)
        return "first"

    inside = Inside(kind, waits)
    ran = run(way, inside.around(deadline=0.05), "Go.")
    assert ran.message is not None and stop_reason(ran.message) == "deadline"
    release.set()
    assert not inside.ran or inside.ended.wait(20)
    assert inside.ran in (["first"], [])
    assert len(inside.model.requests) <= 1
