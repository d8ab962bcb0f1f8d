"""Replies in which a vendor does something by itself and a tool is called, streamed and whole, and what listeners are told of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessage

from langchain_autotools.event_types import (
    FileMade,
    MessageDone,
    RunEnded,
    RunEvent,
    RunStarted,
    SourceFound,
    TextDelta,
    VendorCallDone,
    VendorCallProgress,
    VendorCallStarted,
)
from tests.support.script import Events

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
CITY = '{"city":"Oslo"}'
CALL = {"id": "call_own", "type": "function", "function": {"name": "get_temperature", "arguments": CITY}}
TOLD = (VendorCallStarted, VendorCallProgress, VendorCallDone, SourceFound, FileMade)
PAGE = {"url": "https://example.org/a", "title": "A page"}


def told(events: list[RunEvent]) -> list[tuple[Any, ...]]:
    """What vendors did, in few words: kind, name or address, what else counts."""
    said: list[tuple[Any, ...]] = []
    for event in events:
        if isinstance(event, VendorCallStarted):
            said.append(("start", event.name))
        elif isinstance(event, VendorCallProgress):
            said.append(("goes on", event.status or event.text))
        elif isinstance(event, VendorCallDone):
            said.append(("failed" if event.failed else "done", event.name, event.args, event.output))
        elif isinstance(event, SourceFound):
            said.append(("source", event.url or event.document, event.title, event.quote))
        elif isinstance(event, FileMade):
            said.append(("file", event.mime_type, event.data or event.file_id or event.url))
    return said


def responses() -> Events:
    """A search, code, an image with a partial one, an MCP call, a compaction, a cited answer, and a call of the program's tool."""
    search = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "oslo"}}
    code = {"id": "ci_1", "type": "code_interpreter_call", "status": "completed", "code": "1+1", "container_id": "cn", "outputs": None}
    image = {"id": "ig_1", "type": "image_generation_call", "status": "completed", "result": PIXEL, "output_format": "png"}
    mcp = {
        "id": "mcp_1",
        "type": "mcp_call",
        "status": "failed",
        "name": "roll",
        "server_label": "dice",
        "arguments": '{"d":6}',
        "error": "no",
    }
    compaction = {"id": "cmp_1", "type": "compaction", "encrypted_content": "b3BhcXVl"}
    cited = {"type": "url_citation", **PAGE, "start_index": 0, "end_index": 4}
    filed = {"type": "container_file_citation", "container_id": "cn", "file_id": "cfile_1", "filename": "plot.csv", "start_index": 0}
    part = {"type": "output_text", "text": "Oslo.", "annotations": [cited, filed]}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    own = {
        "id": "fc_1",
        "type": "function_call",
        "status": "completed",
        "call_id": "call_own",
        "name": "get_temperature",
        "arguments": CITY,
    }
    items = [search, code, image, mcp, compaction, message, own]
    whole = {"id": "resp_1", "object": "response", "status": "completed", "model": "any", "output": items}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}}]
    between: Mapping[str, list[dict[str, Any]]] = {
        "ws_1": [{"type": "response.web_search_call.searching", "item_id": "ws_1"}],
        "ci_1": [{"type": "response.code_interpreter_call_code.delta", "item_id": "ci_1", "delta": "1+1"}],
        "ig_1": [{"type": "response.image_generation_call.partial_image", "item_id": "ig_1", "partial_image_b64": "b25l"}],
        "cmp_1": [{"type": "response.compaction.compacting", "item_id": "cmp_1"}],
        "msg_1": [{"type": "response.output_text.delta", "item_id": "msg_1", "content_index": 0, "delta": "Oslo."}],
    }
    for place, item in enumerate(items):
        at = {"output_index": place}
        events.append(
            {"type": "response.output_item.added", **at, "item": {**item, "status": "in_progress", "content": [], "result": None}}
        )
        events += [{**one, **at} for one in between.get(str(item["id"]), ())]
        events.append({"type": "response.output_item.done", **at, "item": item})
    return Events([*events, {"type": "response.completed", "response": whole}], whole)


