"""Conversion of a conversation of any vendor's messages to the JSON of a Messages API request."""

import json
import logging
import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeGuard

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage

from ...errors import UnsupportedFeatureError
from ...messages.calls import ToolCallRecord, calls_of
from ...messages.incremental import fold_over
from .._encode.encoder import (
    BELOW,
    CALLS,
    MessageEncoder,
    as_user_text,
    derived_id,
    dumps,
    empty_output,
    encode,
    fallback_text,
    in_order,
    is_output,
    legal_arguments,
    read_object,
    request_body,
    to_bytes,
    without_call,
)
from .._encode.sources import (
    FROM_MODEL,
    FROM_TOOL,
    PDF,
    Block,
    Source,
    convert_block,
    convert_content,
    extra,
    image_type,
    media_of,
    search_result_text,
    source_text,
    unsupported,
    unwrapped,
)
from .decode import PROVIDER

if TYPE_CHECKING:
    from anthropic.types import TextBlockParam, ToolResultBlockParam

    Part = TextBlockParam | dict[str, Any]
    """A content block of a request; a dict is one of the wire's own blocks and is sent unchanged."""
else:
    Part = dict[str, Any]

_logger = logging.getLogger("langchain_autotools")

_CACHE = "cache_control"
_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_NO_SUCH = "the Messages API has no such content"


def text_part(text: str) -> "TextBlockParam":
    """Return a text block."""
    return {"type": "text", "text": text}


# ---------------------------------------------------------------------------------------------- one message
# Conversion of messages of any vendor to messages of the Messages API.
#
# Each message is encoded alone, so that it can be remembered; `MessagesMapper` joins neighbours that the wire wants as one message. All
# results of a turn come first in their user message (wire quirk C-18).


Role = Literal["system", "user", "assistant"]

SUMMARY = b'{"type":"compaction"'
"""The first bytes of a block that summarizes the conversation before it."""
_CUT = ("incomplete", "max_tokens", "length", "model_context_window_exceeded")
_OF_SYSTEM = frozenset({"text", "tool_addition", "tool_removal"})


