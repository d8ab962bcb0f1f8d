"""What a vendor does by itself in runs that are kept: in rows, for readers that come later, and across a crash."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from langchain_autotools import ChatOpenAI
from langchain_autotools.durable import durable
from langchain_autotools.durable.journal import append_joined, event_of, row_of
from langchain_autotools.durable.run_reader import Story
from langchain_autotools.event_types import (
    FileMade,
    MessageDone,
    RunEvent,
    SourceFound,
    VendorCallDone,
    VendorCallProgress,
    VendorCallStarted,
)
from tests.support import vendor_replies as replies
from tests.support.durable import Life
from tests.support.responses_server import ResponsesServer
from tests.support.script import Events, Turn
from tests.support.vendor_replies import LARGE, PIXEL, large_file, shown_run, told
from tests.support.weather import get_temperature


def rows(events: list[RunEvent], execution: str = "one") -> dict[str, Any]:
    """The row of these events, as the database has it."""
    kept: list[RunEvent] = []
    for event in events:
        append_joined(kept, event)
    row: dict[str, Any] = json.loads(json.dumps({"execution": execution, "events": [row_of(event) for event in kept]}))
    return row


def test_rows_hold_each_but_partial_images() -> None:
    """What comes back is what was told; a file above 256 kB is in its message alone."""
    events = shown_run()
    back = [event_of(row) for row in rows(events)["events"]]
    assert back == [event for event in events if not (isinstance(event, VendorCallProgress) and event.image)]
    large = json.dumps(rows(large_file(kept=False)))
    assert large.count(LARGE) == 1 and '"size": 300000' in large


def test_a_crash_ends_the_calls_and_voids_what_was_found() -> None:
    """The next execution asks again: its events are told, those of the first one once."""
    story = Story("run")
    first = [*story.events_of(rows(shown_run()[:2]))]
    second = [*story.events_of(rows(shown_run(), "two"))]
    assert [type(event) for event in first[1:]] == [VendorCallStarted]
    assert isinstance(second[0], VendorCallDone) and second[0].failed
    assert told(second[1:]) == told([event for event in shown_run() if not getattr(event, "image", None)])
    assert [*story.events_of(rows(shown_run(), "three"))] == []


def test_a_durable_run_tells_readers_what_its_vendor_does(life: Life) -> None:
    """Live and after its end alike, also from a position on; the large image is once in the database."""
    reply = replies.responses()
    swapped: Any = json.loads(json.dumps([reply.events, reply.whole]).replace(PIXEL, LARGE))
    with ResponsesServer([Events(*swapped), Turn("21.")]) as server:
        own = ChatOpenAI(model="any", base_url=server.url, api_key="key", use_responses_api=True, tools=[get_temperature])
        model = durable(own, "test")
        life.begin()
        list(model.stream("Where?", run_id="run"))
        found = list(model.events("run"))
    expected = [one for one in replies.RESPONSES if one != ("goes on", "partial_image")]
    assert told(found) == [("file", "image/png", "ig_1") if one[0] == "file" and PIXEL in one else one for one in expected]
    (image,) = [event for event in found if isinstance(event, FileMade) and event.size]
    (message,) = [event.message for event in found if isinstance(event, MessageDone) and event.message_id == image.message_id]
    whole = image.found_in(message)
    assert whole is not None and whole.data == LARGE
    source = next(event for event in found if isinstance(event, SourceFound))
    assert list(model.events("run", after=source.position)) == found[found.index(source) + 1 :]
