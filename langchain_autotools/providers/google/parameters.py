"""The constructor of Google's chat model: its fields, its endpoint with credentials, the client made of them.

Addresses, API versions and precedence of keys, projects and locations are those of google-genai's client.
"""

import asyncio
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, Field, SecretStr, field_validator

from ...errors import ConfigurationError
from ...turn.model import Secret
from .._base.chat_model import ProviderChatModel
from .._base.parameters import Check, Environment, check_client_arguments, check_count, check_headers, check_in_path
from .._transport import exchange as _http
from .._transport.clients import PerLoopCache
from .._transport.exchange import Exchange, Response
from .._transport.secrets import SecretDict, header_secrets
from .._transport.timeouts import timeout_parts
from .decode import snake
from .errors import ERRORS, status_error
from .tools import plain_tool

_GEMINI = "https://generativelanguage.googleapis.com"
_VERTEX = "https://aiplatform.googleapis.com"
_MULTI_REGIONS = ("us", "eu")
_VERSION = re.compile(r"/v\d+\w*\Z")
_RESOURCES = ("projects/", "publishers/")


@dataclass(frozen=True)
class Endpoint:
    """One of Google's two APIs, at one address.

    Attributes:
        vertexai: Whether it is Vertex AI.
        base_url: The user's own address; None for Google's.
        api_version: The user's version; None for the default.
        project: The Google Cloud project, on Vertex AI.
        location: The region, on Vertex AI.
    """

    vertexai: bool = False
    base_url: str | None = field(default=None, repr=False)
    api_version: str | None = None
    project: str | None = None
    location: str | None = None

    @property
    def root(self) -> str:
        """The address with its version, the prefix of model paths."""
        base = (self.base_url or self._default_url()).rstrip("/")
        if _VERSION.search(base):
            return base
        return f"{base}/{self.api_version or ('v1beta1' if self.vertexai else 'v1beta')}"

    def _default_url(self) -> str:
        if not self.vertexai:
            return _GEMINI
        if self.location in (None, "global"):
            return _VERTEX
        if self.location in _MULTI_REGIONS:
            return f"https://aiplatform.{self.location}.rep.googleapis.com"
        return f"https://{self.location}-aiplatform.googleapis.com"

    def model_path(self, model: str) -> str:
        """Return the model's resource path.

        Raises:
            ConfigurationError: The name is none.
        """
        if not model or any(part in model for part in ("..", "?", "&", "#")) or len(model.split()) != 1 or model != model.strip():
            raise ConfigurationError(f"model={model!r} is no model's name")
        if not self.vertexai:
            return model if model.startswith(("models/", "tunedModels/")) else f"models/{model}"
        model = model.removeprefix("models/")
        if model.startswith("projects/"):
            return model
        publisher, _, name = model.rpartition("/")
        path = model if model.startswith(_RESOURCES) else f"publishers/{publisher or 'google'}/models/{name}"
        return f"projects/{self.project}/locations/{self.location or 'global'}/{path}" if self.project else path

    def url(self, path: str) -> str:
        """Return the full address of a request to `model:method`. (The query `alt=sse` requests a stream of events.)"""
        model, _, method = path.rpartition(":")
        return f"{self.root}/{self.model_path(model)}:{method}"


def file_uri(identifier: str) -> str:
    """Return the address of an uploaded file, by its name (`files/...`) or address. It points to Google even behind a gateway."""
    return f"{_GEMINI}/v1beta/{identifier}" if identifier.startswith("files/") else identifier


# ---------------------------------------------------------------------------------------------- credentials
# Access tokens for Vertex AI, from the user's credentials or those that google-auth finds on the machine.
#
# google-auth's public interface only: `google.auth.default`, `Credentials.before_request`. A token is fetched when there is none or it
# has run out, which blocks; asynchronous callers wait for it in a thread. The request for it has the timeout of the request that it is
# for, and is made again as often: google-auth's own retries would wait without looking at a deadline.


