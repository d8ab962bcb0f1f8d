"""Conversion of LangChain messages to the JSON of chat completions requests.

Understood are LangChain's v1 and v0 blocks and the blocks of chat completions itself, of Responses, of Anthropic and of
Google. A block that chat completions cannot carry raises `UnsupportedFeatureError` with its type; nothing is dropped here.

Wire facts: a part is one of text, image_url, input_audio and file. Files are PDF and go as data or as the id of an upload, not as a URL
(developers.openai.com, "File inputs"). Sound is MP3 or WAV. `video_url`, `audio_url` and `document_url` are parts of compatible servers.
"""

import base64
import logging
import mimetypes
import re
import struct
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar, cast

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage

from ...errors import UnsupportedFeatureError
from ...messages.blocks import is_provisional
from ...messages.calls import ToolCallRecord, calls_of
from ...messages.incremental import MessageMemo, fold_over
from .._encode import encoder, sources
from .dialect import OPAQUE_KEYS, OPENAI, Call, Dialect, IdShape, InputAudio, Message, OwnParts, Part

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletionToolMessageParam
    from openai.types.chat.chat_completion_content_part_image_param import ImageURL
    from openai.types.chat.chat_completion_content_part_param import FileFile


_NO_SUCH = "chat completions has no such content"
PROMPT_CACHE = "prompt_cache_breakpoint"
"""A key that the vendor takes on any part, of Responses too."""

_AUDIO_FORMATS = {"mpeg": "mp3", "x-mp3": "mp3", "x-mpeg": "mp3", "x-wav": "wav", "wave": "wav", "vnd.wave": "wav"}
_SAMPLES = ("audio/l16", "audio/pcm")
_RATE = 24_000  # of Gemini's speech
_EXTENSIONS = {"text/plain": ".txt", "text/markdown": ".md", "application/json": ".json"}


def text_part(text: str) -> Part:
    """Return a text part."""
    return {"type": "text", "text": text}


_NO_PARTS: OwnParts = {}


def part_of(block: str | sources.Block, keys: Collection[str] = (), own: OwnParts = _NO_PARTS, why: str = _NO_SUCH) -> Part:
    """Convert one content block to a content part.

    Args:
        block: The block, of any vendor.
        keys: Keys of a block, besides those of chat completions, that the server takes on a part (`cache_control`, say).
        own: The parts that the server takes besides those of chat completions.
        why: The error's text for a block of a kind that is not known.

    Raises:
        UnsupportedFeatureError: Chat completions cannot carry the block.
    """
    if isinstance(block, str):
        return text_part(block)
    block = sources.unwrapped(block)
    known = own.get(str(block.get("type")))
    if known and known[0] in block:
        return cast("Part", {key: block[key] for key in ("type", *known) if key in block})
    kept: Any = {key: holder[key] for holder in sources.holders(block) for key in (PROMPT_CACHE, *keys) if key in holder}
    return {**sources.convert_block(block, text_part, _CONVERTERS, why), **kept}


# ---------------------------------------------------------------------------------------------- media


def _media(block: sources.Block) -> Part:
    source = sources.media_of(block)
    if source.kind == "video":
        raise sources.unsupported(block.get("type"), _NO_SUCH)
    return _OF_KIND.get(source.kind, _file)(block, source)


def _image(block: sources.Block, source: sources.Source) -> Part:
    given = block.get("image_url")
    image: ImageURL = {**given} if isinstance(given, Mapping) else {"url": ""}  # type: ignore[typeddict-item]
    if source.url:
        image["url"] = source.url
    elif source.data is not None:
        mime_type = source.mime_type or sources.image_type(source.data)
        if mime_type is None:
            raise sources.unsupported(block.get("type"), "its mime_type is missing")
        image["url"] = f"data:{mime_type};base64,{source.data}"
    else:
        raise sources.unsupported(block.get("type"), "it has no result" if "generation" in str(block.get("type")) else _NO_IMAGE)
    if detail := sources.extra(block, "detail"):
        image["detail"] = detail
    return {"type": "image_url", "image_url": image}


