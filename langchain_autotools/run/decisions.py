"""Decisions about the calls that a history ends in.

A history may come from a client. Nothing in it runs unless a decision says so, and a decision is about a call that is there, as
the model wrote it.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from ..errors import ConfigurationError, DecisionsError
from ..executor import Decision, ToolExecutor, pending_calls
from ..executor.approvals import Approvals
from ..executor.pending import (
    CallIdentity,
    Refusals,
    bound_as_recorded,
    by_position,
    caller_digest,
    check_ids,
    check_offered,
    identities,
    read_decisions,
    refusal,
    with_edited_arguments,
)
from ..executor.run_tool import continued_calls
from ..messages.calls import CLIENT_TOOL, FOR_CALLER, ToolCallRecord, awaited_calls, calls_of, canonical_call, open_end, records_of
from ..messages.run_messages import open_results
from ..strict_json import equivalent, read_object
from .loop import OpenCalls

_logger = logging.getLogger("langchain_autotools")

PlainDecision = bool | str | Mapping[str, Any]
"""A decision about a call of the input that needs no approval: True executes it, a mapping executes it with these arguments
instead, False rejects it, and a text rejects it with that reason."""

Resumed = Mapping[str, PlainDecision] | Sequence[Decision] | Literal[True] | None

_INTERRUPTED = "This call was interrupted before it ran. Call the tool again if the result is still needed."
_REFUSED = "This call was denied and did not run."
_NOTHING_WAITS = "resume decides about calls without results at the end of the history, and there are none"
_BINDS_NOTHING = (
    "call {id!r} needs approval, and {decision} binds nothing: decide about it with approve(), reject(), edit() or respond() of what "
    "pending_calls(...) gives"
)
_MESSAGE_BEHIND = (
    "the history ends in a message of the user behind calls that wait: leave it out there, and give it as message=, "
    "resume(history, decisions, message=...)"
)
_SHORTHAND = {True: "True", False: "a mapping of arguments"}


def read_resume(decisions: Any) -> Resumed:
    """Return the value of the keyword `resume`; None if it is not set.

    Raises:
        ConfigurationError: It decides nothing.
        DecisionsError: A decision cannot be read.
    """
    if decisions is None or decisions is True:
        return decisions
    if not isinstance(decisions, Mapping):
        if isinstance(decisions, str) or not isinstance(decisions, Sequence):
            kind = type(decisions).__name__
            raise ConfigurationError(f"resume takes True, a list of decisions, or a mapping from call ids to decisions, not {kind}")
        return read_decisions(decisions)
    with Refusals() as refusals:
        for call_id, decision in decisions.items():
            named = isinstance(decision, Mapping) and all(isinstance(name, str) for name in decision)
            if not named and not isinstance(decision, bool | str):
                text = f"the decision on call {call_id!r} must be True, False, a text (why not), or arguments by name"
                refusals.add_unreadable("", call_id, text)
    return decisions


def open_calls(
    history: Sequence[BaseMessage],
    decisions: Resumed,
    executor: ToolExecutor,
    caller_tools: Collection[str],
    approvals: Approvals | None = None,
    given: Sequence[BaseMessage] = (),
) -> OpenCalls | None:
    """Return the unanswered calls at the end of a history; None if there are none.

    Args:
        history: The repaired history.
        decisions: The decisions about these calls, from `read_resume`. None: they are answered as interrupted.
        executor: Executes them.
        caller_tools: Names of tools that the caller only declared.
        approvals: The approvals of calls; None for none.
        given: The history as the caller gave it.

    Raises:
        DecisionsError: A decision is about no such call, or there is none to decide about. A call that needs approval has no decision about
            it. A call to be executed was changed since the model wrote it, or belongs to no tool of the executor. Likewise for a run inside
            a call.
    """
    if approvals is not None and (decisions is not None or approvals.concerns_calls):
        approvals.checked_key()
    message, results = open_end(history)
    known = [] if message is None else identities(message, _calls(message, decisions), results)
    waiting = [number for number, one in enumerate(known) if one.result is None]
    if decisions is None:
        refused = [(number, replace(known[number].call, args=None, why=_INTERRUPTED)) for number in waiting]
        return OpenCalls(message, refused) if message and refused else None
    if given and isinstance(given[-1], HumanMessage):
        end = next((number for number in range(len(given), 0, -1) if not isinstance(given[number - 1], HumanMessage)), 0)
        if pending_calls(given[:end]):
            raise ConfigurationError(_MESSAGE_BEHIND)
    shown = _as_given(known, given)
    opened = open_results(results)
    decided: list[tuple[int, ToolCallRecord]] = []
    refusals = Refusals()
    decisions, continued = _split(decisions, opened, message, known, executor, approvals, refusals)
    answered = {one.tool_call_id for one in history if isinstance(one, ToolMessage)}
    by_number = _by_number(decisions, known, shown, answered, refusals)
    if message is None or not (waiting or opened):
        raise refusals.together() if refusals else refusal("", "", _NOTHING_WAITS, "Nothing waits for a decision.")
    resumed = _Resumed(message, executor, caller_tools, approvals or Approvals())
    for number in waiting:
        try:
            decided.append((number, resumed.decided(known[number], shown[number], by_number.get(number))))
        except DecisionsError as error:
            refusals.append(error)
    if refusals:
        raise refusals.together()
    going_on = [(number, continued[one.call.id]) for number, one in enumerate(known) if one.call.id in continued]
    return OpenCalls(message, sorted([*decided, *going_on], key=itemgetter(0)), opened)


def _split(
    decisions: Any,
    opened: Sequence[ToolMessage],
    message: AIMessage | None,
    known: Sequence[CallIdentity],
    executor: ToolExecutor,
    approvals: Approvals | None,
    refusals: Refusals,
) -> tuple[Any, Mapping[str, ToolCallRecord]]:
    """Return the decisions about a run's own calls, and by id the calls whose runs inside go on with the others."""
    if not opened or message is None:
        return decisions, {}
    if not isinstance(decisions, Sequence):
        for shown in pending_calls(opened) if decisions is True else ():
            refusals.append(_unbound_refusal(shown.uuid, shown.id, True))
        return decisions, {}
    calls = [one.call for one in known]
    if approvals is not None:  # those under their handlers' names that need approval: about others nobody can have been asked
        taken = executor.handled(calls)
        judged = [approvals.judge_one(call, executor.prepared.arguments_of) for call in taken]
        calls = [made if one.waits == "approval" else call for call, made, one in zip(calls, taken, judged, strict=True)]
    return continued_calls(executor, decisions, opened, message, calls, refusals)