Timeout = tuple[float | None, float | None]

_LONGEST = 120.0  # google-auth's own
_TRANSIENT = (408, 429, 500, 502, 503, 504)
_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)


class AccessTokens:
    """Provides the headers that authorise a request. Safe for threads.

    Args:
        credentials: A `google.auth.credentials.Credentials`; None for the machine's own.
    """

    def __init__(self, credentials: Any = None) -> None:
        self._credentials = credentials
        self._project: str | None = None
        self._transport: Any = None
        self._lock = threading.Lock()

    def project(self, timeout: Timeout) -> str | None:
        """Return the project of the machine's credentials; looks them up.

        Args:
            timeout: The seconds to connect and between two bytes.
        """
        with self._held(timeout):
            self._find(timeout)
        return self._project

    def headers(self, url: str, timeout: Timeout) -> Mapping[str, str]:
        """Return the headers for a request to this address.

        Args:
            url: The address.
            timeout: The seconds to connect and between two bytes.

        Raises:
            ConfigurationError: There are no credentials, or no header can hold the token.
            ProviderError: They are refused, or the server of tokens fails.
            TimeoutError: It does not answer in time.
        """
        headers: dict[str, str] = {}
        with self._held(timeout):
            self._find(timeout)
            self._credentials.before_request(self._within(timeout), "POST", url, headers)
        check_headers("the access token's headers", headers)
        return headers

    async def aheaders(self, url: str, timeout: Timeout) -> Mapping[str, str]:
        """Like `headers`, asynchronously."""
        if self._credentials is not None and self._credentials.valid:
            return self.headers(url, timeout)
        return await asyncio.to_thread(self.headers, url, timeout)

    @contextmanager
    def _held(self, timeout: Timeout) -> Iterator[None]:
        """Hold the lock, and translate errors of google-auth."""
        read = timeout[1]
        if not self._lock.acquire(timeout=-1 if read is None else read):
            raise TimeoutError("another request has been waiting for an access token for as long")
        try:
            yield
        except Exception as error:
            if isinstance(error, TimeoutError) or not (type(error).__module__.startswith("google.auth.") or isinstance(error, OSError)):
                raise
            failed = _token_error(error)
            raise failed from (None if isinstance(failed, TimeoutError) else error)
        finally:
            self._lock.release()

    def _within(self, timeout: Timeout) -> Callable[..., Any]:
        """Return google-auth's transport with a timeout."""
        transport, longest = self._transport, tuple(_LONGEST if part is None else part for part in timeout)

        def request(*args: Any, timeout: Any = None, **kwargs: Any) -> Any:
            given = timeout if isinstance(timeout, tuple) else (timeout, timeout)
            shorter = tuple(most if own is None else min(own, most) for own, most in zip(given, longest, strict=True))
            response = transport(*args, timeout=shorter, **kwargs)
            if response.status in _TRANSIENT:
                raise _status_of_tokens(response.status)
            return response

        return request

    def _find(self, timeout: Timeout) -> None:
        if self._transport is None:
            from google.auth.transport.requests import Request

            self._transport = Request()
        if self._credentials is not None:
            return
        import google.auth
        from google.auth.exceptions import DefaultCredentialsError

        try:
            request: Any = self._within(timeout)
            self._credentials, self._project = google.auth.default(scopes=_SCOPES, request=request)
        except DefaultCredentialsError as error:
            hint = "give credentials=... or api_key=..., or set GOOGLE_APPLICATION_CREDENTIALS"
            raise ConfigurationError(f"no credentials for Vertex AI ({error}): {hint}") from error


def _token_error(error: Exception) -> Exception:
    """Return the error for a token that google-auth could not get.

    A request for it that may succeed later counts as a connection that failed; else the credentials are refused.
    """
    said = f"no access token for Vertex AI ({type(error).__name__}: {error})"
    if "timed out" in said:
        return TimeoutError(said)
    if isinstance(error, OSError) or getattr(error, "retryable", False) or type(error).__name__ == "TransportError":
        return ERRORS.unreachable(said)
    return ERRORS.from_body({"message": said}, 401)


