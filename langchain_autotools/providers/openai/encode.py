"""Messages of any vendor as messages of chat completions.

Each message is encoded alone, so that it can be remembered; what one message asks of its neighbours is in `Encoded`: ids that
its results must carry, and media that only a user message may hold. Those follow, as one user message, after all results of
the turn, where the vendor takes them and where they never move again.

Wire facts: images only in user messages ("Image URLs are only allowed for messages with role 'user'"), text only in tool
messages; content null beside tool calls; a call's reasoning goes back under the key it came in, to the server it came from, and
to nobody else: some servers demand it there, others refuse it.
"""

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, FunctionMessage, HumanMessage, SystemMessage, ToolMessage

from ...errors import UnsupportedFeatureError
from ...messages.calls import calls_of
from ...messages.provisional import is_provisional
from .._encode.json_text import dumps, to_bytes
from .._encode.origin import origin_said
from .blocks import Part, part_of, text_part
from .calls import Ids, encode_call, legal_name, wire_ids
from .dialect import OPAQUE_KEYS, OPENAI, Dialect

__all__ = ["REASONING_KEYS", "THINKING_PART", "Encoded", "MessageEncoder", "answers", "encode_part", "said", "unanswered", "unwritten"]

logger = logging.getLogger("langchain_autotools")

REASONING_KEYS = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
"""The keys under which servers send reasoning as text."""
THINKING_PART = "thinking_part"
"""Our key for reasoning that arrived as a part of the content."""

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
_NO_OUTPUT = "(no output)"
_FAILED = "(failed without output)"
_BELOW = "(the output follows in the next message)"
_FROM_TOOL = "Output of tool call {}:"
_FROM_MODEL = "Output of the assistant:"


@dataclass(frozen=True, slots=True)
class Encoded:
    """One message on the wire.

    Attributes:
        body: Its JSON; several JSON objects joined by commas where one message becomes several.
        media: Content parts, joined by commas, for the user message after this turn's results.
        ids: The ids of its calls, where any differs from the one that a result alone would be sent with.
    """

    body: bytes
    media: bytes = b""
    ids: Ids = ()


def encode_part(value: Any) -> bytes:
    """Any part of a body as bytes."""
    return to_bytes(dumps(value))


def _media(caption: str, parts: Sequence[Part]) -> bytes:
    return b",".join(encode_part(part) for part in (text_part(caption), *parts)) if parts else b""


