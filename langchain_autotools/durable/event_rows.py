"""Events as plain JSON, for the database, and back."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, get_args

from ..encoders.plain import plain
from ..event_types import (
    CallArgumentsDelta,
    CallDiscarded,
    CallProgress,
    CallReady,
    CallResult,
    CallsPending,
    CallStarted,
    MessageDone,
    ReasoningDelta,
    RunEnded,
    RunEvent,
    RunFailed,
    RunStarted,
    TextDelta,
    TurnUsage,
)
from ..executor import Decision, PendingCall
from ..messages.calls import ToolCallRecord
from .errors import RunFailedError
from .plain import message_of, plain_messages

Piece = TextDelta | ReasoningDelta | CallArgumentsDelta
"""An event whose text goes on in the next one."""

_TYPES: Mapping[str, type[RunEvent]] = {
    kind.__name__: kind
    for kind in (
        *get_args(Piece),
        *(RunStarted, CallStarted, CallReady, CallDiscarded, CallProgress, CallResult),
        *(MessageDone, TurnUsage, CallsPending, RunEnded, RunFailed),
    )
}


def row_of(event: RunEvent) -> dict[str, Any]:
    """An event as plain JSON. What a tool reports may be any object: what JSON has no form for becomes a text."""
    said = {one.name: value for one in fields(event) if one.init and (value := getattr(event, one.name)) != one.default}
    kept = {name: _WRITTEN[name](value) if name in _WRITTEN else value for name, value in said.items() if value is not None}
    return {"type": type(event).__name__, **kept}


def event_of(row: Mapping[str, Any]) -> RunEvent:
    """The event of its plain form."""
    kept = {name: _READ[name](value) if name in _READ else value for name, value in row.items() if name != "type"}
    kind = _TYPES[row["type"]]
    return kind(**({"value": None, **kept} if kind is CallProgress else kept))


def joined(events: list[RunEvent], event: RunEvent) -> None:
    """Append an event, or join its text to that of the last one."""
    last = events[-1] if events else None
    if isinstance(event, Piece) and isinstance(last, Piece) and _without_text(last) == replace(event, text=""):
        events[-1] = replace(last, text=last.text + event.text)
    else:
        events.append(event)


def _without_text(piece: Piece) -> Piece:
    """What a piece says beside its text, and the separator before it."""
    return replace(piece, text="", separator="") if isinstance(piece, TextDelta) else replace(piece, text="")


def said_of(error: BaseException) -> str:
    """What is kept of an exception."""
    return str(error) if isinstance(error, RunFailedError) else f"{type(error).__name__}: {error}"


def _call_row(call: ToolCallRecord) -> dict[str, Any]:
    said = {one.name: getattr(call, one.name) for one in fields(call)}
    decision = None if call.decision is None else call.decision.to_dict()
    return {**said, "extra": plain(call.extra), "inner": [_call_row(one) for one in call.inner], "decision": decision}


def _call_of(row: Mapping[str, Any]) -> ToolCallRecord:
    decision = None if row["decision"] is None else Decision.from_dict(row["decision"])
    return ToolCallRecord(**{**row, "inner": tuple(_call_of(one) for one in row["inner"]), "decision": decision})


_WRITTEN: Mapping[str, Any] = {
    "message": lambda message: plain_messages([message])[0],
    "call": _call_row,
    "calls": lambda calls: [call.to_dict() for call in calls],
    "error": said_of,
    "value": plain,
}
_READ: Mapping[str, Any] = {
    "message": message_of,
    "call": _call_of,
    "calls": lambda calls: tuple(PendingCall.from_dict(call) for call in calls),
    "error": RunFailedError,
}
