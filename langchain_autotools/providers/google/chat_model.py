"""`ChatGoogleGenerativeAI`: a tool-running chat model for Google's Gemini API or Vertex AI."""

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import Runnable
from pydantic import BaseModel, Field, SecretStr, field_validator

from ...errors import ConfigurationError
from ...messages.blocks import unnumbered, whole_content
from ...turn.model import Secret
from ...turn.tools import ToolChoice, listed
from .._base.chat_model import Profiles, ProviderChatModel, profile_in
from .._base.errors import ErrorMapping
from .._base.parameters import Check, Environment, check_client_arguments, check_count, check_in_path, log_parallel
from .._encode.encoder import origin_of
from .._transport.exchange import Exchange
from .._transport.secrets import portable_arguments
from .._transport.timeouts import DEFAULT_READ_TIMEOUT, own_timeout, read_timeout, timeout_parts
from .client import AccessTokens, ClientSettings, Endpoint
from .decode import GenerateContentDecoder, GenerateContentEvents, camel, snake
from .errors import ERRORS
from .mapper import GenerateContentMapper, read_contents
from .tools import (
    Choice,
    flat_tools,
    format_tool,
    format_tool_choice,
    plain_schema,
    plain_tool,
    reply_schema,
    response_format_config,
    wire_tools,
)

if TYPE_CHECKING:
    from google import genai


_EMPTY_REPLIES = 2  # so often a reply without a word is tried again (wire quirk G-08); then it is the reply
_TIMEOUT = (5.0, DEFAULT_READ_TIMEOUT)
_FIELDS = (
    *("temperature", "top_p", "top_k", "max_output_tokens", "stop", "frequency_penalty", "presence_penalty", "seed"),
    *("include_thoughts", "thinking_budget", "reasoning_effort", "thinking_config", "response_modalities", "media_resolution"),
    *("image_config", "response_mime_type", "response_schema", "safety_settings", "cached_content", "labels"),
)
# Parameters that are in `generationConfig`; every other one is at the top of the request.
_GENERATION = frozenset(
    {
        *("temperature", "topP", "topK", "maxOutputTokens", "stopSequences", "candidateCount", "frequencyPenalty", "presencePenalty"),
        *("seed", "responseModalities", "mediaResolution", "imageConfig", "responseMimeType", "responseSchema", "responseJsonSchema"),
        *("thinkingConfig", "speechConfig", "responseLogprobs", "logprobs", "audioTimestamp", "enableAffectiveDialog", "routingConfig"),
        *("modelSelectionConfig", "enableEnhancedCivicAnswers", "translationConfig", "responseFormat"),
    }
)
# What LangChain users call it, and what the wire calls it.
_SYNONYMS = {
    "max_tokens": "maxOutputTokens",
    "stop": "stopSequences",
    "model_name": "model",
    "response_schema": "responseJsonSchema",
    "reasoning_effort": "thinking_level",
}
_THINKING = {"include_thoughts": "includeThoughts", "thinking_budget": "thinkingBudget", "thinking_level": "thinkingLevel"}
_OF_TOOLS = ("tools", "toolChoice", "toolConfig")

_PROFILES = Path(__file__).with_name("profiles.csv")


_TRUE, _FALSE = ("true", "1", "yes"), ("false", "0", "no")
_ADDRESS_VARIABLES = {False: "GOOGLE_GEMINI_BASE_URL", True: "GOOGLE_VERTEX_BASE_URL"}

_OF_THE_SDK = {
    "http_options": "it is google-genai's own; give base_url, timeout, max_retries, additional_headers, client_args",
    "should_return_http_response": "it is google-genai's own; include_response_headers=True tells the headers",
    "automatic_function_calling": "it is google-genai's own; tools=[...] of the constructor run, those of bind_tools never do",
    "automatic_continuation": "it is google-genai's own: its client asks for the rest of a reply",
}
"""Parameters of google-genai's configuration that only that package supports, with their replacements."""


