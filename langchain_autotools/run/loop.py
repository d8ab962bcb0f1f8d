"""The tool loop, free of I/O: it says what to do next and is sent what came of it.

`tool_loop` is a generator. It yields `CallModel` and is sent the turn's AI message (or `TurnCut`), or yields `RunTools` and is sent the
results, and returns a `RunOutcome`. It owns the run's history, decides which calls are executed, answered or left to the
caller, and applies the limits. It never waits, reads no clock of its own and knows no model, so one loop serves the
synchronous and the asynchronous drivers.
"""

import json
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata

from ..errors import ConfigurationError, LimitReachedError
from ..executor import ToolCallResult
from ..messages.calls import ToolCallRecord, calls_of
from ..messages.metadata import KEY
from .limits import Limits, Progress, StopReason, stop_reason_of
from .pauses import is_paused, pause_content

__all__ = ["CallModel", "Decision", "RunOutcome", "RunPlan", "RunTools", "TurnCut", "checked_decisions", "tool_loop", "turn_calls"]

Decision = bool | str | Mapping[str, Any]
"""What to do with a call found in the input: True executes it, a mapping executes it with these arguments instead, False
refuses it, and a text refuses it with that reason."""

_NO_CALLS_LEFT = "Not run: the limit of tool calls for this run is reached. Answer with what is known."
_OVERDUE = "Not run: the time for this run is over. Answer with what is known."
_ENDED = "Not run: the model's turn did not end normally."


def checked_decisions(decisions: Mapping[str, Decision] | Literal[True]) -> Mapping[str, Decision] | Literal[True]:
    """The decisions that `resume` is given.

    Raises:
        ConfigurationError: They are None, which elsewhere means that nothing is resumed.
    """
    if decisions is None:
        raise ConfigurationError("resume takes True, or decisions by call id, not None")
    return decisions


Choice = Literal["requested", "auto", "none"]


@dataclass(frozen=True)
class CallModel:
    """Make one request.

    Attributes:
        messages: The history to send: the run's own list, not to be changed or kept.
        choice: `requested` sends the caller's tool choice, `auto` what of it stays after the first turn, `none` what leads to an end: no
            call, or the one that must end the run (all tools stay declared).
    """

    messages: Sequence[BaseMessage]
    choice: Choice


@dataclass(frozen=True)
class TurnCut:
    """Sent in place of a turn's message, where the deadline or the caller ended the turn.

    Attributes:
        message: What of the reply had reached the caller, as a message without calls; None where nothing had.
        reason: Which of the two did.
    """

    message: AIMessage | None
    reason: Literal["deadline", "cancelled"] = "deadline"


@dataclass(frozen=True)
class RunTools:
    """Answer these calls of `message`, in this order. A call with `args` None is answered with its `why`, not executed.

    Attributes:
        message: The AI message that made the calls.
        calls: The calls to answer.
        positions: The position of each call among all calls of its message.
        messages: The conversation so far, for tools that ask for it: the run's own list, not to be changed or kept.
        edited: Ids of the calls that run with other arguments than their message says: their results must tell.
        turn: The number of the turn that made them; 0 where they were found in the input.
    """

    message: AIMessage
    calls: Sequence[ToolCallRecord]
    positions: Sequence[int]
    messages: Sequence[BaseMessage]
    edited: Collection[str] = ()
    turn: int = 0


@dataclass(frozen=True)
class OpenCalls:
    """The calls without results that a history ends in.

    Attributes:
        message: The AI message that made them.
        decided: Those to execute or (with `args` None) to answer with their `why`, with their positions among the message's calls.
        pending: Those about which nothing was decided: they stay the caller's.
        edited: Ids of those that run with other arguments than the message says.
    """

    message: AIMessage
    decided: Sequence[tuple[int, ToolCallRecord]]
    pending: Sequence[ToolCallRecord] = ()
    edited: Collection[str] = ()


@dataclass(frozen=True)
class RunOutcome:
    """How a run ended.

    Attributes:
        stop_reason: Why it ended.
        turns: How many requests were made.
        usage: The tokens of all turns together, where any were reported.
        pending: The calls left to the caller.
        direct: The results of `return_direct` tools that end the run.
    """

    stop_reason: StopReason
    turns: int
    usage: UsageMetadata | None
    pending: Sequence[ToolCallRecord] = ()
    direct: Sequence[ToolMessage] = ()


