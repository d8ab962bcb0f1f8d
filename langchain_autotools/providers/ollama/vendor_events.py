"""The images in a reply of Ollama, for listeners. They stand in the message as base64 (`images`)."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...event_types import RunEvent
from .._base.vendor_events import VendorEvents, file_made


class OllamaEvents(VendorEvents):
    """Reads the events of one reply, or a whole body."""

    marks = re.compile(rb'"images"')

    def read(self, event: Mapping[str, Any]) -> Iterator[RunEvent]:
        """Yield the images in an event."""
        for data in (event.get("message") or {}).get("images") or ():
            yield file_made(None, data)
