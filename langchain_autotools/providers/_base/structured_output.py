"""`with_structured_output` for every vendor: choice of the method, parameters of the request, parser of the reply."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeVar, get_args, overload

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel

from ...errors import ConfigurationError
from ...executor.names import tool_name
from .http_model import HttpChatModel

Method = Literal["json_schema", "function_calling", "json_mode"]

Model = TypeVar("Model", bound=BaseModel)

METHODS: tuple[str, ...] = get_args(Method)


class StructuredChatModel(HttpChatModel, defer_build=True):
    """A chat model with structured output."""

    _schemaless_methods: ClassVar[tuple[str, ...]] = ("json_mode",)
    """The methods that need no schema."""
    _methods_beside_tools: ClassVar[tuple[str, ...]] = ("json_schema",)
    """The methods that allow tools beside the schema."""
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

        With constructor tools the output is that of the last turn. An incomplete reply is an error, never half an object.

        Args:
            schema: A pydantic class, a TypedDict, a JSON schema with a title, or a function in OpenAI's form. Optional for `json_mode`,
                where the vendor has JSON without a schema.
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
            CallsPendingError: (when run) Calls wait for approval; `new_messages` of the error gives what the run brought.
            OutputParserException: (when run) The reply is incomplete or does not fit the schema.
        """
        from .fallback_formats import fallback_formats
        from .output_check import output_check
        from .structured import call_parser, json_parser, structured  # here, because core's parsers take long to import

        chosen = method or self._default_method()
        self._check_structured(schema, chosen, tools)
        chosen = self._supported_method(chosen, schema, strict, kwargs)
        traced = {} if schema is None else {"ls_structured_output_format": self._traced(schema, chosen, strict)}
        if chosen == "function_calling":
            name = tool_name(self.format_tool(schema))
            parser = call_parser(schema, name)
            model = self._bind_schema(
                schema, strict, {**self._call_params(name), **traced, **output_check(parser, retries, name), **kwargs}
            )
            return structured(model, parser, include_raw=include_raw)
        parser = json_parser(schema, withheld=bool(self.fallbacks) and not self.tools)
        formats = fallback_formats(self, schema, chosen, strict) if self.fallbacks else {}
        kwargs = {**self._format_params(schema, chosen, strict), **formats, **traced, **output_check(parser, retries), **kwargs}
        model = self.bind_tools(tools, strict=strict if self._strict_schemas else None, **kwargs) if tools else self.bind(**kwargs)
        return structured(model, parser, include_raw=include_raw)

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

    def _call_params(self, name: str) -> dict[str, Any]:
        """Return the parameters of a request that forces a call of the tool `name`."""
        return {"tool_choice": name}

    def _bind_schema(self, schema: Any, strict: bool | None, kwargs: dict[str, Any]) -> Runnable[LanguageModelInput, AIMessage]:
        """Return the model with the schema as its only declared tool."""
        return self.bind_tools([schema], strict=strict, **kwargs)
