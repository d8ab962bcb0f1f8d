"""The tool calls of an AI message, as records, from whatever form holds them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from ..compat import UNPARSABLE
from ..strict_json import read_object
from .metadata import KEY, own_metadata

_ID_TYPES = (str, type(None))
CLIENT_TOOL = "client_tool"
"""The reason for waiting of a vendor tool's call that the caller's machine answers."""

VENDOR_APPROVAL = "vendor_approval"
"""The reason for waiting of a call that the vendor runs after approval."""

FOR_CALLER = frozenset({CLIENT_TOOL, VENDOR_APPROVAL})
"""The reasons for waiting of calls that the caller answers and this package does not run."""

AWAITS = "awaits"
"""The key of the records of waiting calls that are the vendor's own items."""

_NOT_ARGUMENTS = frozenset({"type", "id", "call_id", "index", "status"})
TOOLSET = "toolset_name"
"""The vendor's key for the toolset that a call belongs to."""

KEYS_IN_BLOCKS = ("caller", TOOLSET)
"""The keys of a call that other packages store only in its content block."""


@dataclass(frozen=True)
class ToolCallRecord:
    """One tool call of an AI message.

    Attributes:
        id: The call's id; its result carries the same one.
        name: The tool's name: as the model wrote it, or, once its tool was looked for and found, the tool's own.
        arguments: The JSON text of the arguments, as the model wrote it. Tools, listeners and rules get canonical JSON of `args` in
            its place where a key occurs twice in the text, where the text is not that of `args`, or where the call was decided about.
        args: The parsed arguments, or None where the call must not be executed.
        why: Why `args` is None, in words for the model.
        wire_id: The id that the server sent, where `id` had to replace it.
        extra: Unknown keys that the server sent with the call, to be sent back to it.
        written_name: The name as the model wrote it, once its tool was looked for; None before.
        inner: The calls that this one bundles (`multi_tool_use.parallel`), once that was looked for.
        waits: The reason why the call waits: `approval`, or `queued` for a call before it; `client_tool` for the caller, who
            answers it, and `vendor_approval` for the caller's approval; None: it may run.
        decision: The `Decision` about it, where one was needed.
        edited: Whether a decision replaced the arguments that the model wrote.
        answer: Type of the item that answers the call, where the call is an item of the vendor's own and no function call.
        kind: The kind of handlers that can answer such an item.
        handler: The key of the caller's handler that answers the call, once it was looked for and found. `name` is then the handler's.
        run: The run inside the call that goes on, where one waited there: the call has begun.
        approved: The call as it was approved after a wrapper had changed it: it runs in no other form.
        definitions: Where it needs approval, the definitions of its tool and of those of the calls that it bundles, by their names, as
            their sources list them; once it is approved, as they were then. None where no source lists one of them.
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
    kind: str | None = field(default=None, compare=False)
    handler: str | None = field(default=None, compare=False)
    run: Any = field(default=None, compare=False, repr=False)
    approved: "ToolCallRecord | None" = field(default=None, compare=False)
    definitions: Mapping[str, Mapping[str, Any]] | None = field(default=None, compare=False, repr=False)

    @property
    def runs_here(self) -> bool:
        """Whether something here can run the call: a tool, or a handler of the caller's where it is an item of the vendor's own."""
        return self.answer is None or self.handler is not None

    @property
    def toolset(self) -> str | None:
        """The vendor's toolset that the call belongs to; None for a separate tool."""
        toolset = self.extra.get(TOOLSET)
        return toolset if isinstance(toolset, str) and toolset else None

    def carried_out(self, result: BaseMessage) -> "ToolCallRecord":
        """Return the call with the arguments that it ran with, marked as edited where its result says that they are not the model's."""
        arguments = own_metadata(result).get("edited_arguments")
        return replace(self, args=dict(arguments), edited=True) if isinstance(arguments, Mapping) else self

    @property
    def spelling(self) -> str:
        """The tool's name in the model's own spelling, as in the history."""
        return self.name if self.written_name is None else self.written_name

    @property
    def shown_name(self) -> str:
        """The name by which people and models know the call: its tool's own; where a handler answers, the one that the model wrote."""
        return self.name if self.handler is None else self.spelling


