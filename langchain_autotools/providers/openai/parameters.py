"""The constructor of `ChatOpenAI`: its fields, their names on the wire, their environment variables, the SDK's client made of them."""

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, model_validator

from ...errors import ConfigurationError
from ...retry import is_asynchronous
from .._base.chat_model import ProviderChatModel
from .._base.parameters import Check, Environment, akey_of, check_header, key_of
from .._transport.exchange import SdkClientSettings
from .._transport.secrets import SecretDict, headers_in_lines
from .errors import ERRORS, sdk

if TYPE_CHECKING:
    import openai


_ENVIRONMENT_HEADERS = "OPENAI_CUSTOM_HEADERS"
"""The environment variable of headers that the SDK adds to every request of each of its clients."""

ApiKey = SecretStr | Callable[[], str] | Callable[[], Awaitable[str]] | None


@dataclass(frozen=True)
class ClientSettings(SdkClientSettings):
    """The settings of an openai client. Without an `api_key` the SDK reads `OPENAI_API_KEY`.

    Attributes:
        organization: Sent as `OpenAI-Organization`.
        foreign: Whether the server is another vendor's: then nothing that the SDK finds in OpenAI's environment goes there.
    """

    api_key: ApiKey = None
    organization: str | None = None
    foreign: bool = False

    sdk: ClassVar["staticmethod[[], Any]"] = staticmethod(sdk)
    _options: ClassVar[Mapping[str, Any]] = {"security": {"bearer_auth": True}}  # the SDK would else also offer an admin key, to any server

    def synchronous(self) -> "openai.OpenAI":
        """Return a synchronous client.

        Raises:
            ConfigurationError: The key comes from an asynchronous function.
            openai.OpenAIError: There is no key.
        """
        if is_asynchronous(self.api_key):
            raise ConfigurationError("the api_key is an asynchronous function: use ainvoke and astream, or give a key or a plain function")
        key: Any = self.api_key
        if callable(key):
            key = key_of(key, "api_key", ERRORS.unreachable)
        return cast("openai.OpenAI", self._client("OpenAI", self.base_url, key, http_client=self._http()))

    def asynchronous(self, loop: asyncio.AbstractEventLoop) -> "openai.AsyncOpenAI":
        """Return a client for this event loop.

        Raises:
            openai.OpenAIError: There is no key.
        """
        key = given_key(self.api_key, "api_key") if callable(self.api_key) else self.api_key
        return cast("openai.AsyncOpenAI", self._client("AsyncOpenAI", self.base_url, key, http_client=self._ahttp(loop)))

    def _client(self, kind: str, address: str | None, key: Any, *, place: str = "base_url", **arguments: Any) -> Any:
        """Return a client of the SDK. To another vendor's server it sends nothing that the SDK finds in OpenAI's environment.

        Args:
            kind: The name of its class.
            address: Where it sends requests.
            key: The key, or a function that gives it.
            place: The argument of the class for the address.
            **arguments: Further arguments.
        """
        made: Any = getattr(sdk(), kind)
        url, headers = self._sent(address)
        if self.foreign:
            unsent = ["OpenAI-Project", *([] if self.organization else ["OpenAI-Organization"])]
            headers = SecretDict({**dict.fromkeys(unsent, sdk().Omit()), **headers})
            made = _without_environment(made) if os.environ.get(_ENVIRONMENT_HEADERS) else made
        arguments |= {place: url, "organization": self.organization, "default_headers": headers, "max_retries": 0}
        return made(**arguments, api_key=key.get_secret_value() if isinstance(key, SecretStr) else key)


