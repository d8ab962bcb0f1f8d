"""The constructor of `ChatAnthropic`: its fields, their names on the wire, and their environment variables.

Names and meanings are those of langchain-anthropic's `ChatAnthropic`.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from langchain_core.utils import from_env
from pydantic import Field

from ...field_types import Secret
from .._base.chat_model import ProviderChatModel
from .._base.checks import Check
from .._base.parameters import Environment
from .client import check_own_async_client, check_own_client
from .profiles import profile_of

SENT_FIELDS = (
    *("max_tokens", "temperature", "top_k", "top_p", "stop_sequences", "thinking", "output_config", "mcp_servers"),
    *("context_management", "container", "inference_geo", "user_profile_id"),
)
"""Fields that are request parameters of the same name. None is not sent."""

_FALLBACK_MAX_TOKENS = 4096

Caching = Literal["auto", "5m", "1h"] | bool


class AnthropicParameters(ProviderChatModel, defer_build=True):
    """The fields of a chat model that speaks the Messages API."""

    model: str = Field(validation_alias="model_name")
    """Model name."""

    anthropic_api_key: Secret = Field(default=None, alias="api_key")  # type: ignore[arg-type]
    """API key. Environment: `ANTHROPIC_API_KEY`; without it the SDK looks for its other credentials."""
    anthropic_api_url: str | None = Field(default=None, alias="base_url")
    """Base URL of the API, without `/v1`. Environment: `ANTHROPIC_API_URL`, then `ANTHROPIC_BASE_URL`. None: Anthropic itself."""
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
    _environment: ClassVar[Environment] = Environment(
        key=("ANTHROPIC_API_KEY",), base_url=("ANTHROPIC_API_URL", "ANTHROPIC_BASE_URL"), proxy=("ANTHROPIC_PROXY",)
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

    _checks: ClassVar[Mapping[str, Check | None]] = {"http_client": check_own_client, "http_async_client": check_own_async_client}

    _not_per_call: ClassVar[frozenset[str]] = ProviderChatModel._not_per_call | {"reuse_last_container"}
    _connection: ClassVar[frozenset[str]] = frozenset({"anthropic_api_key", "anthropic_api_url", "anthropic_proxy"})

    def _complete_from_environment(self) -> None:
        super()._complete_from_environment()
        if self.max_tokens is None:
            profile = {**profile_of(self.model), **(self.__dict__.get("profile") or {})}
            self.max_tokens = profile.get("max_output_tokens") or _FALLBACK_MAX_TOKENS

    @property
    def model_name(self) -> str:
        """The model's name."""
        return self.model
