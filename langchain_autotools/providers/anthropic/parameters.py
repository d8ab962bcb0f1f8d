"""The constructor of `ChatAnthropic`: its fields, what they are called on the wire, and what the environment fills in.

Names and meanings are those of langchain-anthropic's `ChatAnthropic`.
"""

import os
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from langchain_core.utils import from_env
from pydantic import Field, SecretStr, model_validator

from .._base.chat_model import ProviderChatModel
from .._base.checks import Check, check_address, check_headers, check_key, check_model, check_proxy, check_seconds, check_timeout
from .._base.parameters import OWN_CLIENTS, check_output_version, first_of
from .client import check_own_async_client, check_own_client
from .profiles import profile_of

__all__ = ["ADDRESS_VARIABLES", "WIRE_NAMES", "AnthropicParameters"]

WIRE_NAMES = {
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "stop_sequences": "stop_sequences",
    "thinking": "thinking",
    "output_config": "output_config",
    "mcp_servers": "mcp_servers",
    "context_management": "context_management",
    "container": "container",
    "inference_geo": "inference_geo",
    "user_profile_id": "user_profile_id",
}
"""Fields that are sent, by the parameter that they become. None is not sent."""

_FALLBACK_MAX_TOKENS = 4096

Caching = Literal["auto", "5m", "1h"] | bool


ADDRESS_VARIABLES = ("ANTHROPIC_API_URL", "ANTHROPIC_BASE_URL")
"""The environment variables that say where requests go; the first that is set counts."""


