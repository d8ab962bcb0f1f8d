"""What OpenAI does by itself in a reply of the Responses API, for listeners: its tools' calls, citations, files.

Wire facts: a call of the vendor's tools is an output item; events named after its type tell of its progress
(`response.web_search_call.searching`, `response.image_generation_call.partial_image`, `response.code_interpreter_call_code.delta`),
and it is complete with `response.output_item.done` (platform.openai.com/docs/api-reference/responses-streaming). Sound comes in pieces of
base64 beside the items (`response.audio.delta`), of which no event says the format.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...event_types import RunEvent
from .._base.replies import VendorEvents, done, file_made, progress, source, started
from .._encode.encoder import read_object
from .responses_decode import annotations_of
from .responses_items import CALL_TYPES, Item, ResponseEvent, is_for_client

_MARKS = re.compile(
    rb'"type": ?"response\.(?:output_item\.|audio\.delta|completed|incomplete|code_|compaction\.|image_|mcp_|shell_call_command|\w+_call\.)'
    rb'|"object": ?"response"'
)
_PROGRESS = re.compile(r"response\.(\w+?_call|mcp_list_tools|compaction)(?:_code|_arguments|_command)?\.(\w+)")
_IMAGE = "image_generation_call"
_NOT_CALLED_SO = ("compaction", "mcp_list_tools")
_ENDED = frozenset({"in_progress", "completed", "failed", "added", "done"})  # an item says the same
_FAILED = frozenset({"failed", "incomplete", "cancelled"})
_INPUT = ("queries", "code", "container_id", "server_label", "input", "prompt", "revised_prompt", "size", "quality", "background")
_NOT_OUTPUT = frozenset(
    {
        "type",
        "id",
        "call_id",
        "status",
        "name",
        "action",
        "arguments",
        "result",
        "created_by",
        "encrypted_content",
        "sequence_number",
        *_INPUT,
    }
)


class ResponsesEvents(VendorEvents):
    """Reads the events of one reply, or a whole body."""

    marks = _MARKS

    def __init__(self) -> None:
        self._begun: set[str] = set()
        self._places: dict[Any, str] = {}  # the calls by their place: events of a shell's commands name no item
        self._ended: set[str] = set()
        self._sound: list[str] = []

    def read(self, event: ResponseEvent) -> Iterator[RunEvent]:
        """Yield what listeners are told of an event, or of a whole body."""
        kind = str(event.get("type") or "")
        item: Any = event.get("item")
        if kind == "response.output_item.added":
            yield from self._start(item, event.get("output_index"))
        elif kind == "response.output_item.done":
            yield from self._end(item, f"{event.get('output_index')}")
        elif found := _PROGRESS.fullmatch(kind):
            yield from self._progress(event, found[2])
        elif kind == "response.audio.delta":
            self._sound.append(str(event.get("delta") or ""))
        else:
            whole: Any = event.get("response") or event
            for place, one in enumerate(whole.get("output") or () if whole.get("status") not in (None, "in_progress", "queued") else ()):
                yield from self._end(one, f"{place}")

    def rest(self) -> Iterator[RunEvent]:
        """Yield the sound of the reply."""
        if data := "".join(self._sound):
            yield file_made(None, data)

    def _start(self, item: Item, place: Any) -> Iterator[RunEvent]:
        if _is_of_vendor(item) and item.get("id"):
            self._begun.add(str(item["id"]))
            self._places[place] = str(item["id"])
            yield started(str(item["id"]), _name(item), _arguments(item))

    def _progress(self, event: Mapping[str, Any], word: str) -> Iterator[RunEvent]:
        call_id = str(event.get("item_id") or self._places.get(event.get("output_index")))
        if call_id not in self._begun:
            return
        if event.get("partial_image_b64"):
            image = file_made(_image_type(event), event["partial_image_b64"])
            yield progress(call_id, status="partial_image", image=image.data, mime_type=image.mime_type)
        elif word == "delta":
            yield progress(call_id, text=str(event.get("delta") or ""))
        elif word not in _ENDED:
            yield progress(call_id, status=word)

    def _end(self, item: Item, place: str) -> Iterator[RunEvent]:
        key = str(item.get("id") or f"{item.get('type')} {place}")
        if key in self._ended:
            return
        self._ended.add(key)
        if item.get("type") == "message":
            for entry in annotations_of(item):
                yield from _cited(entry)
        elif _is_of_vendor(item):
            failed = item.get("status") in _FAILED or bool(item.get("error"))
            yield done(key, _name(item), _arguments(item), _output(item), failed=failed)
            yield from _files(item, key)


def _is_of_vendor(item: Item) -> bool:
    """Whether an item is a call that the vendor runs itself."""
    kind = str(item.get("type"))
    return (kind.endswith("_call") or kind in _NOT_CALLED_SO) and kind not in CALL_TYPES and not is_for_client(item)


def _name(item: Item) -> str:
    kind = str(item.get("type")).removesuffix("_call")
    return f"mcp.{item['name']}" if kind == "mcp" and item.get("name") else kind


def _arguments(item: Mapping[str, Any]) -> dict[str, Any]:
    args = {key: item[key] for key in _INPUT if item.get(key)}
    action, written = item.get("action"), item.get("arguments")
    if isinstance(action, Mapping):
        args |= {key: value for key, value in action.items() if value and key != "sources"}
    if isinstance(written, Mapping):
        args |= written
    return args if not isinstance(written, str) else {**args, **(read_object(written) or {})}


def _output(item: Mapping[str, Any]) -> Any:
    action = item.get("action")
    sources = action.get("sources") if isinstance(action, Mapping) else None
    output = {key: value for key, value in item.items() if value is not None and key not in _NOT_OUTPUT}
    output |= {"sources": sources} if sources else {}
    return output.get("output") if output.keys() == {"output"} else output or None


def _image_type(item: Mapping[str, Any]) -> str | None:
    return f"image/{item['output_format']}" if item.get("output_format") else None


def _files(item: Mapping[str, Any], call_id: str) -> Iterator[RunEvent]:
    """Yield the files that a call has made."""
    if item.get("type") == _IMAGE and item.get("result"):
        yield file_made(_image_type(item), item["result"], file_id=call_id, call_id=call_id)
    for output in item.get("outputs") or ():
        if output.get("type") == "image" and output.get("url"):
            yield file_made("image/png", url=output["url"], call_id=call_id)


def _cited(entry: Mapping[str, Any]) -> Iterator[RunEvent]:
    make = _CITED.get(str(entry.get("type")))
    if make is not None:
        yield make(entry)


def _page(entry: Mapping[str, Any]) -> RunEvent:
    return source(url=entry.get("url"), title=entry.get("title"), start=entry.get("start_index"), end=entry.get("end_index"))


def _document(entry: Mapping[str, Any]) -> RunEvent:
    return source(document=entry.get("filename") or entry.get("file_id"), start=entry.get("index"), end=entry.get("index"))


def _file_event(entry: Mapping[str, Any]) -> RunEvent:
    return file_made(None, file_id=entry.get("file_id"), name=entry.get("filename"))


_CITED: Mapping[str, Callable[[Mapping[str, Any]], RunEvent]] = {
    "url_citation": _page,
    "file_citation": _document,
    "container_file_citation": _file_event,
    "file_path": _file_event,
}
