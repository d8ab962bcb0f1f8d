"""The tool loop, free of I/O: a generator that yields the next action, then receives its result.

`tool_loop` is a generator. It yields `CallModel` and is sent the turn's AI message with its calls and what blocks them (or `TurnCut`). It
yields `RunTools` and is sent the results, or yields `TakeMessages` and is sent these messages, each with an id. It returns a `RunOutcome`.
It owns the run's history, decides which calls are executed, answered or left to the caller, and applies the limits. It never waits, reads
no clock of its own (one is passed in) and knows no model, so one loop serves the synchronous and the asynchronous drivers.
"""

import json
import logging
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from typing import Any, Literal, get_args

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata, add_usage

from ..errors import ConfigurationError, LimitReachedError
from ..executor import ToolCallResult
from ..messages.calls import FOR_CALLER, ToolCallRecord, awaited_calls, calls_of
from ..messages.metadata import FAILOVER, KEY, REJECTED, InnerUsage, inner_usage, is_cut_reply, rejected_replies, without_cost
from ..messages.run_messages import StopReason, in_call_order, is_paused, open_run, pause_content, stop_reason_of

_logger = logging.getLogger("langchain_autotools")
_NO_CALLS_LEFT = "Not run: the limit of tool calls for this run is reached. Answer with what is known."
_OVERDUE = "Not run: the time for this run is over. Answer with what is known."
_ENDED = "Not run: the model's turn did not end normally."
Choice = Literal["requested", "auto", "none"]


@dataclass(frozen=True)
class CallModel:
    """An action: make one request.

    Attributes:
        messages: The history to send: the run's own list, not to be changed or kept.
        choice: `requested` sends the caller's tool choice, `auto` what of it stays after the first turn, `none` what leads to an end: no
            call, or the one that must end the run (all tools stay declared).
        number: The number of the request in its run, from 1 on.
    """

    messages: Sequence[BaseMessage]
    choice: Choice
    number: int = 1


@dataclass(frozen=True)
class TakeMessages:
    """An action: hand out messages of the user that join the run. The next action is the request that sends them.

    Attributes:
        messages: The messages.
        asked: The AI message whose calls are answered before them.
    """

    messages: Sequence[HumanMessage]
    asked: AIMessage


@dataclass(frozen=True)
class TurnCut:
    """The result of a request that the deadline or the caller has cut, in place of a message.

    Attributes:
        message: What of the reply had reached the caller, as a message without calls; None where nothing had.
        reason: Which of the two did.
    """

    message: AIMessage | None
    reason: Literal["deadline", "cancelled"] = "deadline"


@dataclass(frozen=True)
class RunTools:
    """An action: answer these calls of `message`, in this order. A call with `args` None is answered with its `why`, not executed.

    Attributes:
        message: The AI message that made the calls.
        calls: The calls to answer.
        positions: The position of each call among all calls of its message, by its id.
        messages: The conversation so far, for tools that ask for it: the run's own list, not to be changed or kept.
        turn: The number of the turn that made them; 0 where they were found in the input.
    """

    message: AIMessage
    calls: Sequence[ToolCallRecord]
    positions: Mapping[str, int]
    messages: Sequence[BaseMessage]
    turn: int = 0


