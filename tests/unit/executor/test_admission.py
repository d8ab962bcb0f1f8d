"""Admission: who passes is settled for the whole batch before any call begins; what is raised there ends it with nothing run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langchain_autotools import PendingCall, ToolExecutor
from langchain_autotools.executor import ToolCallBatch
from langchain_autotools.executor.approvals import Reservation
from langchain_autotools.testing import ScriptedChatModel
from tests.support.calls import call

NAMES = ("Anna", "Bert", "Carl")
ANSWER = AIMessage("", id="m", tool_calls=[call("pay", name, to=name) for name in NAMES])


class Desk:
    """Pays, and decides about that; about one call it cannot decide."""

    def __init__(self, unclear: str) -> None:
        self.unclear = unclear
        self.paid: list[str] = []
        self.options: dict[str, Any] = {"tools": [self.pay], "requires_approval": ["pay"], "approve": self.approve}

    def pay(self, to: str) -> str:
        """Pay."""
        self.paid.append(to)
        return f"paid {to}"

    def approve(self, pending: PendingCall) -> Any:
        """Approve, unless that is unclear."""
        if pending.args["to"] == self.unclear:
            raise LookupError("unclear")
        return pending.approve()

    def model(self) -> ScriptedChatModel:
        """A model that pays."""
        return ScriptedChatModel(replies=[ANSWER, "Paid."], **self.options)

    def history(self) -> list[BaseMessage]:
        """A conversation in which the calls wait."""
        model = ScriptedChatModel(replies=[ANSWER], tools=[self.pay], requires_approval=["pay"])
        return [HumanMessage("Pay."), model.invoke("Pay.")]

    def executor(self) -> ToolExecutor:
        """An executor that pays."""
        return ToolExecutor(**self.options)


WAYS: dict[str, Any] = {
    "invoke": lambda desk: desk.model().invoke("Pay."),
    "ainvoke": lambda desk: asyncio.run(desk.model().ainvoke("Pay.")),
    "stream": lambda desk: list(desk.model().stream("Pay.")),
    "execute_all": lambda desk: desk.executor().execute_all(ANSWER),
    "aexecute_all": lambda desk: asyncio.run(desk.executor().aexecute_all(ANSWER)),
    "resume": lambda desk: desk.model().resume(desk.history(), []),
    "aresume": lambda desk: asyncio.run(desk.model().aresume(desk.history(), [])),
}


@pytest.mark.parametrize("unclear", NAMES)
@pytest.mark.parametrize("way", WAYS)
def test_what_approve_raises_about_one_call_runs_none_of_them(way: str, unclear: str) -> None:
    """The first, the second or the last of three calls: the others were approved, and have not run."""
    desk = Desk(unclear)
    with pytest.raises(LookupError, match="unclear"):
        WAYS[way](desk)
    assert desk.paid == []


def test_places_are_reserved_for_the_calls_that_were_admitted() -> None:
    """The journal reserves after the gate, for each planned call that passed; what it raises ends the batch with nothing run."""
    desk = Desk("nobody")
    asked: list[int] = []

    def entries(count: int) -> Any:
        asked.append(count)
        raise OSError("the disk is full")

    executor = ToolExecutor([desk.pay], approve=lambda pending: None if pending.args["to"] == "Bert" else pending.approve())
    with pytest.raises(OSError, match="full"):
        list(executor.batch(ToolCallBatch, ANSWER, None, admissions=[Reservation(entries)]))
    assert asked == [2]
    assert desk.paid == []
