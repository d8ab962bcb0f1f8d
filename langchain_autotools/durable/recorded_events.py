"""The rows in which a run's events are recorded while it executes."""

import hashlib
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial
from typing import Any, Final, get_type_hints

from dbos import DBOS, StepReservation
from langchain_core.messages import AIMessage

from .. import event_types as kinds
from ..encoders.public import plain
from ..event_bus import Listener, Scope, current_scope
from ..event_types import NOTHING, EventTable, RunEvent
from ..executor import Decision, PendingCall
from ..executor.threads import run_beside
from ..messages.calls import ToolCallRecord
from ..strict_json import mend_surrogates
from .engine import outside
from .stored import RunFailedError, message_of, plain_messages, reading, reply_of, storable

_logger = logging.getLogger("langchain_autotools")

STREAM = "run"
"""The key of the workflow's stream that readers follow."""

_BATCH_SECONDS = 0.1  # how long events wait for more, so that each batch and not each word is a row
_LARGE = 10_000  # characters from which on a text is named
_TEXT = "autotools_text"  # the only key of what stands in a text's place, with its digest
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
    return {key: _filled(value, texts) for key, value in data.items() if key != _NAMES}


def message_out(run_id: str, outcome: Any) -> AIMessage:
    """Return the run message of a run's outcome.

    Raises:
        RunFailedError: It cannot be read.
    """
    with reading(f"the outcome of run {run_id!r}"):
        return reply_of(with_texts(run_id, outcome)["message"])


def _mapped(value: Any, change: Callable[[str], Any]) -> Any:
    """Return plain JSON with its large texts changed."""
    if isinstance(value, str):
        return change(value) if len(value) >= _LARGE else value
    if isinstance(value, Mapping):
        return {key: _mapped(item, change) for key, item in value.items()}
    return [_mapped(item, change) for item in value] if isinstance(value, list) else value


def _filled(value: Any, texts: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_filled(item, texts) for item in value]
    if not isinstance(value, Mapping):
        return value
    if value.keys() == {_TEXT}:
        return texts[value[_TEXT]]
    return {key: _filled(item, texts) for key, item in value.items()}


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


@dataclass(frozen=True)
class _Row:
    """The rows of a kind of event.

    Attributes:
        joined: The fields of a piece that differ from those of the piece before it, empty: `text`, and what only a first piece has. None
            for events that are no pieces of a text.
        absent: The values of fields that a row leaves out where they are None, and that have no default.
        kept: Returns what is kept of an event; None for an event that is only for those who watch its process.
    """

    joined: Mapping[str, str] | None = None
    absent: Mapping[str, Any] = field(default_factory=dict)
    kept: Callable[[Any], RunEvent | None] = lambda event: event


def _without_image(event: kinds.VendorCallProgress) -> RunEvent | None:
    return None if event.image is not None else event


_ROWS: Final = EventTable(
    "durable rows",
    {
        kinds.RunStarted: _Row(),
        kinds.TextDelta: _Row(joined={"text": "", "separator": ""}),
        kinds.ReasoningDelta: _Row(joined={"text": ""}),
        kinds.CallStarted: _Row(),
        kinds.CallArgumentsDelta: _Row(joined={"text": ""}),
        kinds.CallReady: _Row(),
        kinds.CallDiscarded: _Row(),
        kinds.CallProgress: _Row(absent={"value": None}),
        kinds.CallResult: _Row(),
        kinds.MessageDone: _Row(),
        kinds.MessageDiscarded: _Row(),
        kinds.ModelChanged: _Row(),
        kinds.MessagesAdded: NOTHING,
        kinds.TurnUsage: _Row(),
        kinds.CallsPending: _Row(),
        kinds.VendorCallStarted: _Row(),
        kinds.VendorCallProgress: _Row(joined={"text": ""}, kept=_without_image),
        kinds.VendorCallDone: _Row(),
        kinds.SourceFound: _Row(),
        kinds.FileMade: _Row(kept=kinds.FileMade.by_reference),
        kinds.RunEnded: _Row(),
        kinds.RunFailed: _Row(),
    },
)
_KINDS: Mapping[str, tuple[Any, _Row]] = {kind.__name__: (kind, row) for kind, row in _ROWS.items() if row is not None}


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
    known = _KINDS.get(name)
    if known is not None:
        kind, rules = known
        try:
            read = {name: _READ[name](value) if name in _READ else value for name, value in _known_fields(kind, row).items()}
            return _checked(kind(**{**rules.absent, **read}))
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
    """Append an event that has a row, or join its text to that of the last one."""
    row = _ROWS.get(type(event))
    piece: Any = None if row is None else row.kept(event)
    if row is None or piece is None:
        return
    last: Any = events[-1] if events else None
    if row.joined and type(last) is type(piece) and replace(last, **row.joined) == replace(piece, text=""):
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
    values = {one.name: getattr(call, one.name) for one in fields(call)}
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
