"""Tool calls of a history as chat completions takes them back: ids, names, arguments and what belongs to them.

Wire facts: ids of at most 40 characters, unique in their message; names of `[a-zA-Z0-9_-]{1,64}`; arguments as a JSON text that
strict servers parse. What the model wrote goes back as it wrote it wherever that is legal, so that prompt caches hit.
"""

import re
from collections.abc import Sequence
from typing import Any

from ...messages.calls import ToolCallRecord
from .._encode.arguments import legal_arguments
from .dialect import IdShape

__all__ = ["CUSTOM", "CUSTOM_ARGUMENT", "Ids", "encode_call", "legal_name", "wire_ids"]

Ids = tuple[tuple[str, str], ...]
"""The calls of a message in order: the id that LangChain knows, and the id that the wire is sent."""

CUSTOM = "custom"
"""True, among a call's extra keys, marks a call of a custom tool: its input is free text, not JSON. (Some servers send an empty object
under this key with every call.)"""
CUSTOM_ARGUMENT = "__arg1"
"""The argument that holds the input of a custom tool, as LangChain's single-input tools take it."""

_LONGEST_NAME = 64
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
_STRUCTURE = frozenset({"id", "type", "function", "index", "name", "arguments", CUSTOM})


def wire_ids(calls: Sequence[ToolCallRecord], shape: IdShape, *, at_home: bool) -> list[str]:
    """The ids that a message's calls are sent with, each once.

    Args:
        calls: The calls of one message.
        shape: Which ids the server takes.
        at_home: Whether they go back to the server that wrote them: then its own ids, whatever they look like.
    """
    ids: list[str] = []
    for position, call in enumerate(calls):
        own = (call.wire_id or call.id) if at_home else call.id
        identifier = own if at_home and not shape.always else shape.fit(own)
        if not identifier or identifier in ids:
            identifier = shape.fit(call.id)
        if identifier in ids or not call.id:
            identifier = shape.derived(call.id, call.name, position)
        ids.append(identifier)
    return ids


def legal_name(name: str) -> str:
    """A tool's name with what the wire refuses replaced: a model may have written anything, and it must go back."""
    return _ILLEGAL.sub("_", name)[:_LONGEST_NAME] or "_"


def encode_call(call: ToolCallRecord, identifier: str, *, at_home: bool) -> dict[str, Any]:
    """One call as part of an assistant message; unknown keys go back only to the server that sent them."""
    if at_home and call.extra.get(CUSTOM) is True and call.args is not None:
        custom = {"name": legal_name(call.name), "input": str(call.args.get(CUSTOM_ARGUMENT, ""))}
        return {"id": identifier, "type": CUSTOM, CUSTOM: custom}
    function = {"name": legal_name(call.name), "arguments": legal_arguments(call)}
    extra = {key: value for key, value in call.extra.items() if key not in _STRUCTURE} if at_home else {}
    return {"id": identifier, "type": "function", "function": function, **extra}
