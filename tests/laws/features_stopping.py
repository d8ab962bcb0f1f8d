"""The feature of the table that ends a run by a condition of its caller's."""

from __future__ import annotations

from langchain_autotools import RunSoFar
from tests.laws.feature import Feature
from tests.laws.planned import Plan, Seen
from tests.support.script import Call


class StopCondition(Feature):
    """A condition that is true after the first turn whose calls are answered."""

    name = "stop condition"

    def __init__(self) -> None:
        self.asked: list[int] = []

    def add(self, plan: Plan) -> None:
        """The condition, and a call, which runs before it is asked."""
        plan.fields["stop_when"] = self._is_met
        plan.add("count", Call("count", {"number": 60}, "stop_0"))
        plan.allow("count", number=60)

    def _is_met(self, run: RunSoFar) -> bool:
        self.asked.append(len(run.messages))
        return True

    def check(self, seen: Seen) -> None:
        """It was asked once, with the results of that turn, and no request followed."""
        assert len(self.asked) == 1 and self.asked[0] >= 3
        assert seen.result("stop_0").text == "60"
        seen.ended("stop_when", 1)
