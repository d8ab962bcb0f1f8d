"""Conversion of messages of any vendor to parts of Contents.

Each message is encoded alone, so that it can be remembered; `mapper` joins neighbours that the wire wants as one Content. The
responses of a turn stand alone in a Content of their own, one for each call (wire quirk G-10).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage

from ...errors import UnsupportedFeatureError
from ...messages.calls import ToolCallRecord, calls_of
from .._encode.encoder import MessageEncoder
from .._encode.json_text import encode, to_bytes
from .._encode.order import in_order
from .._encode.origin import message_origin
from .._encode.sources import convert_content
from .assistant import assistant_part
from .blocks import part_of
from .calls import FOREIGN_SIGNATURE, CallId, encode_call, is_readable, legal_name, response_of
from .decode import PROVIDER
from .wire import Blob, FileData, FunctionResponse, Part

Role = Literal["system", "user", "model"]

_SIGNATURES = "__gemini_function_call_thought_signatures__"  # where langchain-google-genai keeps the signatures of calls, by call id
_IN_RESPONSES = ("image/", "application/pdf")


@dataclass(frozen=True, slots=True)
class Encoded:
    """One message on the wire.

    Attributes:
        role: The role of its Content.
        parts: Its parts, each as JSON.
        responses: Responses to calls in it, each as JSON.
        calls: Its calls.
    """

    role: Role
    parts: tuple[bytes, ...] = ()
    responses: tuple[bytes, ...] = ()
    calls: tuple[CallId, ...] = ()


class ContentEncoder(MessageEncoder[Encoded, CallId]):
    """Encodes messages of any vendor as parts of Contents, each alone.

    Args:
        origin: Digest of the endpoint and the model. What is opaque goes back only to the origin that it came from; "" keeps none.
        model: The model's name, for histories that other packages wrote: those name the model and no origin.
        older: Whether the model is of a generation before Gemini 3: those ask for no signatures, and take no media in tools' responses.
    """

    provider = PROVIDER

    def __init__(self, *, origin: str = "", model: str = "", older: bool = False) -> None:
        super().__init__(origin, model)
        self._older = older

    def _assistant(self, message: AIMessage) -> Encoded:
        same_origin, own = self.is_same_origin(message), message_origin(message) is not None
        records = [_with_partner_signature(call, message) for call in calls_of(message)]
        stand_in = FOREIGN_SIGNATURE if not self._older and not (same_origin and any(map(_signature, records))) else None
        parts: list[bytes] = []
        for item in in_order(message, records):
            if isinstance(item, int):
                parts.append(to_bytes(encode_call(records[item], stand_in if item == 0 else None, same_origin=same_origin)))
                continue
            part = assistant_part(item, same_origin=same_origin)
            if part is not None:
                if not own and "executableCode" in part:  # langchain-google-genai makes up an id, which no result has
                    part["executableCode"].pop("id", None)
                parts.append(encode(part))
        return Encoded("model", tuple(parts), calls=tuple(_call_id(call, same_origin) for call in records))

    def _result(self, message: ToolMessage, call: CallId | None) -> Encoded:
        """Encode a result as a response, followed by the media that a response cannot hold."""
        call = call or CallId(message.tool_call_id, legal_name(message.name or "unknown"))
        content, failed = message.content, message.status == "error"
        parts: list[Part] = [{"text": content}] if isinstance(content, str) else convert_content(content, part_of)
        texts = [part["text"] for part in parts if "text" in part]
        media = [part for part in parts if "text" not in part]
        inside = [part for part in media if not self._older and _fits_response(part)]
        after = [part for part in media if part not in inside]
        output = response_of(texts, failed=failed) if texts or not inside else {}
        response: FunctionResponse = {"name": call.name, "response": output}
        if call.sent:
            response = {"id": call.sent, **response}
        if inside:
            response["parts"] = inside
        return Encoded("user", tuple(map(encode, after)), (encode({"functionResponse": response}),))

    def _other(self, message: BaseMessage, role: str) -> Encoded:
        parts = convert_content(message.content, part_of)
        if isinstance(message, SystemMessage):
            return Encoded("system", tuple(map(encode, _only_text(parts))))
        return Encoded("model" if role in ("assistant", "model") else "user", tuple(map(encode, parts)))


def _fits_response(part: Part) -> bool:
    data: Blob | FileData | None = part.get("inlineData") or part.get("fileData")
    return data is not None and str(data.get("mimeType") or "").startswith(_IN_RESPONSES)


def _only_text(parts: list[Part]) -> list[Part]:
    other = next((part for part in parts if "text" not in part), None)
    if other is not None:
        raise UnsupportedFeatureError(f"{next(iter(other))!r} cannot be sent in a system message: it takes text only")
    return parts


def _call_id(call: ToolCallRecord, same_origin: bool) -> CallId:
    identifier = (call.extra.get("call") or {}).get("id") if same_origin else None
    return CallId(call.id, legal_name(call.name), identifier)


def _signature(call: ToolCallRecord) -> Any:
    return (call.extra.get("part") or {}).get("thoughtSignature") if is_readable(call) else None


def _with_partner_signature(call: ToolCallRecord, message: AIMessage) -> ToolCallRecord:
    """Return the call with the signature that langchain-google-genai stores elsewhere."""
    signatures = message.additional_kwargs.get(_SIGNATURES)
    signature = signatures.get(call.id) if isinstance(signatures, Mapping) else None
    if not signature or _signature(call):
        return call
    return ToolCallRecord(call.id, call.name, call.arguments, call.args, call.why, call.wire_id, {"part": {"thoughtSignature": signature}})
