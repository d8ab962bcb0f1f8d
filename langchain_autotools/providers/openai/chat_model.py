"""`ChatOpenAI`: a tool-running chat model for OpenAI's chat completions, its Responses API, compatible servers."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

from langchain_core.language_models import ModelProfile
from langchain_core.messages import BaseMessage
from pydantic import PrivateAttr, SecretStr, model_validator

from ...errors import ConfigurationError
from .._base.errors import ErrorMapping
from .._encode.encoder import origin_of
from .._encode.tools import is_pydantic
from .._transport.exchange import Exchange
from .._transport.secrets import secret_values
from .compatibility import LEARNED, PROFILES, CompatibilityKey, LearnedRoutes, account_of, profile_of, route_of
from .decode import ChatCompletionsDecoder, ChatCompletionsEvents
from .dialect import OPENAI, Dialect
from .errors import ERRORS, failed_turn
from .mapper import ChatCompletionsMapper
from .parameters import CHAT_ONLY, ApiKey, ClientSettings, OpenAIParameters
from .responses_items import answers_in_blocks
from .responses_mapper import added_tools
from .responses_request import check_sendable, responses_exchange
from .tools import format_tool, format_tool_choice, response_format

_logger = logging.getLogger("langchain_autotools")
_DEFAULT_MODEL = "gpt-3.5-turbo"


class ChatOpenAI(OpenAIParameters):
    """OpenAI's chat models, and every server that speaks chat completions or the Responses API (`base_url`), with tools that run.

    ```python
    model = ChatOpenAI(model="gpt-5", tools=[get_temperature])
    for chunk in model.stream("How warm is it in Paris?"):
        print(chunk.text, end="")
    ```

    The arguments that matter first, all optional but `model`:

    - `model`: the model's name.
    - `tools`: functions or tools that the model runs itself. Without them it is
      a plain LangChain chat model.
    - `api_key`: the key, as text; else `OPENAI_API_KEY` of the environment.
    - `base_url`: address of another server.
    - `temperature`, `max_tokens`, `stop`, `reasoning_effort`: of each reply.
    - `timeout`, `max_retries`: seconds without a byte; further attempts.
    - `max_turns`, `max_tool_calls`, `deadline`, `on_limit`: what a run may use.
    - `requires_approval`, `approve`: which calls a human decides about.

    Ask it with `invoke`, `stream`, `batch`, `ainvoke`, `astream`; see also
    `with_structured_output`, `bind_tools`, `resume` and `new_messages`.

    The constructor's names are those of langchain-openai's `ChatOpenAI`; an unknown one is an error. The SDK is imported, and its
    client made, at the first request.

    Raises:
        ConfigurationError: An argument is unknown or cannot work.
    """

    _dialect: ClassVar[Dialect] = OPENAI
    _error_mapping: ClassVar[ErrorMapping] = ERRORS
    _object_at_top: ClassVar[bool] = True
    _strict_schemas: ClassVar[bool] = True
    _synonyms: ClassVar[Mapping[str, str]] = {"max_tokens": "max_completion_tokens", "model_name": "model", "stop_sequences": "stop"}

    _learned_routes: LearnedRoutes = PrivateAttr(default_factory=LearnedRoutes)

    @model_validator(mode="after")
    def _check_route(self) -> Self:
        if "model_name" not in self.model_fields_set and self.model_name == _DEFAULT_MODEL:
            _logger.warning("ChatOpenAI was given no model=: it asks %s, as langchain-openai does", _DEFAULT_MODEL)
        route = route_of(self, {"tools": self._own_tools().declarations})
        if route.why:
            check_sendable({name: getattr(self, name) for name in CHAT_ONLY}, route.why)
        return self

    def read_added_tools(self, messages: Sequence[BaseMessage]) -> set[str]:
        """The names of the tools that `additional_tools` items of the messages declare."""
        return added_tools(messages)

    def answers_in_blocks(self, tools: Sequence[Mapping[str, Any]]) -> bool:
        """Whether the reply may need content blocks, for example for calls of the vendor's tools that the caller answers."""
        return answers_in_blocks(tools) and bool(route_of(self, {"tools": tools}).why)

    # ------------------------------------------------------------------------------------------ requests

    def continues_conversation(self, kwargs: Mapping[str, Any]) -> bool:
        """Whether the keywords or the constructor's arguments name an earlier response or a conversation."""
        params = {**self.model_kwargs, **self._extra_body(kwargs), **kwargs}
        return bool(params.get("previous_response_id") or params.get("conversation"))

    def _known_profile(self, model: str) -> Mapping[str, Any]:
        return profile_of(model)

    def known_models(self) -> list[str]:
        """Return the names of the vendor's models that have a built-in profile."""
        return sorted(PROFILES)

    def _served_models(self) -> list[str]:
        reply: Any = self._client_settings().get("/models", {**self._address_query, **(self.default_query or {})})
        return [str(entry["id"]) for entry in (reply["data"] if isinstance(reply, dict) else reply)]  # Together's has no object around it

    def _resolve_model_profile(self) -> ModelProfile | None:
        profile = super()._resolve_model_profile()
        if profile and "mid_conversation_tools" in profile:  # tools are added by an item that only the Responses API has
            profile["mid_conversation_tools"] = bool(route_of(self, {}).why)
        return profile

    def _exchange(self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any], *, stream: bool) -> Exchange:
        route = route_of(self, kwargs)
        why = self._learned_routes.why(route)
        make = partial(responses_exchange, self, why=why) if why else self._chat_exchange
        exchange = make(messages, stop, kwargs, stream=stream)

        def other_route(error: Exception) -> Exchange | None:
            obeys = self._learned_routes.obeys(route, why, error, exchange.body)
            return self._exchange(messages, stop, kwargs, stream=stream) if obeys else None

        return exchange if route.firm else exchange.otherwise(other_route)

    def _chat_exchange(self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any], *, stream: bool) -> Exchange:
        """Return a request to chat completions."""
        params = self._request_params(stop, kwargs, stream=stream)
        origin = origin_of(self._endpoint, str(params["model"]))
        key = CompatibilityKey(origin, self.null_content, tuple(self.part_keys), self._dialect, account_of(self.openai_api_key))

        def in_form(error: Exception, exchange: Exchange, tried: tuple[ChatCompletionsMapper, ...]) -> Exchange | None:
            """Return the refused request in another form."""
            form = LEARNED.other(key, tried, error, exchange.body)
            body = exchange.body if form is None else form.encode_request(messages, params)
            if form is None or body == exchange.body:
                return None
            other = replace(exchange, body=body, taken=partial(LEARNED.keep, key, form))
            return replace(other, alternative_for=lambda again: in_form(again, other, (*tried, form)))

        used = LEARNED.get(key)
        exchange = Exchange(
            body=used.encode_request(messages, params),
            decoder=partial(ChatCompletionsDecoder, origin=origin, dialect=self._dialect, choices=params.get("n") or 1, request=params),
            watch=partial(ChatCompletionsEvents, sound=params.get("audio"), choices=params.get("n") or 1),
            options=self._request_options(kwargs, stream=stream, query=self.default_query or {}),
            path="/chat/completions",
            idle_timeout=self._idle_timeout(kwargs),
        )
        exchange = replace(exchange, alternative_for=lambda error: in_form(error, exchange, (used,)))
        if not params.get("tools"):
            return exchange
        return replace(exchange, error_to_turn=partial(failed_turn, model=str(params["model"]), provider=self._dialect.provider))

    def _known_key(self) -> ApiKey:
        """Return the key, also one that was added to the environment after the model was created.

        Raises:
            ConfigurationError: There is none.
        """
        if self.openai_api_key is not None:
            return self.openai_api_key
        key, names = self._variable("key"), " or ".join(self._environment.key)
        if key is None:
            sources = f"give api_key{f', or set {names}' if names else ''}"
            raise ConfigurationError(f"{type(self).__name__} has no key: {sources}; for a server that wants none give any text")
        return SecretStr(key)

    def _client_settings(self) -> ClientSettings:
        return ClientSettings(**{**self._client_arguments(), "api_key": self._known_key()}, organization=self.openai_organization)

    # ------------------------------------------------------------------------------------------ a request's parameters

    def _request_params(self, stop: list[str] | None, kwargs: Mapping[str, Any], *, stream: bool) -> dict[str, Any]:
        called = self._call_keywords(kwargs)
        params = {**self._request_defaults(), **called, **({} if stop is None else {"stop": stop})}
        if "temperature" not in called and not self._takes_temperature(params):
            params.pop("temperature", None)
        if params.get("response_format") is not None:
            params["response_format"] = response_format(params["response_format"])
        if not params.get("tools"):
            params = {name: value for name, value in params.items() if name not in ("tools", "tool_choice", "parallel_tool_calls")}
        params |= self._stream_params(params, kwargs) if stream else {"stream": None, "stream_options": None}
        return {name: value for name, value in params.items() if value is not None} | self._extra_body(kwargs)

    def _stream_params(self, params: Mapping[str, Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return `stream`, and `stream_options` if token counts are wanted or other options are set."""
        options = dict(params.get("stream_options") or {})
        settings = [kwargs.get("stream_usage"), options.get("include_usage"), self.stream_usage]
        wanted = next((value for value in settings if isinstance(value, bool)), False)
        if wanted or "include_usage" in options:
            options["include_usage"] = wanted
        disabled = "stream_options" in (self.disabled_params or {})
        return {"stream": True, "stream_options": None if disabled or not options else options}

    def _takes_temperature(self, params: Mapping[str, Any]) -> bool:
        """Whether to send the constructor's temperature: some models reject any but 1, unless their reasoning is off."""
        name = str(params["model"])
        known = profile_of(self.model_name if name == self._wire_model else name)
        profile = self._profile_for(name)
        effort = params.get("reasoning_effort") or (params.get("reasoning") or {}).get("effort")
        if effort == "none" or params.get("temperature") == 1:
            return True
        reasons = bool(effort and known and profile.get("reasoning_output"))
        return profile.get("temperature") is not False and not reasons

    # ------------------------------------------------------------------------------------------ tools and output

    def format_tool(self, tool: Any, *, strict: bool | None = None) -> dict[str, Any]:
        """Return a tool in the form of a request; one of the vendor's own (a dict of another type) unchanged.

        Args:
            tool: A function, a pydantic class, a TypedDict, a `BaseTool`, or a dict in the form of OpenAI, Anthropic or
                Bedrock.
            strict: Whether the server must hold the model to the schema. None: as the tool or the vendor has it.

        Raises:
            ConfigurationError: The tool cannot be declared.
        """
        return format_tool(tool, strict=strict)

    def format_tool_choice(self, choice: Any, tools: Sequence[Mapping[str, Any]]) -> Any:
        """Return a tool choice in the form of a request: `auto`, `none`, `any`, True, a tool's name, or the vendor's own form.

        Args:
            choice: The choice.
            tools: The declared tools, as `format_tool` made them.

        Returns:
            The value to send; None: send nothing.

        Raises:
            ConfigurationError: The choice names no declared tool, or is of no known form.
        """
        return format_tool_choice(choice, tools)

    def _supported_method(self, method: str, schema: Any, strict: bool | None, kwargs: Mapping[str, Any]) -> str:
        if strict is not None and method == "json_mode":
            raise ConfigurationError("strict has no meaning for method='json_mode': the server is not told the schema")
        return "function_calling" if method == "json_schema" and not self._holds_to_schemas(schema) else method

    def _holds_to_schemas(self, schema: Any) -> bool:
        """Whether `json_schema` can be requested: not with a pydantic 1 class, nor for models known to lack it."""
        if is_pydantic(schema) and not hasattr(schema, "model_json_schema"):
            return False
        return (self.profile or {}).get("structured_output") is not False

    def _format_params(self, schema: Any, method: str, strict: bool | None) -> dict[str, Any]:
        return {"response_format": response_format(schema, strict=strict) if method == "json_schema" else {"type": "json_object"}}

    def _call_params(self, name: str, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        params = {"tool_choice": name, "parallel_tool_calls": False}
        return {parameter: value for parameter, value in params.items() if not self._disabled(parameter, value)}

    def _disabled(self, name: str, value: Any) -> bool:
        """Whether a parameter that nobody set explicitly must not be sent with this value."""
        disabled = self.disabled_params or {}
        return name in disabled and (disabled[name] is None or value in disabled[name])

    # ------------------------------------------------------------------------------------------ what LangChain asks

    @property
    def _llm_type(self) -> str:
        return "openai-chat"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        stop = {"stop_sequences": self.stop} if self.stop else {}  # under this name: core writes the call's own over "stop"
        return {"model_name": self.model_name, **stop, **super()._identifying_params}

    def get_token_ids(self, text: str) -> list[int]:
        """Return the token ids of a text, by `custom_get_token_ids`.

        Raises:
            ConfigurationError: It was not given.
        """
        if self.custom_get_token_ids is None:
            raise ConfigurationError("give custom_get_token_ids=tiktoken.get_encoding('o200k_base').encode (or another tokenizer's)")
        return self.custom_get_token_ids(text)

    def _secrets(self) -> list[str]:
        return [*super()._secrets(), *secret_values(self.default_query)]
