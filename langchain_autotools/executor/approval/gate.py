"""The gate before a batch: calls that need approval pass once they have it, and immediate deciders are asked."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from ...compat import is_graph_signal
from ...errors import ConfigurationError
from ...messages.calls import FOR_CALLER, ToolCallRecord
from ..plan import Answer
from ..workers.asking import NOTHING, Question
from .approvals import Approvals
from .identity import CallIdentity
from .pending import Decision, PendingCall

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
    """

    approvals: Approvals
    known: Sequence[CallIdentity]
    plan: Plan
    govern: Govern
    in_order: bool
    resumed: bool = False

    def admit(self, answers: Sequence[Answer]) -> Generator[Question, Any, list[Answer]]:
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
            if self.approvals.claim is not None and _would_run(ready.call) and self._was_decided(call, identity):
                ready = replace(ready, claim_key=self.approvals.claim_key(call, identity))
            passed.append(ready)
        self.govern(passed)
        return passed

    def _was_decided(self, call: ToolCallRecord, identity: CallIdentity) -> bool:
        """Whether a decision to run a call exists, and may be repeated. One that goes on was taken when it began."""
        return call.run is None and (self.resumed or identity.record is not None or call.waits is not None or call.decision is not None)

    def _ask(self, call: ToolCallRecord, identity: CallIdentity) -> Generator[Question, Any, Decision | None]:
        if self.approvals.approve is None:
            return None
        record = identity.record
        pending = self.approvals.shown(call, identity if record is None or record["kind"] == call.waits else replace(identity, record=None))
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
