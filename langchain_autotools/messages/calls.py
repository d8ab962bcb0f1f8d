"""The tool calls of an AI message: read from the message and from what is recorded of them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from ..compat import UNPARSABLE
from ..strict_json import read_object, says_only
from .metadata import KEY, own_metadata

_ID_TYPES = (str, type(None))
CLIENT_TOOL = "client_tool"
"""What a call waits for that a tool of the vendor's on the caller's machine answers."""

VENDOR_APPROVAL = "vendor_approval"
"""What a call waits for that the vendor runs once it is approved."""

FOR_CALLER = frozenset({CLIENT_TOOL, VENDOR_APPROVAL})
"""What calls wait for that the caller answers, and that nothing here runs."""

_AWAITS = "awaits"
_NOT_ARGUMENTS = frozenset({"type", "id", "call_id", "index", "status"})
TOOLSET = "toolset_name"
"""The key by which a vendor says of which of its toolsets a call is."""

_IN_BLOCKS = ("caller", TOOLSET)


@dataclass(frozen=True)
class ToolCallRecord:
    """One tool call of an AI message.

    Attributes:
        id: The call's id; its result carries the same one.
        name: The tool's name: as the model wrote it, or, once its tool was looked for and found, the tool's own.
        arguments: The JSON text of the arguments, as the model wrote it. Tools, listeners and rules get canonical JSON of `args` in
            its place where a key stands twice in the text, where the text is not that of `args`, or where the call was decided about.
        args: The parsed arguments, or None where the call must not be executed.
        why: Why `args` is None, in words for the model.
        wire_id: The id that the server sent, where `id` had to replace it.
        extra: Unknown keys that the server sent with the call, to be sent back to it.
        written_name: The name as the model wrote it, once its tool was looked for; None before.
        inner: The calls that this one bundles (`multi_tool_use.parallel`), once that was looked for.
        waits: What the call waits for before it may run: `approval`, or `queued` for a call before it; `client_tool` for the caller, who
            answers it, and `vendor_approval` for the caller's approval; None: it may run.
        decision: The `Decision` about it, where one was needed.
        edited: Whether a decision replaced the arguments that the model wrote.
        answer: Type of the item that answers the call, where the call is an item of the vendor's own and no function call.
    """

    id: str
    name: str
    arguments: str
    args: dict[str, Any] | None = None
    why: str | None = None
    wire_id: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    written_name: str | None = field(default=None, compare=False)
    inner: Sequence["ToolCallRecord"] = ()
    waits: str | None = field(default=None, compare=False)
    decision: Any = field(default=None, compare=False)
    edited: bool = field(default=False, compare=False)
    answer: str | None = None

    @property
    def toolset(self) -> str | None:
        """The vendor's toolset that the call is of; None for a call of a tool that stands by itself."""
        toolset = self.extra.get(TOOLSET)
        return toolset if isinstance(toolset, str) and toolset else None

    @property
    def spelling(self) -> str:
        """The name as the model wrote it: the one that stands in the history."""
        return self.name if self.written_name is None else self.written_name


def unambiguous(call: ToolCallRecord) -> ToolCallRecord:
    """The call, with a text of its arguments that can be read as `args` and as nothing else."""
    if call.args is None or call.arguments == compact(call.args) or says_only(call.arguments, call.args):
        return call
    return canonical_call(call)


def canonical_call(call: ToolCallRecord) -> ToolCallRecord:
    """The call, with canonical JSON of `args` as the text of its arguments."""
    return call if call.args is None else replace(call, arguments=canonical_text(call.args))


def canonical_text(args: Mapping[str, Any]) -> str:
    """Arguments as JSON, the same for the same arguments: their keys are sorted."""
    return json.dumps(args, ensure_ascii=False, sort_keys=True, default=str)


def compact(args: Any) -> str:
    """JSON of arguments without white space, their keys as they stand."""
    return json.dumps(args, ensure_ascii=False, separators=(",", ":"))


def call_ids(message: AIMessage) -> list[str | None]:
    """The ids of every call of an AI message, executable or not, in the order the model wrote them."""
    return [entry["id"] for entry in _ordered(message)]


def records_of(message: BaseMessage) -> dict[Any, Mapping[str, Any]]:
    """What is recorded of each call, by id. A history may come from a client: what is no record is passed over."""
    entries = own_metadata(message).get("calls")
    if not isinstance(entries, list):
        return {}
    return {call_id: entry for entry in entries if isinstance(entry, Mapping) and (call_id := entry.get("id")).__class__ in _ID_TYPES}


def entries_of_awaited(message: BaseMessage) -> dict[str, Mapping[str, Any]]:
    """What is recorded of each call that is an item of the vendor's own, by id. What is no record is passed over."""
    entries = own_metadata(message).get(_AWAITS)
    if not isinstance(entries, list):
        return {}
    found = [entry for entry in entries if isinstance(entry, Mapping)]
    return {entry["id"]: entry for entry in found if isinstance(entry.get("id"), str) and isinstance(entry.get("answer"), str)}


