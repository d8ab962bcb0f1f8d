"""Conversion of LangChain messages to the JSON of generateContent requests.

Understood are LangChain's v1 and v0 blocks and the blocks of Google, OpenAI and Anthropic. What the wire cannot carry of a user's
message raises `UnsupportedFeatureError` with its type; of a reply or a result it becomes a line of text. Left out are texts of length
nothing, which the vendor refuses, and the inner state of other servers.

Wire facts: text, `inlineData` (base64 of any media type that the model reads) and `fileData` (an uploaded file, a Cloud Storage or a public
address); `videoMetadata` and `mediaResolution` are beside them.
"""

import json
import logging
import mimetypes
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, TypedDict

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from ...errors import UnsupportedFeatureError
from ...messages.blocks import is_provisional
from ...messages.calls import ToolCallRecord, calls_of
from ...messages.incremental import fold_over
from ...messages.metadata import own_metadata
from .._encode.encoder import (
    MessageEncoder,
    as_user_text,
    dumps,
    empty_output,
    encode,
    fallback_text,
    in_order,
    is_output,
    legal_arguments,
    message_origin,
    read_input,
    read_object,
    request_body,
    sdk_class,
    to_bytes,
    without_call,
)
from .._encode.sources import (
    FROM_MODEL,
    Block,
    Source,
    convert_block,
    document_text,
    expanded,
    extra,
    image_type,
    media_of,
    search_result_text,
    source_of,
    unsupported,
    unwrapped,
)
from .client import file_uri
from .decode import PROVIDER
from .tools import LEGAL_NAME

_logger = logging.getLogger("langchain_autotools")

_OWN = ("inlineData", "fileData")
_USUAL = {"image": "image/jpeg", "audio": "audio/mpeg", "video": "video/mp4"}
_FALLBACKS = frozenset({"image", "image_url", "input_image", "audio", "video"})


class Part(TypedDict, total=False):
    """One part of a request's content: one of its first six keys, and additional ones."""

    text: str
    inlineData: dict[str, str]
    fileData: dict[str, str]
    functionResponse: dict[str, Any]
    executableCode: dict[str, Any]
    codeExecutionResult: dict[str, Any]
    thought: bool
    thoughtSignature: str
    partMetadata: Any
    videoMetadata: Any
    mediaResolution: Any


def text_part(text: str) -> Part:
    """Return a text part."""
    return {"text": text}


# ---------------------------------------------------------------------------------------------- one message
# Conversion of messages of any vendor to parts of Contents.
#
# Each message is encoded alone, so that it can be remembered; `GenerateContentMapper` joins neighbours that the wire wants as one
# Content. The responses of a turn are alone in a Content of their own, one for each call (wire quirk G-10).


Role = Literal["system", "user", "model"]

_SIGNATURES = "__gemini_function_call_thought_signatures__"  # where langchain-google-genai keeps the signatures of calls, by call id
_IN_RESPONSES = ("image/", "application/pdf")


class CallId(NamedTuple):
    """A tool call's id in LangChain, its tool's name on the wire, and the id that the model sent, if any."""

    known: str
    name: str
    sent: str | None = None


@dataclass(frozen=True, slots=True)
class Encoded:
    """One message on the wire.

    Attributes:
        role: The role of its Content.
        parts: Its parts, each as JSON.
        responses: Responses to calls in it, each as JSON.
        calls: Its calls.
        media: Parts for the user's Content after it: what a model made and its own Content cannot hold.
    """

    role: Role
    parts: tuple[bytes, ...] = ()
    responses: tuple[bytes, ...] = ()
    calls: tuple[CallId, ...] = ()
    media: tuple[bytes, ...] = ()


