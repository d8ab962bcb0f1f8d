"""Messages of any vendor as messages of the Messages API.

Each message is encoded alone, so that it can be remembered; `mapper` joins neighbours that the wire wants as one message. All
results of a turn come first in their user message (wire quirk C-18).
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeGuard

from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, FunctionMessage, HumanMessage, SystemMessage, ToolMessage

from ...errors import UnsupportedFeatureError
from ...messages.calls import ToolCallRecord, calls_of
from .._encode.json_text import dumps, to_bytes
from .._encode.order import in_order
from .._encode.origin import is_home
from .._encode.sources import extra
from .assistant import spoken
from .blocks import Part, part_of, text_part
from .calls import CallId, encode_call, legal_id, wire_ids
from .decode import PROVIDER

__all__ = ["Encoded", "MessageEncoder"]

Role = Literal["system", "user", "assistant"]

_OF_CALLS = ("caller", "toolset_name")
_OF_SYSTEM = frozenset({"text", "tool_addition", "tool_removal"})
_NO_OUTPUT = "(no output)"
_FAILED = "(failed without output)"


@dataclass(frozen=True, slots=True)
class Encoded:
    """One message on the wire.

    Attributes:
        role: Whose message it belongs to.
        blocks: Its content blocks, each as JSON.
        results: Results of tool calls in it, each as JSON.
        calls: Its calls and the ids they are sent with.
        asked: The blocks that ask a tool of the server's own, by number, with their ids.
        answered: The ids of those calls of the server's tools that it has the results of, or that made calls of its own: code that
            runs on the server and calls ours waits for it over many messages.
    """

    role: Role
    blocks: tuple[bytes, ...] = ()
    results: tuple[bytes, ...] = ()
    calls: tuple[CallId, ...] = ()
    asked: tuple[tuple[int, str], ...] = ()
    answered: tuple[str, ...] = ()


def _asker(call: ToolCallRecord) -> str | None:
    """The call of a server's tool that made a call of ours, if any."""
    caller = call.extra.get("caller")
    return caller.get("tool_id") if isinstance(caller, Mapping) else None


def _encoded(part: Part) -> bytes:
    return to_bytes(dumps(part))


class MessageEncoder:
    """Encodes one message at a time. It has no state of its own.

    Args:
        origin: The endpoint and model that are asked. Opaque blocks go back only to the origin they came from.
        model: The model's name, for histories that other packages wrote: those name the model and no origin.
    """

    def __init__(self, origin: str, model: str) -> None:
        self._origin = origin
        self._model = model

    def encode(self, message: BaseMessage, ids: Sequence[CallId] = (), taken: Container[str] = (), place: int = 0) -> Encoded:
        """The message on the wire.

        Args:
            message: The message.
            ids: The calls that this message may answer.
            taken: The ids of all calls before it.
            place: How many those are.

        Raises:
            UnsupportedFeatureError: The message has content that the wire cannot carry.
        """
        match message:
            case AIMessage():
                return self._assistant(message, taken, place)
            case ToolMessage():
                call = _call_id(message.tool_call_id, ids)
                return Encoded("user", results=(_result(call, message.content, message.status == "error"),))
            case HumanMessage():
                return _user(message, ids)
            case SystemMessage():
                return Encoded("system", tuple(map(_encoded, _system_parts(message))))
            case FunctionMessage() | ChatMessage():
                role: Role = "assistant" if getattr(message, "role", "") == "assistant" else "user"
                return Encoded(role, tuple(map(_encoded, _parts(message.content))))
        raise UnsupportedFeatureError(f"a {type(message).__name__} cannot be sent to a chat model")

    # ------------------------------------------------------------------------------------------ assistant

    def _assistant(self, message: AIMessage, taken: Container[str], place: int) -> Encoded:
        records = [_with_own_keys(call, message) for call in calls_of(message)]
        at_home = self.is_home(message)
        sent = wire_ids(records, taken, place)
        bodies = [to_bytes(encode_call(call, one, at_home=at_home)) for call, one in zip(records, sent, strict=True)]
        said = [item if isinstance(item, int) else spoken(item, at_home=at_home) for item in in_order(message, records)]
        parts = [part for part in said if part is not None]
        pairs = zip(records, sent, strict=True)
        return Encoded(
            "assistant",
            tuple(bodies[part] if isinstance(part, int) else _encoded(part) for part in parts),
            calls=tuple(CallId(call.id, one, _toolset(call)) for call, one in pairs),
            asked=tuple((place, str(part.get("id"))) for place, part in enumerate(parts) if _is_of_server(part, "_tool_use")),
            answered=(
                *(str(part.get("tool_use_id")) for part in parts if _is_of_server(part, "_tool_result")),
                *(asker for call in records if (asker := _asker(call))),
            ),
        )

    def is_home(self, message: AIMessage) -> bool:
        """Whether a message comes from the endpoint and model that are asked, as far as it says where it comes from."""
        return is_home(message, self._origin, self._model, PROVIDER, assumed=PROVIDER)


