"""The items of the Responses API: their types, the outline that is stored of them, which of them the caller must answer.

They are wider than the SDK's types (`openai.types.responses`): an item is kept and sent back as it came, whatever else it holds.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Required, TypedDict

from ...event_types import RunEvent
from ...messages.calls import CLIENT_TOOL, VENDOR_APPROVAL, ToolCallRecord, id_of_item
from .._base.replies import VendorEvents, done, file_made, progress, source, started
from .._encode.encoder import read_object
from .dialect import InputAudio
from .mapper import custom_input, legal_name


class ItemPart(TypedDict, total=False):
    """A part of a message, of a tool's output or of reasoning. In an outline, `length` replaces the text."""

    type: str
    text: str | None
    length: int
    refusal: str | None
    annotations: list[Any] | None
    logprobs: list[Any] | None
    detail: str
    image_url: str
    file_id: str
    file_url: str
    file_data: str
    filename: str
    input_audio: InputAudio


class Item(TypedDict, total=False):
    """An input or output item. Items of the vendor's own tools have further keys."""

    type: str
    id: str | None
    status: str | None
    role: str
    content: str | list[ItemPart] | None
    summary: list[ItemPart] | None
    encrypted_content: str | None
    call_id: str | None
    name: str | None
    arguments: str | None
    input: str | None
    output: str | list[ItemPart]
    caller: dict[str, Any] | None
    execution: str | None
    result: str | None


class Response(TypedDict, total=False):
    """A whole reply, or a partial one."""

    id: str | None
    model: str | None
    status: str | None
    output: list[Item] | None
    usage: Any
    error: Any
    incomplete_details: Any
    service_tier: str | None
    store: bool | None


class ResponseEvent(TypedDict, total=False):
    """An event of a streamed reply; from some gateways a whole reply."""

    type: Required[str]
    response: Response
    item: Item
    item_id: str | None
    output_index: int | None
    content_index: int | None
    summary_index: int | None
    delta: str | None
    arguments: str | None
    input: str | None
    name: str | None
    error: Any
    output: list[Item] | None
    partial_image_b64: str | None
    partial_image_index: int | None


# ---------------------------------------------------------------------------------------------- items
# The stored outline of a reply's output items, from which they are sent back unchanged.
#
# A reasoning item must go back together with the item that follows it, in order and unchanged; so must whatever the vendor's own tools
# did. LangChain's message already holds the texts and the calls. What is kept beside them is an outline: each item without its text and
# its call, which are put in again from the message. A message that was edited no longer fits its outline, and goes back as text and calls
# alone, which is always legal.
#
# Wire facts: "Item of type 'reasoning' was provided without its required following item" and the reverse (wire quirk P-05). Items that the
# server does not store are unknown to it by their id. `status` and what other servers add is refused by some.


FUNCTION_CALL = "function_call"
CUSTOM_CALL = "custom_tool_call"
CALL_TYPES = frozenset({FUNCTION_CALL, CUSTOM_CALL})

MODEL_MADE = frozenset({"message", "reasoning", *CALL_TYPES})
_NEVER_SENT = frozenset({"created_by", "parsed_arguments", "parsed", "sequence_number"})
_OF_A_CALL = frozenset({"name", "arguments", "input", "call_id", "item_id", "output_index"})
_BARE = frozenset({"type", "name"})
# The API takes these without their id: where the server does not keep what it sent, it knows none.
_MAY_LACK_ID = frozenset({"shell_call", "apply_patch_call"})


def parts_of(item: Item, key: Literal["content", "summary"] = "content") -> list[ItemPart]:
    """Return the parts of an item's content or summary.

    Args:
        item: The item.
        key: The list to return.
    """
    parts = item.get(key)
    return [part for part in parts if isinstance(part, Mapping)] if isinstance(parts, list) else []


# ---------------------------------------------------------------------------------------------- what is kept


def outline(items: Sequence[Item], *, stored: bool) -> list[Item]:
    """Return the outline of a reply's items; empty if text and calls alone suffice.

    Args:
        items: The output items, complete and in order.
        stored: Whether the server keeps them: then it knows them by their ids, else ids mean nothing to it.
    """
    kept = [entry for entry in (_entry(item, stored) for item in items) if entry is not None]
    return [] if _is_plain(kept) else kept


def _entry(item: Item, stored: bool) -> Item | None:
    kind = item.get("type")
    hidden = _NEVER_SENT | ({"status"} if kind in MODEL_MADE else set()) | (_OF_A_CALL if kind in CALL_TYPES else set())
    entry: Item = _without({key: value for key, value in item.items() if value is not None}, hidden)
    if (kind in MODEL_MADE or kind in _MAY_LACK_ID) and not stored:
        entry.pop("id", None)
    if kind == "message":
        return {**entry, "content": [_measured(part) for part in parts_of(item)]}
    if kind == "reasoning":
        return _reasoning_entry(entry)
    return {**entry, "name": item.get("name")} if kind in CALL_TYPES else entry


