"""Events of runs, made by hand: what pages are tested with that show one moment of a run."""

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

from langchain_core.messages import ToolMessage

from langchain_autotools import PendingCall, ToolCallRecord
from langchain_autotools.event_types import (
    CallArgumentsDelta,
    CallProgress,
    CallReady,
    CallResult,
    CallStarted,
    RunEvent,
    RunStarted,
    TextDelta,
)

USAGE = {"input_tokens": 1000, "output_tokens": 20, "total_tokens": 1020}
OUTER: dict[str, Any] = {"run_id": "outer"}
INNER: dict[str, Any] = {"run_id": "inner", "parent_run_id": "outer", "parent_call_id": "1"}

_TEXT_TAG = r"p|br|strong|em|del|code|pre|a|[uo]l|li|blockquote|hr|table|thead|tbody|tr|t[hd]|span"
TEXT_TAG = re.compile(_TEXT_TAG)
PAGE_TAG = re.compile(rf"{_TEXT_TAG}|div|details|summary|img")


def record(call_id: str, name: str, args: dict[str, Any]) -> ToolCallRecord:
    """A call."""
    return ToolCallRecord(call_id, name, json.dumps(args), args)


def begun(text: str = "Let me **look**.") -> Iterator[RunEvent]:
    """A run has said this."""
    yield RunStarted(**OUTER, name="Weather")
    yield TextDelta(**OUTER, message_id="m", text=text)


def written(*pieces: str, call_id: str = "1", name: str = "forecast") -> Iterator[RunEvent]:
    """A call is being written."""
    yield CallStarted(**OUTER, message_id="m", call_id=call_id, name=name, index=0, provisional=True)
    for piece in pieces:
        yield CallArgumentsDelta(**OUTER, message_id="m", call_id=call_id, text=piece)


def ready(call: ToolCallRecord, run: dict[str, Any] = OUTER) -> Iterator[RunEvent]:
    """A call is whole."""
    yield CallStarted(**run, message_id="m", call_id=call.id, name=call.name, index=0, provisional=False)
    yield CallReady(**run, message_id="m", call=call, index=0)


def reported(call_id: str, *values: Any, run: dict[str, Any] = OUTER) -> Iterator[RunEvent]:
    """A call's tool reports these."""
    for value in values:
        yield CallProgress(**run, call_id=call_id, value=value)


def answered(call: ToolCallRecord, content: str, run: dict[str, Any] = OUTER, status: Any = "success") -> RunEvent:
    """A call has this result."""
    message = ToolMessage(content, tool_call_id=call.id, status=status)
    return CallResult(**run, call=call, index=0, message=message, duration=0.25, executed=True)


def pending(call: ToolCallRecord, kind: Any = "approval") -> PendingCall:
    """A call that waits."""
    return PendingCall(call.id, call.name, call.args or {}, kind, "uuid", "digest")


class Read(HTMLParser):
    """What a browser reads of HTML.

    Attributes:
        tags: The names of all tags.
        attributes: All attributes, with their values.
        text: The words.
        balanced: Whether each tag is closed, in order.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str | None]] = set()
        self.text = ""
        self._open: list[str] = []
        self.balanced = True
        self.feed(html)
        self.close()
        self.balanced = self.balanced and not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        self.tags.add(tag)
        self.attributes |= set(attrs)
        if tag not in ("br", "hr", "img"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close the tag that was opened last."""
        self.balanced = self.balanced and bool(self._open) and self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Note words."""
        self.text += data
