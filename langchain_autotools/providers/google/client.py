"""Requests to Google's APIs: their address, the key or the token, the reply's bytes as they arrive.

Addresses, API versions and precedence of keys, projects and locations are those of google-genai's client.
"""

import asyncio
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pydantic import SecretStr

from ...errors import ConfigurationError
from .._base.parameters import check_headers
from .._transport import exchange as _http
from .._transport.clients import PerLoopCache
from .._transport.exchange import Exchange, Response
from .._transport.secrets import SecretDict, header_secrets
from .._transport.timeouts import timeout_parts
from .errors import ERRORS, status_error

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
                said = f"no access token for Vertex AI: the server of tokens answers with status {response.status}"
                raise ERRORS.from_body({"message": said}, response.status)
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