class CallId(NamedTuple):
    """A tool call's ids in LangChain and on the wire, with the data that its result must repeat.

    Attributes:
        known: LangChain's id.
        sent: The wire's id.
        toolset: The name of the toolset that the tool belongs to.
        alone: Whether code on the server waits for the call: results alone may then be in the user's message (wire quirk C-19).
    """

    known: str
    sent: str
    toolset: str | None = None
    alone: bool = False


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
        media: Blocks for the user message after it: what the assistant made besides text.
    """

    role: Role
    blocks: tuple[bytes, ...] = ()
    results: tuple[bytes, ...] = ()
    calls: tuple[CallId, ...] = ()
    asked: tuple[tuple[int, str], ...] = ()
    answered: tuple[str, ...] = ()
    media: tuple[bytes, ...] = ()


def _server_caller(call: ToolCallRecord) -> str | None:
    """Return the id of the server tool call that made this call, if any."""
    caller = call.extra.get("caller")
    return caller.get("tool_id") if isinstance(caller, Mapping) else None


class MessagesMapper(MessageEncoder[Encoded, CallId]):
    """Encodes requests. Safe for use by any number of threads.

    Args:
        origin: Digest of the endpoint and the model. Opaque blocks (thinking, server tools) go back only to the origin they
            came from; "" keeps none.
        model: The model's name.
        system_anywhere: Whether the model takes system messages in the middle of a conversation.
        unsigned: Whether thinking without a signature goes back too, as servers of other vendors want it.
    """

    provider = PROVIDER
    is_default_provider = True

    def __init__(self, *, origin: str = "", model: str = "", system_anywhere: bool = False, unsigned: bool = False) -> None:
        super().__init__(origin, model)
        self._system_anywhere, self._unsigned = system_anywhere, unsigned

    def encode_request(
        self, messages: Sequence[BaseMessage], params: Mapping[str, Any], *, cache: Mapping[str, Any] | None = None
    ) -> bytes:
        """Encode a request.

        Args:
            messages: The messages. System messages at the start become the request's `system`.
            params: Everything else, in the wire's names.
            cache: The `cache_control` to put on the end of the system prompt, if any.

        Raises:
            ConfigurationError: A parameter is no JSON value.
            UnsupportedFeatureError: A message has content that the wire cannot carry.
        """
        replies_last = bool(messages) and isinstance(messages[-1], AIMessage)
        encoded = fold_over(messages, self, partial(_Messages, self), len(messages) - replies_last)
        if replies_last:
            encoded = encoded.copy()
            encoded.add(messages[-1], last=True)
        system = [*encoded.system]
        if system and cache:
            system[-1] = system[-1][:-1] + to_bytes(f',"cache_control":{dumps(cache)}}}')
        head = {key: value for key, value in params.items() if key != "system"}
        if not system and params.get("system"):
            head["system"] = params["system"]
        before = b'"system":[%s],' % b",".join(system) if system else b""
        groups = encoded.groups(self._system_anywhere).all()
        if messages and not encoded.begun:
            raise UnsupportedFeatureError("a system message alone asks for nothing, and the vendor refuses it: add a HumanMessage")
        return request_body(head, "messages", groups, before, b"")

    def in_place(self, message: BaseMessage, ids: tuple[CallId, ...], last: bool, place: int, taken: Container[str]) -> Encoded:
        """Encode a message with the ids that it answers and the ids that it must not reuse."""
        answered = ids if any(call.sent != call.known or call.toolset or call.alone for call in ids) else ()
        context = (answered, last)
        encoded = self._memo.get(message, context)
        if encoded is None:
            encoded = self.encode(message, answered)
            encoded = self._put(message, context, _as_prefill(encoded) if last else encoded)
        if taken and isinstance(message, AIMessage) and any(call.sent in taken for call in encoded.calls):
            return self._assistant(message, taken, place)  # an id of another server's that came before
        return encoded

    def _assistant(self, message: AIMessage, taken: Container[str] = (), place: int = 0) -> Encoded:
        """Encode a reply; `taken` contains the ids of all earlier calls, and `place` is their number."""
        records = calls_of(message)
        same_origin = self.is_same_origin(message)
        sent = wire_ids(records, taken, place)
        pairs = list(zip(records, sent, strict=True))
        bodies = [to_bytes(_encode_call(call, one, same_origin=same_origin)) for call, one in pairs]
        written = in_order(message, records)
        last = len(written) if message.response_metadata.get("finish_reason") not in _CUT else len(written) - 1
        made = [item for item in written if not isinstance(item, int) and is_output(item)]
        items = [
            item if isinstance(item, int) else _assistant_part(item, same_origin=same_origin, unsigned=self._unsigned and position < last)
            for position, item in enumerate(written)
            if isinstance(item, int) or not is_output(item)
        ]
        parts = [part for part in items if part is not None]
        if (spoken := fallback_text(message)) and not any(not isinstance(part, int) and part["type"] == "text" for part in parts):
            parts.insert(0, text_part(spoken))
        return Encoded(
            "assistant",
            tuple(bodies[part] if isinstance(part, int) else encode(part) for part in parts),
            calls=tuple(CallId(call.id, one, call.toolset, _server_caller(call) is not None) for call, one in pairs),
            asked=tuple((place, str(part.get("id"))) for place, part in enumerate(parts) if _is_of_server(part, "_tool_use")),
            answered=(
                *(str(part.get("tool_use_id")) for part in parts if _is_of_server(part, "_tool_result")),
                *(asker for call in records if (asker := _server_caller(call))),
            ),
            media=tuple(map(encode, (text_part(FROM_MODEL), *self._carried(message, made, part_of, text_part)))) if made else (),
        )

    def _result(self, message: ToolMessage, call: CallId | None) -> Encoded:
        """Encode a result, followed by the media that a failed one cannot hold."""
        call = call or CallId(message.tool_call_id, _legal_id(message.tool_call_id))
        convert = _text_alone if call.alone and message.status == "error" else part_of
        result, behind = _tool_result(call, message, self._carried(message, _blocks_of(message), convert, text_part))
        return Encoded("user", tuple(map(encode, behind)), (encode(result),))

    def _other(self, message: BaseMessage, role: str) -> Encoded:
        if isinstance(message, SystemMessage):
            return Encoded("system", tuple(map(encode, _system_parts(message))))
        return Encoded("assistant" if role == "assistant" else "user", tuple(map(encode, convert_content(message.content, part_of))))


def _stands_alone(block: bytes) -> bool:
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


def _text_alone(block: str | Block) -> Part | None:
    """Convert a block of a failed result behind which no media may be."""
    part = part_of(block)
    if part is not None and part["type"] != "text":
        raise unsupported(part["type"], "a failed result holds text alone, and nothing may follow it while the vendor's code waits for it")
    return part


def _blocks_of(message: BaseMessage) -> list[Any]:
    """Return the content of a message as a list."""
    return [message.content] if isinstance(message.content, str) else message.content


def _tool_result(call: CallId, message: ToolMessage, parts: list[Part]) -> tuple["ToolResultBlockParam", list[Part]]:
    """Return a result, and the parts that are behind the results of the turn.

    The cache mark is set on the whole result, because the wire rejects one inside. A failed result holds text alone (wire quirk C-21).
    """
    failed = message.status == "error"
    marks = [mark for block in _blocks_of(message) if isinstance(block, Mapping) and (mark := extra(unwrapped(block), _CACHE))]
    behind = [part for part in parts if failed and part["type"] != "text"]
    inside = [part for part in parts if part not in behind]
    for part in inside if marks else ():
        part.pop("cache_control", None)
    said: Any = inside
    if len(inside) == 1 and inside[0].keys() == text_part("").keys():
        said = str(inside[0].get("text"))
    result: ToolResultBlockParam = {"type": "tool_result", "tool_use_id": call.sent, "content": said}
    if not inside:
        result["content"] = BELOW if behind else empty_output(failed=failed)
    if failed:
        result["is_error"] = True
    if call.toolset:
        result["toolset_name"] = call.toolset
    if marks and not any("cache_control" in part for part in behind):
        result["cache_control"] = marks[-1]
    return result, [text_part(FROM_TOOL.format(call.sent)), *behind] if behind else []


# ---------------------------------------------------------------------------------------------- whole conversations


_OPENING = encode({"role": "user", "content": [text_part("(The conversation begins with the assistant.)")]}) + b","


class _Groups:
    """The wire's messages: neighbours of one role are merged, with results before other content."""

    __slots__ = ("_blocks", "_done", "_results", "_role")

    def __init__(self) -> None:
        self._done: list[bytes] = []  # pieces of their JSON
        self._role: str | None = None  # of the one that is still open, with its parts:
        self._results: list[bytes] = []
        self._blocks: list[bytes] = []

    def copy(self) -> "_Groups":
        """Return an independent copy."""
        made = _Groups()
        made._done, made._role, made._results, made._blocks = [*self._done], self._role, [*self._results], [*self._blocks]
        return made

    def add(self, encoded: Encoded) -> None:
        """Append a message."""
        if self._role != encoded.role:
            self._done += self._ended()
            self._role, self._results, self._blocks = encoded.role, [], []
        self._results += encoded.results
        self._blocks += encoded.blocks

    def all(self) -> list[bytes]:
        """Return the pieces of the JSON of all messages."""
        return [*self._done, *self._ended()]

    def _ended(self) -> list[bytes]:
        """Return the pieces of the open message, after those before it."""
        if self._role is None:
            return []
        start = b'%s{"role":"%s","content":[' % (b"," if self._done else b"", self._role.encode())
        if not self._done and self._role == "assistant" and not any(map(_stands_alone, self._blocks[:1])):
            start = _OPENING + start
        pieces: list[bytes] = []
        for part in (*self._results, *self._blocks):
            pieces += (start, part)
            start = b","
        return [*pieces, b"]}"]