def _without(part: Mapping[str, object], keys: Collection[str]) -> Any:
    """Return an item or part without some of its keys."""
    return {key: value for key, value in part.items() if key not in keys}


def _measured(part: ItemPart) -> ItemPart:
    """Return a part with its text replaced by the text's length, and without log probabilities."""
    if part.get("type") != "output_text":
        return {**part}
    kept: ItemPart = _without({key: value for key, value in part.items() if value}, ("text", "logprobs", "parsed"))
    return {**kept, "length": len(str(part.get("text") or ""))}


def _reasoning_entry(entry: Item) -> Item | None:
    """Return a reasoning item; None for one that is neither stored nor complete, whose content is lost."""
    if not entry.get("content"):
        entry.pop("content", None)
    if not ("id" in entry or "encrypted_content" in entry or "content" in entry):
        return None
    return {**entry, "summary": entry.get("summary") or []}


def _is_plain(entries: Sequence[Item]) -> bool:
    """Whether the entries are at most one text message followed by function calls, ignoring ids."""
    kinds = [entry.get("type") for entry in entries]
    if set(kinds[1:]) - {FUNCTION_CALL} or set(kinds[:1]) - {"message", FUNCTION_CALL}:
        return False
    if kinds[:1] == ["message"] and (
        entries[0].keys() - {"type", "id", "role", "content"} or any(part.keys() != {"type", "length"} for part in parts_of(entries[0]))
    ):
        return False
    return not any(entry.keys() - _BARE - {"id"} for entry in entries if entry.get("type") == FUNCTION_CALL)


# ---------------------------------------------------------------------------------------------- how it goes back


def restored(entries: Any, text: str, calls: Sequence[ToolCallRecord], ids: Sequence[str]) -> list[Item] | None:
    """Return the original items of a reply; None if the message has been changed.

    Args:
        entries: The outline.
        text: The message's text.
        calls: The message's calls.
        ids: The id that each of them is sent with.
    """
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        return None
    outlined: list[Item] = entries
    named = [entry.get("name") for entry in outlined if entry.get("type") in CALL_TYPES]
    if named != [call.name for call in calls] or any(call.args is None or legal_name(call.name) != call.name for call in calls):
        return None
    rest = iter(zip(calls, ids, strict=True))
    items: list[Item] = []
    start = 0
    for entry in outlined:
        if entry.get("type") in CALL_TYPES:
            call, identifier = next(rest)
            written: Item = {"input": custom_input(call)} if entry["type"] == CUSTOM_CALL else {"arguments": call.arguments}
            items.append({**entry, "call_id": identifier, **written})
        elif entry.get("type") == "message":
            item, start = _with_text(entry, text, start)
            items.append(item)
        else:
            items.append({**entry})
    return items if start == len(text) else None


def _with_text(entry: Item, text: str, start: int) -> tuple[Item, int]:
    parts: list[ItemPart] = []
    for part in parts_of(entry):
        if "length" not in part:
            parts.append({**part})
            continue
        end = start + int(part["length"])
        kept: ItemPart = _without(part, ("length",))
        parts.append({"annotations": [], **kept, "text": text[start:end]})
        start = end
    return {**entry, "content": parts}, start


# ---------------------------------------------------------------------------------------------- client calls
# Calls of the vendor's tools that the caller answers: a shell, patches, a computer, approvals of remote tools.
#
# Nothing here runs them. They are in the message as the items that they are, end a run as pending, and go back together with the answer
# that the caller gives, by a decision or as a message. The API insists on that (for all but approvals).
#
# Wire facts: an answer is an item of type `..._output` that repeats the call's `call_id`. A local shell's repeats it as `id`. An approval
# is an `mcp_approval_response` that repeats the request's `id`. A shell in the vendor's own container (the call's `environment` is a
# `container_reference`) is answered in the reply itself (platform.openai.com/docs/api-reference/responses/create).


_CALLS = frozenset({"computer_call", "local_shell_call", "shell_call", "apply_patch_call"})
_CONTAINER = "container_reference"
_APPROVAL = "mcp_approval_request"
_SEARCH = "tool_search_call"
APPROVED = "mcp_approval_response"
"""The item type for the approval or rejection of a remote tool call."""
FOUND_TOOLS = "tool_search_output"
"""The item type for the tools that a search has found."""
_HANDLERS = {
    **{"computer_call": "computer", "local_shell_call": "shell", "shell_call": "shell", "apply_patch_call": "apply_patch"},
    **{_APPROVAL: "mcp_approval", _SEARCH: "tool_search"},
}
_SCREENS = ("computer", "computer_use", "computer_use_preview")
_MAKERS: Mapping[str, Sequence[str]] = {"computer_call": _SCREENS, _APPROVAL: ("mcp",)}
_TOOLS = frozenset({"shell", "local_shell", "apply_patch", *_SCREENS})


