"""The journal of a run in DBOS: its turns, its calls, its events, what steers it, each recorded as it happens.

A turn is one step: its output is the turn's message. A further request of it, such as one for a summary, is a step before that is recorded,
for which the turn's record keeps the numbers. A call is two steps: one that says which execution of the workflow began it, and one
whose output is its result. A result that is not there while the first step is another execution's belongs to a call that was running when
that execution ended: what it did is not known, and it does not run again. A call that may run again has the second step only. A reading
of the inbox is a step if it finds something, under a name that says where it was.

DBOS numbers steps as they begin, and parallel calls begin in any order: their results would be swapped at the next execution. So the
steps of all calls of a turn are reserved in call order before any of them begins (`DBOS.reserve_step`), and run from any thread.
"""

import asyncio
import hashlib
import json
import logging
import queue
import threading
import uuid
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import copy_context
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from typing import Any, cast, get_type_hints

from dbos import DBOS, StepReservation
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage

from .. import event_types as kinds
from ..chunks import ChunkSum, as_chunk
from ..deadline import Deadline, DeadlinePassed
from ..encoders.public import plain
from ..event_bus import Listener, Scope, current_scope
from ..event_types import RunEvent
from ..executor import Decision, PendingCall, ToolCallResult
from ..executor.plan import PlannedCall
from ..executor.results import describe, failed
from ..executor.steps import PENDING, BatchEnded, InThread, Outcome, Proceed, Steps, ends_as
from ..executor.user_functions import run_beside
from ..messages.calls import ToolCallRecord
from ..messages.run_messages import derived_id
from ..run.turn_wrappers import Discarded, Mark, Notice, RunJournal, Stored, TurnPart, TurnRequest
from ..run.turn_wrappers import Proceed as ProceedTurn
from ..strict_json import mend_surrogates
from ..turn.accumulator import ai_message
from .engine import outside
from .stored import RunFailedError, checked, mapping_of, message_of, plain_messages, reading, reply_of, storable, storable_text
from .workers import Execution, Lifetime

_logger = logging.getLogger("langchain_autotools")

STREAM = "run"
"""The key of the workflow's stream that readers follow."""

_BATCH_SECONDS = 0.1  # how long events wait for more, so that each batch and not each word is a row
_LARGE = 10_000  # characters from which on a text is named
_TEXT = "autotools_text"  # the only key of what is in a text's place, with its digest
_NAMES = "names_texts"  # the key of what has such names


# ---------------------------------------------------------------------------------------------- large texts, stored once


