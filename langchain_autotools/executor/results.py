"""The result of a call: the message made of what its tool returned or raised."""

import asyncio
import dataclasses
import inspect
import json
import logging
import math
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, convert_to_messages
from langchain_core.messages.tool import ToolOutputMixin
from langchain_core.tools import ToolException
from langchain_core.tools.base import TOOL_MESSAGE_BLOCK_TYPES
from pydantic import BaseModel, ValidationError
from pydantic.v1 import BaseModel as BaseModelV1
from pydantic.v1 import ValidationError as ValidationErrorV1

from ..compat import asks_for_a_graph
from ..errors import AutoToolsError, ConfigurationError
from ..messages.blocks import is_media_block, media_type, of_row
from ..messages.calls import ToolCallRecord
from ..messages.metadata import own_metadata, portable_result
from ..messages.run_messages import HoldsRun, open_run, run_message_of
from ..strict_json import mend_surrogates
from .nested_runs import run_content

_logger = logging.getLogger("langchain_autotools")


ArgumentPath = tuple[int | str, ...]
"""A position in the arguments: keys and indices, from the outside in."""

ShownPath = Callable[[ArgumentPath], ArgumentPath | None]
"""A function that returns a position as the model knows it; None for one that is none of its business."""

InvalidError = ValidationError | ValidationErrorV1
"""What a schema raises, of either version of pydantic."""

_Cause = BaseException | type[BaseException] | None


@dataclass(frozen=True)
class ToolCallResult:
    """The result of one tool call.

    Attributes:
        call: The call.
        message: Its answer, for the model. `message.status` is "error" where something went wrong.
        error: The tool's exception, or the reason why it did not run. None for a success, and if the tool handled its error itself
            (`handle_tool_error`).
        duration: The duration of the tool's run in seconds.
        return_direct: Whether the answer goes to the user instead of back to the model. Never for an error.
        executed: Whether the tool's own code began to run. It does not for a result that came from a cache.
        commands: The graph commands that the tool returned. A model cannot apply them; a graph around it can.
        inner: The results of the calls that the call bundles.
        attempts: The number of attempts: 1, unless a policy retries the call; 0 if nothing ran (`executed` is False). Of a bundle
            that of the call inside that was tried most often.
        full_content: The whole content, where a policy's `max_output` has shortened that of the message.
    """

    call: ToolCallRecord
    message: ToolMessage
    error: BaseException | None = None
    duration: float = 0.0
    return_direct: bool = False
    executed: bool = True
    commands: tuple[Any, ...] = ()
    inner: tuple["ToolCallResult", ...] = ()
    attempts: int = 1
    full_content: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: portable_result(value) for name, value in vars(self).items()}

    @property
    def tool_call_id(self) -> str:
        """The id of the call."""
        return self.call.id

    @property
    def success(self) -> bool:
        """Whether the call succeeded: its message is not an error."""
        return self.message.status != "error"

    @property
    def content(self) -> str | list[str | dict[Any, Any]]:
        """The content of the message for the model."""
        return self.message.content


def failed(call: ToolCallRecord, text: str, error: _Cause = None, *, duration: float = 0.0, executed: bool = False) -> ToolCallResult:
    """Return the result of a failed call: `{"error": text}`, for the model to act on; the text is that of an error given by its class."""
    error = error(text) if isinstance(error, type) else error
    content = json.dumps({"error": mend_surrogates(text)}, ensure_ascii=False)
    message = ToolMessage(content=content, tool_call_id=call.id, name=call.spelling, status="error")
    return ToolCallResult(call, message, error, duration, executed=executed, attempts=int(executed))


class OutcomeUnknownError(AutoToolsError, ToolException):
    """Raised by a tool whose call has been sent off, and of which nobody knows whether it had its effect.

    The tools of MCP servers raise it where the server ends during a call. A tool of your own may raise it, with a text for the model. A
    `ToolPolicy` that retries does not repeat such a call, unless it has `rerun=True` or the tool's server says that it may be repeated.
    """


def is_changed(result: ToolCallResult) -> bool:
    """Whether a result says that its call was changed and waits for approval. A run that waits inside a call has begun."""
    return not result.executed and open_run(result.message) is not None


def cancelled_result(call: ToolCallRecord, *, executed: bool = False, duration: float = 0.0) -> ToolCallResult:
    """Return the result of a call that was still running when its run was cancelled."""
    text = "cancelled before it finished; what it did until then may remain" if executed else "cancelled before it ran"
    return failed(call, text, asyncio.CancelledError, duration=duration, executed=executed)