class GenerateContentMapper(MessageEncoder[Encoded, CallId]):
    """Encodes requests, of messages of any vendor. Safe for use by any number of threads.

    Args:
        origin: Digest of the endpoint and the model. What is opaque goes back only to the origin that it came from; "" keeps none.
        model: The model's name, for histories that other packages wrote: those name the model and no origin.
        older: Whether the model is of a generation before Gemini 3: those ask for no signatures, and take no media in tools' responses.
    """

    provider = PROVIDER

    def __init__(self, *, origin: str = "", model: str = "", older: bool = False) -> None:
        super().__init__(origin, model)
        self._older = older

    def encode_request(self, messages: Sequence[BaseMessage], params: Mapping[str, Any]) -> bytes:
        """Encode a request.

        Args:
            messages: The messages. System messages at the start become the request's `systemInstruction`.
            params: Everything else, in the wire's names.

        Raises:
            ConfigurationError: A parameter is no JSON value.
            UnsupportedFeatureError: A message has content that the wire cannot carry.
        """
        messages, token = _continued(messages, self.origin)
        if token:
            params = {**params, "continuationToken": token}
        contents = fold_over(messages, self, partial(_Contents, self))
        head = {key: value for key, value in params.items() if not (key == "systemInstruction" and contents.system)}
        before = b'"systemInstruction":{"parts":[%s]},' % b",".join(contents.system) if contents.system else b""
        sent = contents.all()
        if messages and not contents.begun:
            raise UnsupportedFeatureError("a system message alone asks for nothing, and the vendor refuses it: add a HumanMessage")
        return request_body(head, "contents", sent, before, b"")

    def _assistant(self, message: AIMessage) -> Encoded:
        same_origin, own = self.is_same_origin(message), message_origin(message) is not None
        records = [_with_partner_signature(call, message) for call in calls_of(message)]
        stand_in = _FOREIGN_SIGNATURE if not self._older and not (same_origin and any(map(_signature, records))) else None
        parts: list[bytes] = []
        if isinstance(message.content, list) and not message.text and (spoken := fallback_text(message)):
            parts.append(encode(text_part(spoken)))
        media: list[bytes] = []
        convert = partial(_assistant_part, same_origin=same_origin)
        for item in in_order(message, records):
            if isinstance(item, int):
                parts.append(to_bytes(_encode_call(records[item], stand_in if item == 0 else None, same_origin=same_origin)))
                continue
            for part in self._carried(message, expanded([item], named=False), convert, text_part):
                if "fileData" in part and not same_origin:  # which a model's Content holds where its own server has put it
                    media.append(encode(part))
                    continue
                if not own and "executableCode" in part:  # langchain-google-genai makes up an id, which no result has
                    part["executableCode"].pop("id", None)
                parts.append(encode(part))
        late = (encode(text_part(FROM_MODEL)), *media) if media else ()
        return Encoded("model", tuple(parts), calls=tuple(_call_id(call, same_origin) for call in records), media=late)

    def _result(self, message: ToolMessage, call: CallId | None) -> Encoded:
        """Encode a result as a response, followed by the media that a response cannot hold."""
        call = call or CallId(message.tool_call_id, legal_name(message.name or "unknown"))
        content, failed = message.content, message.status == "error"
        if isinstance(content, str):
            parts: list[Part] = [{"text": content}]
        else:
            parts = self._carried(message, expanded(content, named=False), part_of, text_part)
        texts = [part["text"] for part in parts if "text" in part]
        media = [part for part in parts if "text" not in part]
        types = [str((part.get("inlineData") or part.get("fileData") or {}).get("mimeType")) for part in media]
        inside = [part for part, kind in zip(media, types, strict=True) if kind.startswith(_IN_RESPONSES) and not self._older]
        after = [part for part in media if part not in inside]
        output = _response_of(texts, failed=failed) if texts or not inside else {}
        response: dict[str, Any] = {"name": call.name, "response": output}
        if call.sent:
            response = {"id": call.sent, **response}
        if inside:
            response["parts"] = inside
        return Encoded("user", tuple(map(encode, after)), (encode({"functionResponse": response}),))

    def _other(self, message: BaseMessage, role: str) -> Encoded:
        parts = [part for part in map(part_of, expanded(message.content, named=False)) if part is not None]
        if isinstance(message, SystemMessage):
            return Encoded("system", tuple(map(encode, _only_text(parts))))
        return Encoded("model" if role in ("assistant", "model") else "user", tuple(map(encode, parts)))


