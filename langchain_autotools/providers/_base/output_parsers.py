"""Parsers of structured output from a model's reply, whole or while it streams.

A snapshot is the output as far as it has been written: in the text, or in the arguments of the call that stands for the schema. Pieces of
arguments come as provisional events, for no chunk holds them, and so does text that another model may yet write anew. A snapshot is parsed
and never run; after the last one comes what `invoke` returns or raises.
"""

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from enum import Enum
from operator import itemgetter
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, cast, get_origin

from langchain_core.exceptions import OutputParserException
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import tool_call
from langchain_core.output_parsers import BaseTransformOutputParser, JsonOutputParser, PydanticOutputParser
from langchain_core.output_parsers.openai_tools import JsonOutputKeyToolsParser
from langchain_core.outputs import ChatGeneration, Generation
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda, RunnableMap, RunnablePassthrough
from langchain_core.runnables.config import run_in_executor
from langchain_core.runnables.fallbacks import RunnableWithFallbacks
from langchain_core.runnables.utils import AddableDict
from pydantic import BaseModel, RootModel, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.v1 import ValidationError as ValidationErrorV1

from ... import event_types as kinds
from ...chunks import ChunkSum, is_blank
from ...errors import CallsPendingError, ConfigurationError
from ...event_bus import Tap, current_scope, stop_listening
from ...event_types import RunEvent, partial_arguments
from ...executor import pending_calls
from ...messages.calls import calls_of
from ...messages.metadata import KEY, UNFORCED, CarrierDict, attach_messages, own_metadata, text_of
from ...messages.run_messages import REFUSALS, final_message, new_messages
from ...run.binding import Batched
from .._encode.tools import at_the_top, inside_object, is_json_schema, is_pydantic, json_schema_of, why_no_object
from .errors import ModelRefusalError

_END: Any = object()