_NO_IMAGE = "an image needs a URL or base64 data"


def _audio(block: sources.Block, source: sources.Source) -> Part:
    return {"type": "input_audio", "input_audio": input_audio(block, source)}


def input_audio(block: sources.Block, source: sources.Source) -> InputAudio:
    """Return sound in a format that the vendor takes: MP3 or WAV, which bare samples become.

    Raises:
        UnsupportedFeatureError: It is in another format, or not there.
    """
    kind = block.get("type")
    if source.data is None or not source.mime_type:
        raise sources.unsupported(kind, "audio needs base64 data and a mime_type")
    if source.essence in _SAMPLES:
        return {"data": _as_wav(source), "format": "wav"}
    name = source.essence.rpartition("/")[2]
    name = _AUDIO_FORMATS.get(name, name)
    if name not in ("mp3", "wav"):
        raise sources.unsupported(kind, f"sound is mp3 or wav, not {name}")
    return {"data": source.data, "format": name}


def _as_wav(source: sources.Source) -> str:
    """Return samples of 16 bits with the header that says their rate."""
    samples = base64.b64decode(source.data or "")
    rate, channels = (int(source.parameter(name) or usual) for name, usual in (("rate", _RATE), ("channels", 1)))
    size, width = len(samples), 2 * channels
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, channels, rate, rate * width, width, 16)
    head = struct.pack("<4sI4s", b"RIFF", 36 + size, b"WAVE") + form + struct.pack("<4sI", b"data", size)
    return base64.b64encode(head + samples).decode()


def _text(block: sources.Block, source: sources.Source) -> Part:
    if source.text is None and source.data is None:
        return _file(block, source)
    return text_part(sources.document_text(block, source))


def _file(block: sources.Block, source: sources.Source) -> Part:
    kind = block.get("type")
    if source.file_id:
        name = source.name
        check_id(source, kind)
        return {"type": "file", "file": {"file_id": source.file_id, **({"filename": name} if name else {})}}
    if source.data is None:
        raise sources.unsupported(kind, "a file needs base64 data or the id of an uploaded file; chat completions takes no file URL")
    if source.kind != "pdf":
        raise sources.unsupported(kind, f"chat completions takes PDF and text, not {source.essence or 'data of an unknown type'}")
    return {"type": "file", "file": file_data(block, source)}


def check_id(source: sources.Source, kind: Any) -> None:
    """Raise if the id of an uploaded file has the form of another vendor's.

    Raises:
        UnsupportedFeatureError: It has.
    """
    if str(source.file_id).startswith(("file_", "files/", "https://")):
        raise sources.unsupported(kind, f"the file {source.file_id!r} is another vendor's")


def file_data(block: sources.Block, source: sources.Source) -> "FileFile":
    """Return a file's data. The vendor requires a name; a missing one is derived from the media type."""
    mime_type = source.essence or sources.PDF
    name = source.name or sources.extra(block, "title") or f"file{_EXTENSIONS.get(mime_type) or mimetypes.guess_extension(mime_type) or ''}"
    return {"filename": name, "file_data": f"data:{mime_type};base64,{source.data}"}


_OF_KIND: Mapping[str, Callable[[sources.Block, sources.Source], Part]] = {"image": _image, "audio": _audio, "text": _text}


# ---------------------------------------------------------------------------------------------- other parts


def _as_it_came(key: str) -> Callable[[sources.Block], Part]:
    """Return a converter of the parts of compatible servers, which removes LangChain's additions."""

    def part(block: sources.Block) -> Any:
        if not block.get(key):
            raise sources.unsupported(block.get("type"), f"{key!r} is missing")
        return {"type": block["type"], key: block[key]}

    return part


def _search_result(block: sources.Block) -> Part:
    return text_part(sources.search_result_text(block))


def _of_responses_alone(block: sources.Block) -> Part:
    raise sources.unsupported(block["type"], "only the Responses API has it (use_responses_api=True)")


