"""The journal of a run in DBOS: each turn is recorded as one step, each call as two.

A turn is one step: its output is the turn's message. A call is two steps: one that says which execution of the workflow began it, and one
whose output is its result. A result that is not there while the first step is another execution's belongs to a call that was running when
that execution ended: what it did is not known, and it does not run again. A call that may run again has the second step only.

DBOS numbers steps as they begin, and parallel calls begin in any order: their results would be swapped at the next execution. So the
steps of all calls of a turn are reserved in call order before any of them begins (`DBOS.reserve_step`), and run from any thread.
"""

import asyncio
import queue
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import copy_context
from functools import partial
from typing import Any

from dbos import DBOS, StepReservation
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage

from ..chunks import ChunkSum, as_chunk
from ..deadline import Deadline, DeadlinePassed
from ..executor.call_hooks import PENDING, BatchEnded, InThread, Outcome, Proceed, Steps, ends_as
from ..executor.plan import PlannedCall
from ..executor.results import describe, failed
from ..executor.threads import run_beside
from ..messages.calls import ToolCallRecord
from ..messages.run_messages import derived_id
from ..run.turn_wrappers import Discarded, Mark, Notice, RunJournal, Stored, TurnPart, TurnRequest
from ..run.turn_wrappers import Proceed as ProceedTurn
from ..turn.accumulator import ai_message
from .recorded_events import NotRecorded, RecordedTexts, error_text, event_of, row_of, run_exception
from .stored import RunFailedError, checked, mapping_of, plain_messages, plain_result, reading, reply_of, result_of, storable, storable_text
from .workers import Execution, Lifetime

_INTERRUPTED = "interrupted, outcome unknown: the process that ran this call has ended. What it did may remain; check before you repeat it."
_END: Any = object()
_NAMESPACE = uuid.UUID("3e5f6c1c-9d0a-4c56-8a53-1b7f0c6d2a94")