class _Messages:
    """A fold of the messages of a request.

    Args:
        mapper: Encodes each message.

    Attributes:
        system: The blocks of the system messages that the history begins with.
        begun: Whether any other message has been read.
    """

    __slots__ = ("_answered", "_groups", "_mapper", "_messages", "_place", "_plain", "_taken", "begun", "system")

    def __init__(self, mapper: MessagesMapper) -> None:
        self._mapper = mapper
        self.system: list[bytes] = []
        self._messages: list[Encoded] = []
        self._groups = _Groups()
        self._plain = True  # whether no message changes others, so that the groups are as they were read
        self._answered: tuple[CallId, ...] = ()
        self._taken: set[str] = set()
        self._place = 0
        self.begun = False

    def copy(self) -> "_Messages":
        """Return an independent copy."""
        made = _Messages(self._mapper)
        made.system, made._messages, made._groups, made._plain = [*self.system], [*self._messages], self._groups.copy(), self._plain
        made._answered, made._taken, made._place, made.begun = self._answered, {*self._taken}, self._place, self.begun
        return made

    def read(self, messages: Sequence[BaseMessage]) -> None:
        """Read the next messages."""
        for message in messages:
            self.add(message)

    def add(self, message: BaseMessage, *, last: bool = False) -> None:
        """Add a message; `last` for a reply that ends the request."""
        encoded = self._mapper.in_place(message, self._answered, last, self._place, self._taken)
        if isinstance(message, AIMessage):
            self._answered = encoded.calls
            self._taken.update(call.sent for call in encoded.calls)
            self._place += len(encoded.calls)
        elif isinstance(message, ToolMessage):
            self._answered = without_call(message.tool_call_id, self._answered)
        self.begun = self.begun or encoded.role != "system"
        if not self.begun:
            self.system += encoded.blocks
            return
        self._append(encoded)
        if encoded.media:
            self._append(Encoded("user", encoded.media))

    def _append(self, encoded: Encoded) -> None:
        if encoded.blocks or encoded.results:
            self._messages.append(encoded)
            self._plain = self._plain and not (encoded.role == "system" or encoded.asked or any(map(_stands_alone, encoded.blocks)))
            if self._plain:
                self._groups.add(encoded)

    def groups(self, system_anywhere: bool) -> _Groups:
        """Return the wire's messages."""
        if self._plain:
            return self._groups
        numbers, groups = range(len(self._messages) - 1, 0, -1), _Groups()
        summary = next((number for number in numbers if any(map(_stands_alone, self._messages[number].blocks))), 0)
        for encoded in _place_system_messages(_drop_unanswered_server_tools(self._messages[summary:]), system_anywhere):
            groups.add(encoded)
        return groups


