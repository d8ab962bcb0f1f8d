"""Conversion of LangChain messages to the items of Responses API requests.

Wire facts: parts are input_text, input_image, input_file and input_audio. A tool's output takes text, images and files. Files go as data,
as the id of an upload or as a URL. Besides PDF the API reads the formats of offices (developers.openai.com, "File inputs").
"""

import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage, SystemMessage, ToolMessage

from ...errors import UnsupportedFeatureError
from ...messages.calls import ToolCallRecord, calls_of
from ...messages.incremental import fold_over
from ...messages.metadata import own_metadata, text_of
from .._encode import encoder, sources
from . import mapper as chat
from . import responses_items as wire
from .dialect import OPENAI

_WHY = "the Responses API has no such content"

_OWN = {
    "input_image": ("image_url", "file_id", "detail"),
    "input_file": ("file_data", "file_id", "file_url", "filename", "detail"),
}
_READ = (
    *("application/vnd.openxmlformats-officedocument.", "application/vnd.oasis.opendocument.text", "application/vnd.ms-"),
    *("application/msword", "application/rtf", "application/vnd.apple."),
)

_SCREEN = "computer_call_output"
_OF_ANSWERS = ("id", "status", "acknowledged_safety_checks", "max_output_length", "caller")

ADDED_TOOLS = "additional_tools"
"""The item type that declares tools within a conversation; allowed for instructions only (openai's `AdditionalTools`)."""
_ITEM_TYPES = frozenset(
    {
        *(wire.APPROVED, _SCREEN, "local_shell_call_output", "shell_call_output", "apply_patch_call_output"),
        *(wire.FOUND_TOOLS, "item_reference", ADDED_TOOLS, "configuration_update", "compaction", "compaction_trigger"),
    }
)
"""Types of content blocks that are separate items: the caller's answers to the vendor's tools, and references."""


def item_of(block: Any) -> wire.Item | None:
    """Return the input item for a content block; None for a block that is part of a message."""
    if not isinstance(block, Mapping):
        return None
    if block.get("type") == "non_standard":
        return item_of(block.get("value"))
    if block.get("type") not in _ITEM_TYPES or (block.get("type") == _SCREEN and block.get("is_error")):
        return None  # a screen is answered by pictures only: why there is none is a text of the user's
    return cast("wire.Item", _of_result(block) if "is_error" in block else _without_index(block))


def _of_result(block: sources.Block) -> Any:
    """Return the item for a result that answers a call of the vendor's tools; `output` and `is_error` come from a tool message."""
    kind, content, failed = block["type"], block["output"], block["is_error"]
    text = text_of(HumanMessage(content))
    item: dict[str, Any] = {"type": kind, "call_id": block["call_id"], "output": text}
    if kind == wire.APPROVED:
        return {"type": kind, "approval_request_id": block["call_id"], "approve": not failed, **({"reason": text} if failed else {})}
    if kind == wire.FOUND_TOOLS:
        found = [tool for tool in content if not _is_text_part(tool)] if isinstance(content, list) and not failed else []
        return {"type": kind, "call_id": block["call_id"], "execution": "client", "status": "completed", "tools": found}
    if kind == _SCREEN:
        item["output"] = _screen(content)
    elif kind == "shell_call_output":
        streams = {"stdout": "" if failed else text, "stderr": text if failed else ""}
        item["output"] = [*map(_command_output, content)] if isinstance(content, list) else [{**streams, **_exit_outcome(int(failed))}]
    elif kind == "local_shell_call_output" and isinstance(content, list) and not text:
        item["output"] = encoder.dumps(content)
    elif kind == "apply_patch_call_output":
        item["status"] = "failed" if failed else "completed"
    fields = content[0] if isinstance(content, list) and len(content) == 1 and isinstance(content[0], Mapping) else {}
    own = fields if "output" in fields and "type" not in fields else {}  # the result has the item's fields in place of its output
    return {**item, **own, **{name: block[name] for name in _OF_ANSWERS if name in block}}


