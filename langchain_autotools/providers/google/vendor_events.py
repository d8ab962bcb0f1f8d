"""What Google does by itself in a reply, for listeners: searches and code, what an answer is grounded in, and files.

Wire facts: code and its output are parts (`executableCode`, `codeExecutionResult`), of newer models with an `id`; searches are known by
the grounding metadata alone, which grows from event to event, so they are told at the end of the reply; so are the pages that were read
(`urlContextMetadata`); other tools on the server are `toolCall` and `toolResponse` parts (ai.google.dev/api/generate-content).
"""

import re
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from ...event_types import RunEvent
from .._base.vendor_events import VendorEvents, done, file_made, source, started

_MARKS = re.compile(
    rb'"(?:citationMetadata|codeExecutionResult|executableCode|fileData|groundingMetadata|inlineData|toolCall|toolResponse|urlContextMetadata)"'
)
_CODE = "code_execution"
_GROUNDS = ("web", "retrievedContext", "maps", "image")


class GenerateContentEvents(VendorEvents):
    """Reads the events of one reply, or a whole body."""

    marks = _MARKS

    def __init__(self) -> None:
        self._calls: dict[str, tuple[str, Any]] = {}
        self._last = ""  # the call whose result comes next, where results name none
        self._at_the_end: dict[str, Any] = {}

    def read(self, event: Any) -> Iterator[RunEvent]:
        """Yield what listeners are told of an event, or of a whole body."""
        for one in event if isinstance(event, list) else [event]:
            for candidate in (one.get("candidates") or ())[:1]:
                self._at_the_end |= {key: value for key, value in candidate.items() if value and key.endswith("Metadata")}
                for part in (candidate.get("content") or {}).get("parts") or ():
                    yield from self._part(part)

    def _part(self, part: Mapping[str, Any]) -> Iterator[RunEvent]:
        if code := part.get("executableCode"):
            yield self._begin(code.get("id"), _CODE, {"language": code.get("language"), "code": code.get("code")})
        elif result := part.get("codeExecutionResult"):
            failed = result.get("outcome", "OUTCOME_OK") not in ("OUTCOME_OK", 1)
            yield self._end(result.get("id"), _CODE, result.get("output"), failed=failed)
        elif call := part.get("toolCall"):
            yield self._begin(call.get("id"), str(call.get("toolType") or "tool").lower(), call.get("args"))
        elif answer := part.get("toolResponse"):
            yield self._end(answer.get("id"), str(answer.get("toolType") or "tool").lower(), answer.get("response"))
        elif (data := part.get("inlineData")) and not part.get("thought"):
            yield file_made(data.get("mimeType"), data.get("data"), name=data.get("displayName"))
        elif file := part.get("fileData"):
            yield file_made(file.get("mimeType"), url=file.get("fileUri"), name=file.get("displayName"))

    def _begin(self, call_id: Any, name: str, args: Any) -> RunEvent:
        self._last = str(call_id or f"call_{uuid.uuid4().hex}")
        self._calls[self._last] = name, args
        return started(self._last, name, args)

    def _end(self, call_id: Any, name: str, output: Any, *, failed: bool = False) -> RunEvent:
        known = str(call_id or self._last or f"call_{uuid.uuid4().hex}")
        made, args = self._calls.get(known, (name, None))
        return done(known, made, args, output, failed=failed)

    def rest(self) -> Iterator[RunEvent]:
        """Yield what the reply is grounded in."""
        grounding = self._at_the_end.get("groundingMetadata") or {}
        if queries := grounding.get("webSearchQueries") or grounding.get("imageSearchQueries"):
            yield done(f"call_{uuid.uuid4().hex}", "google_search", {"queries": queries})
        if pages := (self._at_the_end.get("urlContextMetadata") or {}).get("urlMetadata"):
            yield done(f"call_{uuid.uuid4().hex}", "url_context", {"urls": [page.get("retrievedUrl") for page in pages]}, pages)
        for chunk in grounding.get("groundingChunks") or ():
            found: Mapping[str, Any] = next((chunk[kind] for kind in _GROUNDS if chunk.get(kind)), {})
            url = found.get("uri") or found.get("sourceUri")
            document = None if url else found.get("documentName") or found.get("title")
            yield source(url=url, title=found.get("title"), document=document, quote=found.get("text"))
        citations = self._at_the_end.get("citationMetadata") or {}
        for one in citations.get("citationSources") or citations.get("citations") or ():
            yield source(url=one.get("uri"), title=one.get("title"))
