"""`ChatOllama`: a tool-running chat model for Ollama's own chat protocol or a compatible server."""

import asyncio
import base64
import logging
import os
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar
from urllib.parse import SplitResult, unquote, urlsplit

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import add_usage
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import Runnable, RunnableBinding
from pydantic import Field, field_validator, model_validator

from ...errors import ConfigurationError
from ...messages.metadata import text_of
from ...turn.model import Secret
from .._base.chat_model import ProviderChatModel
from .._base.errors import ErrorMapping
from .._base.parameters import Check, Environment, check_client_arguments, check_count, check_header, log_parallel
from .._encode.encoder import origin_of, read_object
from .._transport.clients import PerLoopCache
from .._transport.exchange import ClientArguments, Exchange, HttpClients, Response, apost, post
from .._transport.reader import NDJSONDecoder
from .._transport.secrets import SecretDict, portable, portable_arguments, secret_values
from .._transport.timeouts import timeout_parts
from .decode import OllamaDecoder, OllamaEvents, is_model_mistake
from .errors import ERRORS, error_of_response, message_of
from .mapper import OllamaMapper, plain, read_messages
from .tools import format_tool, format_tool_choice, output_format

if TYPE_CHECKING:
    import httpx
    import ollama


_logger = logging.getLogger("langchain_autotools")

_JSON = {"content-type": "application/json", "accept": "application/json"}
_OF_A_REQUEST = ("headers", "timeout")


_OPTIONS = (
    *("mirostat", "mirostat_eta", "mirostat_tau", "num_ctx", "num_gpu", "num_thread", "num_predict", "repeat_last_n"),
    *("repeat_penalty", "temperature", "seed", "stop", "tfs_z", "top_k", "top_p"),
)
"""Fields that are sent in the request's `options`, under their own names. None is not sent."""

# ---------------------------------------------------------------------------------------------- client
# The address of a server.


_PORT = 11434
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Address:
    """The address of a server.

    Attributes:
        url: Its URL, without a slash at the end and without anything secret.
        authorization: The value of the header that the URL's user and password mean; None where it has none.
        password: That password; None where there is none.
    """

    url: str
    authorization: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)


@lru_cache(maxsize=64)
def address_of(host: str | None) -> Address:
    """Parse the address of a server like the vendor's SDK: scheme, host and port are optional.

    Args:
        host: `http://host:port/path`, `host:port`, `host`, `:port`, with or without `user:password@`; None for this machine.

    Raises:
        ConfigurationError: It is no address.
    """
    text = (host or "").strip()
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme, rest = "http", text
    try:
        parts = urlsplit(f"{scheme}://{rest}")
        port = parts.port or (_PORTS.get(scheme, _PORT) if separator else _PORT)
    except ValueError as error:
        raise ConfigurationError(f"base_url is no address ({error}): give http://host:port") from None
    if scheme not in _PORTS:
        raise ConfigurationError(f"base_url begins with {scheme!r}: give http://host:port or https://host:port")
    name = parts.hostname or "127.0.0.1"
    name = f"[{name}]" if ":" in name else name
    path = parts.path.strip("/")
    return Address(f"{scheme}://{name}:{port}" + (f"/{path}" if path else ""), *_credentials(parts))


def _credentials(parts: SplitResult) -> tuple[str | None, str | None]:
    if not parts.username:
        return None, None
    password = unquote(parts.password or "")
    pair = f"{unquote(parts.username)}:{password}"
    return f"Basic {base64.b64encode(pair.encode()).decode()}", password or None


# HTTP requests to Ollama, and the bytes of their replies as they arrive.
#
# The SDK's client has no public way to the bytes of a reply, and its public stream drops ids and places of calls and dies on lines that
# servers send (wire quirks O-01 to O-03). So requests go through httpx, the library that the SDK itself uses, with the SDK's own
# configuration: its address rules, environment variables, redirects, and no limit on the time of a reply.


