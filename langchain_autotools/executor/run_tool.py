"""Tools whose calls are runs: models or agents, which wait where the run inside waits.

The calls of such a run are shown at the outermost run, with the path to them. A digest binds each to the call around its run, and another
one the whole record, so that with a key nobody else can make or change one.
"""

import hashlib
import inspect
import uuid
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage, messages_from_dict
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config
from langchain_core.tools import BaseTool
from pydantic import BaseModel, Field

from ..errors import ConfigurationError, DecisionProblem, DecisionsError
from ..messages.calls import ToolCallRecord, canonical_call, open_end
from ..messages.metadata import InnerUsage, own_metadata
from ..messages.run_messages import HoldsRun, metadata_of_open_run, new_messages, open_results, open_run, run_message_of, serialize_messages
from ..strict_json import equivalent
from .approvals import Approvals, same_digest
from .nested_runs import InnerBudget, NestedRuns, current_nested_runs, run_content
from .pending import (
    DEFINITIONS,
    CallIdentity,
    Decision,
    PendingCall,
    Refusals,
    bound_as_recorded,
    check_offered,
    digest_of,
    pending_calls,
    plain_copy,
    plain_json,
    read_decisions,
    refusal,
    told_of,
    with_edited_arguments,
)
from .plan import Meaning
from .results import output_content

_CHANGED = "the record of the run inside call {id!r} is not the one that was made: it, its call or approval_key has changed since"


@dataclass(frozen=True)
class ContinuedRun:
    """The run inside a call, with decisions about its pending calls.

    Attributes:
        messages: Its messages so far.
        decisions: The decisions, as its own pending calls would have made them.
    """

    messages: Sequence[BaseMessage]
    decisions: Sequence[Decision]


@dataclass(frozen=True)
class OuterCall:
    """The call around a run.

    Attributes:
        call: The call.
        message_id: The id of its message; None where that is not known.
        approvals: The approvals of the run that made it.
    """

    call: ToolCallRecord
    message_id: str | None
    approvals: Approvals

    def shown(self, pending: PendingCall) -> PendingCall:
        """Return a pending call of the run inside, as it is shown outside."""
        path = (self.call.name, *pending.path)
        place = [self.message_id, self.call.id, path, pending.uuid, pending.digest]
        outside = replace(pending, path=path, uuid=hashlib.sha256(plain_json(self.call, place)).hexdigest())
        return replace(outside, digest=shown_digest(outside, self.approvals.checked_key()))

    def record(self, messages: Sequence[BaseMessage], pending: Sequence[PendingCall]) -> dict[str, Any]:
        """Return the record of the run inside, which waits.

        Args:
            messages: The messages of that run so far.
            pending: Its pending calls.
        """
        shown = [self.shown(one) for one in pending]
        return self._record(shown, [[one.uuid, one.digest] for one in pending], serialize_messages(messages))

    def changed(self, args: Mapping[str, Any], changes: Mapping[str, Sequence[Any]] | None = None) -> dict[str, Any]:
        """Return the record of this call, which waits for approval: with other arguments, or bound to another definition of its tool.

        Args:
            args: The arguments.
            changes: What has changed in the definition.

        Raises:
            ConfigurationError: The arguments are not plain JSON.
        """
        call, plain = self.call, plain_copy("a call", args)
        before = None if call.decision is None else call.decision.uuid
        bound = [] if call.definitions is None else [call.definitions]
        place = ["changed", self.message_id, call.id, call.spelling, before, plain, *bound]
        identity = hashlib.sha256(plain_json(call, place)).hexdigest()
        known: dict[str, Any] = {"toolset": call.toolset, "changes": changes or {}, **told_of(call.name, call.definitions)}
        shown = PendingCall(call.id, call.shown_name, plain, "approval", identity, changed=True, **known)
        return self._record([replace(shown, digest=shown_digest(shown, self.approvals.checked_key()))], [], [])

    def _record(self, shown: Sequence[PendingCall], inside: Sequence[Sequence[str]], messages: Sequence[Any]) -> dict[str, Any]:
        record = {
            "message": self.message_id,
            "args": self.call.args if self.call.edited else None,
            "calls": [one.to_dict() for one in shown],
            "inside": inside,
            "messages": messages,
            **({} if self.call.definitions is None else {DEFINITIONS: self.call.definitions}),
        }
        return {**record, "digest": self._digest(record)}

    def _digest(self, record: Mapping[str, Any]) -> str:
        kept = [record[name] for name in ("message", "args", "calls", "inside", "messages")]
        kept += [record[DEFINITIONS]] if DEFINITIONS in record else []
        whole = replace(self.call, args={"record": kept}, inner=(), definitions=None)
        return digest_of(whole, "open_run", "", self.approvals.checked_key())

    def check(self, record: Mapping[str, Any], decisions: Sequence[Decision]) -> None:
        """Raise if a record is not the one that was made of a run inside this call.

        Args:
            record: The record.
            decisions: The decisions about the calls that it shows.

        Raises:
            DecisionsError: It is not.
        """
        try:
            known = record["message"] in (None, self.message_id) and same_digest(str(record["digest"]), self._digest(record))
        except KeyError:
            known = False
        if not known:
            text = _CHANGED.format(id=self.call.id)
            raise DecisionsError(text, [problem for one in decisions for problem in refusal(one.uuid, one.id, text).problems])


