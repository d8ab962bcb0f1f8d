"""`ChatAnthropic`: Anthropic's Messages API, and every server that speaks it, with tools that run."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Literal, cast

from langchain_core.language_models import LanguageModelInput, ModelProfile
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable
from pydantic import PrivateAttr, SecretStr

from ...turn.tool_choice import ToolChoice
from .._base.chat_model import ErrorTable, Exchange, Response
from .._base.parameters import check_structured, first_of, langsmith_params
from .._base.structured import call_parser, json_parser, structured
from .._encode.origin import origin_of, public_url
from .._transport.clients import Clients
from .._transport.secrets import has_password, header_variables, secret_values, with_user
from .._transport.timeouts import read_timeout
from .client import ClientSettings, apost, post
from .errors import error_table
from .mapper import MessagesMapper
from .parameters import ADDRESS_VARIABLES, AnthropicParameters
from .profiles import profile_of
from .request import (
    HEADERS,
    cache_mark,
    default_params,
    is_thinking,
    may_hold_blocks,
    request_options,
    request_params,
    with_cache_marks,
    with_container,
)
from .structured import output_format
from .tools import client_tool_names, format_tool, format_tool_choice, read_choice

__all__ = ["ChatAnthropic"]

Method = Literal["function_calling", "json_schema", "json_mode"]

_MARK = b'"cache_control":'


class ChatAnthropic(AnthropicParameters):
    """Anthropic's chat models, and every server that speaks the Messages API (`base_url`), with tools that run.

    ```python
    model = ChatAnthropic(model="claude-sonnet-5", tools=[get_temperature])
    for chunk in model.stream("How warm is it in Paris?"):
        print(chunk.text, end="")
    ```

    The constructor's names are those of langchain-anthropic's `ChatAnthropic`; an unknown one is an error. The SDK is imported, and
    its client made, at the first request.

    Raises:
        ConfigurationError: An argument is unknown or cannot work.
    """

    lists_content: ClassVar[bool] = True

    _clients: Clients = PrivateAttr(default_factory=Clients)
    _mappers: Clients = PrivateAttr(default_factory=Clients)

    # ------------------------------------------------------------------------------------------ requests

    def _exchange(self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any], *, stream: bool) -> Exchange:
        params = request_params(self, stop, kwargs, stream=stream)
        mapper = self._mapper(str(params["model"]))
        if self.reuse_last_container is not False and kwargs.get("container", "") is not None:
            last = mapper.last_container(messages, ever=bool(self.reuse_last_container))
            params |= {"container": with_container(params.get("container"), last)} if last else {}
        said = {name: value for name, value in params.items() if name not in HEADERS}
        body = mapper.encode_request(messages, said)
        mark = cache_mark(self, params, kwargs)
        if mark and _MARK not in body:
            body = mapper.encode_request(messages, with_cache_marks(said, mark), cache=mark)
        blocks = may_hold_blocks(params, body)
        usage = bool(kwargs.get("stream_usage", self.stream_usage))
        return Exchange(
            body=body,
            decoder=partial(mapper.stream_decoder, blocks=blocks, usage=usage),
            decode_body=partial(mapper.decode_body, blocks=blocks),
            options=request_options(self, params, kwargs, body, stream=stream),
            silence=self.stream_chunk_timeout or read_timeout(kwargs.get("timeout") or self.default_request_timeout),
            secrets=tuple(self._secrets()),
        )

    def _mapper(self, model: str) -> MessagesMapper:
        """The mapper for a model, kept: it remembers the messages that it has encoded."""
        anywhere = bool(((self.profile or {}) if model == self.model else profile_of(model)).get("mid_conversation_system_messages"))
        origin = origin_of(self.anthropic_api_url, model)
        mapper: MessagesMapper = self._mappers.get(
            (origin, anywhere), lambda: MessagesMapper(origin=origin, model=model, system_anywhere=anywhere)
        )
        return mapper

    def _client_settings(self) -> ClientSettings:
        return ClientSettings(
            api_key=self.anthropic_api_key,
            base_url=self.anthropic_api_url,
            headers=tuple((self.default_headers or {}).items()),
            proxy=self.anthropic_proxy,
            http_client=self.http_client,
            http_async_client=self.http_async_client,
        )

    def _open(self, exchange: Exchange) -> Response:
        settings = self._client_settings()
        response: Response = post(self._clients.get(settings, settings.synchronous), exchange.body, exchange.options)
        return response

    async def _aopen(self, exchange: Exchange) -> Response:
        settings, loop = self._client_settings(), asyncio.get_running_loop()
        client = self._clients.get(settings, lambda: settings.asynchronous(loop), loop)
        response: Response = await apost(client, exchange.body, exchange.options)
        return response

    def _error_table(self, exchange: Exchange) -> ErrorTable:
        return error_table(exchange.secrets)

    # ------------------------------------------------------------------------------------------ tools and output

    def format_tool(self, tool: Any, *, strict: bool | None = None) -> dict[str, Any]:
        """A tool as a request declares it; a tool of the vendor's own (a dict of another type) as it is."""
        return format_tool(tool, strict=strict)

    def client_tool_names(self, tools: Sequence[Mapping[str, Any]]) -> set[str]:
        """The names of those tools of the vendor's that run on the caller's machine (bash, text editor, computer, memory)."""
        return client_tool_names(tools)

    def format_tool_choice(self, choice: Any, tools: Sequence[Mapping[str, Any]]) -> Any:
        """A tool choice as a request says it: `auto`, `none`, `any`, True, a tool's name, or the vendor's own form."""
        return format_tool_choice(choice, tools)

    def read_tool_choice(self, choice: Any) -> ToolChoice:
        """What a choice that `format_tool_choice` gave means for a run: that calls may not stand side by side stays."""
        return read_choice(choice)

    def with_structured_output(
        self,
        schema: Any = None,
        *,
        method: Method = "function_calling",
        include_raw: bool = False,
        strict: bool | None = None,
        tools: Sequence[Any] | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, Any]:
        """A runnable that returns output of a schema: an object of a pydantic class, else a dict.

        With constructor tools the output is that of the last turn. An incomplete reply is an error, never half an object.

        Args:
            schema: A pydantic class, a TypedDict, a JSON schema with a title, or a function of OpenAI's form.
            method: `function_calling` (the schema is a tool that must be called), or `json_schema` (the vendor holds the model to
                the schema). `json_mode` is `json_schema` here: the vendor has no JSON without a schema. Models that cannot be
                forced to call a tool, because they think or at all, are asked by `json_schema`.
            include_raw: Return `{"raw": message, "parsed": output or None, "parsing_error": error or None}`.
            strict: Whether the vendor must hold the call to the schema (`function_calling` only).
            tools: Tools to declare along with the schema (`json_schema` only); their calls are left to the caller.
            **kwargs: Bound to every request.

        Raises:
            ConfigurationError: The arguments cannot work together.
            ModelRefusalError: (when run) The model declined.
            OutputParserException: (when run) The reply is incomplete or does not fit the schema.
        """
        check_structured(schema, method, tools, schemaless=(), beside_tools=("json_schema", "json_mode"))
        if method == "function_calling" and self._can_be_forced(kwargs):
            return self._calling(schema, include_raw, strict, kwargs)
        said: dict[str, Any] = {"kwargs": {"method": "json_schema"}, "schema": format_tool(schema)}
        config = {**(self.output_config or {}), "format": output_format(schema)}
        kwargs = {"output_config": config, "ls_structured_output_format": said, **kwargs}
        model = self.bind_tools(tools, **kwargs) if tools else self.bind(**kwargs)
        return structured(model, json_parser(schema), include_raw=include_raw)

    def _can_be_forced(self, kwargs: Mapping[str, Any]) -> bool:
        return not is_thinking(kwargs.get("thinking", self.thinking)) and (self.profile or {}).get("tool_choice") is not False

    def _calling(self, schema: Any, include_raw: bool, strict: bool | None, kwargs: dict[str, Any]) -> Runnable[LanguageModelInput, Any]:
        """The schema as a tool that the model must call."""
        name = str(format_tool(schema)["name"])
        said = {"kwargs": {"method": "function_calling"}, "schema": format_tool(schema)}
        single: dict[str, Any] = {} if self.tools else {"parallel_tool_calls": False}  # the model's own tools may be called side by side
        kwargs = {"tool_choice": name, "ls_structured_output_format": said, **single, **kwargs}
        return structured(self.bind_tools([schema], strict=strict, **kwargs), call_parser(schema, name), include_raw=include_raw)

    # ------------------------------------------------------------------------------------------ what LangChain asks

    @property
    def effort(self) -> str | None:
        """`reasoning_effort`, by the vendor's name for it."""
        return self.reasoning_effort

    @property
    def _llm_type(self) -> str:
        return "anthropic-chat"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        """What a reply depends on: traces show it, and the LLM cache keeps replies apart by it."""
        own = {name: getattr(self, name) for name in ("output_version", "extra_body", "betas")}
        about = {"base_url": public_url(self.anthropic_api_url), **own}
        return {**default_params(self), **{name: value for name, value in about.items() if value}}

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        untold = ("tools", "tool_choice")  # and what is not sent of them is to be logged once, by the request
        params = request_params(self, stop, {name: value for name, value in kwargs.items() if name not in untold}, stream=False)
        return langsmith_params(
            "anthropic", str(params["model"]), params.get("temperature"), params.get("max_tokens"), params.get("stop_sequences")
        )

    def _resolve_model_profile(self) -> ModelProfile | None:
        return cast("ModelProfile", profile_of(self.model)) or None

    @property
    def lc_secrets(self) -> dict[str, str]:
        """The fields that are secrets, by the environment variable to find each in."""
        headers = header_variables("ANTHROPIC", "default_headers", self.default_headers)
        proxy = {"anthropic_proxy": "ANTHROPIC_PROXY"} if has_password(self.anthropic_proxy) else {}
        return {"anthropic_api_key": "ANTHROPIC_API_KEY", **headers, **proxy}

    # ------------------------------------------------------------------------------------------ secrets and copies

    def _secrets(self) -> list[str]:
        """Texts that must not stand in an error."""
        key = [self.anthropic_api_key.get_secret_value()] if self.anthropic_api_key else []
        return [*key, *secret_values(self.default_headers, self.anthropic_proxy, self.anthropic_api_url)]

    def _portable_fields(self) -> dict[str, Any]:
        hidden = dict.fromkeys(("anthropic_api_key", "http_client", "http_async_client"))
        proxy = None if has_password(self.anthropic_proxy) else self.anthropic_proxy
        return {**hidden, "anthropic_proxy": proxy}

    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__(state)
        key = os.environ.get("ANTHROPIC_API_KEY")
        self.anthropic_api_key = SecretStr(key) if key else None
        self.anthropic_proxy = self.anthropic_proxy or os.environ.get("ANTHROPIC_PROXY")
        self.anthropic_api_url = with_user(self.anthropic_api_url, first_of(*ADDRESS_VARIABLES))