DEFAULT_TIMEOUT = (10.0, None, None, None)
"""Default timeout: ten seconds to connect, no limit for the reply, because a model may have to be loaded first."""


@dataclass(frozen=True)
class ClientSettings:
    """The settings of the HTTP clients. Values that differ between requests are not part of it.

    Attributes:
        url: The server's address.
        arguments: Arguments of the synchronous client.
        async_arguments: Arguments of the asynchronous client.
    """

    url: str
    arguments: Mapping[str, Any] = field(default_factory=dict, repr=False)
    async_arguments: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def post(self, exchange: Exchange, cache: PerLoopCache) -> Response:
        """Send a request.

        Raises:
            ollama.ResponseError: A reply with an error status.
        """
        http = self.clients(cache).synchronous()
        return post(http, self.url + exchange.path, exchange.body, exchange.options, _refusal)

    async def apost(self, exchange: Exchange, cache: PerLoopCache) -> Response:
        """Like `post`, asynchronously."""
        http = self.clients(cache).asynchronous(asyncio.get_running_loop())
        return await apost(http, self.url + exchange.path, exchange.body, exchange.options, _refusal)

    def clients(self, cache: PerLoopCache) -> HttpClients:
        """Return the HTTP clients, of httpx because users pass that library's objects.

        Args:
            cache: Keeps the clients that are the model's own.
        """
        import httpx

        first, second = (ClientArguments({"timeout": DEFAULT_TIMEOUT, **one}) for one in (self.arguments, self.async_arguments))
        return HttpClients(httpx, first, second, cache)


def _refusal(response: Any) -> Exception | None:
    """Return the error for an error status; None for a call that the server could not parse, a normal reply (wire quirk T-07)."""
    return None if is_model_mistake(message_of(response)) else error_of_response(response)


_TO_THE_END = -2
_CLIENTS = "clients are made from the other settings when they are needed; client_kwargs goes to them"


_OTHER_OPTIONS = (
    "embedding_only f16_kv frequency_penalty logits_all low_vram main_gpu min_p num_batch num_keep numa penalize_newline presence_penalty"
    " typical_p use_mlock use_mmap vocab_only"
)
"""Options of the server that are no arguments."""


def plain_options(options: Any) -> Any:
    """Return options as a dict, also from the SDK's `ollama.Options`; other values unchanged."""
    return options.model_dump(exclude_none=True) if hasattr(options, "model_dump") else options


def _check_prediction(name: str, value: Any) -> None:
    """Raise if the server does not accept a number of tokens."""
    if value is not None and not value >= _TO_THE_END:
        raise ConfigurationError(f"{name} must be a number of tokens, -1 (any number) or -2 (to the end of the context), not {value!r}")