def answers_in_blocks(tools: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a reply may need content blocks: calls for the caller to answer, or images."""
    return any(
        tool.get("type") in (*_TOOLS, "image_generation")
        or (tool.get("type") == "mcp" and tool.get("require_approval") != "never")
        or (tool.get("type") == "tool_search" and tool.get("execution") == "client")
        for tool in tools
    )


def pending_calls(items: Sequence[Item]) -> list[Item]:
    """Return the items of a reply that wait for the caller: calls on the caller's machine, and approval requests."""
    open_calls = client_calls(items)
    return [item for item in items if item.get("type") == _APPROVAL or (_is_for_client(item) and item in open_calls)]


def awaited_entry(item: Item) -> dict[str, Any]:
    """Return the record of a waiting item: its id, what it waits for, the kind of handlers for it, the type of its answer, and the names of
    the tools that make such items."""
    kind = str(item.get("type"))
    tools = _MAKERS.get(kind, (kind.removesuffix("_call"),))
    known = {"id": id_of_item(item), "handler": _HANDLERS[kind], "tools": [*tools]}
    if kind == _APPROVAL:
        return {**known, "kind": VENDOR_APPROVAL, "answer": APPROVED}
    return {**known, "kind": CLIENT_TOOL, "answer": FOUND_TOOLS if kind == _SEARCH else f"{kind}_output"}


def client_calls(items: Sequence[Item]) -> list[Item]:
    """Return the unanswered calls that no request may contain without an answer, those of a shell in the vendor's own container too."""
    answered = {answered_id(item) for item in items}
    return [item for item in items if _is_answered_by_item(item) and not names_of(item) & answered]


def _is_for_client(item: Item) -> bool:
    """Whether an item is a call that the caller's machine answers."""
    place = item.get("environment")
    return _is_answered_by_item(item) and not (isinstance(place, Mapping) and place.get("type") == _CONTAINER)


def _is_answered_by_item(item: Item) -> bool:
    return item.get("type") in _CALLS or (item.get("type") == _SEARCH and item.get("execution") == "client")


def names_of(call: Item) -> frozenset[str]:
    """Return the ids by which an answer may refer to a call."""
    names = (call.get("call_id"), call.get("id") if call.get("type") == "local_shell_call" else None)
    return frozenset(str(name) for name in names if name)


def answered_id(item: Item) -> str | None:
    """Return the id of the call that an item answers; None for other items."""
    kind = str(item.get("type"))
    if not kind.endswith("_output"):
        return None
    named = item.get("call_id") or (item.get("id") if kind == "local_shell_call_output" else None)
    return str(named) if named else None


# ---------------------------------------------------------------------------------------------- responses vendor events
#
# What OpenAI does by itself in a reply of the Responses API, for listeners: its tools' calls, citations, files.
#
# Wire facts: a call of the vendor's tools is an output item; events named after its type tell of its progress
# (`response.web_search_call.searching`, `response.image_generation_call.partial_image`, `response.code_interpreter_call_code.delta`),
# and it is complete with `response.output_item.done` (platform.openai.com/docs/api-reference/responses-streaming). Sound comes in pieces of
# base64 beside the items (`response.audio.delta`), of which no event says the format.

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
        *("type", "id", "call_id", "status", "name", "action", "arguments", "result"),
        *("created_by", "encrypted_content", "sequence_number", *_INPUT),
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
                if make := _CITED.get(str(entry.get("type"))):
                    yield make(entry)
        elif _is_of_vendor(item):
            failed = item.get("status") in _FAILED or bool(item.get("error"))
            yield done(key, _name(item), _arguments(item), _output(item), failed=failed)
            yield from _files(item, key)


def annotations_of(item: Item) -> list[Any]:
    """Return the annotations of a message item."""
    return [entry for part in text_parts(item) for entry in part.get("annotations") or ()]


def text_parts(item: Item) -> list[ItemPart]:
    """Return the parts of an item that is a message; of another one none."""
    return parts_of(item) if item.get("type") == "message" else []


def _is_of_vendor(item: Item) -> bool:
    """Whether an item is a call that the vendor runs itself."""
    kind = str(item.get("type"))
    return (kind.endswith("_call") or kind in _NOT_CALLED_SO) and kind not in CALL_TYPES and not _is_for_client(item)


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
