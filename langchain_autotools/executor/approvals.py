"""Which calls need an approval, checked before a batch begins.

The rule is asked of every call by the name of the tool that it means, and of the calls that it bundles. With a key the digest of a
call is an HMAC: nobody else can make one. An approval is bound to the tool too, where a source lists it: to its definition then.
"""

import copy
import hmac
import inspect
import logging
import uuid
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

from langchain_core.messages import AIMessage
from pydantic import SecretStr

from ..compat import is_graph_signal
from ..errors import ConfigurationError
from ..messages.calls import FOR_CALLER, VENDOR_APPROVAL, ToolCallRecord, with_definitions, with_records
from ..pickling import check_portable
from .claims import Claim, Claims, checked_claim, claim_key, goes_on_by_itself
from .names import tool_keys
from .pending import (
    DEFINITIONS,
    RECORD,
    CallIdentity,
    Decision,
    PendingCall,
    PendingKind,
    Refusals,
    bound_as_recorded,
    by_position,
    caller_digest,
    check_offered,
    digest_of,
    refusal,
    shown_to_caller,
    told_of,
)
from .plan import Answer
from .steps import CallWrapper
from .tool import ArgumentsOf
from .tools import source_tool
from .user_functions import NOTHING, UserCall

_RECORDED = frozenset({"approval", "queued", VENDOR_APPROVAL})

_logger = logging.getLogger("langchain_autotools")

_BESIDE = "calls that need no approval run too, beside those that were decided; with messages= those that have results there do not"

Predicate = Callable[[ToolCallRecord], bool]