def shown_digest(call: PendingCall, key: str | None) -> str:
    """Return the digest of a call that is shown with this identity."""
    uses = call.args.get("tool_uses")
    names = [use.get("recipient_name") for use in uses if isinstance(use, dict)] if isinstance(uses, list) else []
    inside = {name.rpartition(".")[2]: None for name in names if isinstance(name, str)}
    record = ToolCallRecord(call.id, call.name, "", call.args)
    return digest_of(Meaning(inside).of(record), call.kind, call.uuid, key, path=call.path)


def _shown_index(record: Mapping[str, Any], decision: Decision) -> int | None:
    """Return the number of the shown call that a decision is about; None if it is about none."""
    entries = [entry if isinstance(entry, Mapping) else {} for entry in record["calls"]]
    shown = ([entry.get(name) for name in ("id", "uuid", "digest")] for entry in entries)
    return next((number for number, one in enumerate(shown) if one == [decision.id, decision.uuid, decision.digest]), None)


def _continued_call(call: ToolCallRecord, record: Mapping[str, Any], decisions: Sequence[Decision], refusals: Refusals) -> ToolCallRecord:
    """Return the call, whose run inside goes on with these decisions."""
    inside: dict[int, Decision] = {}
    for decision in decisions:
        number = _shown_index(record, decision) or 0
        with refusals.collected():
            check_offered(decision.uuid, decision.id, record["calls"][number]["kind"], decision.action)
            uuid, digest = record["inside"][number]
            if number in inside:
                refusals.add_second(decision)
            inside.setdefault(number, replace(decision, uuid=uuid, digest=digest))
    run = ContinuedRun(messages_from_dict(record["messages"]), list(inside.values()))
    changed: dict[str, Any] = {} if record["args"] is None else {"args": dict(record["args"]), "edited": True}
    return replace(bound_as_recorded(call, record), run=run, waits=None, decision=None, **changed)


# ---------------------------------------------------------------------------------------------- run tool
# Models and agents as tools: each call is a run, and where that run waits, the call waits with it.


_NAMELESS = "{kind} as a tool needs a name: as_tool(name=...), a mapping of name to tool, or the model's own name="


@dataclass(frozen=True)
class ModelRuns:
    """The runs of a model.

    Attributes:
        model: The model, or a binding of one.
    """

    model: Any

    def run(self, question: HumanMessage | None, *, history: Sequence[BaseMessage], config: RunnableConfig, **kwargs: Any) -> Any:
        """Invoke the model."""
        return self.model.invoke([*history, *_as_messages(question)], config, **kwargs)

    async def arun(self, question: HumanMessage | None, *, history: Sequence[BaseMessage], config: RunnableConfig, **kwargs: Any) -> Any:
        """Like `run`, asynchronously."""
        return await self.model.ainvoke([*history, *_as_messages(question)], config, **kwargs)

    def check(self, decisions: Sequence[Decision], *, history: Sequence[BaseMessage]) -> Sequence[DecisionProblem]:
        """Check the decisions with the model."""
        problems: Sequence[DecisionProblem] = self.model.check(history, decisions)
        return problems