def _only_text(parts: list[Part]) -> list[Part]:
    other = next((part for part in parts if "text" not in part), None)
    if other is not None:
        raise UnsupportedFeatureError(f"{next(iter(other))!r} cannot be sent in a system message: it takes text only")
    return parts


def _call_id(call: ToolCallRecord, same_origin: bool) -> CallId:
    identifier = (call.extra.get("call") or {}).get("id") if same_origin else None
    return CallId(call.id, legal_name(call.name), identifier)


def _signature(call: ToolCallRecord) -> Any:
    return (call.extra.get("part") or {}).get("thoughtSignature") if _is_readable(call) else None


def _with_partner_signature(call: ToolCallRecord, message: AIMessage) -> ToolCallRecord:
    """Return the call with the signature that langchain-google-genai stores elsewhere."""
    signatures = message.additional_kwargs.get(_SIGNATURES)
    signature = signatures.get(call.id) if isinstance(signatures, Mapping) else None
    if not signature or _signature(call):
        return call
    return ToolCallRecord(call.id, call.name, call.arguments, call.args, call.why, call.wire_id, {"part": {"thoughtSignature": signature}})


# ---------------------------------------------------------------------------------------------- whole conversations


_OPENING = encode({"role": "user", "parts": [text_part("(The conversation begins with the model.)")]}) + b","


class _Contents:
    """A fold of Contents: neighbours of one role are merged, with a turn's responses before other parts.

    Args:
        encoder: Encodes each message.

    Attributes:
        system: The parts of the system messages that the history begins with.
        begun: Whether any other message has been read.
    """

    __slots__ = ("_encoder", "_late", "_open", "_pieces", "_waiting", "begun", "system")

    def __init__(self, encoder: GenerateContentMapper) -> None:
        self._encoder = encoder
        self.system: list[bytes] = []
        self._pieces: list[bytes] = []  # of the JSON of the Contents, the last of them open
        self._open: tuple[str, bool] | None = None  # its role, and whether it holds responses
        self._late: list[bytes] = []  # media of results, which may not come between the responses, and of the model
        self._waiting: tuple[CallId, ...] = ()
        self.begun = False

    def copy(self) -> "_Contents":
        """Return an independent copy."""
        made = _Contents(self._encoder)
        made.system, made._pieces, made._late = [*self.system], [*self._pieces], [*self._late]
        made._open, made._waiting, made.begun = self._open, self._waiting, self.begun
        return made

    def read(self, messages: Sequence[BaseMessage]) -> None:
        """Read the next messages."""
        for message in messages:
            if isinstance(message, ToolMessage):
                encoded = self._encoder.remembered(message, self._waiting)
                self._waiting = without_call(message.tool_call_id, self._waiting)
            else:
                encoded = self._encoder.remembered(message)
                self._waiting = encoded.calls
            self.begun = self.begun or encoded.role != "system"
            if not self.begun:
                self.system += encoded.parts
            elif encoded.responses:
                self._add("user", True, encoded.responses)
                self._late += encoded.parts
            elif encoded.parts or encoded.media:
                self._add("user", False, self._late)
                role, parts = encoded.role, encoded.parts
                if role == "system":  # for which the wire has a place at the start alone: marked text of the user
                    role, parts = "user", (encode(text_part(as_user_text(json.loads(part)["text"] for part in parts))),)
                self._add(role, False, parts)
                self._late = [*encoded.media]

    def all(self) -> list[bytes]:
        """Return the pieces of the Contents of a request that ends here, as JSON."""
        if not self._late:
            return [*self._pieces, b"]}"] if self._pieces else []
        ended = self.copy()
        ended._late = []
        ended._add("user", False, self._late)
        return ended.all()

    def _add(self, role: str, responses: bool, parts: Sequence[bytes]) -> None:
        """Append the parts to the last Content if they may join it, else as a new one."""
        if not parts:
            return
        start = b'{"role":"%s","parts":[' % role.encode()
        if self._open == (role, responses):
            start = b","
        elif self._open is not None:
            start = b"]}," + start
        elif role == "model":
            start = _OPENING + start
        for part in parts:
            self._pieces += (start, part)
            start = b","
        self._open = role, responses


