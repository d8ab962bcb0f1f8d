"""Tool calls of a history in the Messages API's form: ids, names, input.

Wire facts: ids of `[a-zA-Z0-9_-]+`, each once in a request; names of `[a-zA-Z0-9_-]{1,128}`; input an object. What the model wrote
goes back as it wrote it wherever that is legal, so that prompt caches hit.
"""

import re
from collections.abc import Container, Sequence
from typing import NamedTuple

from ...messages.calls import ToolCallRecord
from .._encode.calls import derived_id, legal_arguments
from .._encode.json_text import dumps

LEGAL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_LEGAL_ID = LEGAL_NAME
_PREFIX = "toolu_"
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME = 128
_UNREADABLE = "INVALID_JSON"  # the key under which the vendor's documentation sends back an input that was no object


class CallId(NamedTuple):
    """A tool call's ids in LangChain and on the wire, with the data that its result must repeat."""

    known: str
    sent: str
    toolset: str | None = None


def legal_id(identifier: str) -> str:
    """Return the id if the wire accepts it, else one derived from it."""
    return identifier if _LEGAL_ID.fullmatch(identifier) else derived_id(_PREFIX, identifier)


def wire_ids(calls: Sequence[ToolCallRecord], taken: Container[str], place: int) -> list[str]:
    """Return the wire ids of a message's calls, unique within the request.

    Args:
        calls: The calls of one message.
        taken: The ids of earlier messages' calls.
        place: The number of calls before this message.
    """
    ids: list[str] = []
    for position, call in enumerate(calls):
        identifier = legal_id(call.id)
        if not call.id or identifier in ids or identifier in taken:
            identifier = derived_id(_PREFIX, call.id, call.name, place + position)
        ids.append(identifier)
    return ids


def encode_call(call: ToolCallRecord, identifier: str, *, same_origin: bool) -> str:
    """Encode one call as the JSON of a content block.

    Args:
        call: The call.
        identifier: The id that it is sent with.
        same_origin: Whether it goes back to the server that wrote it: then with its unknown keys.
    """
    name = _ILLEGAL.sub("_", call.name)[:_LONGEST_NAME] or "_"
    head = dumps({"type": "tool_use", "id": identifier, "name": name})[:-1]
    extra = dumps(dict(call.extra))[1:-1] if same_origin and call.extra else ""
    return f'{head},"input":{legal_arguments(call, unreadable=_UNREADABLE)}{"," if extra else ""}{extra}}}'
