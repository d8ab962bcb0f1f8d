"""What every vendor's decoder returns of a reply besides its content: metadata, token counts, events of the vendor's own calls."""

import logging
import re
from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages.ai import InputTokenDetails, OutputTokenDetails, UsageMetadata

from ...event_types import FileMade, RunEvent, SourceFound, VendorCallDone, VendorCallProgress, VendorCallStarted
from ...messages.blocks import size_of
from ...messages.metadata import KEY
from .._encode.sources import image_type
from .._transport.reader import MISREAD

# What the package and LangChain's core read in a message's metadata is not for a server to set.
_OWN = frozenset(
    {KEY, "finish_reason", "generation_id", "headers", "message_order_idx", "model_provider", "output_version", "tool_call_idx"}
)
# Users look for these in the reply, also where it grants what was asked for.
_ALWAYS = frozenset({"metadata", "service_tier"})
_NOTHING: tuple[Any, ...] = (None, "", [], {})


def reply_metadata(reply: Mapping[str, Any], structure: Collection[str], request: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the metadata in a reply, or in a part of it.

    Args:
        reply: The object on the wire.
        structure: Its keys that are not metadata: content, token counts, what the decoder reads itself.
        request: What the request said; of what the reply repeats at the same place nothing is returned.
    """
    found: dict[str, Any] = {}
    for key, value in reply.items():
        if key in structure or key in _OWN:
            continue
        if request and key not in _ALWAYS and request.get(key) is not None:
            value = _without_echo(value, request[key])
        if value not in _NOTHING:
            found[key] = value
    return found


def _without_echo(value: Any, asked: Any) -> Any:
    """Return what a value of the reply says that the request's value at the same place does not; None if that is nothing."""
    if asked is None:
        return value
    if isinstance(value, Mapping) and isinstance(asked, Mapping):
        parts = {key: _without_echo(item, asked.get(key)) for key, item in value.items()}
        return {key: part for key, part in parts.items() if part not in _NOTHING} or None
    if _are_objects(value) and _are_objects(asked) and len(value) == len(asked):
        rest = [_without_echo(item, other) or {} for item, other in zip(value, asked, strict=True)]
        return rest if any(rest) else None
    return None if value == asked else value


def _are_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, Mapping) for item in value)


# ---------------------------------------------------------------------------------------------- token counts
# Token counts of replies in LangChain's form.


_Counts = Mapping[str, int | None]
_MOST = 2**53  # beyond it a JSON number is not exact, and no request has as many tokens


def token_count(counts: Mapping[str, Any], key: str) -> int | None:
    """Return one token count of a reply; None if it is missing, or no number of tokens: null, a text, negative, a fraction, absurd.

    Args:
        counts: The reply's counts.
        key: The name of the count.
    """
    value = counts.get(key)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return int(value) if 0 <= value <= _MOST and value == int(value) else None


def merged_counts(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """Return the counts of a reply's earlier events with those of a later one over them. Counts of a reply so far never fall, so a zero
    says nothing of a count that is known: proxies end their streams with it."""
    return {**earlier, **{key: value for key, value in later.items() if value is not None and (value or not earlier.get(key))}}


def sum_of(counts: Mapping[str, Any], *keys: str) -> int | None:
    """Return the sum of token counts of a wire that leaves zeros out; None if what is under one of the names is no count.

    Args:
        counts: The reply's counts.
        keys: The names of the counts.
    """
    known = [token_count(counts, key) for key in keys if key in counts]
    return None if None in known else sum(count or 0 for count in known)


def detailed_usage(input_tokens: int, output_tokens: int, read: _Counts, written: _Counts, total: int | None = None) -> UsageMetadata:
    """Return the usage of one reply.

    Args:
        input_tokens: All tokens of the request.
        output_tokens: All tokens of the reply.
        read: Details of the request's tokens; None for what is not known.
        written: Details of the reply's.
        total: The sum as the server says it; None for that of the two.
    """
    return UsageMetadata(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        total_tokens=input_tokens + output_tokens if total is None else total,
        input_token_details=InputTokenDetails(**_known(read)),  # type: ignore[typeddict-item]
        output_token_details=OutputTokenDetails(**_known(written)),  # type: ignore[typeddict-item]
    )


def _known(counts: _Counts) -> dict[str, int]:
    return {key: count for key, count in counts.items() if count is not None}


# ---------------------------------------------------------------------------------------------- vendor events
# What the readers of a vendor's replies for listeners have in common: see `event_types`.


_logger = logging.getLogger("langchain_autotools")

_DATA_ADDRESS = re.compile(r"data:([^;,]*)(?:;[^;,]*)*;base64,(.*)", re.DOTALL)
_NOWHERE = {"run_id": "", "message_id": ""}  # the run's side says where it is


class VendorEvents:
    """Reads what a vendor does by itself from the events of one reply, or from a whole body.

    What it cannot read is left out and logged: events show a reply, and no reply fails for what cannot be shown.

    Attributes:
        marks: What the bytes of its events contain.
    """

    marks: re.Pattern[bytes]

    def feed(self, event: Any) -> Sequence[RunEvent]:
        """Process an event of the wire, or a whole body, and return what listeners are told of it."""
        return _readable(self.read(event))

    def finish(self) -> Sequence[RunEvent]:
        """Return what listeners are told at the end of the reply."""
        return _readable(self.rest())

    @abstractmethod
    def read(self, event: Any) -> Iterator[RunEvent]:
        """Yield what listeners are told of an event, or of a whole body."""

    def rest(self) -> Iterator[RunEvent]:
        """Yield what is known only at the end of the reply; by default nothing."""
        return iter(())


def _readable(events: Iterator[RunEvent]) -> list[RunEvent]:
    found: list[RunEvent] = []
    try:
        found.extend(events)
    except MISREAD as error:
        _logger.debug("what a vendor does by itself is not of a known form, and is not shown: %s", type(error).__name__)
    return found


def started(call_id: str, name: str, args: Mapping[str, Any] | None = None) -> VendorCallStarted:
    """Return the start of a vendor's call."""
    return VendorCallStarted(**_NOWHERE, call_id=call_id, name=name, args=args or None)


def progress(call_id: str, **reported: Any) -> VendorCallProgress:
    """Return the progress of a vendor's call."""
    return VendorCallProgress(**_NOWHERE, call_id=call_id, **reported)


def done(call_id: str, name: str, args: Mapping[str, Any] | None, output: Any = None, *, failed: bool = False) -> VendorCallDone:
    """Return the end of a vendor's call."""
    return VendorCallDone(**_NOWHERE, call_id=call_id, name=name, args=args or None, output=output, failed=failed)


def source(**known: Any) -> SourceFound:
    """Return a source; what is empty or of another type than its field is left out."""
    types = {name: int if name in ("start", "end") else str for name in known}
    kept: dict[str, Any] = {name: value for name, value in known.items() if value.__class__ is types[name] and value != ""}
    return SourceFound(**{**_NOWHERE, **kept})


def file_made(mime_type: str | None, data: str | None = None, **known: Any) -> FileMade:
    """Return a file from its data, from the address `url`, or from what the vendor calls it by."""
    address = _DATA_ADDRESS.fullmatch(known.get("url") or "")
    if address is not None:
        mime_type, data = address[1] or mime_type, address[2]
        known = {**known, "url": None}
    mime_type = mime_type or (image_type(data) if data else None) or "application/octet-stream"
    return FileMade(**_NOWHERE, mime_type=mime_type, data=data, size=size_of(data) if data else 0, **known)