def _unbound_refusal(uuid: str, call_id: str, decision: PlainDecision) -> DecisionsError:
    """Return the error for a decision that is bound to no call, where one has to be."""
    text = _BINDS_NOTHING.format(id=call_id, decision=_SHORTHAND[decision is True])
    return refusal(uuid, call_id, text, "This call needs a decision of its own.")


def _calls(message: AIMessage, decisions: Resumed) -> list[ToolCallRecord]:
    """Return the calls of a message, including the vendor's own items if decisions are given."""
    return [*calls_of(message), *(() if decisions is None else awaited_calls(message))]


def _as_given(known: Sequence[CallIdentity], given: Sequence[BaseMessage]) -> Sequence[CallIdentity]:
    """Return the calls with the caller's identities: calls with one id are distinct in the repaired history."""
    message, results = open_end(given)
    calls = [] if message is None else _calls(message, True)
    same = len(calls) == len(known) and all(one.args == other.call.args for one, other in zip(calls, known, strict=True))
    return identities(message, calls, results) if same else known


def _by_number(
    decisions: Mapping[str, PlainDecision] | Sequence[Decision] | Literal[True],
    known: Sequence[CallIdentity],
    shown: Sequence[CallIdentity],
    results: Collection[str],
    refusals: Refusals,
) -> Mapping[int, PlainDecision | Decision]:
    """Return the decisions by the numbers of their calls."""
    if decisions is True:
        return dict.fromkeys(range(len(known)), True)
    if isinstance(decisions, Mapping):
        check_ids(dict.fromkeys(decisions, ""), [one.call.id for one in known if one.result is None], results, refusals)
        return {number: decisions[one.call.id] for number, one in enumerate(known) if one.call.id in decisions}
    return by_position(decisions, shown, lambda number: _shown_digest(known[number], shown[number]), results, refusals)


def _shown_digest(known: CallIdentity, shown: CallIdentity) -> str:
    return caller_digest(shown) if known.record is None else str(known.record["digest"])


