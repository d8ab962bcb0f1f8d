"""What of a run a page may see, as events, messages or plain JSON: for every encoder, page, notebook or display.

What is harmless is listed, and everything else stays out: the transcripts of runs inside tools, what rejected replies and vendors' headers
say, artifacts, system messages, and what a call carries for its server alone. Tools may report or return objects that would break a
stream: what is sent is plain JSON, of any object.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache
from typing import Any, Final, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage
from pydantic import BaseModel

from ..event_types import RunEvent
from ..executor import PendingCall
from ..messages.calls import TOOLSET, ToolCallRecord, awaited_calls, calls_of, canonical_call
from ..messages.metadata import KEY, own_metadata, with_own_metadata
from ..messages.run_messages import metadata_of_open_run, open_run
from ..strict_json import mend_surrogates

_OF_CALLS: Final = ("calls", "awaits", "asked", "open_calls", "before_calls", "call_blocks", "edited_arguments")
_OF_REPLIES: Final = ("origin", "failover", "continuation", "reasoning_output")
_OF_RUNS: Final = ("stop_reason", "turns", "usage")

_SHOWN: Final = frozenset({*_OF_CALLS, *_OF_REPLIES, *_OF_RUNS})
"""The keys of the package's metadata of a message that a reader may have: what they need to go on with the history."""

_HEADERS: Final = "headers"
_FIELDS: Final = ("id", "name", "arguments", "args", "why", "written_name", "waits", "decision", "edited", "answer", "kind", "handler")
_DEEPEST: Final = 100
_LONGEST_TEXT: Final = 2000
_LARGEST: Final = 2**63
_LINE_ENDS: Final = re.compile("[\x85\u2028\u2029]")  # to Python's `splitlines` and to JavaScript's `.`; others are escaped anyway
_write: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode  # made once: it is slow to make
_M = TypeVar("_M", bound=BaseMessage)


def public(event: RunEvent, *, artifacts: bool = False) -> RunEvent:
    """Return an event as a reader may see it; the same object where all of it may be seen.

    Args:
        event: The event.
        artifacts: Whether the artifacts of tools are for the reader.
    """
    kind: Any = type(event)
    views = _views_of(kind)
    if not views:
        return event
    seen = {name: view(getattr(event, name), artifacts) for name, view in views}
    return event if all(value is getattr(event, name) for name, value in seen.items()) else replace(event, **seen)


def public_message(message: _M, *, artifacts: bool = False) -> _M:
    """Return a message as a reader may see it; the same object where all of it may be seen."""
    own, changed = own_metadata(message), dict[str, Any]()
    shown = {key: value for key, value in own.items() if key in _SHOWN}
    if (record := open_run(message)) is not None:
        shown |= metadata_of_open_run({"calls": record["calls"]})[KEY]
    if shown != own or _HEADERS in message.response_metadata:
        metadata = {key: value for key, value in message.response_metadata.items() if key != _HEADERS}
        changed["response_metadata"] = with_own_metadata(metadata, shown)
    if not artifacts and isinstance(message, ToolMessage) and message.artifact is not None:
        changed["artifact"] = None
    return message.model_copy(update=changed) if changed else message


def page_calls(message: AIMessage) -> list[ToolCallRecord]:
    """Return the calls of a message that a page is shown: also the vendor's own items that something here answers."""
    return [*calls_of(message), *map(canonical_call, awaited_calls(message))]


def told_of_tool(call: PendingCall) -> dict[str, Any]:
    """Return what a pending call says of the definition of its tool, as plain JSON: what there is of it."""
    told = {"description": call.description, "annotations": call.annotations, "changes": call.changes}
    return {name: plain(value) for name, value in told.items() if value}


def titled_words_of_tool(call: PendingCall) -> dict[str, str]:
    """Return the same as texts for people, by their titles. The words are those of the tool's server."""
    told = told_of_tool(call)
    lines = [f"{key}: {to_json(before)} → {to_json(now)}" for key, (before, now) in told.get("changes", {}).items()]
    annotations = to_json(told["annotations"]) if "annotations" in told else ""
    texts = {"Description": told.get("description", ""), "Annotations": annotations, "Changed since the approval": "\n".join(lines)}
    return {title: text for title, text in texts.items() if text}


def _public_call(call: ToolCallRecord) -> ToolCallRecord:
    """Return a call as a reader may see it."""
    toolset = {TOOLSET: call.toolset} if call.toolset else {}
    shown = {name: getattr(call, name) for name in _FIELDS}
    return ToolCallRecord(**shown, extra=toolset, inner=[_public_call(one) for one in call.inner])


_View = Callable[[Any, bool], Any]
_VIEWS: Final[Mapping[str, _View]] = {
    "call": lambda call, artifacts: _public_call(call),
    "message": lambda message, artifacts: public_message(message, artifacts=artifacts),
    "messages": lambda messages, artifacts: [
        public_message(one, artifacts=artifacts) for one in messages if not isinstance(one, SystemMessage)
    ],
}
"""What readers may see of fields of these names, in every kind. Of an error encoders write the class, or what `details` asks for."""


@cache
def _views_of(kind: Any) -> Sequence[tuple[str, _View]]:
    return [(one.name, _VIEWS[one.name]) for one in fields(kind) if one.name in _VIEWS]


# ---------------------------------------------------------------------------------------------- plain JSON


def plain(value: Any, depth: int = _DEEPEST) -> Any:
    """Return a value as plain JSON; objects become text of at most 2,000 characters, lone surrogates U+FFFD.

    Args:
        value: Any value. A pydantic object, such as a message, is its fields.
        depth: How many levels of nesting are kept; what lies deeper, or in itself, is a text.
    """
    if isinstance(value, str):
        return mend_surrogates(str(value))
    if value is None or value is True or value is False:
        return value
    if isinstance(value, int):
        return int(value) if -_LARGEST <= value <= _LARGEST else _as_text(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    if depth and isinstance(value, Mapping):
        return {mend_surrogates(str(key)) if isinstance(key, str) else _as_text(key): plain(item, depth - 1) for key, item in value.items()}
    if depth and isinstance(value, list | tuple | set | frozenset):
        return [plain(item, depth - 1) for item in value]
    return plain(_fields_of(value), depth - 1) if depth and isinstance(value, BaseModel) else _as_text(value)


def _fields_of(value: BaseModel) -> Any:
    try:
        return value.model_dump()
    except Exception:  # whatever the object's own code raises
        return _as_text(value)


def _as_text(value: Any) -> str:
    try:
        text = str(value)
    except Exception:  # likewise
        text = f"<{type(value).__name__}>"
    return mend_surrogates(text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}…")


def to_json(value: Any) -> str:
    """A value as JSON in one line, also for readers that take more for the end of a line than `\\n` and `\\r`."""
    text = _write(plain(value))
    return text if text.isascii() else _LINE_ENDS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
