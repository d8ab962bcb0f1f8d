"""Tool calls of a history in /api/chat's form: ids, positions, names, arguments.

Wire facts: arguments are an object; ids and names may be anything; a result names its tool (`tool_name`), and newer servers its call
(`tool_call_id`) too. What the model wrote goes back as it wrote it, so that prompt caches hit.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ...messages.calls import ToolCallRecord
from .._encode.calls import derived_id, legal_arguments
from .._encode.json_text import dumps


class CallId(NamedTuple):
    """A tool call's ids in LangChain and on the wire, and its tool's name."""

    known: str
    sent: str
    name: str


def wire_ids(calls: Sequence[ToolCallRecord], *, same_origin: bool) -> tuple[CallId, ...]:
    """Return the wire ids of a message's calls, each unique.

    Args:
        calls: The calls of one message.
        same_origin: Whether they go back to the server that wrote them: then with its own ids.
    """
    sent: list[str] = []
    for position, call in enumerate(calls):
        identifier = (call.wire_id if same_origin else None) or call.id
        if identifier in sent:
            identifier = call.id
        if not identifier or identifier in sent:
            identifier = derived_id("call_", call.id, call.name, position)
        sent.append(identifier)
    return tuple(CallId(call.id, one, call.name) for call, one in zip(calls, sent, strict=True))


def encode_call(call: ToolCallRecord, identifier: str, position: int, *, same_origin: bool) -> str:
    """Encode one call as part of an assistant message.

    Args:
        call: The call.
        identifier: The id that it is sent with.
        position: Its place among the message's calls.
        same_origin: Whether it goes back to the server that wrote it: then with its unknown keys.
    """
    head = dumps({"id": identifier, "type": "function"})[:-1]
    own = {key: value for key, value in call.extra.items() if key != "type"} if same_origin else {}
    extra = dumps(own)[1:-1] if own else ""
    function = f'{{"index":{position},"name":{dumps(call.name)},"arguments":{legal_arguments(call)}}}'
    return f'{head}{"," if extra else ""}{extra},"function":{function}}}'