_CONVERTERS: dict[str, Callable[[sources.Block], Part]] = {
    **dict.fromkeys(("additional_tools", "configuration_update"), _of_responses_alone),
    "search_result": _search_result,
    "media": _media,
    **{key: _as_it_came(key) for key in ("audio_url", "video_url", "document_url")},
}


# ---------------------------------------------------------------------------------------------- calls
# Tool calls of a history in chat completions' form: ids, names, arguments and extra keys.
#
# Wire facts: ids of at most 40 characters, unique in their message; names of `[a-zA-Z0-9_-]{1,64}`; arguments as a JSON text that strict
# servers parse. What the model wrote goes back as it wrote it wherever that is legal, so that prompt caches hit.


class CallId(NamedTuple):
    """A tool call's ids in LangChain and on the wire, and the data that its result must repeat in Responses."""

    known: str
    sent: str
    custom: bool = False
    """Whether it is a call of a custom tool."""
    caller: str = ""
    """The vendor's program that made the call, as JSON; "" if the model made it."""


_CUSTOM = "custom"
"""The extra key that marks a call of a custom tool with True: its input is free text, not JSON. (Some servers send an empty object
under this key with every call.)"""
CUSTOM_ARGUMENT = "__arg1"
"""The argument that holds a custom tool's input, as in LangChain's single-input tools."""

_LONGEST_NAME = 64
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
_STRUCTURE = frozenset({"id", "type", "function", "index", "name", "arguments", _CUSTOM})


def wire_ids(calls: Sequence[ToolCallRecord], shape: IdShape, *, same_origin: bool, taken: Collection[str] = ()) -> list[str]:
    """Return the wire ids of a message's calls, each unique in the request.

    Args:
        calls: The calls of one message.
        shape: The form of ids that the server accepts.
        same_origin: Whether they go back to the server that wrote them: then its own ids, whatever they look like.
        taken: The ids of earlier messages' calls.
    """
    ids: list[str] = []
    for position, call in enumerate(calls):
        own = (call.wire_id or call.id) if same_origin else call.id
        identifier = own if same_origin and not shape.always else shape.fit(own)
        if not identifier or identifier in ids or identifier in taken:
            identifier = shape.fit(call.id)
        attempt = 0
        while identifier in ids or identifier in taken or (not call.id and not attempt):
            identifier = shape.derived(call.id, call.name, position + 1000 * attempt)
            attempt += 1
        ids.append(identifier)
    return ids


def legal_name(name: str) -> str:
    """Return a tool's name with illegal characters replaced: a model may write any name, and it must be sent back."""
    return _ILLEGAL.sub("_", name)[:_LONGEST_NAME] or "_"


def _encode_call(call: ToolCallRecord, identifier: str, *, same_origin: bool) -> Call:
    """Encode one call as part of an assistant message; unknown keys are sent only to their origin.

    Args:
        call: The call.
        identifier: The id that it is sent with.
        same_origin: Whether it goes back to the server and model that wrote it.
    """
    if same_origin and is_custom(call):
        return {"id": identifier, "type": _CUSTOM, "custom": {"name": legal_name(call.name), "input": custom_input(call)}}
    wire: Call = {
        "id": identifier,
        "type": "function",
        "function": {"name": legal_name(call.name), "arguments": encoder.legal_arguments(call)},
    }
    extra: Any = {key: value for key, value in call.extra.items() if key not in _STRUCTURE} if same_origin else {}
    return {**wire, **extra}


def is_custom(call: ToolCallRecord) -> bool:
    """Whether a call is one of a custom tool."""
    return call.extra.get(_CUSTOM) is True and call.args is not None


def custom_input(call: ToolCallRecord) -> str:
    """Return the text that the model wrote to a custom tool."""
    return str((call.args or {}).get(CUSTOM_ARGUMENT, ""))


# ---------------------------------------------------------------------------------------------- encode
# Conversion of messages of any vendor to messages of chat completions.
#
# Each message is encoded alone, so that it can be remembered; what one message asks of its neighbours is in `Encoded`: ids that its
# results must carry, and media that only a user message may hold. Those follow, as one user message, after all results of the turn, where
# the vendor takes them and where they never move again.
#
# Wire facts: images only in user messages ("Image URLs are only allowed for messages with role 'user'"), text only in tool messages;
# content null beside tool calls. A call's reasoning goes back under the key it came in, to the server it came from, and to nobody else:
# some servers demand it there, others refuse it. Those that demand it get it with every message since the first call, with the final answer
# too.