def _place_system_messages(messages: list[Encoded], system_anywhere: bool) -> list[Encoded]:
    """Return the messages with each system message where the model accepts it, else as marked text of the user.

    A model that takes any takes them after the user, before the assistant or at the end (docs, "Mid-conversation system messages").
    """
    before, placed = None, list[Encoded]()
    for number, encoded in enumerate(messages):
        if encoded.role != "system":
            before = encoded.role
            placed.append(encoded)
            continue
        after = next((later.role for later in messages[number:] if later.role != "system"), None)
        placed.append(encoded if system_anywhere and before == "user" and after != "user" else _as_user(encoded))
    return placed


def _as_user(encoded: Encoded) -> Encoded:
    blocks = [json.loads(block) for block in encoded.blocks]
    change = next((block["type"] for block in blocks if block["type"] != "text"), None)
    if change:
        where = "only a model that takes system messages in the middle takes it, after the user, and before the assistant or at the end"
        raise UnsupportedFeatureError(f"content block of type {change!r} cannot be sent: {where}")
    return Encoded("user", (encode(text_part(as_user_text(block["text"] for block in blocks))),))


def _drop_unanswered_server_tools(messages: list[Encoded]) -> list[Encoded]:
    """Return the messages without unanswered calls of server tools after which the conversation has gone on.

    At the end, results of other calls apart, such a block is a turn that the server has paused and goes on with (wire quirk C-15).
    """
    if not any(message.asked for message in messages):
        return messages
    answered = {identifier for message in messages for identifier in message.answered}
    end = max(number for number, message in enumerate(messages) if message.blocks and not message.results)
    kept = list[Encoded]()
    for message in messages[:end]:
        doomed = {place for place, identifier in message.asked if identifier not in answered}
        kept.append(replace(message, blocks=tuple(block for place, block in enumerate(message.blocks) if place not in doomed)))
    return [message for message in kept if message.blocks or message.results] + messages[end:]


