"""Conversion of LangChain messages to the JSON of /api/chat requests.

Understood are LangChain's v1 and v0 blocks and those of OpenAI, Anthropic, Google and MCP. A block that the wire cannot carry raises
`UnsupportedFeatureError` with its type; nothing is dropped here.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from ...errors import ConfigurationError
from ...messages.calls import ToolCallRecord, calls_of
from ...messages.incremental import fold_over
from .._encode.encoder import (
    MessageEncoder,
    derived_id,
    dumps,
    empty_output,
    encode,
    fallback_text,
    is_output,
    legal_arguments,
    read_input,
    request_body,
    sdk_class,
    to_bytes,
    without_call,
)
from .._encode.sources import Block, convert_block, document_text, expanded, media_of, search_result_text, unsupported, unwrapped
from .decode import PROVIDER, image_blocks

if TYPE_CHECKING:
    import ollama

_BY_URL = "Ollama takes pictures as base64 data only, and nothing here fetches a URL: fetch it and give its data"


@dataclass(frozen=True, slots=True)
class Piece:
    """The content of one block: a text, or the base64 data of a picture."""

    text: str = ""
    image: str = ""


def _content_of(pieces: Iterable[Piece]) -> tuple[list[str], dict[str, list[str]]]:
    """Return the texts of a message with these pieces, and its pictures as they are in it."""
    pieces = [*pieces]
    images = [piece.image for piece in pieces if piece.image]
    return [piece.text for piece in pieces if piece.text], {"images": images} if images else {}


def _piece_of(block: str | Block) -> Piece:
    """Convert one content block.

    Raises:
        UnsupportedFeatureError: It is neither text nor a picture with its data.
    """
    if isinstance(block, str):
        return Piece(block)
    return convert_block(unwrapped(block), Piece, _CONVERTERS, "Ollama takes text and pictures only")


def _media(block: Block) -> Piece:
    source, kind = media_of(block), block.get("type")
    if source.kind == "text" and (source.text is not None or source.data is not None):
        return Piece(document_text(block, source))
    if source.kind != "image":
        raise unsupported(kind, "Ollama takes text and pictures only")
    if source.data is None:
        raise unsupported(kind, _BY_URL if source.url else "it has no base64 data")
    return Piece(image=source.data)


_CONVERTERS = {"media": _media, "search_result": lambda block: Piece(search_result_text(block))}


# ---------------------------------------------------------------------------------------------- calls
# Tool calls of a history in /api/chat's form: ids, positions, names, arguments.
#
# Wire facts: arguments are an object; ids and names may be anything; a result names its tool (`tool_name`), and newer servers its call
# (`tool_call_id`) too. What the model wrote goes back as it wrote it, so that prompt caches hit.


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


def _encode_call(call: ToolCallRecord, identifier: str, position: int, *, same_origin: bool) -> str:
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


# ---------------------------------------------------------------------------------------------- encode
# Conversion of messages of any vendor to messages of /api/chat.
#
# Each message is encoded alone, so that it can be remembered; what a result must know of the call that it answers is handed in. A message
# holds text and pictures apart from one another, whatever its role. Thinking goes back with the calls that came with it, to the endpoint
# and model that wrote it: within a tool loop models want it, outside one they are trained to do without.


_logger = logging.getLogger("langchain_autotools")

_CALLS = frozenset(
    {"tool_use", "tool_call", "tool_call_chunk", "invalid_tool_call", "input_json_delta", "custom_tool_call", "function_call"}
)
_VISIBLE = frozenset({"text", "output_text", "refusal", "search_result"})


@dataclass(frozen=True, slots=True)
class Encoded:
    """One message on the wire.

    Attributes:
        body: Its JSON.
        calls: Its calls and the ids they are sent with.
    """

    body: bytes
    calls: tuple[CallId, ...] = ()


class OllamaMapper(MessageEncoder[Encoded, CallId]):
    """Encodes requests. Safe for use by any number of threads. Thinking and server ids are sent only to their origin."""

    provider = PROVIDER

    def encode_request(self, messages: Sequence[BaseMessage], params: Mapping[str, Any]) -> bytes:
        """Encode a request.

        Args:
            messages: The messages.
            params: Everything else, in the wire's names.

        Raises:
            ConfigurationError: A parameter is no JSON value.
            UnsupportedFeatureError: A message has content that the wire cannot carry.
        """
        return request_body(params, "messages", fold_over(messages, self, partial(_Bodies, self)).bodies)

    def _assistant(self, message: AIMessage) -> Encoded:
        records = calls_of(message)
        same_origin = self.is_same_origin(message)
        ids = wire_ids(records, same_origin=same_origin)
        visible = [block for block in expanded(message.content) if isinstance(block, str) or _is_visible(unwrapped(block))]
        texts, images = _content_of(self._carried(message, visible, _piece_of, lambda line: Piece(f"\n{line}\n")))
        wire: dict[str, Any] = {"role": "assistant", "content": "".join(texts) or fallback_text(message)}
        if records and same_origin and (thinking := _thinking(message)):
            wire["thinking"] = thinking
        body = dumps(wire | images)
        if records:
            pairs = zip(records, ids, strict=True)
            calls = ",".join(_encode_call(call, one.sent, number, same_origin=same_origin) for number, (call, one) in enumerate(pairs))
            body = f'{body[:-1]},"tool_calls":[{calls}]}}'
        return Encoded(to_bytes(body), ids)

    def _result(self, message: ToolMessage, call: CallId | None) -> Encoded:
        call = call or CallId(message.tool_call_id, message.tool_call_id, message.name or "")
        texts, images = _content_of(self._carried(message, expanded(message.content), _piece_of, Piece))
        text = "\n".join(texts) or ("" if images else empty_output(failed=message.status == "error"))
        wire: dict[str, Any] = {"role": "tool", "content": text, **images}
        if call.name:
            wire["tool_name"] = call.name
        if call.sent:
            wire["tool_call_id"] = call.sent
        return Encoded(encode(wire))

    def _other(self, message: BaseMessage, role: str) -> Encoded:
        texts, images = _content_of(map(_piece_of, expanded(message.content)))
        return Encoded(encode({"role": role, "content": "\n".join(texts), **images}))


# ---------------------------------------------------------------------------------------------- what an assistant said


def _is_visible(block: Block) -> bool:
    """Whether a block of an AI message is no call, no thought and not another vendor's internal state."""
    kind = block.get("type", "text" if isinstance(block.get("text"), str) else None)
    if kind in _VISIBLE or is_output(block):
        return True
    if kind not in _CALLS:
        _logger.debug("not sent: an assistant's content block of type %r", kind)
    return False


