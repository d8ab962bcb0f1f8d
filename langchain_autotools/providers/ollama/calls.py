"""Tool calls of a history as /api/chat takes them back: ids, places, names, arguments.

Wire facts: arguments are an object; ids and names may be anything; a result names its tool (`tool_name`), and newer servers its call
(`tool_call_id`) too. What the model wrote goes back as it wrote it, so that prompt caches hit.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ...messages.calls import ToolCallRecord
from .._encode.calls import derived_id, legal_arguments
from .._encode.json_text import dumps


class CallId(NamedTuple):
    """A call of a message: the id that LangChain knows, the id that the wire is sent, and the tool's name."""

    known: str
    sent: str
    name: str


def wire_ids(calls: Sequence[ToolCallRecord], *, same_origin: bool) -> tuple[CallId, ...]:
    """The ids that a message's calls are sent with, each once.

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
    """One call as part of an assistant message.

    Args:
        call: The call.
        identifier: The id that it is sent with.
        position: Its place among the message's calls.
        same_origin: Whether it goes back to the server that wrote it: then with its unknown keys.
    """
    head = dumps({"id": identifier, "type": "function"})[:-1]
    extra = dumps(dict(call.extra))[1:-1] if same_origin and call.extra else ""
    function = f'{{"index":{position},"name":{dumps(call.name)},"arguments":{legal_arguments(call)}}}'
    return f'{head}{"," if extra else ""}{extra},"function":{function}}}'