class RecordedTexts:
    """The large texts that an execution knows to be recorded in steps of its run."""

    def __init__(self) -> None:
        self._digests: set[str] = set()

    def add(self, record: Mapping[str, Any]) -> None:
        """Add the large texts of a step's record, once the step is recorded."""
        _mapped(record, lambda text: self._digests.add(_digest(text)))

    def named(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return plain JSON with names in place of recorded texts."""
        if not self._digests:
            return data
        named = _mapped(data, self._name_of)
        return data if named == data else {**named, _NAMES: True}

    def _name_of(self, text: str) -> Any:
        digest = _digest(text)
        return {_TEXT: digest} if digest in self._digests else text


def with_texts(run_id: str, data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an outcome or a row of events of a run with the texts that it names.

    Raises:
        LookupError: No step of the run has one of them.
    """
    if not isinstance(data, Mapping) or not data.get(_NAMES):  # a row that is no mapping is its reader's to refuse
        return data
    texts: dict[str, str] = {}
    for step in outside(DBOS.list_workflow_steps, run_id):
        _mapped(step["output"], lambda text: texts.setdefault(_digest(text), text))
    named = json.dumps({key: value for key, value in data.items() if key != _NAMES})
    return cast("dict[str, Any]", json.loads(named, object_hook=lambda one: texts[one[_TEXT]] if one.keys() == {_TEXT} else one))


def _mapped(value: Any, change: Callable[[str], Any]) -> Any:
    """Return plain JSON with its large texts changed."""
    if isinstance(value, str):
        return change(value) if len(value) >= _LARGE else value
    if isinstance(value, Mapping):
        return {key: _mapped(item, change) for key, item in value.items()}
    return [_mapped(item, change) for item in value] if isinstance(value, list) else value


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# ---------------------------------------------------------------------------------------------- batches, each written by a step of the run


class NotRecorded(BaseException):
    """Raised to leave a step without a record: DBOS records only errors that are an `Exception`."""


class LiveEvents:
    """Writes the events of one execution of a run's workflow into its stream.

    The step that does so lasts as long as the run. It is recorded when all is written; an execution whose process died is followed by
    one that tells again, under another name, what the journal knows. So rows are there at least once, and `Story` reads each thing once.

    Args:
        execution: Names the execution.
        texts: The large texts that are recorded elsewhere.
    """

    def __init__(self, execution: str, texts: RecordedTexts) -> None:
        self._execution = execution
        self._texts = texts
        self._listener = Listener()
        self._changed = threading.Event()
        self._over = threading.Event()
        self._died = False
        self._began = False
        self._error: BaseException | None = None
        self._ended = threading.Event()

    @contextmanager
    def written(self) -> Iterator[None]:
        """A context manager that writes the events of the runs inside. Raises writing errors unless the body raises."""
        step = DBOS.reserve_step()
        run_beside(partial(copy_context().run, self._work, step))
        before = current_scope.set(Scope(self._listener))
        try:
            yield
        except BaseException as error:
            self._died = not isinstance(error, Exception)
            raise
        finally:
            current_scope.reset(before)
            self._over.set()
            self._changed.set()
            self._ended.wait()
        if self._error is not None:
            raise self._error

    def _work(self, step: StepReservation) -> None:
        try:
            with reading(f"a step of run {DBOS.workflow_id!r}", lambda: self._began):
                step.run({"name": "events"}, self._write)
        except NotRecorded:
            pass
        except BaseException as error:  # for the thread of the run: above all that the run is no longer this execution's
            self._error = error
        finally:  # also where they were written before, or the run is another worker's now
            self._listener.close(left=False)
            self._ended.set()

    def _write(self) -> None:
        self._began = True
        waiting, over = self._listener.waiting, self._over
        with self._listener.waking(self._changed.set):
            self._changed.set()  # the run may have told something before
            while not over.is_set() or waiting:
                self._changed.wait()
                self._changed.clear()
                if self._died:
                    raise NotRecorded
                events: list[RunEvent] = []
                while waiting:
                    append_joined(events, waiting.popleft())
                if events:
                    row = storable({"execution": self._execution, "events": [row_of(event) for event in events]})
                    DBOS.write_stream(STREAM, self._texts.named(row))
                    over.wait(_BATCH_SECONDS)


# ---------------------------------------------------------------------------------------------- rows of events


_JOINED: Mapping[type[RunEvent], Mapping[str, str]] = {
    kinds.TextDelta: {"text": "", "separator": ""},
    kinds.ReasoningDelta: {"text": ""},
    kinds.CallArgumentsDelta: {"text": ""},
    kinds.VendorCallProgress: {"text": ""},
}
"""The pieces of texts that are joined. Their fields may differ from those of the piece before in these, which are then empty in both."""

_KEPT: Mapping[type[RunEvent], Callable[[Any], RunEvent | None]] = {
    kinds.MessagesAdded: lambda event: None,  # the conversation's, not the run's
    kinds.VendorCallProgress: lambda event: None if event.image is not None else event,
    kinds.FileMade: kinds.FileMade.by_reference,
}
"""What is kept of events of which not all is; None for what is only for those who watch its process."""

_KINDS: Mapping[str, type[RunEvent]] = {kind.__name__: kind for kind in RunEvent.__subclasses__() if kind.wire is not None}


def row_of(event: RunEvent) -> dict[str, Any]:
    """Return an event as plain JSON. Progress values without a JSON form become text."""
    values = {one.name: value for one in fields(event) if one.init and (value := getattr(event, one.name)) != one.default}
    kept = {name: _WRITTEN[name](value) if name in _WRITTEN else value for name, value in values.items() if value is not None}
    return {"type": type(event).__name__, **kept}


@dataclass(frozen=True)
class UnknownEvent:
    """An event of a later release that this one cannot read. It has a position, and readers do not receive it.

    Attributes:
        kind: The name of its type.
        nested: Whether it is of a run that a tool made.
        call_id: The call that it is about; empty for none.
    """

    kind: str
    nested: bool
    call_id: str


def event_of(row: Mapping[str, Any]) -> RunEvent | UnknownEvent:
    """Return the event from its plain form. Unknown data of a later release is dropped, with a warning."""
    if not isinstance(row, Mapping):
        _warn("an event that is no object is skipped")
        return UnknownEvent("", nested=False, call_id="")
    name, call_id = str(row.get("type")), row.get("call_id")
    kind: Any = _KINDS.get(name)
    if kind is not None:
        try:
            read = {name: _READ[name](value) if name in _READ else value for name, value in _known_fields(kind, row).items()}
            return _checked(kind(**read))
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            _warn(f"an event {name} cannot be read ({type(error).__name__}) and is skipped")
    else:
        _warn(f"events {name} are unknown and are skipped")
    return UnknownEvent(name, nested=row.get("parent_run_id") is not None, call_id=call_id if isinstance(call_id, str) else "")


def read_row(row: Any) -> tuple[str, Sequence[Any]] | None:
    """Return which execution has written a row, and the plain forms of its events; None, with a warning, if it is no such row."""
    if isinstance(row, Mapping) and isinstance(row.get("execution"), str) and isinstance(row.get("events"), list):
        return row["execution"], row["events"]
    _warn("a row that is none of a run's is skipped")
    return None


def append_joined(events: list[RunEvent], event: RunEvent) -> None:
    """Append what is kept of an event, or join its text to that of the last one."""
    kept, joined = _KEPT.get(type(event)), _JOINED.get(type(event))
    piece: Any = event if kept is None else kept(event)
    if piece is None or type(piece) not in _KINDS.values():
        return
    last: Any = events[-1] if events else None
    if joined and type(last) is type(piece) and replace(last, **joined) == replace(piece, text=""):
        events[-1] = replace(last, text=last.text + piece.text)
    else:
        events.append(piece)


def error_text(error: BaseException) -> str:
    """Return the stored text of an exception."""
    return mend_surrogates(str(error) if isinstance(error, RunFailedError) else f"{type(error).__name__}: {error}")


def run_exception(error: BaseException) -> Exception:
    """Return the run's exception for an error: one that is not an `Exception` would end the waiting program."""
    if isinstance(error, Exception):
        return error
    failure = RunFailedError(error_text(error))
    failure.__cause__ = error
    return failure


def _checked(event: RunEvent) -> RunEvent:
    """Return an event whose texts are texts.

    Raises:
        TypeError: One of them is not.
    """
    kind_of_event: Any = type(event)
    for name, kind in _texts_of(kind_of_event):
        if not isinstance(getattr(event, name), kind):
            raise TypeError(f"{name} is no text")
    return event


@cache
def _texts_of(kind: Any) -> list[tuple[str, Any]]:
    """Return the fields of a kind of event that hold texts, with their types."""
    return [(name, annotation) for name, annotation in get_type_hints(kind).items() if annotation in (str, str | None)]


def _known_fields(kind: Any, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data for which a dataclass has fields."""
    names = {one.name for one in fields(kind) if one.init}
    unknown = data.keys() - names - {"type"}
    if unknown:
        _warn(f"fields of {kind.__name__} are unknown and are left out: {', '.join(sorted(unknown))}")
    return {name: value for name, value in data.items() if name in names}


@cache
def _warn(what: str) -> None:
    """Log that data of a row is omitted; each omission once per process."""
    _logger.warning("%s: another release of this package has written it", what)


def _call_row(call: ToolCallRecord) -> dict[str, Any]:
    values = {one.name: getattr(call, one.name) for one in fields(call) if one.name != "definitions"}  # which no reader is shown
    decision = None if call.decision is None else call.decision.to_dict()
    return {**values, "extra": plain(call.extra), "inner": [_call_row(one) for one in call.inner], "decision": decision}


def _call_of(row: Mapping[str, Any]) -> ToolCallRecord:
    decision = None if row["decision"] is None else Decision.from_dict(_known_fields(Decision, row["decision"]))
    return ToolCallRecord(**{**_known_fields(ToolCallRecord, row), "inner": tuple(map(_call_of, row["inner"])), "decision": decision})


_WRITTEN: Mapping[str, Any] = {
    "message": lambda message: plain_messages([message])[0],
    "call": _call_row,
    "calls": lambda calls: [call.to_dict() for call in calls],
    "error": error_text,
    "value": plain,
    "args": plain,
    "output": plain,
}
_READ: Mapping[str, Any] = {
    "message": message_of,
    "call": _call_of,
    "calls": lambda calls: tuple(PendingCall.from_dict(_known_fields(PendingCall, call)) for call in calls),
    "error": RunFailedError,
}

_INTERRUPTED = "interrupted, outcome unknown: the process that ran this call has ended. What it did may remain; check before you repeat it."
_END: Any = object()
_NAMESPACE = uuid.UUID("3e5f6c1c-9d0a-4c56-8a53-1b7f0c6d2a94")


@dataclass(eq=False, repr=False)
class Journal(RunJournal):
    """The journal of one execution of a run's workflow.

    Attributes:
        execution: The execution.
        started: When the run began for the first time, by `clock`.
        clock: Seconds since the epoch.
        rerun: The names of the tools that may run again where it is not known what they did.
        lifetime: Tells when this worker is ending: nothing is recorded then of what fails.
        texts: Takes the large texts that are recorded.
    """

    execution: Execution
    started: float
    clock: Callable[[], float]
    rerun: Collection[str]
    lifetime: Lifetime
    texts: RecordedTexts

    def __post_init__(self) -> None:
        self._read_until = 0.0
        self._reads = True  # what earlier executions did; until a step has to be done
        self._turns = 0

    # ------------------------------------------------------------------------------------------ time

    def now(self) -> float:
        """Return the seconds since the run began; during replay those at which the replayed entry was written."""
        return self._read_until if self._reads else self.clock() - self.started

    def left(self, seconds: float | None) -> float | None:
        """Return the rest of a run's time limit; negative after its end."""
        return None if seconds is None else seconds - (self.clock() - self.started)

    def is_cancelled(self) -> bool:
        """Whether the run has been cancelled; never during replay."""
        return not self._reads and self.execution.cancelled.is_set()

    def written(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return the record of a step with its time."""
        return storable({**record, "at": self.clock() - self.started})

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
        turn = _Turn(self, self._turns, request, proceed)
        yield from turn.parts()
        if not turn.began:
            yield from self._replayed(turn.record, request.end)

    def _replayed(self, made: Any, end: Deadline) -> Iterator[TurnPart]:
        with self.reading(lambda: False):
            record = self.read(made, "error", "message", "cut")
            for _ in range(record.get("further", 0)):
                DBOS.reserve_step()
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

    # ------------------------------------------------------------------------------------------ what steers the run

    def inbox(self, read: Callable[[int], list[Any]]) -> "RecordedInbox":
        """Return the queue of the run's inbox; `read` returns what steers the run, behind so many messages that it has taken."""
        return RecordedInbox(self, read)

    def taken(self, number: int, read: Callable[[int], list[Any]]) -> list[BaseMessage]:
        """Return the messages that the run takes at this place, after it has taken so many: those that are recorded, or new ones.

        During replay nothing is taken that is not recorded: the earlier execution may have ended the run here, and told so.

        Args:
            number: How many it has taken.
            read: Returns the messages behind these as plain JSON. It is asked only where something may have arrived.
        """
        name = f"inbox {self._turns} {number}"
        is_recorded, found = name in self.execution.recorded_steps, list[Any]()
        if not is_recorded:
            if self._reads or not self.execution.arrived.is_set():
                return []
            self.execution.arrived.clear()
            if not (found := read(number)):
                return []
            self.execution.arrived.set()  # there may be more behind these
        with self.reading(lambda: not is_recorded):
            made = DBOS.reserve_step().run({"name": name}, self.written, {"messages": found})
            self.texts.add(made)
            return [message_of(data) for data in self.read(made, "messages")["messages"]]

    # ------------------------------------------------------------------------------------------ calls

    def entries(self, count: int) -> Sequence["_Call"]:
        """Reserve the steps of this many calls, in call order."""
        return [_Call(self, DBOS.reserve_step(), DBOS.reserve_step()) for _ in range(count)]

    def leave(self, error: BaseException | None) -> None:
        """Leave the run without a record if an error was raised because its worker is ending, unless the run has been cancelled.

        Raises:
            WorkerEndingError: It is ending.
        """
        if not self.execution.cancelled.is_set():
            self.lifetime.leave(error)

    def goes_on(self) -> None:
        """Record that execution goes beyond what earlier ones recorded.

        Raises:
            RunFailedError: It must not: the run may be what ends its workers.
        """
        if self.execution.refusal is not None:
            raise RunFailedError(self.execution.refusal)
        self._reads = False


class RecordedInbox:
    """The queue of the inbox of a run, whose readings are recorded.

    Args:
        journal: The journal of the run.
        read: Returns what steers the run, behind so many messages that it has taken, as plain JSON.
    """

    def __init__(self, journal: Journal, read: Callable[[int], list[Any]]) -> None:
        self._journal = journal
        self._read = read
        self._taken = 0
        self._waiting: deque[BaseMessage] = deque()

    def empty(self) -> bool:
        """Whether there is nothing to take at this place."""
        if not self._waiting:
            taken = self._journal.taken(self._taken, self._read)
            self._taken += len(taken)
            self._waiting.extend(taken)
        return not self._waiting

    def get_nowait(self) -> BaseMessage:
        """Take the next message.

        Raises:
            Empty: There is none.
        """
        if self.empty():
            raise queue.Empty
        return self._waiting.popleft()


def _not_recorded() -> str:
    """Leave a step that no earlier execution has recorded."""
    raise NotRecorded


class _Turn:
    """One turn, executed in a step in its own thread while its parts are yielded."""

    def __init__(self, journal: Journal, number: int, request: TurnRequest, proceed: ProceedTurn) -> None:
        self.began = False
        self.record: dict[str, Any] = {}
        self._journal = journal
        self._number = number
        self._parts = proceed(replace(request, recorded=self._recorded))
        self._end = request.end
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._error: BaseException | None = None
        self._workflow = copy_context()
        self._further = 0

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
            return self._journal.written({"message": None, "cut": None, "error": error_text(error), **self._numbers()})
        cut = None if self._end.cut is None else self._end.reason
        message = chunks.message() if whole is None and chunks else whole
        if cut is not None and message is not None:
            message = as_chunk(message)
        record = {"message": plain_messages([message])[0] if message else None, "cut": cut, "error": None}
        return self._journal.written({**record, **({"notices": notices} if notices else {}), **self._numbers()})

    def _numbers(self) -> dict[str, int]:
        """Return the number of further requests that have steps of their own, those of earlier executions included; nothing for none."""
        while self._step_name(self._further + 1) in self._journal.execution.recorded_steps:
            self._further += 1
            self._workflow.run(DBOS.reserve_step)
        return {"further": self._further} if self._further else {}

    def _step_name(self, request: int) -> str:
        return f"turn {self._number} request {request}"

    def _recorded(self, messages: Sequence[BaseMessage], make: Callable[[], AIMessage | None]) -> AIMessage | None:
        """Return the reply to a further request of the turn that an earlier execution recorded, or make it and record it.

        A record of another request, which the turn of the earlier execution needed and this one does not, says nothing.
        """
        self._further += 1
        return self._workflow.run(_Further(self._journal, self._step_name(self._further), messages, make).reply)


class _Further:
    """The step of a further request of a turn, which runs in the context of the workflow.

    Args:
        journal: The journal.
        name: The name of the step.
        messages: The messages of the request.
        make: Makes it, in the context of whoever asks.
    """

    def __init__(self, journal: Journal, name: str, messages: Sequence[BaseMessage], make: Callable[[], AIMessage | None]) -> None:
        self._journal = journal
        self._name = name
        self._request = _digest(json.dumps([[one.type, one.content] for one in messages], default=str))
        self._make = make
        self._context = copy_context()
        self._made = False
        self._error: BaseException | None = None

    def reply(self) -> AIMessage | None:
        """Return the reply."""
        try:
            with self._journal.reading(lambda: self._made):
                record = DBOS.reserve_step().run({"name": self._name}, self._work)
                known = mapping_of(record, "request", "message")
                if known["request"] == self._request:
                    return None if known["message"] is None else reply_of(known["message"])
        except NotRecorded:
            raise (self._error or NotRecorded()) from None
        return self._context.run(self._make)

    def _work(self) -> dict[str, Any]:
        self._made = True
        try:
            message = self._context.run(self._make)
        except BaseException as error:  # it is the turn's
            self._error = error
            raise NotRecorded from error
        self._journal.execution.recorded()
        return self._journal.written({"request": self._request, "message": None if message is None else plain_messages([message])[0]})


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

    def _recorded(self, call: ToolCallRecord, run: Callable[[], Outcome]) -> Any:
        """Return the record of the call, made now if there is none. Nobody asks who began a call that may run again."""
        journal = self._journal
        begun_by = journal.execution.id
        if call.name not in journal.rerun:
            begun_by = _recorded_by(self._begun, f"begin {call.id}", lambda: journal.execution.id)
        return _recorded_by(self._ended, f"call {call.id}", self._make, call, begun_by, run)

    def _earlier(self, call: ToolCallRecord) -> Any:
        """Return the record that an earlier execution made of the call, or one of the call's interruption if it only began it."""
        try:
            begun_by = _recorded_by(self._begun, f"begin {call.id}", _not_recorded)
        except NotRecorded:  # one that may run again, in that execution
            return _recorded_by(self._ended, f"call {call.id}", _not_recorded)
        run = partial(failed, call, _INTERRUPTED, executed=True)
        return _recorded_by(self._ended, f"call {call.id}", self._make, call, begun_by, run)

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
        result = None
        if outcome is not None and outcome is not PENDING:
            error_said = None if outcome.error is None else f"{type(outcome.error).__name__}: {outcome.error}"
            kept = {name: getattr(outcome, name) for name in _KEEPS}
            result = {"message": plain_messages([outcome.message])[0], "error": error_said, **kept}
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


def _recorded_by(step: StepReservation, name: str, make: Callable[..., Any], *args: Any) -> Any:
    """Return what a step has recorded, or what `make` returns, which it records then."""
    return step.run({"name": storable_text(name)}, make, *args)


_KEEPS = ("executed", "duration", "return_direct", "attempts")


def result_of(call: ToolCallRecord, data: Mapping[str, Any]) -> ToolCallResult:
    """Return a call's result from its plain form.

    Raises:
        TypeError: It is none.
    """
    message = message_of(data["message"])
    if not isinstance(message, ToolMessage):
        raise TypeError(f"a result is no {type(message).__name__}")
    error = None if data["error"] is None else RunFailedError(data["error"])
    return replace(ToolCallResult(call, message, error), **{name: data[name] for name in _KEEPS})
