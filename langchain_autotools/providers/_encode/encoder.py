"""What the encoders of all wires share: the base class with its cache, call ids, origins, the order of blocks, JSON text.

A body is sent as bytes that this module makes, not as an object that a client library serialises: the same history gives the
same bytes, and what was encoded once is joined, not encoded again.
"""

import hashlib
import json
import logging
import math
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage, SystemMessage, ToolMessage

from ... import strict_json
from ...addresses import public_url
from ...errors import ConfigurationError, UnsupportedFeatureError
from ...messages.blocks import CALL_BLOCKS, is_provisional
from ...messages.calls import ToolCallRecord
from ...messages.incremental import MessageMemo
from ...messages.metadata import KEY, own_metadata
from .sources import ODD, Block, in_words, is_media, unwrapped

_STRICT = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_COMPACT = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=str)


def dumps(value: Any) -> str:
    """Return compact JSON. Values without a JSON form become text; NaN and infinities, which servers reject, become null."""
    try:
        return _COMPACT.encode(value)
    except ValueError:
        return _COMPACT.encode(_finite_data(value))


def encode(value: Any) -> bytes:
    """Return compact JSON as bytes (see `dumps` and `to_bytes`)."""
    return to_bytes(dumps(value))


def request_body(params: Mapping[str, Any], key: str, pieces: Sequence[bytes], before: bytes = b"", between: bytes = b",") -> bytes:
    """Return the body of a request. What is long in it is copied once.

    Args:
        params: The parameters: what a caller set is sent as set, or refused.
        key: The name of the parameter that holds the messages; it comes last.
        pieces: The encoded messages, or the pieces of their JSON.
        before: Encoded parameters that go before the messages, each with a comma after it.
        between: What goes between the pieces.

    Raises:
        ConfigurationError: A parameter is no JSON value; the text names it.
    """
    head = [f"{_STRICT.encode(name)}:{_value(name, value)}," for name, value in params.items() if name != key]
    body = [*pieces] or [b""]
    body[0] = b"".join((to_bytes("{" + "".join(head)), before, f'"{key}":['.encode(), body[0]))
    body[-1] += b"]}"
    return between.join(body)


def _value(key: str, value: Any) -> str:
    try:
        return _STRICT.encode(value)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"parameter {key!r} cannot be sent: {error}") from error


