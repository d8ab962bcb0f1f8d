"""Conversion of a tool's return value to the content of its tool message."""

import dataclasses
import inspect
import json
import logging
import math
from collections.abc import AsyncIterator, ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from enum import Enum
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, convert_to_messages
from langchain_core.messages.tool import ToolOutputMixin
from langchain_core.tools import ToolException
from pydantic import BaseModel
from pydantic.v1 import BaseModel as BaseModelV1

from ..errors import ConfigurationError
from ..messages.calls import ToolCallRecord
from ..messages.endings import HoldsRun, run_message_of
from ..messages.metadata import own_metadata
from ..strict_json import mend_surrogates
from .nested_runs import run_content

_logger = logging.getLogger("langchain_autotools")

NO_OUTPUT = "(no output)"
"""The text of an empty result: several servers reject an empty one."""

# The content blocks that LangChain keeps as blocks in a tool message, and the keys of which each has at least one. A list of
# ordinary data may well use the word `type` for something else.
_FILE_KEYS = frozenset({"base64", "data", "file", "file_id", "source", "source_type", "url"})
_BLOCK_KEYS: Mapping[str, frozenset[str]] = {
    "text": frozenset({"text"}),
    "image_url": frozenset({"image_url"}),
    "image": _FILE_KEYS | {"image_url"},
    "file": _FILE_KEYS,
    "document": _FILE_KEYS,
    "json": frozenset({"json"}),
    "search_result": frozenset({"content", "source"}),
    "custom_tool_call_output": frozenset({"output"}),
}


def answered(call: ToolCallRecord, output: Any) -> tuple[ToolMessage, tuple[Any, ...]]:
    """Return a tool's message, adapted to the call, and the graph commands that came with it.

    Raises:
        ConfigurationError: graph commands came without exactly one message for this call.
    """
    if isinstance(output, ToolMessage):
        return _fitted(call, output), ()
    parts = list(output) if isinstance(output, list | tuple) else [output]
    if not parts or not all(isinstance(part, ToolOutputMixin) for part in parts):
        content = output_content(output)
        message = content if isinstance(content, ToolMessage) else ToolMessage(content=content, tool_call_id=call.id)
        return _fitted(call, message), ()
    commands = tuple(part for part in parts if not isinstance(part, ToolMessage))
    messages = [message for part in parts for message in _messages_in(part)]
    own = [message for message in messages if isinstance(message, ToolMessage) and message.tool_call_id == call.id]
    if len(own) != 1:
        raise ConfigurationError(
            f"the tool returned {len(own)} messages for this call where exactly one is needed. A chat model cannot apply a "
            "graph's Command; it takes the ToolMessage with the call's id from its update"
        )
    return _fitted(call, own[0]), commands


def _messages_in(part: Any) -> Sequence[BaseMessage]:
    """Return the messages in a tool message (itself) or in a graph command."""
    if isinstance(part, ToolMessage):
        return [part]
    found = _update_of(part).get("messages")
    values = list(found) if isinstance(found, list | tuple) else [] if found is None else [found]
    try:
        return convert_to_messages(values)
    except (ValueError, TypeError, NotImplementedError):
        return [value for value in values if isinstance(value, BaseMessage)]


def _update_of(command: Any) -> Mapping[str, Any]:
    """Return a graph command's update by state names, from any form: a mapping, pairs, messages, an object."""
    update = getattr(command, "update", None)
    if isinstance(update, Mapping):
        return update
    if isinstance(update, list | tuple):
        pairs = all(isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str) for item in update)
        return dict(update) if pairs else {"messages": update}
    return {} if update is None else dict(vars(update)) if hasattr(update, "__dict__") else {"messages": None}


def preceded(message: ToolMessage, note: str) -> ToolMessage:
    """Return the message with a note before its content."""
    content = message.content
    noted = f"{note}\n\n{content}" if isinstance(content, str) else [{"type": "text", "text": note}, *content]
    return message.model_copy(update={"content": noted})


def does_more(command: Any) -> bool:
    """Whether a graph command contains more than messages, which a model cannot execute."""
    return bool(_update_of(command).keys() - {"messages"} or command.goto or command.resume is not None)


def _fitted(call: ToolCallRecord, message: ToolMessage) -> ToolMessage:
    """Return the message with the call's id and name, and with content that can be sent."""
    content = _sendable(message.content)
    if message.tool_call_id == call.id and message.name == call.spelling and message.content is content:
        return message
    return message.model_copy(update={"tool_call_id": call.id, "name": call.spelling, "content": content})


