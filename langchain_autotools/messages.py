"""The run message and the messages it carries: reading them, marking them, taking them out again.

Everything here is a pure function of plain LangChain messages. The package keeps what it must remember of a message
under one key of `response_metadata`, `KEY`:

- of a turn as it leaves the accumulator: `{"calls": [...], "blocked": reason | None}`, the verdict;
- of a stored AI message: `{"calls": [{"id", "sent_id"?, "arguments", "wire_id"?, "extra"?}]}`, the arguments as the model wrote them;
  `sent_id` is what a call is sent with whose `id` was made here;
- of a run message: `{"messages": [...], "stop_reason", "turns", "usage"}`, the carrier.
"""

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage, messages_from_dict, messages_to_dict
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.utils import message_chunk_to_message
from pydantic import BaseModel

from .live import remembered

__all__ = [
    "KEY",
    "ToolCallRecord",
    "call_ids",
    "calls_of",
    "carried",
    "carry",
    "copier",
    "detached",
    "final_message",
    "new_chunk",
    "new_messages",
    "parse_arguments",
    "run_usage",
    "tells",
    "text_of",
    "without_carrier",
]

_logger = logging.getLogger("langchain_autotools")

KEY = "autotools"
"""The one key in `response_metadata` that belongs to this package."""

_OF_A_RUN = frozenset({"messages", "stop_reason", "turns", "usage"})
_UNCARRIED = "artifact not carried"
_DEEPEST = 100

_M = TypeVar("_M", bound=BaseMessage)
_B = TypeVar("_B", bound=BaseModel)
_SLOTS = ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
_new = object.__new__
_set_values, _set_known, _set_extra, _set_private = (BaseModel.__dict__[name].__set__ for name in _SLOTS)  # pydantic's own way checks


@dataclass(frozen=True)
class ToolCallRecord:
    """One tool call of an AI message.

    Attributes:
        id: The call's id; its result carries the same one.
        name: The tool's name: as the model wrote it, or, once its tool was looked for and found, the tool's own.
        arguments: The raw JSON text of the arguments, as the model wrote it.
        args: The parsed arguments, or None where the call must not be executed.
        why: Why `args` is None, in words for the model.
        wire_id: The id that the server sent, where `id` had to replace it.
        extra: Unknown keys that the server sent with the call, to be sent back to it.
        written_name: The name as the model wrote it, once its tool was looked for; None before.
        inner: The calls that this one bundles (`multi_tool_use.parallel`), once that was looked for.
    """

    id: str
    name: str
    arguments: str
    args: dict[str, Any] | None = None
    why: str | None = None
    wire_id: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    written_name: str | None = field(default=None, compare=False)
    inner: Sequence["ToolCallRecord"] = ()

    @property
    def spelling(self) -> str:
        """The name as the model wrote it: the one that stands in the history."""
        return self.name if self.written_name is None else self.written_name


def text_of(message: BaseMessage) -> str:
    """The text of a message: its string content, or its text blocks joined."""
    return message.content if isinstance(message.content, str) else str(message.text)