def _continued(messages: Sequence[BaseMessage], origin: str) -> tuple[Sequence[BaseMessage], str | None]:
    """Return the messages without a final unfinished reply, and the token with which the server continues it.

    The request that it was asked with is made again, with the token of the last part (google-genai, "automatic continuation").
    """
    token = _continuation(messages[-1], origin) if messages else None
    if not token:
        return messages, None
    end = len(messages)
    while end and _continuation(messages[end - 1], origin):
        end -= 1
    return messages[:end], token


def _continuation(message: BaseMessage, origin: str) -> str | None:
    own = own_metadata(message) if isinstance(message, AIMessage) else {}
    token = own.get("continuation") if own.get("origin") == origin else None
    return token if isinstance(token, str) else None


# ---------------------------------------------------------------------------------------------- assistant
# Conversion of an AI message's content to Content parts: text, and for their origin thoughts, signatures and server output.
#
# Signatures go back on the very part that they came with, be it empty; parts that carry one are never joined (wire quirk G-03). Any other
# endpoint or model gets the text, and media that it can read; thoughts and what servers' tools did are left out.


_OUTCOMES: Mapping[Any, str] = {1: "OUTCOME_OK", 2: "OUTCOME_FAILED", 3: "OUTCOME_DEADLINE_EXCEEDED"}
_TEXTS = frozenset({"text", "output_text", "refusal"})
_CODE_RESULT = "code_execution_result"


def _assistant_part(block: str | Block, *, same_origin: bool) -> Part | None:
    """Convert one block; None if it is not sent.

    Args:
        block: The block, of any vendor.
        same_origin: Whether it goes back to the endpoint and model that wrote it.
    """
    if isinstance(block, str):
        return text_part(block) if block else None
    if is_provisional(block):
        return None
    kind = str(block.get("type") or ("text" if isinstance(block.get("text"), str) else ""))
    signature = extra(block, "signature") if same_origin else None
    part = _part_of_kind(block, kind, same_origin=same_origin)
    beside = extra(block, "part_metadata") if same_origin else None
    if part is None or (part == text_part("") and not signature and not beside):
        return None
    if signature:
        part["thoughtSignature"] = signature
    if same_origin and extra(block, "thought"):
        part["thought"] = True
    if beside:
        part["partMetadata"] = beside
    return part


def _part_of_kind(block: Block, kind: str, *, same_origin: bool) -> Part | None:
    if kind in _TEXTS:
        return text_part(str(block.get("text") or block.get("refusal") or ""))
    if is_output(block):
        return part_of(block)
    if not same_origin:
        _logger.debug("not sent: an assistant's content block of type %r", kind)
        return None
    if kind in ("thinking", "reasoning"):
        return {"text": block.get("thinking") or block.get("reasoning") or "", "thought": True}
    if kind == "part":
        part: Part = {**(block.get("part") or {})}
        return part
    if kind == "non_standard" and isinstance(block.get("value"), Mapping):
        return _assistant_part(block["value"], same_origin=True)
    return _of_server(block, kind)


def _of_server(block: Block, kind: str) -> Part | None:
    """Convert code that the server ran, or its result, also in LangChain's standard form."""
    if kind == "executable_code":
        return _code(block.get("id"), block.get("language"), block.get("executable_code"))
    if kind == "server_tool_call" and block.get("name") == "code_interpreter":
        arguments = block.get("args") or {}
        return _code(block.get("id"), arguments.get("language"), arguments.get("code"))
    if kind == _CODE_RESULT or (kind == "server_tool_result" and extra(block, "block_type") == _CODE_RESULT):
        outcome = extra(block, "outcome")
        output = block.get(_CODE_RESULT) if kind == _CODE_RESULT else block.get("output")
        result = {"outcome": _OUTCOMES.get(outcome, outcome), "output": output}
        return {"codeExecutionResult": {"id": block["tool_call_id"], **result} if block.get("tool_call_id") else result}
    return None


def _code(identifier: str | None, language: str | None, code: str | None) -> Part:
    executed = {"language": language, "code": code}
    return {"executableCode": {"id": identifier, **executed} if identifier else executed}