class ChatGoogleGenerativeAI(ProviderChatModel):
    """Google's chat models, on the Gemini API or Vertex AI, with tools that run.

    ```python
    model = ChatGoogleGenerativeAI(model="gemini-3.5-flash", tools=[get_temperature])
    for chunk in model.stream("How warm is it in Paris?"):
        print(chunk.text, end="")
    ```

    The arguments that matter first, all optional but `model`:

    - `model`: the model's name.
    - `tools`: functions or tools that the model runs itself. Without them it is
      a plain LangChain chat model.
    - `api_key`: the key, as text; else `GOOGLE_API_KEY` of the environment.
    - `vertexai`, `project`, `location`: for Vertex AI.
    - `temperature`, `max_output_tokens`, `stop`, `thinking_level`: of each reply.
    - `timeout`, `max_retries`: seconds without a byte; further attempts.
    - `max_turns`, `max_tool_calls`, `deadline`, `on_limit`: what a run may use.
    - `requires_approval`, `approve`: which calls a human decides about.

    Ask it with `invoke`, `stream`, `batch`, `ainvoke`, `astream`; see also
    `with_structured_output`, `bind_tools`, `resume` and `new_messages`.

    The constructor's names are those of langchain-google-genai's `ChatGoogleGenerativeAI`; an unknown one is an error. The HTTP client
    is made at the first request; google-genai is imported for its errors, when there is one, and for its client (`sdk_client`).

    Raises:
        ConfigurationError: An argument is unknown or cannot work.
    """

    model: str = Field(validation_alias="model_name")
    """Model name, also with its path (`models/...`, `publishers/...`, `projects/...`)."""

    google_api_key: Secret = Field(default=None, alias="api_key")  # type: ignore[arg-type]
    """API key. Environment: `GOOGLE_API_KEY`, then `GEMINI_API_KEY`."""
    credentials: Any = Field(default=None, exclude=True, repr=False)
    """Credentials for Vertex AI, a `google.auth.credentials.Credentials`. None: a key, else the machine's own credentials."""
    vertexai: bool | None = None
    """Whether to use Vertex AI. None: as set by `GOOGLE_GENAI_USE_VERTEXAI`; else if `credentials` or `project` are given."""
    project: str | None = None
    """Google Cloud project, for Vertex AI. Environment: `GOOGLE_CLOUD_PROJECT`; else that of the machine's credentials."""
    location: str | None = None
    """Google Cloud region, for Vertex AI. Environment: `GOOGLE_CLOUD_LOCATION`; else `global`."""
    base_url: str | None = Field(default=None, validation_alias="client_options")
    """Base URL of the API, with or without a version at its end. Environment: `GOOGLE_GEMINI_BASE_URL`, for Vertex AI
    `GOOGLE_VERTEX_BASE_URL`. None: Google's own."""
    api_version: str | None = None
    """Version of the API. Environment: `GOOGLE_GENAI_API_VERSION`. None: `v1beta`, on Vertex AI `v1beta1`."""
    additional_headers: dict[str, str] | None = Field(default=None, repr=False)
    """Additional HTTP headers of every request."""
    client_args: dict[str, Any] | None = Field(default=None, exclude=True, repr=False)
    """Arguments of the package's own HTTP clients: `proxy`, `verify`, ..."""
    http_client: Any = Field(default=None, exclude=True, repr=False)
    """HTTP client for synchronous requests, of httpx or httpx2, in place of the package's own."""
    http_async_client: Any = Field(default=None, exclude=True, repr=False)
    """HTTP client for asynchronous requests in place of the package's own."""

    temperature: float | None = None
    """Sampling temperature, 0 to 2. None: the vendor's default for the model."""
    top_p: float | None = None
    """Nucleus sampling: sample from the most likely tokens of this probability mass, 0 to 1."""
    top_k: int | float | None = None
    """Top-k sampling: sample from this many most likely tokens."""
    max_output_tokens: int | None = Field(default=None, validation_alias="max_tokens")
    """Maximum number of tokens of one reply, thinking included (`maxOutputTokens`)."""
    stop: list[str] | None = Field(default=None, validation_alias="stop_sequences")
    """Stop sequences: the reply ends before any of these texts (`stopSequences`)."""
    frequency_penalty: float | None = None
    """Frequency penalty: positive values make tokens less likely the more often they have occurred."""
    presence_penalty: float | None = None
    """Presence penalty: positive values make tokens that have occurred less likely."""
    seed: int | None = None
    """Sampling seed: the same seed and request give the same reply as far as the server can."""
    n: Literal[1] = Field(default=1, validation_alias="candidate_count")
    """Number of candidates: only 1, since a run has one reply."""

    include_thoughts: bool | None = None
    """Whether replies include summaries of the model's thoughts."""
    thinking_budget: int | None = None
    """Thinking budget in tokens; 0: none, -1: dynamic. For models before Gemini 3."""
    reasoning_effort: str | None = Field(default=None, alias="thinking_level")
    """Thinking level: `minimal`, `low`, `medium`, `high`; models differ. From Gemini 3 on."""
    thinking_config: Any = None
    """The wire's whole `thinkingConfig`, a dict or google-genai's object; the three fields above take precedence."""

    response_modalities: list[Any] | None = None
    """Output modalities: `TEXT`, `IMAGE`, `AUDIO`."""
    media_resolution: Any = None
    """Resolution at which media of the input are read: `low`, `medium`, `high`."""
    image_config: dict[str, Any] | None = None
    """Aspect ratio and size of generated images."""
    response_mime_type: str | None = None
    """MIME type of replies: `text/plain`, `application/json`."""
    response_schema: Any = None
    """JSON schema of replies, with `response_mime_type="application/json"`."""

    safety_settings: Mapping[Any, Any] | list[Any] | None = None
    """Block thresholds by harm category: `{"HARM_CATEGORY_...": "BLOCK_..."}`, as words or google-genai's enums; or the wire's own list."""
    cached_content: str | None = None
    """Name of the cached content that requests begin with."""
    labels: dict[str, str] | None = None
    """Labels of requests, for billing on Vertex AI."""
    timeout: Any = Field(default=None, validation_alias="request_timeout")
    """Timeout in seconds for the connection and between two bytes: a number, (connect, read), or the HTTP library's `Timeout`.
    None: that of `client_args` or of a client of your own that sets one, else 600, to connect 5."""
    max_retries: int | None = Field(default=None, validation_alias="retries")
    """Maximum number of retries of a failed request. None: as set by `retry` (2 by default)."""

    _ls_provider: ClassVar[str] = "google_genai"
    _variable_prefix: ClassVar[str] = "GOOGLE"
    _environment: ClassVar[Environment] = Environment(key=("GOOGLE_API_KEY", "GEMINI_API_KEY"))
    _key_field: ClassVar[str] = "google_api_key"
    _headers_field: ClassVar[str] = "additional_headers"
    _identifying_fields: ClassVar[tuple[str, ...]] = ("vertexai", "project", "location", "api_version", "output_version")
    _limit_params: ClassVar[tuple[str, ...]] = ("maxOutputTokens",)
    _stop_param: ClassVar[str] = "stopSequences"
    _sampling_object: ClassVar[str] = "generationConfig"
    _v0_content: ClassVar[str] = "the wire's own blocks"

    _numbers: ClassVar[Mapping[str, Check]] = {
        **ProviderChatModel._numbers,
        **dict.fromkeys(("topP", "topK", "maxOutputTokens"), check_count),
    }
    _dicts: ClassVar[Mapping[str, str]] = {
        **ProviderChatModel._dicts,
        **dict.fromkeys(("generation_config", "tool_config", "toolConfig"), ""),
        "thinking_config": "thinking_level='high' says the level alone",
    }

    _call_names: ClassVar[frozenset[str]] = ProviderChatModel._call_names | {
        *("audio_timestamp", "audio_transcription_config", "code_execution", "continuation_token", "enable_enhanced_civic_answers"),
        *("generation_config", "generation_output_config", "logprobs", "model_armor_config", "model_selection_config"),
        *("response_json_schema", "response_logprobs", "routing_config", "service_tier", "speech_config", "store"),
        *("system_instruction", "tool_config"),
    }
    _refused: ClassVar[Mapping[str, str]] = {
        **ProviderChatModel._refused,
        "headers": "headers of every request go into additional_headers={...}",
        "default_metadata": "say it in additional_headers={...}",
        "default_metadata_input": "say it in additional_headers={...}",
        "convert_system_message_to_human": "system messages are sent as the request's systemInstruction, which every model takes now",
        "transport": "requests are made over HTTP",
        **_OF_THE_SDK,
    }

    _checks: ClassVar[Mapping[str, Check | None]] = {
        "client_args": check_client_arguments,
        **dict.fromkeys(("project", "location", "api_version"), check_in_path),
    }

    _connection: ClassVar[frozenset[str]] = frozenset(
        {"google_api_key", "credentials", "vertexai", "project", "location", "base_url", "api_version", "additional_headers", "client_args"}
    )

    lists_content: ClassVar[bool] = True
    _uncopied: ClassVar[tuple[str, ...]] = ("http_client", "http_async_client", "credentials", "client_args")

    _error_mapping: ClassVar[ErrorMapping] = ERRORS
    _profiles: ClassVar[Path | Profiles] = _PROFILES
    _methods_beside_tools: ClassVar[tuple[str, ...]] = ("json_schema", "json_mode")
    _client_keywords: ClassVar[frozenset[str]] = ProviderChatModel._client_keywords | {
        *("parallel_tool_calls", "strict", "stream", "max_retries"),
    }

    @field_validator("base_url", mode="before")
    @classmethod
    def _endpoint_of_options(cls, value: Any) -> Any:
        """Accept langchain-google-genai's `{"api_endpoint": url}` too."""
        if not isinstance(value, Mapping):
            return value
        if unknown := value.keys() - {"api_endpoint"}:
            raise ValueError(f"client_options[{min(unknown)!r}] is not known: only api_endpoint is; see additional_headers and client_args")
        return value.get("api_endpoint")

    @field_validator("credentials")
    @classmethod
    def _check_credentials(cls, value: Any) -> Any:
        if value is not None and not hasattr(value, "before_request"):
            raise ValueError("give a google.auth.credentials.Credentials (a key goes into api_key)")
        return value

    @field_validator("thinking_config")
    @classmethod
    def _check_thinking_config(cls, value: Any) -> Any:
        if value is not None and not isinstance(value, Mapping | BaseModel):
            raise ValueError("give a dict such as {'includeThoughts': True}, or google-genai's ThinkingConfig")
        return value

    @field_validator("tools", mode="before")
    @classmethod
    def _tools_of_the_sdk(cls, value: Any) -> Any:
        """Accept google-genai's own objects as the equivalent dicts."""
        return [plain_tool(tool) for tool in value] if isinstance(value, list | tuple) else value

    @classmethod
    def _keyword_names(cls) -> frozenset[str]:
        names = super()._keyword_names().union(_SYNONYMS, _THINKING, _OF_THE_SDK)
        return names.union(_GENERATION, _OF_TOOLS, _THINKING.values(), (camel(_SYNONYMS.get(name, name)) for name in names))

    def _complete_from_environment(self) -> None:
        version = os.environ.get("GOOGLE_GENAI_API_VERSION")
        self.api_version = self.api_version or (None if version in ("", "beta") else version)
        self.vertexai = self._chooses_vertexai()
        self.base_url = self.base_url or self._variable("base_url")
        key = super()._variable("key")
        if not self.vertexai:
            if self.project or self.location:
                raise ValueError("project and location are for Vertex AI: say vertexai=True, or leave them out")
            if self.google_api_key is None and key:
                self.google_api_key = SecretStr(key)
            return
        if self.credentials is not None and self.google_api_key is not None:
            raise ValueError("give credentials or api_key, not both")
        place = os.environ.get("GOOGLE_CLOUD_PROJECT"), os.environ.get("GOOGLE_CLOUD_LOCATION")
        if self.google_api_key is None and self.credentials is None and key and not (self.project or self.location or any(place)):
            self.google_api_key = SecretStr(key)
        if self.google_api_key is None or self.project or self.location:
            self.project, self.location = self.project or place[0], self.location or place[1]

    def _chooses_vertexai(self) -> bool:
        if self.vertexai is not None:
            return self.vertexai
        for name in ("GOOGLE_GENAI_USE_ENTERPRISE", "GOOGLE_GENAI_USE_VERTEXAI"):
            value = os.environ.get(name, "").lower()
            if value in (*_TRUE, *_FALSE):
                return value in _TRUE
        return self.credentials is not None or self.project is not None

    def _check_parameters(self) -> None:
        if self.client_args and (self.http_client or self.http_async_client):
            raise ValueError("client_args cannot reach a client that you made: give them to that client, and no client_args")
        check_sdk_names(self.model_kwargs)
        super()._check_parameters()

    def _variable(self, what: str) -> str | None:
        if what == "base_url":
            return os.environ.get(_ADDRESS_VARIABLES[bool(self.vertexai)]) or None
        return None if what == "key" and self.vertexai and (self.project or self.location) else super()._variable(what)

    @property
    def _proxy(self) -> str | None:
        proxy = (self.client_args or {}).get("proxy")
        return proxy if isinstance(proxy, str) else None

    @property
    def model_name(self) -> str:
        """The model's name."""
        return self.model

    @property
    def thinking_level(self) -> str | None:
        """The thinking level of the model."""
        return self.reasoning_effort

    # ------------------------------------------------------------------------------------------ requests

    def _known_profile(self, model: str) -> Mapping[str, Any]:
        return profile_in(_PROFILES, _plain_name(model), _VERSION)  # a numbered version counts as its name without the number

    def _served_models(self) -> list[str]:
        client = self.sdk_client()
        with nullcontext() if self.http_client else closing(client):  # a client of the caller's stays open
            listed = list(client.models.list())
        conversing = (entry for entry in listed if "generateContent" in (entry.supported_actions or ["generateContent"]))
        return [str(entry.name).rpartition("models/")[2] for entry in conversing]

    def _exchange(self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any], *, stream: bool) -> Exchange:
        params = self._request_params(stop, kwargs, stream=stream)
        log_parallel(kwargs, "Google")
        name = str(params.pop("model"))
        mapper = self._mapper(name)
        blocks = _may_hold_blocks(params, name)
        accept, query = ("text/event-stream", {"alt": "sse"}) if stream else ("application/json", {})
        place = name if self.vertexai or "/" in name else _plain_name(name)
        refused = iter((False,) * min(_EMPTY_REPLIES, self._retry_settings.certain_retries))
        return Exchange(
            body=mapper.encode_request(messages, params),
            decoder=lambda: GenerateContentDecoder(
                origin=mapper.origin, blocks=blocks, may_be_empty=next(refused, True), signs=not _is_older(name)
            ),
            watch=GenerateContentEvents,
            options=self._request_options(kwargs, stream=stream, headers={"accept": accept}, query=query),
            path=f"{place}:{'streamGenerateContent' if stream else 'generateContent'}",
            idle_timeout=self._idle_timeout(kwargs),
        )

    def _whole_content(self, message: AIMessage) -> str | list[Any]:
        """Return the content as langchain-google-genai gives that of whole replies, which differs by the model that wrote it."""
        if _lists_texts(str(message.response_metadata.get("model_name") or self.model)):
            return unnumbered(message.content) or []
        return whole_content(message.content)

    def _traced_name(self, model: str) -> str:
        return _plain_name(model)

    def _mapper(self, model: str) -> GenerateContentMapper:
        """Return the mapper for a model, cached because it keeps the messages that it has encoded."""
        name, older = _plain_name(model), _is_older(model)
        origin = origin_of(f"{self._api.root}/{self._api.model_path(model)}", name)
        return self._cache.get((origin, older), lambda: GenerateContentMapper(origin=origin, model=name, older=older))

    @property
    def _api(self) -> Endpoint:
        return Endpoint(bool(self.vertexai), self._address, self.api_version, self.project, self.location)

    def _client_settings(self) -> ClientSettings:
        with_tokens = self.vertexai and self.google_api_key is None
        return ClientSettings(
            endpoint=self._api,
            api_key=self.google_api_key,
            tokens=self._cache.get(("tokens", self.credentials), lambda: AccessTokens(self.credentials)) if with_tokens else None,
            headers=tuple((name.lower(), value) for name, value in (self.additional_headers or {}).items()),
            arguments=self.client_args,
            http_client=self.http_client,
            http_async_client=self.http_async_client,
        )

    # ------------------------------------------------------------------------------------------ a request's parameters

    def _request_defaults(self) -> dict[str, Any]:
        """Return the constructor's parameters by their wire names, before `generationConfig` is formed."""
        given = {name: value for name in _FIELDS if (value := getattr(self, name)) is not None}
        return {"model": self.model, **self._renamed({**given, **(self._further_params if self.model_kwargs else {})})}

    def _renamed(self, params: Mapping[str, Any]) -> dict[str, Any]:
        wire = {_SYNONYMS.get(name, name): value for name, value in params.items()}
        return {name if name in _THINKING else camel(name): value for name, value in wire.items()}

    def _request_params(self, stop: list[str] | None, kwargs: Mapping[str, Any], *, stream: bool) -> dict[str, Any]:
        """Return all parameters of one request by their wire names; `model` is the model's name, which becomes part of the address."""
        check_sdk_names(kwargs)
        called, defaults = self._call_keywords(kwargs), self._request_defaults()
        if self._profile_for(str(called.get("model") or self.model)).get("temperature") is False:
            defaults.pop("temperature", None)
        params = {**defaults, **response_format_config(called.pop("responseFormat", None)), **called}
        if stop is not None:
            params["stopSequences"] = stop
        params = {name: _json_value(name, value) for name, value in _with_thinking(params).items() if value is not None}
        given = params.pop("generationConfig", None) or {}
        top = {name: value for name, value in params.items() if name not in _GENERATION and name not in _OF_TOOLS}
        generation = {**{name: value for name, value in params.items() if name in _GENERATION}, **_camel_keys(given)}
        if "responseJsonSchema" in generation:
            generation = {"responseMimeType": "application/json", **generation}
        tools = wire_tools([*(kwargs.get("tools") or ()), *([{"code_execution": {}}] if top.pop("codeExecution", None) else [])])
        config = _tool_config(params.get("toolConfig"), params.get("toolChoice"), kwargs.get("tools") or ())
        mixed = len(tools) > 1 and "functionDeclarations" in tools[0]
        # Of functions beside its own tools the Gemini API wants to be told that its tools' calls will be sent back to it. Models before
        # Gemini 3 and Vertex AI have no such switch (ai.google.dev, "Combine built-in tools and function calling").
        if mixed and not self.vertexai and not _is_older(str(top["model"])):
            config = {"includeServerSideToolInvocations": True, **config}
        return {
            **({"tools": tools} if tools else {}),
            **({"toolConfig": config} if config else {}),
            **top,
            **({"generationConfig": generation} if generation else {}),
            **self._extra_body(kwargs),
        }

    def _timeout(self, kwargs: Mapping[str, Any]) -> Any:
        arguments = self.client_args or {}
        if (said := super()._timeout(kwargs)) is not None or "timeout" not in arguments:
            return said or own_timeout(self.http_client, self.http_async_client)
        return (None,) * 4 if arguments["timeout"] is None else arguments["timeout"]

    def _client_timeout(self, kwargs: Mapping[str, Any], idle_timeout: float | None) -> Any:
        return timeout_parts(self._timeout(kwargs) or _TIMEOUT, idle_timeout)

    # ------------------------------------------------------------------------------------------ the SDK

    def sdk_client(self) -> "genai.Client":
        """Return a google-genai client with this model's settings, to count tokens, list models and upload files.

        It has the model's address, key or credentials, headers, timeout and HTTP clients.

        ```python
        model.sdk_client().models.count_tokens(model=model.model, contents="Hello")
        ```

        Each call makes one; whoever asks for it closes it.

        Raises:
            ValueError: The SDK finds no key or credentials.
        """
        from google.genai import Client

        query = {"params": self._address_query} if self._address_query else {}
        own: dict[str, Any] = {**query, **(self.client_args or {})}
        sync = {"client_args": {"follow_redirects": False, **own}, "httpx_client": self.http_client}
        asynchronous = {"async_client_args": own or None, "httpx_async_client": self.http_async_client}
        address, _, version = self._api.root.rpartition("/")
        read = None if (timeout := self._timeout({})) is None else read_timeout(timeout)
        given = {
            "base_url": address if self._api.base_url else None,
            "api_version": version,
            "headers": dict(self.additional_headers or {}),
            "timeout": None if read is None else int(read * 1000),
        }
        options: Any = {name: value for name, value in (given | sync | asynchronous).items() if value is not None}
        if self.google_api_key is not None:
            key = self.google_api_key.get_secret_value()
            return Client(vertexai=bool(self.vertexai), api_key=key, http_options=options)
        place = {"project": self.project, "location": self.location, "credentials": self.credentials} if self.vertexai else {}
        return Client(vertexai=bool(self.vertexai), http_options=options, **place)

    def _convert_input(self, model_input: Any) -> PromptValue:
        return super()._convert_input(read_contents(model_input))

    if not TYPE_CHECKING:  # the types are those of every model

        def with_structured_output(self, schema: Any = None, *args: Any, **kwargs: Any) -> Runnable[LanguageModelInput, Any]:
            """Return a runnable with structured output, as for every model; the SDK's `types.Schema` is accepted too.

            Args:
                schema: A pydantic class, a TypedDict, a JSON schema with a title, or a `types.Schema`.
                *args: As of every model.
                **kwargs: As of every model.
            """
            return super().with_structured_output(plain_schema(schema), *args, **kwargs)

    # ------------------------------------------------------------------------------------------ tools and output

    def format_tool(self, tool: Any, *, strict: bool | None = None) -> dict[str, Any]:
        """Return a tool in the form of a request; one of the vendor's own (`{"google_search": {}}`) under its name as type.

        Raises:
            ConfigurationError: It cannot be declared.
        """
        return format_tool(tool, strict=strict)

    def format_tool_choice(self, choice: Any, tools: Sequence[Mapping[str, Any]]) -> Any:
        """Return a tool choice in plain form, from `auto`, `none`, `any`, True, names of tools, or the vendor's own form.

        Raises:
            ConfigurationError: The choice names no declared tool, or is of no known form.
        """
        return format_tool_choice(choice, tools)

    def read_tool_choice(self, choice: Any) -> ToolChoice:
        """Return the effect of a plain choice on a run: a restriction to names stays for every turn, without the demand."""
        if choice is None:
            return ToolChoice()
        names = choice.get("names")
        if choice["type"] == "none":
            return ToolChoice(choice, choice, ())
        if choice["type"] != "any":
            return ToolChoice(choice, choice, names)
        if not choice.get("only"):
            return ToolChoice(choice, forced=True)
        return ToolChoice(choice, {"type": "validated", "names": names}, names, forced=True)  # without a demand it is sent so

    def take_tool_choice(self, keywords: dict[str, Any]) -> Any:
        """Remove the tool choice from the keywords of a call and return it; it may also be in `tool_config`.

        Raises:
            ConfigurationError: It is in both.
        """
        choice, held = super().take_tool_choice(keywords), _pop_choice(keywords)
        if choice is not None and held is not None:
            raise ConfigurationError("tool_choice and tool_config both say which tools may be called: say it in one place")
        return held if choice is None else choice

    def bind_tools(
        self,
        tools: Sequence[Any],
        tool_config: Any = None,
        *,
        tool_choice: Any = None,
        parallel_tool_calls: bool | None = None,
        strict: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Declare tools without executing them: their calls are left to the caller.

        Args:
            tools: Functions, pydantic classes, TypedDicts, `BaseTool`s, dicts in the form of Google, OpenAI or Anthropic, or tools of
                the vendor's own (`{"google_search": {}}`, or google-genai's `Tool`).
            tool_config: The wire's `toolConfig`, for what the choice does not say.
            tool_choice: `auto`, `any`, `none`, a tool's name or several, True (some tool), or the wire's own form.
            parallel_tool_calls: The wire cannot say it; False is logged at each request.
            strict: Accepted for LangChain's sake; the vendor has no such switch for one tool.
            **kwargs: Bound to every request.

        Raises:
            ConfigurationError: A tool cannot be declared, or the choice names none.
        """
        keywords = {**({"tool_config": tool_config} if tool_config else {}), **kwargs}
        return super().bind_tools(
            flat_tools(listed(tools)), tool_choice=tool_choice, parallel_tool_calls=parallel_tool_calls, strict=strict, **keywords
        )

    def _supported_method(self, method: str, schema: Any, strict: bool | None, kwargs: Mapping[str, Any]) -> str:
        """Return the method: `function_calling` for models with tools before Gemini 3, which accept no schema beside tools."""
        return "function_calling" if schema is not None and self.tools and _is_older(self.model) else method

    def _format_params(self, schema: Any, method: str, strict: bool | None) -> dict[str, Any]:
        schemas = {} if schema is None else {"response_json_schema": reply_schema(schema)}
        return {"response_mime_type": "application/json", **schemas}

    # ------------------------------------------------------------------------------------------ what LangChain asks

    @property
    def _llm_type(self) -> str:
        return "chat-google-generative-ai"

    # ------------------------------------------------------------------------------------------ tokens

    def get_num_tokens_from_messages(self, messages: Sequence[BaseMessage], tools: Sequence[Any] | None = None, **kwargs: Any) -> int:
        """Return the estimated number of tokens of a request with these messages and tools, offline (see `get_num_tokens`)."""
        return super().get_num_tokens_from_messages(messages, flat_tools(tools or ()), **kwargs)

    # ------------------------------------------------------------------------------------------ copies

    def _portable_fields(self) -> dict[str, Any]:
        return {**super()._portable_fields(), "client_args": self.client_args and portable_arguments(self.client_args)}


def check_sdk_names(keywords: Mapping[str, Any]) -> None:
    """Raise for parameters that google-genai handles itself and the server does not know.

    Raises:
        ConfigurationError: There is one.
    """
    for name, value in keywords.items():
        why = _OF_THE_SDK.get(snake(name))
        if why and value is not None:
            raise ConfigurationError(f"{name} cannot be sent: {why}")


# ---------------------------------------------------------------------------------------------- what a request says besides its messages


_RESOLUTION = "MEDIA_RESOLUTION_"
_OTHER_OUTPUTS = ("IMAGE", "AUDIO", "VIDEO")


def _pop_choice(keywords: dict[str, Any]) -> dict[str, Any] | None:
    """Remove the choice from a call's `tool_config` and return it; the rest stays in the keywords."""
    name = next((name for name in ("tool_config", "toolConfig") if keywords.get(name)), None)
    config = _camel_keys(_as_mapping(keywords[name])) if name else {}
    calling = _camel_keys(_as_mapping(config.pop("functionCallingConfig", None)))
    if name is None or not calling.get("mode"):
        return None
    choice = {"mode": _word(calling.pop("mode")), "allowedFunctionNames": calling.pop("allowedFunctionNames", None)}
    keywords[name] = {**config, "functionCallingConfig": calling} if calling else config
    return choice