@dataclass(frozen=True)
class OpenCalls:
    """The unanswered calls at the end of a history.

    Attributes:
        message: The AI message that made them.
        calls: The calls, as they were decided, with their positions among the message's calls. Those that say what they wait for
            stay pending; those with `args` None are answered.
        opened: The results of calls of it inside which runs wait, or that were changed and wait. Those of them that are among the calls
            wait as before if they get no other result.
    """

    message: AIMessage
    calls: Sequence[tuple[int, ToolCallRecord]]
    opened: Sequence[ToolMessage] = ()


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of a run.

    Attributes:
        stop_reason: Why it ended.
        turns: How many requests were made.
        usage: The tokens of all turns together, where any were reported.
        pending: The calls left to the caller.
        asked: The AI message that made them.
        direct: The results of `return_direct` tools that end the run.
        opened: The results of calls inside which runs wait.
        not_taken: The user's messages that wait for a request that the run did not make.
    """

    stop_reason: StopReason
    turns: int
    usage: UsageMetadata | None
    pending: Sequence[ToolCallRecord] = ()
    asked: AIMessage | None = None
    direct: Sequence[ToolMessage] = ()
    opened: Sequence[ToolMessage] = ()
    not_taken: Sequence[HumanMessage] = ()


OnLimit = Literal["answer", "return", "raise"]
"""Action when a limit is reached: one last answer without tools, the run as it is, or `LimitReachedError`."""


@dataclass(frozen=True)
class RunSoFar:
    """A run after a turn whose calls are answered, for `stop_when`.

    Attributes:
        messages: The new messages of the run, the results of the last turn included.
        turns: The number of requests made.
        tool_calls: The number of calls that were admitted, with those of models and agents as tools.
        usage: The tokens of all turns together, likewise; None if none were reported.
    """

    messages: Sequence[BaseMessage]
    turns: int
    tool_calls: int
    usage: UsageMetadata | None


@dataclass(frozen=True)
class Limits:
    """The limits of one run. None switches a limit off.

    Attributes:
        max_turns: Maximum number of turns that may call tools.
        max_tool_calls: Maximum number of executed tool calls; later ones are answered as not run.
        token_budget: Maximum number of tokens of all turns together.
        max_cost: Maximum cost of the run in US dollars. A request that would exceed it is not made, for a last answer neither.
        context_window: Maximum number of tokens in the context: the last turn's input and output; where requests are shortened, those of
            the next one.
        deadline: Maximum duration of the run in seconds. It ends then, whatever it waits for, without a last answer.
        no_progress: Number of turns in a row with the same calls and results, or paused by the server without new content, after which
            the run ends.
        polling_tools: Names of tools exempt from the no-progress check.
        on_limit: Action when a limit is reached.
        stop_when: Called with a `RunSoFar` after each turn whose calls are answered; the run ends if it returns True.
    """

    max_turns: int | None = 25
    max_tool_calls: int | None = None
    token_budget: int | None = None
    max_cost: float | Decimal | None = None
    context_window: int | None = None
    deadline: float | None = None
    no_progress: int | None = 3
    polling_tools: Collection[str] = ()
    on_limit: OnLimit = "answer"
    stop_when: Callable[[RunSoFar], bool] | None = None


_NAMES = frozenset(one.name for one in fields(Limits)) & frozenset(get_args(StopReason)) - {"stop_when"}


@dataclass(frozen=True)
class RunPlan:
    """The plan of a run, fixed before it starts.

    Attributes:
        limits: What ends it.
        caller_tools: Names of tools that were only declared: their calls are left to the caller.
        meant: Reads calls: each under its tool's own name and with the calls that it bundles; those that a restriction forbids have
            no `args`.
        ends: Names of declared tools one of which must be called to end the run (the caller forced a call, of a schema for
            example): until then the tool choice must stay.
        decisions: What to do with calls that the input ends in, as `read_resume` gives it.
        inner: The runs of models and agents that are given as tools; None without any.
        used: Counts what the run uses, for the run around it; None if none counts it.
        leaves: What a call may wait for, so that it is left to the caller. What waits for anything else is decided about before it runs.
        waiting: Messages of the user that join the run once all calls are answered and another request is certain.
        inbox: Gives those that come during the run (`Inbox`); None where none can.
        compaction: Shortens what is sent of the history, and answers calls by which the model reads what was left out; None: nothing does.
        own: The name of the tool of these calls, which no limit of calls counts.
        outputs: Names whose calls end the run also where they cannot be read: who reads the output of a schema says what is wrong with
            it. None: whatever is called.
    """

    limits: Limits
    caller_tools: Collection[str] = ()
    meant: Callable[..., list[ToolCallRecord]] = lambda calls, *, caller_tools: list(calls)
    ends: Collection[str] = ()
    decisions: Any = None
    inner: Any = None
    used: InnerUsage | None = None
    leaves: Collection[str] = ("caller", *FOR_CALLER, "approval", "queued")
    waiting: Sequence[HumanMessage] = ()
    inbox: Any = None
    compaction: Any = None
    own: Collection[str] = ()
    outputs: Collection[str] | None = ()


Action = CallModel | RunTools | TakeMessages
Loop = Generator[Action, Any, RunOutcome]


def tool_loop(
    history: Sequence[BaseMessage],
    plan: RunPlan,
    clock: Callable[[], float],
    found: OpenCalls | None = None,
    cancelled: Callable[[], bool] | None = None,
    too_costly: Callable[[Sequence[BaseMessage]], bool] | None = None,
) -> Loop:
    """Run the loop to its end, as a generator of actions.

    Args:
        history: The repaired input, without unanswered calls except those it ends in. It is copied.
        plan: Limits and names.
        clock: Seconds, from any fixed start.
        found: The calls that the history ends in.
        cancelled: Tells whether the caller has cancelled the run; None where he cannot.
        too_costly: Tells whether the next request, of a conversation so far, would exceed `plan.limits.max_cost`; None without that limit.

    Raises:
        LimitReachedError: A limit was reached and `plan.limits.on_limit` is "raise".
    """
    progress = Progress(plan.limits, clock(), cancelled, plan.compaction)
    run = _Run([*history], len(history), plan, progress, clock, too_costly, plan.waiting)
    if plan.compaction is not None:
        plan.compaction.follow(run._history)
    try:
        outcome = yield from run.conversation(found)
    except _Cut as cut:
        outcome = yield from run.at_limit(*cut.args)
    if outcome.stop_reason in _NAMES:
        run.progress.note_end(outcome.stop_reason)
    return outcome


def turn_calls(message: AIMessage) -> tuple[list[ToolCallRecord], str | None]:
    """Return the calls of a turn by its verdict, and why they must not run, if so. Without a verdict none may run."""
    own = message.response_metadata.get(KEY) or {}
    verdicts = {entry["id"]: entry for entry in own.get("calls", ())}
    blocked = own.get("blocked")
    calls = calls_of(message)
    for number, call in enumerate(calls):
        verdict = verdicts.get(call.id, {"why": _ENDED})
        if not verdict.get("ok") or "why" in verdict:
            calls[number] = replace(call, args=None, why=verdict.get("why") or call.why or _ENDED)
    return calls if blocked else [*calls, *awaited_calls(message)], blocked


class _Cut(Exception):
    """Raised inside the loop when a turn has been cut or may not begin; its `args` are the cause."""


@dataclass(eq=False, repr=False)
class _Run:
    """The state of one run of the loop."""

    _history: list[BaseMessage]
    _start: int
    _plan: RunPlan
    progress: "Progress"
    _clock: Callable[[], float]
    _too_costly: Callable[[Sequence[BaseMessage]], bool] | None
    _waiting: Sequence[HumanMessage]

    def conversation(self, found: OpenCalls | None) -> Loop:
        outcome = (yield from self._answer_found(found)) if found is not None else None
        if outcome is not None:
            return outcome
        reading = 0  # the first turns, as long as they only read what was left out: these are not the calls that a choice can ask for
        while True:
            choice: Choice = "auto" if self.progress.turns > reading else "requested"
            message, calls, blocked = yield from self._turn(choice)
            if self._plan.own and choice == "requested" and self._plan.compaction.is_forced:
                reading += bool(calls) and all(call.name in self._plan.own for call in calls)
            outcome = self._end_without_results(message, calls, blocked)
            if outcome is not None and not calls:
                if self._plan.inbox is not None and outcome.stop_reason == "complete" and (yield from self._goes_on()):
                    continue
                return (yield from self.at_limit("deadline")) if outcome.stop_reason == "deadline" else outcome
            outputs = self._plan.outputs
            left = {call.id for call in calls if outputs is None or call.name in outputs}
            outcome = (yield from self._answer(message, list(enumerate(calls)), self._plan.caller_tools, left)) or outcome
            if outcome is not None:
                return outcome
            if not calls:
                self.progress.count_pause(pause_content(message))
            reason = self.progress.reached(self._clock())
            if reason is not None:
                return (yield from self.at_limit(reason))

    def _answer_found(self, found: OpenCalls) -> Generator[Action, Any, RunOutcome | None]:
        """Answer the calls at the end of the input, as decided. No request is made before all are answered."""
        calls = self._plan.meant([call for _, call in found.calls], caller_tools=())
        numbered = list(zip([number for number, _ in found.calls], calls, strict=True))
        outcome = yield from self._answer(found.message, numbered, opened=found.opened)
        if outcome is not None:
            return outcome
        reason = self.progress.reached(self._clock())
        return (yield from self.at_limit(reason)) if reason is not None else None

    def _turn(self, choice: Choice) -> Generator[Action, Any, tuple[AIMessage, list[ToolCallRecord], str | None]]:
        """Make one request, and the same one again after a reply with which another model goes on; the stored messages join the history."""
        while True:
            if self._too_costly is not None and self._too_costly([*self._history, *self._waiting] if self._waiting else self._history):
                raise _Cut("max_cost")
            if self._waiting or self._plan.inbox is not None:
                yield from self._take_messages()
            reply = yield CallModel(self._history, choice, self.progress.turns + 1)
            message, calls, blocked = (reply.message, [], None) if isinstance(reply, TurnCut) else reply
            if message is None:
                raise _Cut(reply.reason)
            own = message.response_metadata.get(KEY) or ()
            for rejected in rejected_replies(message) if REJECTED in own else ():
                self.progress.count_turn(rejected.usage_metadata, goes_on=True)
            goes_on = FAILOVER in own and is_cut_reply(message)
            self.progress.count_turn(message.usage_metadata, goes_on=goes_on)
            self._history.append(message)
            if self._plan.used is not None:
                self._plan.used.note(message)
            if isinstance(reply, TurnCut):
                raise _Cut(reply.reason)
            if not goes_on:
                return message, self._plan.meant(calls, caller_tools=self._plan.caller_tools), blocked

    def _take_messages(self) -> Generator[Action, Any, None]:
        """Take what the user has said into the conversation, where all calls of the last turn are answered."""
        waiting, self._waiting, inbox = self._waiting, (), self._plan.inbox
        answered = len(self._history) > self._start and isinstance(self._history[-1], ToolMessage)
        arrived = inbox.take([*self._history, *waiting]) if inbox is not None and answered else ()
        yield from self._join([*waiting, *arrived])
        if arrived and self._too_costly is not None and self._too_costly(self._history):
            raise _Cut("max_cost")

    def _goes_on(self) -> Generator[Action, Any, bool]:
        """Take what the user has said during the last reply into the conversation; return whether there is any, for one more turn."""
        over = self.progress.reached(self._clock()) is not None or (self._too_costly is not None and self._too_costly(self._history))
        arrived = () if over or not self._plan.inbox.after_reply else self._plan.inbox.take(self._history)
        yield from self._join(arrived)
        return bool(arrived)

    def _join(self, messages: Sequence[HumanMessage]) -> Generator[Action, Any, None]:
        if messages:
            asked = next(one for one in reversed(self._history) if isinstance(one, AIMessage))
            self._history += yield TakeMessages(messages, asked)
            self.progress.count_results(())  # what the user says may make the same calls sensible
        if self._plan.inbox is not None:
            self._plan.inbox.check()

    def _end_without_results(self, message: AIMessage, calls: list[ToolCallRecord], blocked: str | None) -> RunOutcome | None:
        """Return the outcome if the run ends independently of tool results; else None."""
        end = "refused" if message.additional_kwargs.get("refusal") else stop_reason_of(blocked)
        if end != "refused" and (calls or is_paused(message)):
            return None
        return self._outcome("cancelled" if blocked == "cancelled" and self._is_cancelled() else end)

    def _answer(
        self,
        message: AIMessage,
        calls: list[tuple[int, ToolCallRecord]],
        callers: Collection[str] = (),
        left: Collection[str] = (),
        opened: Sequence[ToolMessage] = (),
    ) -> Generator[Action, Any, RunOutcome | None]:
        """Answer calls, except those left to the caller: calls of declared tools, and calls that wait for a decision.

        Args:
            message: The AI message that made them.
            calls: The calls, with their positions in the message.
            callers: The names of the declared tools.
            left: The ids of calls that stay as they are, also where they cannot be read.
            opened: The results of calls of it that wait, which a new result replaces.
        """
        leaves = self._plan.leaves
        ours = [one for one in calls if one[1].waits not in leaves]  # what waits goes on waiting, whatever this run may do
        answered = [one for one in ours if (one[1].args is None or one[1].name not in callers) and one[1].id not in left]
        results: list[ToolCallResult] = []
        if answered:
            results = yield from self._run_tools(message, self._admitted(answered))
        given = {result.call.id for result in results}
        opened = [one for one in opened if one.tool_call_id not in given]
        opened += [result.message for result in results if open_run(result.message) is not None]
        open_ids = {one.tool_call_id for one in opened}
        pending = [_as_written(message, call) for _, call in calls if call.id not in given and call.id not in open_ids]
        if pending or opened:  # the caller may have cancelled their siblings
            reason: StopReason = "cancelled" if answered and self._is_cancelled() else "calls_pending"
            return self._outcome(reason, pending=pending, asked=message, opened=in_call_order(message, opened) if opened else ())
        if results and all(result.return_direct for result in results) and not self._waiting:
            return self._outcome("return_direct", direct=[result.message for result in results])
        if not results or self._plan.limits.stop_when is None or not (self.progress.turns or self._plan.decisions is not None):
            return None  # the condition is not asked about calls of the input that were only answered as interrupted
        return self._outcome("stop_when") if self.progress.stops(lambda: tuple(self._history[self._start :])) else None

    def _admitted(self, answered: list[tuple[int, ToolCallRecord]]) -> list[tuple[int, ToolCallRecord]]:
        """Return the same calls; those that exceed a limit are answered with an error."""
        overdue = self.progress.overdue(self._clock())
        ready = [call for _, call in answered if not (overdue and call.waits)]  # nobody is asked when time is over
        wanted = [one for call in ready for one in call.inner or (call,) if one.args is not None and one.name not in self._plan.own]
        allowed = 0 if overdue else self.progress.admit(len(wanted))
        if self._plan.used is not None:
            self._plan.used.count_calls(allowed)
        stopped = {one.id for one in wanted[allowed:]}
        why = _OVERDUE if overdue else _NO_CALLS_LEFT
        return [(number, _without(call, stopped, why)) for number, call in answered] if stopped else answered

    def _run_tools(self, message: AIMessage, answered: list[tuple[int, ToolCallRecord]]) -> Generator[Action, Any, list[ToolCallResult]]:
        positions = {call.id: number for number, call in answered}
        calls = [call for _, call in answered]
        if self._plan.inner is not None:
            self._plan.inner.begin(self.progress, self._history[self._start :])
        results: list[ToolCallResult] = yield RunTools(message, calls, positions, self._history, self.progress.turns)
        self._history.extend(result.message for result in results)
        if self._plan.inner is not None:
            self.progress.count_inside(inner_usage(result.message for result in results))
        self.progress.count_results([_signature(one) for result in results for one in result.inner or (result,)])
        return results

    def at_limit(self, reason: StopReason) -> Generator[Action, Any, RunOutcome]:
        if reason == "cancelled":
            return self._outcome(reason)
        on_limit = self._plan.limits.on_limit
        if on_limit == "raise":
            self.progress.note_end(reason)
            raise LimitReachedError(f"the run reached its limit: {reason}", reason)
        if on_limit == "answer" and reason not in ("deadline", "max_cost"):
            message, calls, _ = yield from self._turn("none")
            pending = [call for call in calls if call.name in self._plan.ends and call.args is not None]
            left = {call.id for call in pending}
            others = [(number, call) for number, call in enumerate(calls) if call.id not in left and call.runs_here]
            if others:  # forbidden, yet some servers let the model call: answered, never executed
                refused = [(number, replace(call, args=None, inner=(), why=_NO_CALLS_LEFT)) for number, call in others]
                yield from self._run_tools(message, refused)
            return self._outcome(reason, pending=pending, asked=message)
        return self._outcome(reason)

    def _is_cancelled(self) -> bool:
        return self.progress.cancelled is not None and self.progress.cancelled()

    def _outcome(self, reason: StopReason, **rest: Any) -> RunOutcome:
        return RunOutcome(reason, self.progress.turns, self.progress.usage, **rest, not_taken=self._waiting)


def _as_written(message: AIMessage, call: ToolCallRecord) -> ToolCallRecord:
    """Return a call that goes on waiting with the model's own arguments: an edit that had no effect is no part of it."""
    if not call.edited:
        return call
    written = next(one for one in [*calls_of(message), *awaited_calls(message)] if one.id == call.id)
    return replace(call, args=written.args, arguments=written.arguments, decision=None, edited=False)