def _status_of_tokens(status: int) -> Exception:
    """Return the error for a server of tokens that fails for the moment."""
    return ERRORS.from_body({"message": f"no access token for Vertex AI: the server of tokens answers with status {status}"}, status)


# ---------------------------------------------------------------------------------------------- client
# HTTP requests: the address, the key or token, and the reply's bytes as they arrive.
#
# google-genai hands on no bytes: its public stream makes pydantic objects of every event, and the way around them is private. So the
# requests are made with the HTTP library, at the addresses and with the environment variables of the SDK's client, and tokens come from
# google-auth as they do there.


_KEY_HEADER = "x-goog-api-key"


@dataclass(frozen=True)
class ClientSettings:
    """The settings of requests. Values that differ between requests are not part of it.

    Attributes:
        endpoint: The endpoint of requests.
        api_key: The key; on Vertex AI None for access tokens.
        tokens: Gives access tokens.
        headers: Sent with every request; their names are in lower case.
        arguments: Arguments of the HTTP clients that are made here.
        http_client: The user's own HTTP client, for synchronous requests.
        http_async_client: The user's own HTTP client, for asynchronous requests.
    """

    endpoint: Endpoint
    api_key: SecretStr | None = None
    tokens: AccessTokens | None = None
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    arguments: Mapping[str, Any] | None = field(default=None, repr=False)
    http_client: Any = None
    http_async_client: Any = None

    def post(self, exchange: Exchange, cache: PerLoopCache) -> Response:
        """Send a request.

        Raises:
            ModelError: A reply with an error status.
        """
        http = self.http_client or self._clients(cache).synchronous()
        headers, tokens, project = self._known_headers(), self.tokens, None
        if tokens is not None and self._needs_project:
            project = tokens.project(_token_timeout(exchange, http))
        url = self._url(exchange.path, project)
        if tokens is not None and headers is None:
            headers = SecretDict({**self._common_headers(), **tokens.headers(url, _token_timeout(exchange, http))})
        return _http.post(http, url, exchange.body, _with_headers(exchange, headers or {}), partial(_refusal, headers or {}))

    async def apost(self, exchange: Exchange, cache: PerLoopCache) -> Response:
        """Like `post`, asynchronously."""
        http = self.http_async_client or self._clients(cache).asynchronous(asyncio.get_running_loop())
        headers, tokens, project = self._known_headers(), self.tokens, None
        if tokens is not None and self._needs_project:
            project = await asyncio.to_thread(tokens.project, _token_timeout(exchange, http))
        url = self._url(exchange.path, project)
        if tokens is not None and headers is None:
            headers = SecretDict({**self._common_headers(), **(await tokens.aheaders(url, _token_timeout(exchange, http)))})
        return await _http.apost(http, url, exchange.body, _with_headers(exchange, headers or {}), partial(_refusal, headers or {}))

    def _clients(self, cache: PerLoopCache) -> _http.HttpClients:
        arguments = _http.ClientArguments(self.arguments)
        return _http.HttpClients(_http.library(), arguments, arguments, cache)

    def _url(self, path: str, project: str | None) -> str:
        return (replace(self.endpoint, project=project) if project else self.endpoint).url(path)

    @property
    def _needs_project(self) -> bool:
        """Whether the project must be looked up: with access tokens, the machine's credentials name it."""
        return self.endpoint.vertexai and not (self.endpoint.project or self.endpoint.base_url or self.api_key)

    def _common_headers(self) -> dict[str, str]:
        """The headers of every request, without authorisation."""
        return SecretDict({"content-type": "application/json", **dict(self.headers)})

    def _known_headers(self) -> dict[str, str] | None:
        """The headers of every request; None if a token must be fetched first."""
        headers = self._common_headers()
        if self.api_key is not None:
            return SecretDict({_KEY_HEADER: self.api_key.get_secret_value(), **headers})
        if _KEY_HEADER in headers or "authorization" in headers:
            return headers  # a gateway's own authorisation
        if self.tokens is None:
            raise ConfigurationError("no key for the Gemini API: give api_key=..., or set GOOGLE_API_KEY or GEMINI_API_KEY")
        return None