RESPONSES = [
    ("start", "web_search"),
    ("goes on", "searching"),
    ("done", "web_search", {"type": "search", "query": "oslo"}, None),
    ("start", "code_interpreter"),
    ("goes on", "1+1"),
    ("done", "code_interpreter", {"code": "1+1", "container_id": "cn"}, None),
    ("start", "image_generation"),
    ("goes on", "partial_image"),
    ("done", "image_generation", None, {"output_format": "png"}),
    ("file", "image/png", PIXEL),
    ("start", "mcp.roll"),
    ("failed", "mcp.roll", {"server_label": "dice", "d": 6}, {"error": "no"}),
    ("start", "compaction"),
    ("goes on", "compacting"),
    ("done", "compaction", None, None),
    ("source", PAGE["url"], PAGE["title"], None),
    ("file", "application/octet-stream", "cfile_1"),
]


def chat() -> Events:
    """A cited answer, an image, a tool on the server, and a call of the program's tool."""
    cited = [{"type": "url_citation", "url_citation": {**PAGE, "start_index": 0, "end_index": 4}}]
    images = [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}]
    begun = {"index": 0, "type": "search", "arguments": '{"query":"oslo"}'}
    tool = {**begun, "output": "found"}
    message = {"role": "assistant", "content": "Oslo.", "annotations": cited, "images": images, "executed_tools": [tool]}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "any", "created": 1}
    deltas: list[dict[str, Any]] = [
        {"role": "assistant", "content": "Oslo."},
        {"executed_tools": [begun]},
        {"executed_tools": [tool]},
        {"annotations": cited},
        {"images": images},
        {"tool_calls": [{"index": 0, **CALL}]},
    ]
    events = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    events.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    whole = {
        **head,
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {**message, "tool_calls": [CALL]}, "finish_reason": "tool_calls"}],
    }
    return Events(events, whole)


CHAT = [
    ("start", "search"),
    ("done", "search", {"query": "oslo"}, "found"),
    ("source", PAGE["url"], PAGE["title"], None),
    ("file", "image/png", PIXEL),
]


def anthropic() -> Events:
    """A search whose input is streamed, code that makes a file, a cited answer, and a call of the program's tool."""
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "oslo"}}
    page = {"type": "web_search_result", **PAGE, "encrypted_content": "ZW5j", "page_age": None}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [page]}
    code = {"type": "server_tool_use", "id": "srvtoolu_2", "name": "code_execution", "input": {"code": "1+1"}}
    made = {"type": "code_execution_output", "file_id": "file_1"}
    ran = {"type": "code_execution_result", "stdout": "2", "stderr": "", "return_code": 0, "content": [made]}
    result = {"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_2", "content": ran}
    cited = {"type": "web_search_result_location", **PAGE, "cited_text": "In Oslo", "encrypted_index": "aW5k"}
    text = {"type": "text", "text": "Oslo.", "citations": [cited]}
    own = {"type": "tool_use", "id": "call_own", "name": "get_temperature", "input": {"city": "Oslo"}}
    blocks: list[dict[str, Any]] = [search, found, code, result, text, own]
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "any"}
    usage = {"input_tokens": 10, "output_tokens": 5}
    events: list[Any] = [{"type": "message_start", "message": {**head, "content": [], "usage": usage}}]
    for index, block in enumerate(blocks):
        start, deltas = {**block}, []
        if block is search:
            start["input"], deltas = {}, [{"type": "input_json_delta", "partial_json": '{"query":"oslo"}'}]
        elif block is text:
            start |= {"text": "", "citations": []}
            deltas = [{"type": "text_delta", "text": "Oslo."}, {"type": "citations_delta", "citation": cited}]
        elif block is own:
            start["input"], deltas = {}, [{"type": "input_json_delta", "partial_json": CITY}]
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}})
    return Events([*events, {"type": "message_stop"}], {**head, "content": blocks, "stop_reason": "tool_use", "usage": usage})


ANTHROPIC = [
    ("start", "web_search"),
    ("goes on", '{"query":"oslo"}'),
    ("done", "web_search", {"query": "oslo"}, [{"type": "web_search_result", **PAGE, "page_age": None}]),
    ("start", "code_execution"),
    (
        *("done", "code_execution", {"code": "1+1"}),
        {
            **{"type": "code_execution_result", "stdout": "2", "stderr": "", "return_code": 0},
            "content": [{"type": "code_execution_output", "file_id": "file_1"}],
        },
    ),
    ("file", "application/octet-stream", "file_1"),
    ("source", PAGE["url"], PAGE["title"], "In Oslo"),
]


