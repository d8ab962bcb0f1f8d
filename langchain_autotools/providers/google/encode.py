"""Messages of any vendor as parts of Contents.

Each message is encoded alone, so that it can be remembered; `mapper` joins neighbours that the wire wants as one Content. The
responses of a turn stand alone in a Content of their own, one for each call (wire quirk G-10).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, FunctionMessage, HumanMessage, SystemMessage, ToolMessage

from ...errors import UnsupportedFeatureError
from ...messages.calls import ToolCallRecord, calls_of
from .._encode.json_text import dumps, to_bytes
from .._encode.order import in_order
from .._encode.origin import is_home, origin_said
from .assistant import spoken
from .blocks import Part, part_of
from .calls import FOREIGN_SIGNATURE, CallId, encode_call, is_readable, legal_name, response_of
from .decode import PROVIDER

__all__ = ["Encoded", "Home", "MessageEncoder"]

Role = Literal["system", "user", "model"]

_SIGNATURES = "__gemini_function_call_thought_signatures__"  # where langchain-google-genai keeps the signatures of calls, by call id
_IN_RESPONSES = ("image/", "application/pdf")


@dataclass(frozen=True, slots=True)
class Encoded:
    """One message on the wire.

    Attributes:
        role: Whose Content it belongs to.
        parts: Its parts, each as JSON.
        responses: Responses to calls in it, each as JSON.
        calls: Its calls.
    """

    role: Role
    parts: tuple[bytes, ...] = ()
    responses: tuple[bytes, ...] = ()
    calls: tuple[CallId, ...] = ()


@dataclass(frozen=True)
class Home:
    """The endpoint and model that are asked.

    Attributes:
        origin: A digest of both. What is opaque goes back only to the origin that it came from.
        model: The model's name, for histories that other packages wrote: those name the model and no origin.
        signs: Whether the model refuses calls without a signature.
        media_in_responses: Whether a tool's response may hold media.
    """

    origin: str = ""
    model: str = ""
    signs: bool = True
    media_in_responses: bool = True


class MessageEncoder:
    """Encodes one message at a time. It has no state of its own.

    Args:
        home: The endpoint and model that are asked.
    """

    def __init__(self, home: Home) -> None:
        self._home = home

    def encode(self, message: BaseMessage, ids: Sequence[CallId] = ()) -> Encoded:
        """The message on the wire.

        Args:
            message: The message.
            ids: The calls that this message may answer.

        Raises:
            UnsupportedFeatureError: The message has content that the wire cannot carry.
        """
        match message:
            case AIMessage():
                return self._assistant(message)
            case ToolMessage():
                call = _call_id(message.tool_call_id, ids, message.name)
                response, media = self._response(call, message.content, message.status == "error")
                return Encoded("user", media, (response,))
            case HumanMessage():
                return self._user(message, ids)
            case SystemMessage():
                return Encoded("system", _encoded(_only_text(_all(message.content))))
            case FunctionMessage() | ChatMessage():
                role: Role = "model" if getattr(message, "role", "") in ("assistant", "model") else "user"
                return Encoded(role, _encoded(_all(message.content)))
        raise UnsupportedFeatureError(f"a {type(message).__name__} cannot be sent to a chat model")

    # ------------------------------------------------------------------------------------------ assistant

    def _assistant(self, message: AIMessage) -> Encoded:
        at_home, own = is_home(message, self._home.origin, self._home.model, PROVIDER), origin_said(message) is not None
        records = [_with_partner_signature(call, message) for call in calls_of(message)]
        stand_in = FOREIGN_SIGNATURE if self._home.signs and not (at_home and any(map(_signature, records))) else None
        parts: list[bytes] = []
        for item in in_order(message, records):
            if isinstance(item, int):
                parts.append(to_bytes(encode_call(records[item], stand_in if item == 0 else None, at_home=at_home)))
                continue
            part = spoken(item, at_home=at_home)
            if part is not None:
                if not own and "executableCode" in part:  # langchain-google-genai makes up an id, which no result has
                    part["executableCode"].pop("id", None)
                parts.append(to_bytes(dumps(part)))
        return Encoded("model", tuple(parts), calls=tuple(_sent(call, at_home) for call in records))

    # ------------------------------------------------------------------------------------------ user

    def _user(self, message: HumanMessage, ids: Sequence[CallId]) -> Encoded:
        """A user message. It may hold results of tool calls among its blocks, in Anthropic's form; of no known call they are its words."""
        if isinstance(message.content, str):
            return Encoded("user", _encoded(_all(message.content)))
        responses: list[bytes] = []
        late: list[bytes] = []
        others: list[Any] = []
        for block in message.content:
            call = _answered(block, ids)
            if call is None:
                others += _content_of(block)
                continue
            assert isinstance(block, dict)
            response, media = self._response(call, block.get("content") or "", bool(block.get("is_error")))
            responses.append(response)
            late += media
            ids = [known for known in ids if known is not call]
        return Encoded("user", (*late, *_encoded(_all(others))), tuple(responses))

    # ------------------------------------------------------------------------------------------ results

    def _response(self, call: CallId, content: Any, failed: bool) -> tuple[bytes, tuple[bytes, ...]]:
        """A result as its response, and the media that must follow the responses because they cannot stand in one."""
        parts = [{"text": content}] if isinstance(content, str) else _all(content)
        texts = [part["text"] for part in parts if "text" in part]
        media = [part for part in parts if "text" not in part]
        inside = [part for part in media if self._home.media_in_responses and _fits_response(part)]
        after = [part for part in media if part not in inside]
        said = response_of(texts, failed=failed) if texts or not inside else {}
        response: Part = {**({"id": call.sent} if call.sent else {}), "name": call.name, "response": said}
        if inside:
            response["parts"] = inside
        return to_bytes(dumps({"functionResponse": response})), _encoded(after)


