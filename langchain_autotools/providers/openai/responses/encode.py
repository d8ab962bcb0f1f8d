"""Messages of any vendor as input items of the Responses API.

Each message is encoded alone, so that it can be remembered; what it asks of its neighbours is in `Encoded`. A reply of the same
endpoint and model goes back as the items that it was (see `items`); any other as its text and its calls.

Wire facts: a call's `call_id` pairs it with its output, has at most 64 characters and must be unique in the whole input
(wire quirks P-01, H-05, H-07); outputs are text, or a list of input parts (wire quirk P-10); an item's own `id` is something else and
is never made up here.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, FunctionMessage, HumanMessage, SystemMessage, ToolMessage

from ....errors import UnsupportedFeatureError
from ....messages.calls import ToolCallRecord, calls_of
from ....messages.metadata import KEY, text_of
from ..._encode.arguments import legal_arguments
from ..blocks import Part
from ..calls import CUSTOM, CUSTOM_ARGUMENT, legal_name
from ..dialect import OPENAI
from ..encode import encode_part, said, unwritten
from .blocks import input_part, item_of, wire_part
from .client_calls import answered_id, client_calls, names_of
from .items import CALL_TYPES, CUSTOM_CALL, FUNCTION_CALL, Item, restored

__all__ = ["Encoded", "ItemEncoder", "Waiting", "still_waiting", "without_answers"]

Waiting = tuple[tuple[str, str, bool, str], ...]
"""Calls that wait for their results: the id that LangChain knows, the id on the wire, whether the tool is a custom one, and the program
that called it, as JSON ("" for none)."""

_LONGEST_ID = 64
_FOUND_TOOLS = "tool_search_output"
_ROLES = frozenset({"user", "assistant", "system", "developer"})
_NO_OUTPUT = "(no output)"
_FAILED = "(failed without output)"
_BELOW = "(the output follows in the next message)"
_FROM_TOOL = "Output of tool call {}:"
_FROM_MODEL = "Output of the assistant:"
_OUTPUT_PARTS = frozenset({"input_text", "input_image", "input_file"})


@dataclass(frozen=True, slots=True)
class Encoded:
    """One message on the wire.

    Attributes:
        body: Its items as JSON, joined by commas; empty where a message says nothing.
        media: Input parts, joined by commas, for a user message after this turn's results.
        call_ids: The ids that its calls are sent with.
        waiting: What its results must know, where that is more than their own id.
        awaits: What each call of the vendor's tools that the caller must answer may be named by.
        answers: Ids of such calls that this message answers.
    """

    body: bytes
    media: bytes = b""
    call_ids: frozenset[str] = frozenset()
    waiting: Waiting = ()
    awaits: tuple[frozenset[str], ...] = ()
    answers: frozenset[str] = frozenset()


def _joined(items: Iterable[Any]) -> bytes:
    return b",".join(encode_part(item) for item in items)


def _media(caption: str, parts: Sequence[Part]) -> bytes:
    return _joined([{"type": "input_text", "text": caption}, *parts]) if parts else b""


def _legal(identifier: str) -> str:
    return identifier if 0 < len(identifier) <= _LONGEST_ID else OPENAI.ids.derived(identifier, "", 0)


class ItemEncoder:
    """Encodes one message at a time. It has no state of its own.

    Args:
        origin: The endpoint and model that are asked; items go back only to the origin they came from.
        part_keys: Keys of content blocks that this server takes besides the vendor's own.
        opaque: Whether replies go back as the items that they were, where that is possible.
    """

    def __init__(self, origin: str, *, part_keys: Sequence[str], opaque: bool = True) -> None:
        self._origin = origin
        self._part_keys = part_keys
        self._opaque = opaque

    def encode(self, message: BaseMessage, waiting: Waiting = ()) -> Encoded:
        """A message that is no reply of a model.

        Args:
            message: The message.
            waiting: The calls that it may answer, as `Encoded.waiting` of their message gave them.

        Raises:
            UnsupportedFeatureError: The message has content that the API cannot carry.
        """
        match message:
            case ToolMessage():
                return self._result(message.tool_call_id, message.content, waiting, failed=message.status == "error")
            case HumanMessage():
                return self._user(message, waiting)
            case SystemMessage():
                return self._spoken(str(message.additional_kwargs.get("__openai_role__", "system")), message.content)
            case FunctionMessage():
                return self._spoken("user", f"Output of the function {message.name}:\n{text_of(message)}")
            case ChatMessage() if message.role in _ROLES:
                return self._spoken(message.role, message.content)
            case ChatMessage():
                raise UnsupportedFeatureError(f"a message of role {message.role!r} cannot be sent: the Responses API has {sorted(_ROLES)}")
        raise UnsupportedFeatureError(f"a {type(message).__name__} cannot be sent to a chat model")

    # ------------------------------------------------------------------------------------------ user and system

    def _content(self, blocks: Any) -> str | list[Part]:
        """Content of a message: a string where it says no more than that."""
        if isinstance(blocks, str):
            return blocks
        parts = [input_part(block, self._part_keys) for block in blocks]
        if not parts:
            return ""
        return str(parts[0]["text"]) if len(parts) == 1 and parts[0].keys() == {"type", "text"} else parts

    def _spoken(self, role: str, content: Any) -> Encoded:
        """A message of a role. Items among its blocks stand where they stood."""
        if role == "assistant":
            return Encoded(encode_part(_reply_text(said(content)[0])))
        if isinstance(content, str):
            return Encoded(encode_part({"role": role, "content": content}))
        items: list[Item] = []
        blocks: list[Any] = []
        answered: list[str] = []
        for block in content:
            item = item_of(block)
            if item is None:
                blocks.append(block)
                continue
            items += [{"role": role, "content": self._content(blocks)}] if blocks else []
            blocks = []
            items.append(item)
            named = answered_id(item)
            answered += [named] if named else []
        if blocks or not items:
            items.append({"role": role, "content": self._content(blocks)})
        return Encoded(_joined(items), answers=frozenset(answered))

    def _user(self, message: HumanMessage, waiting: Waiting) -> Encoded:
        """A user message. Tool results among its blocks (Anthropic's form) become outputs before it."""
        if isinstance(message.content, str):
            return self._spoken("user", message.content)
        encoded: list[Encoded] = []
        others: list[Any] = []
        for block in message.content:
            if not isinstance(block, dict) or block.get("type") != "tool_result":
                others.append(block)
                continue
            identifier = str(block.get("tool_use_id") or "")
            encoded.append(self._result(identifier, block.get("content") or "", waiting, failed=bool(block.get("is_error"))))
            waiting = still_waiting(waiting, identifier)
        said_too = [self._spoken("user", others)] if others or not encoded else []
        answered = frozenset(name for part in said_too for name in part.answers)
        bodies = b",".join(part.body for part in [*encoded, *said_too])
        return Encoded(bodies, b",".join(part.media for part in encoded if part.media), answers=answered)

    # ------------------------------------------------------------------------------------------ results

    def _result(self, identifier: str, content: Any, waiting: Waiting, *, failed: bool) -> Encoded:
        _, wire, custom, caller = next((call for call in waiting if call[0] == identifier), (identifier, _legal(identifier), False, ""))
        output, media = self._output(content)
        if not output:
            output = _BELOW if media else _FAILED if failed else _NO_OUTPUT
        kind = f"{CUSTOM_CALL}_output" if custom else f"{FUNCTION_CALL}_output"
        called = {"caller": json.loads(caller)} if caller else {}
        return Encoded(encode_part({"type": kind, "call_id": wire, "output": output, **called}), _media(_FROM_TOOL.format(wire), media))

    def _output(self, content: Any) -> tuple[str | list[Part], list[Part]]:
        """What a tool gave, as text where it is text; and what an output cannot hold but a user message can."""
        if isinstance(content, str):
            return content, []
        parts = [input_part(block) for block in content]
        held = [part for part in parts if part["type"] in _OUTPUT_PARTS]
        media = [part for part in parts if part["type"] not in _OUTPUT_PARTS]
        if all(part["type"] == "input_text" for part in held):
            return "\n".join(part["text"] for part in held), media
        return held, media

    # ------------------------------------------------------------------------------------------ assistant

    def reply(self, message: AIMessage, taken: frozenset[str] = frozenset(), *, plain: bool = False) -> Encoded:
        """A reply of a model.

        Args:
            message: The message.
            taken: Ids that earlier calls of the input have.
            plain: Send text and calls only, whatever is known of the reply's items.
        """
        calls = calls_of(message)
        ids = _wire_ids(calls, taken)
        text, media = said(message.content)
        own = message.response_metadata.get(KEY)
        at_home = bool(self._origin) and isinstance(own, Mapping) and own.get("origin") == self._origin
        items = None
        if isinstance(own, Mapping) and at_home and self._opaque and not plain and _unchanged(own, calls):
            items = restored(own.get("items"), text, calls, ids)
        if items is not None and _renamed(items, [call.wire_id or call.id for call in calls]):
            items = None
        if items is not None:
            media = []  # what the vendor's tools made is among the items
        else:
            items = _plain_items(text or unwritten(message), calls, ids, at_home)
        pairs = tuple(
            (call.id, one, at_home and _is_custom(call), _caller(call) if at_home else "") for call, one in zip(calls, ids, strict=True)
        )
        return Encoded(
            body=_joined(items),
            media=_media(_FROM_MODEL, [wire_part(part) for part in media]),
            call_ids=frozenset(ids),
            waiting=pairs if any(custom or caller or _legal(name) != one for name, one, custom, caller in pairs) else (),
            awaits=tuple(names for call in client_calls(items) if (names := names_of(call))),
        )


def _renamed(items: Sequence[Item], call_ids: Sequence[str]) -> bool:
    """Whether a call that its server has stored would go back under another call_id than it came with."""
    calls = [item for item in items if item.get("type") in CALL_TYPES]
    return any("id" in item and item["call_id"] != call_id for item, call_id in zip(calls, call_ids, strict=True))


def _is_custom(call: ToolCallRecord) -> bool:
    return call.extra.get(CUSTOM) is True and call.args is not None


def _caller(call: ToolCallRecord) -> str:
    """The program of the vendor's that made the call, as JSON; "" where the model did."""
    caller = call.extra.get("caller")
    return json.dumps(caller, sort_keys=True) if isinstance(caller, Mapping) else ""


def _unchanged(own: Mapping[str, Any], calls: Sequence[ToolCallRecord]) -> bool:
    """Whether the message's calls are those that the model wrote."""
    written = own.get("calls") or []
    if not isinstance(written, list) or not all(isinstance(entry, Mapping) for entry in written):
        return False
    return [(entry.get("id"), entry.get("arguments")) for entry in written] == [(call.id, call.arguments) for call in calls]


def _reply_text(text: str) -> Item:
    """Words of a model. Servers that take a string from a user take only parts from an assistant (llama.cpp)."""
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text, "annotations": []}]}


