"""What the readers of a vendor's replies for listeners have in common: see `vendor_event_types`."""

import logging
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...event_types import RunEvent
from ...messages.files import size_of
from ...vendor_event_types import FileMade, SourceFound, VendorCallDone, VendorCallProgress, VendorCallStarted
from .._encode.sources import image_type
from .._transport.reader import MISREAD

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
