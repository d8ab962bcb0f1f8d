"""What a vendor does by itself as parts of a UI message of the AI SDK: provider-executed tools, sources, files.

Of a tool part of the vendor's the schema wants the input whole (`tool-input-available`), which is known at the end of the call; until then
the page has the part with the pieces of the input. A partial image, and a word about the state of a call, are transient data parts, which
a page gets through `onData` and does not keep.
"""

from collections.abc import Iterator
from typing import Any, Final

from .. import vendor_event_types as kinds
from ..addresses import is_page
from .ai_sdk_values import Chunk, shown
from .plain import to_json

_BY_VENDOR: Final[Chunk] = {"providerExecuted": True}


class VendorParts:
    """Creates the chunks of what a vendor does in one UI message.

    Attributes:
        open: The calls that have begun and not ended.
    """

    def __init__(self) -> None:
        self.open: set[str] = set()
        self._sources: set[tuple[str, Any]] = set()
        self._elsewhere: dict[str, list[kinds.FileMade]] = {}  # by message: files whose data only the message has

    def started(self, event: kinds.VendorCallStarted) -> Iterator[Chunk]:
        """Yield the beginning of a call."""
        self.open.add(event.call_id)
        yield {"type": "tool-input-start", "toolCallId": event.call_id, "toolName": event.name, **_BY_VENDOR}

    def progress(self, event: kinds.VendorCallProgress) -> Iterator[Chunk]:
        """Yield what is new of a call."""
        if event.text and event.call_id in self.open:
            yield {"type": "tool-input-delta", "toolCallId": event.call_id, "inputTextDelta": event.text}
        if event.status or event.image:
            image = {"image": f"data:{event.mime_type};base64,{event.image}"} if event.image else {}
            data = {"toolCallId": event.call_id, "status": event.status, **image}
            yield {"type": "data-vendor-call-progress", "data": data, "transient": True}

    def done(self, event: kinds.VendorCallDone) -> Iterator[Chunk]:
        """Yield the end of a call."""
        self.open.discard(event.call_id)
        call: Chunk = {"toolCallId": event.call_id, **_BY_VENDOR}
        yield {"type": "tool-input-available", **call, "toolName": event.name, "input": shown(event.args or {})}
        if event.failed:
            why = "The call did not end." if event.output is None else to_json(shown(event.output))
            yield {"type": "tool-output-error", **call, "errorText": why}
        else:
            yield {"type": "tool-output-available", **call, "output": shown(event.output)}

    def source(self, event: kinds.SourceFound) -> Iterator[Chunk]:
        """Yield a source, once for each message. One whose address may not be a link is a document."""
        key = event.message_id, event.url or event.document or event.title
        if key in self._sources or key[1] is None:
            return
        self._sources.add(key)
        known: Chunk = {"sourceId": f"{event.message_id}-source-{len(self._sources)}"}
        if is_page(event.url):
            yield {"type": "source-url", **known, "url": event.url, **({"title": event.title} if event.title else {})}
        else:
            yield {"type": "source-document", **known, "mediaType": "text/plain", "title": event.title or event.document or event.url}

    def file(self, event: kinds.FileMade) -> Iterator[Chunk]:
        """Yield a file. One without data or a page's address stands in its message, or is known to the vendor alone."""
        url = event.url if is_page(event.url) else (f"data:{event.mime_type};base64,{event.data}" if event.data else None)
        if url is not None:
            yield {"type": "file", "url": url, "mediaType": event.mime_type}
        elif event.size:
            self._elsewhere.setdefault(event.message_id, []).append(event)
        else:
            known = {"name": event.name, "mediaType": event.mime_type, **({"url": event.url} if event.url else {})}
            data = {"messageId": event.message_id, "fileId": event.file_id, **known}
            yield {"type": "data-vendor-file", "data": data}

    def message_done(self, message: Any) -> Iterator[Chunk]:
        """Yield the files whose data the message has."""
        for event in self._elsewhere.pop(str(message.id), ()):
            if (file := event.found_in(message)) is not None:
                yield from self.file(file)
