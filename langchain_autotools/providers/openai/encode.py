"""Conversion of messages of any vendor to messages of chat completions.

Each message is encoded alone, so that it can be remembered; what one message asks of its neighbours is in `Encoded`: ids that
its results must carry, and media that only a user message may hold. Those follow, as one user message, after all results of
the turn, where the vendor takes them and where they never move again.

Wire facts: images only in user messages ("Image URLs are only allowed for messages with role 'user'"), text only in tool
messages; content null beside tool calls; a call's reasoning goes back under the key it came in, to the server it came from, and
to nobody else: some servers demand it there, others refuse it.
"""

import logging
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage

from ...errors import UnsupportedFeatureError
from ...messages.calls import calls_of
from ...messages.provisional import is_provisional
from .._encode.calls import BELOW, empty_output
from .._encode.encoder import MessageEncoder
from .._encode.json_text import encode
from .._encode.sources import FROM_TOOL
from .blocks import part_of, text_part
from .calls import CallId, encode_call, wire_ids
from .dialect import NO_PARTS, OPAQUE_KEYS, OPENAI, Dialect, OwnParts
from .wire import Message, Part

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletionToolMessageParam

logger = logging.getLogger("langchain_autotools")

PartT = TypeVar("PartT", bound=Mapping[str, object])

REASONING_KEYS = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
"""The keys under which servers send reasoning as text."""
THINKING_PART = "thinking_part"
"""The package's key for reasoning that arrived as a part of the content."""
THINKING_PARTS = "thinking_parts"
"""The package's key for such parts where they have more than text: signatures, sources."""

_CALLS = frozenset({"tool_use", "tool_call", "tool_call_chunk", "invalid_tool_call", "input_json_delta", "custom_tool_call"})
_THOUGHTS = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_content"})
_SERVER_SIDE = frozenset(
    {
        *("server_tool_result", "server_tool_call_chunk", "executable_code", "code_execution_result", "container_upload"),
        *("compaction", "tool_search_output", "additional_tools", "configuration_update"),
        *("part", "file_data", "video"),  # of Google's: opaque, or in a form that only its servers read
    }
)
_SERVER_SIDE_ENDINGS = ("_call", "_call_output", "_tool_use", "_tool_result", "mcp_list_tools", "mcp_approval_request")

_ILLEGAL_IN_NAME = re.compile(r"[\s<|\\/>]+")
FROM_MODEL = "Output of the assistant:"
"""Heading of a user message with media that a model produced."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """One message on the wire.

    Attributes:
        body: Its JSON.
        media: Content parts, joined by commas, for the user message after this turn's results.
        calls: Its calls, where the id of any differs from the one that a result alone would be sent with.
    """

    body: bytes
    media: bytes = b""
    calls: tuple[CallId, ...] = ()


def encode_media(caption: Mapping[str, object], parts: Sequence[Mapping[str, object]]) -> bytes:
    """Return media that only a user message may hold, after a caption; parts are joined by commas.

    Args:
        caption: The text part before them.
        parts: The parts.
    """
    return b",".join(map(encode, (caption, *parts))) if parts else b""


def user_message(media: Sequence[bytes]) -> bytes:
    """Return the user message with media that a turn's tool results and assistant message cannot hold."""
    return b'{"role":"user","content":[' + b",".join(media) + b"]}"