def overdue_result(call: ToolCallRecord) -> ToolCallResult:
    """Return the answer to a call whose run ended before it began."""
    return failed(call, "Not run: the time for this run is over.", TimeoutError)


def describe(error: BaseException) -> str:
    """Describe an exception for the model: type and message, without traceback; for a group, those of its exceptions.

    For a `ToolException` the message alone."""
    if isinstance(error, BaseExceptionGroup):  # of a session or task group that failed: the group's own text says nothing
        return "; ".join(dict.fromkeys(describe(inner) for inner in error.exceptions))
    if isinstance(error, InvalidError):
        return f"{type(error).__name__}: {'; '.join(_problems(error))}"
    if asks_for_a_graph(error):
        return "the tool cannot run here: it asks for the graph around it (a stream writer, a store, an interrupt), and there is none"
    try:
        text = str(error)
    except Exception:
        text = ""
    if isinstance(error, ToolException) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def describe_arguments(error: InvalidError, name: str, shown: ShownPath, *, for_model: bool = True) -> str:
    """Describe invalid arguments of a call: places and messages, without values.

    Args:
        error: The error of the tool's schema.
        name: The tool's name.
        shown: Returns a place as the model knows it; None for one that is none of its business.
        for_model: Whether the model is told to call the tool again.
    """
    problems = _problems(error, shown)
    if problems:
        return invalid_arguments(name, problems, for_model=for_model)
    return f"The tool {name!r} cannot run here: an argument that its caller must supply is missing or not valid."


def invalid_arguments(name: str, problems: Sequence[str], *, for_model: bool = True) -> str:
    """Return the text about a call whose arguments have these problems; `for_model`: whether it asks for another call."""
    again = " Correct them and call the tool again." if for_model else ""
    return f"The arguments of {name!r} are not valid: {'; '.join(problems)}.{again}"


def _problems(error: InvalidError, shown: ShownPath = lambda place: place) -> list[str]:
    if isinstance(error, ValidationError):
        entries: list[Any] = list(error.errors(include_url=False, include_context=False, include_input=False))
    else:
        entries = list(error.errors())
    placed = ((place, entry["msg"]) for entry in entries if (place := shown(entry["loc"])) is not None)
    return [": ".join(filter(None, (".".join(map(str, place)), text))) for place, text in placed]


NO_OUTPUT = "(no output)"
"""The text of an empty result: several servers reject an empty one."""

# The content blocks without data of their own that LangChain keeps as blocks in a tool message, and the keys of which each has at
# least one. A list of ordinary data may well use the word `type` for something else.
_BLOCK_KEYS: Mapping[str, frozenset[str]] = {
    "text": frozenset({"text"}),
    "json": frozenset({"json"}),
    "search_result": frozenset({"content", "source"}),
    "custom_tool_call_output": frozenset({"output"}),
    "resource_link": frozenset({"uri"}),
}


def tool_message_of(call: ToolCallRecord, output: Any) -> tuple[ToolMessage, tuple[Any, ...]]:
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


def with_note(message: ToolMessage, note: str) -> ToolMessage:
    """Return the message with a note before its content."""
    content = message.content
    noted = f"{note}\n\n{content}" if isinstance(content, str) else [{"type": "text", "text": note}, *content]
    return message.model_copy(update={"content": noted})


def has_other_effects(command: Any) -> bool:
    """Whether a graph command contains more than messages, which a model cannot execute."""
    return bool(_update_of(command).keys() - {"messages"} or command.goto or command.resume is not None)


def _fitted(call: ToolCallRecord, message: ToolMessage) -> ToolMessage:
    """Return the message with the call's id and name, and with content that can be sent."""
    content: Any = message.content
    if isinstance(content, str):
        content = mend_surrogates(content) if content.strip() else NO_OUTPUT
    elif not content:
        content = NO_OUTPUT
    else:
        clean = _clean([_with_base64(block) if is_media_block(block) else block for block in content])
        content = content if clean == content else clean
    if message.tool_call_id == call.id and message.name == call.spelling and message.content is content:
        return message
    return message.model_copy(update={"tool_call_id": call.id, "name": call.spelling, "content": content})


