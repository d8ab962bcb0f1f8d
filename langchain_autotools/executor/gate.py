"""The gate before a batch of calls: those that need approval pass once they have it, and whoever decides at once is asked here."""

import asyncio
import inspect
import logging
from collections.abc import Callable, Collection, Generator, Sequence
from concurrent.futures import Future, wait
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..compat import is_graph_signal
from ..errors import AlreadyResumedError, ConfigurationError
from ..messages.calls import FOR_CALLER, ToolCallRecord
from .approvals import Approvals
from .background import BackgroundTask, awaited
from .identity import CallIdentity
from .pending import Decision
from .plan import Answer
from .threads import run_beside

_logger = logging.getLogger("langchain_autotools")

_NO_INTERRUPT = (
    "interrupt cannot be called inside approve=: the graph would run the node again, and the model could write other arguments than "
    "were shown. Let one node run the model without approve, which ends with the calls pending; let the next one call "
    "interrupt with what pending_calls(...) shows, and go on with model.resume(history, decisions)"
)

_TAKEN = "Not run here: this call was decided once already, and another run has carried it out, or is about to."
_OVER = "Not run: the run was over."

_NOTHING: Any = object()
"""What is said where there was no time to ask, or to wait for the answer."""

Question = tuple[Callable[[Any], Any], Any]
"""A function of the caller's, which may be asynchronous, and what it is asked."""


Plan = Callable[[Answer, Decision | None], Answer]
Govern = Callable[[Sequence[Answer]], Collection[int]]


@dataclass(frozen=True)
class Gate:
    """Lets the calls of a batch pass, before any of them runs: those that need approval once they have it.

    Attributes:
        approvals: What they need.
        known: The identities of the calls, in call order.
        plan: Makes the answer to a call that was decided.
        govern: Gives the calls that have passed what their tools' policies say; returns the positions of those that run alone.
        in_order: Whether a call waits for those before it.
        resumed: Whether the calls were found in a run's input.
    """

    approvals: Approvals
    known: Sequence[CallIdentity]
    plan: Plan
    govern: Govern
    in_order: bool
    resumed: bool = False

    def questions(self, answers: Sequence[Answer]) -> Generator[Question, Any, list[Answer]]:
        """Yields whom to ask what, one after another, and is sent what they say; returns the answers to be carried out."""
        passed: list[Answer] = []
        waits = False
        taken: list[bool] = []
        for answer, identity in zip(answers, self.known, strict=True):
            call, decision = answer.call, answer.call.decision
            if (call.waits in FOR_CALLER and decision is None) or (waits and self.in_order and _would_run(call)):
                continue
            if call.waits == "approval" and decision is None and _would_run(call):
                decision = yield from self._ask(call, identity)
                if decision is None:
                    waits = True
                    continue
            ready = self.plan(answer, decision) if call.waits else answer
            if self.approvals.claim is not None and self._was_decided(call, identity) and _would_run(ready.call):
                key = self.approvals.claim_key(call, identity)
                ready = yield from self._claimed(ready, key, self.approvals.claim, taken)
            passed.append(ready)
        if taken and not any(taken):
            raise AlreadyResumedError("these calls were decided before: another run has carried them out, or is about to")
        return passed

    def _was_decided(self, call: ToolCallRecord, identity: CallIdentity) -> bool:
        """Whether somebody decided that a call runs, and may decide so again."""
        return self.resumed or identity.record is not None or call.waits is not None or call.decision is not None

    def _claimed(self, answer: Answer, key: str, claim: Callable[[str], Any], taken: list[bool]) -> Generator[Question, Any, Answer]:
        """The answer to a call that was shown, if no other run has taken the call; notes that in `taken`."""
        call = answer.call
        claimed = yield claim, key
        if claimed is _NOTHING:
            _logger.warning("the run has ended before claim said anything about call %s, which does not run", call.id)
            return self._rejected(answer, _OVER)
        if not isinstance(claimed, bool):
            raise ConfigurationError(f"claim must say True or False of a key, not {type(claimed).__name__}")
        taken.append(claimed)
        return answer if claimed else self._rejected(answer, _TAKEN)

    def _rejected(self, answer: Answer, why: str) -> Answer:
        call = replace(answer.call, edited=False)
        return self.plan(replace(answer, call=call), Decision(call.id, "reject", why))

    def _ask(self, call: ToolCallRecord, identity: CallIdentity) -> Generator[Question, Any, Decision | None]:
        if self.approvals.approve is None:
            return None
        record = identity.record
        pending = self.approvals.shown(call, identity if record is None or record["kind"] == call.waits else replace(identity, record=None))
        try:
            decision = yield self.approvals.approve, pending
        except Exception as error:
            if is_graph_signal(error):
                raise ConfigurationError(_NO_INTERRUPT) from error
            raise
        if decision is None or decision is _NOTHING:
            return None
        if not isinstance(decision, Decision):
            raise ConfigurationError(f"approve must return what a method of PendingCall returns, or None, not {type(decision).__name__}")
        if (decision.id, decision.uuid, decision.digest) != (pending.id, pending.uuid, pending.digest):
            raise ConfigurationError(f"approve was asked about call {call.id!r}, and decided about another one")
        return decision