class MessageEncoder:
    """Encodes one message at a time. It has no state of its own.

    Args:
        origin: The endpoint and model that are asked. Opaque state goes back only to the origin it came from.
        dialect: The vendor's way to speak this wire.
        null_content: Whether an assistant message with calls and no text says null (else the empty string).
        omit: Opaque keys that this server refuses to be sent, besides those that its dialect names.
        demand: Opaque keys that it wants in every assistant message with calls, likewise.
        part_keys: Keys of content blocks that this server takes besides those of chat completions.
    """

    def __init__(
        self,
        origin: str,
        dialect: Dialect = OPENAI,
        *,
        null_content: bool,
        omit: frozenset[str],
        demand: frozenset[str] = frozenset(),
        part_keys: Sequence[str],
    ) -> None:
        self._origin = origin
        self._dialect = dialect
        self._fit = dialect.ids.fit
        self._null_content = null_content
        refused = omit | dialect.refuses
        self._opaque_keys = [key for key in OPAQUE_KEYS if key not in refused]
        self._demanded = sorted((demand | dialect.demands) - omit)
        self._thinking = THINKING_PART not in refused
        self._part_keys = part_keys

    def encode(self, message: BaseMessage, ids: Ids = ()) -> Encoded:
        """The message on the wire.

        Args:
            message: The message.
            ids: The ids of the calls that this message answers, as `Encoded.ids` of their message gave them.

        Raises:
            UnsupportedFeatureError: The message has content that chat completions cannot carry.
        """
        match message:
            case AIMessage():
                return self._assistant(message)
            case ToolMessage():
                return self._result(self._wire_id(message.tool_call_id, ids), message.content, failed=message.status == "error")
            case HumanMessage():
                return self._user(message, ids)
            case SystemMessage():
                role = self._role(message.additional_kwargs.get("__openai_role__", "system"))
                return Encoded(
                    encode_part({"role": role, "content": self._content(message.content, text_only=True), **self._name_of(message)})
                )
            case FunctionMessage():
                content, _ = self._output(message.content)
                return Encoded(encode_part({"role": "function", "name": legal_name(message.name or ""), "content": content}))
            case ChatMessage():
                return Encoded(
                    encode_part({"role": self._role(message.role), "content": self._content(message.content), **self._name_of(message)})
                )
        raise UnsupportedFeatureError(f"a {type(message).__name__} cannot be sent to a chat model")

    # ------------------------------------------------------------------------------------------ user and system

    def _role(self, role: str) -> str:
        return "system" if role == "developer" and not self._dialect.developer else role

    def _content(self, content: Any, *, text_only: bool = False) -> str | list[Part]:
        """Content of a user or system message: a string where it says no more than that."""
        if isinstance(content, str):
            return content
        parts = [part_of(block, self._part_keys) for block in content]
        other = next((part["type"] for part in parts if part["type"] != "text"), None)
        if text_only and other:
            raise UnsupportedFeatureError(f"content block of type {other!r} cannot be sent in a system message: it takes text only")
        if not parts:
            return ""
        return str(parts[0]["text"]) if len(parts) == 1 and parts[0].keys() == {"type", "text"} else parts

    def _user(self, message: HumanMessage, ids: Ids) -> Encoded:
        """A user message. Tool results among its blocks (Anthropic's form) become tool messages before it."""
        if isinstance(message.content, str):
            return Encoded(encode_part({"role": "user", "content": message.content, **self._name_of(message)}))
        others = [block for block in message.content if not _is_result(block)]
        encoded = []
        for block in (block for block in message.content if isinstance(block, dict) and _is_result(block)):
            identifier = str(block.get("tool_use_id") or "")
            encoded.append(self._result(self._wire_id(identifier, ids), block.get("content") or "", failed=bool(block.get("is_error"))))
            ids = _without(identifier, ids)
        bodies = [result.body for result in encoded]
        if others or not encoded:
            bodies.append(encode_part({"role": "user", "content": self._content(others), **self._name_of(message)}))
        return Encoded(b",".join(bodies), b",".join(result.media for result in encoded if result.media))

    # ------------------------------------------------------------------------------------------ results

    def _result(self, identifier: str, content: Any, *, failed: bool) -> Encoded:
        text, media = self._output(content)
        if not text:
            text = _BELOW if media else _FAILED if failed else _NO_OUTPUT
        body = encode_part({"role": "tool", "tool_call_id": identifier, "content": text})
        return Encoded(body, _media(_FROM_TOOL.format(identifier), media))

    def _output(self, content: Any) -> tuple[str, list[Part]]:
        """The text of a result, and what only a user message may hold."""
        if isinstance(content, str):
            return content, []
        parts = [part_of(block) for block in content]
        texts = [part["text"] for part in parts if part["type"] == "text"]
        return "\n".join(texts), [part for part in parts if part["type"] != "text"]

    # ------------------------------------------------------------------------------------------ assistant

    def _assistant(self, message: AIMessage) -> Encoded:
        text, media = said(message.content)
        calls = calls_of(message)
        at_home = bool(self._origin) and origin_said(message) == self._origin
        ids = wire_ids(calls, self._dialect.ids, at_home=at_home)
        wire: dict[str, Any] = {"role": "assistant", **self._spoken(message, text, bool(calls), at_home), **self._name_of(message)}
        if calls:
            wire["tool_calls"] = [encode_call(call, one, at_home=at_home) for call, one in zip(calls, ids, strict=True)]
        if calls:
            wire.update(dict.fromkeys(self._demanded, "") | (self._opaque(message) if at_home else {}))
        wire.update({key: message.additional_kwargs[key] for key in self._dialect.assistant_keys if key in message.additional_kwargs})
        pairs = tuple((call.id, one) for call, one in zip(calls, ids, strict=True))
        changed = any(self._fit(known) != one for known, one in pairs)
        return Encoded(encode_part(wire), _media(_FROM_MODEL, media), pairs if changed else ())

    def _spoken(self, message: AIMessage, text: str, calls: bool, at_home: bool) -> dict[str, Any]:
        """The content of an assistant message; a refusal and words that were only spoken are text to other servers."""
        extra = message.additional_kwargs
        thinking = extra.get(THINKING_PART)
        if self._dialect.reasoning == THINKING_PART:
            thinking = thinking or extra.get("reasoning_content") or _reasoning_in(message.content)
        if thinking and calls and at_home and self._thinking:
            thought = {"type": "thinking", "thinking": [text_part(thinking)]}
            return {"content": [thought, text_part(text)] if text else [thought]}
        audio = _audio_of(message)
        if audio.get("id") and not text and message.response_metadata.get("model_provider") == self._dialect.provider:
            return {"content": None, "audio": {"id": audio["id"]}}
        text = text or unwritten(message)
        return {"content": None if calls and not text and self._null_content else text}

    def _opaque(self, message: AIMessage) -> dict[str, Any]:
        """State that this server wants back with its calls, under the keys it came in."""
        extra = message.additional_kwargs
        state = {key: extra[key] for key in self._opaque_keys if extra.get(key)}
        if "reasoning_content" in self._opaque_keys and "reasoning_content" not in state:
            # v1 content holds as blocks what arrived under this key, and under this key only.
            thought = _reasoning_in(message.content)
            state |= {"reasoning_content": thought} if thought else {}
        if self._dialect.reasoning != "reasoning_content" and "reasoning_content" in state:
            state[self._dialect.reasoning] = state.pop("reasoning_content")
        return state

    def _name_of(self, message: BaseMessage) -> dict[str, str]:
        name = (message.name or message.additional_kwargs.get("name")) if self._dialect.names else None
        return {"name": _ILLEGAL_IN_NAME.sub("_", str(name))[:64]} if name else {}

    def _wire_id(self, identifier: str, ids: Ids) -> str:
        return next((wire for known, wire in ids if known == identifier), None) or self._fit(identifier)


