"""What a vendor does by itself in each protocol."""

from __future__ import annotations

import json
from typing import Any

import pytest

from langchain_autotools.encoders import ai_sdk, sse
from langchain_autotools.event_types import FileMade, RunEvent, VendorCallDone
from tests.support.vendor_replies import LARGE, PAGE, PIXEL, RUN, SEARCH, large_file, shown_run

PICTURE = f"data:image/png;base64,{PIXEL}"


def frames(data: bytes) -> list[tuple[str, Any]]:
    """The frames of server-sent events: their names and their data."""
    made = []
    for frame in data.decode().strip().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in frame.split("\n"))
        made.append((lines["event"], json.loads(lines["data"])))
    return made


def chunks(events: list[RunEvent], **keywords: Any) -> list[Any]:
    """The chunks of the AI SDK."""
    return [json.loads(one.removeprefix("data: ")) for one in b"".join(ai_sdk(events, **keywords)).decode().split("\n\n")[:-2]]


def test_server_sent_events_have_a_frame_for_each() -> None:
    """With what is known, and no more."""
    found = [(name, {key: value for key, value in data.items() if key not in RUN}) for name, data in frames(b"".join(sse(shown_run())))]
    by_name = {name: data for name, data in reversed(found)}
    call = {"message_id": "m1", "call_id": "ws_1"}
    assert by_name["vendor_call_start"] == {**call, "name": "web_search", "args": None}
    assert [data for name, data in found if name == "vendor_call_progress"] == [
        {**call, "status": "searching"},
        {**call, "text": '{"query"'},
        {**call, "image": PIXEL, "mime_type": "image/png"},
    ]
    assert by_name["vendor_call"] == {**call, "name": "web_search", "args": {"query": "oslo"}, "output": {"pages": 2}, "failed": False}
    assert by_name["source"] == {"message_id": "m1", **PAGE, "quote": "In Oslo", "start": 0, "end": 4}
    assert by_name["file"] == {"message_id": "m1", "mime_type": "image/png", "size": 70, "data": PIXEL, "call_id": "ws_1"}


def test_a_large_file_stands_once_in_server_sent_events() -> None:
    """In the frame of its message."""
    data = b"".join(sse(large_file(kept=False)))
    assert data.decode().count(LARGE) == 1
    (large,) = [data for name, data in frames(data) if name == "file" and data["size"] == 300_000]
    assert "data" not in large and large["message_id"] == "m1"


def test_the_ai_sdk_gets_its_own_parts() -> None:
    """A tool part that the provider has executed, sources of both kinds, each once, and files."""
    made = chunks(shown_run())
    kinds = [chunk["type"] for chunk in made]
    call = {"toolCallId": "ws_1", "providerExecuted": True}
    assert kinds[:3] == ["start", "start-step", "tool-input-start"] and made[2] == {"type": kinds[2], **call, "toolName": "web_search"}
    assert made[4] == {"type": "tool-input-delta", "toolCallId": "ws_1", "inputTextDelta": '{"query"'}
    assert made[5] == {
        "type": "data-vendor-call-progress",
        "data": {"toolCallId": "ws_1", "status": "", "image": PICTURE},
        "transient": True,
    }
    assert made[6] == {"type": "tool-input-available", **call, "toolName": "web_search", "input": {"query": "oslo"}}
    assert made[7] == {"type": "tool-output-available", **call, "output": {"pages": 2}}
    assert [chunk["url"] for chunk in made if chunk["type"] == "source-url"] == [PAGE["url"]]
    assert [chunk["title"] for chunk in made if chunk["type"] == "source-document"] == ["<b>Run me</b>", "notes.pdf"]
    assert [chunk["url"] for chunk in made if chunk["type"] == "file"] == [PICTURE]
    assert "javascript" not in json.dumps(made)
    assert [chunk["data"]["name"] for chunk in made if chunk["type"] == "data-vendor-file"] == ["plot.csv"]