def _sendable(content: Any) -> Any:
    if isinstance(content, str):
        return mend_surrogates(content) if content.strip() else NO_OUTPUT
    if not content:
        return NO_OUTPUT
    clean = _clean(content)
    return content if clean == content else clean


def _clean(value: Any) -> Any:
    """Return plain data that JSON and UTF-8 can carry: without lone surrogates and without NaN or infinities."""
    if isinstance(value, str):
        return mend_surrogates(value)
    if isinstance(value, float) and not math.isfinite(value):
        return _NOT_FINITE[str(float(value))]
    if isinstance(value, Mapping):
        return {mend_surrogates(key) if isinstance(key, str) else str(key): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return _clean(_leaf(value))


_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def output_content(value: Any) -> Any:
    """Return a tool's value as message content: text and content blocks unchanged, anything else as JSON.

    Messages and graph commands are returned unchanged, for `answered`.

    Raises:
        ToolException: it is, or holds, something that should have been awaited.
    """
    _check_finished(value)
    if isinstance(value, _READ_TO_THE_END):
        value = list(value)
    if value is None:
        return NO_OUTPUT
    if isinstance(value, str):
        return value if type(value) is str else str(value.value) if isinstance(value, Enum) else str.__str__(value)
    if isinstance(value, ToolOutputMixin):
        return value
    if isinstance(value, list | tuple) and value:
        if all(isinstance(item, ToolOutputMixin) for item in value):
            return list(value)
        if any(isinstance(item, dict) for item in value) and all(_is_block(item) for item in value):
            return list(value)
    if (run := run_message_of(value)) is not None:  # a model or agent as a tool: its answer, not its metadata
        return _run_answer(value, run)
    if isinstance(value, BaseMessage):
        return str(value.text) or NO_OUTPUT
    return _json(value)


def _run_answer(value: Any, run: AIMessage) -> Any:
    """Return the output of a run: the parsed value, else its text."""
    if isinstance(value, HoldsRun) and value.output is not None:
        return output_content(value.output)
    return run_content(run) or NO_OUTPUT


_READ_TO_THE_END = (Iterator, KeysView, ValuesView, ItemsView)


def _check_finished(value: Any) -> None:
    if inspect.isawaitable(value) or isinstance(value, AsyncIterator):
        if inspect.iscoroutine(value):
            value.close()  # else Python warns that it was never awaited, somewhere else
        what = type(value).__name__
        raise ToolException(f"the tool returned an unfinished {what!r}, not a result: make it an `async def` that awaits or collects it")


def _is_block(item: Any) -> bool:
    if not isinstance(item, dict):
        return isinstance(item, str)
    kind = item.get("type")
    return isinstance(kind, str) and not _BLOCK_KEYS.get(kind, frozenset()).isdisjoint(item)


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_leaf_at_first)
    except (TypeError, ValueError, RecursionError):
        pass
    try:  # keys that are no text, NaN, iterators, or something that contains itself
        return json.dumps(_clean(value), ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return str(value)


def _leaf(value: Any) -> Any:
    """Return a value that JSON does not support as one that it does."""
    _check_finished(value)
    if isinstance(value, BaseModel | HoldsRun):
        return _dumped(value)
    if isinstance(value, BaseModelV1):
        return value.dict()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)  # the order of a set differs between processes
    if isinstance(value, (Sequence, *_READ_TO_THE_END)) and not isinstance(value, bytes | bytearray | memoryview):
        return list(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, bytes | bytearray):
        return value.decode("utf-8", "replace")
    if hasattr(value, "tolist"):  # arrays and scalars of numpy and its like
        return value.tolist()
    return _text_of_object(value)


def _text_of_object(value: Any) -> str:
    """Return an object's text by its class; only the type's name for default texts such as `<Place object at 0x7f>`."""
    kind: Any = type(value)
    if kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__:
        _logger.warning(
            "a tool returned an object of type %s, which the model reads as %s: return text or plain data", kind.__name__, value
        )
    return str(value)


def _leaf_at_first(value: Any) -> Any:
    """Like `_leaf`, for a first pass that may be repeated, so that iterators are not consumed."""
    if isinstance(value, Iterator):
        raise TypeError(type(value).__name__)
    return _leaf(value)


def _dumped(value: BaseModel | HoldsRun) -> Any:
    if isinstance(value, HoldsRun) or (isinstance(value, AIMessage) and "stop_reason" in own_metadata(value)):
        content = output_content(value)  # not the carrier: that is nothing for a model to read
        return content.content if isinstance(content, ToolMessage) else content
    try:
        return value.model_dump(mode="json")
    except Exception:  # a field holds what pydantic cannot turn into JSON: ours may
        return dict(value)
