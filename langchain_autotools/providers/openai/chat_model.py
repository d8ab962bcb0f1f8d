"""`ChatOpenAI`: OpenAI's chat completions and Responses API, and every server that speaks them, with tools that run."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal, Self, cast

from langchain_core.language_models import LanguageModelInput, ModelProfile
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable
from pydantic import PrivateAttr, SecretStr, model_validator

from ...errors import ConfigurationError
from .._base.chat_model import ErrorTable, Exchange, Response
from .._base.parameters import check_structured, langsmith_params
from .._base.structured import call_parser, is_pydantic, json_parser, structured
from .._transport.secrets import has_password, header_variables, secret_values, with_user
from .client import ApiKey, Clients, ClientSettings, apost, post
from .compatibility import FormKey, RequestForms, origin_of, public_url
from .dialect import OPENAI, Dialect
from .errors import error_table
from .parameters import CHAT_ONLY, OpenAIParameters
from .profiles import profile_of
from .request import default_params, read_timeout, request_options, request_params
from .responses.client_calls import answers_in_blocks
from .responses.exchange import responses_exchange
from .responses.parameters import check_sendable
from .routing import LearnedRoutes, route_of
from .structured import response_format
from .tools import format_tool, format_tool_choice, tool_name

__all__ = ["ChatOpenAI"]

Method = Literal["json_schema", "function_calling", "json_mode"]


class ChatOpenAI(OpenAIParameters):
    """OpenAI's chat models, and every server that speaks chat completions or the Responses API (`base_url`), with tools that run.

    ```python
    model = ChatOpenAI(model="gpt-5", tools=[get_temperature])
    for chunk in model.stream("How warm is it in Paris?"):
        print(chunk.text, end="")
    ```

    The constructor's names are those of langchain-openai's `ChatOpenAI`; an unknown one is an error. The SDK is imported, and its
    client made, at the first request.

    Raises:
        ConfigurationError: An argument is unknown or cannot work.
    """

    _dialect: ClassVar[Dialect] = OPENAI
    _ls_provider: ClassVar[str] = "openai"
    _clients: Clients = PrivateAttr(default_factory=Clients)
    _forms: RequestForms = PrivateAttr(default_factory=RequestForms)
    _mappers: Clients = PrivateAttr(default_factory=Clients)
    _routes: LearnedRoutes = PrivateAttr(default_factory=LearnedRoutes)

    @model_validator(mode="after")
    def _check_route(self) -> Self:
        route = route_of(self, {"tools": self._own_tools().declarations})
        if route.why:
            check_sendable({name: getattr(self, name) for name in CHAT_ONLY}, route.why)
        return self

    def answers_in_blocks(self, tools: Sequence[Mapping[str, Any]]) -> bool:
        """Whether the reply may hold what only content blocks can, such as calls of the vendor's tools for the caller."""
        return answers_in_blocks(tools) and bool(route_of(self, {"tools": tools}).why)

    # ------------------------------------------------------------------------------------------ requests

    def continues_conversation(self, kwargs: Mapping[str, Any]) -> bool:
        """Whether the keywords, or the constructor's, name an earlier response or a conversation."""
        asked = {**self.model_kwargs, **(self.extra_body or {}), **(kwargs.get("extra_body") or {}), **kwargs}
        return bool(asked.get("previous_response_id") or asked.get("conversation"))

    def _request_params(self, stop: list[str] | None, kwargs: Mapping[str, Any], *, stream: bool) -> dict[str, Any]:
        """What a request says besides its messages."""
        return request_params(self, stop, kwargs, stream=stream)

    def _exchange(self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any], *, stream: bool) -> Exchange:
        route = route_of(self, kwargs)
        why = self._routes.why(route)
        make = partial(self._to_responses, why=why) if why else self._to_chat_completions
        exchange = make(messages, stop, kwargs, stream=stream)

        def again(error: Exception) -> Exchange | None:
            if self._routes.obeys(route, why, error):
                return self._exchange(messages, stop, kwargs, stream=stream)
            return exchange.again(error)

        return exchange if route.firm else replace(exchange, again=again)

    def _to_responses(
        self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any], *, stream: bool, why: str
    ) -> Exchange:
        secrets = tuple(self._secrets())
        return responses_exchange(self, self._mappers, messages, stop, kwargs, stream=stream, secrets=secrets, why=why)

    def _to_chat_completions(
        self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any], *, stream: bool
    ) -> Exchange:
        params = self._request_params(stop, kwargs, stream=stream)
        key = FormKey(origin_of(self._endpoint, str(params["model"])), self.null_content, tuple(self.part_keys), self._dialect)
        form = self._forms.get(key)
        body = form.mapper.encode_request(messages, params)
        how: dict[str, Any] = {"choices": params.get("n") or 1, "taken": {message.id for message in messages if message.id}}

        def again(error: Exception) -> Exchange | None:
            other = self._forms.other(key, form, error)
            if other is None or other.mapper.encode_request(messages, params) == body:
                return None
            self._forms.keep(key, other)
            return self._exchange(messages, stop, kwargs, stream=stream)

        return Exchange(
            body=body,
            decoder=partial(form.mapper.stream_decoder, **how),
            decode_body=partial(form.mapper.decode_body, **how),
            options=request_options(self, kwargs, stream=stream),
            path="/chat/completions",
            silence=self.stream_chunk_timeout or read_timeout(kwargs.get("timeout") or self.request_timeout),
            secrets=tuple(self._secrets()),
            again=again,
        )

    def _known_key(self) -> ApiKey:
        """The key; also one that the environment got after the model was made.

        Raises:
            ConfigurationError: There is none.
        """
        if self.openai_api_key is not None:
            return self.openai_api_key
        key, names = self._environment.read("key"), " or ".join(self._environment.key)
        if key is None:
            sources = f"give api_key{f', or set {names}' if names else ''}"
            raise ConfigurationError(f"{type(self).__name__} has no key: {sources}; for a server that wants none give any text")
        return SecretStr(key)

    def _client_settings(self) -> ClientSettings:
        return ClientSettings(
            api_key=self._known_key(),
            base_url=self.openai_api_base,
            organization=self.openai_organization,
            headers=tuple((self.default_headers or {}).items()),
            proxy=self.openai_proxy,
            http_client=self.http_client,
            http_async_client=self.http_async_client,
        )

    def _open(self, exchange: Exchange) -> Response:
        settings = self._client_settings()
        response: Response = post(self._clients.get(settings, settings.synchronous), exchange.path, exchange.body, exchange.options)
        return response

    async def _aopen(self, exchange: Exchange) -> Response:
        settings, loop = self._client_settings(), asyncio.get_running_loop()
        client = self._clients.get(settings, lambda: settings.asynchronous(loop), loop)
        response: Response = await apost(client, exchange.path, exchange.body, exchange.options)
        return response

    def _error_table(self, exchange: Exchange) -> ErrorTable:
        return error_table(exchange.secrets)

    # ------------------------------------------------------------------------------------------ tools and output

    def format_tool(self, tool: Any, *, strict: bool | None = None) -> dict[str, Any]:
        """A tool as a request declares it; a builtin tool of the vendor (a dict of another type) as it is."""
        return format_tool(tool, strict=strict)

    def format_tool_choice(self, choice: Any, tools: Sequence[Mapping[str, Any]]) -> Any:
        """A tool choice as a request says it: `auto`, `none`, `any`, True, a tool's name, or the vendor's own form."""
        return format_tool_choice(choice, tools)

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
            method: `json_schema` (the server holds the model to the schema), `function_calling` (the schema is a tool that
                must be called), or `json_mode` (any JSON: say in the prompt what you want).
            include_raw: Return `{"raw": message, "parsed": output or None, "parsing_error": error or None}`.
            strict: Whether the server must hold the model to the schema. None: as the schema says; for `json_schema` with a
                pydantic class, yes wherever its fields allow it.
            tools: Tools to declare along with the schema (`json_schema` only); their calls are left to the caller.
            **kwargs: Bound to every request.

        Raises:
            ConfigurationError: The arguments cannot work together.
            ModelRefusalError: (when run) The model declined.
            OutputParserException: (when run) The reply is incomplete or does not fit the schema.
        """
        check_structured(schema, method, tools, schemaless=("json_mode",), beside_tools=("json_schema",))
        if strict is not None and method == "json_mode":
            raise ConfigurationError("strict has no meaning for method='json_mode': the server is not told the schema")
        if method == "json_schema" and not self._holds_to_schemas(schema):
            method = "function_calling"
        if method == "function_calling":
            return self._calling(schema, include_raw, strict, kwargs)
        if method == "json_schema":
            said: dict[str, Any] = {"kwargs": {"method": method, "strict": strict}, "schema": format_tool(schema)}
            kwargs = {"response_format": response_format(schema, strict=strict), "ls_structured_output_format": said, **kwargs}
        else:
            said = {"kwargs": {"method": method}, "schema": schema}
            kwargs = {"response_format": {"type": "json_object"}, "ls_structured_output_format": said, **kwargs}
        model = self.bind_tools(tools, strict=strict, **kwargs) if tools else self.bind(**kwargs)
        return structured(model, json_parser(schema), include_raw=include_raw)

    def _holds_to_schemas(self, schema: Any) -> bool:
        """Whether `json_schema` can be asked for: not with a pydantic class of version 1, and not of models known to lack it."""
        if is_pydantic(schema) and not hasattr(schema, "model_json_schema"):
            return False
        return (self.profile or {}).get("structured_output") is not False

    def _calling(self, schema: Any, include_raw: bool, strict: bool | None, kwargs: dict[str, Any]) -> Runnable[LanguageModelInput, Any]:
        """The schema as a tool that the model must call."""
        name = tool_name(format_tool(schema)) or ""
        said = {"kwargs": {"method": "function_calling", "strict": strict}, "schema": schema}
        asked = {"tool_choice": name, "parallel_tool_calls": False}
        asked = {parameter: value for parameter, value in asked.items() if not self._disabled(parameter, value)}
        kwargs = {**asked, "ls_structured_output_format": said, **kwargs}
        return structured(self.bind_tools([schema], strict=strict, **kwargs), call_parser(schema, name), include_raw=include_raw)

    def _disabled(self, name: str, value: Any) -> bool:
        """Whether a parameter that nobody asked for is not to be sent with this value."""
        disabled = self.disabled_params or {}
        return name in disabled and (disabled[name] is None or value in disabled[name])

    # ------------------------------------------------------------------------------------------ what LangChain asks

    @property
    def _llm_type(self) -> str:
        return "openai-chat"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        """What a reply depends on: traces show it, and the LLM cache keeps replies apart by it."""
        about: dict[str, Any] = {
            "base_url": public_url(self._endpoint),
            "output_version": self.output_version,
            "extra_body": self.extra_body,
            "stop_sequences": self.stop,  # under this name: core writes the call's own over "stop"
        }
        about["use_responses_api"] = self.use_responses_api
        return {"model_name": self.model_name, **{name: value for name, value in about.items() if value}, **default_params(self)}

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        params = self._request_params(stop, kwargs, stream=False)
        return langsmith_params(
            self._ls_provider,
            str(params["model"]),
            params.get("temperature"),
            params.get("max_completion_tokens") or params.get("max_tokens"),
            params.get("stop"),
        )

    def _resolve_model_profile(self) -> ModelProfile | None:
        return cast("ModelProfile", profile_of(self.model_name)) or None

    @property
    def lc_secrets(self) -> dict[str, str]:
        """The fields that are secrets, by the environment variable to find each in."""
        vendor, environment = self._ls_provider.upper(), self._environment
        headers = header_variables(vendor, "default_headers", self.default_headers)
        proxy = {"openai_proxy": [*environment.proxy, f"{vendor}_PROXY"][0]} if has_password(self.openai_proxy) else {}
        return {"openai_api_key": [*environment.key, f"{vendor}_API_KEY"][0], **headers, **proxy}

    # ------------------------------------------------------------------------------------------ tokens

    def get_token_ids(self, text: str) -> list[int]:
        """The token ids of a text, by `custom_get_token_ids`.

        Raises:
            ConfigurationError: It was not given.
        """
        if self.custom_get_token_ids is None:
            raise ConfigurationError("give custom_get_token_ids=tiktoken.get_encoding('o200k_base').encode (or another tokenizer's)")
        return self.custom_get_token_ids(text)

    # ------------------------------------------------------------------------------------------ secrets and copies

    def _secrets(self) -> list[str]:
        """Texts that must not stand in an error."""
        given = self.openai_api_key.get_secret_value() if isinstance(self.openai_api_key, SecretStr) else self.openai_api_key
        key = [given] if isinstance(given, str) else []
        return [*key, *secret_values(self.default_headers, self.openai_proxy, self.openai_api_base), *secret_values(self.default_query)]

    def _portable_fields(self) -> dict[str, Any]:
        hidden = dict.fromkeys(("openai_api_key", "http_client", "http_async_client"))
        proxy = None if has_password(self.openai_proxy) else self.openai_proxy
        return {**hidden, "openai_proxy": proxy}

    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__(state)
        key = self._environment.read("key")
        self.openai_api_key = SecretStr(key) if key else None
        self.openai_proxy = self.openai_proxy or self._environment.read("proxy")
        self.openai_api_base = with_user(self.openai_api_base, self._environment.read("base_url"))