class _Question(BaseModel):
    """Arguments of a model or an agent as a tool."""

    question: str = Field(description="The question or task, with everything that is needed to answer it.")


class RunTool(BaseTool):
    """A tool whose calls are runs of a model or an agent."""

    runs: Any = Field(repr=False)
    args_schema: Any = _Question

    @classmethod
    def of(cls, runs: Any, kind: str, name: str | None, description: str | None) -> "RunTool":
        """Return the tool that asks `runs`, an object with the methods of `ModelRuns`.

        Raises:
            ConfigurationError: It has no name.
        """
        if not name:
            raise ConfigurationError(_NAMELESS.format(kind=kind))
        return cls(name=name, description=description or f"Ask {name}, which answers in words.", runs=runs)

    # A parameter `config` would be given the configuration around the tool's run: the run inside would be traced beside it.

    def _run(self, question: str) -> Any:
        call = _InnerRun(question)
        with call:
            value = self.runs.run(call.question, history=call.history, config=ensure_config(), **call.keywords)
        return call.answer(value)

    async def _arun(self, question: str) -> Any:
        call = _InnerRun(question)
        with call:
            value = await self.runs.arun(call.question, history=call.history, config=ensure_config(), **call.keywords)
        return call.answer(value)

    def check_run(self, outer: OuterCall, run: ContinuedRun) -> None:
        """Raise if the run inside a call cannot go on with what was decided.

        Raises:
            DecisionsError: It cannot.
        """
        around = current_nested_runs.set(_GivenRuns(outer, None))
        try:
            problems = self.runs.check(run.decisions, history=run.messages)
        finally:
            current_nested_runs.reset(around)
        if problems:
            raise DecisionsError(_INSIDE.format(id=outer.call.id, problems="; ".join(one.words for one in problems)), problems)