class ChatOllama(ProviderChatModel):
    """Models of an Ollama server, with tools that run.

    ```python
    model = ChatOllama(model="qwen3", tools=[get_temperature])
    for chunk in model.stream("How warm is it in Paris?"):
        print(chunk.text, end="")
    ```

    The arguments that matter first, all optional but `model`:

    - `model`: the model's name.
    - `tools`: functions or tools that the model runs itself. Without them it is
      a plain LangChain chat model.
    - `base_url`: address of the server; None: this machine, port 11434.
    - `temperature`, `num_predict`, `num_ctx`, `reasoning`: of each reply.
    - `timeout`, `max_retries`: seconds without a byte; further attempts.
    - `max_turns`, `max_tool_calls`, `deadline`, `on_limit`: what a run may use.
    - `requires_approval`, `approve`: which calls a human decides about.

    Ask it with `invoke`, `stream`, `batch`, `ainvoke`, `astream`; see also
    `with_structured_output`, `bind_tools`, `resume` and `new_messages`.

    The constructor's names are those of langchain-ollama's `ChatOllama`; an unknown one is an error. The HTTP client is made at the
    first request. `tool_choice` is accepted, but the protocol has none: "none" declares no tools, and a model cannot be forced to
    call one, which is logged.

    Raises:
        ConfigurationError: An argument is unknown or cannot work.
    """

    model: str = Field(validation_alias="model_name")
    """Model name."""
    base_url: str | None = Field(default=None, repr=False)  # it may hold a password
    """Address of the server: `http://host:11434`, `host`, `host:port`, also with `user:password@`. Environment: `OLLAMA_HOST`.
    None: this machine, port 11434."""
    api_key: Secret = None  # type: ignore[assignment]
    """API key of a server that wants one, ollama.com among them. Environment: `OLLAMA_API_KEY`."""

    reasoning: bool | str | None = Field(default=None, validation_alias="think")
    """Whether the model thinks: True, False, or how much (`low`, `medium`, `high`, `max`; models differ). None leaves it to the server.
    Thinking is in `additional_kwargs["reasoning_content"]`."""
    validate_model_on_init: bool = False
    """Whether the constructor checks that the server has the model."""

    mirostat: int | None = None
    """Mirostat sampling; 0: off, 1: Mirostat, 2: Mirostat 2.0."""
    mirostat_eta: float | None = None
    """Learning rate of Mirostat."""
    mirostat_tau: float | None = None
    """Target entropy of Mirostat: low values give coherent texts, high ones diverse texts."""
    num_ctx: int | None = Field(default=None, gt=0)
    """Context length in tokens. The server silently truncates longer input at the front; runs end before (`context_window`)."""
    num_gpu: int | None = None
    """Number of layers on the GPU."""
    num_thread: int | None = None
    """Number of CPU threads."""
    num_predict: int | None = Field(default=None, validation_alias="max_tokens")
    """Maximum number of tokens of one reply; -1: unlimited, -2: until the context is full."""
    repeat_last_n: int | None = None
    """Number of last tokens in which repetitions are penalized; 0: off, -1: the whole context."""
    repeat_penalty: float | None = None
    """Repetition penalty."""
    temperature: float | None = None
    """Sampling temperature."""
    seed: int | None = None
    """Sampling seed: the same seed and request give the same reply."""
    stop: list[str] | None = None
    """Stop sequences: the reply ends before any of these texts."""
    tfs_z: float | None = None
    """Tail free sampling; 1: off. Newer servers no longer support it."""
    top_k: int | None = None
    """Top-k sampling: sample from this many most likely tokens."""
    top_p: float | None = None
    """Nucleus sampling: sample from the most likely tokens of this probability mass, 0 to 1."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Model options of the server that this class does not name (`min_p`, `num_keep`, ...), a dict or an `ollama.Options`."""

    logprobs: bool | None = None
    """Whether to return the log probabilities of the reply's tokens, in `response_metadata["logprobs"]`."""
    top_logprobs: int | None = Field(default=None, ge=1)
    """Number of most likely tokens to return at each position; implies `logprobs`."""
    format: Literal["", "json"] | dict[str, Any] | None = None
    """Output format: "json", or a JSON schema. With tools see `with_structured_output`."""
    keep_alive: int | float | str | None = None
    """Duration for which the model stays loaded after the request: seconds, or a text such as "5m"; -1: forever."""
    default_request_timeout: Any = Field(default=None, alias="timeout")
    """Timeout in seconds for the connection and between two bytes: a number, (connect, read), or an `httpx.Timeout`. None: 10 to
    connect, and unlimited for the reply, since a model may have to be loaded first."""
    client_kwargs: dict[str, Any] | None = Field(default_factory=dict, repr=False, exclude=True)
    """Arguments of the HTTP clients (`headers`, `verify`, `auth`, ...), as httpx takes them."""
    sync_client_kwargs: dict[str, Any] | None = Field(default_factory=dict, repr=False, exclude=True)
    """Additional client arguments for synchronous requests only."""
    async_client_kwargs: dict[str, Any] | None = Field(default_factory=dict, repr=False, exclude=True)
    """Additional client arguments for asynchronous requests only."""

    _ls_provider: ClassVar[str] = "ollama"
    _environment: ClassVar[Environment] = Environment(key=("OLLAMA_API_KEY",))
    _timeout_field: ClassVar[str] = "default_request_timeout"
    _limit_params: ClassVar[tuple[str, ...]] = ("num_predict",)
    _sampling_object: ClassVar[str] = "options"
    _numbers: ClassVar[Mapping[str, Check]] = {
        **ProviderChatModel._numbers,
        **dict.fromkeys(("num_ctx", "num_thread", "mirostat_eta", "mirostat_tau", "repeat_penalty", "tfs_z", "min_p"), check_count),
        **dict.fromkeys(("num_predict", "max_tokens"), _check_prediction),
    }
    _dicts: ClassVar[Mapping[str, str]] = {**ProviderChatModel._dicts, "options": ""}

    _call_names: ClassVar[frozenset[str]] = ProviderChatModel._call_names | {"truncate", "shift"}
    _refused: ClassVar[dict[str, str]] = {
        **ProviderChatModel._refused,
        **dict.fromkeys(_OTHER_OPTIONS.split(), "it goes into options={...}"),
        "client": _CLIENTS,
        "async_client": _CLIENTS,
        "headers": "headers go into client_kwargs={'headers': {...}}",
    }

    _checks: ClassVar[Mapping[str, Check | None]] = {
        "api_key": check_header,  # an empty one is none
        "base_url": None,  # `address` reads what is no URL too
        **dict.fromkeys(("client_kwargs", "sync_client_kwargs", "async_client_kwargs"), check_client_arguments),
    }

    _connection: ClassVar[frozenset[str]] = frozenset({"base_url", "api_key", "client_kwargs", "sync_client_kwargs", "async_client_kwargs"})

    _error_mapping: ClassVar[ErrorMapping] = ERRORS
    _synonyms: ClassVar[Mapping[str, str]] = {
        "reasoning": "think",
        "reasoning_effort": "think",
        "max_tokens": "num_predict",
        "model_name": "model",
    }
    _client_keywords: ClassVar[frozenset[str]] = frozenset(
        {
            *("extra_body", "extra_headers", "extra_query", "timeout", "options", "response_format", "tool_choice"),
            *("strict", "parallel_tool_calls", "stream_usage"),  # other vendors' parameters that callers of any model give
        }
    )

    @field_validator("options", mode="before")
    @classmethod
    def _read_options(cls, value: Any) -> Any:
        return plain_options(value)

    @field_validator("format", mode="before")
    @classmethod
    def _read_format(cls, value: Any) -> Any:
        return None if value is None else output_format(value)

    @field_validator("reasoning")
    @classmethod
    def _check_reasoning(cls, value: Any) -> Any:
        if value == "":
            raise ValueError("reasoning='' is none of True, False, None, 'low', 'medium', 'high' and 'max'")
        return value

    def _complete_from_environment(self) -> None:
        super()._complete_from_environment()
        self.base_url = self.base_url or os.environ.get("OLLAMA_HOST") or None
        address_of(self.base_url)

    def _check_parameters(self) -> None:
        if self.top_logprobs is not None and self.logprobs is False:
            raise ValueError("top_logprobs asks for log probabilities, which logprobs=False refuses: say one of them")
        super()._check_parameters()

    @property
    def model_name(self) -> str:
        """The model's name."""
        return self.model

    @property
    def address(self) -> Address:
        """The address of requests."""
        return address_of(self.base_url)

    @property
    def _endpoint(self) -> str:
        return self.address.url

    @property
    def all_client_kwargs(self) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """The arguments of both HTTP clients, of the synchronous one and of the asynchronous one."""
        return self.client_kwargs or {}, self.sync_client_kwargs or {}, self.async_client_kwargs or {}

    def _timeout(self, kwargs: Mapping[str, Any]) -> Any:
        return super()._timeout(kwargs) or self.all_client_kwargs[0].get("timeout")

    def _idle_timeout(self, kwargs: Mapping[str, Any]) -> float | None:
        return super()._idle_timeout(kwargs) if self.stream_chunk_timeout or self._timeout(kwargs) is not None else None

    @model_validator(mode="after")
    def _validate_model(self) -> Self:
        if self.validate_model_on_init:
            http = self._client_settings().clients(self._cache).synchronous()
            _check_model(http, self.address.url, self.model, self._request_options({}, stream=True))
        return self

    # ------------------------------------------------------------------------------------------ requests

    def _known_profile(self, model: str) -> Mapping[str, Any]:
        return {**_PROTOCOL, **({} if self.num_ctx is None else {"max_input_tokens": self.num_ctx})}

    def _served_models(self) -> list[str]:
        client = self.sdk_client()
        with closing(client._client):  # the first releases of the SDK cannot close it otherwise
            return [str(entry.model) for entry in client.list().models]

    def _exchange(self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any], *, stream: bool) -> Exchange:
        params = self._request_params(stop, kwargs, stream=stream)
        log_parallel(kwargs, "Ollama")
        mapper = self._mapper(str(params["model"]))
        return Exchange(
            body=mapper.encode_request(messages, params),
            decoder=partial(OllamaDecoder, origin=mapper.origin),
            watch=OllamaEvents,
            events=NDJSONDecoder,
            options=self._request_options(kwargs, stream=stream),
            path="/api/chat",
            idle_timeout=self._idle_timeout(kwargs),
        )

    def _mapper(self, model: str) -> OllamaMapper:
        """Return the mapper for a model, cached because it keeps the messages that it has encoded."""
        origin = origin_of(self.address.url, model)
        return self._cache.get(origin, lambda: OllamaMapper(origin=origin, model=model))

    def _client_settings(self) -> ClientSettings:
        """The client settings. Headers and timeout are sent per request, so models share clients."""
        both, sync, asynchronous = self.all_client_kwargs
        common = {name: value for name, value in both.items() if name not in _OF_A_REQUEST}
        return ClientSettings(self.address.url, {**common, **sync}, {**common, **asynchronous})

    # ------------------------------------------------------------------------------------------ a request's parameters

    def _request_defaults(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in _OPTIONS}
        options = {name: value for name, value in own.items() if value is not None and value != []} | self.options
        params = {
            "model": self.model,
            "think": self.reasoning,
            "format": self.format,
            "logprobs": True if self.top_logprobs is not None else self.logprobs,
            "top_logprobs": self.top_logprobs,
            "keep_alive": self.keep_alive,
            "options": options or None,
        }
        return {name: value for name, value in params.items() if value is not None} | (self._further_params if self.model_kwargs else {})

    def _request_params(self, stop: list[str] | None, kwargs: Mapping[str, Any], *, stream: bool) -> dict[str, Any]:
        called = self._call_keywords(kwargs)
        if kwargs.get("response_format") is not None and called.get("format") is None:
            called["format"] = kwargs["response_format"]
        params = {**self._request_defaults(), **called}
        options = {**(params.pop("options", None) or {}), **(plain_options(kwargs.get("options")) or {})}
        options |= {name: params.pop(name) for name in _OPTIONS if name in params}
        options |= {} if stop is None else {"stop": stop}
        if params.get("format") is not None:
            params["format"] = output_format(params["format"]) or None
        if not params.get("tools") or kwargs.get("tool_choice") == "none":  # who must not call is told of no tools
            params.pop("tools", None)
        params |= {"options": {name: value for name, value in options.items() if value is not None} or None, "stream": stream}
        return {**{name: value for name, value in params.items() if value is not None}, **self._extra_body(kwargs)}

    def _request_options(
        self, kwargs: Mapping[str, Any], *, stream: bool, headers: Mapping[str, Any] = {}, query: Mapping[str, Any] = {}
    ) -> dict[str, Any]:
        common = {**_JSON, **self._authorization(), **_lowered_headers(self.client_kwargs), **headers}
        given = {name: kwargs.get(name) for name in ("timeout", "extra_headers", "extra_query")}
        options = super()._request_options(given, stream=stream, headers=common, query=query)
        return {**options, "headers": SecretDict({name.lower(): value for name, value in options["headers"].items()})}

    def _client_timeout(self, kwargs: Mapping[str, Any], idle_timeout: float | None) -> Any:
        timeout = self._timeout(kwargs)
        if timeout is None and idle_timeout is None:
            return None
        return timeout_parts(DEFAULT_TIMEOUT if timeout is None else timeout, idle_timeout)

    def _authorization(self) -> dict[str, str]:
        """Return the authorization header: the user's own header, else the URL's user, else the key."""
        if any("authorization" in _lowered_headers(arguments) for arguments in self.all_client_kwargs):
            return {}
        if self.address.authorization:
            return {"authorization": self.address.authorization}
        return {"authorization": f"Bearer {self.api_key.get_secret_value()}"} if self.api_key else {}

    # ------------------------------------------------------------------------------------------ the SDK

    def sdk_client(self) -> "ollama.Client":
        """A client of Ollama's SDK with this model's address, key, headers, timeout and client arguments: it lists, shows and pulls models.

        ```python
        model.sdk_client().pull(model.model)
        ```

        Each call makes one; whoever asks for it closes it.
        """
        from ollama import Client

        return Client(**_sdk_arguments(self, self._authorization(), asynchronous=False))

    def async_sdk_client(self) -> "ollama.AsyncClient":
        """Like `sdk_client`, asynchronously."""
        from ollama import AsyncClient

        return AsyncClient(**_sdk_arguments(self, self._authorization(), asynchronous=True))

    def _convert_input(self, model_input: Any) -> PromptValue:
        return super()._convert_input(read_messages(model_input))

    # ------------------------------------------------------------------------------------------ tools and a format at once

    def raw_stream(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> Iterator[AIMessageChunk]:
        """Make one request and yield its reply as it arrives; tools with a format are described at `_format_last`."""
        return _format_last(partial(super().raw_stream, messages, stop), self, kwargs)

    def araw_stream(
        self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any
    ) -> AsyncGenerator[AIMessageChunk, None]:
        """Like `raw_stream`, asynchronously."""
        return _aformat_last(partial(super().araw_stream, messages, stop), self, kwargs)

    def raw_invoke(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> AIMessage:
        """Make one request without streaming and return its reply; tools with a format are described at `_format_last`."""
        ask = partial(super().raw_invoke, messages, stop)
        turns: Iterator[AIMessage] = _format_last(lambda **asked: [ask(**asked)], self, kwargs)
        return next(turns)

    async def araw_invoke(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> AIMessage:
        """Like `raw_invoke`, asynchronously."""
        ask = partial(super().araw_invoke, messages, stop)

        async def reply(**asked: Any) -> AsyncGenerator[AIMessage, None]:
            yield await ask(**asked)

        [turn] = [turn async for turn in _aformat_last(reply, self, kwargs)]
        return turn

    # ------------------------------------------------------------------------------------------ tools and output

    def format_tool(self, tool: Any, *, strict: bool | None = None) -> dict[str, Any]:
        """Return a tool in the form of a request. `strict` is ignored.

        Raises:
            ConfigurationError: It cannot be declared.
        """
        return {**format_tool(plain(tool))}

    def format_tool_choice(self, choice: Any, tools: Sequence[Mapping[str, Any]]) -> Any:
        """Return a tool choice in one form: "auto", "none", "required", or a function. Only "none" changes a request.

        Raises:
            ConfigurationError: The choice names no declared tool, or is of no known form.
        """
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
        bound = super().bind_tools(tools, tool_choice=tool_choice, parallel_tool_calls=parallel_tool_calls, strict=strict, **kwargs)
        if isinstance(bound, RunnableBinding) and bound.kwargs.get("tool_choice") not in (None, "auto", "none"):
            _logger.warning("Ollama has no tool_choice: the model is told of the tools and decides itself whether to call one")
        return bound

    def _format_params(self, schema: Any, method: str, strict: bool | None) -> dict[str, Any]:
        return {"format": output_format("json" if method == "json_mode" else schema)}

    def _bind_schema(self, schema: Any, strict: bool | None, kwargs: dict[str, Any]) -> Runnable[LanguageModelInput, AIMessage]:
        return super().bind_tools([schema], **kwargs)  # without the warning

    # ------------------------------------------------------------------------------------------ what LangChain asks

    @property
    def _llm_type(self) -> str:
        return "chat-ollama"

    @property
    def lc_secrets(self) -> dict[str, str]:
        """The secret fields, each with its environment variable."""
        return {"api_key": "OLLAMA_API_KEY", **({"base_url": "OLLAMA_HOST"} if self.address.authorization else {})}

    # ------------------------------------------------------------------------------------------ secrets and copies

    def _secrets(self) -> list[str]:
        key = [self.api_key.get_secret_value()] if self.api_key else []
        address = [secret for secret in (self.address.authorization, self.address.password) if secret]
        given = [*key, *address, *secret_values(self._address_query)]
        for arguments in self.all_client_kwargs:
            proxy = arguments.get("proxy")
            given += secret_values(_lowered_headers(arguments), proxy if isinstance(proxy, str) else None)
        return given

    def _portable_fields(self) -> dict[str, Any]:
        names = ("client_kwargs", "sync_client_kwargs", "async_client_kwargs")
        kwargs = dict(zip(names, map(portable_arguments, self.all_client_kwargs), strict=True))
        base_url = self.address.url if self.address.authorization else portable("base_url", self.base_url)
        return {"api_key": None, "base_url": base_url, **kwargs}

    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__(state)
        host = os.environ.get("OLLAMA_HOST")
        if host and address_of(host).url == self.address.url:
            self.base_url = host  # which may say a user and password


# ---------------------------------------------------------------------------------------------- what is known of a model

# The rest depends on the model that the server runs; `profile={...}` says what the user knows of it.


_CANNOT = "image_url_inputs pdf_inputs audio_inputs video_inputs pdf_tool_message image_outputs audio_outputs video_outputs tool_choice"
_PROTOCOL: dict[str, Any] = {"text_inputs": True, "text_outputs": True, **dict.fromkeys(_CANNOT.split(), False)}


def _check_model(http: "httpx.Client", url: str, model: str, options: Mapping[str, Any]) -> None:
    """Raise if the server does not have the model.

    Args:
        http: The HTTP client.
        url: The server's address.
        model: The model's name.
        options: Headers and timeout of the request.

    Raises:
        ValueError: The server has no such model, or cannot be asked; the text says what to do.
    """
    import httpx

    try:
        listed = http.get(f"{url}/api/tags", follow_redirects=False, **options).raise_for_status().json()
        names = [str(one.get("model") or one.get("name")) for one in listed["models"]]
    except httpx.TransportError as error:
        raise ValueError(f"no reply from {url} ({type(error).__name__}): is Ollama running there?") from error
    except (httpx.HTTPError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise ValueError(f"{url} does not tell which models it has ({type(error).__name__}): is it an Ollama server?") from error
    if not any(name == model or name.startswith(f"{model}:") for name in names):
        near = get_close_matches(model, names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(names) or 'none'}"
        raise ValueError(f"the server has no model {model!r}: {hint} (ollama pull {model} fetches it)")


# ---------------------------------------------------------------------------------------------- tools with an output format in one turn


# The server cannot combine them, because its format's grammar rules out calls (ollama/ollama#8095, #11185). So a turn that has both is
# asked without the format. Where the model then calls a tool, or writes JSON by itself, that is the turn. Where it answers in any other
# words, the same messages are sent once more, with the format and without the tools, and that reply is the turn; its token counts are
# those of both.

_Reply = TypeVar("_Reply", bound=AIMessage)
_Ask = Callable[..., Iterable[_Reply]]
_Asked = AsyncGenerator[_Reply, None]


def _format_last(ask: _Ask[_Reply], model: ChatOllama, kwargs: Mapping[str, Any]) -> Iterator[_Reply]:
    """Yield the reply of a turn, from one request or two.

    Args:
        ask: Makes a request of these keywords, and gives its reply.
        model: The model, for the format that its constructor set.
        kwargs: The keywords of the turn.
    """
    free, bound = _requests(model, kwargs)
    return iter(ask(**free)) if bound is None else _twice(ask, free, bound)


def _aformat_last(ask: Callable[..., _Asked[_Reply]], model: ChatOllama, kwargs: Mapping[str, Any]) -> _Asked[_Reply]:
    """Like `_format_last`, asynchronously."""
    free, bound = _requests(model, kwargs)
    return ask(**free) if bound is None else _atwice(ask, free, bound)


def _requests(model: ChatOllama, kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the keywords of a turn's first request, and those of its second; None if one is enough."""
    form = kwargs.get("format", model.format) or kwargs.get("response_format")
    if not form or not kwargs.get("tools") or kwargs.get("tool_choice") == "none":
        return dict(kwargs), None
    plain = {**kwargs, "format": None, "response_format": None}
    return plain, {**plain, "format": form, "tools": None, "tool_choice": None}


def _twice(ask: _Ask[_Reply], free: dict[str, Any], bound: dict[str, Any]) -> Iterator[_Reply]:
    first = list(ask(**free))
    yield from first if _is_settled(first) else (_with_usage_of(first, chunk) for chunk in ask(**bound))


async def _atwice(ask: Callable[..., _Asked[_Reply]], free: dict[str, Any], bound: dict[str, Any]) -> _Asked[_Reply]:
    first = [chunk async for chunk in ask(**free)]
    if _is_settled(first):
        for chunk in first:
            yield chunk
        return
    async with aclosing(ask(**bound)) as chunks:
        async for chunk in chunks:
            yield _with_usage_of(first, chunk)


def _is_settled(chunks: Sequence[AIMessage]) -> bool:
    """Whether a reply without a format needs none: it has calls, is JSON, or was cut off."""
    if any(chunk.additional_kwargs.get("tool_calls") for chunk in chunks):
        return True
    cut = any(chunk.response_metadata.get("finish_reason") in ("incomplete", "length") for chunk in chunks)
    return cut or read_object("".join(map(text_of, chunks)).strip()) is not None


def _with_usage_of(first: Sequence[AIMessage], reply: _Reply) -> _Reply:
    """Return a reply, or a chunk of it, with the token counts of the reply that it replaces added."""
    if reply.usage_metadata:
        for chunk in first:
            reply.usage_metadata = add_usage(chunk.usage_metadata, reply.usage_metadata)
    return reply


# ---------------------------------------------------------------------------------------------- objects of Ollama's SDK


# Nothing here imports the SDK before it is asked for: whoever gives an object of it has imported it.


def _sdk_arguments(model: ChatOllama, headers: Mapping[str, str], *, asynchronous: bool) -> dict[str, Any]:
    """Return the arguments of the SDK's client for the model's server.

    Args:
        model: The model.
        headers: The headers that authorise a request.
        asynchronous: Whether they are for the asynchronous client.
    """
    both, *own = model.all_client_kwargs
    side = own[int(asynchronous)]
    arguments = {name: value for name, value in {**both, **side}.items() if name not in _OF_A_REQUEST}
    own_headers = {**headers, **_lowered_headers(both), **_lowered_headers(side)}
    timeout = side.get("timeout", model._client_timeout({}, None))
    return {
        "follow_redirects": False,
        **({"params": model._address_query} if model._address_query else {}),
        **arguments,
        "host": model.address.url,
        "headers": own_headers,
        **({} if timeout is None else {"timeout": timeout}),
    }


def _lowered_headers(arguments: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the headers among an HTTP client's arguments, with names in lower case."""
    return {name.lower(): value for name, value in dict((arguments or {}).get("headers") or {}).items()}
