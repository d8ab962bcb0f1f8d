"""What Anthropic does by itself in a reply, for listeners: calls of its server tools and of MCP servers, citations, files.

Wire facts: a call is a `server_tool_use` or `mcp_tool_use` block, whose input comes in `input_json_delta` events; its result is a block
whose type ends in `_tool_result`, in the same reply or, after a pause, in the next one; citations come as `citations_delta`
(docs.claude.com/en/docs/build-with-claude/streaming).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...event_types import RunEvent
from .._base.vendor_events import VendorEvents, done, file_made, progress, source, started
from .._encode.json_text import read_object

_MARKS = re.compile(rb"server_tool_use|mcp_tool_use|_tool_result|citation")
_WITH_INPUT = re.compile(_MARKS.pattern + rb"|input_json_delta|content_block_st")
_CALLS = frozenset({"server_tool_use", "mcp_tool_use"})
_RESULT = "_tool_result"
_OPAQUE = frozenset({"encrypted_content", "encrypted_stdout", "encrypted_index"})


class MessagesEvents(VendorEvents):
    """Reads the events of one reply, or a whole body."""

    def __init__(self) -> None:
        self.marks = _MARKS
        self._calls: dict[str, tuple[str, Any]] = {}
        self._open: tuple[Any, str] | None = None  # the block whose input is being written: its index and its call
        self._input: list[str] = []

    def read(self, event: Mapping[str, Any]) -> Iterator[RunEvent]:
        """Yield what listeners are told of an event, or of a whole body."""
        kind = event.get("type")
        if kind == "content_block_start":
            yield from self._close()
            yield from self._block(event.get("content_block") or {}, event.get("index"))
        elif kind == "content_block_delta":
            yield from self._delta(event.get("delta") or {}, event.get("index"))
        elif kind == "content_block_stop":
            yield from self._close()
        else:
            for block in (event.get("message") or event).get("content") or ():
                yield from self._block(block, None)
                yield from self._close()

    def _block(self, block: Mapping[str, Any], index: Any) -> Iterator[RunEvent]:
        kind = str(block.get("type"))
        if kind in _CALLS:
            call_id, name = str(block.get("id")), str(block.get("name"))
            name = f"mcp.{name}" if kind.startswith("mcp") else name
            self._calls[call_id] = name, block.get("input") or None
            self._open, self.marks = (index, call_id), _WITH_INPUT
            yield started(call_id, name, block.get("input"))
        elif kind.endswith(_RESULT) and kind != _RESULT.lstrip("_"):
            yield from self._result(kind, block)
        for citation in block.get("citations") or ():
            yield from _cited(citation)

    def _delta(self, delta: Mapping[str, Any], index: Any) -> Iterator[RunEvent]:
        if delta.get("type") == "citations_delta":
            yield from _cited(delta.get("citation") or {})
        elif self._open is not None and self._open[0] == index and delta.get("partial_json"):
            self._input.append(delta["partial_json"])
            yield progress(self._open[1], text=delta["partial_json"])

    def _close(self) -> Iterator[RunEvent]:
        """Yield what a call is called with once its block is complete: its result may come in another reply."""
        if self._open is not None and self._input:
            call_id = self._open[1]
            name, args = self._calls[call_id]
            self._calls[call_id] = name, read_object("".join(self._input)) or args
            yield started(call_id, *self._calls[call_id])
        self._open, self._input, self.marks = None, [], _MARKS

    def _result(self, kind: str, block: Mapping[str, Any]) -> Iterator[RunEvent]:
        call_id, content = str(block.get("tool_use_id")), block.get("content")
        name, args = self._calls.get(call_id, (kind.removesuffix(_RESULT), None))
        failed = bool(block.get("is_error")) or (isinstance(content, Mapping) and str(content.get("type")).endswith("_error"))
        yield done(call_id, name, args, _readable(content), failed=failed)
        for file_id in _file_ids(content):
            yield file_made(None, file_id=file_id, call_id=call_id)


def _readable(value: Any) -> Any:
    """Return a result without what only the vendor reads."""
    if isinstance(value, Mapping):
        return {key: _readable(item) for key, item in value.items() if key not in _OPAQUE}
    return [_readable(item) for item in value] if isinstance(value, list) else value


def _file_ids(content: Any) -> Iterator[str]:
    """Yield the ids of the files that code has made."""
    made = content.get("content") if isinstance(content, Mapping) else None
    for one in made if isinstance(made, list) else ():
        if isinstance(one, Mapping) and one.get("file_id"):
            yield str(one["file_id"])


def _cited(citation: Mapping[str, Any]) -> Iterator[RunEvent]:
    url, title = citation.get("url"), citation.get("title") or citation.get("document_title")
    document = None if url else citation.get("source") or citation.get("document_title") or citation.get("file_id")
    if not (url or document) and citation.get("document_index") is not None:
        document = f"document {citation['document_index']}"
    yield source(url=url, title=title, document=document, quote=citation.get("cited_text"))
