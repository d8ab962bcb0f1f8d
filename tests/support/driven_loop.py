"""Drives `tool_loop` by hand: no model, no tool, no clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_autotools.messages.calls import ToolCallRecord
from langchain_autotools.run.loop import CallModel, Limits, OpenCalls, RunOutcome, RunPlan, RunTools, tool_loop

QUESTION = HumanMessage("How warm is it?")


@dataclass
class Result:
    """What came of a call."""

    call: ToolCallRecord
    message: ToolMessage
    return_direct: bool = False
    inner: Sequence[Result] = ()


@dataclass
class Driver:
    """Answers what a loop asks for, and notes it.

    Attributes:
        replies: The turns to come: each a triple of message, calls and finish reason, or a `TurnCut`.
        direct: Names of tools whose results are the run's answer.
        seconds: What the clock says.
        choices: The choices of the requests so far.
        sizes: How many messages each request had.
        asked: What was to be answered, each time.
        outcome: How the run ended.
    """

    replies: list[Any]
    direct: Sequence[str] = ()
    seconds: float = 0.0
    choices: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    asked: list[RunTools] = field(default_factory=list)
    outcome: RunOutcome | None = None

    def run(self, plan: RunPlan, found: OpenCalls | None = None, history: Sequence[BaseMessage] = (QUESTION,)) -> RunOutcome:
        """Drive a loop to its end."""
        loop = tool_loop(history, plan, lambda: self.seconds, found)
        sent: Any = None
        while True:
            try:
                action = loop.send(sent)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            sent = self.replied(action) if isinstance(action, CallModel) else self.answered(action)

    def replied(self, action: CallModel) -> Any:
        """The next turn."""
        self.choices.append(action.choice)
        self.sizes.append(len(action.messages))
        reply = self.replies.pop(0)
        return reply() if callable(reply) else reply

    def answered(self, action: RunTools) -> list[Result]:
        """A result for each call."""
        self.asked.append(action)
        return [self.result(call) for call in action.calls]

    def result(self, call: ToolCallRecord) -> Result:
        """The result of a call: its name, or why it did not run."""
        message = ToolMessage(call.why or f"{call.name} ran", tool_call_id=call.id)
        direct = call.name in self.direct and call.args is not None
        return Result(call, message, direct, [self.result(one) for one in call.inner])

    @property
    def ran(self) -> list[list[str]]:
        """The ids of the calls that were to run, each time."""
        return [[one.id for call in asked.calls for one in call.inner or (call,) if one.args is not None] for asked in self.asked]


NUMBER = iter(range(10_000))


def call(name: str = "f", args: Mapping[str, Any] | None = None, **more: Any) -> ToolCallRecord:
    """A call with a new id."""
    return ToolCallRecord(f"call_{next(NUMBER)}", name, str(args or {}), dict(args or {}), **more)


def turn(
    *calls: ToolCallRecord, text: str = "", blocked: str | None = None, **fields: Any
) -> tuple[AIMessage, list[ToolCallRecord], str | None]:
    """A turn with these calls."""
    return AIMessage(text or "said", **fields), list(calls), blocked


def plan(**fields: Any) -> RunPlan:
    """A plan; what is a limit's name goes to the limits."""
    limits = {name: fields.pop(name) for name in list(fields) if name in Limits.__dataclass_fields__}
    return RunPlan(Limits(**limits), **fields)


def used(given: int, written: int) -> dict[str, Any]:
    """A turn's usage."""
    return {"usage_metadata": {"input_tokens": given, "output_tokens": written, "total_tokens": given + written}}


def found(*calls: ToolCallRecord, pending: Sequence[ToolCallRecord] = (), waits: str = "caller") -> OpenCalls:
    """Calls that a history ends in; those that nobody decided about say what they wait for."""
    waiting = [replace(call, waits=waits) for call in pending]
    return OpenCalls(AIMessage("asked"), list(enumerate([*calls, *waiting], 1)))