def awaited_calls(message: AIMessage) -> list[ToolCallRecord]:
    """The calls of an AI message that are items of the vendor's own: they stand in its content, and the caller answers them."""
    entries, content = entries_of_awaited(message), message.content
    if not entries or not isinstance(content, list):
        return []
    items = [block.get("value", block) for block in content if isinstance(block, dict)]
    named = [(id_of_item(item), item) for item in items if isinstance(item, dict)]
    return [_awaited(call_id, item, entries[call_id]) for call_id, item in named if call_id in entries]


def id_of_item(item: Mapping[str, Any]) -> str:
    """The id that an item of the vendor's own is known by."""
    return str(item.get("call_id") or item.get("id"))


def _awaited(call_id: str, item: Mapping[str, Any], entry: Mapping[str, Any]) -> ToolCallRecord:
    args = {key: value for key, value in item.items() if key not in _NOT_ARGUMENTS}
    waits = VENDOR_APPROVAL if entry.get("kind") == VENDOR_APPROVAL else CLIENT_TOOL
    return ToolCallRecord(call_id, str(item.get("type")), "", args, waits=waits, answer=str(entry["answer"]))


def with_records(message: AIMessage, said: Mapping[Any, Mapping[str, Any]]) -> AIMessage:
    """The message, with more recorded of some of its calls: what `said` has under their ids."""
    own, records, awaited = own_metadata(message), records_of(message), entries_of_awaited(message)
    entries = [{"id": call_id, **records.get(call_id, {}), **said.get(call_id, {})} for call_id in call_ids(message)]
    items = {_AWAITS: [{**entry, **said.get(call_id, {})} for call_id, entry in awaited.items()]} if awaited else {}
    kept = {**own, **({"calls": entries} if entries else {}), **items}
    return message.model_copy(update={"response_metadata": {**message.response_metadata, KEY: kept}})


def open_end(history: Sequence[BaseMessage]) -> tuple[AIMessage | None, list[ToolMessage]]:
    """The AI message whose calls or results a history ends in, and its results."""
    results: list[ToolMessage] = []
    for message in reversed(history):
        if isinstance(message, ToolMessage):
            results.insert(0, message)
        else:
            return (message if isinstance(message, AIMessage) else None), results
    return None, results


def results_behind(asked: AIMessage, history: Sequence[BaseMessage]) -> list[ToolMessage]:
    """The results of the last AI message of a history, if that is `asked`; else none."""
    results: list[ToolMessage] = []
    for message in reversed(history):
        if isinstance(message, ToolMessage):
            results.insert(0, message)
        elif isinstance(message, AIMessage):
            same = message.id == asked.id and message.tool_calls == asked.tool_calls if asked.id else message == asked
            return results if same or message is asked else []
    return []


def _ordered(message: AIMessage) -> list[Any]:
    """Valid and invalid calls in the recorded order; calls without a record follow."""
    if not message.invalid_tool_calls:
        return message.tool_calls
    position = {call_id: number for number, call_id in enumerate(records_of(message))}
    calls: list[Any] = [*message.tool_calls, *message.invalid_tool_calls]
    return sorted(calls, key=lambda call: position.get(call["id"], len(position)))


def calls_of(message: AIMessage) -> list[ToolCallRecord]:
    """Every call of an AI message, executable or not, in the order the model wrote them.

    The recorded argument text is believed only while it says what the message's own call says: an edited call wins.
    """
    records = records_of(message)
    calls = [_call_record(call, records.get(call["id"], {})) for call in _ordered(message)]
    content = message.content
    return [_with_own_keys(call, content) for call in calls] if calls and isinstance(content, list) else calls


def _with_own_keys(call: ToolCallRecord, content: Sequence[str | dict[Any, Any]]) -> ToolCallRecord:
    """The call with what other packages keep of it in its content block alone."""
    if call.extra:
        return call
    block = next((block for block in content if isinstance(block, dict) and block.get("id") == call.id), {})
    extras = block.get("extras")
    held = {**extras, **block} if isinstance(extras, Mapping) else block
    own = {key: held[key] for key in _IN_BLOCKS if held.get(key)}
    return replace(call, extra=own) if own else call


def _call_record(call: Mapping[str, Any], record: Mapping[str, Any]) -> ToolCallRecord:
    raw, args, why = record.get("arguments"), call.get("args"), call.get("error")
    if raw.__class__ is not str:
        raw = None
    if call.get("type") == "invalid_tool_call":
        written = args if isinstance(args, str) else ""
        arguments = raw if raw is not None else written.removeprefix(UNPARSABLE)
        args, why = None, why or record.get("why") or "the arguments are not one complete JSON object"
    elif raw is None or read_object(raw) != args:
        arguments = compact(args)
    else:
        arguments = raw
    return ToolCallRecord(
        id=call.get("id") or "",
        name=call.get("name") or "",
        arguments=arguments,
        args=args,
        why=why,
        wire_id=record.get("wire_id"),
        extra=record.get("extra") or {},
    )
