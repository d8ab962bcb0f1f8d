"""The events of what a vendor does by itself while it answers: its calls, the sources it cites, the files it makes.

They are told from the wire while somebody listens. What a message holds is told with it: nothing of a conversation depends on them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from langchain_core.messages import BaseMessage

from .event_types import RunEvent
from .messages.files import LARGE, large_files, size_of


@dataclass(frozen=True, kw_only=True)
class VendorCallStarted(RunEvent):
    """The vendor begins a call of one of its own tools: a search, code, an image, a call of a remote MCP server.

    Attributes:
        message_id: The id that the message will have.
        call_id: The call's id, as the vendor's or made for the events.
        name: The tool's name: `web_search`, `file_search`, `code_interpreter`, `image_generation`, `mcp.<tool>` and others.
        args: What it is called with, where that is known at the start.
    """

    message_id: str
    call_id: str
    name: str
    args: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class VendorCallProgress(RunEvent):
    """A call of the vendor's goes on.

    Attributes:
        message_id: The id that the message will have.
        call_id: The call's id.
        status: The vendor's word for what it does now, such as `searching`; empty for none.
        text: An increment of what it writes, such as code.
        image: A partial image, as base64; the next one, or the `FileMade` of the whole image, takes its place. Only live events have it.
        mime_type: The type of the image.
    """

    message_id: str
    call_id: str
    status: str = ""
    text: str = ""
    image: str | None = None
    mime_type: str | None = None


@dataclass(frozen=True, kw_only=True)
class VendorCallDone(RunEvent):
    """A call of the vendor's has ended.

    Attributes:
        message_id: The id that the message will have.
        call_id: The call's id.
        name: The tool's name.
        args: What it was called with, as far as the vendor says.
        output: What came of it, as plain data; None where the vendor does not say.
        failed: Whether it failed, or its reply or run ended before it had.
    """

    message_id: str
    call_id: str
    name: str
    args: Mapping[str, Any] | None = None
    output: Any = None
    failed: bool = False


@dataclass(frozen=True, kw_only=True)
class SourceFound(RunEvent):
    """A message cites a source, or is grounded in one. A source that is cited at several places has several events.

    Attributes:
        message_id: The id of the message.
        url: The source's address, as the vendor has it: show it as a link only where it begins with `http://` or `https://`.
        title: Its title.
        document: The name or the id of a document, where the source is none of the web.
        quote: The cited text of the source.
        start: Where in the message's text the citing words begin, where the vendor says so.
        end: Where they end.
    """

    message_id: str
    url: str | None = None
    title: str | None = None
    document: str | None = None
    quote: str | None = None
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, kw_only=True)
class FileMade(RunEvent):
    """The model or one of the vendor's tools has made a file: an image, sound, or any other.

    Attributes:
        message_id: The id of the message that holds it.
        mime_type: Its type.
        data: The file as base64; None for one that the vendor keeps, and where events are kept or sent for one above 256 kB: then the
            message holds it.
        size: The size of the data in bytes; 0 where they are not known.
        sha256: The SHA-256 of the base64 text as hexadecimal digits, where it is left out; else None.
        url: Its address, where the vendor gives one in place of the data.
        file_id: The vendor's id of it.
        name: Its name.
        call_id: The call of the vendor's that made it.
    """

    message_id: str
    mime_type: str
    data: str | None = None
    size: int = 0
    sha256: str | None = None
    url: str | None = None
    file_id: str | None = None
    name: str | None = None
    call_id: str | None = None

    def by_reference(self) -> "FileMade":
        """Return the event without data above 256 kB."""
        return self if self.data is None or self.size <= LARGE else replace(self, data=None, sha256=_sha256(self.data))

    def found_in(self, message: BaseMessage) -> "FileMade | None":
        """Return the event with the data that its message holds; None if the message does not hold them."""
        data = next((data for data in large_files(message) if size_of(data) == self.size and self.sha256 in (None, _sha256(data))), None)
        return None if data is None else replace(self, data=data, sha256=None)


def _sha256(data: str) -> str:
    return sha256(data.encode()).hexdigest()