class SnapshotParser(BaseTransformOutputParser[Any]):
    """A parser that yields each new snapshot of a stream, then the output. `parse_result` with `partial` parses a snapshot.

    Attributes:
        expected: The name of the tool whose call is the output; None where the text is.
        withheld: Whether the run holds its text back until the turn is whole. The snapshots are then made of its events.
    """

    expected: str | None = None
    withheld: bool = False

    def snapshot(self, written: str) -> Any:
        """Return the output parsed from an incomplete text; None if nothing can be parsed yet.

        Args:
            written: The text, or the arguments of the call, so far.
        """
        calls = [tool_call(name=self.expected, args=partial_arguments(written), id=None)] if self.expected else []
        message = AIMessage(content="" if self.expected else written, tool_calls=calls)
        try:
            return self.parse_result([ChatGeneration(message=message)], partial=True)
        except Exception:  # validators of the schema, which are not made for halves: of the whole their error is raised
            return None

    def transform(self, input: Iterator[Any], config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:
        """Yield the snapshots and the output of a stream of message chunks. Closing it closes the stream and its request."""
        reading = _Reading(self)
        outputs = self._transform_stream_with_config(reading.chunks(input), reading.outputs, config, run_type="parser")
        try:
            for output in outputs:  # noqa: UP028 - of a `yield from` core would read the stream to its end first
                yield output
        finally:
            reading.left = True
            getattr(input, "close", lambda: None)()

    async def atransform(self, input: AsyncIterator[Any], config: RunnableConfig | None = None, **kwargs: Any) -> AsyncIterator[Any]:
        """Like `transform`, asynchronously."""
        reading = _Reading(self)
        outputs: Any = self._atransform_stream_with_config(reading.achunks(input), reading.aoutputs, config, run_type="parser")
        try:
            async with aclosing(outputs):
                async for output in outputs:
                    yield output
        finally:
            if hasattr(input, "aclose"):
                await input.aclose()


class _Written(Tap):
    """Collects the growing output: the arguments of the tool call that holds it, or the text of a run that holds its text back.

    Args:
        name: The name of the tool; None: the text is the output.
    """

    def __init__(self, name: str | None) -> None:
        super().__init__(current_scope.get())
        self._name = name
        self._call_id: str | None = None
        self._written = ""

    def handle(self, event: Any) -> None:
        """Record the longer text, or the longer arguments of the turn's first call of the name."""
        note = _NOTES.get(type(event))
        if note is not None:
            note(self, event)

    def _text(self, event: kinds.TextDelta) -> None:
        if self._name is None:
            self._written += event.text
            self._keep(self._written)

    def _anew(self, _: kinds.MessageDiscarded) -> None:
        self._written = ""

    def _started(self, event: kinds.CallStarted) -> None:
        if self._call_id is None and event.provisional and event.name == self._name:
            self._call_id, self._written = event.call_id, ""
            self._keep("")

    def _arguments(self, event: kinds.CallArgumentsDelta) -> None:
        if event.call_id == self._call_id:
            self._written += event.text
            if self.waiting and not self.waiting[-1]:
                self.waiting.pop()  # it began with this piece
            self._keep(self._written)

    def _discarded(self, event: kinds.CallDiscarded) -> None:
        if event.call_id == self._call_id:
            self._call_id = None

    def _message_done(self, _: kinds.MessageDone) -> None:
        self._call_id, self._written, self.delivered = None, "", False

    def drain(self) -> list[str]:
        """Return what was recorded since the last time this method was called."""
        recorded = [*self.waiting]
        self.waiting.clear()
        return recorded


_NOTES: Final[Mapping[type[RunEvent], Callable[[_Written, Any], None]]] = {
    kinds.TextDelta: _Written._text,
    kinds.CallStarted: _Written._started,
    kinds.CallArgumentsDelta: _Written._arguments,
    kinds.CallDiscarded: _Written._discarded,
    kinds.MessageDone: _Written._message_done,
    kinds.MessageDiscarded: _Written._anew,
}
"""The events that tell of the output."""


class _Reading:
    """One pass of a stream through a parser.

    Attributes:
        left: Whether nobody reads it any more.
    """

    def __init__(self, parser: SnapshotParser) -> None:
        self.left = False
        self._parser = parser
        self._tap = _Written(parser.expected) if parser.expected or parser.withheld else None
        self._parts = ChunkSum()
        self._message: AIMessage | None = None  # that came whole
        self._text: list[str] = []
        self._last: Any = None
        self._new: list[BaseMessage] = []

    # ------------------------------------------------------------------------------------------ the stream

    def chunks(self, input: Iterator[Any]) -> Iterator[Any]:
        """Yield the chunks of the stream while listening for what is written."""
        while not self.left:
            before = current_scope.set(self._tap.place) if self._tap else None
            try:
                chunk = next(input, _END)
            except BaseException as error:
                self._bring(error, new_messages(error))
                raise
            finally:
                if before is not None:
                    stop_listening(before)
            if chunk is _END:
                return
            if self._brings(chunk):
                yield chunk

    async def achunks(self, input: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Like `chunks`, asynchronously."""
        while True:
            before = current_scope.set(self._tap.place) if self._tap else None
            try:
                chunk = await anext(input, _END)
            except BaseException as error:
                self._bring(error, new_messages(error))
                raise
            finally:
                if before is not None:
                    stop_listening(before)
            if chunk is _END:
                return
            if self._brings(chunk):
                yield chunk

    def _brings(self, chunk: Any) -> bool:
        """Whether a chunk contributes to the message, or events have brought more of the output. The messages that it brings are kept."""
        if isinstance(chunk, AIMessageChunk) and chunk.__dict__["response_metadata"].__class__ is CarrierDict:
            self._new += new_messages(chunk)
        return not (isinstance(chunk, AIMessageChunk) and is_blank(chunk)) or bool(self._tap and self._tap.waiting)

    def _bring(self, error: BaseException, others: Sequence[BaseMessage] = ()) -> None:
        """Attach the messages of the stream to an error that ends it: no chunk of it has reached the caller."""
        if self._new:
            attach_messages(error, [*self._new, *others])

    # ------------------------------------------------------------------------------------------ what comes of it

    def outputs(self, chunks: Iterator[Any]) -> Iterator[Any]:
        """Yield each new snapshot once, then the output."""
        for chunk in chunks:
            for written in self._written(chunk):
                if self._is_new(snapshot := self._parser.snapshot(written)):
                    yield snapshot
        if (result := self._result()) and bool((output := self._parsed(result)) != self._last):
            yield output

    async def aoutputs(self, chunks: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Like `outputs`, asynchronously."""
        async for chunk in chunks:
            for written in self._written(chunk):
                if self._is_new(snapshot := await run_in_executor(None, self._parser.snapshot, written)):
                    yield snapshot
        if (result := self._result()) and bool((output := await run_in_executor(None, self._parsed, result)) != self._last):
            yield output

    def _parsed(self, result: list[Generation]) -> Any:
        """Return the output."""
        try:
            return self._parser.parse_result(result)
        except Exception as error:
            self._bring(error)
            raise

    def _written(self, chunk: Any) -> Sequence[str]:
        """Process a chunk and return the texts written since the previous one, each from the start of the output."""
        if not isinstance(chunk, AIMessageChunk):
            self._message = chunk
        else:
            self._parts.add(chunk)
        if self._tap is not None:
            return self._tap.drain()
        text = text_of(chunk)
        self._text.append(text)
        return ["".join(self._text)] if text else ()

    def _is_new(self, snapshot: Any) -> bool:
        """Whether a snapshot is yet to be yielded."""
        if snapshot is None or not bool(snapshot != self._last):
            return False
        self._last = snapshot
        if self._tap is not None:
            self._tap.delivered = True
        return True

    def _result(self) -> list[Generation]:
        """Return the whole message in the form that parsers accept; empty for an empty stream."""
        message = self._parts.message() if self._message is None and self._parts else self._message
        return [] if message is None else [ChatGeneration(message=message)]


# ---------------------------------------------------------------------------------------------- structured
# Parsers of structured output from a model's last AI message, for every vendor.
#
# What `invoke` returns, and a stream ends in, is complete or an error: a reply that was cut off, refused or filtered is never parsed, and
# JSON is read as it is, not completed. What a stream yields before that is in `snapshots`.


_AT_ITS_LIMIT = "the reply reached its token limit before it was complete: raise max_tokens, or ask for less"
_CUT = {
    "length": _AT_ITS_LIMIT,
    "max_tokens": _AT_ITS_LIMIT,
    "model_context_window_exceeded": "the reply filled the model's context before it was complete: send less",
    "incomplete": "the reply broke off before it was complete",
    "cancelled": "the reply was cancelled before it was complete",
    "deadline": "the deadline passed before the reply was complete",
    "continuation": "the reply is to be continued: it is not complete",
}
_FIELD = "value"
_UNNAMED = "Output"
_LEGAL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
_LONGEST_NAME = 64
_PLAIN_TYPES = (object, str, int, float, bool, bytes, list, dict, set, frozenset, tuple)
_SPECIAL_FORMS = (Union, UnionType, Literal, Annotated)
_FENCED = re.compile(r"\A```(?:json)?\s*\n(?P<body>.*?)\n?\s*```\Z", re.DOTALL | re.IGNORECASE)


def structured(model: Runnable[Any, Any], parser: Runnable[Any, Any], *, include_raw: bool) -> Runnable[Any, Any]:
    """Return the model followed by its parser; with `include_raw` the output is a dict of message, parsed value and parsing error.

    Args:
        model: The model, with the parameters that ask for the output.
        parser: Reads the output out of its message.
        include_raw: Whether the message is returned too.
    """
    if not include_raw:
        return model | parser
    parsed = RunnablePassthrough.assign(parsed=itemgetter("raw") | parser, parsing_error=lambda _: None)
    failed = RunnablePassthrough.assign(parsed=lambda _: None)
    # Each at once, for a stream that has begun cannot fall back.
    parse, report = (RunnableLambda(step.invoke, step.ainvoke) for step in (parsed, failed))
    return _RawMap(steps__={"raw": model}) | _Parsed(runnable=parse, fallbacks=[report], exception_key="parsing_error")


@dataclass(frozen=True)
class RequestedSchema:
    """A schema of output: what is sent of it, and how a reply is read.

    Attributes:
        sent: The schema, in a form of which vendors make their own.
        describes: The schema of the output.
        reads: The pydantic class of replies; None: they are plain data.
        field: The field of a reply that holds the output; None: the whole reply is the output.
    """

    sent: Any
    describes: Any
    reads: Any = None
    field: str | None = None


def requested_schema(schema: Any, *, as_object: bool = False, named: bool = False) -> RequestedSchema:
    """Return what is sent of a schema, and how its replies are read.

    Args:
        schema: A schema as `with_structured_output` takes it, or a type such as `list[int]`.
        as_object: Whether an object must be at the top: another schema is then the one field of an object.
        named: Whether the schema's title becomes the name of a tool.

    Raises:
        ConfigurationError: pydantic has no schema of the type.
    """
    if _is_bare_type(schema):
        return _of_type(schema, as_object=as_object)
    if is_pydantic(schema):
        return _of_class(schema, as_object=as_object, named=named)
    if not is_json_schema(schema):
        return RequestedSchema(schema, schema)
    found = why_no_object(at_the_top(schema)) if as_object else None
    sent = inside_object(at_the_top(schema), _FIELD) if found else at_the_top(schema) if "$ref" in schema else schema
    if as_object and "type" not in sent:
        sent = {"type": "object", **sent}
    return RequestedSchema(_with_legal_title(sent) if named else sent, schema, field=_FIELD if found else None)


def _is_bare_type(schema: Any) -> bool:
    """Whether a schema is a type of values that is no class with fields."""
    origin = get_origin(schema)
    if isinstance(schema, type) and origin is None:
        return schema in _PLAIN_TYPES or issubclass(schema, Enum)
    return origin in _PLAIN_TYPES or origin in _SPECIAL_FORMS


def _of_type(schema: Any, *, as_object: bool) -> RequestedSchema:
    try:
        described: Any = create_model(_UNNAMED, __base__=RootModel[schema])
        declared = json_schema_of(described)
    except PydanticUserError as error:
        raise ConfigurationError(f"no JSON schema can be made of {schema!r}: {error}") from error
    if not as_object or why_no_object(declared) is None:
        return RequestedSchema(described, described, described, "root")
    whole: Any = create_model(_UNNAMED, value=(schema, ...))
    return RequestedSchema(whole, described, whole, _FIELD)


def _of_class(schema: Any, *, as_object: bool, named: bool) -> RequestedSchema:
    try:
        declared = json_schema_of(schema) if hasattr(schema, "model_json_schema") else {}
    except PydanticUserError:  # which is raised where the vendor's form is made
        return RequestedSchema(schema, schema, schema)
    if not declared:
        return RequestedSchema(schema, schema, schema)
    titled = _with_legal_title({"title": schema.__name__, **declared})
    if as_object and why_no_object(declared):
        whole: Any = create_model(titled["title"], __doc__=declared.get("description"), value=(schema, ...))
        return RequestedSchema(whole, schema, whole, _FIELD)
    return RequestedSchema(titled if named and titled["title"] != declared.get("title", schema.__name__) else schema, schema, schema)


def _with_legal_title(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema with a title that every vendor takes as the name of a function: `Page[Cat]` is `Page_Cat_`."""
    title = schema.get("title")
    if not isinstance(title, str) or _LEGAL_NAME.fullmatch(title):
        return dict(schema)
    return {**schema, "title": re.sub(r"\A(?=[^a-zA-Z_])", "_", re.sub("[^a-zA-Z0-9_-]+", "_", title))[:_LONGEST_NAME]}


def json_parser(asked: RequestedSchema, *, withheld: bool = False) -> Runnable[Any, Any]:
    """Return a parser of the last AI message's text as JSON, to an object of a pydantic class or to plain data.

    Args:
        asked: The schema.
        withheld: Whether the run holds its text back until the turn is whole.
    """
    reading = {"describes": asked.describes, "reads": asked.reads, "field": asked.field, "withheld": withheld}
    return _PydanticText(pydantic_object=asked.reads, **reading) if asked.reads else _JsonText(**reading)


def call_parser(asked: RequestedSchema, name: str, *, required: bool = False) -> Runnable[Any, Any]:
    """Return a parser of the call of the tool `name` for the schema.

    Args:
        asked: The schema.
        name: The name of its tool.
        required: Whether an answer without the call is an error; else the output is then None, as of LangChain's models.
    """
    reading = {"describes": asked.describes, "reads": asked.reads, "field": asked.field, "required": required}
    return _Call(key_name=name, first_tool_only=True, expected=name, **reading)


_RAW_KEYS = ("raw", "parsed", "parsing_error")


class _Parsed(RunnableWithFallbacks[Any, Any]):
    """Parses the message for `include_raw`. A stream has one dict for each key, as of LangChain's models."""

    def stream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:
        for output in super().stream(input, config, **kwargs):
            yield from (AddableDict({key: output[key]}) for key in _RAW_KEYS)

    async def astream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> AsyncIterator[Any]:
        async for output in super().astream(input, config, **kwargs):
            for key in _RAW_KEYS:
                yield AddableDict({key: output[key]})


class _RawMap(Batched, RunnableMap[Any]):
    """Runs the model for the key `raw` with the keywords of the call, which core's own map does not pass on."""

    def _asking(self, keywords: dict[str, Any]) -> RunnableMap[Any]:
        model = self.steps__["raw"]
        return RunnableMap({"raw": model.bind(**keywords) if keywords else model})

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> dict[str, Any]:
        return self._asking(kwargs).invoke(input, config)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> dict[str, Any]:
        return await self._asking(kwargs).ainvoke(input, config)

    def transform(self, input: Iterator[Any], config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:
        return self._asking(kwargs).transform(input, config)

    def atransform(self, input: AsyncIterator[Any], config: RunnableConfig | None = None, **kwargs: Any) -> AsyncIterator[Any]:
        return self._asking(kwargs).atransform(input, config)


# ---------------------------------------------------------------------------------------------- what may be parsed


def _message_of(result: list[Any]) -> BaseMessage:
    generation = result[0]
    return generation.message if isinstance(generation, ChatGeneration) else AIMessage(generation.text)


def check_complete(message: BaseMessage) -> None:
    """Raise if a message is not a complete answer.

    Raises:
        ModelRefusalError: The model declined, or its answer was filtered.
        OutputParserException: The answer was cut off.
    """
    reason = str(message.response_metadata.get("finish_reason") or "").lower()
    refusal = message.additional_kwargs.get("refusal")
    if refusal:
        raise ModelRefusalError(str(refusal), raw_message=message)
    if reason in REFUSALS:
        raise ModelRefusalError(f"the reply ended with the finish reason {reason!r}", raw_message=message)
    if reason in _CUT:
        raise OutputParserException(_CUT[reason], llm_output=text_of(message))


def _check_run(run: BaseMessage) -> None:
    """Raise if a run ended before it produced the output.

    Raises:
        OutputParserException: It did.
    """
    reason = (run.response_metadata.get(KEY) or {}).get("stop_reason", "complete")
    if reason in ("complete", "calls_pending"):
        return
    raise OutputParserException(f"the run ended before the output was there, with the stop reason {reason!r}", llm_output=text_of(run))


def _check_approved(run: BaseMessage) -> None:
    """Raise if a run ended with calls that wait for approval or for a vendor's tool: text beside them is not the output.

    Raises:
        CallsPendingError: They do.
    """
    if (run.response_metadata.get(KEY) or {}).get("stop_reason") != "calls_pending":
        return
    waiting = [call.id for call in pending_calls(run) if call.kind != "caller"]
    if waiting:
        text = f"the run ended before the output was there: calls wait for approval, or for the caller: {', '.join(map(repr, waiting))}"
        raise CallsPendingError(text, llm_output=text_of(run))


def _strict_json(message: BaseMessage) -> tuple[Any, str]:
    """Return the text parsed as exactly one JSON document, optionally in a Markdown fence, and the document; None if it is empty beside
    tool calls."""
    text = text_of(message).strip()
    if not text and isinstance(message, AIMessage) and message.tool_calls:
        return None, text
    fenced = _FENCED.match(text)
    document = fenced["body"] if fenced else text
    try:
        return _parsed(document)
    except (ValueError, RecursionError) as error:
        raise OutputParserException(f"the reply is not one JSON document ({error}): {text!r}", llm_output=text) from error


def _parsed(document: str) -> tuple[Any, str]:
    """Return the value of a JSON document, and the document in a form that every reader of JSON takes: models write control characters."""
    try:
        return json.loads(document), document
    except ValueError:
        value = json.loads(document, strict=False)
        return value, json.dumps(value)


def _json_output(result: list[Any]) -> tuple[Any, str]:
    """Return the text of the last AI message parsed as JSON, and the text; None beside calls that are left to the caller."""
    run = _message_of(result)
    message = final_message(run) if isinstance(run, AIMessage) else run
    _check_approved(run)
    check_complete(message)
    try:
        value, document = _strict_json(message)
    except OutputParserException:
        _check_run(run)
        raise
    if value is None:
        _check_run(run)
    return value, document


# ---------------------------------------------------------------------------------------------- parsers


@contextmanager
def _carrying_messages(run: BaseMessage) -> Iterator[None]:
    """Return a context manager whose errors bring the messages of a run: the caller gets nothing else of it."""
    try:
        yield
    except Exception as error:
        attach_messages(error, new_messages(run))
        raise


class _Described(SnapshotParser):
    """A parser that knows the schema of its output. Its errors bring the run. `reads` and `field` are those of `Asked`."""

    describes: Any = None
    reads: Any = None
    field: str | None = None

    def _read(self, value: Any, document: str | None = None) -> Any:
        """Return the output of a reply's JSON. What is validated is the text: a strict class has no other form of a date.

        Args:
            value: The parsed JSON.
            document: Its text; None: `value` was read from arguments.
        """
        if self.reads is None:
            return self._unwrapped(value)
        if not hasattr(self.reads, "model_validate_json"):
            return self.reads.parse_obj(value)
        whole = self.reads.model_validate_json(json.dumps(value) if document is None else document)
        return whole if self.field is None else getattr(whole, self.field)

    def _unwrapped(self, value: Any) -> Any:
        if self.field is None:
            return value
        if not isinstance(value, Mapping) or self.field not in value:
            raise OutputParserException(f"the reply has no field {self.field!r}: {value!r}", llm_output=json.dumps(value))
        return value[self.field]

    def _partial(self, value: Any) -> Any:
        """Return the output as far as it is written; None if nothing can be read yet."""
        if value is None:
            return None
        try:
            return self._read(value)
        except Exception:  # of validators, which are not made for halves
            return None

    def parse_result(self, result: list[Generation], *, partial: bool = False) -> Any:
        generation: Any = result[0]
        if partial and getattr(generation.message, "chunk_position", None) != "last":
            return self._partial(self._written_value(result))
        with _carrying_messages(_message_of(result)):
            return self._output(result)

    def _written_value(self, result: list[Generation]) -> Any:
        """Return the JSON value of a reply that is not whole yet."""
        raise NotImplementedError

    def _output(self, result: list[Generation]) -> Any:
        """Return the output of a whole reply."""
        raise NotImplementedError

    def get_output_schema(self, config: RunnableConfig | None = None) -> type[BaseModel]:
        """Return the schema as a pydantic class."""
        schema = self.describes
        if isinstance(schema, type) and issubclass(schema, BaseModel):
            return schema
        if schema is None:
            return super().get_output_schema(config)  # type: ignore[return-value]
        return _class_of(json_schema_of(schema))


def _class_of(described: Mapping[str, Any]) -> type[BaseModel]:
    """Return a class of plain data for this JSON schema."""

    class Described(RootModel[Any]):
        @classmethod
        def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:
            return dict(described)

    Described.__name__ = Described.__qualname__ = str(described.get("title") or "Output")
    return Described


class _Text(_Described):
    """Parses the message's text."""

    def _written_value(self, result: list[Generation]) -> Any:
        return JsonOutputParser.parse_result(cast("JsonOutputParser", self), result, partial=True)

    def _output(self, result: list[Generation]) -> Any:
        value, document = _json_output(result)
        if value is None and not document:
            return None
        try:
            return self._read(value, document)
        except (ValidationError, ValidationErrorV1) as error:
            text = f"Failed to parse {self.reads.__name__} from completion {json.dumps(value, ensure_ascii=False)}. Got: {error}"
            raise OutputParserException(text, llm_output=document) from error


class _JsonText(_Text, JsonOutputParser):
    """Parses the message's text as plain data."""


class _PydanticText(_Text, PydanticOutputParser[Any]):
    """Parses the message's text as an object of a pydantic class."""


def _check_call(message: BaseMessage, name: str, *, required: bool) -> None:
    """Raise if the arguments of the call of `name` are not a complete JSON object, or if there is no call and one is required."""
    _check_approved(message)
    check_complete(message)
    if not isinstance(message, AIMessage) or any(call["name"] == name for call in message.tool_calls):
        return
    for call in calls_of(message):
        if call.name == name:
            text = f"the arguments of {name} are not one complete JSON object: {call.arguments!r}"
            raise OutputParserException(text, llm_output=call.arguments)
    _check_run(message)
    if own_metadata(final_message(message)).get(UNFORCED):
        raise OutputParserException(f"the model did not call {name}, and the server refuses to force it", llm_output=text_of(message))
    if required and not message.tool_calls:
        text = f"the model has ended its answer without the output: it has not called {name}"
        raise OutputParserException(text, llm_output=text_of(message))


class _Call(_Described, JsonOutputKeyToolsParser):
    """Parses the arguments of the schema's call, as an object of its class or as plain data."""

    required: bool = False

    def _written_value(self, result: list[Generation]) -> Any:
        return JsonOutputKeyToolsParser.parse_result(self, result, partial=True)

    def _output(self, result: list[Generation]) -> Any:
        _check_call(_message_of(result), str(self.expected), required=self.required)
        arguments = JsonOutputKeyToolsParser.parse_result(self, result)
        return None if arguments is None else self._read(arguments)