def _reasoning_in(content: str | list[str | dict[Any, Any]]) -> str:
    blocks = [block for block in content if isinstance(block, dict)]
    return "".join(str(block.get("reasoning") or "") for block in blocks if block.get("type") == "reasoning")


def _is_result(block: str | Mapping[str, Any]) -> bool:
    return not isinstance(block, str) and block.get("type") == "tool_result"


def answers(message: BaseMessage) -> bool:
    """Whether a message holds results of the calls before it."""
    if isinstance(message, HumanMessage) and isinstance(message.content, list):
        return any(map(_is_result, message.content))
    return isinstance(message, ToolMessage)


def _without(identifier: str, ids: Ids) -> Ids:
    """The ids without the first of this name: calls that share an id are answered in order."""
    position = next((number for number, (known, _) in enumerate(ids) if known == identifier), None)
    return ids if position is None else ids[:position] + ids[position + 1 :]


def unanswered(ids: Ids, message: BaseMessage) -> Ids:
    """The ids that are still waiting after `message`; none after one that is no tool message."""
    return _without(message.tool_call_id, ids) if isinstance(message, ToolMessage) else ()


# ---------------------------------------------------------------------------------------------- what an assistant said


def unwritten(message: AIMessage) -> str:
    """What an assistant message without text says all the same: the words that were only spoken, or a refusal."""
    return str(_audio_of(message).get("transcript") or message.additional_kwargs.get("refusal") or "")


def said(content: str | Iterable[str | dict[Any, Any]]) -> tuple[str, list[Part]]:
    """The text of an assistant message, and media it made. Calls stand elsewhere; other vendors' inner state is left out."""
    if isinstance(content, str):
        return content, []
    parts = [part_of(block) for block in content if not _is_inner(block)]
    text = "".join(part["text"] for part in parts if part["type"] == "text")
    return text, [part for part in parts if part["type"] != "text"]


def _is_inner(block: str | Mapping[str, Any]) -> bool:
    """Whether an assistant's block is a call, a thought, or something that another vendor's server did."""
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
    """Audio of the vendor's own, which goes back by its id."""
    return bool(block.get("id")) and not any(key in block for key in ("base64", "url", "file_id", "source_type", "data"))


def _audio_of(message: AIMessage) -> Mapping[str, Any]:
    """The spoken reply that a message holds; empty if none."""
    audio = message.additional_kwargs.get("audio")
    if isinstance(audio, Mapping):
        return audio
    blocks = message.content if isinstance(message.content, list) else ()
    return next((block for block in blocks if isinstance(block, Mapping) and block.get("type") == "audio" and _is_spoken(block)), {})
