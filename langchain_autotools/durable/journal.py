"""A run's journal, kept by DBOS.

A turn is one step: its output is the turn's message. A call is two steps: one that says which execution of the workflow began it, and one
whose output is its result. A result that is not there while the first step is another execution's belongs to a call that was running
when that execution ended: what it did is not known, and it does not run again unless it may.

DBOS numbers steps as they begin, and parallel calls begin in any order: their results would be swapped at the next execution. So the
steps of all calls of a turn are reserved in call order before any of them begins (`DBOS.reserve_step`), and run from any thread.
"""

import queue
import threading
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextvars import copy_context
from functools import partial
from typing import Any

from dbos import DBOS, StepReservation
from langchain_core.messages import AIMessage, AIMessageChunk

from ..cancelling import Cancel
from ..chunks import ChunkSum, as_chunk
from ..deadline import DeadlinePassed
from ..executor import ToolCallResult
from ..executor.results import failed
from ..executor.threads import run_beside
from ..messages.calls import ToolCallRecord
from .errors import RunFailedError
from .live import NotRecorded
from .plain import message_of, plain_messages, plain_result, result_of

_INTERRUPTED = "interrupted, outcome unknown: the process that ran this call has ended. What it did may remain; check before you repeat it."
_END: Any = object()
_NAMESPACE = uuid.UUID("3e5f6c1c-9d0a-4c56-8a53-1b7f0c6d2a94")


class Journal:
    """The journal of one execution of a run's workflow.

    Args:
        started: When the run began for the first time, by `clock`.
        clock: Seconds since the epoch.
        cancelled: Is set when somebody has cancelled the run.
        rerun: The names of the tools that may run again where it is not known what they did.

    Attributes:
        execution: Names this execution.
    """

    def __init__(self, started: float, clock: Callable[[], float], cancelled: threading.Event, rerun: Collection[str]) -> None:
        self.execution = uuid.uuid4().hex
        self._run_id = str(DBOS.workflow_id)
        self._started = started
        self._clock = clock
        self._cancelled = cancelled
        self._rerun = frozenset(rerun)
        self._read_until = 0.0
        self._reads = True  # what earlier executions did; until a step has to be done
        self._turns = 0

    # ------------------------------------------------------------------------------------------ time

    def now(self) -> float:
        """Seconds since the run began; while the journal is read, those at which what was read was written."""
        return self._read_until if self._reads else self._clock() - self._started

    def left(self, seconds: float | None) -> float | None:
        """How much is left of the seconds that a run may take; negative where they are over."""
        return None if seconds is None else seconds - (self._clock() - self._started)

    def is_cancelled(self) -> bool:
        """Whether somebody has cancelled the run; never while the journal is read."""
        return not self._reads and self._cancelled.is_set()

    def written(self, record: dict[str, Any]) -> dict[str, Any]:
        """What a step records, with the time at which it does."""
        return {**record, "at": self._clock() - self._started}

    def read(self, record: dict[str, Any]) -> dict[str, Any]:
        """What a step has recorded."""
        self._read_until = max(self._read_until, record["at"])
        return record

    # ------------------------------------------------------------------------------------------ turns

    def uuid(self, message_id: str, call_id: str) -> str:
        """The UUID of a call that waits, which nobody knows before its message is there."""
        return str(uuid.uuid5(_NAMESPACE, f"{self._run_id}\x1e{message_id}\x1e{call_id}"))

    def turn(self, parts: Iterator[AIMessage], cancel: Cancel) -> Iterator[AIMessage]:
        """The parts of a turn as they come, or the message that an earlier execution recorded."""
        self._turns += 1
        turn = _Turn(self, self._turns, parts, cancel)
        yield from turn.parts()
        if not turn.began:
            yield from self._replayed(self.read(turn.record), cancel)

    def _replayed(self, record: dict[str, Any], cancel: Cancel) -> Iterator[AIMessage]:
        if record["error"] is not None:
            raise RunFailedError(record["error"])
        if record["message"] is not None:
            yield message_of(record["message"])
        if record["cut"] is not None:
            self._reads = False
            if record["cut"] == "cancelled":
                self._cancelled.set()
                cancel.is_set()
            with cancel.ends_turn():
                raise DeadlinePassed(cancel)

    # ------------------------------------------------------------------------------------------ calls

    def entries(self, count: int) -> Sequence["_Call"]:
        """The steps of so many calls, reserved in call order."""
        return [_Call(self, DBOS.reserve_step(), DBOS.reserve_step()) for _ in range(count)]

    def may_run(self, call: ToolCallRecord, begun_by: str) -> bool:
        """Whether a call without a recorded result may run now."""
        return begun_by == self.execution or call.name in self._rerun

    def goes_on(self) -> None:
        """Note that something has to be done that no earlier execution did."""
        self._reads = False