def _plain_items(text: str, calls: Sequence[ToolCallRecord], ids: Sequence[str], at_home: bool) -> list[Item]:
    items: list[Item] = [_reply_text(text)] if text else []
    for call, identifier in zip(calls, ids, strict=True):
        name = legal_name(call.name)
        caller = {"caller": call.extra["caller"]} if at_home and _caller(call) else {}
        if at_home and _is_custom(call):
            written = str((call.args or {}).get(CUSTOM_ARGUMENT, ""))
            items.append({"type": CUSTOM_CALL, "call_id": identifier, "name": name, "input": written, **caller})
        else:
            items.append({"type": FUNCTION_CALL, "call_id": identifier, "name": name, "arguments": legal_arguments(call), **caller})
    return items


def _wire_ids(calls: Sequence[ToolCallRecord], taken: frozenset[str]) -> list[str]:
    """The ids that a message's calls are sent with, each used once in the whole input."""
    ids: list[str] = []
    for position, call in enumerate(calls):
        identifier = _legal(call.id) if call.id else OPENAI.ids.derived("", call.name, position)
        attempt = 0
        while identifier in taken or identifier in ids:
            attempt += 1
            identifier = OPENAI.ids.derived(call.id, call.name, position + 1000 * attempt)
        ids.append(identifier)
    return ids


def still_waiting(waiting: Waiting, identifier: str) -> Waiting:
    """The calls without the first of this id, which is answered now."""
    position = next((number for number, call in enumerate(waiting) if call[0] == identifier), None)
    return waiting if position is None else waiting[:position] + waiting[position + 1 :]


def without_answers(message: BaseMessage, call_ids: Collection[str]) -> BaseMessage:
    """The message without its answers to these calls of the vendor's tools, which are not sent: another server made them, or the reply was
    edited. What a search for tools found stays, because it declares them."""
    kept = [block for block in message.content if not _answers_one_of(item_of(block) or {}, call_ids)]
    return message.model_copy(update={"content": kept})


def _answers_one_of(item: Mapping[str, Any], call_ids: Collection[str]) -> bool:
    return answered_id(item) in call_ids and item.get("type") != _FOUND_TOOLS