@dataclass(frozen=True)
class Approvals:
    """The rule for calls that need approval, and the binding of decisions to calls.

    Attributes:
        names: The names of tools whose calls need it.
        predicates: Say of a call whether it needs it.
        every: Whether all calls need it.
        approve: Decides at once; None leaves the calls pending.
        key: The key of the digests.
        claim: The store that takes a call that was decided, once for all processes, before it runs; None for none.
        of_handlers: Says of a call that a handler answers whether that one needs it; None where there are no handlers.
        judged: Whether the calls come with what they wait for: nobody is asked again whether they need approval.
    """

    names: frozenset[str] = frozenset()
    predicates: tuple[Predicate, ...] = ()
    every: bool = False
    approve: Callable[[PendingCall], Any] | None = None
    key: SecretStr | None = None
    claim: Claim | None = None
    of_handlers: Predicate | None = None
    judged: bool = False

    @classmethod
    def of(cls, rule: Any = None, *, approve: Any = None, key: Any = None, claim: Any = None) -> "Approvals":
        """Return the approvals of a rule, functions and a key.

        Raises:
            ConfigurationError: One of them cannot work.
        """
        if approve is not None and not callable(approve):
            raise ConfigurationError(f"approve must be a function that is called, not {type(approve).__name__}")
        if isinstance(key, str) and key:
            key = SecretStr(key)
        if not isinstance(key, SecretStr | None):
            raise ConfigurationError("approval_key must be a SecretStr, or a text that is not empty")
        made = cls(approve=approve, key=key, claim=checked_claim(claim))
        if rule is None or isinstance(rule, bool):
            return replace(made, every=bool(rule))
        if callable(rule):
            if inspect.iscoroutinefunction(rule):
                raise ConfigurationError("requires_approval must say True or False at once: an asynchronous function cannot")
            return replace(made, predicates=(rule,))
        if isinstance(rule, str | Mapping) or not isinstance(rule, Collection) or not all(isinstance(name, str) for name in rule):
            raise ConfigurationError("requires_approval must be a list of names of tools, a function of the call, or True")
        return replace(made, names=frozenset(rule))

    def for_tools(self, tools: Mapping[str, Any]) -> "Approvals":
        """Return these approvals with the keys of all tools that their names may mean: another name of a tool is no way around them.

        Raises:
            ConfigurationError: A rule names a tool that does not exist.
        """
        if not self.names:
            return self
        names = frozenset(tool_keys(self.names, tools, exact_first=False))
        unknown = sorted(names - tools.keys())
        if unknown:
            raise ConfigurationError(f"requires_approval names tools that do not exist: {', '.join(map(repr, unknown))}")
        return replace(self, names=names)

    def over(self, other: "Approvals") -> "Approvals":
        """Return the union of two rules. The functions and the key of this rule take precedence over those of the other."""
        kept = self.key is not None and self.key.get_secret_value()  # a key that a pickle left behind is empty
        return Approvals(
            names=self.names | other.names,
            predicates=(*self.predicates, *other.predicates),
            every=self.every or other.every,
            approve=other.approve if self.approve is None else self.approve,
            key=self.key if kept or other.key is None else other.key,
            claim=other.claim if self.claim is None else self.claim,
            of_handlers=self.of_handlers or other.of_handlers,
        )

    def __getstate__(self) -> dict[str, Any]:
        rules = {"requires_approval": self.predicates, "approve": self.approve, "claim": self.claim, "handlers": self.of_handlers}
        check_portable("ToolExecutor", rules)  # a copy without them would let everything run
        return {**self.__dict__, "key": portable_key(self.key)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __deepcopy__(self, memo: Any) -> "Approvals":
        return self

    # ------------------------------------------------------------------------------------------ which calls wait

    @property
    def _has_rule(self) -> bool:
        return bool(self.every or self.names or self.predicates)

    @property
    def concerns_calls(self) -> bool:
        """Whether any call may need approval: without a rule, `approve` is called for every call."""
        return self._has_rule or self.approve is not None or self.of_handlers is not None

    def judge_one(self, call: ToolCallRecord, arguments: ArgumentsOf) -> ToolCallRecord:
        """Return the call, waiting if it or a bundled call needs approval; an invalid one has an error and needs none.

        Raises:
            ConfigurationError: A predicate says neither True nor False.
        """
        if not self.concerns_calls or call.args is None or call.waits in FOR_CALLER or call.run is not None or call.decision is not None:
            return call
        if not call.inner:
            return self._judged(call, arguments)
        inner = [self._judged(one, arguments) for one in call.inner]
        needs = any(one.waits for one in inner)
        definitions = {name: definition for one in inner for name, definition in (one.definitions or {}).items()} or None
        judged = replace(call, inner=[replace(one, waits=None) for one in inner], waits="approval" if needs else None)
        return with_definitions(judged, definitions)

    def _judged(self, call: ToolCallRecord, arguments: ArgumentsOf) -> ToolCallRecord:
        known = None if call.args is None else arguments(call.name)
        everywhere = self.every or call.name in self.names or (self.approve is not None and not self._has_rule)
        rules = self.predicates if call.handler is None or self.of_handlers is None else (*self.predicates, self.of_handlers)
        if known is None or not (everywhere or rules):
            return call
        valid = call if call.handler is not None else known.validated(call)
        if valid.args is None:
            return valid
        needs = everywhere or any([checked_rule_answer(predicate(valid)) for predicate in rules])
        if not needs:
            return call
        tool = source_tool(known.tool)
        definitions = None if tool is None or tool.definition is None else {call.name: tool.definition}
        return replace(call, waits="approval", definitions=definitions)

    def judge(
        self, calls: Sequence[ToolCallRecord], arguments: ArgumentsOf, *, in_order: bool, callers: Collection[str] = ()
    ) -> list[ToolCallRecord]:
        """Return the calls, each with the reason why it waits.

        Args:
            calls: The calls as they are meant.
            arguments: The validation of the existing tools' arguments; calls of other tools do not wait.
            in_order: Whether a call waits for those before it.
            callers: The names of tools whose calls are left to the caller anyway.
        """
        judged: list[ToolCallRecord] = []
        waits = False
        for call in calls:
            if call.args is not None and call.name not in callers and call.waits not in FOR_CALLER:
                call = self.judge_one(call, arguments)
                if waits and in_order and call.args is not None and call.waits is None:
                    call = replace(call, waits="queued")
            waits = waits or (call.waits is not None and call.waits not in FOR_CALLER)
            judged.append(call)
        return judged

    def prepared(self, calls: Sequence[ToolCallRecord], arguments: ArgumentsOf, *, in_order: bool) -> list[ToolCallRecord]:
        """Return the calls of a batch, each with the reason why it waits; parameters as of `judge`."""
        return list(calls) if self.judged else self.judge(calls, arguments, in_order=in_order)

    def decided(
        self,
        judged: Sequence[ToolCallRecord],
        known: Sequence[CallIdentity],
        decisions: Sequence[Decision],
        arguments: ArgumentsOf,
        refusals: Refusals,
        *,
        alone: bool = False,
    ) -> list[ToolCallRecord]:
        """Return the calls of a batch, each with its decision.

        Args:
            judged: The calls, each with the reason why it waits.
            known: Their identities.
            decisions: The decisions.
            arguments: The validation of the existing tools' arguments.
            refusals: Collects the errors of decisions about none of these calls, or about one that has a result, or that do not hold.
            alone: Whether the results that there may be are not known.
        """
        made = list(judged)
        results = [one.call.id for one in known if one.result is not None]
        given = by_position(decisions, known, lambda number: self._shown_digest(judged[number], known[number]), results, refusals)
        for number, decision in given.items():
            with refusals.collected():
                record, call = known[number].record, judged[number]
                if record is None and call.waits in FOR_CALLER:
                    self.check_unrecorded(call, decision, str(call.waits), caller_digest(known[number]))
                else:
                    self.check(call, decision, self._recorded(call, known[number]))
                bound = call if record is None else bound_as_recorded(call, record)
                made[number] = replace(bound, waits=call.waits or "approval", decision=decision)
        runs = [call for call in made if call.args is not None and call.waits is None and (call.inner or arguments(call.name) is not None)]
        if alone and runs:
            _logger.warning("%s: %s", _BESIDE, ", ".join(f"{call.name} ({call.id})" for call in runs[:20]))
        return made

    def recorded(self, message: AIMessage, calls: Sequence[ToolCallRecord], new_uuid: Callable[[str], str] | None = None) -> AIMessage:
        """Return the message with a record of each waiting call; `new_uuid` creates a call's UUID from the call's id."""
        nonce = new_uuid or (lambda call_id: str(uuid.uuid4()))
        made = {call.id: {RECORD: self._record(call, nonce(call.id))} for call in calls if call.waits in _RECORDED}
        return with_records(message, made) if made else message

    def _shown_digest(self, call: ToolCallRecord, identity: CallIdentity) -> str:
        """Return the digest of a call as it is shown."""
        by_caller = identity.record is None and call.waits in FOR_CALLER
        return caller_digest(identity) if by_caller else str(self._recorded(call, identity)["digest"])

    def _recorded(self, call: ToolCallRecord, identity: CallIdentity) -> Mapping[str, Any]:
        """Return the record of a call; for a call without one, an equivalent one."""
        return self._record(call, identity.uuid) if identity.record is None else identity.record

    def _record(self, call: ToolCallRecord, nonce: str) -> dict[str, Any]:
        tool = {} if call.name == call.spelling else {"tool": call.name}
        bound = {} if call.definitions is None else {DEFINITIONS: call.definitions}
        kind = call.waits or "approval"
        return {"kind": kind, "uuid": nonce, "digest": self.digest(call, kind, nonce), **tool, **bound}

    def pending(
        self, calls: Sequence[ToolCallRecord], known: Sequence[CallIdentity], arguments: ArgumentsOf, *, in_order: bool
    ) -> list[PendingCall]:
        """Return the pending ones of the calls."""
        judged = self.judge(calls, arguments, in_order=in_order)
        return [self.shown(call, one) for call, one in zip(judged, known, strict=True) if call.waits]

    def shown(self, call: ToolCallRecord, identity: CallIdentity) -> PendingCall:
        """Return a waiting call as a `PendingCall`, with the identity in its approval record, or with one derived from the call."""
        if call.waits in FOR_CALLER:
            return shown_to_caller(identity, cast("PendingKind", call.waits))
        record = self._recorded(call, identity)
        known: dict[str, Any] = {"toolset": None if call.handler is None else call.toolset, **told_of(call.name, record.get(DEFINITIONS))}
        args = copy.deepcopy(call.args or {})
        return PendingCall(call.id, call.shown_name, args, record["kind"], record["uuid"], record["digest"], **known)

    def claim_key(self, call: ToolCallRecord, identity: CallIdentity) -> str:
        """Return the key under which a call is claimed, however it was decided.

        Raises:
            ConfigurationError: It cannot be told from an equal call of another message.
        """
        record = self._recorded(call if call.waits == "approval" else identity.call, identity)
        return claim_key(call, identity, record)

    # ------------------------------------------------------------------------------------------ what was decided

    def checked_key(self) -> str | None:
        """Return the key of the digests; None where there is none.

        Raises:
            ConfigurationError: It is missing because the model was pickled: this is a copy that came out of a pickle.
        """
        key = None if self.key is None else self.key.get_secret_value()
        if key == "":
            raise ConfigurationError(
                "approval_key is in no pickle: give it to this copy, which needs it to show calls and to read decisions"
            )
        return key

    def digest(self, call: ToolCallRecord, kind: str, nonce: str) -> str:
        """Return the digest of a pending call."""
        return digest_of(call, kind, nonce, self.checked_key())

    def check_record(self, call: ToolCallRecord, record: Mapping[str, Any]) -> None:
        """Raise if a call is not the one in its record.

        Raises:
            DecisionsError: It, or its record, was changed since the model wrote it, or the key is another one.
        """
        digest = self.digest(bound_as_recorded(call, record), record["kind"], record["uuid"])
        if not same_digest(record["digest"], digest):
            text = f"call {call.id!r} is not the call that was shown: its name, its arguments, its record or approval_key has changed since"
            raise refusal(record["uuid"], call.id, text)

    def check(self, call: ToolCallRecord, decision: Decision, record: Mapping[str, Any]) -> None:
        """Raise if a decision is not about this call.

        Raises:
            DecisionsError: It is, or the call is not the one that was shown, or it does not take such a decision.
        """
        check_offered(decision.uuid, call.id, record["kind"], decision.action)
        self.check_record(call, record)
        if decision.uuid != record["uuid"] or not same_digest(decision.digest, record["digest"]):
            text = f"the decision on call {call.id!r} is about another call: its digest is not that of the call that waits"
            raise refusal(decision.uuid, call.id, text)

    def check_unrecorded(self, call: ToolCallRecord, decision: Decision, kind: str, digest: str) -> None:
        """Raise if a decision is not about this call, which has no record.

        Args:
            call: The call.
            decision: The decision.
            kind: The reason why the call waits.
            digest: The digest under which it is shown.

        Raises:
            DecisionsError: It is, it takes a record to approve the call, or the call does not take such a decision.
        """
        needs_record = kind == "approval" or (kind == VENDOR_APPROVAL and self.key is not None)
        if needs_record and decision.action in ("approve", "edit"):
            text = f"call {call.id!r} needs approval, and its message has no record that it was shown to anybody"
            raise refusal(decision.uuid, call.id, text, "This call was shown to nobody, so it cannot be approved.")
        check_offered(decision.uuid, call.id, kind if kind in FOR_CALLER else "caller", decision.action)
        if decision.digest != digest:
            text = f"the decision on call {call.id!r} is about another call than the one that waits: their digests differ"
            raise refusal(decision.uuid, call.id, text)


def same_digest(one: str, other: str) -> bool:
    """Whether two digests are equal, compared in constant time because they may come from anybody."""
    return hmac.compare_digest(one.encode(errors="surrogatepass"), other.encode(errors="surrogatepass"))


def checked_rule_answer(needed: Any) -> bool:
    """Return the answer of a rule; raise if it is neither True nor False.

    Raises:
        ConfigurationError: It is neither.
    """
    if not isinstance(needed, bool):
        if inspect.iscoroutine(needed):
            needed.close()
        raise ConfigurationError(f"requires_approval must say True or False of a call, not {type(needed).__name__}")
    return needed


# ---------------------------------------------------------------------------------------------- pickling


def portable_key(key: SecretStr | None) -> SecretStr | None:
    """Return a pickle's replacement for the key, which only marks that there was one."""
    return None if key is None else SecretStr("")


# ---------------------------------------------------------------------------------------------- gate
# The gate before a batch: calls that need approval pass once they have it, and immediate deciders are asked.


_NO_INTERRUPT = (
    "interrupt cannot be called inside approve=: the graph would run the node again, and the model could write other arguments than "
    "were shown. Let one node run the model without approve, which ends with the calls pending; let the next one call "
    "interrupt with what pending_calls(...) shows, and go on with model.resume(history, decisions)"
)

Plan = Callable[[Answer, Decision | None], Answer]
Govern = Callable[[Sequence[Answer]], None]


@dataclass(frozen=True)
class Gate:
    """Lets the approved calls of a batch pass before any of them runs.

    Attributes:
        approvals: The approvals of the calls.
        known: The identities of the calls, in call order.
        plan: Makes the answer to a call that was decided.
        govern: Gives the calls that have passed what their tools' policies say.
        in_order: Whether a call waits for those before it.
        resumed: Whether the calls were found in a run's input.
        claims: What is claimed in the caller's store; None where nothing is.
    """

    approvals: Approvals
    known: Sequence[CallIdentity]
    plan: Plan
    govern: Govern
    in_order: bool
    resumed: bool = False
    claims: Claims | None = None

    def admit(self, answers: Sequence[Answer]) -> Generator[UserCall, Any, list[Answer]]:
        """Yield the questions for the caller's functions one after another and receive their answers; return the answers to execute."""
        passed: list[Answer] = []
        waits = False
        for answer, identity in zip(answers, self.known, strict=True):
            call, decision = answer.call, answer.call.decision
            if (call.waits in FOR_CALLER and decision is None) or (waits and self.in_order and _would_run(call) and call.run is None):
                continue
            if call.waits == "approval" and decision is None and _would_run(call):
                decision = yield from self._ask(call, identity)
                if decision is None:
                    waits = True
                    continue
            ready = self.plan(answer, decision) if call.waits else answer
            # where the store only takes keys, a decision is claimed about a call that runs here
            decided = self.resumed or identity.record is not None or call.waits is not None or call.decision is not None
            runs = _would_run(ready.call) and not goes_on_by_itself(ready)
            if decided and self.claims is not None and (self.claims.owned or runs):
                ready = replace(ready, claim_key=self.approvals.claim_key(call, identity))
            passed.append(ready)
        self.govern(passed)
        return passed

    def _ask(self, call: ToolCallRecord, identity: CallIdentity) -> Generator[UserCall, Any, Decision | None]:
        if self.approvals.approve is None:
            return None
        record = identity.record
        if record is not None and (record["kind"] != call.waits or record.get(DEFINITIONS, call.definitions) != call.definitions):
            identity = replace(identity, record=None)  # it is shown as it is now
        pending = self.approvals.shown(call, identity)
        with no_interrupt():
            decision = yield self.approvals.approve, pending
        return checked_decision(decision, pending)


@contextmanager
def no_interrupt() -> Iterator[None]:
    """Raise in place of an interrupt of a graph, which would run the node again.

    Raises:
        ConfigurationError: There was one.
    """
    try:
        yield
    except Exception as error:
        if is_graph_signal(error):
            raise ConfigurationError(_NO_INTERRUPT) from error
        raise


def checked_decision(decision: Any, pending: PendingCall) -> Decision | None:
    """Return what `approve` has decided about a call; None if it leaves the call pending.

    Raises:
        ConfigurationError: It is no decision about this call.
    """
    if decision is None or decision is NOTHING:
        return None
    if not isinstance(decision, Decision):
        raise ConfigurationError(f"approve must return what a method of PendingCall returns, or None, not {type(decision).__name__}")
    if (decision.id, decision.uuid, decision.digest) != (pending.id, pending.uuid, pending.digest):
        raise ConfigurationError(f"approve was asked about call {pending.id!r}, and decided about another one")
    return decision


def _would_run(call: ToolCallRecord) -> bool:
    """Whether a call would run here once nothing holds it up, rather than only be answered."""
    runs = call.runs_here and call.args is not None and any(one.args is not None for one in call.inner or (call,))
    return runs and (call.decision is None or call.decision.action in ("approve", "edit"))


# Admission of a batch's calls, before any of them begins.
class Admission(Protocol):
    """Admits the calls of a batch: once, in call order, in the run's thread. An exception ends the batch with nothing run."""

    def admit(self, answers: Sequence[Answer]) -> Generator[UserCall, Any, Sequence[Answer]]:
        """Decide which calls of a batch run, as a generator of questions for the caller's functions, which receives the answers.

        Args:
            answers: What answers each call.

        Returns:
            The answers of the calls that run or are answered; the others stay pending.
        """


@dataclass(frozen=True)
class Reservation:
    """Reserves a journal entry for each planned call admitted so far.

    Attributes:
        entries: Gives the places of so many calls, in call order.
    """

    entries: Callable[[int], Sequence[CallWrapper]]

    def admit(self, answers: Sequence[Answer]) -> Generator[UserCall, Any, Sequence[Answer]]:
        """Return the answers with a journal entry for each planned call."""
        entries = iter(self.entries(sum(len(answer.planned) for answer in answers)))
        return [replace(answer, planned=[replace(one, entry=next(entries)) for one in answer.planned]) for answer in answers]
        yield  # makes it a generator
