"""Conversion of messages of any vendor to messages of /api/chat.

Each message is encoded alone, so that it can be remembered; what a result must know of the call that it answers is handed in.
A message holds text and pictures apart from one another, whatever its role. Thinking goes back with the calls that came with it, to
the endpoint and model that wrote it: within a tool loop models want it, outside one they are trained to do without.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from ...messages.calls import calls_of
from ...messages.provisional import is_provisional
from .._encode.calls import empty_output
from .._encode.encoder import MessageEncoder
from .._encode.json_text import dumps, encode, to_bytes
from .._encode.sources import Block
from .blocks import content_of
from .calls import CallId, encode_call, wire_ids
from .decode import PROVIDER
from .wire import Message

_logger = logging.getLogger("langchain_autotools")

_CALLS = frozenset(
    {"tool_use", "tool_call", "tool_call_chunk", "invalid_tool_call", "input_json_delta", "custom_tool_call", "function_call"}
)
_VISIBLE = frozenset({"text", "output_text", "refusal", "image", "image_url", "image_generation_call"})


@dataclass(frozen=True, slots=True)
class Encoded:
    """One message on the wire.

    Attributes:
        body: Its JSON.
        calls: Its calls and the ids they are sent with.
    """

    body: bytes
    calls: tuple[CallId, ...] = ()


class ChatEncoder(MessageEncoder[Encoded, CallId]):
    """Encodes messages of any vendor for /api/chat, each alone. Thinking and server ids are sent only to their origin."""

    provider = PROVIDER

    def _assistant(self, message: AIMessage) -> Encoded:
        records = calls_of(message)
        same_origin = self.is_same_origin(message)
        ids = wire_ids(records, same_origin=same_origin)
        content = content_of(_visible(message.content))
        wire: Message = {"role": "assistant", "content": "".join(content.texts) or _fallback_text(message)}
        if records and same_origin and (thinking := _thinking(message)):
            wire["thinking"] = thinking
        if content.images:
            wire["images"] = list(content.images)
        body = dumps(wire)
        if records:
            pairs = zip(records, ids, strict=True)
            calls = ",".join(encode_call(call, one.sent, number, same_origin=same_origin) for number, (call, one) in enumerate(pairs))
            body = f'{body[:-1]},"tool_calls":[{calls}]}}'
        return Encoded(to_bytes(body), ids)

    def _result(self, message: ToolMessage, call: CallId | None) -> Encoded:
        call = call or CallId(message.tool_call_id, message.tool_call_id, message.name or "")
        content = content_of(message.content)
        text = "\n".join(content.texts) or ("" if content.images else empty_output(failed=message.status == "error"))
        wire: Message = {"role": "tool", "content": text}
        if content.images:
            wire["images"] = list(content.images)
        if call.name:
            wire["tool_name"] = call.name
        if call.sent:
            wire["tool_call_id"] = call.sent
        return Encoded(encode(wire))

    def _other(self, message: BaseMessage, role: str) -> Encoded:
        content = content_of(message.content)
        wire: Message = {"role": role, "content": "\n".join(content.texts)}
        if content.images:
            wire["images"] = list(content.images)
        return Encoded(encode(wire))


# ---------------------------------------------------------------------------------------------- what an assistant said


def _visible(content: str | list[str | dict[Any, Any]]) -> str | list[str | dict[Any, Any]]:
    """Return an AI message's content without calls, thoughts and other vendors' internal state."""
    if isinstance(content, str):
        return content
    return [block for block in content if isinstance(block, str) or (_is_visible(block) and not is_provisional(block))]


def _is_visible(block: Block) -> bool:
    value = block.get("value")
    if block.get("type") == "non_standard" and isinstance(value, Mapping):
        return _is_visible(value)
    kind = block.get("type", "text" if isinstance(block.get("text"), str) else None)
    if kind in _VISIBLE:
        return kind != "image_generation_call" or bool(block.get("result"))
    if kind not in _CALLS:
        _logger.debug("not sent: an assistant's content block of type %r", kind)
    return False


def _fallback_text(message: AIMessage) -> str:
    """Return the text that another vendor's AI message holds outside its content: a refusal, or a transcript of speech."""
    audio = message.additional_kwargs.get("audio")
    transcript = audio.get("transcript") if isinstance(audio, Mapping) else None
    return str(message.additional_kwargs.get("refusal") or transcript or "")


def _thinking(message: AIMessage) -> str:
    """Return the thinking of a message, also from blocks of v1 content."""
    kept = message.additional_kwargs.get("reasoning_content")
    if isinstance(kept, str) and kept:
        return kept
    blocks = [block for block in message.content if isinstance(block, dict)] if isinstance(message.content, list) else []
    return "".join(str(block.get("reasoning") or "") for block in blocks if block.get("type") == "reasoning")