def _all(content: Any) -> list[Part]:
    blocks = [content] if isinstance(content, str) else content
    return [part for part in map(part_of, blocks) if part is not None]


def _encoded(parts: Sequence[Part]) -> tuple[bytes, ...]:
    return tuple(to_bytes(dumps(part)) for part in parts)


def _fits_response(part: Part) -> bool:
    data = part.get("inlineData") or part.get("fileData") or {}
    return str(data.get("mimeType") or "").startswith(_IN_RESPONSES)


def _only_text(parts: list[Part]) -> list[Part]:
    other = next((part for part in parts if "text" not in part), None)
    if other is not None:
        raise UnsupportedFeatureError(f"{next(iter(other))!r} cannot be sent in a system message: it takes text only")
    return parts


def _is_result(block: Any) -> bool:
    return isinstance(block, Mapping) and block.get("type") == "tool_result"


def _answered(block: Any, ids: Sequence[CallId]) -> CallId | None:
    """The call that a block answers, if it does."""
    return next((call for call in ids if call.known == block.get("tool_use_id")), None) if _is_result(block) else None


def _content_of(block: Any) -> list[Any]:
    """The block; of a result what is in it."""
    if not _is_result(block):
        return [block]
    content = block.get("content") or []
    return [content] if isinstance(content, str) else list(content)


def _call_id(identifier: str, ids: Sequence[CallId], name: str | None) -> CallId:
    return next((call for call in ids if call.known == identifier), None) or CallId(identifier, legal_name(name or "unknown"))


def _sent(call: ToolCallRecord, at_home: bool) -> CallId:
    identifier = (call.extra.get("call") or {}).get("id") if at_home else None
    return CallId(call.id, legal_name(call.name), identifier)


def _signature(call: ToolCallRecord) -> Any:
    return (call.extra.get("part") or {}).get("thoughtSignature") if is_readable(call) else None


def _with_partner_signature(call: ToolCallRecord, message: AIMessage) -> ToolCallRecord:
    """The call with the signature that langchain-google-genai keeps elsewhere."""
    signatures = message.additional_kwargs.get(_SIGNATURES)
    signature = signatures.get(call.id) if isinstance(signatures, Mapping) else None
    if not signature or _signature(call):
        return call
    return ToolCallRecord(call.id, call.name, call.arguments, call.args, call.why, call.wire_id, {"part": {"thoughtSignature": signature}})