def _without(call: ToolCallRecord, stopped: Collection[str], why: str) -> ToolCallRecord:
    """Return the call, not to be executed if its id is among `stopped`; likewise the calls that it bundles."""
    if call.inner:
        return replace(call, inner=[_without(one, stopped, why) for one in call.inner])
    return replace(call, args=None, why=why) if call.id in stopped else call


def _signature(result: ToolCallResult) -> tuple[str, str, str]:
    """Return a canonical signature of a call and its result, equal for equal arguments however they were written."""
    call = result.call
    arguments = call.arguments if call.args is None else json.dumps(call.args, sort_keys=True, default=str)
    return call.name, arguments, str(result.message.content)


# ---------------------------------------------------------------------------------------------- the check whether a run has reached a limit


@dataclass(repr=False)
class Progress:
    """The consumption of a run so far.

    `started` is the time, in seconds, at which it began; `cancelled` returns whether its caller has cancelled it; `compaction` is what
    shortens its requests, if anything does."""

    limits: Limits
    started: float
    cancelled: Callable[[], bool] | None = None
    compaction: Any = None
    turns: int = 0
    tool_calls: int = 0
    usage: UsageMetadata | None = None
    context: int = 0
    _last: object = None
    _repeats: int = 0
    _refused_calls: bool = False

    def count_turn(self, usage: UsageMetadata | None, *, goes_on: bool = False) -> None:
        """Count one model turn and its reported tokens. Of a reply with which another one goes on only the tokens count."""
        self.turns += not goes_on
        if (usage := without_cost(usage)) is not None:
            self.usage = add_usage(self.usage, usage) if self.usage else usage
            self.context = usage["input_tokens"] + usage["output_tokens"]

    def count_inside(self, used: InnerUsage) -> None:
        """Count what runs inside the tools have used: their tokens and tool calls. The context is this run's own."""
        for reply in used.replies:
            if (usage := without_cost(reply["usage_metadata"])) is not None:
                self.usage = add_usage(self.usage, usage)
        self.tool_calls += used.tool_calls

    def admit(self, calls: int) -> int:
        """Count these calls and return how many, from the first on, may still be executed."""
        allowed = calls
        if self.limits.max_tool_calls is not None:
            allowed = max(0, min(allowed, self.limits.max_tool_calls - self.tool_calls))  # runs inside may have made more
        self._refused_calls = self._refused_calls or allowed < calls
        self.tool_calls += allowed
        return allowed

    def count_results(self, results: Sequence[tuple[str, str, str]]) -> None:
        """Record the results of one turn, as (name, arguments, result), to detect repetition in the next turn."""
        counted = [result for result in results if result[0] not in self.limits.polling_tools]
        self._repeats = self._repeats + 1 if counted and counted == self._last else int(bool(counted))
        self._last = counted or None

    def count_pause(self, text: str) -> None:
        """Record the content of a turn that the server has paused, to detect whether the next one adds any."""
        self.count_results([("a paused turn", "", text)])

    def stops(self, messages: Callable[[], Sequence[BaseMessage]]) -> bool:
        """Whether the caller's condition ends the run; `messages` returns the run's new messages.

        Raises:
            ConfigurationError: The condition says neither True nor False.
        """
        if self.limits.stop_when is None:
            return False
        said = self.limits.stop_when(RunSoFar(messages(), self.turns, self.tool_calls, self.usage))
        if not isinstance(said, bool):
            raise ConfigurationError(f"stop_when must return True or False, not {type(said).__name__}")
        return said

    def overdue(self, now: float) -> bool:
        """Whether the deadline has passed."""
        return self.limits.deadline is not None and now - self.started >= self.limits.deadline

    def reached(self, now: float) -> StopReason | None:
        """Return the stop reason that rules out another ordinary turn, by the caller or a limit; None if there is none."""
        limits, context, repeats = self.limits, self.context, self._repeats
        if self.compaction is not None:
            context = self.compaction.tokens() if self.turns and limits.context_window is not None else context
            repeats = max(repeats, self.compaction.repeats)
        checks: list[tuple[StopReason, bool]] = [
            ("cancelled", self.cancelled is not None and self.cancelled()),
            ("deadline", self.overdue(now)),
            ("max_tool_calls", self._refused_calls),
            ("no_progress", limits.no_progress is not None and repeats >= limits.no_progress),
            (
                "token_budget",
                limits.token_budget is not None and self.usage is not None and self.usage["total_tokens"] >= limits.token_budget,
            ),
            ("context_window", limits.context_window is not None and context >= limits.context_window),
            ("max_turns", limits.max_turns is not None and self.turns >= limits.max_turns),
        ]
        return next((reason for reason, hit in checks if hit), None)

    def note_end(self, reason: StopReason) -> None:
        """Log the end of the run if a limit has ended it."""
        value = getattr(self.limits, reason)
        shown = reason if value is None else f"{reason}={value}"  # the deadline may be that of a run around this one
        _logger.warning("a run has ended at its limit %s, after %d turns and %d tool calls", shown, self.turns, self.tool_calls)
