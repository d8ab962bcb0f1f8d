"""The features of the table whose calls are made by runs inside tools."""

from __future__ import annotations

from typing import Any

from langchain_autotools import Decision, PendingCall
from tests.laws.feature import Feature
from tests.laws.planned import Plan, Seen
from tests.support.script import Call


class AgentsAsTools(Feature):
    """A model is given as a tool. A call of its own waits, and is decided about at the top."""

    name = "agents as tools"
    waits = True

    def add(self, plan: Plan) -> None:
        """A call of the model."""
        plan.add("helper", Call("helper", {"question": "Tidy up."}, "agents_0"))
        plan.allow("tidy", room="kitchen")

    def decide(self, call: PendingCall) -> Decision:
        """Yes."""
        assert (call.name, call.args, call.path) == ("tidy", {"room": "kitchen"}, ("helper",))
        return call.approve()

    def check(self, seen: Seen) -> None:
        """The inner call ran, once, and the inner model's answer is the result of the outer call."""
        assert seen.work.times("tidy", room="kitchen") == 1
        assert seen.result("agents_0").text == "Done: Tidied the kitchen."


class InnerBudgets(Feature):
    """Of the calls of a run and those of the model that is its tool three may run together."""

    name = "inner budgets"

    def add(self, plan: Plan) -> None:
        """A model that makes one call more than the run has left."""
        limits: dict[str, Any] = {"max_tool_calls": 3, "on_limit": "return"}  # with the call that every conversation begins with
        plan.fields |= limits
        plan.add("auditor", Call("auditor", {"question": "Count."}, "inner_0"))
        plan.allow("count", number=80)

    def check(self, seen: Seen) -> None:
        """One of the two ran, and the outer run, which made no call too many itself, has its answer."""
        assert [args["number"] for name, args in seen.work.ran if name == "count"] == [80]
        assert seen.reason in ("complete", None)
