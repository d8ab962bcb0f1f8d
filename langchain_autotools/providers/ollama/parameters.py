"""The constructor of `ChatOllama`: its fields, their names on the wire, and their environment variables.

Names and meanings are those of langchain-ollama's `ChatOllama`.
"""

import os
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from ...errors import ConfigurationError
from ...field_types import Secret
from .._base.chat_model import ProviderChatModel
from .._base.checks import Check, check_client_arguments, check_count, check_header
from .._base.parameters import Environment
from .endpoint import Address, address_of
from .schemas import output_format

OPTIONS = (
    *("mirostat", "mirostat_eta", "mirostat_tau", "num_ctx", "num_gpu", "num_thread", "num_predict", "repeat_last_n"),
    *("repeat_penalty", "temperature", "seed", "stop", "tfs_z", "top_k", "top_p"),
)
"""Fields that are sent in the request's `options`, under their own names. None is not sent."""

_TO_THE_END = -2
_CLIENTS = "clients are made from the other settings when they are needed; client_kwargs goes to them"


def lowered_headers(arguments: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the headers among an HTTP client's arguments, with names in lower case."""
    return {name.lower(): value for name, value in dict((arguments or {}).get("headers") or {}).items()}


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

    _refused: ClassVar[dict[str, str]] = {
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