logger = logging.getLogger("langchain_autotools")

PartT = TypeVar("PartT", bound=Mapping[str, object])
THINKING_PART = "thinking_part"
"""The package's key for reasoning that arrived as a part of the content."""
THINKING_PARTS = "thinking_parts"
"""The package's key for such parts where they have more than text: signatures, sources."""

_SINCE = "after calls"
_CUT = ("incomplete", "length")
_CALLS = frozenset({"tool_use", "tool_call", "tool_call_chunk", "invalid_tool_call", "input_json_delta", "custom_tool_call"})
_THOUGHTS = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_content"})
_SERVER_SIDE = frozenset(
    {
        *("server_tool_result", "server_tool_call_chunk", "executable_code", "code_execution_result", "container_upload"),
        *("compaction", "tool_search_output", "additional_tools", "configuration_update"),
        "part",  # of Google's: opaque
    }
)
_SERVER_SIDE_ENDINGS = ("_call", "_call_output", "_tool_use", "_tool_result", "mcp_list_tools", "mcp_approval_request")

_ILLEGAL_IN_NAME = re.compile(r"[\s<|\\/>]+")
SAID = "said"


def said_part(line: str) -> Any:
    """Return a part that says in words what an assistant has made and the wire cannot carry."""
    return {"type": SAID, "text": line}


@dataclass(frozen=True, slots=True)
class EncodedMessage:
    """One message on the wire.

    Attributes:
        body: Its JSON.
        media: Content parts, joined by commas, for the user message after this turn's results.
        calls: Its calls, where the id of any differs from the one that a result alone would be sent with.
    """

    body: bytes
    media: bytes = b""
    calls: tuple[CallId, ...] = ()
    call_ids: frozenset[str] = frozenset()
    """The wire ids of its calls."""


def encode_media(caption: Mapping[str, object], parts: Sequence[Mapping[str, object]]) -> bytes:
    """Return media that only a user message may hold, after a caption; parts are joined by commas.

    Args:
        caption: The text part before them.
        parts: The parts.
    """
    return b",".join(map(encoder.encode, (caption, *parts))) if parts else b""


def user_message(media: Sequence[bytes]) -> bytes:
    """Return the user message with media that a turn's tool results and assistant message cannot hold."""
    return b'{"role":"user","content":[' + b",".join(media) + b"]}"