@dataclass(frozen=True)
class RunPlan:
    """What a run is asked to do, fixed before it starts.

    Attributes:
        limits: What ends it.
        caller_tools: Names of tools that were only declared: their calls are left to the caller.
        meant: Reads calls: each under its tool's own name and with the calls that it bundles; those that a restriction forbids have
            no `args`.
        ends: Names of declared tools one of which must be called to end the run (the caller forced a call, of a schema for
            example): until then the tool choice must stay.
        decisions: What to do with calls that the input ends in, by call id; True for all of them. None: they are answered
            as interrupted.
    """

    limits: Limits
    caller_tools: Collection[str] = ()
    meant: Callable[..., list[ToolCallRecord]] = lambda calls, *, caller_tools: list(calls)
    ends: Collection[str] = ()
    decisions: Mapping[str, Decision] | Literal[True] | None = None

    def __post_init__(self) -> None:
        """Refuse what decides nothing."""
        decisions = self.decisions
        if decisions is None or decisions is True:
            return
        if not isinstance(decisions, Mapping):
            raise ConfigurationError(f"resume takes True or a mapping from call ids to decisions, not {type(decisions).__name__}")
        for call_id, decision in decisions.items():
            named = isinstance(decision, Mapping) and all(isinstance(name, str) for name in decision)
            if not named and not isinstance(decision, bool | str):
                raise ConfigurationError(f"the decision on call {call_id!r} must be True, False, a text (why not), or arguments by name")


Action = CallModel | RunTools
Loop = Generator[Action, Any, RunOutcome]


