"""The features of the table that end a run by a condition of its caller's, and by what it has cost."""

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


class MaximumCost(Feature):
    """The first reply costs more than a run may."""

    name = "maximum cost"

    def add(self, plan: Plan) -> None:
        """Prices, a limit that the first request keeps to, and a call, which runs as it was paid for."""
        price = {"input_mtok": 1, "output_mtok": 1}
        plan.fields |= {"max_cost": 0.5, "prices": dict.fromkeys(("any", "another", "house-1"), price)}
        plan.paid = True
        plan.add("count", Call("count", {"number": 90}, "maximum_0"))
        plan.allow("count", number=90)

    def check(self, seen: Seen) -> None:
        """The call has its result, and no request follows."""
        assert seen.result("maximum_0").text == "90"
        seen.ended("max_cost", 1)