class ChatCompletionsEncoder(MessageEncoder[Encoded, CallId]):
    """Encodes messages of any vendor for chat completions, each alone.

    Args:
        origin: Digest of the endpoint and the model. Opaque state (reasoning, signatures, the server's own ids) goes back
            only to the origin it came from; "" keeps none.
        dialect: The vendor's way to speak this wire.
        null_content: Whether an assistant message with calls and no text says null (else the empty string): servers differ.
        omit: Keys of opaque state that this server refuses to be sent back, besides those that its dialect names.
        demand: Keys of opaque state that it wants in every assistant message with calls, likewise.
        part_keys: Keys of content blocks that this server takes besides those of chat completions (`cache_control`, say).
    """

    def __init__(
        self,
        *,
        origin: str = "",
        dialect: Dialect = OPENAI,
        null_content: bool = True,
        omit: Collection[str] = (),
        demand: Collection[str] = (),
        part_keys: Collection[str] = (),
    ) -> None:
        super().__init__(origin)
        self.null_content = null_content
        self.omit, self.demand = frozenset(omit), frozenset(demand)
        self._dialect = dialect
        self._fit = dialect.ids.fit
        refused = {*omit, *dialect.refuses}
        self._opaque_keys = [key for key in OPAQUE_KEYS if key not in refused]
        self._demanded = sorted({*demand, *dialect.demands} - set(omit))
        self._thinking = THINKING_PART not in refused
        self._part_keys = tuple(dict.fromkeys(part_keys))

    def variant(self, **changed: Any) -> Self:
        """Return an encoder that differs only in `null_content`, `omit` or `demand`."""
        form = {"null_content": self.null_content, "omit": self.omit, "demand": self.demand, **changed}
        return type(self)(origin=self.origin, dialect=self._dialect, part_keys=self._part_keys, **form)

    # ------------------------------------------------------------------------------------------ user and system

    def _other(self, message: BaseMessage, role: str) -> Encoded:
        is_system = isinstance(message, SystemMessage)
        if is_system:
            role = message.additional_kwargs.get("__openai_role__", role)
        if role == "developer" and not self._dialect.developer:
            role = "system"
        wire: Message = {"role": role, "content": self._user_content(message.content, text_only=is_system)}
        return Encoded(encode(self._with_author(wire, message)))

    def _user_content(self, content: str | list[str | dict[Any, Any]], *, text_only: bool) -> str | list[Part]:
        """Return content of a user or system message: a string if it is only text."""
        if isinstance(content, str):
            return content
        parts = [part_of(block, self._part_keys, self._dialect.parts) for block in content]
        other = next((part["type"] for part in parts if part["type"] not in ("text", *self._dialect.parts)), None)
        if text_only and other:
            raise UnsupportedFeatureError(f"content block of type {other!r} cannot be sent in a system message: it takes text only")
        return plain_content(parts)

    # ------------------------------------------------------------------------------------------ results

    def _result(self, message: ToolMessage, call: CallId | None) -> Encoded:
        identifier = call.sent if call else self._fit(message.tool_call_id)
        blocks = [message.content] if isinstance(message.content, str) else message.content
        parts = [part_of(block, self._part_keys, self._dialect.parts) for block in blocks]
        texts, media = [part for part in parts if part["type"] == "text"], [part for part in parts if part["type"] != "text"]
        text: Any = texts if any(map(_is_marked, texts)) else "\n".join(part["text"] for part in texts)
        if not text:
            text = BELOW if media else empty_output(failed=message.status == "error")
        wire: ChatCompletionToolMessageParam = {"role": "tool", "tool_call_id": identifier, "content": text}
        return Encoded(encode(wire), encode_media(text_part(FROM_TOOL.format(identifier)), media))

    # ------------------------------------------------------------------------------------------ assistant

    def _assistant(self, message: AIMessage) -> Encoded:
        text, media = assistant_content(message.content, self._dialect.parts)
        calls = calls_of(message)
        same_origin = self.is_same_origin(message)
        ids = wire_ids(calls, self._dialect.ids, same_origin=same_origin)
        wire = self._with_author(self._without_calls(message, text, bool(calls), same_origin), message)
        if text and isinstance(message.content, list) and wire["content"] == text:
            wire["content"] = marked_texts(message.content, self._part_keys) or text
        more: Any = {key: message.additional_kwargs[key] for key in self._dialect.assistant_keys if key in message.additional_kwargs}
        if calls:
            wire["tool_calls"] = [encode_call(call, one, same_origin=same_origin) for call, one in zip(calls, ids, strict=True)]
            more = dict.fromkeys(self._demanded, "") | (self._opaque(message) if same_origin else {}) | more
        pairs = tuple(CallId(call.id, one) for call, one in zip(calls, ids, strict=True))
        changed = any(self._fit(known) != sent for known, sent, *_ in pairs)
        return Encoded(encode({**wire, **more}), encode_media(text_part(FROM_MODEL), media), pairs if changed else ())

    def _without_calls(self, message: AIMessage, text: str, calls: bool, same_origin: bool) -> Message:
        """Return an assistant message without its calls; for other servers, a refusal or a transcript of speech becomes text."""
        extra = message.additional_kwargs
        thinking = extra.get(THINKING_PART)
        if self._dialect.reasoning == THINKING_PART:
            thinking = thinking or extra.get("reasoning_content") or _reasoning_in(message.content)
        thoughts = extra.get(THINKING_PARTS) or ([{"type": "thinking", "thinking": [text_part(thinking)]}] if thinking else [])
        if thoughts and calls and same_origin and self._thinking:
            return {"role": "assistant", "content": [*thoughts, text_part(text)] if text else thoughts}
        audio = _audio_of(message)
        if audio.get("id") and not text and message.response_metadata.get("model_provider") == self._dialect.provider:
            return {"role": "assistant", "content": None, "audio": {"id": audio["id"]}}
        text = text or fallback_text(message)
        return {"role": "assistant", "content": None if calls and not text and self.null_content else text}

    def _opaque(self, message: AIMessage) -> dict[str, Any]:
        """Return the opaque state that this server requires back with its calls, under its original keys."""
        extra = message.additional_kwargs
        state = {key: extra[key] for key in self._opaque_keys if extra.get(key)}
        if "reasoning_content" in self._opaque_keys and "reasoning_content" not in state:
            # v1 content holds as blocks what arrived under this key, and under this key only.
            thought = _reasoning_in(message.content)
            state |= {"reasoning_content": thought} if thought else {}
        if self._dialect.reasoning != "reasoning_content" and "reasoning_content" in state:
            state[self._dialect.reasoning] = state.pop("reasoning_content")
        return state

    def _with_author(self, wire: Message, message: BaseMessage) -> Message:
        """Return the message with its author's name if the server accepts one."""
        name = (message.name or message.additional_kwargs.get("name")) if self._dialect.names else None
        return {**wire, "name": _ILLEGAL_IN_NAME.sub("_", str(name))[:64]} if name else wire


