"""Conversion of messages of any vendor to messages of the Messages API.

Each message is encoded alone, so that it can be remembered; `mapper` joins neighbours that the wire wants as one message. All
results of a turn come first in their user message (wire quirk C-18).
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Literal, TypeGuard

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage

from ...errors import UnsupportedFeatureError
from ...messages.calls import ToolCallRecord, calls_of
from .._encode.calls import empty_output
from .._encode.encoder import MessageEncoder
from .._encode.json_text import encode, to_bytes
from .._encode.order import in_order
from .._encode.sources import convert_content
from .assistant import assistant_part
from .blocks import mark_of, part_of, text_part
from .calls import CallId, encode_call, legal_id, wire_ids
from .decode import PROVIDER
from .wire import Part, ToolResult

Role = Literal["system", "user", "assistant"]

SUMMARY = b'{"type":"compaction"'
"""The first bytes of a block that summarizes the conversation before it."""
_OF_SYSTEM = frozenset({"text", "tool_addition", "tool_removal"})


@dataclass(frozen=True, slots=True)
class Encoded:
    """One message on the wire.

    Attributes:
        role: The role of its message.
        blocks: Its content blocks, each as JSON.
        results: Results of tool calls in it, each as JSON.
        calls: Its calls and the ids they are sent with.
        asked: The blocks that ask a tool of the server's own, by number, with their ids.
        answered: The ids of those calls of the server's tools that it has the results of, or that made calls of its own: code that
            runs on the server and calls ours waits for it over many messages.
    """

    role: Role
    blocks: tuple[bytes, ...] = ()
    results: tuple[bytes, ...] = ()
    calls: tuple[CallId, ...] = ()
    asked: tuple[tuple[int, str], ...] = ()
    answered: tuple[str, ...] = ()


def _asker(call: ToolCallRecord) -> str | None:
    """Return the id of the server tool call that made this call, if any."""
    caller = call.extra.get("caller")
    return caller.get("tool_id") if isinstance(caller, Mapping) else None


class MessagesEncoder(MessageEncoder[Encoded, CallId]):
    """Encodes messages of any vendor for the Messages API, each alone."""

    provider = PROVIDER
    is_default_provider = True

    def _assistant(self, message: AIMessage, taken: Container[str] = (), place: int = 0) -> Encoded:
        """Encode a reply; `taken` contains the ids of all earlier calls, and `place` is their number."""
        records = calls_of(message)
        same_origin = self.is_same_origin(message)
        sent = wire_ids(records, taken, place)
        pairs = list(zip(records, sent, strict=True))
        bodies = [to_bytes(encode_call(call, one, same_origin=same_origin)) for call, one in pairs]
        items = [item if isinstance(item, int) else assistant_part(item, same_origin=same_origin) for item in in_order(message, records)]
        parts = [part for part in items if part is not None]
        return Encoded(
            "assistant",
            tuple(bodies[part] if isinstance(part, int) else encode(part) for part in parts),
            calls=tuple(CallId(call.id, one, call.toolset) for call, one in pairs),
            asked=tuple((place, str(part.get("id"))) for place, part in enumerate(parts) if _is_of_server(part, "_tool_use")),
            answered=(
                *(str(part.get("tool_use_id")) for part in parts if _is_of_server(part, "_tool_result")),
                *(asker for call in records if (asker := _asker(call))),
            ),
        )

    def _result(self, message: ToolMessage, call: CallId | None) -> Encoded:
        identifier = message.tool_call_id
        return Encoded("user", results=(encode(_tool_result(call or CallId(identifier, legal_id(identifier)), message)),))

    def _other(self, message: BaseMessage, role: str) -> Encoded:
        if isinstance(message, SystemMessage):
            return Encoded("system", tuple(map(encode, _system_parts(message))))
        return Encoded("assistant" if role == "assistant" else "user", tuple(map(encode, convert_content(message.content, part_of))))


def stands_alone(block: bytes) -> bool:
    """Whether a block is a requested summary: it is signed and replaces the messages before it."""
    return block.startswith(SUMMARY) and b'"signature":"' in block and b'"content":"' in block


def _is_of_server(part: Part | int, ending: str) -> TypeGuard[Part]:
    return not isinstance(part, int) and str(part["type"]).endswith(ending)


def _system_parts(message: SystemMessage) -> list[Part]:
    parts: list[Part] = convert_content(message.content, part_of)
    other = next((part["type"] for part in parts if part["type"] not in _OF_SYSTEM), None)
    if other:
        raise UnsupportedFeatureError(
            f"content block of type {other!r} cannot be sent in a system message: it takes text and changes of tools"
        )
    return parts


def _tool_result(call: CallId, message: ToolMessage) -> ToolResult:
    """Encode a result. Its cache mark is set on the whole result, because the wire rejects one inside."""
    failed, content = message.status == "error", message.content
    marks = [] if isinstance(content, str) else [mark for block in content if not isinstance(block, str) and (mark := mark_of(block))]
    parts: str | list[Part] = content if isinstance(content, str) and content.strip() else convert_content(content, part_of)
    if marks and not isinstance(parts, str):
        for part in parts:
            part.pop("cache_control", None)
    if not parts:
        parts = empty_output(failed=failed)
    elif len(parts) == 1 and not isinstance(parts, str) and parts[0].keys() == text_part("").keys():
        parts = str(parts[0].get("text"))
    result: ToolResult = {"type": "tool_result", "tool_use_id": call.sent, "content": parts}
    if failed:
        result["is_error"] = True
    if call.toolset:
        result["toolset_name"] = call.toolset
    if marks:
        result["cache_control"] = marks[-1]
    return result