def _as_prefill(encoded: Encoded) -> Encoded:
    """Return an AI message that ends the request, without white space after its last text (wire quirk C-18)."""
    if not encoded.blocks:
        return encoded
    block = json.loads(encoded.blocks[-1])
    if block.get("type") != "text":
        return encoded
    kept = {**block, "text": block["text"].rstrip()}
    return replace(encoded, blocks=(*encoded.blocks[:-1], encode(kept)))


# ---------------------------------------------------------------------------------------------- assistant
# Conversion of an AI message's content to Messages API blocks: text, and for their origin thinking and server tools' output.
#
# Opaque blocks (thinking with its signature, server tools and their results) go back unchanged and in their place, to the endpoint and
# model that sent them; to any other they are left out, as every other vendor's inner state is.
#
# Wire facts (wire quirks C-09 to C-16, C-20): thinking may be empty and still be needed for its signature. Without a signature the vendor
# refuses it, and other servers of its wire want it back as they sent it. A text without a visible character is refused. Citations in
# replies name the uploaded file, those in requests may not.


_SERVER_ENDINGS = ("_tool_use", "_tool_result")
_OPAQUE = frozenset({"redacted_thinking", "fallback", "compaction", "container_upload", "mcp_tool_listing"})
_STANDARD = frozenset({"server_tool_call", "server_tool_call_chunk", "server_tool_result", "non_standard"})
_REMOTE = "remote_mcp"
_NAMES = {"code_interpreter": "code_execution"}  # as core renames them


def _assistant_part(block: str | Block, *, same_origin: bool, unsigned: bool = False) -> Part | None:
    """Convert one content block of an AI message that is not a call; None if it is not sent.

    Args:
        block: The block, of any vendor.
        same_origin: Whether it goes back to the endpoint and model that wrote it.
        unsigned: Whether thinking without a signature goes back there too.
    """
    if isinstance(block, str):
        return text_part(block) if block.strip() else None
    kind = str(block.get("type") or ("text" if isinstance(block.get("text"), str) else ""))
    if kind in ("text", "output_text"):
        return _cited_text(block, same_origin)
    if kind == "refusal":
        return part_of(block)
    if not same_origin:
        _logger.debug("not sent: an assistant's content block of type %r", kind)
        return None
    if kind in ("thinking", "reasoning"):
        return _thinking(block, unsigned)
    if kind in _STANDARD:
        return _from_standard(block, kind, unsigned)
    return _verbatim(block) if kind in _OPAQUE or kind.endswith(_SERVER_ENDINGS) else None


def _cited_text(block: Block, same_origin: bool) -> Part | None:
    part = part_of({"type": "text", **{key: block[key] for key in ("text", "cache_control") if key in block}})
    citations = block.get("citations") or [_citation(note) for note in block.get("annotations") or ()]
    found = [{key: value for key, value in citation.items() if key != "file_id"} for citation in citations if citation]
    return {**part, "citations": found} if part and found and same_origin else part


def _thinking(block: Block, unsigned: bool) -> Part | None:
    signature = extra(block, "signature")
    if not signature and not unsigned:
        return None
    thinking = {"type": "thinking", "thinking": block.get("thinking") or block.get("reasoning") or ""}
    return {**thinking, "signature": signature or ""} if signature or "signature" in block else thinking


def _verbatim(block: Block) -> Part:
    """Return a block as received, with the input of a server tool that langchain-anthropic stored as streamed text parsed."""
    kept = {key: value for key, value in block.items() if key not in ("index", "partial_json")}
    written = block.get("partial_json")
    if written and not kept.get("input"):
        kept["input"] = read_object(str(written)) or {}
    return dict(sorted(kept.items(), key=lambda item: item[0] != "type"))


