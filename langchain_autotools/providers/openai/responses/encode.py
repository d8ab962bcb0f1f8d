"""Conversion of messages of any vendor to input items of the Responses API.

Each message is encoded alone, so that it can be remembered; what it asks of its neighbours is in `Encoded`. A reply of the same
endpoint and model goes back as the items that it was (see `items`); any other as its text and its calls.

Wire facts: a call's `call_id` pairs it with its output, has at most 64 characters and must be unique in the whole input
(wire quirks P-01, H-05, H-07); outputs are text, or a list of input parts (wire quirk P-10); an item's own `id` is something else and
is never made up here.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, SystemMessage, ToolMessage

from ....errors import UnsupportedFeatureError
from ....messages.calls import ToolCallRecord, calls_of
from ....messages.metadata import own_metadata
from ..._encode.calls import BELOW, empty_output, legal_arguments
from ..._encode.encoder import MessageEncoder
from ..._encode.json_text import encode
from ..._encode.sources import FROM_TOOL, unsupported
from ..calls import CallId, custom_input, is_custom, legal_name
from ..dialect import OPENAI
from ..encode import FROM_MODEL, assistant_content, encode_media, fallback_text, plain_content
from .blocks import ADDED_TOOLS, input_part, item_of, wire_part
from .client_calls import FOUND_TOOLS, answered_id, client_calls, names_of
from .items import CALL_TYPES, CUSTOM_CALL, FUNCTION_CALL, restored
from .wire import Item, ItemPart

_LONGEST_ID = 64
_ROLES = frozenset({"user", "assistant", "system", "developer"})
_INSTRUCTING = frozenset({"system", "developer"})
_CUSTOM_OUTPUT = f"{CUSTOM_CALL}_output"
_A_RESULT = "the result of a call is a ToolMessage"
_NOT_SAID = {
    **dict.fromkeys((_CUSTOM_OUTPUT, f"{FUNCTION_CALL}_output"), _A_RESULT),
    "program_output": "it goes back with the reply that it is in",
}
_OUTPUT_PARTS = frozenset({"input_text", "input_image", "input_file"})


@dataclass(frozen=True, slots=True)
class Encoded:
    """One message on the wire.

    Attributes:
        body: Its items as JSON, joined by commas; empty where a message says nothing.
        media: Input parts, joined by commas, for a user message after this turn's results.
        call_ids: The ids that its calls are sent with.
        calls: Its calls, where their results must know more than their own id.
        awaits: The ids of each call of the vendor's tools that the caller must answer.
        answers: Ids of such calls that this message answers.
    """

    body: bytes
    media: bytes = b""
    call_ids: frozenset[str] = frozenset()
    calls: tuple[CallId, ...] = ()
    awaits: tuple[frozenset[str], ...] = ()
    answers: frozenset[str] = frozenset()


def _legal_id(identifier: str) -> str:
    return identifier if 0 < len(identifier) <= _LONGEST_ID else OPENAI.ids.derived(identifier)


class ItemEncoder(MessageEncoder[Encoded, CallId]):
    """Encodes messages of any vendor as input items, each message alone.

    Args:
        origin: Digest of the endpoint and the model. Reasoning and items of the vendor's tools go back only to the origin
            they came from; "" keeps none.
        part_keys: Keys of content blocks that this server takes besides the vendor's own.
        opaque: Whether replies go back as the items that they were, where that is possible; else as text and calls.
    """

    def __init__(self, *, origin: str = "", part_keys: Collection[str] = (), opaque: bool = True) -> None:
        super().__init__(origin)
        self._part_keys = tuple(dict.fromkeys(part_keys))
        self._opaque = opaque

    # ------------------------------------------------------------------------------------------ user and system

    def _other(self, message: BaseMessage, role: str) -> Encoded:
        """Encode a message with a role. Items among its blocks keep their places."""
        content = message.content
        if isinstance(message, SystemMessage):
            role = str(message.additional_kwargs.get("__openai_role__", role))
        if isinstance(message, ChatMessage) and role not in _ROLES:
            raise UnsupportedFeatureError(f"a message of role {role!r} cannot be sent: the Responses API has {sorted(_ROLES)}")
        if role == "assistant":
            return Encoded(encode(_assistant_item(assistant_content(content)[0])))
        if isinstance(content, str):
            return Encoded(encode({"role": role, "content": content}))
        items: list[Item] = []
        blocks: list[Any] = []
        for block in content:
            item = item_of(block)
            if isinstance(block, dict) and block.get("type") in _NOT_SAID and "is_error" not in block:
                raise unsupported(block["type"], _NOT_SAID[block["type"]])
            if item is None:
                blocks.append(block)
                continue
            if item["type"] == ADDED_TOOLS and role not in _INSTRUCTING:
                raise unsupported(ADDED_TOOLS, f"tools are added by a SystemMessage, not by one of role {role!r}")
            items += [self._message_item(role, blocks)] if blocks else []
            blocks = []
            items.append(item)
        if blocks or not items:
            items.append(self._message_item(role, blocks))
        answers = frozenset(named for item in items if (named := answered_id(item)))
        return Encoded(b",".join(map(encode, items)), answers=answers)

    def _message_item(self, role: str, blocks: Sequence[str | dict[Any, Any]]) -> Item:
        return {"role": role, "content": plain_content([input_part(block, self._part_keys) for block in blocks])}

    # ------------------------------------------------------------------------------------------ results

    def _result(self, message: ToolMessage, call: CallId | None) -> Encoded:
        call = call or CallId(message.tool_call_id, _legal_id(message.tool_call_id))
        output, media = self._tool_output(message.content)
        if not output:
            output = BELOW if media else empty_output(failed=message.status == "error")
        kind = _CUSTOM_OUTPUT if call.custom else f"{FUNCTION_CALL}_output"
        item: Item = {"type": kind, "call_id": call.sent, "output": output}
        if call.caller:
            item["caller"] = json.loads(call.caller)
        return Encoded(encode(item), encode_media(_text_part(FROM_TOOL.format(call.sent)), media))

    def _tool_output(self, content: Any) -> tuple[str | list[ItemPart], list[ItemPart]]:
        """Return a tool's output, as a string if it is text, and the parts that only a user message can hold."""
        if isinstance(content, str):
            return content, []
        parts = [input_part(block) for block in content]
        held = [part for part in parts if part["type"] in _OUTPUT_PARTS]
        media = [part for part in parts if part["type"] not in _OUTPUT_PARTS]
        if all(part["type"] == "input_text" and part.keys() == {"type", "text"} for part in held):
            return "\n".join(str(part["text"]) for part in held), media
        return held, media

    # ------------------------------------------------------------------------------------------ assistant

    def _assistant(self, message: AIMessage, taken: frozenset[str] = frozenset(), *, plain: bool = False) -> Encoded:
        """Encode an AI message.

        Args:
            message: The message.
            taken: Ids that earlier calls of the input have.
            plain: Send text and calls only, whatever is known of the reply's items.
        """
        calls = calls_of(message)
        ids = _wire_ids(calls, taken)
        text, media = assistant_content(message.content)
        own = own_metadata(message)
        same_origin = self.is_same_origin(message)
        items = None
        if same_origin and self._opaque and not plain and _unchanged(own, calls):
            items = restored(own.get("items"), text, calls, ids)
        if items is not None and _renamed(items, [call.wire_id or call.id for call in calls]):
            items = None
        if items is not None:
            media = []  # what the vendor's tools made is among the items
        else:
            items = _plain_items(text or fallback_text(message), calls, ids, same_origin)
        pairs = tuple(
            CallId(call.id, one, same_origin and is_custom(call), _caller(call) if same_origin else "")
            for call, one in zip(calls, ids, strict=True)
        )
        return Encoded(
            body=b",".join(map(encode, items)),
            media=encode_media(_text_part(FROM_MODEL), [wire_part(part) for part in media]),
            call_ids=frozenset(ids),
            calls=pairs if any(call.custom or call.caller or _legal_id(call.known) != call.sent for call in pairs) else (),
            awaits=tuple(names for call in client_calls(items) if (names := names_of(call))),
        )


