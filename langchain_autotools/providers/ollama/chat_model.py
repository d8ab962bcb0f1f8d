"""`ChatOllama`: Ollama's own chat protocol, and every server that speaks it, with tools that run."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Literal, Self, cast

from langchain_core.language_models import LanguageModelInput, ModelProfile
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import PrivateAttr, SecretStr, model_validator

from ...turn.tools import format_tools as declarable
from .._base.chat_model import ErrorTable, Exchange, Response
from .._base.parameters import check_structured, langsmith_params, log_parallel
from .._encode.origin import origin_of
from .._transport.clients import Clients
from .._transport.decoders import NDJSONDecoder
from .._transport.http import HttpClients, apost, post
from .client import refusal
from .client_settings import model_clients, portable_fields, request_options, secrets_of, silence_of
from .endpoint import address_of
from .errors import error_table
from .format_last import formatted, is_settled, with_usage_of
from .mapper import OllamaMapper
from .parameters import OllamaParameters
from .profiles import profile_of
from .request import default_params, request_params
from .schemas import output_format
from .tools import format_tool, format_tool_choice, is_forced, tool_name
from .validation import check_model

__all__ = ["ChatOllama"]

Method = Literal["json_schema", "function_calling", "json_mode"]

_PATH = "/api/chat"

_logger = logging.getLogger("langchain_autotools")


class ChatOllama(OllamaParameters):
    """Models that an Ollama server runs, with tools that run.

    ```python
    model = ChatOllama(model="qwen3", tools=[get_temperature])
    for chunk in model.stream("How warm is it in Paris?"):
        print(chunk.text, end="")
    ```

    The constructor's names are those of langchain-ollama's `ChatOllama`; an unknown one is an error. The HTTP client is made at the
    first request. `tool_choice` is accepted, but the protocol has none: "none" declares no tools, and a model cannot be forced to
    call one, which is logged.

    Raises:
        ConfigurationError: An argument is unknown or cannot work.
    """

    _clients: Clients = PrivateAttr(default_factory=Clients)
    _mappers: Clients = PrivateAttr(default_factory=Clients)

    @model_validator(mode="after")
    def _validate_model(self) -> Self:
        if self.validate_model_on_init:
            check_model(self._http().synchronous(), self.address.url, self.model, request_options(self, {}))
        return self

    # ------------------------------------------------------------------------------------------ requests

    def _exchange(self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any], *, stream: bool) -> Exchange:
        params = request_params(self, stop, kwargs, stream=stream)
        log_parallel(kwargs, "Ollama")
        mapper = self._mapper(str(params["model"]))
        return Exchange(
            body=mapper.encode_request(messages, params),
            decoder=mapper.stream_decoder,
            decode_body=mapper.decode_body,
            events=NDJSONDecoder,
            options=request_options(self, kwargs),
            silence=silence_of(self, kwargs),
            secrets=secrets_of(self),
        )

    def _mapper(self, model: str) -> OllamaMapper:
        """The mapper for a model, kept: it remembers the messages that it has encoded."""
        origin = origin_of(self.address.url, model)
        mapper: OllamaMapper = self._mappers.get(origin, lambda: OllamaMapper(origin=origin, model=model))
        return mapper

    def _http(self) -> HttpClients:
        return model_clients(self, self._clients)

    def _open(self, exchange: Exchange) -> Response:
        response: Response = post(self._http().synchronous(), self.address.url + _PATH, exchange.body, exchange.options, refusal)
        return response

    async def _aopen(self, exchange: Exchange) -> Response:
        http = self._http().asynchronous(asyncio.get_running_loop())
        response: Response = await apost(http, self.address.url + _PATH, exchange.body, exchange.options, refusal)
        return response

    def _error_table(self, exchange: Exchange) -> ErrorTable:
        return error_table(exchange.secrets)

    # ------------------------------------------------------------------------------------------ tools and a format at once

    def raw_stream(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> Iterator[AIMessageChunk]:
        """Make one request and yield its reply as it comes; with tools and a format see `format_last`."""
        free, bound = formatted(self, kwargs)
        if bound is None:
            yield from super().raw_stream(messages, stop, **free)
            return
        chunks = list(super().raw_stream(messages, stop, **free))
        if is_settled(chunks):
            yield from chunks
        else:
            yield from (with_usage_of(chunks, chunk) for chunk in super().raw_stream(messages, stop, **bound))

    async def araw_stream(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> AsyncIterator[AIMessageChunk]:
        """Like `raw_stream`, asynchronously."""
        free, bound = formatted(self, kwargs)
        first: list[AIMessageChunk] = []
        if bound is not None:
            first = [chunk async for chunk in super().araw_stream(messages, stop, **free)]
            if is_settled(first):
                for chunk in first:
                    yield chunk
                return
        async with aclosing(cast(Any, super().araw_stream(messages, stop, **(free if bound is None else bound)))) as stream:
            async for chunk in stream:
                yield with_usage_of(first, chunk)

    def raw_invoke(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> AIMessage:
        """Make one request that is not streamed and return its reply; with tools and a format see `format_last`."""
        free, bound = formatted(self, kwargs)
        reply = super().raw_invoke(messages, stop, **free)
        if bound is None or is_settled([reply]):
            return reply
        return with_usage_of([reply], super().raw_invoke(messages, stop, **bound))

    async def araw_invoke(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> AIMessage:
        """Like `raw_invoke`, asynchronously."""
        free, bound = formatted(self, kwargs)
        reply = await super().araw_invoke(messages, stop, **free)
        if bound is None or is_settled([reply]):
            return reply
        return with_usage_of([reply], await super().araw_invoke(messages, stop, **bound))

    # ------------------------------------------------------------------------------------------ tools and output

    def format_tool(self, tool: Any, *, strict: bool | None = None) -> dict[str, Any]:
        """A tool as a request declares it. `strict` means nothing here."""
        return format_tool(tool)

    def format_tool_choice(self, choice: Any, tools: Sequence[Mapping[str, Any]]) -> Any:
        """A tool choice in one form: "auto", "none", "required", or the function of a name. Only "none" changes a request."""
        return format_tool_choice(choice, tools)

    def bind_tools(
        self,
        tools: Sequence[Any],
        *,
        tool_choice: Any = None,
        parallel_tool_calls: bool | None = None,
        strict: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Declare tools without executing them: their calls are left to the caller.

        Args:
            tools: Functions, pydantic classes, TypedDicts, `BaseTool`s, or dicts in OpenAI's or Anthropic's form.
            tool_choice: `auto`, `none` (no tools are declared), or `any`, a tool's name, True: accepted, but the protocol cannot force
                a call, which is logged.
            parallel_tool_calls: The protocol cannot say it; False is logged at each request.
            strict: Means nothing here.
            **kwargs: Bound to every request.

        Raises:
            ConfigurationError: A tool cannot be declared, or the choice names none.
        """
        declared = declarable(self, tools)
        choice = self.format_tool_choice(tool_choice, declared)
        if is_forced(choice):
            _logger.warning("Ollama has no tool_choice: the model is told of the tools and decides itself whether to call one")
        said = {"tool_choice": choice or None, "parallel_tool_calls": parallel_tool_calls}
        return self.bind(tools=declared, **{name: value for name, value in said.items() if value is not None}, **kwargs)

    def with_structured_output(
        self,
        schema: Any = None,
        *,
        method: Method = "json_schema",
        include_raw: bool = False,
        strict: bool | None = None,
        tools: Sequence[Any] | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, Any]:
        """A runnable that returns output of a schema: an object of a pydantic class, else a dict.

        With constructor tools the output is that of the last turn. An incomplete reply is an error, never half an object.

        Args:
            schema: A pydantic class, a TypedDict, a JSON schema with a title, or a function of OpenAI's form. Optional for
                `json_mode`.
            method: `json_schema` (the server holds the model to the schema), `function_calling` (the schema is a tool, which the model
                cannot be forced to call: the output may be None), or `json_mode` (any JSON: say in the prompt what you want).
            include_raw: Return `{"raw": message, "parsed": output or None, "parsing_error": error or None}`.
            strict: Means nothing here.
            tools: Tools to declare along with the schema (`json_schema` only); their calls are left to the caller.
            **kwargs: Bound to every request.

        Raises:
            ConfigurationError: The arguments cannot work together.
            OutputParserException: (when run) The reply is incomplete or does not fit the schema.
        """
        from .._base.structured import call_parser, json_parser, structured  # here, because core's parsers take long to import

        check_structured(schema, method, tools, schemaless=("json_mode",), beside_tools=("json_schema",))
        said = {"kwargs": {"method": method}, "schema": _shown(schema)}
        kwargs = {"ls_structured_output_format": said, **kwargs}
        if method == "function_calling":
            declared = format_tool(schema)
            choice = format_tool_choice(tool_name(declared), [declared])
            calling = self.bind(tools=[declared], tool_choice=choice, **kwargs)
            return structured(calling, call_parser(schema, tool_name(declared)), include_raw=include_raw)
        kwargs = {"format": output_format("json" if method == "json_mode" else schema), **kwargs}
        model = self.bind_tools(tools, **kwargs) if tools else self.bind(**kwargs)
        return structured(model, json_parser(schema), include_raw=include_raw)

    # ------------------------------------------------------------------------------------------ what LangChain asks

    @property
    def _llm_type(self) -> str:
        return "chat-ollama"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        """What a reply depends on: traces show it, and the LLM cache keeps replies apart by it."""
        about = {"base_url": self.address.url, "output_version": self.output_version}
        return {**default_params(self), **{name: value for name, value in about.items() if value}}

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        params = request_params(self, stop, kwargs, stream=False)
        options = params.get("options") or {}
        return langsmith_params("ollama", str(params["model"]), options.get("temperature"), options.get("num_predict"), options.get("stop"))

    def _resolve_model_profile(self) -> ModelProfile | None:
        return cast("ModelProfile", profile_of(self.num_ctx))

    @property
    def lc_secrets(self) -> dict[str, str]:
        """The fields that are secrets, by the environment variable to find each in."""
        return {"api_key": "OLLAMA_API_KEY", **({"base_url": "OLLAMA_HOST"} if self.address.authorization else {})}

    # ------------------------------------------------------------------------------------------ copies

    def _portable_fields(self) -> dict[str, Any]:
        return portable_fields(self)

    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__(state)
        key = os.environ.get("OLLAMA_API_KEY")
        self.api_key = SecretStr(key) if key else None
        host = os.environ.get("OLLAMA_HOST")
        if host and address_of(host).url == self.address.url:
            self.base_url = host  # which may say a user and password


def _shown(schema: Any) -> Any:
    """A schema as traces show it."""
    return schema if schema is None or isinstance(schema, Mapping) else convert_to_openai_tool(schema)
