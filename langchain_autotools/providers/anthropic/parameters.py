"""The constructor of `ChatAnthropic`: its fields, their defaults by model, the SDK's client made of them."""

import asyncio
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from langchain_core.utils import from_env
from pydantic import Field

from ...errors import ConfigurationError
from ...turn.model import Secret
from .._base.chat_model import Profiles, ProviderChatModel, profile_in
from .._base.parameters import Check, Environment, check_async_client, check_client
from .._transport.clients import PerLoopCache, http_library
from .._transport.exchange import Exchange, Response, SdkClientSettings
from .errors import sdk

if TYPE_CHECKING:
    import anthropic

    from ...turn.model import Converted


@dataclass(frozen=True)
class ClientSettings(SdkClientSettings):
    """The settings of an anthropic client. Without an `api_key` the SDK uses its environment variables and profiles."""

    def sdk(self) -> Any:
        """The SDK's module."""
        return sdk()

    def synchronous(self) -> "anthropic.Anthropic":
        """Return a synchronous client."""
        client: anthropic.Anthropic = sdk().Anthropic(**self._common(), http_client=self._http())
        return client

    def asynchronous(self, loop: asyncio.AbstractEventLoop) -> "anthropic.AsyncAnthropic":
        """Return a client for this event loop."""
        client: anthropic.AsyncAnthropic = sdk().AsyncAnthropic(**self._common(), http_client=self._ahttp(loop))
        return client

    def _common(self) -> dict[str, Any]:
        key = self.api_key.get_secret_value() if self.api_key is not None else None
        url, headers = self._sent(self.base_url)
        return {"api_key": key, "base_url": url, "default_headers": headers, "max_retries": 0}

    def post(self, exchange: Exchange, cache: PerLoopCache) -> Response:
        """Send a request.

        Raises:
            ConfigurationError: There is no key.
            anthropic.APIError: No reply, or one with an error status.
        """
        with _authorized():
            return super().post(exchange, cache)

    async def apost(self, exchange: Exchange, cache: PerLoopCache) -> Response:
        """Like `post`, asynchronously."""
        with _authorized():
            return await super().apost(exchange, cache)


@contextmanager
def _authorized() -> Iterator[None]:
    """Replace the SDK's bare `TypeError` for missing credentials by an error that names the remedies."""
    try:
        yield
    except TypeError as error:
        if "authentication method" not in str(error):
            raise
        raise ConfigurationError("ChatAnthropic has no key: give api_key, or set ANTHROPIC_API_KEY") from None


def _check_own_client(name: str, value: Any) -> None:
    """Raise if the value is not a synchronous client of the HTTP library that the installed SDK uses.

    Raises:
        ConfigurationError: It is none.
    """
    check_client(name, value)
    _check_library(name, value, "Client")


def _check_own_async_client(name: str, value: Any) -> None:
    """Raise if the value is not an asynchronous client of the HTTP library that the installed SDK uses.

    Raises:
        ConfigurationError: It is none.
    """
    check_async_client(name, value)
    _check_library(name, value, "AsyncClient")


def _check_library(name: str, value: Any, kind: str) -> None:
    if value is None:
        return
    library = http_library(sdk())
    if not isinstance(value, getattr(library, kind)):
        own = f"{type(value).__module__.partition('.')[0]}.{type(value).__name__}"
        raise ConfigurationError(f"{name} is an {own}, but the installed anthropic SDK takes an {library.__name__}.{kind} only")


_PROFILES = Path(__file__).with_name("profiles.csv")
_DATE = re.compile(r"-\d{8}\Z|-latest\Z")


def profile_of(model: str) -> dict[str, Any]:
    """Return the profile of a model; empty if it is unknown. A dated version counts as its undated name."""
    return profile_in(_PROFILES, model, _DATE)


# ---------------------------------------------------------------------------------------------- parameters


_FALLBACK_MAX_TOKENS = 4096
_VERSION = re.compile(r"/v1(/messages)?/*\Z")  # the path of a request begins with it

Caching = Literal["auto", "5m", "1h"] | bool


class AnthropicParameters(ProviderChatModel, defer_build=True):
    """The fields of a chat model that speaks the Messages API."""

    model: str = Field(validation_alias="model_name")
    """Model name."""

    anthropic_api_key: Secret = Field(default=None, alias="api_key")  # type: ignore[arg-type]
    """API key. Environment: `ANTHROPIC_API_KEY`; without it the SDK looks for its other credentials."""
    anthropic_api_url: str | None = Field(default=None, alias="base_url")
    """Base URL of the API, with or without `/v1`. Environment: `ANTHROPIC_API_URL`, then `ANTHROPIC_BASE_URL`. None: Anthropic itself."""
    anthropic_proxy: str | None = Field(default_factory=from_env("ANTHROPIC_PROXY", default=None), repr=False)
    """Proxy URL. Environment: `ANTHROPIC_PROXY`; the usual proxy variables work too."""

    max_tokens: int | None = Field(default=None, validation_alias="max_tokens_to_sample")
    """Maximum number of tokens of one reply, thinking included. None: what the model's profile allows, else 4096."""
    temperature: float | None = None
    """Sampling temperature, 0 to 1. Not sent to models that are known to take none."""
    top_k: int | None = None
    """Top-k sampling: sample from this many most likely tokens."""
    top_p: float | None = None
    """Nucleus sampling: sample from the most likely tokens of this probability mass, 0 to 1."""
    stop_sequences: list[str] | None = Field(default=None, alias="stop")
    """Stop sequences: the reply ends before any of these texts."""

    thinking: dict[str, Any] | None = None
    """Extended thinking: `{"type": "enabled", "budget_tokens": 2000}`, `{"type": "adaptive"}`, ..."""
    output_config: dict[str, Any] | None = None
    """Output configuration: `effort`, `format` and `task_budget` of the reply."""
    reasoning_effort: str | None = Field(default=None, validation_alias="effort")
    """Effort of the reply: `low`, `medium`, `high`, `xhigh`, `max`; models differ (`output_config.effort`)."""
    mcp_servers: list[dict[str, Any]] | None = Field(default=None, repr=False)
    """Remote MCP servers that the vendor calls (beta)."""
    context_management: dict[str, Any] | None = None
    """Edits that the vendor makes to long contexts (beta)."""
    container: dict[str, Any] | str | None = None
    """Container of the vendor's code execution: its id, or its parameters."""
    reuse_last_container: bool | None = None
    """Whether to reuse the code execution container of the last reply that names one. None: of the replies since the user's last message,
    in which calls may wait for it; True: of all replies; False: never."""
    inference_geo: str | None = None
    """Geographic region of the inference."""
    user_profile_id: str | None = None
    """Id of the user profile that the request is for (beta)."""
    betas: list[str] | None = None
    """Beta features (the header `anthropic-beta`). Those that a declared tool or parameter needs are added."""

    prompt_caching: Caching = "auto"
    """Whether to mark the parts of a request to cache: the tools, the system prompt, and (by the request's own `cache_control`)
    the messages up to the last. `auto`: requests to Anthropic itself that declare tools, because a conversation with tools
    sends its beginning again at once. True, "5m" and "1h": every request. Marks of your own switch these off."""

    extra_body: Mapping[str, Any] | None = None
    """Additional keys of the request's JSON, for parameters of compatible servers. They override everything else."""

    stream_usage: bool = True
    """Whether streams carry token counts."""
    default_request_timeout: Any = Field(default=None, alias="timeout")
    """Timeout in seconds for the connection and between two bytes: a number, (connect, read), or the HTTP library's `Timeout`.
    None: the SDK's default (600, to connect 5)."""

    default_headers: Mapping[str, str] | None = Field(default=None, repr=False)
    """Additional HTTP headers of every request."""
    http_client: Any = Field(default=None, exclude=True, repr=False)
    """HTTP client for synchronous requests, of the HTTP library that the SDK uses, in place of the package's own."""
    http_async_client: Any = Field(default=None, exclude=True, repr=False)
    """HTTP client for asynchronous requests in place of the package's own."""

    _ls_provider: ClassVar[str] = "anthropic"
    _profiles: ClassVar[Path | Profiles] = _PROFILES
    _environment: ClassVar[Environment] = Environment(
        key=("ANTHROPIC_API_KEY",),
        base_url=("ANTHROPIC_API_URL", "ANTHROPIC_BASE_URL"),
        proxy=("ANTHROPIC_PROXY",),
        sdk_headers=("ANTHROPIC_CUSTOM_HEADERS",),
    )
    _key_field: ClassVar[str] = "anthropic_api_key"
    _url_field: ClassVar[str] = "anthropic_api_url"
    _proxy_field: ClassVar[str] = "anthropic_proxy"
    _timeout_field: ClassVar[str] = "default_request_timeout"
    _identifying_fields: ClassVar[tuple[str, ...]] = ("output_version", "extra_body", "betas")
    _stop_param: ClassVar[str] = "stop_sequences"
    _v0_content: ClassVar[str] = "the wire's own blocks"

    _dicts: ClassVar[Mapping[str, str]] = {
        **ProviderChatModel._dicts,
        "thinking": "as in {'type': 'adaptive'}",
        "output_config": "effort='high' says the effort alone",
    }

    _checks: ClassVar[Mapping[str, Check | None]] = {"http_client": _check_own_client, "http_async_client": _check_own_async_client}

    if TYPE_CHECKING:
        service_tier: Converted[None, str | None] = None  # type: ignore[assignment]

    _call_names: ClassVar[frozenset[str]] = ProviderChatModel._call_names | {
        *("billing_policy", "cache_control", "compaction", "diagnostics", "fallback_credit_token", "output_format"),
        *("service_tier", "speed", "system", "thread", "workspace_id"),
    }
    _not_per_call: ClassVar[frozenset[str]] = ProviderChatModel._not_per_call | {"reuse_last_container"}
    _connection: ClassVar[frozenset[str]] = frozenset({"anthropic_api_key", "anthropic_api_url", "anthropic_proxy"})

    def _complete_from_environment(self) -> None:
        super()._complete_from_environment()
        if self.max_tokens is None:
            profile = {**profile_of(self.model), **(self.__dict__.get("profile") or {})}
            self.max_tokens = profile.get("max_output_tokens") or _FALLBACK_MAX_TOKENS

    @property
    def _address(self) -> str | None:
        address = super()._address
        return address and _VERSION.sub("", address)

    @property
    def model_name(self) -> str:
        """The model's name."""
        return self.model