def _would_run(call: ToolCallRecord) -> bool:
    """Whether a call runs once nothing holds it up any more, and is not only answered."""
    runs = call.args is not None and any(one.args is not None for one in call.inner or (call,))
    return runs and (call.decision is None or call.decision.action in ("approve", "edit"))


# ---------------------------------------------------------------------------------------------- asking


def opened(gate: Gate, answers: Sequence[Answer], is_over: Callable[[], bool], patience: Callable[[], float | None]) -> list[Answer]:
    """The answers that pass the gate, after everybody was asked. Functions are asked here, or in a thread where there may come an end.

    Args:
        gate: The gate.
        answers: The answers before it.
        is_over: Whether nobody is to be asked, or waited for, any more.
        patience: How many seconds may pass before that is looked at again; None for any number.
    """
    questions, said = gate.questions(answers), None
    while True:
        try:
            function, argument = questions.send(said)
        except StopIteration as end:
            passed: list[Answer] = end.value
            return passed
        try:
            said = _NOTHING if is_over() else _ask(function, argument, is_over, patience)
        except Exception as error:
            questions.throw(error)


def _ask(function: Callable[[Any], Any], argument: Any, is_over: Callable[[], bool], patience: Callable[[], float | None]) -> Any:
    """What a function says; `_NOTHING` where there is no time for it."""
    if patience() is None:
        said = function(argument)
    else:
        outcome = _in_thread(function, argument)
        while not wait([outcome], patience()).done:
            if is_over():
                return _NOTHING
        said = outcome.result()
    if not inspect.isawaitable(said):
        return said
    task = BackgroundTask(awaited(said))
    task.start()
    while not task.wait(patience()):
        if is_over():
            task.cancel()
            return _NOTHING
    return task.result()


async def aopened(gate: Gate, answers: Sequence[Answer], is_over: Callable[[], bool], patience: Callable[[], float | None]) -> list[Answer]:
    """Like `opened`, asynchronously. A synchronous function, which may wait for a human, is asked in a thread."""
    questions, said = gate.questions(answers), None
    while True:
        try:
            function, argument = questions.send(said)
        except StopIteration as end:
            passed: list[Answer] = end.value
            return passed
        try:
            said = _NOTHING if is_over() else await _aask(function, argument, is_over, patience)
        except Exception as error:
            questions.throw(error)


async def _aask(function: Callable[[Any], Any], argument: Any, is_over: Callable[[], bool], patience: Callable[[], float | None]) -> Any:
    asked = asyncio.create_task(_said(function, argument))
    try:
        while not (await asyncio.wait([asked], timeout=patience()))[0]:
            if is_over():
                return _NOTHING
        return asked.result()
    finally:
        asked.cancel()
        await asyncio.wait([asked], timeout=1.0)


async def _said(function: Callable[[Any], Any], argument: Any) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(argument)
    said = await asyncio.wrap_future(_in_thread(function, argument))
    return await said if inspect.isawaitable(said) else said


def _in_thread(function: Callable[[Any], Any], argument: Any) -> Future[Any]:
    outcome: Future[Any] = Future()
    run_beside(partial(copy_context().run, _answer_into, outcome, function, argument))
    return outcome


def _answer_into(outcome: Future[Any], function: Callable[[Any], Any], argument: Any) -> None:
    if not outcome.set_running_or_notify_cancel():
        return
    try:
        outcome.set_result(function(argument))
    except BaseException as error:
        outcome.set_exception(error)