class Journal(RunJournal):
    """The journal of one execution of a run's workflow.

    Args:
        execution: The execution.
        started: When the run began for the first time, by `clock`.
        clock: Seconds since the epoch.
        rerun: The names of the tools that may run again where it is not known what they did.
        lifetime: Tells when this worker is ending: nothing is recorded then of what fails.
        texts: Takes the large texts that are recorded.
    """

    def __init__(
        self,
        execution: Execution,
        started: float,
        clock: Callable[[], float],
        rerun: Collection[str],
        lifetime: Lifetime,
        texts: RecordedTexts,
    ) -> None:
        self.texts = texts
        self.execution = execution
        self._started = started
        self._clock = clock
        self._rerun = frozenset(rerun)
        self._lifetime = lifetime
        self._read_until = 0.0
        self._reads = True  # what earlier executions did; until a step has to be done
        self._turns = 0

    # ------------------------------------------------------------------------------------------ time

    def now(self) -> float:
        """Return the seconds since the run began; during replay those at which the replayed entry was written."""
        return self._read_until if self._reads else self._clock() - self._started

    def left(self, seconds: float | None) -> float | None:
        """Return the rest of a run's time limit; negative after its end."""
        return None if seconds is None else seconds - (self._clock() - self._started)

    def is_cancelled(self) -> bool:
        """Whether the run has been cancelled; never during replay."""
        return not self._reads and self.execution.cancelled.is_set()

    def written(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return the record of a step with its time."""
        return storable({**record, "at": self._clock() - self._started})

    def read(self, record: Any, *keys: str) -> Mapping[str, Any]:
        """Return the record of a replayed step, which must have these keys, and set the clock to it."""
        known = checked(mapping_of(record, "at", *keys), at=int | float, error=str | None, raised=str | None)
        self._read_until = max(self._read_until, known["at"])
        return known

    def reading(self, is_new: Callable[[], bool]) -> AbstractContextManager[None]:
        """Return a context manager in which a step of the run is read, or made anew."""
        return reading(f"a step of run {self.execution.run_id!r}", is_new)

    # ------------------------------------------------------------------------------------------ turns

    def uuid(self, message_id: str, call_id: str) -> str:
        """Return the UUID of a waiting call, unpredictable before its message exists."""
        return derived_id(_NAMESPACE, f"{self.execution.run_id}\x1e{message_id}\x1e{call_id}")

    def wrap_turn(self, request: TurnRequest, proceed: ProceedTurn) -> Iterator[TurnPart]:
        """Yield the parts of a turn as they arrive, or the message that an earlier execution recorded."""
        self._turns += 1
        self.execution.messages = request.messages
        turn = _Turn(self, self._turns, proceed(request), request.end)
        yield from turn.parts()
        if not turn.began:
            yield from self._replayed(turn.record, request.end)

    def _replayed(self, made: Any, end: Deadline) -> Iterator[TurnPart]:
        with self.reading(lambda: False):
            record = self.read(made, "error", "message", "cut")
            if record["error"] is not None:
                raise RunFailedError(record["error"])
            parts: list[TurnPart] = [Notice(event_of(row)) for row in record.get("notices", ())]
            if record["message"] is not None:
                parts.append(reply_of(record["message"]))
        yield from parts
        if record["cut"] is not None:
            self._reads = False
            if record["cut"] == "cancelled":
                self.execution.cancelled.set()
                end.passed()
            with end.ends_turn():
                raise DeadlinePassed(end)

    # ------------------------------------------------------------------------------------------ calls

    def entries(self, count: int) -> Sequence["_Call"]:
        """Reserve the steps of this many calls, in call order."""
        return [_Call(self, DBOS.reserve_step(), DBOS.reserve_step()) for _ in range(count)]

    def may_rerun(self, call: ToolCallRecord) -> bool:
        """Whether the call may run again where it is not known what it did."""
        return call.name in self._rerun

    def leave(self, error: BaseException | None) -> None:
        """Leave the run without a record if an error was raised because its worker is ending, unless the run has been cancelled.

        Raises:
            WorkerEndingError: It is ending.
        """
        if not self.execution.cancelled.is_set():
            self._lifetime.leave(error)

    def goes_on(self) -> None:
        """Record that execution goes beyond what earlier ones recorded.

        Raises:
            RunFailedError: It must not: the run may be what ends its workers.
        """
        if self.execution.refusal is not None:
            raise RunFailedError(self.execution.refusal)
        self._reads = False


def _not_recorded() -> str:
    """Leave a step that no earlier execution has recorded."""
    raise NotRecorded


class _Turn:
    """One turn, executed in a step in its own thread while its parts are yielded."""

    def __init__(self, journal: Journal, number: int, parts: Iterator[TurnPart], end: Deadline) -> None:
        self.began = False
        self.record: dict[str, Any] = {}
        self._journal = journal
        self._number = number
        self._parts = parts
        self._end = end
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._error: BaseException | None = None

    def parts(self) -> Iterator[TurnPart]:
        """Yield the parts as they arrive; none if the turn was replayed."""
        step = DBOS.reserve_step()
        run_beside(partial(copy_context().run, self._work, step))
        while (part := self._queue.get()) is not _END:
            yield part
        if self._error is not None:
            raise self._error

    def _work(self, step: StepReservation) -> None:
        try:
            with self._journal.reading(lambda: self.began):
                self.record = step.run({"name": f"turn {self._number}"}, self._make)
            self._journal.texts.add(self.record)
            if self.began:
                self._journal.execution.recorded()
        except BaseException as error:
            self._error = error
        finally:
            self._queue.put(_END)

    def _make(self) -> dict[str, Any]:
        self.began = True
        whole: AIMessage | None = None
        chunks, notices = ChunkSum(), list[dict[str, Any]]()
        try:
            self._journal.goes_on()
            for part in self._parts:
                part = ai_message(part) if isinstance(part, BaseMessage) else part
                self._queue.put(part)
                if isinstance(part, AIMessageChunk):
                    chunks.add(part)
                elif not isinstance(part, Mark):
                    whole = part
                elif isinstance(part, Stored):
                    whole = part.message
                elif isinstance(part, Discarded):
                    chunks = ChunkSum()
                elif isinstance(part, Notice):
                    notices.append(row_of(part.event))
        except BaseException as error:
            self._journal.leave(error)
            self._error = run_exception(error)
            return self._journal.written({"message": None, "cut": None, "error": error_text(error)})
        cut = None if self._end.cut is None else self._end.reason
        message = chunks.message() if whole is None and chunks else whole
        if cut is not None and message is not None:
            message = as_chunk(message)
        record = {"message": plain_messages([message])[0] if message else None, "cut": cut, "error": None}
        return self._journal.written({**record, **({"notices": notices} if notices else {})})


class _Call:
    """The steps of one call, as the outermost wrapper of it."""

    def __init__(self, journal: Journal, begun: StepReservation, ended: StepReservation) -> None:
        self._journal = journal
        self._begun = begun
        self._ended = ended
        self._raised: Exception | None = None
        self._made = False

    def __call__(self, planned: PlannedCall, proceed: Proceed) -> Steps:
        """Return the recorded outcome of the call, or execute the call and record its outcome.

        A call that has nothing to run now, such as one of a removed tool, has the outcome of an earlier execution, if there was one.
        """
        if planned.run is not None:
            return self._outcome(planned, proceed)
        known = self._outcome_of(planned.call, lambda: self._earlier(planned.call))
        return proceed(planned) if known is None else ends_as(known)

    def _outcome(self, planned: PlannedCall, proceed: Proceed) -> Steps:
        outcome: Outcome | None = yield InThread(
            lambda carry: self._outcome_of(planned.call, lambda: self._recorded(planned.call, lambda: carry(proceed(planned))))
        )
        if outcome is None:
            raise BatchEnded
        return outcome

    def _recorded(self, call: ToolCallRecord, run: Callable[[], Outcome]) -> dict[str, Any]:
        """Return the record of the call, made now if there is none. Nobody asks who began a call that may run again."""
        journal = self._journal
        begun_by = journal.execution.id if journal.may_rerun(call) else self._begun_by(call, lambda: journal.execution.id)
        return self._ended_as(call, self._make, call, begun_by, run)

    def _earlier(self, call: ToolCallRecord) -> dict[str, Any]:
        """Return the record that an earlier execution made of the call, or one of the call's interruption if it only began it."""
        try:
            begun_by = self._begun_by(call, _not_recorded)
        except NotRecorded:  # one that may run again, in that execution
            return self._ended_as(call, _not_recorded)
        return self._ended_as(call, self._make, call, begun_by, partial(failed, call, _INTERRUPTED, executed=True))

    def _begun_by(self, call: ToolCallRecord, begin: Callable[[], str]) -> str:
        execution: str = self._begun.run({"name": storable_text(f"begin {call.id}")}, begin)
        return execution

    def _ended_as(self, call: ToolCallRecord, make: Callable[..., Any], *args: Any) -> dict[str, Any]:
        record: dict[str, Any] = self._ended.run({"name": storable_text(f"call {call.id}")}, make, *args)
        return record

    def _outcome_of(self, call: ToolCallRecord, recorded: Callable[[], dict[str, Any]]) -> Outcome | None:
        """Return the outcome in a record; None if the run ended before there was one."""
        with self._journal.reading(lambda: self._made):
            try:
                made = recorded()
            except NotRecorded:
                return None
            if self._made:
                self._journal.execution.recorded()
            self._journal.texts.add(made)
            record = self._journal.read(made, "result", "raised")
            if record["raised"] is not None:
                raise self._raised or RunFailedError(record["raised"])
            return PENDING if record["result"] is None else result_of(call, record["result"])

    def _make(self, call: ToolCallRecord, begun_by: str, run: Callable[[], Outcome]) -> dict[str, Any]:
        self._made = True
        raised, outcome = None, None
        try:
            self._journal.goes_on()
            outcome = self._done(call, run) if begun_by == self._journal.execution.id else failed(call, _INTERRUPTED, executed=True)
        except Exception as error:
            self._raised = error
            raised = error_text(error)
        result = None if outcome is None or outcome is PENDING else plain_result(outcome)
        return self._journal.written({"result": result, "raised": raised})

    def _done(self, call: ToolCallRecord, run: Callable[[], Outcome]) -> Outcome:
        """Return the tool's result; an error for the model also for exceptions that are not an `Exception`."""
        try:
            outcome = run()
        except (asyncio.CancelledError, BatchEnded):  # the run ended before the call began: a tool's own is a result
            raise NotRecorded from None
        except BaseException as error:
            self._journal.leave(error)
            if isinstance(error, Exception):
                raise
            return failed(call, describe(error), error, executed=True)
        if outcome is not PENDING and outcome.error is not None:
            self._journal.leave(outcome.error)
        return outcome
