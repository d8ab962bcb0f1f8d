"""Conversion of one message of any vendor to blocks of the Messages API.

Understood are LangChain's v1 and v0 blocks and the blocks of Anthropic, OpenAI and Google. A block that the wire cannot carry
raises `UnsupportedFeatureError` with its type; nothing is dropped here, except texts without a visible character, which the
vendor refuses.

Wire facts: images and documents from base64, a URL or the id of an uploaded file; documents also from text or content blocks
(docs.claude.com, "Vision", "PDF support", "Citations"); no sound and no video.
"""

import logging
import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeGuard

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage

from ...errors import UnsupportedFeatureError
from ...messages.calls import ToolCallRecord, calls_of
from .._encode.encoder import (
    BELOW,
    CALLS,
    MessageEncoder,
    derived_id,
    dumps,
    empty_output,
    encode,
    fallback_text,
    in_order,
    is_output,
    legal_arguments,
    read_object,
    to_bytes,
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
from .decode import PROVIDER, Media, MediaSource, Part, Text, ToolResult

_CACHE = "cache_control"
_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_NO_SUCH = "the Messages API has no such content"


def text_part(text: str) -> Text:
    """Return a text block."""
    return {"type": "text", "text": text}


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
    if part["type"] == "text" and _are_citations(block.get("citations")):
        part = {**part, "citations": block["citations"]}
    cache = extra(block, _CACHE)
    return {**part, _CACHE: cache} if cache else part


def mark_of(block: Block) -> Any:
    """Return a block's mark of the cache; None if it has none."""
    return extra(unwrapped(block), _CACHE)


def _are_citations(value: Any) -> bool:
    """Whether a text's citations are the wire's own."""
    kinds = [one.get("type") if isinstance(one, Mapping) else None for one in value] if isinstance(value, list) else []
    return bool(kinds) and all(str(kind).endswith("_location") for kind in kinds)


def _own(block: Block) -> dict[str, Any]:
    """Return one of the wire's own blocks without LangChain's additions."""
    return {key: value for key, value in block.items() if key not in ("index", "extras", _CACHE)}


# ---------------------------------------------------------------------------------------------- media


def _media(block: Block) -> Part:
    source = media_of(block)
    kind = block.get("type")
    if source.file_id and str(source.file_id).startswith(("file-", "files/")):
        raise unsupported(kind, f"the file {source.file_id!r} is another vendor's")
    if source.kind in ("audio", "video"):
        raise unsupported(kind, _NO_SUCH)
    return _image(block, source) if source.kind == "image" else _document(block, source)


def _image(block: Block, source: Source) -> Media:
    image: Media = {"type": "image", "source": _image_source(source, block.get("type"))}
    changes = extra(block, "transformations")
    return {**image, "transformations": changes} if changes else image


def _image_source(source: Source, kind: Any) -> MediaSource:
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


def _document(block: Block, source: Source) -> Media:
    document: Media = {"type": "document", "source": _document_source(block, source)}
    if title := extra(block, "title") or source.name:
        document["title"] = title
    if context := extra(block, "context"):
        document["context"] = context
    if citations := extra(block, "citations"):
        document["citations"] = citations
    return document


def _document_source(block: Block, source: Source) -> MediaSource:
    nested, kind = block.get("source"), block.get("type")
    if isinstance(nested, Mapping) and nested.get("type") == "content":
        return {"type": "content", "content": _inner(nested.get("content"))}
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


def _inner(content: Any) -> Any:
    """Return the content of a document: a text, or texts and pictures."""
    if not isinstance(content, list):
        return content
    return [part for part in map(part_of, content) if part is not None]


def _joined_results(block: Block) -> Part:
    """Convert a search result; an incomplete one becomes text."""
    if block.get("source") and block.get("title") and isinstance(block.get("content"), list):
        return _own(block)
    return text_part(search_result_text(block))


_CONVERTERS: dict[str, Callable[[Block], Part]] = {
    "media": _media,
    "search_result": _joined_results,
    **dict.fromkeys(("container_upload", "tool_reference", "browser_state", "tool_addition", "tool_removal"), _own),
}


# ---------------------------------------------------------------------------------------------- calls
# Tool calls of a history in the Messages API's form: ids, names, input.
#
# Wire facts: ids of `[a-zA-Z0-9_-]+`, each once in a request; names of `[a-zA-Z0-9_-]{1,128}`; input an object. What the model wrote goes
# back as it wrote it wherever that is legal, so that prompt caches hit.


LEGAL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_LEGAL_ID = LEGAL_NAME
_PREFIX = "toolu_"
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME = 128
_UNREADABLE = "INVALID_JSON"  # the key under which the vendor's documentation sends back an input that was no object


class CallId(NamedTuple):
    """A tool call's ids in LangChain and on the wire, with the data that its result must repeat.

    Attributes:
        known: LangChain's id.
        sent: The wire's id.
        toolset: The name of the toolset that the tool belongs to.
        alone: Whether code on the server waits for the call: results alone may then stand in the user's message (wire quirk C-19).
    """

    known: str
    sent: str
    toolset: str | None = None
    alone: bool = False


def legal_id(identifier: str) -> str:
    """Return the id if the wire accepts it, else one derived from it."""
    return identifier if _LEGAL_ID.fullmatch(identifier) else derived_id(_PREFIX, identifier)


def wire_ids(calls: Sequence[ToolCallRecord], taken: Container[str], place: int) -> list[str]:
    """Return the wire ids of a message's calls, unique within the request.

    Args:
        calls: The calls of one message.
        taken: The ids of earlier messages' calls.
        place: The number of calls before this message.
    """
    ids: list[str] = []
    for position, call in enumerate(calls):
        identifier = legal_id(call.id)
        if not call.id or identifier in ids or identifier in taken:
            identifier = derived_id(_PREFIX, call.id, call.name, place + position)
        ids.append(identifier)
    return ids


def encode_call(call: ToolCallRecord, identifier: str, *, same_origin: bool) -> str:
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


# ---------------------------------------------------------------------------------------------- assistant
# Conversion of an AI message's content to Messages API blocks: text, and for their origin thinking and server tools' output.
#
# Opaque blocks (thinking with its signature, server tools and their results) go back unchanged and in their place, to the endpoint and
# model that sent them; to any other they are left out, as every other vendor's inner state is.
#
# Wire facts (wire quirks C-09 to C-16, C-20): thinking may be empty and still be needed for its signature; without a signature the vendor
# refuses it, and other servers of its wire want it back as they sent it; a text without a visible character is refused; citations in
# replies name the uploaded file, those in requests may not.


_logger = logging.getLogger("langchain_autotools")

_SERVER_ENDINGS = ("_tool_use", "_tool_result")
_OPAQUE = frozenset({"redacted_thinking", "fallback", "compaction", "container_upload", "mcp_tool_listing"})
_STANDARD = frozenset({"server_tool_call", "server_tool_call_chunk", "server_tool_result", "non_standard"})
_REMOTE = "remote_mcp"
_NAMES = {"code_interpreter": "code_execution"}  # as core renames them


def assistant_part(block: str | Block, *, same_origin: bool, unsigned: bool = False) -> Part | None:
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
        return assistant_part(value, same_origin=True, unsigned=unsigned)
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


# ---------------------------------------------------------------------------------------------- encode
# Conversion of messages of any vendor to messages of the Messages API.
#
# Each message is encoded alone, so that it can be remembered; `mapper` joins neighbours that the wire wants as one message. All results
# of a turn come first in their user message (wire quirk C-18).


Role = Literal["system", "user", "assistant"]

SUMMARY = b'{"type":"compaction"'
"""The first bytes of a block that summarizes the conversation before it."""
_CUT = ("incomplete", "max_tokens", "length", "model_context_window_exceeded")
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


class MessagesEncoder(MessageEncoder[Encoded, CallId]):
    """Encodes messages of any vendor for the Messages API, each alone."""

    provider = PROVIDER
    is_default_provider = True
    unsigned = False
    """Whether the server is another vendor's, and has thinking without a signature back."""

    def _assistant(self, message: AIMessage, taken: Container[str] = (), place: int = 0) -> Encoded:
        """Encode a reply; `taken` contains the ids of all earlier calls, and `place` is their number."""
        records = calls_of(message)
        same_origin = self.is_same_origin(message)
        sent = wire_ids(records, taken, place)
        pairs = list(zip(records, sent, strict=True))
        bodies = [to_bytes(encode_call(call, one, same_origin=same_origin)) for call, one in pairs]
        written = in_order(message, records)
        last = len(written) if message.response_metadata.get("finish_reason") not in _CUT else len(written) - 1
        made = [item for item in written if not isinstance(item, int) and is_output(item)]
        items = [
            item if isinstance(item, int) else assistant_part(item, same_origin=same_origin, unsigned=self.unsigned and position < last)
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
        call = call or CallId(message.tool_call_id, legal_id(message.tool_call_id))
        convert = _text_alone if call.alone and message.status == "error" else part_of
        result, behind = _tool_result(call, message, self._carried(message, blocks_of(message), convert, text_part))
        return Encoded("user", tuple(map(encode, behind)), (encode(result),))

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


def _text_alone(block: str | Block) -> Part | None:
    """Convert a block of a failed result behind which no media may stand."""
    part = part_of(block)
    if part is not None and part["type"] != "text":
        raise unsupported(part["type"], "a failed result holds text alone, and nothing may follow it while the vendor's code waits for it")
    return part


def blocks_of(message: BaseMessage) -> list[Any]:
    """Return the content of a message as a list."""
    return [message.content] if isinstance(message.content, str) else message.content


def _tool_result(call: CallId, message: ToolMessage, parts: list[Part]) -> tuple[ToolResult, list[Part]]:
    """Return a result, and the parts that stand behind the results of the turn.

    The cache mark is set on the whole result, because the wire rejects one inside. A failed result holds text alone (wire quirk C-21).
    """
    failed = message.status == "error"
    marks = [mark for block in blocks_of(message) if isinstance(block, Mapping) and (mark := mark_of(block))]
    behind = [part for part in parts if failed and part["type"] != "text"]
    inside = [part for part in parts if part not in behind]
    for part in inside if marks else ():
        part.pop("cache_control", None)
    said: str | list[Part] = inside
    if len(inside) == 1 and inside[0].keys() == text_part("").keys():
        said = str(inside[0].get("text"))
    result: ToolResult = {"type": "tool_result", "tool_use_id": call.sent, "content": said}
    if not inside:
        result["content"] = BELOW if behind else empty_output(failed=failed)
    if failed:
        result["is_error"] = True
    if call.toolset:
        result["toolset_name"] = call.toolset
    if marks and not any("cache_control" in part for part in behind):
        result["cache_control"] = marks[-1]
    return result, [text_part(FROM_TOOL.format(call.sent)), *behind] if behind else []