def as_message(content: Any) -> Any:
    """Return content for LangChain's core as a message where core would write its blocks as JSON, for it knows few types."""
    if isinstance(content, list) and any(
        isinstance(block, dict) and block.get("type") not in TOOL_MESSAGE_BLOCK_TYPES for block in content
    ):
        return ToolMessage(content=content, tool_call_id="")
    return content


def _with_base64(value: Any) -> Any:
    """Return a block with base64 in place of bytes."""
    if isinstance(value, bytes | bytearray):
        return b64encode(value).decode()
    return {key: _with_base64(item) for key, item in value.items()} if isinstance(value, Mapping) else value


def _clean(value: Any) -> Any:
    """Return plain data that JSON and UTF-8 can carry: without lone surrogates and without NaN or infinities."""
    if isinstance(value, str):
        return mend_surrogates(value)
    if isinstance(value, float) and not math.isfinite(value):
        return _NOT_FINITE[str(float(value))]
    if isinstance(value, Mapping):
        names = {key: mend_surrogates(key) if isinstance(key, str) else _name_of(key, value) for key in value}
        return {names[key]: _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return _clean(_leaf(value))


def _name_of(key: Any, beside: Mapping[Any, Any]) -> str:
    """Return a key that is no text as one that none of the texts beside it is."""
    text = json.dumps(key) if key is None or isinstance(key, bool | int | float) else str(key)
    return f"{text} ({type(key).__name__})" if text in beside else text


_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def output_content(value: Any) -> Any:
    """Return a tool's value as message content: text and content blocks unchanged, anything else as JSON.

    Messages and graph commands are returned unchanged, for `tool_message_of`.

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
    if (blocks := _content_blocks(value)) is not None:
        return blocks
    if (run := run_message_of(value)) is not None:  # a model or agent as a tool: its answer, not its metadata
        parsed = value.output if isinstance(value, HoldsRun) else None
        return output_content(parsed) if parsed is not None else run_content(run) or NO_OUTPUT
    if isinstance(value, BaseMessage):
        return str(value.text) or NO_OUTPUT
    return _json(value)


def _content_blocks(value: Any) -> list[Any] | None:
    """Return a value that is content blocks, or holds some with data of their own, as a list of blocks; None for other data."""
    if _has_data(value):
        return _blocks(value)
    if not isinstance(value, list | tuple) or not value:
        return None
    if any(map(_has_data, value)) and not any(isinstance(item, ToolOutputMixin) for item in value):
        return [block for item in value for block in _blocks(item)]
    is_content = any(isinstance(item, dict) for item in value) and all(map(_is_block, value))
    return list(value) if is_content or all(isinstance(item, ToolOutputMixin) for item in value) else None


_READ_TO_THE_END = (Iterator, KeysView, ValuesView, ItemsView)


def _check_finished(value: Any) -> None:
    if inspect.isawaitable(value) or isinstance(value, AsyncIterator):
        if inspect.iscoroutine(value):
            value.close()  # else Python warns that it was never awaited, somewhere else
        what = type(value).__name__
        raise ToolException(f"the tool returned an unfinished {what!r}, not a result: make it an `async def` that awaits or collects it")


def _has_data(item: Any) -> bool:
    """Whether a value is a block with data of its own, a link of MCP's, or bytes that are no text."""
    if isinstance(item, dict) and item.get("type") == "resource_link" and "uri" in item:
        return True
    return is_media_block(item) or (isinstance(item, bytes | bytearray) and _file(bytes(item)) is not None)


def _blocks(item: Any) -> list[Any]:
    """Return an item of a list with media as blocks: other data as JSON, what a block says beside its data as JSON beside it."""
    if is_media_block(item):
        more = of_row(item)
        block = _with_base64(item)
        return [block, {"type": "text", "text": _json(more)}] if more else [block]
    if _is_block(item):
        return [item]
    file = _file(bytes(item)) if isinstance(item, bytes | bytearray) else None
    return file or [{"type": "text", "text": _json(item)}]


def _file(data: bytes) -> list[dict[str, Any]] | None:
    """Return data that is no text as a block; None for a text."""
    mime_type = media_type(data)
    if mime_type is None and _is_text_data(data):
        return None
    kind = str(mime_type).partition("/")[0]
    encoded = {"base64": b64encode(data).decode(), "mime_type": mime_type or "application/octet-stream"}
    return [{"type": kind if kind in ("image", "audio", "video") else "file", **encoded}]


def _is_text_data(data: bytes) -> bool:
    try:
        return b"\0" not in data and bool(data.decode("utf-8") or True)
    except UnicodeDecodeError:
        return False


def _is_block(item: Any) -> bool:
    if not isinstance(item, dict):
        return isinstance(item, str)
    kind = item.get("type")
    return isinstance(kind, str) and not _BLOCK_KEYS.get(kind, frozenset()).isdisjoint(item)


def _json(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=_leaf_at_first)
        json.dumps(value, sort_keys=True, default=repr)  # raises where texts and others are keys of one dict, which may be alike as texts
    except (TypeError, ValueError, RecursionError):
        pass
    else:
        return text
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
        return value.decode("utf-8", "replace") if _is_text_data(bytes(value)) else f"({len(value)} bytes of data)"
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


# ---------------------------------------------------------------------------------------------- serialized
# Serialization of results to text, for programs with their own wire format.


def serialize_result(value: Any) -> str:
    """Return the text of a tool result for the model.

    Args:
        value: A `ToolMessage`, a `ToolCallResult`, what a tool returned, or the exception that it raised.

    Returns:
        A text as it is, and the texts of text blocks joined; `{"error": "..."}` of an exception; `(no output)` where there is nothing,
        because servers reject an empty result; JSON of anything else, other content blocks included.

    Raises:
        ConfigurationError: It is a graph's `Command`, which is no result.
        ToolException: It is, or holds, something that should have been awaited.
    """
    if isinstance(value, BaseException):
        return json.dumps({"error": mend_surrogates(describe(value))}, ensure_ascii=False)
    message = value.message if isinstance(value, ToolCallResult) else value
    content = message.content if isinstance(message, ToolMessage) else output_content(message)
    if isinstance(content, ToolOutputMixin) or (isinstance(content, list) and any(isinstance(part, ToolOutputMixin) for part in content)):
        raise ConfigurationError(f"a result is a message or what a tool returned, not {type(value).__name__}")
    if not isinstance(content, str):
        are_texts = all(isinstance(block, str) or (isinstance(block, dict) and block.get("type") == "text") for block in content)
        texts = (str(block if isinstance(block, str) else block.get("text")) for block in content)
        content = "".join(texts) if are_texts else json.dumps(content, ensure_ascii=False, default=str)
    text = mend_surrogates(content)
    return text if text.strip() else NO_OUTPUT


# ---------------------------------------------------------------------------------------------- shortening
# Truncation of results that are too long for a model: head and tail stay, with a note between them.


_CUT = "\n\n[... {total} characters in all: the middle is left out here ...]\n\n"


def shortened(result: ToolCallResult, limit: int) -> ToolCallResult:
    """Return the result with at most `limit` characters of text in its message, always cut in the same way.

    What was cut stays whole in `full_content`, and in the message's artifact where the tool gave none.
    """
    whole = result.message.content
    content = _cut(whole, limit)
    if content is whole:
        return result
    artifact = whole if result.message.artifact is None else result.message.artifact
    message = result.message.model_copy(update={"content": content, "artifact": artifact})
    return replace(result, message=message, full_content=whole)


def _cut(content: Any, limit: int) -> Any:
    """Cut a text, or the joined texts of a list of blocks and of commands' outputs; other blocks stay unchanged."""
    blocks = content if isinstance(content, list) else [content]
    texts = [_texts(block) for block in blocks]
    total = sum(len(text) for one in texts for text in one.values())
    if total <= limit:
        return content
    words = _CUT.format(total=total)
    tail = (limit - len(words)) // 2
    head = limit - len(words) - tail
    kept: list[Any] = []
    position = 0
    for block, own in zip(blocks, texts, strict=True):
        short: dict[str, str] = {}
        for name, text in own.items():
            inserted = words if position <= head < position + len(text) else ""
            short[name] = text[: max(0, head - position)] + inserted + text[max(0, total - tail - position) :]
            position += len(text)
        if any(short.values()) or not any(own.values()) or "text" not in own:
            kept.append({**block, **short} if isinstance(block, dict) else short["text"])
    return kept if isinstance(content, list) else kept[0]


def _texts(block: Any) -> dict[str, str]:
    """Return the texts of a block, by their keys: that of a text, the two of a command's output."""
    if isinstance(block, str):
        return {"text": block}
    kind = block.get("type")
    names = ("text",) if kind == "text" else ("stdout", "stderr") if kind is None else ()
    return {name: text for name in names if isinstance(text := block.get(name), str)}