def _not_json(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def parse_arguments(raw: str) -> dict[str, Any] | None:
    """Read `raw` as exactly one JSON object; None if it is anything else (NaN and Infinity are not JSON)."""
    try:
        value = json.loads(raw, strict=False, parse_constant=_not_json)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _own(message: BaseMessage) -> Mapping[str, Any]:
    """What the package keeps of this message; empty where there is nothing, or something foreign."""
    own = message.response_metadata.get(KEY)
    return own if isinstance(own, Mapping) else {}


def call_ids(message: AIMessage) -> list[str | None]:
    """The ids of every call of an AI message, executable or not, in the order the model wrote them."""
    return [entry["id"] for entry in _ordered(message)]


def _records(message: BaseMessage) -> dict[Any, Mapping[str, Any]]:
    """What is recorded of each call, by id. A history may come from a client: what is no record is passed over."""
    entries = _own(message).get("calls")
    return {entry.get("id"): entry for entry in entries if isinstance(entry, Mapping)} if isinstance(entries, list) else {}


def _ordered(message: AIMessage) -> list[Any]:
    """Valid and invalid calls in the recorded order; calls without a record follow."""
    if not message.invalid_tool_calls:
        return message.tool_calls
    position = {call_id: number for number, call_id in enumerate(_records(message))}
    calls: list[Any] = [*message.tool_calls, *message.invalid_tool_calls]
    return sorted(calls, key=lambda call: position.get(call["id"], len(position)))


def calls_of(message: AIMessage) -> list[ToolCallRecord]:
    """Every call of an AI message, executable or not, in the order the model wrote them.

    The recorded argument text is believed only while it says what the message's own call says: an edited call wins.
    """
    records = _records(message)
    return [_record(call, records.get(call["id"], {})) for call in _ordered(message)]


def _record(call: Mapping[str, Any], record: Mapping[str, Any]) -> ToolCallRecord:
    raw, args, why = record.get("arguments"), call.get("args"), call.get("error")
    if call.get("type") == "invalid_tool_call":
        written = args if isinstance(args, str) else ""
        arguments = raw if raw is not None else written.removeprefix("!}")
        args, why = None, why or record.get("why") or "the arguments are not one complete JSON object"
    elif raw is None or parse_arguments(raw) != args:
        arguments = json.dumps(args, ensure_ascii=False, separators=(",", ":"))
    else:
        arguments = raw
    return ToolCallRecord(
        id=call.get("id") or "",
        name=call.get("name") or "",
        arguments=arguments,
        args=args,
        why=why,
        wire_id=record.get("wire_id"),
        extra=record.get("extra") or {},
    )


def copier(model: _B, names: Iterable[str]) -> Callable[[Mapping[str, Any]], _B]:
    """A function that makes copies of a message (or other pydantic model) with values given for some fields, none of them validated.

    What `model_copy` does, at a third of its cost: one of these is made for every chunk of a stream.

    Args:
        model: What is copied.
        names: The fields that each copy is given. Containers in other fields would be shared by all copies.
    """
    cls, values_of = model.__class__, model.__dict__.copy
    known, extra = {*model.__pydantic_fields_set__, *names}.copy, model.__pydantic_extra__

    def copy(fields: Mapping[str, Any]) -> _B:
        values = values_of()
        values.update(fields)
        return _unvalidated(cls, values, known(), None if extra is None else extra.copy())

    return copy


def _unvalidated(cls: type[_B], values: dict[str, Any], known: set[str], extra: dict[str, Any] | None) -> _B:
    made: _B = _new(cls)
    _set_values(made, values)
    _set_known(made, known)
    _set_extra(made, extra)
    _set_private(made, None)
    return made


_empty = AIMessageChunk(content="")
_empty_values = _empty.__dict__.copy
_known_of_chunk = {"content", "additional_kwargs", "response_metadata", "id"}.copy


def new_chunk(
    content: str | list[Any], extra: dict[str, Any], message_id: str | None, metadata: dict[str, Any] | None = None
) -> AIMessageChunk:
    """A chunk without calls, not validated. Its containers are its own: who gets it may change it."""
    values = _empty_values()
    values["content"] = content
    values["additional_kwargs"] = extra
    values["response_metadata"] = {} if metadata is None else metadata
    values["id"] = message_id
    values["tool_calls"], values["invalid_tool_calls"], values["tool_call_chunks"] = [], [], []
    return _unvalidated(AIMessageChunk, values, _known_of_chunk(), {})


def detached(chunk: AIMessageChunk) -> AIMessageChunk:
    """The chunk as it is now, whatever is done to this one: a copy that shares neither containers nor blocks with it."""
    values = {name: _own_container(value) for name, value in chunk.__dict__.items()}
    return _unvalidated(chunk.__class__, values, chunk.__pydantic_fields_set__.copy(), dict(chunk.__pydantic_extra__ or {}))


def _own_container(value: Any) -> Any:
    if value.__class__ is list:
        return [part.copy() if part.__class__ is dict else part for part in value]
    return value.copy() if value.__class__ is dict else value


# ---------------------------------------------------------------------------------------------- the carrier


def carried(message: BaseMessage) -> list[BaseMessage] | None:
    """The messages that a run message carries; None if it is no run message.

    A message that comes from a client may hold anything. A run makes AI and tool messages: all others are left out, or a client
    could put words into the mouth of the system or the user.
    """
    entries = _own(message).get("messages")
    if entries is None:
        return None
    messages = messages_from_dict(entries)
    kept: list[BaseMessage] = [one for one in messages if isinstance(one, AIMessage | ToolMessage)]
    if len(kept) != len(messages):
        foreign = sorted({type(one).__name__ for one in messages} - {type(one).__name__ for one in kept})
        _logger.warning("a message carries what no run makes, which is left out: %s", ", ".join(foreign))
    return kept


def carry(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """Messages as plain data for the carrier. An artifact that is not plain data is marked, not carried."""
    return messages_to_dict([_plain(message) for message in messages])


def _plain(message: BaseMessage) -> BaseMessage:
    if not isinstance(message, ToolMessage) or message.artifact is None or _is_plain(message.artifact):
        return message
    return message.model_copy(update={"artifact": {KEY: _UNCARRIED, "type": type(message.artifact).__qualname__}})


def _is_plain(value: Any, depth: int = _DEEPEST) -> bool:
    """Whether a value is plain data, not nested deeper than `depth` (or in itself)."""
    if value is None or isinstance(value, bool | int | float | str):
        return True
    if not depth:
        return False
    if type(value) is dict:
        return all(type(key) is str and _is_plain(item, depth - 1) for key, item in value.items())
    return type(value) is list and all(_is_plain(item, depth - 1) for item in value)


def without_carrier(message: _M) -> _M:
    """The message with nothing of a run in its metadata; itself where there is nothing to remove."""
    own = _own(message)
    if not _OF_A_RUN & own.keys():
        return message
    kept = {key: value for key, value in own.items() if key not in _OF_A_RUN}
    metadata = {key: value for key, value in message.response_metadata.items() if key != KEY}
    return message.model_copy(update={"response_metadata": metadata | ({KEY: kept} if kept else {})})


# ---------------------------------------------------------------------------------------------- for users


def new_messages(source: BaseMessage | BaseException) -> list[BaseMessage]:
    """The plain messages that a chunk, a run message or an error of a run brings.

    Over a stream: the messages of all chunks, one after another, are those of their sum and those of `invoke`.

    Args:
        source: What `stream` yielded or `invoke` returned (also of a model without constructor tools), or the exception that
            ended a run. Of an exception it is what had completed and no chunk has delivered; it is found through
            `__cause__`, `__context__` and exception groups too.

    Returns:
        New messages in order, ready to be appended to the history. Empty for a chunk that completes none.
    """
    if isinstance(source, BaseException):
        return _of_error(source, set()) or []
    messages = remembered(source)
    try:
        messages = carried(source) if messages is None else messages
    except AttributeError:
        raise _no_message("new_messages", source) from None
    if messages is not None:
        return messages
    if not isinstance(source, AIMessageChunk):
        return [source]
    says = source.content or source.tool_call_chunks or source.tool_calls or source.invalid_tool_calls or source.additional_kwargs
    return [_settled(message_chunk_to_message(source))] if says and source.chunk_position == "last" else []


def _settled(message: BaseMessage) -> BaseMessage:
    """The message of a sum of chunks, its calls as the turn's end had them: the chunks say more of them than messages do."""
    records = _records(message)
    if not isinstance(message, AIMessage) or not (records or message.invalid_tool_calls):
        return message
    invalid = [
        {**call, "args": str(call["args"] or "").removeprefix("!}"), "error": call["error"] or records.get(call["id"], {}).get("why")}
        for call in message.invalid_tool_calls
    ]
    entries = [{key: value for key, value in entry.items() if key != "why"} for entry in records.values()]
    own = {key: value for key, value in _own(message).items() if key != "calls"}
    if tells(entries, mixed=bool(message.tool_calls and invalid)):
        own["calls"] = entries
    metadata = {key: value for key, value in message.response_metadata.items() if key != KEY} | ({KEY: own} if own else {})
    return message.model_copy(update={"invalid_tool_calls": invalid, "response_metadata": metadata})


def tells(entries: Sequence[Mapping[str, Any]], *, mixed: bool) -> bool:
    """Whether what is recorded of the calls of a message says more than the message: more than ids, or their order among invalid ones."""
    return mixed or any(entry.keys() != {"id"} for entry in entries)


def _no_message(function: str, value: object) -> ValueError:
    return ValueError(f"{function} takes what a chat model returned, not a {type(value).__name__}")


def _of_error(error: BaseException | None, seen: set[int]) -> list[BaseMessage] | None:
    if error is None or id(error) in seen:
        return None
    seen.add(id(error))
    messages = remembered(error)
    if messages is not None:
        return messages
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    for other in (error.__cause__, error.__context__, *inner):
        messages = _of_error(other, seen)
        if messages is not None:
            return messages
    return None


def final_message(run: BaseMessage) -> AIMessage:
    """The last AI message of a run alone, without the texts of earlier turns: `model | final_message | parser`.

    Raises:
        ValueError: `run` is not an AI message.
    """
    if not isinstance(run, AIMessage):
        raise _no_message("final_message", run)
    for message in reversed(carried(run) or remembered(run) or ()):
        if isinstance(message, AIMessage):
            return message
    plain = _settled(message_chunk_to_message(run)) if isinstance(run, AIMessageChunk) else run
    return without_carrier(cast("AIMessage", plain))


def run_usage(run: BaseMessage) -> UsageMetadata | None:
    """The tokens of all turns of a run together; None where no turn reported any.

    (`usage_metadata` of a run message is its last turn's: the size of the context.)
    """
    if not isinstance(run, BaseMessage):
        raise _no_message("run_usage", run)
    usage = _own(run).get("usage")
    return usage if usage is not None else getattr(run, "usage_metadata", None)