# ------------------------------------------------------------------------------------------ blocks of content


def part_of(block: str | Block) -> Part | None:
    """Convert one content block to the wire's form; None for an empty text.

    Raises:
        UnsupportedFeatureError: The wire cannot carry the block.
    """
    if isinstance(block, str):
        return text_part(block) if block else None
    block = unwrapped(block)
    if any(isinstance(block.get(key), Mapping) for key in _OWN) and not _is_unreadable(source_of(block)):
        return _without_index(block)
    if "type" not in block and isinstance(block.get("text"), str) and block["text"]:  # the wire's own text, with what is beside it
        return _without_index(block)
    part = convert_block(block, text_part, _CONVERTERS, "the wire has no such content")
    return None if part == text_part("") else part


def _is_unreadable(source: Source) -> bool:
    return source.kind == "file" and source.essence.startswith("application/")


def _without_index(block: Block) -> Part:
    """Return one of the wire's own parts without LangChain's additions."""
    own: Any = {key: value for key, value in block.items() if key not in ("type", "index")}
    part: Part = own
    return part


def _media(block: Block) -> Part:
    part = _of_source(block, media_of(block))
    if "text" in part:
        return part
    if video := extra(block, "videoMetadata", "video_metadata"):
        part["videoMetadata"] = video
    if resolution := extra(block, "mediaResolution", "media_resolution"):
        part["mediaResolution"] = {"level": resolution.upper()} if isinstance(resolution, str) else resolution
    return part


def _of_source(block: Block, source: Source) -> Part:
    kind = block.get("type")
    if source.url or source.file_id:
        uri = source.url or file_uri(str(source.file_id))
        if not source.url and "://" not in uri:
            raise unsupported(kind, f"the file {uri!r} is not one of this vendor's")
        mime_type = source.mime_type or mimetypes.guess_type(uri.partition("?")[0])[0]
        is_known = "/files/" in uri and "googleapis.com" in uri  # of an uploaded file the server knows the media type
        if mime_type is None and source.url and kind in _FALLBACKS and not is_known:
            mime_type = _USUAL[source.kind]
        return {"fileData": {"mimeType": mime_type, "fileUri": uri} if mime_type else {"fileUri": uri}}
    if source.text is not None or (source.kind == "text" and source.data is not None):
        return text_part(document_text(block, source))
    if source.data is None:
        raise unsupported(kind, "it needs a URL, base64 data or the id of an uploaded file")
    mime_type = source.mime_type or image_type(source.data)
    if mime_type is None:
        raise unsupported(kind, "its mime_type is missing")
    if _is_unreadable(source):
        raise unsupported(kind, f"the vendor reads pictures, sound, videos, PDF and text, not {mime_type}")
    return {"inlineData": {"mimeType": mime_type, "data": source.data}}


_CONVERTERS: dict[str, Callable[[Block], Part]] = {"media": _media, "search_result": lambda block: text_part(search_result_text(block))}


# ---------------------------------------------------------------------------------------------- calls
# Tool calls of a history, and their results, in the wire's form.
#
# Wire facts (wire quirks G-01, G-03, G-10): an id is sent only where the model sent one, and then on the call and its response alike. A
# response is an object and repeats the call's name. Newer models refuse a turn whose first call has no signature, unless it carries the
# word that the vendor names for calls of others. What the model wrote goes back as it wrote it, so that prompt caches hit.


_FOREIGN_SIGNATURE = "skip_thought_signature_validator"
"""The documented placeholder ("Thought signatures") for the missing signature of another model's call."""

_ILLEGAL = re.compile(r"[^a-zA-Z0-9_.:-]")
_LONGEST_NAME = 64
_UNREADABLE = "INVALID_JSON"
_REFERENCE = "$ref"


def legal_name(name: str) -> str:
    """Return the name if the wire accepts it, else a similar legal one."""
    if LEGAL_NAME.fullmatch(name):
        return name
    legal = _ILLEGAL.sub("_", name)
    return (legal if LEGAL_NAME.match(legal) else f"_{legal}")[:_LONGEST_NAME]


