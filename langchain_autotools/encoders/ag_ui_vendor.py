"""What a vendor does by itself as activities of AG-UI, which a page shows between the messages and does not post as calls of its own.

A call of the vendor's is an activity `vendor_call`, sent anew at its end; the sources of a message are one activity `sources`; each file is
an activity `file`. Progress, with partial images, is a custom event: a page that comes later does not get it.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from ag_ui.core import ActivitySnapshotEvent, BaseEvent, CustomEvent
from langchain_core.messages import BaseMessage

from .. import vendor_event_types as kinds
from ..event_types import RunEvent
from .plain import plain

Named = Callable[[str], str]
"""Returns the id for the client of an id in the events."""


class VendorActivities:
    """Creates the events of what vendors do in one stream."""

    def __init__(self) -> None:
        self._sources: dict[str, list[dict[str, Any]]] = {}
        self._files: dict[str, int] = {}
        self._elsewhere: dict[str, list[tuple[kinds.FileMade, Named]]] = {}  # by message: files whose data only the message has

    def events(self, event: RunEvent, named: Named, tag: str | None) -> Iterator[BaseEvent]:
        """Yield the events for an event of what a vendor does.

        Args:
            event: The event.
            named: Returns the id for the client of an id of the event's.
            tag: The id of the subagent; None for none.
        """
        return _EVENTS[type(event)](self, event, named, tag)

    def message_done(self, message: BaseMessage, tag: str | None) -> Iterator[BaseEvent]:
        """Yield the files whose data the message has."""
        for event, named in self._elsewhere.pop(str(message.id), ()):
            if (file := event.found_in(message)) is not None:
                yield from self._file(file, named, tag)

    def _started(self, event: kinds.VendorCallStarted, named: Named, tag: str | None) -> Iterator[BaseEvent]:
        yield _activity(named(event.call_id), "vendor_call", {"name": event.name, "status": "running", "args": event.args}, tag)

    def _progress(self, event: kinds.VendorCallProgress, named: Named, tag: str | None) -> Iterator[BaseEvent]:
        image = f"data:{event.mime_type};base64,{event.image}" if event.image else None
        value = {"toolCallId": named(event.call_id), "status": event.status, "delta": event.text, "image": image}
        yield CustomEvent(name="vendor_call_progress", value=plain(_known(value)), subagent_run_id=tag)

    def _done(self, event: kinds.VendorCallDone, named: Named, tag: str | None) -> Iterator[BaseEvent]:
        content = {"name": event.name, "status": "failed" if event.failed else "done", "args": event.args, "output": event.output}
        yield _activity(named(event.call_id), "vendor_call", content, tag)

    def _source(self, event: kinds.SourceFound, named: Named, tag: str | None) -> Iterator[BaseEvent]:
        message_id = named(event.message_id)
        found = self._sources.setdefault(message_id, [])
        names = ("url", "title", "document", "quote", "start", "end")
        found.append(_known({name: getattr(event, name) for name in names}))
        yield _activity(message_id, "sources", {"sources": found}, tag)

    def _file(self, event: kinds.FileMade, named: Named, tag: str | None) -> Iterator[BaseEvent]:
        url = event.url or (f"data:{event.mime_type};base64,{event.data}" if event.data else None)
        if url is None and event.size:
            self._elsewhere.setdefault(event.message_id, []).append((event, named))
            return
        message_id = named(event.message_id)
        self._files[message_id] = self._files.get(message_id, 0) + 1
        content = {"mimeType": event.mime_type, "url": url, "fileId": event.file_id, "name": event.name}
        yield _activity(f"{message_id}:{self._files[message_id]}", "file", content, tag)


def _known(content: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in content.items() if value not in (None, "")}


def _activity(about: str, kind: str, content: dict[str, Any], tag: str | None) -> BaseEvent:
    return ActivitySnapshotEvent(message_id=f"{about}:{kind}", activity_type=kind, content=plain(_known(content)), subagent_run_id=tag)


_EVENTS: Final[Mapping[type[RunEvent], Callable[[VendorActivities, Any, Named, str | None], Iterator[BaseEvent]]]] = {
    kinds.VendorCallStarted: VendorActivities._started,
    kinds.VendorCallProgress: VendorActivities._progress,
    kinds.VendorCallDone: VendorActivities._done,
    kinds.SourceFound: VendorActivities._source,
    kinds.FileMade: VendorActivities._file,
}