def _thinking(message: AIMessage) -> str:
    """Return the thinking of a message, also from blocks of v1 content."""
    kept = message.additional_kwargs.get("reasoning_content")
    if isinstance(kept, str) and kept:
        return kept
    blocks = [block for block in message.content if isinstance(block, dict)] if isinstance(message.content, list) else []
    return "".join(str(block.get("reasoning") or "") for block in blocks if block.get("type") == "reasoning")


class _Bodies:
    """A fold of the bodies of messages.

    Args:
        encoder: Encodes each message.
    """

    __slots__ = ("_encoder", "_waiting", "bodies")

    def __init__(self, encoder: OllamaMapper, bodies: Sequence[bytes] = (), waiting: tuple[CallId, ...] = ()) -> None:
        self._encoder = encoder
        self.bodies = [*bodies]
        self._waiting = waiting

    def copy(self) -> "_Bodies":
        """Return an independent copy."""
        return _Bodies(self._encoder, self.bodies, self._waiting)

    def read(self, messages: Sequence[BaseMessage]) -> None:
        """Read the next messages."""
        for message in messages:
            if isinstance(message, ToolMessage):
                encoded = self._encoder.remembered(message, self._waiting)
                self._waiting = without_call(message.tool_call_id, self._waiting)
            else:
                encoded = self._encoder.remembered(message)
                self._waiting = encoded.calls
            self.bodies.append(encoded.body)


# ---------------------------------------------------------------------------------------------- objects of Ollama's SDK
# Nothing here imports the SDK before it is asked for: whoever gives an object of it has imported it.


def plain(value: Any) -> Any:
    """Return an SDK object as plain data without unset fields; other values unchanged."""
    if type(value).__module__.partition(".")[0] != "ollama" or not hasattr(value, "model_dump"):
        return value
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


def read_messages(given: Any) -> Any:
    """Return a model's input with the SDK's messages converted to LangChain's.

    Raises:
        ConfigurationError: A message of the SDK has a role that no message has.
    """
    return read_input(given, sdk_class("ollama", "Message"), lambda message: [_message(message)])


def _message(given: "ollama.Message") -> BaseMessage:
    fields = plain(given)
    content, role, images = fields.get("content") or "", fields["role"], fields.get("images")
    if images:
        content = [*([{"type": "text", "text": content}] if content else []), *image_blocks(images)]
    if role in ("user", "system"):
        return HumanMessage(content) if role == "user" else SystemMessage(content)
    if role == "tool":  # the protocol pairs results with calls by their order; `repair` gives both an id
        return ToolMessage(content, tool_call_id=fields.get("tool_call_id") or "", name=fields.get("tool_name"))
    if role != "assistant":
        raise ConfigurationError(f"a message of role {role!r} cannot be sent: roles are user, assistant, system and tool")
    functions = [(call.get("id"), call["function"]) for call in fields.get("tool_calls") or ()]
    calls: Any = [{"name": one["name"], "args": one["arguments"], "id": call_id, "type": "tool_call"} for call_id, one in functions]
    extra = {"reasoning_content": fields["thinking"]} if fields.get("thinking") else {}
    return AIMessage(content, tool_calls=calls, additional_kwargs=extra)
