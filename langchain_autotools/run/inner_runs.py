"""Models or agents as tools: what their runs may use of what the run around has left."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from langchain_core.messages import BaseMessage

from ..executor.call import ToolRun
from ..executor.nested_runs import InnerBudget
from ..executor.plan import PlannedCall
from ..executor.results import failed
from ..executor.run_tool import is_run_tool
from ..executor.steps import PENDING, Proceed, Steps, ends_as
from ..messages.metadata import InnerUsage, paid_replies
from .loop import Limits, Progress

_USED_UP = "Not run: the {limit} of this run is used up. Answer with what is known."


@dataclass(eq=False, repr=False)
class InnerRuns:
    """The runs inside the tools of one run. A wrapper around each of its calls.

    Args:
        limits: The limits of the run.
        prices: The prices by which its cost is counted.
        around: Counts what the run uses, for the run around it; None if none counts it.
    """

    _limits: Limits
    _prices: Mapping[str, Mapping[str, Any]]
    _around: InnerUsage | None = None
    _tokens: int = 0
    _calls: int = 0
    _messages: Sequence[BaseMessage] = ()
    _used: list[InnerUsage] = field(default_factory=list)

    def begin(self, progress: Progress, messages: Sequence[BaseMessage]) -> None:
        """Record what the run has used before it answers the calls of a turn.

        Args:
            progress: The consumption of the run so far.
            messages: Its new messages so far.
        """
        self._tokens = progress.usage["total_tokens"] if progress.usage else 0
        self._calls = progress.tool_calls
        self._messages, self._used = messages, []

    def __call__(self, planned: PlannedCall, proceed: Proceed) -> Steps:
        """Bound and count the runs inside a call, if it is one of a model or an agent."""
        run = planned.run
        return proceed(planned) if run is None or not is_run_tool(run.prepared.tool) else self._counted(run, planned, proceed)

    def _counted(self, run: ToolRun, planned: PlannedCall, proceed: Proceed) -> Steps:
        left = self._left()
        limit = next((name for name in ("token_budget", "max_cost") if left.get(name, 1) <= 0), None)
        if limit is not None:
            text = _USED_UP.format(limit=limit)
            return (yield from ends_as(failed(planned.call, text, RuntimeError(text))))
        used = InnerUsage()
        run.budget = InnerBudget(self._bounded, used)
        self._used.append(used)
        if self._around is not None:
            self._around.inside.append(used)
        outcome = yield from proceed(planned)
        return outcome if outcome is PENDING else replace(outcome, message=used.on(outcome.message))

    def _left(self) -> dict[str, Any]:
        """Return what is left of the run's own limits, by their names."""
        limits, replies = self._limits, [reply for used in self._used for reply in used.replies]
        left: dict[str, Any] = {}
        if limits.token_budget is not None:
            inside = sum(reply["usage_metadata"]["total_tokens"] for reply in replies if reply["usage_metadata"])
            left["token_budget"] = limits.token_budget - self._tokens - inside
        if limits.max_tool_calls is not None:
            left["max_tool_calls"] = max(0, limits.max_tool_calls - self._calls - sum(used.tool_calls for used in self._used))
        if limits.max_cost is not None:
            from ..pricing import cost_of_replies  # here, because it costs every other program its import

            spent = cost_of_replies([*paid_replies(self._messages), *InnerUsage(replies).as_messages()], self._prices)
            left["max_cost"] = Decimal(0) if spent is None else Decimal(str(limits.max_cost)) - spent
        return left

    def _bounded(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings of a run inside by name, bounded by what is left."""
        changes = self._left()
        for name, left in changes.items():
            own, left = values[name], max(0, left)
            changes[name] = left if own is None else min(Decimal(str(own)) if name == "max_cost" else own, left)
        return {**values, **changes, **({"prices": self._prices} if "max_cost" in changes else {})}