class ChatCompletionsEncoder(encoder.MessageEncoder[EncodedMessage, CallId]):
    """Encodes messages of any vendor for chat completions, each alone.

    Args:
        origin: Digest of the endpoint and the model. Opaque state (reasoning, signatures, the server's own ids) goes back
            only to the origin it came from; "" keeps none.
        dialect: The vendor's way to speak this wire.
        null_content: Whether an assistant message with calls and no text says null (else the empty string): servers differ.
        omit: Keys of opaque state that this server refuses to be sent back, besides those that its dialect names.
        demand: Keys of opaque state that it wants in every assistant message with calls, likewise.
        part_keys: Keys of content blocks that this server takes besides those of chat completions (`cache_control`, say).

    Attributes:
        demanded: The keys of opaque state that the server wants.
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
        self.demanded = sorted({*demand, *dialect.demands} - set(omit))
        self._thinking = THINKING_PART not in refused
        self._part_keys = tuple(dict.fromkeys(part_keys))

    def variant(self, **changed: Any) -> Self:
        """Return an encoder that differs only in `null_content`, `omit` or `demand`."""
        form = {"null_content": self.null_content, "omit": self.omit, "demand": self.demand, **changed}
        return type(self)(origin=self.origin, dialect=self._dialect, part_keys=self._part_keys, **form)

    # ------------------------------------------------------------------------------------------ user and system

    def _other(self, message: BaseMessage, role: str) -> EncodedMessage:
        is_system = isinstance(message, SystemMessage)
        if is_system:
            role = message.additional_kwargs.get("__openai_role__", role)
        if role == "developer" and not self._dialect.developer:
            role = "system"
        wire: Message = {"role": role, "content": self._user_content(message.content, text_only=is_system)}
        return EncodedMessage(encoder.encode(self._with_author(wire, message)))

    def _user_content(self, content: str | list[str | dict[Any, Any]], *, text_only: bool) -> str | list[Part]:
        """Return content of a user or system message: a string if it is only text."""
        if isinstance(content, str):
            return content
        parts = [self._part(block) for block in sources.expanded(content)]
        other = next((part["type"] for part in parts if part["type"] not in ("text", *self._dialect.parts)), None)
        if text_only and other:
            raise UnsupportedFeatureError(f"content block of type {other!r} cannot be sent in a system message: it takes text only")
        return plain_content(parts)

    def _part(self, block: str | sources.Block) -> Part:
        if self._dialect.media is not None and isinstance(block, Mapping) and sources.is_media(opened := sources.unwrapped(block)):
            own: Part | None = self._dialect.media(opened, sources.media_of(opened))
            if own is not None:
                return own
        return part_of(block, self._part_keys, self._dialect.parts)

    # ------------------------------------------------------------------------------------------ results

    def _result(self, message: ToolMessage, call: CallId | None) -> EncodedMessage:
        identifier = call.sent if call else self._fit(message.tool_call_id)
        parts = self._carried(message, sources.expanded(message.content), self._part, text_part)
        texts, media = [part for part in parts if part["type"] == "text"], [part for part in parts if part["type"] != "text"]
        text: Any = texts if any(map(_is_marked, texts)) else "\n".join(part["text"] for part in texts)
        if not text:
            text = encoder.BELOW if media else encoder.empty_output(failed=message.status == "error")
        wire: ChatCompletionToolMessageParam = {"role": "tool", "tool_call_id": identifier, "content": text}
        return EncodedMessage(encoder.encode(wire), encode_media(text_part(sources.FROM_TOOL.format(identifier)), media))

    # ------------------------------------------------------------------------------------------ assistant

    def after_calls(self, message: AIMessage) -> EncodedMessage:
        """Return an AI message that follows a call of the history, as of `remembered`: with its reasoning, whether it has calls or not."""
        return self._memo.get(message, _SINCE) or self._put(message, _SINCE, self._assistant(message, after_calls=True))

    def with_other_ids(self, message: AIMessage, taken: frozenset[str], *, after_calls: bool) -> EncodedMessage:
        """Return an AI message one of whose calls has the id of an earlier message's call, as of `remembered`.

        Args:
            message: The message.
            taken: The wire ids of earlier messages' calls.
            after_calls: Whether it is encoded as of `after_calls`.
        """
        context = (taken, after_calls)
        encoded = self._memo.get(message, context)
        return encoded or self._put(message, context, self._assistant(message, after_calls=after_calls, taken=taken))

    def _assistant(self, message: AIMessage, *, after_calls: bool = False, taken: frozenset[str] = frozenset()) -> EncodedMessage:
        message, refusal = encoder.apart_from_refusal(message) if self._dialect.refusals else (message, "")
        text, media = self._spoken(message)
        calls = calls_of(message)
        same_origin = self.is_same_origin(message)
        ids = wire_ids(calls, self._dialect.ids, same_origin=same_origin, taken=taken)
        thinks = bool(calls) or (after_calls and (bool(text) or message.response_metadata.get("finish_reason") not in _CUT))
        wire = self._with_author(self._without_calls(message, text, bool(calls), same_origin and thinks), message)
        if text and isinstance(message.content, list) and wire["content"] == text:  # parts, if any has a key besides its text
            blocks = [
                block
                for block in visible(message.content)
                if isinstance(block, str) or sources.block_text(sources.unwrapped(block)) is not None
            ]
            texts = [part_of(block, self._part_keys) for block in blocks]
            wire["content"] = texts if any(map(_is_marked, texts)) else text
        if refusal and not (wire["content"] or calls):
            wire["content"], refusal = [{"type": "refusal", "refusal": refusal}], ""  # a part of this type is the only one
        more: Any = {key: message.additional_kwargs[key] for key in self._dialect.assistant_keys if key in message.additional_kwargs}
        more |= {"refusal": refusal} if refusal else {}
        if calls:
            wire["tool_calls"] = [_encode_call(call, one, same_origin=same_origin) for call, one in zip(calls, ids, strict=True)]
        if calls or after_calls:
            more = dict.fromkeys(self.demanded, "") | (self._opaque(message) if same_origin and thinks else {}) | more
        pairs = tuple(CallId(call.id, one) for call, one in zip(calls, ids, strict=True))
        changed = any(self._fit(known) != sent for known, sent, *_ in pairs)
        return EncodedMessage(
            encoder.encode({**wire, **more}), encode_media(text_part(sources.FROM_MODEL), media), pairs if changed else (), frozenset(ids)
        )

    def _spoken(self, message: AIMessage) -> tuple[str, list[Part]]:
        """Return an AI message's text, and what else it made, for a message of the user's."""
        if isinstance(message.content, str):
            return message.content, []
        parts = self._carried(message, visible(message.content), self._part, said_part)
        text = "".join(part["text"] for part in parts if part["type"] == "text")
        return text, [text_part(part["text"]) if part["type"] == SAID else part for part in parts if part["type"] != "text"]

    def _without_calls(self, message: AIMessage, text: str, calls: bool, thinks: bool) -> Message:
        """Return an assistant message without its calls; for other servers, a refusal or a transcript of speech becomes text.

        Args:
            message: The message.
            text: Its text.
            calls: Whether it has calls.
            thinks: Whether its thoughts go back.
        """
        extra = message.additional_kwargs
        thinking = extra.get(THINKING_PART)
        if self._dialect.reasoning == THINKING_PART:
            thinking = thinking or extra.get("reasoning_content") or _reasoning_in(message.content)
        thoughts = extra.get(THINKING_PARTS) or ([{"type": "thinking", "thinking": [text_part(thinking)]}] if thinking else [])
        if thoughts and thinks and self._thinking:
            return {"role": "assistant", "content": [*thoughts, text_part(text)] if text else thoughts}
        audio = encoder.audio_of(message)
        if audio.get("id") and not text and message.response_metadata.get("model_provider") == self._dialect.provider:
            return {"role": "assistant", "content": None, "audio": {"id": audio["id"]}}
        text = text or encoder.fallback_text(message)
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


def visible(content: str | list[str | dict[Any, Any]]) -> list[str | sources.Block]:
    """Return the blocks of an AI message without calls and other vendors' internal state."""
    return [block for block in sources.expanded(content) if not _is_inner(block)]


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
        inner = _is_inner(block["value"]) or not (encoder.is_output(block["value"]) or sources.block_text(block["value"]) is not None)
    elif sources.is_media(block):
        inner = not encoder.is_output(block)
    else:
        inner = kind in _CALLS or kind in _THOUGHTS or kind in _SERVER_SIDE or kind.endswith(_SERVER_SIDE_ENDINGS)
    if inner and kind not in _CALLS:
        logger.debug("not sent: an assistant's content block of type %r", kind)
    return inner


