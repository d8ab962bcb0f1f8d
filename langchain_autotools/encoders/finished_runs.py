"""Events of finished runs, recreated from their messages.

A message of any vendor's is read by the shape of its data: content blocks as LangChain's core translates them, and what its packages keep
beside the content (`annotations`, `images`, `tool_outputs`).
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import groupby
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata, add_usage

from .. import event_types as kinds
from ..event_types import RunEvent
from ..executor.pending import PendingCall, pending_calls
from ..history.expansion import expand
from ..messages.blocks import deltas_of, size_of, standard_blocks
from ..messages.calls import ToolCallRecord
from ..messages.metadata import own_metadata, without_cost
from ..messages.run_messages import HoldsRun, held_message, new_messages, run_usage, stop_reason
from .public import page_calls

_FILES = {"image": "image/png", "audio": "audio/wav", "video": "video/mp4", "file": "application/octet-stream"}


def events_of(run: HoldsRun | AIMessage) -> Iterator[RunEvent]:
    """Yield the events of a run that its messages contain: without durations and progress reports."""
    message = held_message(run)
    run_id = str(message.id)
    yield from _message_events(run_id, new_messages(run) or [message], pending_calls(run))
    turns = own_metadata(message).get("turns", 1)
    yield kinds.RunEnded(run_id=run_id, stop_reason=stop_reason(run) or "complete", turns=turns, usage=run_usage(run))


def history_events(history: Sequence[BaseMessage]) -> Iterator[RunEvent | BaseMessage]:
    """The messages of a history that a model was given, and the events of what followed as a run each time. Run messages are expanded."""
    waiting = pending_calls(history)
    groups = [(given, list(group)) for given, group in groupby(expand(history), lambda one: not isinstance(one, AIMessage | ToolMessage))]
    for number, (given, messages) in enumerate(groups):
        run_id = f"run {number}"
        if given:
            yield from messages
            continue
        open_calls = waiting if number == len(groups) - 1 else []
        yield from _message_events(run_id, messages, open_calls)
        replies = [message for message in messages if isinstance(message, AIMessage)]
        if not replies:
            continue
        used: list[UsageMetadata] = [without_cost(one.usage_metadata) for one in replies if one.usage_metadata]
        usage = reduce(add_usage, used) if used else None
        reason = "calls_pending" if open_calls else stop_reason(replies[-1]) if messages[-1] is replies[-1] else None
        yield kinds.RunEnded(run_id=run_id, stop_reason=reason or "complete", turns=len(replies), usage=usage)


def _message_events(run_id: str, messages: Sequence[BaseMessage], waiting: Sequence[PendingCall]) -> Iterator[RunEvent]:
    calls: dict[str, tuple[int, ToolCallRecord]] = {}
    for message in messages:
        if isinstance(message, AIMessage):
            calls = {call.id: (index, call) for index, call in enumerate(page_calls(message))}
            yield from _reply_events(run_id, message, calls)
        elif isinstance(message, ToolMessage):
            asked_before = 0, ToolCallRecord(message.tool_call_id, message.name or "a call", "", {})  # of a run that was resumed
            index, call = calls.get(message.tool_call_id, asked_before)
            yield kinds.CallResult(run_id=run_id, call=call, index=index, message=message)
            yield kinds.MessageDone(run_id=run_id, message=message)
        elif isinstance(message, HumanMessage) and message is not messages[0]:  # what the run took: its question is before it
            yield kinds.MessageDone(run_id=run_id, message=message)
    if waiting:
        yield kinds.CallsPending(run_id=run_id, calls=waiting)


def _reply_events(run_id: str, message: AIMessage, calls: dict[str, tuple[int, ToolCallRecord]]) -> Iterator[RunEvent]:
    message_id = str(message.id)
    for kind, text in deltas_of(message.content, message.additional_kwargs):
        delta = kinds.TextDelta if kind == "text" else kinds.ReasoningDelta
        yield delta(run_id=run_id, message_id=message_id, text=text)
    yield from _sources_and_files(run_id, message)
    for index, call in calls.values():
        yield kinds.CallReady(run_id=run_id, message_id=message_id, call=call, index=index)
    yield kinds.MessageDone(run_id=run_id, message=message)


# ---------------------------------------------------------------------------------------------- what a vendor has found and made


def _sources_and_files(run_id: str, message: AIMessage) -> Iterator[RunEvent]:
    """Yield the sources and the files of a message."""
    about: dict[str, Any] = {"run_id": run_id, "message_id": str(message.id)}
    beside = message.additional_kwargs
    blocks: list[Mapping[str, Any]] = [] if isinstance(message.content, str) else standard_blocks(message)
    cited = [entry for block in blocks if block["type"] == "text" for entry in block.get("annotations") or ()]
    for entry in (*cited, *_mappings(beside.get("annotations"))):
        page = entry.get("url_citation") or entry
        if page.get("url"):
            yield kinds.SourceFound(**about, url=page["url"], title=page.get("title"), quote=page.get("cited_text"))
    images = [one if isinstance(one, Mapping) else {"base64": one} for one in beside.get("images") or ()]
    drawn = [{"base64": item["result"]} for item in _mappings(beside.get("tool_outputs")) if isinstance(item.get("result"), str)]
    for block in (*(one for one in blocks if one["type"] in _FILES), *({"type": "image", **one} for one in (*images, *drawn))):
        yield from _file_made(about, {**block, "type": block["type"] if block["type"] in _FILES else "image"})


def _file_made(about: Mapping[str, Any], block: Mapping[str, Any]) -> Iterator[RunEvent]:
    image, data = block.get("image_url"), block.get("base64")
    address = block.get("url") or (image.get("url") if isinstance(image, Mapping) else image)
    mime_type = block.get("mime_type") or _FILES[block["type"]]
    if isinstance(address, str) and address.startswith("data:"):
        head, _, data = address.removeprefix("data:").partition(";base64,")
        mime_type, address = head or mime_type, None
    if isinstance(data, str) or isinstance(address, str):
        data = data if isinstance(data, str) else None
        yield kinds.FileMade(**about, mime_type=mime_type, data=data, size=size_of(data) if data else 0, url=address)


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []
