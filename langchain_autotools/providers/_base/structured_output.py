"""`with_structured_output` for every vendor: method, request parameters, parser, corrections of a reply that does not fit."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeVar, cast, get_args, overload

from langchain_core.exceptions import OutputParserException
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, ValidationError

from ...errors import ConfigurationError
from ...executor.names import tool_name
from ...messages.calls import calls_of
from ...messages.metadata import KEY, OF_RUN, UNFORCED, own_metadata
from ...messages.run_messages import is_paused
from ...run.failover import FALLBACK_FORMATS
from ...run.middleware import Attempt, with_records
from ...run.turn_wrappers import AsyncProceed, Proceed, TurnPart, TurnRequest, TurnWrapper
from .._encode.tools import inside_object
from .http_model import HttpChatModel
from .output_parsers import check_complete


def _fallback_formats(model: Any, schema: Any, method: str, strict: bool | None) -> Mapping[str, Any]:
    """Return the keyword of a call by which a run's failover writes the format for whichever model makes a turn.

    Args:
        model: The model that begins the run.
        schema: The schema of the output.
        method: `json_schema` or `json_mode`, as the model has it.
        strict: Whether the server must enforce the schema; None: as the schema says.

    Raises:
        ConfigurationError: A fallback has no such output.
    """
    own = model._format_params(schema, method, strict)
    return {FALLBACK_FORMATS: [own, *(_format_of(fallback, model.tools, schema, method, strict) for fallback in model.fallbacks)]}


def _format_of(fallback: Any, tools: Any, schema: Any, method: str, strict: bool | None) -> dict[str, Any]:
    kind = type(fallback).__name__
    if not hasattr(fallback, "_format_params"):
        raise ConfigurationError(f"the fallback {kind} has no method {method!r} of structured output")
    beside = fallback.model_copy(update={"tools": tools})
    try:
        beside._check_structured(schema, method, None)
        supported = beside._supported_method(method, schema, strict, {})
    except ConfigurationError as error:
        raise ConfigurationError(f"the fallback {kind} cannot take this structured output: {error}") from error
    if supported == "function_calling":
        raise ConfigurationError(f"the fallback {kind} has no method {method!r} of structured output: use method='function_calling'")
    return cast("dict[str, Any]", beside._format_params(schema, supported, strict))


# ---------------------------------------------------------------------------------------------- output check
# Replies that do not fit their schema, sent back to the model with the error.


_AGAIN = "The output is not valid: {problem}\nAnswer again, with the whole output."
_NOT_RUN = "Not run: the output beside this call was not valid."


def _output_check(parser: Any, retries: Any, name: str | None = None) -> dict[str, Any]:
    """Return the run keyword that has each output checked; empty without retries.

    Args:
        parser: Reads the output.
        retries: How often a reply goes back to the model.
        name: The tool whose call is the output; None: the text is.

    Raises:
        ConfigurationError: `retries` is no such number.
    """
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        raise ConfigurationError(f"retries must be a whole number of at least 0, not {retries!r}")
    return {"output_check": _OutputCheck(parser, retries, name)} if retries else {}


@dataclass(eq=False, repr=False)
class _OutputCheck(TurnWrapper):
    """A wrapper of turns that makes a turn again whose output does not parse. It holds its parts back, as the run does with its text."""

    layer: ClassVar[str] = "before_turn"
    _parser: Any
    _retries: int
    _name: str | None

    def wrap_turn(self, request: TurnRequest, proceed: Proceed) -> Iterator[TurnPart]:
        """Make a turn, and make it again as long as its output is not valid."""
        rejected: list[AIMessage] = []
        for left in range(self._retries, -1, -1):
            attempt = Attempt(replace(request, streams=False))  # of which nothing leaves before its end
            for part in proceed(request):
                attempt.feed(part)
            again = self._again(attempt, left)
            if not again:
                yield from with_records(attempt.held, rejected)
                return
            rejected.append(attempt.end())
            request = replace(request, messages=[*request.messages, *again])

    async def awrap_turn(self, request: TurnRequest, proceed: AsyncProceed) -> AsyncIterator[TurnPart]:
        """Like `wrap_turn`, asynchronously."""
        rejected: list[AIMessage] = []
        for left in range(self._retries, -1, -1):
            attempt = Attempt(replace(request, streams=False))  # of which nothing leaves before its end
            async with aclosing(cast("AsyncGenerator[Any, None]", proceed(request))) as parts:
                async for part in parts:
                    attempt.feed(part)
            again = self._again(attempt, left)
            if not again:
                for held in with_records(attempt.held, rejected):
                    yield held
                return
            rejected.append(attempt.end())
            request = replace(request, messages=[*request.messages, *again])

    def _again(self, attempt: Attempt, left: int) -> Sequence[BaseMessage]:
        """Return the reply and what tells the model its error, to be sent; empty if the reply is final."""
        message = attempt.end()
        problem = self._problem(message) if left else None
        if problem is None:
            return ()
        calls = calls_of(message)
        if not calls:
            return message, HumanMessage(_AGAIN.format(problem=problem), response_metadata={KEY: {OF_RUN: True}})
        texts = [_AGAIN.format(problem=problem) if call.name == self._name else _NOT_RUN for call in calls]
        results = [ToolMessage(text, tool_call_id=call.id, status="error") for call, text in zip(calls, texts, strict=True)]
        return message, *results

    def _problem(self, message: AIMessage) -> str | None:
        """Return what is wrong with the output of a reply; None if it is valid, incomplete, or none yet."""
        names = [call.name for call in calls_of(message)]
        says = not names if self._name is None else self._name in names or (not names and own_metadata(message).get(UNFORCED))
        if is_paused(message) or not says:
            return None
        try:
            check_complete(message)
        except Exception:  # cut off or refused: another try would end as this one, and its reader says how
            return None
        try:
            self._parser.parse_result([ChatGeneration(message=message)])
        except (OutputParserException, ValidationError) as error:
            return str(error).partition("\nFor troubleshooting")[0]
        return None


# ---------------------------------------------------------------------------------------------- structured output
# `with_structured_output` for every vendor: choice of the method, parameters of the request, parser of the reply.


Method = Literal["json_schema", "function_calling", "json_mode"]

Model = TypeVar("Model", bound=BaseModel)

METHODS: tuple[str, ...] = get_args(Method)


class StructuredChatModel(HttpChatModel, defer_build=True):
    """A chat model with structured output."""

    _schemaless_methods: ClassVar[tuple[str, ...]] = ("json_mode",)
    """The methods that need no schema."""
    _methods_beside_tools: ClassVar[tuple[str, ...]] = ("json_schema",)
    """The methods that allow tools beside the schema."""
    _object_at_top: ClassVar[bool] = False
    """Whether the vendor takes no schema of replies but that of an object."""
    _strict_schemas: ClassVar[bool] = False
    """Whether `strict` also applies to tools declared beside the schema."""

    @overload
    def with_structured_output(
        self,
        schema: type[Model],
        method: Method | None = None,
        *,
        include_raw: Literal[False] = False,
        strict: bool | None = None,
        tools: Sequence[Any] | None = None,
        retries: int = 0,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, Model]: ...
    @overload
    def with_structured_output(
        self,
        schema: Mapping[str, Any] | type[Mapping[str, Any]] | None = None,
        method: Method | None = None,
        *,
        include_raw: Literal[False] = False,
        strict: bool | None = None,
        tools: Sequence[Any] | None = None,
        retries: int = 0,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, dict[str, Any]]: ...
    @overload
    def with_structured_output(
        self,
        schema: Any = None,
        method: Method | None = None,
        *,
        include_raw: Literal[True],
        strict: bool | None = None,
        tools: Sequence[Any] | None = None,
        retries: int = 0,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, dict[str, Any]]: ...
    @overload
    def with_structured_output(
        self,
        schema: Any = None,
        method: Method | None = None,
        *,
        include_raw: bool = False,
        strict: bool | None = None,
        tools: Sequence[Any] | None = None,
        retries: int = 0,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, Any]: ...
    def with_structured_output(
        self,
        schema: Any = None,
        method: Method | None = None,
        *,
        include_raw: bool = False,
        strict: bool | None = None,
        tools: Sequence[Any] | None = None,
        retries: int = 0,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, Any]:
        """Return a runnable whose output follows a schema: an object of a pydantic class, else a dict.

        With constructor tools the output is that of the last turn, and an answer without a call of the schema is an error (without them
        the output is then None, as of LangChain's models). An incomplete reply is an error, never half an object. `new_messages` of every
        error gives what the run brought.

        Args:
            schema: A pydantic class, a TypedDict, a JSON schema with a title, a function in OpenAI's form, or a type such as `list[int]`.
                A vendor that wants an object at the top gets one with the schema as its field. Optional for `json_mode`, where the vendor
                has JSON without a schema.
            method: `json_schema` (the server constrains the reply to the schema), `function_calling` (the schema is a tool that must be
                called), or `json_mode` (any JSON: say in the prompt what you want). None: the one that the vendor's models do best. A
                method that the model is known to lack is replaced by another, as the vendor's page says.
            include_raw: Return `{"raw": message, "parsed": output or None, "parsing_error": error or None}`.
            strict: Whether the server must enforce the schema, for vendors that leave the choice. None: as the schema says; for
                `json_schema` with a pydantic class, yes wherever its fields allow it.
            tools: Tools to declare along with the schema (`json_schema` only); their calls are left to the caller.
            retries: How often a reply that does not fit the schema goes back to the model with the error, in the same run. The last error
                is raised.
            **kwargs: Bound to every request.

        Raises:
            ConfigurationError: The arguments cannot work together.
            ModelRefusalError: (when run) The model declined.
            CallsPendingError: (when run) Calls wait for approval.
            OutputParserException: (when run) The reply is incomplete or does not fit the schema.
        """

        from .output_parsers import call_parser, json_parser, requested_schema, structured

        chosen = method or self._default_method()
        self._check_structured(schema, chosen, tools)
        chosen = self._supported_method(chosen, requested_schema(schema).sent, strict, kwargs)
        called = chosen == "function_calling"
        in_object = any(getattr(model, "_object_at_top", False) for model in (self, *self.fallbacks))
        asked = requested_schema(schema, as_object=called or (chosen == "json_schema" and in_object), named=called)
        traced = {} if schema is None else {"ls_structured_output_format": self._traced(asked.sent, chosen, strict)}
        if called:
            name = tool_name(self.format_tool(asked.sent))
            parser = call_parser(asked, name, required=bool(self.tools or self.handlers) or not self._can_force(kwargs))
            model = self._bind_schema(
                asked.sent,
                strict,
                {**self._without_format(), **self._call_params(name, kwargs), **traced, **_output_check(parser, retries, name), **kwargs},
            )
            return structured(model, parser, include_raw=include_raw)
        parser = json_parser(asked, withheld=bool(self.fallbacks) and not self.tools)
        formats = _fallback_formats(self, asked.sent, chosen, strict) if self.fallbacks else {}
        asking = {**self._without_format(), **self._format_params(asked.sent, chosen, strict)}
        kwargs = {**asking, **formats, **traced, **_output_check(parser, retries), **kwargs}
        model = self.bind_tools(tools, strict=strict if self._strict_schemas else None, **kwargs) if tools else self.bind(**kwargs)
        return structured(model, parser, include_raw=include_raw)

    def _without_format(self) -> dict[str, Any]:
        """Return the keyword by which a `response_format` of the constructors, of the fallbacks' too, does not hold; empty without one."""
        formed = any("response_format" in (getattr(model, "model_kwargs", None) or {}) for model in (self, *self.fallbacks))
        return {"response_format": None} if formed else {}

    def _check_structured(self, schema: Any, method: str, tools: Any) -> None:
        if method not in METHODS:
            raise ConfigurationError(f"method={method!r} is none of 'json_schema', 'function_calling' and 'json_mode'")
        if schema is None and method not in self._schemaless_methods:
            raise ConfigurationError(f"method={method!r} needs a schema")
        if tools and method not in self._methods_beside_tools:
            raise ConfigurationError("tools go with method='json_schema' only; otherwise declare them with the model's tools=[...]")

    def _traced(self, schema: Any, method: str, strict: bool | None) -> dict[str, Any]:
        """Return the schema and the method for traces."""
        arguments = {"method": method, **({"strict": strict} if self._strict_schemas and method != "json_mode" else {})}
        if isinstance(schema, Mapping) and not isinstance(schema.get("type", ""), str):
            schema = inside_object(schema, "value")  # core reads no list of types there
        try:
            return {"kwargs": arguments, "schema": convert_to_openai_tool(schema)}
        except (ValueError, TypeError):  # a JSON schema without a title
            return {"kwargs": arguments, "schema": schema}

    # ------------------------------------------------------------------------------------------ what a vendor gives

    def _default_method(self) -> str:
        """Return the method for callers that name none."""
        return "json_schema"

    def _supported_method(self, method: str, schema: Any, strict: bool | None, kwargs: Mapping[str, Any]) -> str:
        """Return the method to use for the requested one.

        Raises:
            ConfigurationError: The vendor has neither it nor one that does the same.
        """
        return method

    def _format_params(self, schema: Any, method: str, strict: bool | None) -> dict[str, Any]:
        """Return the parameters of a request for JSON of a schema."""
        raise NotImplementedError

    def _can_force(self, kwargs: Mapping[str, Any]) -> bool:
        """Whether a request can demand a call, or None is the output of a reply without one, as of LangChain's models."""
        return True

    def _call_params(self, name: str, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters of a request that forces a call of the tool `name`."""
        return {"tool_choice": name}

    def _bind_schema(self, schema: Any, strict: bool | None, kwargs: dict[str, Any]) -> Runnable[LanguageModelInput, AIMessage]:
        """Return the model with the schema as its only declared tool."""
        return self.bind_tools([schema], strict=strict, **kwargs)