@dataclass
class _Resumed:
    """Applies decisions to the open calls of a message, in call order.

    Attributes:
        message: The AI message that made them.
        executor: Executes them.
        callers: Names of tools that the caller only declared.
        approvals: The approvals of calls.
        waits: Whether a call before has to be waited for.
    """

    message: AIMessage
    executor: ToolExecutor
    callers: Collection[str]
    approvals: Approvals
    waits: bool = False

    def decided(self, identity: CallIdentity, shown: CallIdentity, decision: PlainDecision | Decision | None) -> ToolCallRecord:
        """Return the call with its decision applied, or with the reason why it waits. `shown` is the call's identity for its caller."""
        call, record = identity.call, identity.record
        if call.args is None:
            return call if decision is None or isinstance(decision, Decision) else self._plainly(identity, call, decision)
        (meant,) = self.executor.meant(self.executor.handled([call]), caller_tools=self.callers)
        judged = self._judged(meant)
        meant = replace(meant, definitions=judged.definitions)
        if judged.handler is not None and judged.waits is None and (record is None or record["kind"] != "queued"):
            meant = judged = replace(call, waits=call.waits or CLIENT_TOOL)  # nobody was asked: a client may have written it
        if judged.args is None and (decision is None or decision is True):
            return judged
        kind = self._kind(judged, record)
        if isinstance(decision, Decision):
            self._check(meant, decision, kind, identity, shown)
            made = self.executor.decided(meant if record is None else bound_as_recorded(meant, record), decision)
        elif kind in FOR_CALLER:
            made = meant if decision is None else self._by_caller(identity, meant, decision, kind)
        elif kind == "caller":
            made = replace(call, waits=kind) if decision is None else self._plainly(identity, call, decision)
        else:
            made = self._unbound(identity, meant, decision, kind)
        return self._in_order(canonical_call(made), kind)

    def _judged(self, call: ToolCallRecord) -> ToolCallRecord:
        return call if call.name in self.callers else self.approvals.judge_one(call, self.executor.prepared.arguments_of)

    def _kind(self, call: ToolCallRecord, record: Mapping[str, Any] | None) -> str:
        """Return the reason why the call waits: approval if the current rule requires it, whatever an unverified record says."""
        if call.waits is not None:
            return call.waits
        queues = ("approval",) if call.name in self.callers else ("approval", "queued")  # the caller's own calls wait for no others
        return str(record["kind"]) if record is not None and record["kind"] in queues else "caller"

    def _check(self, call: ToolCallRecord, decision: Decision, kind: str, identity: CallIdentity, shown: CallIdentity) -> None:
        """Raise if a decision is not about this call, or not possible for such a call."""
        if kind in FOR_CALLER:
            check_offered(decision.uuid, call.id, kind, decision.action)
        if identity.record is not None:
            self.approvals.check(call, decision, identity.record)
            return
        self.approvals.check_unrecorded(call, decision, kind, _shown_digest(identity, shown))

    def _by_caller(self, identity: CallIdentity, call: ToolCallRecord, decision: PlainDecision, kind: str) -> ToolCallRecord:
        """Return a call for the caller with a plain decision, which may only reject it."""
        if decision is False or isinstance(decision, str):
            return self.executor.decided(call, Decision(call.id, "reject", decision or None))
        check_offered(_recorded_uuid(identity), call.id, kind, "approve" if decision is True else "edit")
        raise _unbound_refusal(_recorded_uuid(identity), call.id, decision)

    def _unbound(self, identity: CallIdentity, call: ToolCallRecord, decision: PlainDecision | None, kind: str) -> ToolCallRecord:
        """Return a call that needs approval, or waits behind one that does, without a bound decision."""
        record = identity.record
        if decision is False or isinstance(decision, str):
            return self._plainly(identity, call, decision)
        if decision is not None and (kind == "approval" or decision is not True):
            raise _unbound_refusal(_recorded_uuid(identity), call.id, decision)
        if kind == "queued" and record is not None:
            self.approvals.check_record(call, record)
            return call
        return replace(call, waits=kind)

    def _in_order(self, call: ToolCallRecord, kind: str) -> ToolCallRecord:
        """Return the call, waiting if an earlier one does and calls run one after another."""
        if kind in ("caller", *FOR_CALLER) or call.args is None:
            return call
        asks = self.approvals.approve is not None and self.executor.parallel is False  # then the gate knows what is waited for
        in_order = kind == "queued" or self.executor.parallel is False
        if self.waits and in_order and call.waits is None and not asks:
            if call.decision is not None:
                _logger.warning("the decision on call %s has no effect: a call before it waits, and they run one after another", call.id)
            call = replace(call, waits=kind, decision=None)
        self.waits = self.waits or call.waits is not None
        return call

    def _plainly(self, identity: CallIdentity, call: ToolCallRecord, decision: PlainDecision) -> ToolCallRecord:
        """Return the call with a plain decision, which can only run a call that needs no approval."""
        if decision is False or isinstance(decision, str):
            return replace(call, args=None, why=decision or _REFUSED)
        raw = records_of(self.message).get(call.id, {}).get("arguments") if decision is True else None  # without a record the call counts
        if raw is not None and (not isinstance(raw, str) or not equivalent(read_object(raw), call.args)):
            text = f"call {call.id!r} has other arguments than the model wrote: to execute it, give the arguments that it is to run with"
            raise refusal(_recorded_uuid(identity), call.id, text, "This call has other arguments than the model wrote.")
        (meant,) = self.executor.meant([replace(call, args={})], caller_tools=self.callers)
        if meant.name in self.callers and meant.name not in self.executor.tools:
            text = f"call {call.id!r} cannot be executed: {meant.name!r} was only declared; run it yourself and append its ToolMessage"
            raise refusal(_recorded_uuid(identity), call.id, text, "This call cannot run here.")
        made = with_edited_arguments(call, decision) if isinstance(decision, Mapping) else call
        (meant,) = self.executor.meant([made])
        judged = self.approvals.judge_one(meant, self.executor.prepared.arguments_of)
        if judged.waits is not None:
            raise _unbound_refusal(_recorded_uuid(identity), call.id, decision)
        return judged


def _recorded_uuid(identity: CallIdentity) -> str:
    """Return the `uuid` of a call as it is shown; empty for a call of which nothing is recorded."""
    return "" if identity.record is None else identity.uuid
