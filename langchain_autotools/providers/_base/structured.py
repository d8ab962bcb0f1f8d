"""Parsers of structured output from a model's last AI message, for every vendor.

What `invoke` returns, and a stream ends in, is complete or an error: a reply that was cut off, refused or filtered is never parsed, and
JSON is read as it stands, not completed. What a stream yields before that is in `snapshots`.
"""

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from operator import itemgetter
from typing import Any

from langchain_core.exceptions import OutputParserException
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.output_parsers import JsonOutputParser, PydanticOutputParser
from langchain_core.output_parsers.openai_tools import JsonOutputKeyToolsParser, PydanticToolsParser
from langchain_core.outputs import ChatGeneration, Generation
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda, RunnableMap, RunnablePassthrough
from pydantic import BaseModel, RootModel

from ...errors import CallsPendingError
from ...executor import pending_calls
from ...messages.calls import calls_of
from ...messages.carrier import final_message, new_messages
from ...messages.finish_reasons import REFUSALS
from ...messages.live import attach_messages
from ...messages.metadata import KEY, text_of
from ...run.binding import Batched
from .._encode.functions import json_schema_of
from .._encode.schemas import is_pydantic
from .refusal import ModelRefusalError
from .snapshots import SnapshotParser

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
    return _RawMap(steps__={"raw": model}) | parse.with_fallbacks([report], exception_key="parsing_error")


def json_parser(schema: Any, *, withheld: bool = False) -> Runnable[Any, Any]:
    """Return a parser of the last AI message's text as JSON, to an object of a pydantic class or to plain data.

    Args:
        schema: The schema.
        withheld: Whether the run holds its text back until the turn is whole.
    """
    if is_pydantic(schema):
        return _PydanticText(pydantic_object=schema, describes=schema, withheld=withheld)
    return _JsonText(describes=schema, withheld=withheld)


def call_parser(schema: Any, name: str) -> Runnable[Any, Any]:
    """Return a parser of the call of the tool `name` for the schema; it returns None if the model did not call it.

    Args:
        schema: The schema.
        name: The name of its tool.
    """
    if is_pydantic(schema):
        return _PydanticCall(tools=[schema], first_tool_only=True, expected=name, describes=schema)
    return _JsonCall(key_name=name, first_tool_only=True, expected=name, describes=schema)


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


def _last_message(result: list[Any]) -> BaseMessage:
    generation = result[0]
    if isinstance(generation, ChatGeneration):
        return final_message(generation.message) if isinstance(generation.message, AIMessage) else generation.message
    return AIMessage(generation.text)


def _is_whole(result: list[Any], partial: bool) -> bool:
    """Whether the output is final: always outside a stream, within a stream once the last chunk has arrived."""
    return not partial or getattr(result[0].message, "chunk_position", None) == "last"


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
        OutputParserException: It did; `new_messages` of the error gives what the run brought.
    """
    reason = (run.response_metadata.get(KEY) or {}).get("stop_reason", "complete")
    if reason in ("complete", "calls_pending"):
        return
    error = OutputParserException(f"the run ended before the output was there, with the stop reason {reason!r}", llm_output=text_of(run))
    attach_messages(error, new_messages(run))
    raise error


def _check_approved(run: BaseMessage) -> None:
    """Raise if a run ended with calls that wait for approval or for a vendor's tool: text beside them is not the output.

    Raises:
        CallsPendingError: They do; `new_messages` of the error gives what the run brought.
    """
    if (run.response_metadata.get(KEY) or {}).get("stop_reason") != "calls_pending":
        return
    waiting = [call.id for call in pending_calls(run) if call.kind != "caller"]
    if waiting:
        text = f"the run ended before the output was there: calls wait for approval, or for the caller: {', '.join(map(repr, waiting))}"
        error = CallsPendingError(text, llm_output=text_of(run))
        attach_messages(error, new_messages(run))
        raise error


def _strict_json(message: BaseMessage) -> Any:
    """Parse the text as exactly one JSON document, optionally in a Markdown fence; None if it is empty beside tool calls."""
    text = text_of(message).strip()
    if not text and isinstance(message, AIMessage) and message.tool_calls:
        return None
    fenced = _FENCED.match(text)
    try:
        return json.loads(fenced["body"] if fenced else text, strict=False)
    except (ValueError, RecursionError) as error:
        raise OutputParserException(f"the reply is not one JSON document ({error}): {text!r}", llm_output=text) from error


def _json_output(result: list[Any]) -> Any:
    """Return the text of the last AI message parsed as JSON; None beside calls that are left to the caller."""
    message = _last_message(result)
    _check_approved(_message_of(result))
    check_complete(message)
    try:
        value = _strict_json(message)
    except OutputParserException:
        _check_run(_message_of(result))
        raise
    if value is None:
        _check_run(_message_of(result))
    return value


# ---------------------------------------------------------------------------------------------- parsers


class _Described(SnapshotParser):
    """A parser that knows the schema of its output."""

    describes: Any = None

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


class _JsonText(_Described, JsonOutputParser):
    """Parses the message's text as plain data."""

    def parse_result(self, result: list[Generation], *, partial: bool = False) -> Any:
        if not _is_whole(result, partial):
            return super().parse_result(result, partial=True)
        return _json_output(result)


class _PydanticText(_Described, PydanticOutputParser[Any]):
    """Parses the message's text as an object of a pydantic class."""

    def parse_result(self, result: list[Generation], *, partial: bool = False) -> Any:
        if not _is_whole(result, partial):
            return super().parse_result(result, partial=True)
        value = _json_output(result)
        return None if value is None else super().parse_result([Generation(text=json.dumps(value))])


def _check_call(message: BaseMessage, name: str) -> None:
    """Raise if the arguments of the call of `name` are not a complete JSON object."""
    _check_approved(message)
    check_complete(message)
    if not isinstance(message, AIMessage) or any(call["name"] == name for call in message.tool_calls):
        return
    for call in calls_of(message):
        if call.name == name:
            text = f"the arguments of {name} are not one complete JSON object: {call.arguments!r}"
            raise OutputParserException(text, llm_output=call.arguments)
    _check_run(message)


def _message_of(result: list[Any]) -> BaseMessage:
    message: BaseMessage = result[0].message
    return message


class _Call(_Described):
    """A parser of the schema's tool call."""

    def parse_result(self, result: list[Generation], *, partial: bool = False) -> Any:
        if _is_whole(result, partial):
            _check_call(_message_of(result), str(self.expected))
        return super().parse_result(result, partial=partial)


class _JsonCall(_Call, JsonOutputKeyToolsParser):
    """Parses the arguments of the schema's call as plain data."""


class _PydanticCall(_Call, PydanticToolsParser):
    """Parses the schema's call as an object of its class."""