class _InnerRun:
    """The run inside a call, new or continued, in the context of the call. A context manager that counts the replies of a run that fails.

    Attributes:
        history: Its messages so far.
        question: The question; None where it goes on.
        keywords: The keywords of the run.
    """

    def __init__(self, question: str) -> None:
        around = current_nested_runs.get()
        self._outer = None if around is None or around.around is None else outer_call(around.around)
        run = None if self._outer is None else self._outer.call.run
        self.history: Sequence[BaseMessage] = () if run is None else run.messages
        self.question = HumanMessage(question) if run is None else None
        self.keywords = {} if run is None else {"resume": run.decisions}
        self._used: InnerUsage | None = None
        if around is not None and self._outer is not None:
            given = _GivenRuns(self._outer, around.around.budget)
            self._used = given.used
            current_nested_runs.set(given)

    def __enter__(self) -> None:
        """Begin the run."""

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Count the replies of a run that failed."""
        if error is not None and self._used is not None:
            self._used.end(new_messages(error))

    def answer(self, value: Any) -> Any:
        """Return what the run gave, and count its replies; if it waits, a result with its record."""
        run = run_message_of(value)
        if run is not None and self._used is not None:
            self._used.end(new_messages(value))
        waits = run is not None and own_metadata(run).get("stop_reason") == "calls_pending"  # a reply without a run cannot go on
        if run is None or self._outer is None or not waits:
            return output_content(value)
        asked = () if isinstance(value, HoldsRun) else _as_messages(self.question)
        record = self._outer.record([*self.history, *asked, *new_messages(value)], pending_calls(run))
        metadata, content = metadata_of_open_run(record), run_content(run)
        assert isinstance(content, ToolMessage)  # since it is not finished
        return content.model_copy(update={"id": f"open-{uuid.uuid4()}", "response_metadata": metadata})


class _GivenRuns(NestedRuns):
    """The runs of a model or an agent that is given as a tool: their open calls are not left, they wait."""

    def __init__(self, outer: OuterCall, budget: InnerBudget | None) -> None:
        super().__init__()
        self._outer = outer
        self._budget = budget
        self.used = None if budget is None else budget.used

    def leave_open(self, calls: Any, *, named: bool = False) -> None:
        """Do nothing."""

    def governs(self, approvals: Any) -> Any:
        """Return the approvals of such a run: what its own leave open, those of the run around decide."""
        outer = self._outer.approvals
        approve = None if outer.approve is None else self._ask
        known = {"approve": approvals.approve or approve, "key": approvals.key or outer.key, "claim": approvals.claim or outer.claim}
        return replace(approvals, **known)

    def bound(self, settings: Any) -> Any:
        """Return the settings of such a run, within what the run around has left."""
        return settings if self._budget is None else self._budget.bound(settings)

    def _ask(self, pending: PendingCall) -> Any:
        """Ask the function of the run around, with the path."""
        shown, approve = self._outer.shown(pending), self._outer.approvals.approve
        assert approve is not None
        decision = approve(shown)
        return _awaited_decision(decision, pending, shown) if inspect.isawaitable(decision) else _inner_decision(decision, pending, shown)


async def _awaited_decision(decision: Awaitable[Any], pending: PendingCall, shown: PendingCall) -> Any:
    return _inner_decision(await decision, pending, shown)


def _inner_decision(decision: Any, pending: PendingCall, shown: PendingCall) -> Any:
    """Return a decision about a shown call as one about the call inside; other values unchanged."""
    if isinstance(decision, Decision) and (decision.id, decision.uuid, decision.digest) == (shown.id, shown.uuid, shown.digest):
        return replace(decision, uuid=pending.uuid, digest=pending.digest)
    return decision


def outer_call(around: Any) -> OuterCall:
    """Return the call that a tool is running, of its `ToolRun`."""
    message, _ = open_end(around.messages)
    made = isinstance(message, AIMessage) and any(call["id"] == around.call.id for call in message.tool_calls)
    return OuterCall(around.call, message.id if made and message is not None else None, _joined_approvals(around.approvals, around.within))


def _joined_approvals(approvals: Approvals | None, within: NestedRuns | None) -> Approvals:
    """Return the approvals of a run together with those of the runs around it."""
    own = approvals or Approvals()
    return own if within is None else within.governs(own)


def is_run_tool(tool: BaseTool) -> bool:
    """Whether the calls of a tool are runs of a model or an agent, also through a wrapper."""
    return isinstance(getattr(tool, "inside", tool), RunTool)


def _as_messages(question: HumanMessage | None) -> list[BaseMessage]:
    return [] if question is None else [question]


# ---------------------------------------------------------------------------------------------- continuing
# Calls inside which runs wait, and calls that wait since they, or their tools, have changed: they go on with what was decided.


_INSIDE = "the run inside call {id!r} cannot go on with what was decided: {problems}"
_NOT_GIVEN = "call {id!r} waits with a run inside, which {name!r} cannot go on with: it is no model, agent or tool of a server that waits"


class Executes(Protocol):
    """The interface of an executor."""

    tools: dict[str, BaseTool]
    approvals: Approvals | None

    def meant(self, calls: Iterable[ToolCallRecord]) -> list[ToolCallRecord]:
        """Return the calls under their tools' own names."""

    def decided(self, call: ToolCallRecord, decision: Decision) -> ToolCallRecord:
        """Return the call with its decision applied."""


def continued_calls(
    executor: Executes,
    decisions: Sequence[Decision],
    opened: Sequence[ToolMessage],
    message: AIMessage,
    calls: Sequence[ToolCallRecord],
    refusals: Refusals,
) -> tuple[list[Decision], dict[str, ToolCallRecord]]:
    """Return the decisions about a message's own calls, and by id the open calls that go on with the other decisions.

    Args:
        executor: Executes the calls.
        decisions: All decisions.
        opened: The results of such calls.
        message: The message that made these calls.
        calls: Its calls.
        refusals: Collects the errors of decisions that cannot be carried out, such as about a record that was changed.
    """
    own, continued = list(decisions), dict[str, ToolCallRecord]()
    meant = {call.id: call for call in executor.meant(calls)}
    for result in opened:
        record, call = open_run(result), meant.get(result.tool_call_id)
        mine = [] if record is None else [one for one in own if _shown_index(record, one) is not None]
        if record is None or call is None or not mine:
            continue
        own = [one for one in own if one not in mine]
        outer = OuterCall(call, message.id, _joined_approvals(executor.approvals, current_nested_runs.get()))
        with refusals.collected():
            outer.check(record, mine)
            going_on = _changed_call if not record["inside"] else _continued
            continued[call.id] = going_on(executor, outer, record, mine, refusals)
    return own, continued