def _command_output(command: Any) -> Any:
    """Return what a command gave, from `stdout`, `stderr` and `exit_code` or `timed_out`, or from a text; the API's own object as it is."""
    if _is_text_part(command):
        return {"stdout": command["text"], "stderr": "", **_exit_outcome(0)}
    if "outcome" in command:
        return command
    outcome = {"outcome": {"type": "timeout"}} if command.get("timed_out") else _exit_outcome(command.get("exit_code") or 0)
    return {"stdout": command.get("stdout") or "", "stderr": command.get("stderr") or "", **outcome}


def _exit_outcome(exit_code: int) -> dict[str, Any]:
    return {"outcome": {"type": "exit", "exit_code": exit_code}}


def _is_text_part(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "text"


def _screen(content: Any) -> Any:
    """Return a screenshot, from its URL or a content block of any vendor."""
    if not isinstance(content, list):
        return {"type": "input_image", "image_url": content}
    block = next((part for part in content if isinstance(part, dict) and not _is_text_part(part)), {})
    return _input_part(block) if block.get("type") in ("image", "image_url") else block


def _without_index(block: sources.Block) -> Any:
    return {key: value for key, value in block.items() if key != "index"}


def _input_part(block: str | sources.Block, keys: Collection[str] = ()) -> wire.ItemPart:
    """Convert one content block to an input part.

    Args:
        block: The block, of any vendor.
        keys: Keys of a block that the server takes on a part besides the vendor's own.

    Raises:
        UnsupportedFeatureError: The API cannot carry the block.
    """
    if isinstance(block, str):
        return {"type": "input_text", "text": block}
    block = sources.unwrapped(block)
    kept: Any = {key: holder[key] for holder in sources.holders(block) for key in (chat.PROMPT_CACHE, *keys) if key in holder}
    part: wire.ItemPart = sources.convert_block(block, _text_part, _CONVERTERS, _WHY)
    own: Any = {key: block[key] for key in _OWN.get(part["type"], ()) if key in block} if block.get("type") == part["type"] else {}
    return {**own, **part, **kept}


def _text_part(text: str) -> wire.ItemPart:
    return {"type": "input_text", "text": text}


def _input_media(block: sources.Block) -> Any:
    source = sources.media_of(block)
    if source.kind == "video":
        raise sources.unsupported(block.get("type"), _WHY)
    if source.file_id:
        chat.check_id(source, block.get("type"))
    return _OF_KIND.get(source.kind, _input_file)(block, source)


def _input_image(block: sources.Block, source: sources.Source) -> Any:
    given = block.get("image_url")
    detail = sources.extra(block, "detail") or (given.get("detail") if isinstance(given, Mapping) else None)
    part: Any = {"type": "input_image", **({} if block.get("type") == "input_image" and not detail else {"detail": detail or "auto"})}
    if source.url:
        return {**part, "image_url": source.url}
    if source.file_id:
        return {**part, "file_id": source.file_id}
    if source.data is None:
        raise sources.unsupported(block.get("type"), "an image needs a URL, base64 data or the id of an uploaded file")
    mime_type = source.mime_type or sources.image_type(source.data)
    if mime_type is None:
        raise sources.unsupported(block.get("type"), "its mime_type is missing")
    return {**part, "image_url": f"data:{mime_type};base64,{source.data}"}


def _input_text(block: sources.Block, source: sources.Source) -> Any:
    is_here = source.text is not None or source.data is not None
    return _text_part(sources.document_text(block, source)) if is_here else _input_file(block, source)


def _input_file(block: sources.Block, source: sources.Source) -> Any:
    more: Any = {"detail": block["detail"]} if block.get("type") == "input_file" and block.get("detail") else {}
    if source.file_id:
        return {"type": "input_file", "file_id": source.file_id, **more}
    if source.url:
        return {"type": "input_file", "file_url": source.url, **more}
    if source.data is None:
        raise sources.unsupported(block.get("type"), "a file needs a URL, base64 data or the id of an uploaded file")
    if source.kind != "pdf" and not source.essence.startswith(_READ):
        raise sources.unsupported(block.get("type"), f"the API reads no {source.essence or 'data of an unknown type'}")
    return {"type": "input_file", **chat.file_data(block, source), **more}


_OF_KIND: Mapping[str, Callable[[sources.Block, sources.Source], Any]] = {
    "image": _input_image,
    "audio": lambda block, source: {"type": "input_audio", "input_audio": chat.input_audio(block, source)},
    "text": _input_text,
}
_CONVERTERS: dict[str, Callable[[sources.Block], Any]] = {
    "search_result": lambda block: _text_part(sources.search_result_text(block)),
    "media": _input_media,
}


# ---------------------------------------------------------------------------------------------- encode
# Conversion of messages of any vendor to input items of the Responses API.
#
# Each message is encoded alone, so that it can be remembered; what it asks of its neighbours is in `Encoded`. A reply of the same
# endpoint and model goes back as the items that it was (see `responses_items`); any other as its text and its calls.
#
# Wire facts: a call's `call_id` pairs it with its output, has at most 64 characters and must be unique in the whole input (wire quirks
# P-01, H-05, H-07). Outputs are text, or a list of input parts (wire quirk P-10). An item's own `id` is something else and is never made up
# here.


_LONGEST_ID = 64
_ROLES = frozenset({"user", "assistant", "system", "developer"})
_INSTRUCTING = frozenset({"system", "developer"})
_CUSTOM_OUTPUT = f"{wire.CUSTOM_CALL}_output"
_A_RESULT = "the result of a call is a ToolMessage"
_NOT_SAID = {
    **dict.fromkeys((_CUSTOM_OUTPUT, f"{wire.FUNCTION_CALL}_output"), _A_RESULT),
    "program_output": "it goes back with the reply that it is in",
}
_OUTPUT_PARTS = frozenset({"input_text", "input_image", "input_file"})


@dataclass(frozen=True, slots=True)
class EncodedItems:
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
    calls: tuple[chat.CallId, ...] = ()
    awaits: tuple[frozenset[str], ...] = ()
    answers: frozenset[str] = frozenset()


def _legal_id(identifier: str) -> str:
    return identifier if 0 < len(identifier) <= _LONGEST_ID else OPENAI.ids.derived(identifier)


class ItemEncoder(encoder.MessageEncoder[EncodedItems, chat.CallId]):
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

    def _other(self, message: BaseMessage, role: str) -> EncodedItems:
        """Encode a message with a role. Items among its blocks keep their places."""
        content = message.content
        if isinstance(message, SystemMessage):
            role = str(message.additional_kwargs.get("__openai_role__", role))
        if isinstance(message, ChatMessage) and role not in _ROLES:
            raise UnsupportedFeatureError(f"a message of role {role!r} cannot be sent: the Responses API has {sorted(_ROLES)}")
        if role == "assistant":
            return EncodedItems(encoder.encode(_assistant_item([_output_text(self._spoken(message)[0])])))
        if isinstance(content, str):
            return EncodedItems(encoder.encode({"role": role, "content": content}))
        items: list[wire.Item] = []
        blocks: list[Any] = []
        for block in sources.expanded(content):
            item = item_of(block)
            if isinstance(block, dict) and block.get("type") in _NOT_SAID and "is_error" not in block:
                raise sources.unsupported(block["type"], _NOT_SAID[block["type"]])
            if item is None:
                blocks.append(block)
                continue
            if item["type"] == ADDED_TOOLS and role not in _INSTRUCTING:
                raise sources.unsupported(ADDED_TOOLS, f"tools are added by a SystemMessage, not by one of role {role!r}")
            items += [self._message_item(role, blocks)] if blocks else []
            blocks = []
            items.append(item)
        if blocks or not items:
            items.append(self._message_item(role, blocks))
        answers = frozenset(named for item in items if (named := wire.answered_id(item)))
        return EncodedItems(b",".join(map(encoder.encode, items)), answers=answers)

    def _message_item(self, role: str, blocks: Sequence[str | dict[Any, Any]]) -> wire.Item:
        return {"role": role, "content": chat.plain_content([_input_part(block, self._part_keys) for block in blocks])}

    # ------------------------------------------------------------------------------------------ results

    def _result(self, message: ToolMessage, call: chat.CallId | None) -> EncodedItems:
        call = call or chat.CallId(message.tool_call_id, _legal_id(message.tool_call_id))
        output, media = self._tool_output(message)
        if not output:
            output = encoder.BELOW if media else encoder.empty_output(failed=message.status == "error")
        kind = _CUSTOM_OUTPUT if call.custom else f"{wire.FUNCTION_CALL}_output"
        item: wire.Item = {"type": kind, "call_id": call.sent, "output": output}
        if call.caller:
            item["caller"] = json.loads(call.caller)
        return EncodedItems(encoder.encode(item), chat.encode_media(_text_part(sources.FROM_TOOL.format(call.sent)), media))

    def _tool_output(self, message: ToolMessage) -> tuple[str | list[wire.ItemPart], list[wire.ItemPart]]:
        """Return a tool's output, as a string if it is text, and the parts that only a user message can hold."""
        if isinstance(message.content, str):
            return message.content, []
        parts = self._carried(message, sources.expanded(message.content), _input_part, _text_part)
        held = [part for part in parts if part["type"] in _OUTPUT_PARTS]
        media = [part for part in parts if part["type"] not in _OUTPUT_PARTS]
        if all(part["type"] == "input_text" and part.keys() == {"type", "text"} for part in held):
            return "\n".join(str(part["text"]) for part in held), media
        return held, media

    # ------------------------------------------------------------------------------------------ assistant

    def _assistant(self, message: AIMessage, taken: frozenset[str] = frozenset(), *, plain: bool = False) -> EncodedItems:
        """Encode an AI message.

        Args:
            message: The message.
            taken: Ids that earlier calls of the input have.
            plain: Send text and calls only, whatever is known of the reply's items.
        """
        calls = calls_of(message)
        ids = _wire_ids(calls, taken)
        message, refusal = encoder.apart_from_refusal(message)
        text, media = self._spoken(message)
        own = own_metadata(message)
        same_origin = self.is_same_origin(message)
        items = None
        if same_origin and self._opaque and not plain and _are_as_written(own, calls):
            items = wire.restored(own.get("items"), text, calls, ids)
        if items is not None and _renamed(items, [call.wire_id or call.id for call in calls]):
            items = None
        if items is not None:
            media = []  # what the vendor's tools made is among the items
        else:
            items = _plain_items(text or encoder.fallback_text(message), refusal, calls, ids, same_origin)
        pairs = tuple(
            chat.CallId(call.id, one, same_origin and chat.is_custom(call), _caller(call) if same_origin else "")
            for call, one in zip(calls, ids, strict=True)
        )
        return EncodedItems(
            body=b",".join(map(encoder.encode, items)),
            media=chat.encode_media(_text_part(sources.FROM_MODEL), media),
            call_ids=frozenset(ids),
            calls=pairs if any(call.custom or call.caller or _legal_id(call.known) != call.sent for call in pairs) else (),
            awaits=tuple(names for call in wire.client_calls(items) if (names := wire.names_of(call))),
        )

    def _spoken(self, message: BaseMessage) -> tuple[str, list[wire.ItemPart]]:
        """Return an AI message's text, and what else it made, for a message of the user's."""
        if isinstance(message.content, str):
            return message.content, []
        parts = self._carried(message, chat.visible(message.content), _input_part, chat.said_part)
        text = "".join(str(part["text"]) for part in parts if part["type"] == "input_text")
        return text, [
            _text_part(str(part["text"])) if part["type"] == chat.SAID else part for part in parts if part["type"] != "input_text"
        ]


def _renamed(items: Sequence[wire.Item], call_ids: Sequence[str]) -> bool:
    """Whether a call that its server has stored would be sent back with another call_id."""
    calls = [item for item in items if item.get("type") in wire.CALL_TYPES]
    return any("id" in item and item["call_id"] != call_id for item, call_id in zip(calls, call_ids, strict=True))


def _caller(call: ToolCallRecord) -> str:
    """Return the vendor's program that made the call, as JSON; "" if the model made it."""
    caller = call.extra.get("caller")
    return json.dumps(caller, sort_keys=True) if isinstance(caller, Mapping) else ""


def _are_as_written(own: Mapping[str, Any], calls: Sequence[ToolCallRecord]) -> bool:
    """Whether the message's calls are those that the model wrote."""
    written = own.get("calls") or []
    if not isinstance(written, list) or not all(isinstance(entry, Mapping) for entry in written):
        return False
    return [(entry.get("id"), entry.get("arguments")) for entry in written] == [(call.id, call.arguments) for call in calls]


def _assistant_item(parts: list[wire.ItemPart]) -> wire.Item:
    """Return what an assistant said as an item. Some servers accept a string from a user but only parts from an assistant (llama.cpp)."""
    return {"type": "message", "role": "assistant", "content": parts}


def _output_text(text: str) -> wire.ItemPart:
    return {"type": "output_text", "text": text, "annotations": []}


def _plain_items(text: str, refusal: str, calls: Sequence[ToolCallRecord], ids: Sequence[str], same_origin: bool) -> list[wire.Item]:
    parts: list[wire.ItemPart] = [_output_text(text)] if text else []
    parts += [{"type": "refusal", "refusal": refusal}] if refusal else []
    items = [_assistant_item(parts)] if parts else []
    for call, identifier in zip(calls, ids, strict=True):
        item: wire.Item = {"type": wire.FUNCTION_CALL, "call_id": identifier, "name": chat.legal_name(call.name)}
        if same_origin and chat.is_custom(call):
            item |= {"type": wire.CUSTOM_CALL, "input": chat.custom_input(call)}
        else:
            item["arguments"] = encoder.legal_arguments(call)
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


def _without_answers(message: BaseMessage, call_ids: Collection[str]) -> BaseMessage:
    """Return the message without its answers to calls of the vendor's tools that are not sent.

    Such calls come from another server or an edited reply. The output of a tool search stays, because it declares tools.

    Args:
        message: The message.
        call_ids: The ids of the calls.
    """
    items = [(block, item_of(block) or {}) for block in message.content]
    kept = [block for block, item in items if wire.answered_id(item) not in call_ids or item.get("type") == wire.FOUND_TOOLS]
    return message.model_copy(update={"content": kept})


# ---------------------------------------------------------------------------------------------- mapper
# Conversion of LangChain messages to the items of Responses API requests.


_logger = logging.getLogger("langchain_autotools")


class ResponsesMapper(ItemEncoder):
    """Encodes requests. Safe for use by any number of threads."""

    def encode_request(self, messages: Sequence[BaseMessage], params: Mapping[str, Any], *, after: int = 0) -> bytes:
        """Encode a request.

        Args:
            messages: The history.
            params: Everything else, in the wire's names.
            after: The number of messages that the server has stored (`previous_response_id`); they are not sent.

        Raises:
            ConfigurationError: A parameter is no JSON value.
            UnsupportedFeatureError: A message has content that the API cannot carry.
        """
        continued = after > 0 or any(params.get(name) for name in ("previous_response_id", "conversation", "prompt"))
        items = fold_over(messages, (self, continued), partial(_Items, self, continued), after or None)
        if after:
            items = items.copy()
            items.follow(messages[after:])
        if items.looks_ahead:
            items = _Items(self, continued, messages)
            items.read(messages[:after])
            items.follow(messages[after:])
        return encoder.request_body(params, "input", [*filter(None, items.all())])

    def reply_as(self, message: AIMessage, taken: frozenset[str], *, plain: bool) -> EncodedItems:
        """Encode a reply, as of `ItemEncoder`; the same object as before if it has not changed."""
        context = (taken, plain)
        encoded = self._memo.get(message, context)
        return encoded or self._put(message, context, self._assistant(message, taken, plain=plain))


class _Items:
    """A fold of the input items of messages.

    Args:
        mapper: Encodes each message.
        continued: Whether the request continues a conversation that the server has stored.
        messages: All messages, where a reply calls tools of the vendor's that only a later message may answer.

    Attributes:
        looks_ahead: Whether a reply does, but the messages are not known: what was read is of no use.
    """

    __slots__ = (
        *("_awaited", "_bodies", "_continued", "_count", "_mapper", "_media", "_messages", "_used", "_waiting"),
        "looks_ahead",
    )

    def __init__(self, mapper: ResponsesMapper, continued: bool, messages: Sequence[BaseMessage] | None = None) -> None:
        self._mapper, self._continued, self._messages = mapper, continued, messages
        self.looks_ahead = False
        self._bodies: list[bytes] = []
        self._media: list[bytes] = []
        self._used: set[str] = set()
        self._awaited: set[str] = set()
        self._waiting: tuple[chat.CallId, ...] = ()
        self._count = 0

    def copy(self) -> "_Items":
        """Return an independent copy."""
        made = _Items(self._mapper, self._continued)
        made.looks_ahead, made._waiting, made._count = self.looks_ahead, self._waiting, self._count
        made._bodies, made._media, made._used, made._awaited = [*self._bodies], [*self._media], {*self._used}, {*self._awaited}
        return made

    def read(self, messages: Sequence[BaseMessage]) -> None:
        """Read the next messages."""
        for message in messages:
            if self._media and not isinstance(message, ToolMessage):
                self._bodies.append(chat.user_message(self._media))
                self._media = []
            if isinstance(message, AIMessage):
                encoded = self._reply(message)
                self._used |= encoded.call_ids
                self._awaited.update(*encoded.awaits)
                self._waiting = encoded.calls
            else:
                encoded = self._other(message)
                if isinstance(message, ToolMessage):
                    self._waiting = encoder.without_call(message.tool_call_id, self._waiting)
            self._bodies.append(encoded.body)
            self._media += [encoded.media] if encoded.media else []
            self._count += 1

    def follow(self, messages: Sequence[BaseMessage]) -> None:
        """Read the messages that follow those that the server has stored, whose items are not sent."""
        self._bodies, self._media = [], []
        self.read(messages)

    def all(self) -> list[bytes]:
        """Return the items of a request that ends here."""
        return [*self._bodies, chat.user_message(self._media)] if self._media else self._bodies

    def _other(self, message: BaseMessage) -> EncodedItems:
        """Encode a message that is no reply, without answers to calls that are not sent."""
        encoded = self._mapper.remembered(message, self._waiting)
        if self._continued or encoded.answers <= self._awaited:
            return encoded
        rest = _without_answers(message, encoded.answers - self._awaited)
        return self._mapper.encode(rest, self._waiting) if rest.content else EncodedItems(b"")

    def _reply(self, message: AIMessage) -> EncodedItems:
        """Encode a reply with ids that no earlier call has, without unanswered calls of the vendor's tools."""
        encoded = self._mapper.reply_as(message, frozenset(), plain=False)
        taken = frozenset(self._used & encoded.call_ids)
        if taken:
            encoded = self._mapper.reply_as(message, frozenset(self._used), plain=False)
        if not encoded.awaits or self._messages is None:
            self.looks_ahead = self.looks_ahead or bool(encoded.awaits)
            return encoded
        answered = self._answered(self._messages)
        if not all(names & answered for names in encoded.awaits):
            _logger.warning("calls of the vendor's tools are not sent, because no message answers them: %s", _listed(encoded.awaits))
            encoded = self._mapper.reply_as(message, frozenset(self._used) if taken else taken, plain=True)
        return encoded

    def _answered(self, messages: Sequence[BaseMessage]) -> frozenset[str]:
        """Return the calls of the vendor's tools that later messages answer."""
        others = (message for message in messages[self._count + 1 :] if not isinstance(message, AIMessage | ToolMessage))
        return frozenset(name for message in others for name in self._mapper.encode(message).answers)


def _listed(awaits: Sequence[frozenset[str]]) -> str:
    return ", ".join(min(names) for names in awaits)
