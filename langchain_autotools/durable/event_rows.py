"""Serialization of events to plain JSON for the database, and back."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, Final, get_type_hints

from .. import event_types as kinds
from .. import vendor_event_types as vendor_kinds
from ..encoders.plain import plain
from ..event_tables import NOTHING, EventTable
from ..event_types import RunEvent
from ..executor import Decision, PendingCall
from ..messages.calls import ToolCallRecord
from ..strict_json import mend_surrogates
from .errors import RunFailedError
from .plain import message_of, plain_messages

_logger = logging.getLogger("langchain_autotools")


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


def _without_image(event: vendor_kinds.VendorCallProgress) -> RunEvent | None:
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
        vendor_kinds.VendorCallStarted: _Row(),
        vendor_kinds.VendorCallProgress: _Row(joined={"text": ""}, kept=_without_image),
        vendor_kinds.VendorCallDone: _Row(),
        vendor_kinds.SourceFound: _Row(),
        vendor_kinds.FileMade: _Row(kept=vendor_kinds.FileMade.by_reference),
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
            read = {name: _READ[name](value) if name in _READ else value for name, value in _known(kind, row).items()}
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


def _known(kind: Any, data: Mapping[str, Any]) -> dict[str, Any]:
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


def joined(events: list[RunEvent], event: RunEvent) -> None:
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


def said_of(error: BaseException) -> str:
    """Return the stored text of an exception."""
    return mend_surrogates(str(error) if isinstance(error, RunFailedError) else f"{type(error).__name__}: {error}")


def failure_of(error: BaseException) -> Exception:
    """Return the run's exception for an error: one that is not an `Exception` would end the waiting program."""
    if isinstance(error, Exception):
        return error
    failure = RunFailedError(said_of(error))
    failure.__cause__ = error
    return failure


def _call_row(call: ToolCallRecord) -> dict[str, Any]:
    values = {one.name: getattr(call, one.name) for one in fields(call)}
    decision = None if call.decision is None else call.decision.to_dict()
    return {**values, "extra": plain(call.extra), "inner": [_call_row(one) for one in call.inner], "decision": decision}


def _call_of(row: Mapping[str, Any]) -> ToolCallRecord:
    decision = None if row["decision"] is None else Decision.from_dict(_known(Decision, row["decision"]))
    return ToolCallRecord(**{**_known(ToolCallRecord, row), "inner": tuple(map(_call_of, row["inner"])), "decision": decision})


_WRITTEN: Mapping[str, Any] = {
    "message": lambda message: plain_messages([message])[0],
    "call": _call_row,
    "calls": lambda calls: [call.to_dict() for call in calls],
    "error": said_of,
    "value": plain,
    "args": plain,
    "output": plain,
}
_READ: Mapping[str, Any] = {
    "message": message_of,
    "call": _call_of,
    "calls": lambda calls: tuple(PendingCall.from_dict(_known(PendingCall, call)) for call in calls),
    "error": RunFailedError,
}