# ---------------------------------------------------------------------------------------------- mapper
# Conversion of LangChain messages to the JSON of chat completions requests.


class ChatCompletionsMapper(ChatCompletionsEncoder):
    """Encodes requests. Safe for use by any number of threads."""

    def encode_request(self, messages: Sequence[BaseMessage], params: Mapping[str, Any]) -> bytes:
        """Encode a request.

        Args:
            messages: The messages.
            params: Everything else, in the wire's names.

        Raises:
            ConfigurationError: A parameter is no JSON value.
            UnsupportedFeatureError: A message has content that chat completions cannot carry.
        """
        if fold_over(messages, _Speech, _Speech).found:
            now = time.time()
            messages = [_with_transcript(one, now) if isinstance(one, AIMessage) else one for one in messages]
        return encoder.request_body(params, "messages", fold_over(messages, self, partial(_Bodies, self, self._dialect.bridge)).all())


_silent: MessageMemo[AIMessage] = MessageMemo()


@dataclass(slots=True)
class _Speech:
    """A fold that finds out whether a message may hold speech."""

    found: bool = False

    def copy(self) -> "_Speech":
        """Return an independent copy."""
        return _Speech(self.found)

    def read(self, messages: Sequence[BaseMessage]) -> None:
        """Read the next messages."""
        for message in messages:
            blocks: Any = message.content if message.content.__class__ is list else ()
            is_spoken = "audio" in message.additional_kwargs
            self.found = self.found or is_spoken or any(block.__class__ is dict and block.get("type") == "audio" for block in blocks)


