"""Tool calls of a history in chat completions' form: ids, names, arguments and extra keys.

Wire facts: ids of at most 40 characters, unique in their message; names of `[a-zA-Z0-9_-]{1,64}`; arguments as a JSON text that
strict servers parse. What the model wrote goes back as it wrote it wherever that is legal, so that prompt caches hit.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...messages.calls import ToolCallRecord
from .._encode.calls import legal_arguments
from .dialect import IdShape
from .wire import Call


class CallId(NamedTuple):
    """A tool call's ids in LangChain and on the wire, and the data that its result must repeat in Responses."""

    known: str
    sent: str
    custom: bool = False
    """Whether it is a call of a custom tool."""
    caller: str = ""
    """The vendor's program that made the call, as JSON; "" if the model made it."""


CUSTOM = "custom"
"""The extra key that marks a call of a custom tool with True: its input is free text, not JSON. (Some servers send an empty object
under this key with every call.)"""
CUSTOM_ARGUMENT = "__arg1"
"""The argument that holds a custom tool's input, as in LangChain's single-input tools."""

_LONGEST_NAME = 64
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
_STRUCTURE = frozenset({"id", "type", "function", "index", "name", "arguments", CUSTOM})


def wire_ids(calls: Sequence[ToolCallRecord], shape: IdShape, *, same_origin: bool) -> list[str]:
    """Return the wire ids of a message's calls, each unique.

    Args:
        calls: The calls of one message.
        shape: The form of ids that the server accepts.
        same_origin: Whether they go back to the server that wrote them: then its own ids, whatever they look like.
    """
    ids: list[str] = []
    for position, call in enumerate(calls):
        own = (call.wire_id or call.id) if same_origin else call.id
        identifier = own if same_origin and not shape.always else shape.fit(own)
        if not identifier or identifier in ids:
            identifier = shape.fit(call.id)
        if identifier in ids or not call.id:
            identifier = shape.derived(call.id, call.name, position)
        ids.append(identifier)
    return ids


def legal_name(name: str) -> str:
    """Return a tool's name with illegal characters replaced: a model may write any name, and it must be sent back."""
    return _ILLEGAL.sub("_", name)[:_LONGEST_NAME] or "_"


def encode_call(call: ToolCallRecord, identifier: str, *, same_origin: bool) -> Call:
    """Encode one call as part of an assistant message; unknown keys are sent only to their origin.

    Args:
        call: The call.
        identifier: The id that it is sent with.
        same_origin: Whether it goes back to the server and model that wrote it.
    """
    if same_origin and is_custom(call):
        return {"id": identifier, "type": CUSTOM, "custom": {"name": legal_name(call.name), "input": custom_input(call)}}
    wire: Call = {"id": identifier, "type": "function", "function": {"name": legal_name(call.name), "arguments": legal_arguments(call)}}
    extra: Any = {key: value for key, value in call.extra.items() if key not in _STRUCTURE} if same_origin else {}
    return {**wire, **extra}


def is_custom(call: ToolCallRecord) -> bool:
    """Whether a call is one of a custom tool."""
    return call.extra.get(CUSTOM) is True and call.args is not None


def custom_input(call: ToolCallRecord) -> str:
    """Return the text that the model wrote to a custom tool."""
    return str((call.args or {}).get(CUSTOM_ARGUMENT, ""))
