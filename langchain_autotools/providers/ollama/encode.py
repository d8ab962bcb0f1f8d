"""Messages of any vendor as messages of /api/chat.

Each message is encoded alone, so that it can be remembered; what a result must know of the call that it answers is handed in.
A message holds text and pictures apart from one another, whatever its role. Thinking goes back with the calls that came with it, to
the endpoint and model that wrote it: within a tool loop models want it, outside one they are trained to do without.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, FunctionMessage, HumanMessage, SystemMessage, ToolMessage

from ...errors import UnsupportedFeatureError
from ...messages.calls import calls_of
from ...messages.provisional import is_provisional
from .._encode.json_text import dumps, to_bytes
from .._encode.origin import is_home
from .blocks import content_of
from .calls import CallId, encode_call, wire_ids
from .decode import PROVIDER

__all__ = ["Encoded", "MessageEncoder"]

_logger = logging.getLogger("langchain_autotools")

_NO_OUTPUT = "(no output)"
_FAILED = "(failed without output)"
_CALLS = frozenset(
    {"tool_use", "tool_call", "tool_call_chunk", "invalid_tool_call", "input_json_delta", "custom_tool_call", "function_call"}
)
_SPOKEN = frozenset({"text", "output_text", "refusal", "image", "image_url", "image_generation_call"})


@dataclass(frozen=True, slots=True)
class Encoded:
    """One message on the wire.

    Attributes:
        body: Its JSON; several JSON objects joined by commas where one message becomes several.
        calls: Its calls and the ids they are sent with.
    """

    body: bytes
    calls: tuple[CallId, ...] = ()


class MessageEncoder:
    """Encodes one message at a time. It has no state of its own.

    Args:
        origin: The endpoint and model that are asked. Thinking and the server's own ids go back only to the origin they came from.
        model: The model's name, for histories that other packages wrote: those name the model and no origin.
    """

    def __init__(self, origin: str, model: str) -> None:
        self._origin = origin
        self._model = model

    def encode(self, message: BaseMessage, calls: Sequence[CallId] = ()) -> Encoded:
        """The message on the wire.

        Args:
            message: The message.
            calls: The calls that this message may answer.

        Raises:
            UnsupportedFeatureError: The message has content that the wire cannot carry.
        """
        match message:
            case AIMessage():
                return self._assistant(message)
            case ToolMessage():
                call = _answered(message.tool_call_id, calls, message.name)
                return Encoded(_result(call, message.content, failed=message.status == "error"))
            case HumanMessage():
                return _user(message.content, calls)
            case SystemMessage():
                return Encoded(_plain("system", message.content))
            case FunctionMessage():
                return Encoded(_result(CallId("", "", message.name or ""), message.content, failed=False))
            case ChatMessage():
                return Encoded(_plain(message.role, message.content))
        raise UnsupportedFeatureError(f"a {type(message).__name__} cannot be sent to a chat model")

    def _assistant(self, message: AIMessage) -> Encoded:
        records = calls_of(message)
        at_home = is_home(message, self._origin, self._model, PROVIDER)
        ids = wire_ids(records, at_home=at_home)
        content = content_of(_spoken(message.content))
        said: dict[str, Any] = {"role": "assistant", "content": "".join(content.texts) or _elsewhere(message)}
        if records and at_home and (thinking := _thinking(message)):
            said["thinking"] = thinking
        if content.images:
            said["images"] = list(content.images)
        body = dumps(said)
        if records:
            pairs = zip(records, ids, strict=True)
            calls = ",".join(encode_call(call, one.sent, number, at_home=at_home) for number, (call, one) in enumerate(pairs))
            body = f'{body[:-1]},"tool_calls":[{calls}]}}'
        return Encoded(to_bytes(body), ids)


# ---------------------------------------------------------------------------------------------- user and system


def _plain(role: str, content: Any) -> bytes:
    read = content_of(content)
    images = {"images": list(read.images)} if read.images else {}
    return to_bytes(dumps({"role": role, "content": "\n".join(read.texts), **images}))


def _user(content: Any, calls: Sequence[CallId]) -> Encoded:
    """A user message. Tool results among its blocks (Anthropic's form) become tool messages before it."""
    if isinstance(content, str):
        return Encoded(_plain("user", content))
    bodies = []
    others = []
    for block in content:
        if not isinstance(block, Mapping) or block.get("type") != "tool_result":
            others.append(block)
            continue
        call = _answered(str(block.get("tool_use_id") or ""), calls, None)
        bodies.append(_result(call, block.get("content") or "", failed=bool(block.get("is_error"))))
        calls = [known for known in calls if known is not call]
    if others or not bodies:
        bodies.append(_plain("user", others))
    return Encoded(b",".join(bodies))


# ---------------------------------------------------------------------------------------------- results


def _answered(identifier: str, calls: Sequence[CallId], name: str | None) -> CallId:
    """The call that a result answers; of an unknown one what the result itself says."""
    call = next((call for call in calls if call.known == identifier), None)
    return call or CallId(identifier, identifier, name or "")


def _result(call: CallId, content: Any, *, failed: bool) -> bytes:
    read = content_of(content)
    text = "\n".join(read.texts) or ("" if read.images else _FAILED if failed else _NO_OUTPUT)
    said: dict[str, Any] = {"role": "tool", "content": text}
    if read.images:
        said["images"] = list(read.images)
    if call.name:
        said["tool_name"] = call.name
    if call.sent:
        said["tool_call_id"] = call.sent
    return to_bytes(dumps(said))


# ---------------------------------------------------------------------------------------------- what an assistant said


def _spoken(content: Any) -> Any:
    """The content of an assistant without calls, which stand elsewhere, and without thoughts and other vendors' inner state."""
    if isinstance(content, str):
        return content
    return [block for block in content if isinstance(block, str) or (_is_spoken(block) and not is_provisional(block))]


def _is_spoken(block: Mapping[str, Any]) -> bool:
    value = block.get("value")
    if block.get("type") == "non_standard" and isinstance(value, Mapping):
        return _is_spoken(value)
    kind = block.get("type", "text" if isinstance(block.get("text"), str) else None)
    if kind in _SPOKEN:
        return kind != "image_generation_call" or bool(block.get("result"))
    if kind not in _CALLS:
        _logger.debug("not sent: an assistant's content block of type %r", kind)
    return False


def _elsewhere(message: AIMessage) -> str:
    """What an assistant of another vendor said outside its content: a refusal, or words that were only spoken."""
    audio = message.additional_kwargs.get("audio")
    spoken = audio.get("transcript") if isinstance(audio, Mapping) else None
    return str(message.additional_kwargs.get("refusal") or spoken or "")


def _thinking(message: AIMessage) -> str:
    """The thinking that came with a message; v1 content holds it as blocks."""
    said = message.additional_kwargs.get("reasoning_content")
    if isinstance(said, str) and said:
        return said
    blocks = [block for block in message.content if isinstance(block, dict)] if isinstance(message.content, list) else []
    return "".join(str(block.get("reasoning") or "") for block in blocks if block.get("type") == "reasoning")