def _token_timeout(exchange: Exchange, http: Any) -> tuple[float | None, float | None]:
    """Return the seconds to connect and between two bytes for the request for a token: those of the request itself."""
    return timeout_parts(exchange.options.get("timeout", http.timeout))[:2]


def _with_headers(exchange: Exchange, headers: Mapping[str, str]) -> dict[str, Any]:
    """Return the HTTP client's options for a request."""
    of_request = {name.lower(): value for name, value in exchange.options["headers"].items()}
    return {**exchange.options, "headers": SecretDict({**headers, **of_request})}


def _refusal(headers: Mapping[str, str], response: Any) -> Exception:
    return status_error(response, response.content, header_secrets(headers))


# ---------------------------------------------------------------------------------------------- parameters
# The constructor of `ChatGoogleGenerativeAI`: its fields, and what the environment fills in.
#
# Names and meanings are those of langchain-google-genai's `ChatGoogleGenerativeAI`; which key, project and location win where several are
# given is as in google-genai's client.


_TRUE, _FALSE = ("true", "1", "yes"), ("false", "0", "no")
_ADDRESS_VARIABLES = {False: "GOOGLE_GEMINI_BASE_URL", True: "GOOGLE_VERTEX_BASE_URL"}

_OF_THE_SDK = {
    "http_options": "it is google-genai's own; give base_url, timeout, max_retries, additional_headers, client_args",
    "should_return_http_response": "it is google-genai's own; include_response_headers=True tells the headers",
    "automatic_function_calling": "it is google-genai's own; tools=[...] of the constructor run, those of bind_tools never do",
    "automatic_continuation": "it is google-genai's own: its client asks for the rest of a reply",
}
"""Parameters of google-genai's configuration that only that package supports, with their replacements."""


class GoogleParameters(ProviderChatModel, defer_build=True):
    """The fields of a chat model that speaks to the Gemini API or Vertex AI."""

    model: str = Field(validation_alias="model_name")
    """Model name, also with its path (`models/...`, `publishers/...`, `projects/...`)."""

    google_api_key: Secret = Field(default=None, alias="api_key")  # type: ignore[arg-type]
    """API key. Environment: `GOOGLE_API_KEY`, then `GEMINI_API_KEY`."""
    credentials: Any = Field(default=None, exclude=True, repr=False)
    """Credentials for Vertex AI, a `google.auth.credentials.Credentials`. None: a key, else the machine's own credentials."""
    vertexai: bool | None = None
    """Whether to use Vertex AI. None: as set by `GOOGLE_GENAI_USE_VERTEXAI`; else if `credentials` or `project` are given."""
    project: str | None = None
    """Whether to use Vertex AI. None: as set by `GOOGLE_GENAI_USE_VERTEXAI`; else if `credentials` or `project` are given."""
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

    def _complete_from_environment(self) -> None:
        self.api_version = self.api_version or _version(os.environ.get("GOOGLE_GENAI_API_VERSION"))
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


def check_sdk_names(keywords: Mapping[str, Any]) -> None:
    """Raise for parameters that google-genai handles itself and the server does not know.

    Raises:
        ConfigurationError: There is one.
    """
    for name, value in keywords.items():
        why = _OF_THE_SDK.get(snake(name))
        if why and value is not None:
            raise ConfigurationError(f"{name} cannot be sent: {why}")


def _version(value: str | None) -> str | None:
    return None if value in (None, "", "beta") else value
