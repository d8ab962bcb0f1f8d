"""HTTP requests: the address, the key or token, and the reply's bytes as they arrive.

google-genai hands on no bytes: its public stream makes pydantic objects of every event, and the way around them is private. So the
requests are made with the HTTP library, at the addresses and with the environment variables of the SDK's client, and tokens come
from google-auth as they do there.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pydantic import SecretStr

from ...errors import ConfigurationError
from .._transport import http as _http
from .._transport.clients import PerLoopCache
from .._transport.exchange import Exchange, Response
from .._transport.secrets import SecretDict, header_secrets
from .credentials import AccessTokens
from .endpoint import Endpoint
from .errors import status_error

_KEY_HEADER = "x-goog-api-key"


@dataclass(frozen=True)
class ClientSettings:
    """The settings of requests. Values that differ between requests are not part of it.

    Attributes:
        endpoint: The endpoint of requests.
        api_key: The key; on Vertex AI None for access tokens.
        tokens: Gives access tokens.
        headers: Sent with every request.
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
        url = self._url(exchange.path, self.tokens.project if self.tokens and self._needs_project else None)
        headers = self._known_headers() or SecretDict({**self._common_headers(), **(self.tokens.headers(url) if self.tokens else {})})
        return _http.post(http, url, exchange.body, _with_headers(exchange, headers), partial(_refusal, headers))

    async def apost(self, exchange: Exchange, cache: PerLoopCache) -> Response:
        """Like `post`, asynchronously."""
        http = self.http_async_client or self._clients(cache).asynchronous(asyncio.get_running_loop())
        tokens = self.tokens
        url = self._url(exchange.path, await asyncio.to_thread(lambda: tokens.project) if tokens and self._needs_project else None)
        headers = self._known_headers() or SecretDict({**self._common_headers(), **(await tokens.aheaders(url) if tokens else {})})
        return await _http.apost(http, url, exchange.body, _with_headers(exchange, headers), partial(_refusal, headers))

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
            return SecretDict({**headers, _KEY_HEADER: self.api_key.get_secret_value()})
        if any(name.lower() in (_KEY_HEADER, "authorization") for name in headers):
            return headers  # a gateway's own authorisation
        if self.tokens is None:
            raise ConfigurationError("no key for the Gemini API: give api_key=..., or set GOOGLE_API_KEY or GEMINI_API_KEY")
        return None


def _with_headers(exchange: Exchange, headers: Mapping[str, str]) -> dict[str, Any]:
    """Return the HTTP client's options for a request."""
    return {**exchange.options, "headers": SecretDict({**headers, **exchange.options["headers"]})}


def _refusal(headers: Mapping[str, str], response: Any) -> Exception:
    return status_error(response, response.content, header_secrets(headers))
