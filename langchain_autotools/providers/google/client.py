"""Requests over HTTP: the address, the key or token, and the reply's bytes as they come.

google-genai hands on no bytes: its public stream makes pydantic objects of every event, and the way around them is private. So the
requests are made with the HTTP library, at the addresses and with the environment variables of the SDK's client, and tokens come
from google-auth as they do there.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import SecretStr

from ...errors import ConfigurationError
from .._transport import http as _http
from .._transport.secrets import SecretDict, header_secrets
from .credentials import AccessTokens
from .endpoint import Endpoint
from .errors import status_error

__all__ = ["ClientSettings", "apost", "post"]

_KEY_HEADER = "x-goog-api-key"


@dataclass(frozen=True)
class ClientSettings:
    """Everything that requests depend on. What may differ from request to request is not in it.

    Attributes:
        endpoint: Where they go.
        api_key: The key; on Vertex AI None for access tokens.
        tokens: Gives access tokens.
        headers: Sent with every request.
        clients: The HTTP clients that are made here.
        http_client: The user's own HTTP client, for synchronous requests.
        http_async_client: The user's own HTTP client, for asynchronous requests.
    """

    endpoint: Endpoint
    api_key: SecretStr | None = None
    tokens: AccessTokens | None = None
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    clients: _http.HttpClients = field(default_factory=lambda: _http.HttpClients(_http.library()))
    http_client: Any = None
    http_async_client: Any = None

    def common_headers(self) -> dict[str, str]:
        """The headers of every request, authorisation apart."""
        return SecretDict({"content-type": "application/json", **dict(self.headers)})

    def known_headers(self) -> dict[str, str] | None:
        """The headers of every request; None where a token must be asked for."""
        headers = self.common_headers()
        if self.api_key is not None:
            return SecretDict({**headers, _KEY_HEADER: self.api_key.get_secret_value()})
        if any(name.lower() in (_KEY_HEADER, "authorization") for name in headers):
            return headers  # a gateway's own authorisation
        if self.tokens is None:
            raise ConfigurationError("no key for the Gemini API: give api_key=..., or set GOOGLE_API_KEY or GEMINI_API_KEY")
        return None

    def needs_project(self) -> bool:
        """Whether the project is still to be found: where access tokens are used, the machine's credentials name it."""
        endpoint = self.endpoint
        return endpoint.vertexai and self.tokens is not None and not (endpoint.project or endpoint.base_url or self.api_key)


def post(settings: ClientSettings, body: bytes, options: Mapping[str, Any]) -> Any:
    """Send a request; returns the HTTP library's response, its body unread, as soon as the head is there.

    Args:
        settings: What all requests have in common.
        body: The JSON body.
        options: `model`, `stream`, `timeout`, and where given `headers`, `params`.

    Raises:
        ModelError: A reply with an error status.
    """
    http = settings.http_client or settings.clients.synchronous()
    endpoint = settings.endpoint
    if settings.needs_project() and settings.tokens is not None:
        endpoint = replace(endpoint, project=settings.tokens.project)
    url, headers = endpoint.url(options["model"], stream=options["stream"]), settings.known_headers()
    if headers is None and settings.tokens is not None:
        headers = SecretDict({**settings.common_headers(), **settings.tokens.headers(url)})
    return _http.post(http, url, body, _said(headers or {}, options), lambda response: _refusal(response, headers or {}))


async def apost(settings: ClientSettings, body: bytes, options: Mapping[str, Any]) -> Any:
    """Like `post`, asynchronously."""
    http = settings.http_async_client or settings.clients.asynchronous(asyncio.get_running_loop())
    endpoint = settings.endpoint
    if settings.needs_project() and settings.tokens is not None:
        endpoint = replace(endpoint, project=await asyncio.to_thread(lambda: settings.tokens.project if settings.tokens else None))
    url, headers = endpoint.url(options["model"], stream=options["stream"]), settings.known_headers()
    if headers is None and settings.tokens is not None:
        headers = SecretDict({**settings.common_headers(), **await settings.tokens.aheaders(url)})
    return await _http.apost(http, url, body, _said(headers or {}, options), lambda response: _refusal(response, headers or {}))


def _said(headers: Mapping[str, str], options: Mapping[str, Any]) -> dict[str, Any]:
    """What the HTTP client is told with a request."""
    params = SecretDict({**({"alt": "sse"} if options["stream"] else {}), **(options.get("params") or {})})
    more = {"params": params} if params else {}
    return {"headers": SecretDict({**headers, **(options.get("headers") or {})}), "timeout": options["timeout"], **more}


def _refusal(response: Any, headers: Mapping[str, str]) -> Exception:
    return status_error(response, response.content, header_secrets(headers))