def _continued(
    executor: Executes, outer: OuterCall, record: Mapping[str, Any], decisions: Sequence[Decision], refusals: Refusals
) -> ToolCallRecord:
    """Return a call inside which a run goes on.

    Raises:
        DecisionsError: The run cannot go on with what was decided.
    """
    tool = executor.tools.get(outer.call.name)
    call = _continued_call(outer.call, record, decisions, refusals)
    inside, check = getattr(tool, "inside", tool), getattr(tool, "check_continued", None)
    if check is None and not isinstance(inside, RunTool):
        words = "The agent that asks this is not there any more."
        raise DecisionsError(_NOT_GIVEN.format(id=call.id, name=call.name), [DecisionProblem(one.uuid, one.id, words) for one in decisions])
    try:
        if isinstance(inside, RunTool):
            inside.check_run(replace(outer, call=call), cast("ContinuedRun", call.run))
        elif check is not None:
            check(call.run)
    except DecisionsError as error:
        raise DecisionsError(str(error), _as_shown(error.problems, record, call.id)) from None
    return call


def _as_shown(problems: Iterable[DecisionProblem], record: Mapping[str, Any], call_id: str) -> Iterator[DecisionProblem]:
    """Yield the problems of a run inside a call, of the calls as they are shown outside; of no call of its own as of the call around it."""
    pairs = zip(record["inside"], record["calls"], strict=False)
    shown = {(inside[0], call["id"]): (call["uuid"], call["id"]) for inside, call in pairs}
    for one in problems:
        yield DecisionProblem(*shown.get((one.uuid, one.id), ("", call_id)), one.words)


def _changed_call(
    executor: Executes, outer: OuterCall, record: Mapping[str, Any], decisions: Sequence[Decision], refusals: Refusals
) -> ToolCallRecord:
    """Return a call that waits again, with the decision about it: to run as it was approved, or to be answered.

    The wrappers get it as they got it before, or as the decision edits it.
    """
    call, (decision, *others) = bound_as_recorded(outer.call, record), decisions
    for other in others:
        refusals.add_second(other)
    (shown,) = executor.meant([with_edited_arguments(call, record["calls"][0]["args"])])
    made = executor.decided(shown, decision)
    if made.args is None:
        return made
    approved = canonical_call(replace(made, edited=not equivalent(made.args, call.args)))
    if decision.action == "edit":
        return replace(approved, approved=approved)
    own = call if record["args"] is None else canonical_call(replace(call, args=dict(record["args"]), edited=True))
    return replace(own, waits=None, decision=decision, approved=approved)


def continue_batch(
    executor: Executes,
    given: Any,
    messages: Sequence[BaseMessage],
    decisions: Any,
    calls: Sequence[ToolCallRecord],
    known: Sequence[CallIdentity],
    refusals: Refusals,
) -> tuple[list[Decision], list[ToolCallRecord], list[CallIdentity]]:
    """Return the decisions about a batch's own calls, its calls and their identities; those whose runs inside go on have no result.

    Args:
        executor: Executes the calls.
        given: What was given to be executed: the AI message, or its calls.
        messages: The conversation so far.
        decisions: The decisions.
        calls: The calls.
        known: Their identities.
        refusals: Collects the errors of decisions that cannot be carried out.
    """
    read = read_decisions(decisions)
    opened = open_results(one.result for one in known if one.result is not None)
    message = given if isinstance(given, AIMessage) else open_end(messages)[0]
    if not opened or message is None:
        return read, [*calls], [*known]
    own, continued = continued_calls(executor, read, opened, message, calls, refusals)
    going_on = [replace(one, result=None) if one.call.id in continued else one for one in known]
    return own, [continued.get(call.id, call) for call in calls], going_on
