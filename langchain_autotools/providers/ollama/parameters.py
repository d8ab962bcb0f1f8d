"""The constructor of `ChatOllama`: its fields, their names on the wire, the server's address, the HTTP client made of them."""

import asyncio
import base64
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Literal
from urllib.parse import SplitResult, unquote, urlsplit

from pydantic import Field, field_validator

from ...errors import ConfigurationError
from ...turn.model import Secret
from .._base.chat_model import ProviderChatModel
from .._base.parameters import Check, Environment, check_client_arguments, check_count, check_header
from .._transport.clients import PerLoopCache
from .._transport.exchange import ClientArguments, Exchange, HttpClients, Response, apost, post
from .decode import is_model_mistake
from .errors import error_of_response, message_of
from .tools import output_format

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


# ---------------------------------------------------------------------------------------------- client
# HTTP requests to Ollama, and the bytes of their replies as they arrive.
#
# The SDK's client has no public way to the bytes of a reply, and its public stream drops ids and places of calls and dies on lines that
# servers send (wire quirks O-01 to O-03). So requests go through httpx, the library that the SDK itself stands on, with the SDK's own
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


class OllamaParameters(ProviderChatModel, defer_build=True):
    """The fields of a chat model that speaks /api/chat."""

    model: str = Field(validation_alias="model_name")
    """Model name."""
    base_url: str | None = Field(default=None, repr=False)  # it may hold a password
    """Address of the server: `http://host:11434`, `host`, `host:port`, also with `user:password@`. Environment: `OLLAMA_HOST`.
    None: this machine, port 11434."""
    api_key: Secret = None  # type: ignore[assignment]
    """API key of a server that wants one, ollama.com among them. Environment: `OLLAMA_API_KEY`."""

    reasoning: bool | str | None = Field(default=None, validation_alias="think")
    """Whether the model thinks: True, False, or how much (`low`, `medium`, `high`, `max`; models differ). None leaves it to the server.
    Thinking stands in `additional_kwargs["reasoning_content"]`."""
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
