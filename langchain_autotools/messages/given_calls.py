"""Tool calls in the forms that programs pass: records, LangChain's dicts, and the dicts of vendors' APIs."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..strict_json import read_object
from .calls import TOOLSET, ToolCallRecord, compact

NOT_ONE_OBJECT = "the arguments are not one complete JSON object"

GivenCall = ToolCallRecord | Mapping[str, Any]
"""A tool call: a `ToolCallRecord`, an entry of an AI message's `tool_calls`, or a call in a vendor's API form."""


def read_call(call: GivenCall) -> ToolCallRecord:
    """Return a call as a record; a missing `id` is empty, and `args` is None unless it is one complete JSON object.

    Args:
        call: The call. Arguments may be an object or JSON text, under `args`, `arguments` or `input`; name and arguments may stand
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