def with_definitions(call: ToolCallRecord, definitions: Mapping[str, Mapping[str, Any]] | None) -> ToolCallRecord:
    """Return the call, and those that it bundles, with the definitions of the tools that it is bound to."""
    return replace(call, definitions=definitions, inner=[replace(one, definitions=definitions) for one in call.inner])


def canonical_call(call: ToolCallRecord) -> ToolCallRecord:
    """Return the call with canonical JSON of `args` as its argument text."""
    if call.args is None:
        return call
    return replace(call, arguments=json.dumps(call.args, ensure_ascii=False, sort_keys=True, default=str))


def compact(args: Any) -> str:
    """Return arguments as JSON without white space, in their own key order."""
    return json.dumps(args, ensure_ascii=False, separators=(",", ":"))


def call_ids(message: AIMessage) -> list[str | None]:
    """Return the ids of all calls of an AI message, executable or not, in the model's order."""
    return [entry["id"] for entry in _ordered(message)]


def records_of(message: BaseMessage) -> dict[Any, Mapping[str, Any]]:
    """Return the record of each call, by id. Invalid entries are skipped, because a history may come from a client."""
    entries = own_metadata(message).get("calls")
    if not isinstance(entries, list):
        return {}
    return {call_id: entry for entry in entries if isinstance(entry, Mapping) and (call_id := entry.get("id")).__class__ in _ID_TYPES}


def entries_of_awaited(message: BaseMessage) -> dict[str, Mapping[str, Any]]:
    """Return the record of each waiting call that is the vendor's own item, by id. Invalid entries are skipped."""
    entries = own_metadata(message).get(AWAITS)
    if not isinstance(entries, list):
        return {}
    found = [entry for entry in entries if isinstance(entry, Mapping)]
    return {entry["id"]: entry for entry in found if isinstance(entry.get("id"), str) and isinstance(entry.get("answer"), str)}


def awaited_calls(message: AIMessage) -> list[ToolCallRecord]:
    """Return the AI message's waiting calls that are the vendor's own items: they exist in its content, and the caller answers them."""
    content = message.content
    if not isinstance(content, list) or not (entries := entries_of_awaited(message)):
        return []
    items = [block.get("value", block) for block in content if isinstance(block, dict)]
    named = [(id_of_item(item), item) for item in items if isinstance(item, dict)]
    return [_awaited(call_id, item, entries[call_id]) for call_id, item in named if call_id in entries]


def id_of_item(item: Mapping[str, Any]) -> str:
    """Return the id of the vendor's own item."""
    return str(item.get("call_id") or item.get("id"))


def _awaited(call_id: str, item: Mapping[str, Any], entry: Mapping[str, Any]) -> ToolCallRecord:
    args = {key: value for key, value in item.items() if key not in _NOT_ARGUMENTS}
    waits = VENDOR_APPROVAL if entry.get("kind") == VENDOR_APPROVAL else CLIENT_TOOL
    known, why, name, answer = entry.get("handler"), entry.get("why"), str(item.get("type")), str(entry["answer"])
    if isinstance(why, str):
        return ToolCallRecord(call_id, name, "", None, why, answer=answer)
    return ToolCallRecord(call_id, name, "", args, waits=waits, answer=answer, kind=known if isinstance(known, str) else None)


def with_records(message: AIMessage, additions: Mapping[Any, Mapping[str, Any]]) -> AIMessage:
    """Return the message with additions to the records of some of its calls, by id."""
    own, records, awaited = own_metadata(message), records_of(message), entries_of_awaited(message)
    entries = [{"id": call_id, **records.get(call_id, {}), **additions.get(call_id, {})} for call_id in call_ids(message)]
    items = {AWAITS: [{**entry, **additions.get(call_id, {})} for call_id, entry in awaited.items()]} if awaited else {}
    kept = {**own, **({"calls": entries} if entries else {}), **items}
    return message.model_copy(update={"response_metadata": {**message.response_metadata, KEY: kept}})


def open_end(history: Sequence[BaseMessage]) -> tuple[AIMessage | None, list[ToolMessage]]:
    """Return the AI message with whose calls or results a history ends, and the results."""
    results: list[ToolMessage] = []
    for message in reversed(history):
        if isinstance(message, ToolMessage):
            results.insert(0, message)
        else:
            return (message if isinstance(message, AIMessage) else None), results
    return None, results