class AnthropicParameters(ProviderChatModel):
    """The fields of a chat model that speaks the Messages API."""

    model: str = Field(validation_alias="model_name")
    """The model's name."""

    anthropic_api_key: SecretStr | None = Field(default=None, alias="api_key")
    """The key. Environment: `ANTHROPIC_API_KEY`; without it the SDK looks for its other credentials."""
    anthropic_api_url: str | None = Field(default=None, alias="base_url")
    """Where requests go, without `/v1`. Environment: `ANTHROPIC_API_URL`, then `ANTHROPIC_BASE_URL`. None: Anthropic itself."""
    anthropic_proxy: str | None = Field(default_factory=from_env("ANTHROPIC_PROXY", default=None), repr=False)
    """The URL of a proxy. Environment: `ANTHROPIC_PROXY`; the usual proxy variables work too."""

    max_tokens: int | None = Field(default=None, validation_alias="max_tokens_to_sample")
    """How many tokens one reply may have, thinking included. None: what the model's profile allows, else 4096."""
    temperature: float | None = None
    """How freely the model chooses, 0 to 1. Not sent to models that are known to take none."""
    top_k: int | None = None
    """Choose among this many tokens only."""
    top_p: float | None = None
    """Choose among the most likely tokens of this probability mass only."""
    stop_sequences: list[str] | None = Field(default=None, alias="stop")
    """Texts before which the reply ends."""

    thinking: dict[str, Any] | None = None
    """Whether and how much the model thinks: `{"type": "enabled", "budget_tokens": 2000}`, `{"type": "adaptive"}`, ..."""
    output_config: dict[str, Any] | None = None
    """`effort`, `format` and `task_budget` of the reply."""
    reasoning_effort: str | None = Field(default=None, validation_alias="effort")
    """How much effort a reply may take: `low`, `medium`, `high`, `xhigh`, `max`; models differ."""
    mcp_servers: list[dict[str, Any]] | None = Field(default=None, repr=False)
    """MCP servers that the vendor calls itself (beta)."""
    context_management: dict[str, Any] | None = None
    """What the vendor removes from long contexts itself (beta)."""
    container: dict[str, Any] | str | None = None
    """The container that the vendor's code execution runs in."""
    reuse_last_container: bool | None = None
    """Whether code goes on in the container of the last reply that names one. None: of the replies since the user's last message, where
    calls may wait for it; True: of all; False: never."""
    inference_geo: str | None = None
    """Where the model may run."""
    user_profile_id: str | None = None
    """The user profile that the request is for (beta)."""
    betas: list[str] | None = None
    """Betas to take part in (the header `anthropic-beta`). Those that a declared tool or parameter needs are added."""

    prompt_caching: Caching = "auto"
    """Whether requests mark what the vendor should cache: the tools, the system prompt, and (by the request's own `cache_control`)
    the messages up to the last. `auto`: requests to Anthropic itself that declare tools, because a conversation with tools
    sends its beginning again at once. True, "5m" and "1h": every request. Marks of your own switch these off."""

    model_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Parameters of the Messages API that this class does not name."""
    extra_body: Mapping[str, Any] | None = None
    """Further keys of the request's JSON, for parameters of compatible servers. They win over everything else."""

    streaming: bool | None = None
    """Whether `invoke` asks for a stream too. None: where somebody listens to its chunks; False: nothing ever streams."""
    stream_usage: bool = True
    """Whether streams say how many tokens they took."""
    stream_chunk_timeout: float | None = None
    """Seconds that may pass between two events of a stream; None: as long as `timeout` allows between two bytes."""
    default_request_timeout: Any = Field(default=None, alias="timeout")
    """Seconds to wait for the connection and between two bytes: a number, (connect, read), or the HTTP library's `Timeout`.
    None: the SDK's default (600, to connect 5)."""

    default_headers: Mapping[str, str] | None = Field(default=None, repr=False)
    """Further HTTP headers of every request."""
    http_client: Any = Field(default=None, exclude=True, repr=False)
    """Your own HTTP client for synchronous requests, of the HTTP library that the SDK uses."""
    http_async_client: Any = Field(default=None, exclude=True, repr=False)
    """Your own HTTP client for asynchronous requests."""

    _dicts: ClassVar[Mapping[str, str]] = {
        **ProviderChatModel._dicts,
        "thinking": "as in {'type': 'adaptive'}",
        "output_config": "effort='high' says the effort alone",
    }

    _refused: ClassVar[Mapping[str, str]] = {
        "client": OWN_CLIENTS,
        "async_client": OWN_CLIENTS,
    }

    _checks: ClassVar[Mapping[str, Check]] = {
        **ProviderChatModel._checks,
        "model": check_model,
        "anthropic_api_key": check_key,
        "anthropic_api_url": check_address,
        "anthropic_proxy": check_proxy,
        "default_request_timeout": check_timeout,
        "stream_chunk_timeout": check_seconds,
        "default_headers": check_headers,
        "http_client": check_own_client,
        "http_async_client": check_own_async_client,
    }

    _not_per_call: ClassVar[frozenset[str]] = ProviderChatModel._not_per_call | {"reuse_last_container"}
    _connection: ClassVar[frozenset[str]] = frozenset({"anthropic_api_key", "anthropic_api_url", "anthropic_proxy"})

    @model_validator(mode="after")
    def _complete_from_environment(self) -> Self:
        if self.anthropic_api_key is None and (key := os.environ.get("ANTHROPIC_API_KEY")):
            self.anthropic_api_key = SecretStr(key)
        self.anthropic_api_url = self.anthropic_api_url or first_of(*ADDRESS_VARIABLES)
        if self.max_tokens is None:
            profile = {**profile_of(self.model), **(self.__dict__.get("profile") or {})}
            self.max_tokens = profile.get("max_output_tokens") or _FALLBACK_MAX_TOKENS
        return self

    @model_validator(mode="after")
    def _check_parameters(self) -> Self:
        if self.anthropic_proxy and (self.http_client or self.http_async_client):
            raise ValueError("anthropic_proxy cannot reach a client that you made: give that client the proxy, and no anthropic_proxy")
        check_output_version(self.output_version, "the wire's own blocks")
        return self

    @property
    def model_name(self) -> str:
        """The model's name."""
        return self.model