def google() -> Events:
    """Code and its output, an image, a grounded answer, and a call of the program's tool."""
    parts: list[dict[str, Any]] = [
        {"executableCode": {"language": "PYTHON", "code": "1+1"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}},
        {"text": "Oslo."},
        {"inlineData": {"mimeType": "image/png", "data": PIXEL}},
        {"functionCall": {"name": "get_temperature", "args": {"city": "Oslo"}}},
    ]
    grounding = {
        "webSearchQueries": ["oslo"],
        "groundingChunks": [{"web": {"uri": PAGE["url"], "title": PAGE["title"]}}],
        "groundingSupports": [{"segment": {"startIndex": 0, "endIndex": 5, "text": "Oslo."}, "groundingChunkIndices": [0]}],
    }
    head = {"responseId": "reply_1", "modelVersion": "gemini-2.5-flash"}
    events = [{**head, "candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}]} for part in parts]
    events.append({**head, "candidates": [{"index": 0, "finishReason": "STOP", "groundingMetadata": grounding}]})
    content = {"role": "model", "parts": parts}
    whole = {**head, "candidates": [{"index": 0, "content": content, "finishReason": "STOP", "groundingMetadata": grounding}]}
    return Events(events, whole)


GOOGLE = [
    ("start", "code_execution"),
    ("done", "code_execution", {"language": "PYTHON", "code": "1+1"}, "2"),
    ("file", "image/png", PIXEL),
    ("start", "google_search"),
    ("done", "google_search", {"queries": ["oslo"]}, None),
    ("source", PAGE["url"], PAGE["title"], None),
]


def ollama() -> Events:
    """An image, and a call of the program's tool."""
    call = {"function": {"name": "get_temperature", "arguments": {"city": "Oslo"}}}
    head = {"model": "any", "created_at": "2026-11-25T12:00:00Z"}
    events: list[dict[str, Any]] = [
        {**head, "message": {"role": "assistant", "content": "", "images": [PIXEL]}, "done": False},
        {**head, "message": {"role": "assistant", "content": "", "tool_calls": [call]}, "done": False},
        {**head, "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"},
    ]
    message = {"role": "assistant", "content": "", "images": [PIXEL], "tool_calls": [call]}
    return Events(events, {**head, "message": message, "done": True, "done_reason": "stop"})


OLLAMA = [("file", "image/png", PIXEL)]


RUN = {"run_id": "run"}
IN_MESSAGE = {**RUN, "message_id": "m1"}
SEARCH = {**IN_MESSAGE, "call_id": "ws_1"}
LARGE = "QUJD" * 100_000


def shown_run(*more: RunEvent, text: str = "Oslo.", files: Any = ()) -> list[RunEvent]:
    """The events of a run in which the vendor searches, draws and cites."""
    return [
        RunStarted(**RUN, name="Model"),
        VendorCallStarted(**SEARCH, name="web_search"),
        VendorCallProgress(**SEARCH, status="searching"),
        VendorCallProgress(**SEARCH, text='{"query"'),
        VendorCallProgress(**SEARCH, image=PIXEL, mime_type="image/png"),
        VendorCallDone(**SEARCH, name="web_search", args={"query": "oslo"}, output={"pages": 2}),
        TextDelta(**IN_MESSAGE, text=text),
        SourceFound(**IN_MESSAGE, **PAGE, quote="In Oslo", start=0, end=4),
        SourceFound(**IN_MESSAGE, **PAGE, start=4, end=5),
        SourceFound(**IN_MESSAGE, url="javascript:alert(1)", title="<b>Run me</b>"),
        SourceFound(**IN_MESSAGE, document="notes.pdf"),
        FileMade(**IN_MESSAGE, mime_type="image/png", data=PIXEL, size=70, call_id="ws_1"),
        FileMade(**IN_MESSAGE, mime_type="text/csv", file_id="file_1", name="plot.csv"),
        *more,
        MessageDone(**RUN, message=AIMessage([text, *files], id="m1")),
        RunEnded(**RUN, stop_reason="complete", turns=1),
    ]


def large_file(*, kept: bool) -> list[RunEvent]:
    """The events of a run that makes a file above 256 kB; `kept`: as they come from where events are kept."""
    made = FileMade(**IN_MESSAGE, mime_type="image/png", data=LARGE, size=300_000)
    return shown_run(made.by_reference() if kept else made, files=[{"type": "image", "base64": LARGE, "mime_type": "image/png"}])