def _may_hold_blocks(params: Mapping[str, Any], model: str) -> bool:
    """Whether the reply may hold anything besides text, so that its content is a list of blocks from the start.

    Any reply may from Gemini 3 on, whose texts may be signed, and of image models.
    """
    if _lists_texts(model) or "-image" in _plain_name(model).lower():
        return True
    generation = params.get("generationConfig") or {}
    thinking = generation.get("thinkingConfig") or {}
    other = any(modality in _OTHER_OUTPUTS for modality in generation.get("responseModalities") or ())
    return bool(params.get("tools")) or other or bool(thinking.get("includeThoughts"))


def _tool_config(given: Any, choice: Any, tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the request's `toolConfig`, from the caller's and the tool choice."""
    config = _camel_keys(_as_mapping(given))
    chosen = format_tool_choice(choice, tools)
    if chosen is not None:
        config["functionCallingConfig"] = {**_as_mapping(config.get("functionCallingConfig")), **wire_choice(chosen)}
    return config


def wire_choice(choice: Choice) -> dict[str, Any]:
    """Return a plain choice in the form of a request."""
    names = choice.get("names")
    return {"mode": choice["type"].upper(), **({"allowedFunctionNames": [*names]} if names else {})}


def _with_thinking(params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters with all thinking settings in one place."""
    fields = {wire: params.pop(name) for name, wire in _THINKING.items() if name in params}
    config = _as_mapping(params.get("thinkingConfig"))
    config = {**_camel_keys(config), **{wire: value for wire, value in fields.items() if value is not None}}
    level = config.get("thinkingLevel")
    if level is not None:
        config["thinkingLevel"] = _word(level).upper()
    return {**params, "thinkingConfig": config or None}


def _json_value(name: str, value: Any) -> Any:
    """Return a parameter's value as JSON; google-genai's objects and enums are accepted."""
    if name == "safetySettings" and isinstance(value, Mapping):
        return [{"category": _word(category), "threshold": _word(threshold)} for category, threshold in value.items()]
    if name == "safetySettings":
        return [_camel_keys(_as_mapping(setting)) for setting in value]
    if name == "mediaResolution":
        word = _word(value).upper()
        return word if word.startswith(_RESOLUTION) else f"{_RESOLUTION}{word}"
    if name == "responseModalities":
        return [_word(modality).upper() for modality in value]
    if name == "responseJsonSchema":
        return reply_schema(value)
    if isinstance(value, BaseModel):
        return _camel_keys(_as_mapping(value))
    return _word(value) if isinstance(value, Enum) else value


def _camel_keys(value: Mapping[str, Any]) -> dict[str, Any]:
    return {camel(key): item for key, item in value.items()}


def _as_mapping(value: Any) -> Mapping[str, Any]:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_none=True)
    return value or {}


def _word(value: Any) -> str:
    return str(value.value if isinstance(value, Enum) else value)


# ---------------------------------------------------------------------------------------------- what is known of a model


_VERSION = re.compile(r"-\d{3}\Z")
_MAJOR = re.compile(r"gemini-(\d+)")


def _plain_name(model: str) -> str:
    """Return a model's name without its path."""
    return model.rpartition("/")[2]


def _is_older(model: str) -> bool:
    """Whether a model is older than Gemini 3: those need no signatures and accept no media in tool responses."""
    major = _MAJOR.search(model.lower())
    return (major is not None and int(major[1]) < 3) or _plain_name(model).lower().startswith("gemma")


def _lists_texts(model: str) -> bool:
    """Whether whole replies of a model are lists of blocks in langchain-google-genai, those of one text too: from Gemini 3 on."""
    major = _MAJOR.search(model.lower())
    return major is not None and int(major[1]) >= 3