class _Turn:
    """One turn, made in a step in a thread of its own while its parts are handed on."""

    def __init__(self, journal: Journal, number: int, parts: Iterator[AIMessage], cancel: Cancel) -> None:
        self.began = False
        self.record: dict[str, Any] = {}
        self._journal = journal
        self._number = number
        self._parts = parts
        self._cancel = cancel
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._error: BaseException | None = None

    def parts(self) -> Iterator[AIMessage]:
        """The parts as they come; none where the turn was made before."""
        step = DBOS.reserve_step()
        run_beside(partial(copy_context().run, self._work, step))
        while (part := self._queue.get()) is not _END:
            yield part
        if self._error is not None:
            raise self._error

    def _work(self, step: StepReservation) -> None:
        try:
            self.record = step.run({"name": f"turn {self._number}"}, self._make)
        except BaseException as error:
            self._error = error
        finally:
            self._queue.put(_END)

    def _make(self) -> dict[str, Any]:
        self.began = True
        self._journal.goes_on()
        whole: AIMessage | None = None
        chunks = ChunkSum()
        try:
            for part in self._parts:
                self._queue.put(part)
                if isinstance(part, AIMessageChunk):
                    chunks.add(part)
                else:
                    whole = part
        except Exception as error:
            self._error = error
            return self._journal.written({"message": None, "cut": None, "error": f"{type(error).__name__}: {error}"})
        cut = None if self._cancel.cut is None else self._cancel.reason
        message = chunks.message() if whole is None and chunks else whole
        if cut is not None and message is not None:
            message = as_chunk(message)
        return self._journal.written({"message": plain_messages([message])[0] if message else None, "cut": cut, "error": None})


class _Call:
    """The steps of one call."""

    def __init__(self, journal: Journal, begun: StepReservation, ended: StepReservation) -> None:
        self._journal = journal
        self._begun = begun
        self._ended = ended
        self._raised: Exception | None = None

    def result(self, call: ToolCallRecord, run: Callable[[], ToolCallResult | None]) -> ToolCallResult | None:
        """The call's result, recorded or made now; None, unrecorded, where the run ended before there was one."""
        begun_by = self._begun.run({"name": f"begin {call.id}"}, self._begin)
        try:
            record = self._ended.run({"name": f"call {call.id}"}, self._make, call, begun_by, run)
        except NotRecorded:
            return None
        self._journal.read(record)
        if record["raised"] is not None:
            raise self._raised or RunFailedError(record["raised"])
        return result_of(call, record["result"])

    def _begin(self) -> str:
        return self._journal.execution

    def _make(self, call: ToolCallRecord, begun_by: str, run: Callable[[], ToolCallResult | None]) -> dict[str, Any]:
        self._journal.goes_on()
        raised, result = None, None
        if not self._journal.may_run(call, begun_by):
            result = failed(call, _INTERRUPTED, executed=True)
        else:
            try:
                result = run()
            except Exception as error:
                self._raised = error
                raised = f"{type(error).__name__}: {error}"
            if result is None and raised is None:
                raise NotRecorded
        return self._journal.written({"result": plain_result(result) if result else None, "raised": raised})