def _from_standard(block: Block, kind: str, unsigned: bool) -> Part | None:
    """Return the block that LangChain's standard block was made of."""
    extras = dict(block.get("extras") or {})
    if kind == "non_standard":
        value = block.get("value")
        if not isinstance(value, Mapping) or value.get("type") in ("non_standard", *CALLS):
            return None
        return _assistant_part(value, same_origin=True, unsigned=unsigned)
    if kind == "server_tool_result":
        output = {"content": block["output"]} if "output" in block else {"content": []}
        failed = {"is_error": True} if extras.get("block_type") == "mcp_tool_result" and block.get("status") == "error" else {}
        wire_kind = extras.pop("block_type", None)
        return {"type": wire_kind, "tool_use_id": block.get("tool_call_id"), **output, **failed, **extras} if wire_kind else None
    if kind == "server_tool_call_chunk":
        return None
    called = {"id": block.get("id"), "input": block.get("args") or {}}
    if block.get("name") == _REMOTE:
        return {"type": "mcp_tool_use", **called, "name": extras.pop("tool_name", ""), **extras}
    return {"type": "server_tool_use", **called, "name": _NAMES.get(str(block.get("name")), block.get("name")), **extras}


_PLACES = {
    "start_char_index": "char_location",
    "start_page_number": "page_location",
    "search_result_index": "search_result_location",
    "start_block_index": "content_block_location",
}


def _citation(note: Block) -> Part | None:
    """Return the citation that LangChain's standard citation was made of."""
    if note.get("type") == "non_standard_annotation":
        return note.get("value")
    if note.get("type") != "citation":
        return None
    extras = dict(note.get("extras") or {})
    common = {"cited_text": note.get("cited_text"), **extras}
    if note.get("url"):
        return {"type": "web_search_result_location", "url": note["url"], "title": note.get("title"), **common}
    kind = next((kind for key, kind in _PLACES.items() if key in extras), None)
    if kind is None:
        return None
    name = "title" if kind == "search_result_location" else "document_title"
    return {"type": kind, **common, **({name: note["title"]} if note.get("title") else {})}


# ---------------------------------------------------------------------------------------------- blocks of content


def part_of(block: str | Block) -> Part | None:
    """Convert one content block to the wire's form; None for a text without visible characters.

    Raises:
        UnsupportedFeatureError: The wire cannot carry the block.
    """
    if isinstance(block, str):
        return text_part(block) if block.strip() else None
    block = unwrapped(block)
    part = convert_block(block, text_part, _CONVERTERS, _NO_SUCH)
    if part["type"] == "text" and not str(part.get("text")).strip():
        return None
    citations = block.get("citations")
    if part["type"] == "text" and isinstance(citations, list) and citations:
        kinds = [str(one.get("type")) if isinstance(one, Mapping) else "" for one in citations]
        part = {**part, "citations": citations} if all(kind.endswith("_location") for kind in kinds) else part  # the wire's own
    cache = extra(block, _CACHE)
    return {**part, _CACHE: cache} if cache else part


def _own(block: Block) -> dict[str, Any]:
    """Return one of the wire's own blocks without LangChain's additions."""
    return {key: value for key, value in block.items() if key not in ("index", "extras", _CACHE)}


def _media(block: Block) -> Part:
    source = media_of(block)
    kind = block.get("type")
    if source.file_id and str(source.file_id).startswith(("file-", "files/")):
        raise unsupported(kind, f"the file {source.file_id!r} is another vendor's")
    if source.kind in ("audio", "video"):
        raise unsupported(kind, _NO_SUCH)
    if source.kind == "image":
        content, beside = _image_source(source, kind), {"transformations": extra(block, "transformations")}
    else:
        names = {"title": extra(block, "title") or source.name, "context": extra(block, "context")}
        content, beside = _document_source(block, source), {**names, "citations": extra(block, "citations")}
    sent = {name: value for name, value in beside.items() if value}
    return {"type": "image" if source.kind == "image" else "document", "source": content, **sent}