def _is_of_server(part: Part | int, ending: str) -> TypeGuard[Part]:
    return not isinstance(part, int) and str(part["type"]).endswith(ending)


def _with_own_keys(call: ToolCallRecord, message: AIMessage) -> ToolCallRecord:
    """The call with what langchain-anthropic keeps of it in its content block alone."""
    if call.extra or isinstance(message.content, str):
        return call
    block = next((block for block in message.content if isinstance(block, dict) and block.get("id") == call.id), {})
    said = {key: value for key in _OF_CALLS if (value := extra(block, key))}
    return replace(call, extra=said) if said else call


def _toolset(call: ToolCallRecord) -> str | None:
    toolset = call.extra.get("toolset_name")
    return toolset if isinstance(toolset, str) else None


# ---------------------------------------------------------------------------------------------- user and system


def _parts(content: Any) -> list[Part]:
    blocks = [content] if isinstance(content, str) else content
    return [part for part in map(part_of, blocks) if part is not None]


def _system_parts(message: SystemMessage) -> list[Part]:
    parts = _parts(message.content)
    other = next((part["type"] for part in parts if part["type"] not in _OF_SYSTEM), None)
    if other:
        raise UnsupportedFeatureError(
            f"content block of type {other!r} cannot be sent in a system message: it takes text and changes of tools"
        )
    return parts


def _is_result(block: Any) -> bool:
    return isinstance(block, Mapping) and block.get("type") == "tool_result"


def _user(message: HumanMessage, ids: Sequence[CallId]) -> Encoded:
    """A user message. It may hold results of tool calls among its blocks, in the wire's own form."""
    content = message.content
    if isinstance(content, str):
        return Encoded("user", tuple(map(_encoded, _parts(content))))
    results = []
    for block in filter(_is_result, content):
        assert isinstance(block, dict)
        call = _call_id(str(block.get("tool_use_id") or ""), ids)
        kept = {"cache_control": block["cache_control"]} if block.get("cache_control") else {}
        results.append(_result(call, block.get("content") or "", bool(block.get("is_error")), kept))
        ids = [known for known in ids if known is not call]
    return Encoded("user", tuple(map(_encoded, _parts([block for block in content if not _is_result(block)]))), tuple(results))


# ---------------------------------------------------------------------------------------------- results


def _call_id(identifier: str, ids: Sequence[CallId]) -> CallId:
    return next((call for call in ids if call.known == identifier), None) or CallId(identifier, legal_id(identifier))


def _result(call: CallId, content: Any, failed: bool, kept: Mapping[str, Any] = {}) -> bytes:
    """A result. A mark for the cache stands on it as a whole: the wire refuses one inside."""
    parts: Any = content if isinstance(content, str) and content.strip() else _parts(content)
    if not isinstance(parts, str):
        marks = [part.pop("cache_control") for part in parts if "cache_control" in part]
        kept = {**({"cache_control": marks[-1]} if marks else {}), **kept}
    if not parts:
        parts = _FAILED if failed else _NO_OUTPUT
    elif len(parts) == 1 and not isinstance(parts, str) and parts[0].keys() == text_part("").keys():
        parts = parts[0]["text"]
    toolset = {"toolset_name": call.toolset} if call.toolset else {}
    result = {
        "type": "tool_result",
        "tool_use_id": call.sent,
        "content": parts,
        **({"is_error": True} if failed else {}),
        **toolset,
        **kept,
    }
    return _encoded(result)