def _with_transcript(message: AIMessage, now: float) -> AIMessage:
    """Return a message without the id of speech that its server has deleted: its transcript is sent (`expires_at`)."""
    audio = encoder.audio_of(message)
    expires = audio.get("expires_at")
    if not isinstance(expires, int | float) or expires > now:
        return message
    if (known := _silent.get(message)) is not None:
        return known
    spoken = {key: value for key, value in audio.items() if key != "id"}
    blocks = message.content if isinstance(message.content, str) else [block for block in message.content if block is not audio]
    made = message.model_copy(update={"content": blocks, "additional_kwargs": {**message.additional_kwargs, "audio": spoken}})
    _silent.put(message, None, made)
    return made


class _Bodies:
    """A fold of the bodies of messages, with those that are between a turn's results and the next message.

    Args:
        encoder: Encodes each message.
        bridge: The text of an assistant that some vendors need between results and a user.
    """

    __slots__ = ("_answered", "_bodies", "_bridge", "_called", "_encoder", "_media", "_used", "_waiting")

    def __init__(self, encoder: ChatCompletionsEncoder, bridge: str, bodies: Sequence[bytes] = (), media: Sequence[bytes] = ()) -> None:
        self._encoder, self._bridge = encoder, bridge
        self._bodies, self._media = [*bodies], [*media]
        self._answered = self._called = False
        self._waiting: tuple[CallId, ...] = ()
        self._used: set[str] = set()

    def copy(self) -> "_Bodies":
        """Return an independent copy."""
        made = _Bodies(self._encoder, self._bridge, self._bodies, self._media)
        made._answered, made._called, made._waiting, made._used = self._answered, self._called, self._waiting, {*self._used}
        return made

    def read(self, messages: Sequence[BaseMessage]) -> None:
        """Read the next messages."""
        for message in messages:
            if isinstance(message, ToolMessage):
                encoded = self._encoder.remembered(message, self._waiting)
                self._waiting = encoder.without_call(message.tool_call_id, self._waiting)
                self._answered = self._called = True
            else:
                since = self._called and self._encoder.demanded and isinstance(message, AIMessage)
                encoded = self._encoder.after_calls(cast("AIMessage", message)) if since else self._encoder.remembered(message)
                if encoded.call_ids and not self._used.isdisjoint(encoded.call_ids):
                    other = frozenset(self._used)
                    encoded = self._encoder.with_other_ids(cast("AIMessage", message), other, after_calls=bool(since))
                self._used |= encoded.call_ids
                if self._answered or self._media:
                    self._bodies += self._between(message)
                self._waiting, self._media, self._answered = encoded.calls, [], False
            self._bodies.append(encoded.body)
            if encoded.media:
                self._media.append(encoded.media)

    def all(self) -> list[bytes]:
        """Return the bodies of a request that ends here."""
        return [*self._bodies, *self._between(None)]

    def _between(self, following: BaseMessage | None) -> list[bytes]:
        """Return the messages between a turn's results and the next message: media of the results, after text that some vendors need."""
        user = [user_message(self._media)] if self._media else []
        speaks = bool(user) or not (following is None or isinstance(following, AIMessage))
        return (
            [encoder.encode({"role": "assistant", "content": self._bridge}), *user] if self._bridge and self._answered and speaks else user
        )