def _finite_data(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite_data(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite_data(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def to_bytes(text: str) -> bytes:
    """Encode a text as UTF-8. Surrogate pairs are joined; a lone surrogate (a truncated character) becomes U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return strict_json.mend_surrogates(text).encode()


def read_object(text: str) -> dict[str, Any] | None:
    """Parse `text` as a strict JSON object; None if it is anything else."""
    return strict_json.read_object(text, control_characters=False)


# ---------------------------------------------------------------------------------------------- calls
# Tool calls of a history in every wire's terms: ids, arguments, and the call that a result answers.


_NO_OUTPUT = "(no output)"
_FAILED = "(failed without output)"
BELOW = "(the output follows in the next message)"
"""The text of a result whose output is media that only a user message may hold."""


class _WireCall(Protocol):
    """A tool call with LangChain's id and the values that its result must repeat on the wire."""

    @property
    def known(self) -> str: ...


CallT = TypeVar("CallT", bound=_WireCall)


def without_call(identifier: str, calls: tuple[CallT, ...]) -> tuple[CallT, ...]:
    """Return the calls without the first one with this id: calls that share an id are answered in order."""
    if not calls or calls[0].known == identifier:  # nearly always: results come in the order of the calls
        return calls[1:]
    position = next((number for number, call in enumerate(calls) if call.known == identifier), None)
    return calls if position is None else calls[:position] + calls[position + 1 :]


def derived_id(prefix: str, identifier: str, name: str = "", position: int = 0, *, digits: int = 24) -> str:
    """Return a derived id for a call whose own id cannot be sent; equal calls get equal ids.

    Args:
        prefix: The id's prefix.
        identifier: The call's own id.
        name: The tool's name, where calls without an id are to be told apart.
        position: The call's place, likewise.
        digits: The number of hex digits after the prefix.
    """
    seed = f"{identifier}\x00{name}\x00{position}".encode(errors="surrogatepass")
    return f"{prefix}{hashlib.sha1(seed, usedforsecurity=False).hexdigest()[:digits]}"


def empty_output(*, failed: bool) -> str:
    """Return the output of a result without text, because some vendors reject an empty one."""
    return _FAILED if failed else _NO_OUTPUT


def legal_arguments(call: ToolCallRecord, *, unreadable: str = "") -> str:
    """Return the arguments as the model wrote them if every server can read them, else the same object serialized again.

    Args:
        call: The call.
        unreadable: The key under which a text that is no object goes back. Without one it does not: the call's result says what was
            wrong with it.
    """
    value = read_object(call.arguments)
    if value is not None and (call.args is None or value == call.args):
        return call.arguments
    if call.args is not None:
        return dumps(call.args)
    return dumps({unreadable: call.arguments}) if unreadable and call.arguments.strip() else "{}"


# ---------------------------------------------------------------------------------------------- order
# The order in which an assistant wrote its content and its calls, for wires that require both in their places.


CALLS = CALL_BLOCKS | {"custom_tool_call"}
"""Types of content blocks for calls, including OpenAI's custom tools; these calls are in the message's `tool_calls`."""


def in_order(message: AIMessage, records: Sequence[ToolCallRecord]) -> list[str | Mapping[str, Any] | int]:
    """Return the content blocks, and the calls by number, in the order in which they were written.

    The place of the calls is recorded where content followed them; else their own blocks in the content say it; else they come last.
    """
    content = [message.content] if isinstance(message.content, str) else message.content
    others = [block for block in content if isinstance(block, str) or block.get("type") not in CALLS]
    own = message.response_metadata.get(KEY)
    before = own.get("before_calls") if isinstance(own, Mapping) else None
    if not isinstance(before, list) or len(before) != len(records):
        before = _positions(content, records)
    items: list[str | Mapping[str, Any] | int] = []
    waiting = list(range(len(records)))
    for position, block in enumerate(others):
        while waiting and before[waiting[0]] <= position:
            items.append(waiting.pop(0))
        items.append(block)
    return [*items, *waiting]


def _positions(content: Sequence[Any], records: Sequence[ToolCallRecord]) -> list[int]:
    """Return the number of other blocks before each call."""
    places: dict[Any, int] = {}
    count = 0
    for block in content:
        if isinstance(block, Mapping) and block.get("type") in CALLS:
            places.setdefault(block.get("id"), count)
        else:
            count += 1
    return [places.get(call.id, count) for call in records]


# ---------------------------------------------------------------------------------------------- origin
# A request's origin as a digest: opaque state (reasoning, signatures, server ids) is sent back only to its origin.


_SNAPSHOT = re.compile(r"-\d{8}\Z|-\d{4}-\d{2}-\d{2}\Z|-\d{3}\Z|@\d+\Z|-latest\Z")
"""Version suffixes of model names: `-20260301`, `-2026-03-01`, `-001`, `@20260301`, and `-latest`."""


def origin_of(base_url: str | None, model: str) -> str:
    """Return a digest of the endpoint and model of a request."""
    return hashlib.sha256(f"{public_url(base_url)}\n{model}".encode()).hexdigest()[:16]


def message_origin(message: AIMessage) -> Any:
    """Return the origin in a message's metadata; None if there is none."""
    return own_metadata(message).get("origin")


# ---------------------------------------------------------------------------------------------- input
# Objects of a vendor's SDK in the input of its model. Nobody can have one before they have imported the SDK.


def sdk_class(module: str, name: str) -> Any:
    """Return a class of an SDK; None if nobody can have an object of it yet, also while another thread imports the SDK."""
    return getattr(sys.modules.get(module), name, None)


def read_input(given: Any, kind: Any, read: Callable[[Any], list[BaseMessage]]) -> Any:
    """Return a model's input with an SDK's objects converted to messages.

    Args:
        given: The input.
        kind: Their class, as of `sdk_class`.
        read: Converts one.
    """
    if kind is None or isinstance(given, str):
        return given
    if isinstance(given, kind):
        return read(given)
    if not isinstance(given, Sequence) or not any(map(isinstance, given, repeat(kind))):
        return given
    return [message for one in given for message in (read(one) if isinstance(one, kind) else [one])]


# ---------------------------------------------------------------------------------------------- system
# System messages for wires that accept them only at the start of a request.


def as_user_text(texts: Iterable[str]) -> str:
    """Return a later system message as marked text for a user message."""
    return "<system>\n" + "\n".join(texts) + "\n</system>"


# ---------------------------------------------------------------------------------------------- encoder
# The base class of every wire's encoder. Each message is encoded alone, and the result cached for the message's lifetime.
#
# The same history gives the same bytes, and a longer one starts with those of a shorter one.


_logger = logging.getLogger("langchain_autotools")

_T = TypeVar("_T")
_MOST = 1_000
_FINDS = ("search_result", "resource_link")
_told: dict[Hashable, None] = {}  # what has been logged, by wire, endpoint, message and line


class _Encoded(Protocol):
    """One encoded message, with the data of its calls that their results need."""

    @property
    def calls(self) -> tuple[Any, ...]: ...


EncodedT = TypeVar("EncodedT", bound=_Encoded)


def fallback_text(message: AIMessage) -> str:
    """Return the text that an AI message holds outside its texts: a transcript of speech, or a refusal."""
    return str(audio_of(message).get("transcript") or message.additional_kwargs.get("refusal") or "")


def apart_from_refusal(message: AIMessage) -> tuple[AIMessage, str]:
    """Return an AI message without its refusal, and the refusal: that beside its content, else that of its blocks; "" if there is none."""
    blocks = message.content if isinstance(message.content, list) else []
    refusals = [inner for block in blocks if isinstance(block, Mapping) and (inner := unwrapped(block)).get("type") == "refusal"]
    refusal = str(message.additional_kwargs.get("refusal") or "") or "".join(str(block.get("refusal") or "") for block in refusals)
    if not refusal:
        return message, ""
    kept = [block for block in blocks if isinstance(block, str) or unwrapped(block).get("type") != "refusal"]
    beside = {name: value for name, value in message.additional_kwargs.items() if name != "refusal"}
    return message.model_copy(update={"content": kept if refusals else message.content, "additional_kwargs": beside}), refusal


def audio_of(message: AIMessage) -> Mapping[str, Any]:
    """Return the audio reply of a message, as chat completions sends it; empty if there is none."""
    audio = message.additional_kwargs.get("audio")
    if isinstance(audio, Mapping):
        return audio
    blocks = message.content if isinstance(message.content, list) else ()
    return next((block for block in blocks if isinstance(block, Mapping) and block.get("type") == "audio" and _is_spoken(block)), {})


def _is_spoken(block: Block) -> bool:
    """Whether a block is audio that its vendor sent with an id, and takes back by it."""
    return bool(block.get("id")) and not any(key in block for key in ("base64", "url", "file_id", "source_type", "data"))


def is_output(block: str | Block) -> bool:
    """Whether a block of an AI message is a picture, sound, a video, a file or a find that the model or its vendor made."""
    if isinstance(block, str) or is_provisional(block):
        return False
    block = unwrapped(block)
    if block.get("type") == "image_generation_call":
        return bool(block.get("result"))
    if block.get("type") in _FINDS:
        return True
    return is_media(block) and not (block.get("type") == "audio" and _is_spoken(block))


class MessageEncoder(ABC, Generic[EncodedT, CallT]):
    """Encodes messages of any vendor for one wire. Safe for use by any number of threads.

    Args:
        origin: Digest of the endpoint and model that are asked. Opaque state goes back only to the origin that it came from; "" keeps
            none.
        model: The model's name, for histories that other packages wrote: those name the model and no origin.
    """

    provider: ClassVar[str] = ""
    """The wire's name in replies stored by other packages; "": only replies that name their origin are recognised."""
    is_default_provider: ClassVar[bool] = False
    """Whether a message that names no vendor counts as one of this wire's."""

    def __init__(self, origin: str = "", model: str = "") -> None:
        self.origin = origin
        self.model = model
        self._memo: MessageMemo[EncodedT] = MessageMemo()

    def encode(self, message: BaseMessage, calls: tuple[CallT, ...] = ()) -> EncodedT:
        """Encode one message.

        Args:
            message: The message, of a repaired history.
            calls: The calls without a result so far.

        Raises:
            UnsupportedFeatureError: The message has content that the wire cannot carry.
        """
        match message:
            case AIMessage():
                return self._assistant(message)
            case ToolMessage():
                return self._result(message, next((call for call in calls if call.known == message.tool_call_id), None))
            case HumanMessage():
                return self._other(message, "user")
            case SystemMessage():
                return self._other(message, "system")
            case ChatMessage():
                return self._other(message, message.role)
        raise UnsupportedFeatureError(f"a {type(message).__name__} cannot be sent to a chat model")

    def remembered(self, message: BaseMessage, calls: tuple[CallT, ...] = ()) -> EncodedT:
        """Return an encoded message, as of `encode`: the same object as before if neither it nor the calls have changed."""
        return self._memo.get(message, calls) or self._put(message, calls, self.encode(message, calls))

    def is_same_origin(self, message: AIMessage) -> bool:
        """Whether a message comes from the requested endpoint and model, as far as its metadata tells.

        Of this package it says its origin; of LangChain's partner packages the vendor and the model, whose names are of one model if they
        are equal but for a version suffix. (A longer name is another model.)
        """
        own = message_origin(message)
        if own is not None or not self.provider:
            return bool(self.origin) and bool(own == self.origin)
        metadata = message.response_metadata
        if metadata.get("model_provider", self.provider if self.is_default_provider else None) != self.provider:
            return False
        named = str(metadata.get("model_name") or metadata.get("model") or "").rpartition("models/")[2]
        asked = self.model.rpartition("models/")[2].removesuffix("-latest")
        return not named or named == asked or _SNAPSHOT.sub("", named) == asked or named == _SNAPSHOT.sub("", asked)

    def _carried(
        self,
        message: BaseMessage,
        blocks: Iterable[str | Block],
        convert: Callable[[str | Block], _T | None],
        said: Callable[[str], _T],
    ) -> list[_T]:
        """Convert blocks of a result or a reply. What the wire cannot carry becomes a line of text, which is logged once.

        Args:
            message: The message.
            blocks: The blocks.
            convert: Converts one; None for a block that is not sent.
            said: Converts a line of text.
        """
        parts: list[_T] = []
        for block in blocks:
            try:
                part = convert(block)
            except ODD as error:
                line = in_words(block)
                part = said(line)
                name = getattr(message, "tool_call_id", None) or message.id
                if (key := (type(self).__name__, self.origin, name, line)) not in _told:
                    _told[key] = None
                    _logger.warning("sent as words, because %s: %s", error, line)
                if len(_told) > _MOST:
                    _told.pop(next(iter(_told)), None)
            parts += [] if part is None else [part]
        return parts

    def _put(self, message: BaseMessage, context: Hashable, encoded: EncodedT) -> EncodedT:
        self._memo.put(message, context, encoded)
        return encoded

    @abstractmethod
    def _assistant(self, message: AIMessage) -> EncodedT:
        """Encode an AI message of any vendor."""

    @abstractmethod
    def _result(self, message: ToolMessage, call: CallT | None) -> EncodedT:
        """Encode the result of a call; `call` is None if the call is unknown."""

    @abstractmethod
    def _other(self, message: BaseMessage, role: str) -> EncodedT:
        """Encode a user message, a system message, or a message with the caller's own role."""