def _renamed(items: Sequence[Item], call_ids: Sequence[str]) -> bool:
    """Whether a call that its server has stored would be sent back with another call_id."""
    calls = [item for item in items if item.get("type") in CALL_TYPES]
    return any("id" in item and item["call_id"] != call_id for item, call_id in zip(calls, call_ids, strict=True))


def _caller(call: ToolCallRecord) -> str:
    """Return the vendor's program that made the call, as JSON; "" if the model made it."""
    caller = call.extra.get("caller")
    return json.dumps(caller, sort_keys=True) if isinstance(caller, Mapping) else ""


def _unchanged(own: Mapping[str, Any], calls: Sequence[ToolCallRecord]) -> bool:
    """Whether the message's calls are those that the model wrote."""
    written = own.get("calls") or []
    if not isinstance(written, list) or not all(isinstance(entry, Mapping) for entry in written):
        return False
    return [(entry.get("id"), entry.get("arguments")) for entry in written] == [(call.id, call.arguments) for call in calls]


def _text_part(text: str) -> ItemPart:
    return {"type": "input_text", "text": text}


def _assistant_item(text: str) -> Item:
    """Return an assistant text as an item. Some servers accept a string from a user but only parts from an assistant (llama.cpp)."""
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text, "annotations": []}]}


def _plain_items(text: str, calls: Sequence[ToolCallRecord], ids: Sequence[str], same_origin: bool) -> list[Item]:
    items = [_assistant_item(text)] if text else []
    for call, identifier in zip(calls, ids, strict=True):
        item: Item = {"type": FUNCTION_CALL, "call_id": identifier, "name": legal_name(call.name)}
        if same_origin and is_custom(call):
            item |= {"type": CUSTOM_CALL, "input": custom_input(call)}
        else:
            item["arguments"] = legal_arguments(call)
        if same_origin and _caller(call):
            item["caller"] = call.extra["caller"]
        items.append(item)
    return items


def _wire_ids(calls: Sequence[ToolCallRecord], taken: frozenset[str]) -> list[str]:
    """Return the wire ids of a message's calls, each unique in the whole input."""
    ids: list[str] = []
    for position, call in enumerate(calls):
        identifier = _legal_id(call.id) if call.id else OPENAI.ids.derived("", call.name, position)
        attempt = 0
        while identifier in taken or identifier in ids:
            attempt += 1
            identifier = OPENAI.ids.derived(call.id, call.name, position + 1000 * attempt)
        ids.append(identifier)
    return ids


def without_answers(message: BaseMessage, call_ids: Collection[str]) -> BaseMessage:
    """Return the message without its answers to calls of the vendor's tools that are not sent.

    Such calls come from another server or an edited reply. The output of a tool search stays, because it declares tools.

    Args:
        message: The message.
        call_ids: The ids of the calls.
    """
    kept = [block for block in message.content if not _answers_one_of(item_of(block) or {}, call_ids)]
    return message.model_copy(update={"content": kept})


def _answers_one_of(item: Item, call_ids: Collection[str]) -> bool:
    return answered_id(item) in call_ids and item.get("type") != FOUND_TOOLS