def _image_source(source: Source, kind: Any) -> Any:
    if source.url:
        return {"type": "url", "url": source.url}
    if source.file_id:
        return {"type": "file", "file_id": source.file_id}
    if source.data is None:
        raise unsupported(kind, "an image needs a URL, base64 data or the id of an uploaded file")
    mime_type = image_type(source.data) or source.essence
    if not mime_type:
        raise unsupported(kind, "its mime_type is missing")
    if mime_type not in _IMAGES:
        raise unsupported(kind, f"images are PNG, JPEG, GIF or WebP, not {mime_type}")
    return {"type": "base64", "media_type": mime_type, "data": source.data}


def _document_source(block: Block, source: Source) -> Any:
    nested, kind = block.get("source"), block.get("type")
    if isinstance(nested, Mapping) and nested.get("type") == "content":
        content = nested.get("content")  # a text, or texts and pictures
        return {"type": "content", "content": convert_content(content, part_of) if isinstance(content, list) else content}
    if source.file_id:
        return {"type": "file", "file_id": source.file_id}
    if source.url:
        return {"type": "url", "url": source.url}
    if source.kind == "text":
        return {"type": "text", "media_type": "text/plain", "data": source_text(source, kind)}
    if source.data is None:
        raise unsupported(kind, "a document needs a URL, base64 data, text or the id of an uploaded file")
    if source.kind != "pdf":
        raise unsupported(kind, f"documents are PDF or text, not {source.essence or 'data of an unknown type'}")
    return {"type": "base64", "media_type": PDF, "data": source.data}


def _search_result(block: Block) -> Part:
    """Convert a search result; an incomplete one becomes text."""
    if block.get("source") and block.get("title") and isinstance(block.get("content"), list):
        return _own(block)
    return text_part(search_result_text(block))


_CONVERTERS: dict[str, Callable[[Block], Part]] = {
    "media": _media,
    "search_result": _search_result,
    **dict.fromkeys(("container_upload", "tool_reference", "browser_state", "tool_addition", "tool_removal"), _own),
}


# ---------------------------------------------------------------------------------------------- calls
# Tool calls of a history in the Messages API's form: ids, names, input.
#
# Wire facts: ids of `[a-zA-Z0-9_-]+`, each once in a request; names of `[a-zA-Z0-9_-]{1,128}`; input an object. What the model wrote goes
# back as it wrote it wherever that is legal, so that prompt caches hit.


LEGAL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")  # and ids of that form are taken too
_PREFIX = "toolu_"
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME = 128
_UNREADABLE = "INVALID_JSON"  # the key under which the vendor's documentation sends back an input that was no object


def _legal_id(identifier: str) -> str:
    """Return the id if the wire accepts it, else one derived from it."""
    return identifier if LEGAL_NAME.fullmatch(identifier) else derived_id(_PREFIX, identifier)


def wire_ids(calls: Sequence[ToolCallRecord], taken: Container[str], place: int) -> list[str]:
    """Return the wire ids of a message's calls, unique within the request.

    Args:
        calls: The calls of one message.
        taken: The ids of earlier messages' calls.
        place: The number of calls before this message.
    """
    ids: list[str] = []
    for position, call in enumerate(calls):
        identifier = _legal_id(call.id)
        if not call.id or identifier in ids or identifier in taken:
            identifier = derived_id(_PREFIX, call.id, call.name, place + position)
        ids.append(identifier)
    return ids


def _encode_call(call: ToolCallRecord, identifier: str, *, same_origin: bool) -> str:
    """Encode one call as the JSON of a content block.

    Args:
        call: The call.
        identifier: The id that it is sent with.
        same_origin: Whether it goes back to the server that wrote it: then with its unknown keys.
    """
    name = _ILLEGAL.sub("_", call.name)[:_LONGEST_NAME] or "_"
    head = dumps({"type": "tool_use", "id": identifier, "name": name})[:-1]
    extra = dumps(dict(call.extra))[1:-1] if same_origin and call.extra else ""
    return f'{head},"input":{legal_arguments(call, unreadable=_UNREADABLE)}{"," if extra else ""}{extra}}}'