def tool_loop(
    history: Sequence[BaseMessage],
    plan: RunPlan,
    clock: Callable[[], float],
    found: OpenCalls | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Loop:
    """Run a conversation until it ends.

    Args:
        history: The repaired input, without unanswered calls except those it ends in. It is copied.
        plan: Limits and names.
        clock: Seconds, from any fixed start.
        found: The calls that the history ends in.
        cancelled: Tells whether the caller has cancelled the run; None where he cannot.

    Raises:
        LimitReachedError: A limit was reached and `plan.limits.on_limit` is "raise".
    """
    run = _Run(list(history), plan, Progress(plan.limits, clock(), cancelled), clock)
    return (yield from run.conversation(found))


def turn_calls(message: AIMessage) -> tuple[list[ToolCallRecord], str | None]:
    """The calls of a turn as its verdict names them, and why they must not run, if so. No verdict: nothing may run."""
    own = message.response_metadata.get(KEY) or {}
    calls = {entry["id"]: entry for entry in own.get("calls", ())}
    return [_judged(call, calls.get(call.id)) for call in calls_of(message)], own.get("blocked")


def _waits_for_caller(message: AIMessage) -> bool:
    """Whether a reply holds calls that are none of functions, and that the caller answers: those of the vendor's tools on his machine."""
    return bool((message.response_metadata.get(KEY) or {}).get("awaits"))


def _judged(call: ToolCallRecord, verdict: Mapping[str, Any] | None) -> ToolCallRecord:
    if verdict is None:
        return replace(call, args=None, why=_ENDED)
    return call if verdict.get("ok") else replace(call, args=None, why=verdict.get("why") or call.why or _ENDED)


class _Cut(Exception):
    """Something has ended a turn; `args` say what."""


class _Run:
    """The state of one run of the loop."""

    def __init__(self, history: list[BaseMessage], plan: RunPlan, progress: Progress, clock: Callable[[], float]) -> None:
        self._history = history
        self._plan = plan
        self._progress = progress
        self._clock = clock

    def conversation(self, found: OpenCalls | None) -> Loop:
        try:
            return (yield from self._conversation(found))
        except _Cut as cut:
            (reason,) = cut.args
        return (yield from self._at_limit(reason))

    def _conversation(self, found: OpenCalls | None) -> Loop:
        outcome = (yield from self._answer_found(found)) if found is not None else None
        if outcome is not None:
            return outcome
        while True:
            choice: Choice = "auto" if self._progress.turns else "requested"
            message, calls, blocked = yield from self._turn(choice)
            outcome = self._end_without_results(message, calls, blocked)
            if outcome is not None and not calls:
                return outcome
            outcome = (yield from self._answer(message, calls)) or outcome
            if outcome is not None:
                return outcome
            if not calls:
                self._progress.count_pause(pause_content(message))
            reason = self._progress.reached(self._clock())
            if reason is not None:
                return (yield from self._at_limit(reason))

    def _answer_found(self, found: OpenCalls) -> Generator[Action, Any, RunOutcome | None]:
        """Answer the calls that the input ends in, as decided. No request is made before all of them are."""
        positions = [number for number, _ in found.decided]
        calls = self._plan.meant([call for _, call in found.decided], caller_tools=())
        results: list[ToolCallResult] = []
        if calls:
            admitted = self._admitted(list(zip(positions, calls, strict=True)))
            results = yield from self._run_tools(found.message, admitted, found.edited)
        if found.pending:
            return self._left(found.pending, results)
        if results and all(result.return_direct for result in results):
            return self._outcome("return_direct", direct=[result.message for result in results])
        reason = self._progress.reached(self._clock())
        return (yield from self._at_limit(reason)) if reason is not None else None

    def _turn(self, choice: Choice) -> Generator[Action, Any, tuple[AIMessage, list[ToolCallRecord], str | None]]:
        """One request; the stored message joins the history."""
        reply = yield CallModel(self._history, choice)
        message, calls, blocked = (reply.message, [], None) if isinstance(reply, TurnCut) else reply
        if message is None:
            raise _Cut(reply.reason)
        self._progress.count_turn(message.usage_metadata)
        self._history.append(message)
        if isinstance(reply, TurnCut):
            raise _Cut(reply.reason)
        return message, self._plan.meant(calls, caller_tools=self._plan.caller_tools), blocked

    def _end_without_results(self, message: AIMessage, calls: list[ToolCallRecord], blocked: str | None) -> RunOutcome | None:
        """The ends that do not depend on tool results."""
        end = "refused" if message.additional_kwargs.get("refusal") else stop_reason_of(blocked)
        if end != "refused" and (calls or is_paused(message)):
            return None
        return self._outcome("calls_pending" if end == "complete" and _waits_for_caller(message) else end)

    def _answer(self, message: AIMessage, calls: list[ToolCallRecord]) -> Generator[Action, Any, RunOutcome | None]:
        """Answer a turn's calls, except those left to the caller."""
        pending = [call for call in calls if call.name in self._plan.caller_tools and call.args is not None]
        left = {call.id for call in pending}
        answered = [(number, call) for number, call in enumerate(calls) if call.id not in left]
        results: list[ToolCallResult] = []
        if answered:
            results = yield from self._run_tools(message, self._admitted(answered))
        if pending or _waits_for_caller(message):
            return self._left(pending, results)
        if results and all(result.return_direct for result in results):
            return self._outcome("return_direct", direct=[result.message for result in results])
        return None

    def _admitted(self, answered: list[tuple[int, ToolCallRecord]]) -> list[tuple[int, ToolCallRecord]]:
        """The same calls; those that a limit forbids will be answered with that."""
        wanted = [one for _, call in answered for one in call.inner or (call,) if one.args is not None]
        overdue = self._progress.overdue(self._clock())
        allowed = 0 if overdue else self._progress.admit(len(wanted))
        stopped = {one.id for one in wanted[allowed:]}
        why = _OVERDUE if overdue else _NO_CALLS_LEFT
        return [(number, _without(call, stopped, why)) for number, call in answered]

    def _run_tools(
        self, message: AIMessage, answered: list[tuple[int, ToolCallRecord]], edited: Collection[str] = ()
    ) -> Generator[Action, Any, list[ToolCallResult]]:
        positions = [number for number, _ in answered]
        calls = [call for _, call in answered]
        results: list[ToolCallResult] = yield RunTools(message, calls, positions, self._history, edited, self._progress.turns)
        self._history.extend(result.message for result in results)
        self._progress.count_results([_signature(one) for result in results for one in result.inner or (result,)])
        return results

    def _at_limit(self, reason: StopReason) -> Generator[Action, Any, RunOutcome]:
        if reason == "cancelled":
            return self._outcome(reason)
        on_limit = self._plan.limits.on_limit
        if on_limit == "raise":
            raise LimitReachedError(f"the run reached its limit: {reason}", reason)
        if on_limit == "answer" and reason != "deadline":
            message, calls, _ = yield from self._turn("none")
            pending = [call for call in calls if call.name in self._plan.ends and call.args is not None]
            left = {call.id for call in pending}
            others = [(number, call) for number, call in enumerate(calls) if call.id not in left]
            if others:  # forbidden, yet some servers let the model call: answered, never executed
                refused = [(number, replace(call, args=None, inner=(), why=_NO_CALLS_LEFT)) for number, call in others]
                yield from self._run_tools(message, refused)
            return self._outcome(reason, pending=pending)
        return self._outcome(reason)

    def _left(self, pending: Sequence[ToolCallRecord], results: Sequence[ToolCallResult]) -> RunOutcome:
        """The end of a run that leaves calls to the caller; he may have cancelled those beside them."""
        cancelled = self._progress.cancelled
        return self._outcome("cancelled" if results and cancelled is not None and cancelled() else "calls_pending", pending=pending)

    def _outcome(self, reason: StopReason, *, pending: Sequence[ToolCallRecord] = (), direct: Sequence[ToolMessage] = ()) -> RunOutcome:
        progress = self._progress
        return RunOutcome(reason, progress.turns, progress.usage, pending, direct)


def _without(call: ToolCallRecord, stopped: Collection[str], why: str) -> ToolCallRecord:
    """The call, not to be executed where its id is among `stopped`; so each of the calls that it bundles."""
    if call.inner:
        return replace(call, inner=[_without(one, stopped, why) for one in call.inner])
    return replace(call, args=None, why=why) if call.id in stopped else call


def _signature(result: ToolCallResult) -> tuple[str, str, str]:
    """What a call was and gave, the same for the same arguments however they were written."""
    call = result.call
    arguments = call.arguments if call.args is None else json.dumps(call.args, sort_keys=True, default=str)
    return call.name, arguments, str(result.message.content)