@pytest.mark.parametrize("kept", [False, True], ids=["live", "kept"])
def test_the_ai_sdk_gets_a_large_file_once(kept: bool) -> None:
    """Where events are kept without its data, from the message."""
    files = [chunk for chunk in chunks(large_file(kept=kept)) if chunk["type"] == "file"]
    assert [chunk["url"] for chunk in files] == [PICTURE, f"data:image/png;base64,{LARGE}"]


def test_an_address_that_runs_something_is_no_link_of_the_ai_sdk() -> None:
    """Pages put the address of a source and of a file into a link: that of a file which is none of the web is data beside it."""
    said: Any = {**RUN, "message_id": "m1", "mime_type": "text/csv"}
    files = [FileMade(**said, url=url) for url in ("javascript:alert(1)", "gs://bucket/a.csv", "https://example.org/a.csv")]
    made = [chunk for chunk in chunks([*shown_run(*files)]) if chunk["type"] in ("file", "data-vendor-file")][2:]
    assert [chunk.get("url") or chunk["data"]["url"] for chunk in made] == [one.url for one in files]
    assert [chunk["type"] for chunk in made] == ["data-vendor-file", "data-vendor-file", "file"]


def test_a_call_that_failed_is_an_error_of_its_part() -> None:
    """Also where the run ends before it does."""
    events = shown_run()
    events[5:6] = [VendorCallDone(**SEARCH, name="web_search", failed=True)]
    made = chunks(events)
    assert [chunk for chunk in made if chunk["type"] == "tool-output-error"] == [
        {"type": "tool-output-error", "toolCallId": "ws_1", "providerExecuted": True, "errorText": "The call did not end."}
    ]


def test_whole_turns_hold_back_what_belongs_to_a_message() -> None:
    """Until the message is complete; the end of a call that began in an earlier message is passed on at once."""
    events = shown_run()
    late = VendorCallDone(**{**SEARCH, "call_id": "ws_0"}, name="web_search")
    assert chunks(events, whole_turns=True) == chunks(events)
    held = [chunk["type"] for chunk in chunks([*events[:-2], late, events[-1]], whole_turns=True)]
    assert held == ["start", "tool-input-available", "tool-output-available", "finish"]


def test_ag_ui_gets_activities() -> None:
    """A call anew at its end, the sources of a message together, each file."""
    pytest.importorskip("ag_ui", reason="needs the extra `ag-ui`")
    from langchain_autotools.encoders import ag_ui

    data = b"".join(ag_ui(large_file(kept=True), thread_id="t", run_id="r")).decode()
    made = [json.loads(line.removeprefix("data: ")) for line in data.strip().split("\n\n")]
    snapshots = [event for event in made if event["type"] == "ACTIVITY_SNAPSHOT"]
    calls = [event["content"] for event in snapshots if event["activityType"] == "vendor_call"]
    assert calls == [
        {"name": "web_search", "status": "running"},
        {"name": "web_search", "status": "done", "args": {"query": "oslo"}, "output": {"pages": 2}},
    ]
    sources = [event["content"]["sources"] for event in snapshots if event["activityType"] == "sources"]
    assert [len(one) for one in sources] == [1, 2, 3, 4] and sources[0] == [{**PAGE, "quote": "In Oslo", "start": 0, "end": 4}]
    files = [event["content"] for event in snapshots if event["activityType"] == "file"]
    assert files == [
        {"mimeType": "image/png", "url": PICTURE},
        {"mimeType": "text/csv", "fileId": "file_1", "name": "plot.csv"},
        {"mimeType": "image/png", "url": f"data:image/png;base64,{LARGE}"},
    ]
    assert len({event["messageId"] for event in snapshots}) == 1 + 1 + 3
    progress = [event["value"] for event in made if event["type"] == "CUSTOM"]
    assert progress == [
        {"toolCallId": "ws_1", "status": "searching"},
        {"toolCallId": "ws_1", "delta": '{"query"'},
        {"toolCallId": "ws_1", "image": PICTURE},
    ]