@cache
def _without_environment(client: Hashable) -> Any:
    """Return a subclass of an SDK's client class that sends only the headers that its constructor was given.

    The SDK adds those of the environment in its constructor, and lets an `Authorization` among them replace the key.
    """
    base: Any = client

    class WithoutEnvironment(base):  # type: ignore[misc]
        def __init__(self, *, default_headers: Mapping[str, Any], **arguments: Any) -> None:
            given = {name.lower() for name in default_headers}
            read = headers_in_lines(os.environ.get(_ENVIRONMENT_HEADERS))
            self._of_the_environment = {name: value for name, value in read.items() if name.lower() not in given}
            super().__init__(default_headers=default_headers, **arguments)

        @property
        def default_headers(self) -> dict[str, Any]:
            own = {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": self.user_agent}
            others = {name: value for name, value in super().default_headers.items() if self._of_the_environment.get(name) != value}
            return SecretDict({**own, **others})

    WithoutEnvironment.__name__ = base.__name__  # the SDK names itself by it in `User-Agent`
    return WithoutEnvironment


def given_key(get_key: Any, name: str) -> Callable[[], Awaitable[str]]:
    """Return an asynchronous key function, as the asynchronous client requires; one that may block runs in a thread.

    Args:
        get_key: The function, asynchronous or not.
        name: The argument that it was given as.
    """
    if is_asynchronous(get_key):
        return akey_of(get_key, name, ERRORS.unreachable)
    blocking = key_of(get_key, name, ERRORS.unreachable)

    async def get() -> str:
        return await asyncio.to_thread(blocking)

    return get


# ---------------------------------------------------------------------------------------------- parameters
# The constructor of `ChatOpenAI`: its fields, their names on the wire, and their environment variables.
#
# Names and meanings are those of langchain-openai's `ChatOpenAI`, as far as they concern chat completions and the Responses API.


if TYPE_CHECKING:
    from ...turn.model import Converted

    ApiKeyField = Converted[ApiKey, ApiKey | str]
else:
    ApiKeyField = ApiKey

RESPONSES_NAMES = ("reasoning", "include", "truncation", "context_management")
"""Fields, and parameters of the same name, that select the Responses API when set, because only it has them."""

_SENT_FIELDS = (
    *("temperature", "top_p", "max_tokens", "n", "stop", "seed", "presence_penalty", "frequency_penalty", "logit_bias", "logprobs"),
    *("top_logprobs", "reasoning_effort", "verbosity", "modalities", "audio", "service_tier", "store"),
    *("prompt_cache_key", "prompt_cache_options", *RESPONSES_NAMES),
)
WIRE_NAMES = {name: name for name in _SENT_FIELDS} | {"max_tokens": "max_completion_tokens"}
"""The fields that are sent, each with its parameter on the wire. None is not sent."""


_CHAT_KEYWORDS = frozenset(
    ("moderation", "prediction", "prompt_cache_retention", "safety_identifier", "stream_options", "user", "web_search_options")
)
"""Parameters of chat completions that are no fields."""

_RESPONSES_KEYWORDS = frozenset(
    {
        *("access_programs", "background", "background_options", "conversation", "image", "instructions", "max_output_tokens"),
        *("previous_response_id", "prompt", "text"),
    }
)
"""Parameters that only the Responses API has and that are no fields."""

_HOST = "api.openai.com"
_END = re.compile(r"(?:/(?:chat/completions|responses)/*)?(?:[?#].*)?\Z", re.DOTALL)  # also what a vendor's page may show as its address


class OpenAIParameters(ProviderChatModel, defer_build=True):
    """The fields of a chat model that speaks chat completions, or the Responses API."""

    model_name: str = Field(default="gpt-3.5-turbo", alias="model")
    """Model name."""

    openai_api_key: ApiKeyField = Field(default=None, alias="api_key", repr=False)  # type: ignore[arg-type]
    """API key, or a function (synchronous or not) that returns it before each request. Environment: `OPENAI_API_KEY`."""
    openai_api_base: str | None = Field(default=None, alias="base_url")
    """Base URL of the API, `/v1` included. Environment: `OPENAI_API_BASE`, then `OPENAI_BASE_URL`. None: OpenAI itself."""
    openai_organization: str | None = Field(default=None, alias="organization")
    """Organization that is billed. Environment: `OPENAI_ORG_ID`, then `OPENAI_ORGANIZATION`."""
    openai_proxy: str | None = Field(default=None, repr=False)
    """Proxy URL. Environment: `OPENAI_PROXY`; the usual proxy variables work too."""

    temperature: float | None = None
    """Sampling temperature, 0 to 2. Not sent to models that are known to take none."""
    top_p: float | None = None
    """Nucleus sampling: sample from the most likely tokens of this probability mass, 0 to 1."""
    max_tokens: int | None = Field(default=None, validation_alias="max_completion_tokens")
    """Maximum number of tokens of one reply, reasoning included (`max_completion_tokens`)."""
    n: int | None = None
    """Number of completions: only 1, since a run has one reply. Use `batch` for alternatives."""
    stop: list[str] | str | None = Field(default=None, validation_alias="stop_sequences")
    """Stop sequences: the reply ends before any of these texts."""
    seed: int | None = None
    """Sampling seed: the same seed and request give the same reply as far as the server can."""
    presence_penalty: float | None = None
    """Presence penalty, -2 to 2: positive values make tokens that have occurred less likely."""
    frequency_penalty: float | None = None
    """Frequency penalty, -2 to 2: positive values make tokens less likely the more often they have occurred."""
    logit_bias: dict[int, int] | None = None
    """Logit bias by token id, -100 to 100."""
    logprobs: bool | None = None
    """Whether to return the log probabilities of the reply's tokens, in `response_metadata["logprobs"]`."""
    top_logprobs: int | None = None
    """Number of most likely tokens to return at each position; needs `logprobs=True`."""

    reasoning_effort: str | None = None
    """Reasoning effort: `minimal`, `low`, `medium`, `high`; models differ."""
    verbosity: str | None = None
    """Verbosity of the reply: `low`, `medium`, `high`."""
    modalities: list[str] | None = None
    """Output modalities: `["text"]`, or `["text", "audio"]`."""
    audio: dict[str, Any] | None = None
    """Parameters of audio output: `{"voice": ..., "format": ...}`."""
    service_tier: str | None = None
    """Service tier: `auto`, `default`, `flex`, `priority`."""
    store: bool | None = None
    """Whether the vendor stores the reply."""
    prompt_cache_key: str | None = None
    """Prompt cache key: requests with the same key are routed to servers that hold the same prompt prefix."""
    prompt_cache_options: dict[str, Any] | None = None
    """Options of the vendor's prompt cache."""

    use_responses_api: bool | None = None
    """Whether to use the Responses API. None: for requests that need it (an argument or tool that only it has; at OpenAI's own address and
    Azure's also a model that it alone serves), and for requests that a server refuses with a reference to it."""
    use_previous_response_id: bool = False
    """Whether to send only the messages since the last stored reply, and refer to that by its id (`previous_response_id`)."""
    reasoning: dict[str, Any] | None = None
    """Reasoning options, `{"effort": "low", "summary": "auto"}`. Responses API."""
    include: list[str] | None = None
    """Additional output data to include in replies, `["reasoning.encrypted_content"]`. Responses API."""
    truncation: str | None = None
    """Truncation of an input that is too long: `auto` drops items from its middle, `disabled` fails. Responses API."""
    context_management: list[dict[str, Any]] | None = None
    """Server-side compaction of a long input, `[{"type": "compaction", "compact_threshold": 100000}]`. Responses API."""

    extra_body: Mapping[str, Any] | None = None
    """Additional keys of the request's JSON, for parameters of compatible servers. They override everything else."""
    disabled_params: dict[str, Any] | None = None
    """Parameters that are omitted unless set explicitly, `{"parallel_tool_calls": None}`, or only these values of them."""

    stream_usage: bool | None = None
    """Whether to request token counts in streams. None: yes for OpenAI itself, no for other servers, since some reject it."""
    request_timeout: Any = Field(default=None, alias="timeout")
    """Timeout in seconds for the connection and between two bytes: a number, (connect, read), or the HTTP library's `Timeout`.
    None: the SDK's default (600, to connect 5)."""

    default_headers: Mapping[str, str] | None = Field(default=None, repr=False)
    """Additional HTTP headers of every request."""
    default_query: Mapping[str, object] | None = Field(default=None, repr=False)
    """Additional query parameters of every request."""
    http_client: Any = Field(default=None, exclude=True, repr=False)
    """HTTP client for synchronous requests (`httpx.Client`) in place of the package's own."""
    http_async_client: Any = Field(default=None, exclude=True, repr=False)
    """HTTP client for asynchronous requests (`httpx.AsyncClient`) in place of the package's own."""

    null_content: bool = True
    """Whether an assistant message with calls and no text has the content `null` (else the empty string); servers differ.
    If the server rejects this form, the other one is tried and kept."""
    part_keys: Sequence[str] = ()
    """Additional keys of content blocks to send, beyond the vendor's schema (for example `cache_control`)."""

    _environment: ClassVar[Environment] = Environment(
        ("OPENAI_API_KEY",),
        ("OPENAI_API_BASE", "OPENAI_BASE_URL"),
        ("OPENAI_ORG_ID", "OPENAI_ORGANIZATION"),
        ("OPENAI_PROXY",),
        (_ENVIRONMENT_HEADERS,),
    )
    _ls_provider: ClassVar[str] = "openai"
    _model_field: ClassVar[str] = "model_name"
    _key_field: ClassVar[str] = "openai_api_key"
    _url_field: ClassVar[str] = "openai_api_base"
    _end_of_url: ClassVar[re.Pattern[str]] = _END
    _proxy_field: ClassVar[str] = "openai_proxy"
    _timeout_field: ClassVar[str] = "request_timeout"
    _identifying_fields: ClassVar[tuple[str, ...]] = ("output_version", "extra_body", "use_responses_api")
    _limit_params: ClassVar[tuple[str, ...]] = ("max_completion_tokens", "max_tokens")
    _wire_names: ClassVar[Mapping[str, str]] = WIRE_NAMES

    _dicts: ClassVar[Mapping[str, str]] = {
        **ProviderChatModel._dicts,
        **dict.fromkeys(("stream_options", "text"), ""),
        "reasoning": "reasoning_effort='high' says the effort alone",
    }

    if TYPE_CHECKING:
        user: Converted[None, str | None] = None  # type: ignore[assignment]

    _responses_names: ClassVar[frozenset[str]] = _RESPONSES_KEYWORDS
    _call_names: ClassVar[frozenset[str]] = ProviderChatModel._call_names | _CHAT_KEYWORDS | _RESPONSES_KEYWORDS
    _of_calls_alone: ClassVar[frozenset[str]] = ProviderChatModel._of_calls_alone | {"functions", "function_call"}
    _refused: ClassVar[Mapping[str, str]] = {
        **ProviderChatModel._refused,
        "root_client": ProviderChatModel._refused["client"],
        "root_async_client": ProviderChatModel._refused["client"],
        "http_socket_options": "give an http_client whose transport has them",
        "tiktoken_model_name": "tokens are estimated offline; for exact counts give custom_get_token_ids=<encoding>.encode",
    }

    _checks: ClassVar[Mapping[str, Check | None]] = {"openai_organization": check_header}

    _not_per_call: ClassVar[frozenset[str]] = ProviderChatModel._not_per_call | {
        *("disabled_params", "null_content", "part_keys", "use_previous_response_id", "use_responses_api"),
    }
    _connection: ClassVar[frozenset[str]] = frozenset(
        {"openai_api_key", "openai_api_base", "openai_organization", "openai_proxy", "default_headers", "default_query"}
    )

    def _complete_from_environment(self) -> None:
        super()._complete_from_environment()
        self.openai_organization = self.openai_organization or self._variable("organization")
        if self.openai_proxy is None and not (self.http_client or self.http_async_client):
            self.openai_proxy = self._variable("proxy")
        if self.stream_usage is None and not (self.openai_api_base or self.openai_proxy or self.http_client or self.http_async_client):
            self.stream_usage = True

    def _check_parameters(self) -> None:
        if self.n not in (None, 1):
            raise ValueError(f"n={self.n}: a run has one reply, so n must be 1; use batch() for alternatives")
        super()._check_parameters()

    @model_validator(mode="after")
    def _choose_api(self) -> Self:
        responses_only = [name for name in (*RESPONSES_NAMES, "use_previous_response_id") if getattr(self, name) not in (None, False)]
        if responses_only and self.use_responses_api is False:
            raise ValueError(f"{responses_only[0]} belongs to the Responses API, which use_responses_api=False rules out")
        if responses_only:
            self.use_responses_api = True
        if self.use_previous_response_id and self.store is False:
            raise ValueError("use_previous_response_id refers to replies that the server stored, so store cannot be False")
        return self

    @property
    def model(self) -> str:
        """The model's name."""
        return self.model_name

    @property
    def _responses_model(self) -> str:
        """The model's name in requests to the Responses API."""
        return self._wire_model

    @property
    def _known_name(self) -> str:
        """The model's name for looking up its abilities."""
        return self.model_name

    @property
    def _is_vendors(self) -> bool:
        """Whether requests go to the vendor itself, whose models are known by name."""
        host = urlsplit(self.openai_api_base or "").hostname
        return not self.openai_api_base or host == _HOST or (host or "").endswith(f".{_HOST}")