def _ordered(message: AIMessage) -> list[Any]:
    """Return valid and invalid calls in the recorded order, then those without a record."""
    if not message.invalid_tool_calls:
        return message.tool_calls
    position = {call_id: number for number, call_id in enumerate(records_of(message))}
    calls: list[Any] = [*message.tool_calls, *message.invalid_tool_calls]
    return sorted(calls, key=lambda call: position.get(call["id"], len(position)))


def calls_of(message: AIMessage) -> list[ToolCallRecord]:
    """Return all calls of an AI message, executable or not, in the model's order.

    The recorded argument text is believed only while it says what the message's own call says: an edited call wins.
    """
    records = records_of(message)
    calls = [_call_record(call, records.get(call["id"], {})) for call in _ordered(message)]
    own = _own_keys(message.content) if calls and isinstance(message.content, list) else {}
    return [replace(call, extra=own[call.id]) if call.id in own and not call.extra else call for call in calls] if own else calls


def with_block_keys(calls: Sequence[Mapping[str, Any]], content: str | Sequence[Any]) -> Sequence[Mapping[str, Any]]:
    """Return calls, or fragments of calls, with the keys that other packages store only in the content blocks beside them."""
    own = {} if isinstance(content, str) else _own_keys(content)
    return [{**own.get(call.get("id"), {}), **call} for call in calls] if own else calls


def _own_keys(content: Sequence[Any]) -> dict[Any, dict[str, Any]]:
    """Return the keys of calls that other packages store only in their content blocks, by the calls' ids."""
    found: dict[Any, dict[str, Any]] = {}
    for block in content:
        if not isinstance(block, dict) or block.get("id").__class__ is not str:
            continue
        extras = block.get("extras")
        held = {**extras, **block} if isinstance(extras, Mapping) else block
        own = {key: held[key] for key in KEYS_IN_BLOCKS if held.get(key)}
        if own:
            found.setdefault(block["id"], own)
    return found


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


# ---------------------------------------------------------------------------------------------- given calls
# Tool calls in the forms that programs pass: records, LangChain's dicts, and the dicts of vendors' APIs.


NOT_ONE_OBJECT = "the arguments are not one complete JSON object"

GivenCall = ToolCallRecord | Mapping[str, Any]
"""A tool call: a `ToolCallRecord`, an entry of an AI message's `tool_calls`, or a call in a vendor's API form."""


def read_call(call: GivenCall) -> ToolCallRecord:
    """Return a call as a record; a missing `id` is empty, and `args` is None unless it is one complete JSON object.

    Args:
        call: The call. Arguments may be an object or JSON text, under `args`, `arguments` or `input`; name and arguments may be
            under `function`.

    Raises:
        TypeError: It is no call: it has no name.
    """
    if isinstance(call, ToolCallRecord):
        made_by_hand = call.args is None and call.why is None and call.decision is None
        return _with_arguments(call, call.arguments) if made_by_hand else call
    function = call.get("function") if isinstance(call, Mapping) else None
    fields = function if isinstance(function, Mapping) else call
    if not isinstance(fields, Mapping) or not isinstance(fields.get("name"), str):
        raise TypeError(f"a call is a ToolCallRecord or a dict with name, arguments and id, not {call!r:.200}")
    toolset = fields.get(TOOLSET)
    extra = {TOOLSET: toolset} if isinstance(toolset, str) and toolset else {}
    read = ToolCallRecord(str(call.get("call_id") or call.get("id") or ""), fields["name"], "", extra=extra)
    arguments = next((fields[key] for key in ("args", "arguments", "input") if key in fields), None)
    if call.get("type") == "invalid_tool_call":
        return replace(read, arguments=str(arguments or ""), why=str(call.get("error") or NOT_ONE_OBJECT))
    return _with_arguments(read, arguments)


def _with_arguments(call: ToolCallRecord, arguments: Any) -> ToolCallRecord:
    if isinstance(arguments, Mapping):
        return replace(call, args=dict(arguments), arguments=compact(dict(arguments)))
    text = arguments if isinstance(arguments, str) else ""
    args = read_object(text)
    return replace(call, arguments=text, args=args, why=NOT_ONE_OBJECT if args is None else None)