def _reasoning_in(content: str | list[str | dict[Any, Any]]) -> str:
    blocks = [block for block in content if isinstance(block, dict)]
    return "".join(str(block.get("reasoning") or "") for block in blocks if block.get("type") == "reasoning")


def plain_content(parts: list[PartT]) -> str | list[PartT]:
    """Return the parts of a message; a string if they are a single text."""
    if not parts:
        return ""
    return str(parts[0]["text"]) if len(parts) == 1 and parts[0].keys() == {"type", "text"} else parts


# ---------------------------------------------------------------------------------------------- what an assistant said


def fallback_text(message: AIMessage) -> str:
    """Return the text of an AI message without text content: a transcript of speech, or a refusal."""
    return str(_audio_of(message).get("transcript") or message.additional_kwargs.get("refusal") or "")


def assistant_content(content: str | list[str | dict[Any, Any]], own: OwnParts = NO_PARTS) -> tuple[str, list[Part]]:
    """Return an AI message's text and the media it produced, without calls and other vendors' internal state.

    Args:
        content: The content.
        own: The parts that the server takes besides those of chat completions.
    """
    if isinstance(content, str):
        return content, []
    parts = [part_of(block, own=own) for block in content if not _is_inner(block)]
    text = "".join(part["text"] for part in parts if part["type"] == "text")
    return text, [part for part in parts if part["type"] != "text"]


def marked_texts(content: list[str | dict[Any, Any]], keys: Collection[str]) -> list[Part]:
    """Return the texts of an AI message's content as parts if any has a key besides its text; else none.

    Args:
        content: The content.
        keys: The keys that the server takes on a part besides the vendor's own.
    """
    parts = [part_of(block, keys) for block in content if not _is_inner(block)]
    texts = [part for part in parts if part["type"] == "text"]
    return texts if any(map(_is_marked, texts)) else []


def _is_marked(part: Part) -> bool:
    return part.keys() != {"type", "text"}


def _is_inner(block: str | Mapping[str, Any]) -> bool:
    """Whether an AI message's block is a call, a thought, or another vendor's server output."""
    if isinstance(block, str):
        return False
    kind = str(block.get("type"))
    if is_provisional(block):
        return True
    if kind == "non_standard" and isinstance(block.get("value"), Mapping):
        inner = _is_inner(block["value"]) or not _is_part(block["value"])
    elif kind == "image_generation_call":
        inner = not block.get("result")
    elif kind == "audio":
        inner = _is_spoken(block)
    else:
        inner = kind in _CALLS or kind in _THOUGHTS or kind in _SERVER_SIDE or kind.endswith(_SERVER_SIDE_ENDINGS)
    if inner and kind not in _CALLS:
        logger.debug("not sent: an assistant's content block of type %r", kind)
    return inner


def _is_part(block: Mapping[str, Any]) -> bool:
    try:
        part_of(block)
    except UnsupportedFeatureError:
        return False
    return True


def _is_spoken(block: Mapping[str, Any]) -> bool:
    """Whether a block is the vendor's own audio, which is sent back by its id."""
    return bool(block.get("id")) and not any(key in block for key in ("base64", "url", "file_id", "source_type", "data"))


def _audio_of(message: AIMessage) -> Mapping[str, Any]:
    """Return the audio reply of a message; empty if there is none."""
    audio = message.additional_kwargs.get("audio")
    if isinstance(audio, Mapping):
        return audio
    blocks = message.content if isinstance(message.content, list) else ()
    return next((block for block in blocks if isinstance(block, Mapping) and block.get("type") == "audio" and _is_spoken(block)), {})