def _encode_call(call: ToolCallRecord, signature: str | None, *, same_origin: bool) -> str:
    """Encode one call as the JSON of a part; its extra keys are sent only to their origin.

    Args:
        call: The call.
        signature: The signature to send where the call has none of its own.
        same_origin: Whether it goes back to the endpoint and model that made it.
    """
    beside = dict(call.extra.get("part") or {}) if same_origin else {}
    within = dict(call.extra.get("call") or {}) if same_origin else {}
    if not _is_readable(call):
        beside.pop("thoughtSignature", None)
    if signature:
        beside.setdefault("thoughtSignature", signature)
    head = dumps({**within, "name": legal_name(call.name)})[:-1]
    after = "," + dumps(beside)[1:-1] if beside else ""
    return f'{{"functionCall":{head},"args":{legal_arguments(call, unreadable=_UNREADABLE)}}}{after}}}'


def _is_readable(call: ToolCallRecord) -> bool:
    """Whether a call can be sent back with its original arguments. Otherwise its signature is no longer valid."""
    return call.args is not None or not call.arguments.strip() or read_object(call.arguments) is not None


def _response_of(texts: Sequence[str], *, failed: bool) -> dict[str, Any]:
    """Return the texts of a result as the object of a function response.

    A text that is an object stays one; but not where a key is `$ref`, which the server would take for a reference to media.

    Args:
        texts: The texts.
        failed: Whether the call failed: then they are under `error`.
    """
    text = "\n".join(texts)
    value = read_object(text) if text.lstrip().startswith("{") else None
    if value and not _refers(value):
        return value if not failed or "error" in value else {"error": value}
    if not text.strip():
        text = empty_output(failed=failed)
    return {"error" if failed else "result": text}


def _refers(value: Any) -> bool:
    if isinstance(value, Mapping):
        return _REFERENCE in value or any(map(_refers, value.values()))
    return isinstance(value, list) and any(map(_refers, value))


# ---------------------------------------------------------------------------------------------- objects of google-genai
# Nothing here imports the SDK before it is asked for: whoever gives an object of it has imported it.


_OF_RESPONSES = ("result", "output", "error")


def read_contents(given: Any) -> Any:
    """Return a model's input with the SDK's contents converted to LangChain messages.

    Thoughts are left out, as for any history that does not name the model that wrote it.
    """
    return read_input(given, sdk_class("google.genai.types", "Content"), _read_content)


def _read_content(content: Any) -> list[BaseMessage]:
    fields = content.model_dump(mode="json", by_alias=True, exclude_none=True)
    parts: list[dict[str, Any]] = fields.get("parts") or []
    blocks: list[Any] = list(_read_parts(parts))
    if fields.get("role") == "model":
        calls: Any = [
            {"type": "tool_call", "name": call.get("name") or "", "args": call.get("args") or {}, "id": call.get("id")}
            for part in parts
            if (call := part.get("functionCall")) is not None
        ]
        return [AIMessage(blocks, tool_calls=calls)]
    results: list[BaseMessage] = [_read_result(part["functionResponse"]) for part in parts if "functionResponse" in part]
    return [*results, HumanMessage(blocks)] if blocks or not results else results


def _read_parts(parts: Iterable[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    for part in parts:
        if part.get("thought") or "functionCall" in part or "functionResponse" in part:
            continue
        if "text" in part:
            yield {"type": "text", "text": part["text"]}
        elif "inlineData" in part:
            data = part["inlineData"]["data"].replace("-", "+").replace("_", "/")  # the SDK writes the alphabet of URLs
            yield {**part, "type": "media", "inlineData": {**part["inlineData"], "data": data}}
        else:
            yield {**part, "type": "media"} if "fileData" in part else {"type": "part", "part": dict(part)}


def _read_result(response: Mapping[str, Any]) -> ToolMessage:
    given = response.get("response") or {}
    name = next(iter(given)) if len(given) == 1 else None
    value = given[name] if name in _OF_RESPONSES else given
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    known = {"tool_call_id": response.get("id") or "", "name": response.get("name")}
    return ToolMessage(text, status="error" if name == "error" else "success", **known)
