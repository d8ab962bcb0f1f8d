"""Clients of SDKs built alike (openai, anthropic), created on first use from settings that hold all they depend on.

The SDK does authentication, base URL, proxies and pooling through its public interface; its own retries are off. A request's
bytes go through `client.post`, the SDK's way to paths that it does not know, with the HTTP library's response as the type to
return: so the body is sent as we encoded it and the reply's bytes come as they arrive, without the SDK's objects in between.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

from .clients import PerLoopCache, http_library, shared_async_client, shared_client
from .exchange import Exchange, Response


@dataclass(frozen=True)
class SdkClientSettings(ABC):
    """The settings of an SDK's client. Values that differ between requests are not part of it.

    Attributes:
        api_key: The key, as the SDK's subclass of this takes it.
        base_url: The base URL of requests; None for the SDK's default.
        headers: Sent with every request. (Those of single requests go with them; some releases of the SDKs log these.)
        proxy: The proxy's URL, for the clients that are made here.
        http_client: The user's own HTTP client, for synchronous requests.
        http_async_client: The user's own HTTP client, for asynchronous requests.
    """

    api_key: Any = None
    base_url: str | None = field(default=None, repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    proxy: str | None = field(default=None, repr=False)
    http_client: Any = None
    http_async_client: Any = None

    _options: ClassVar[Mapping[str, Any]] = {}
    """Options of the SDK for every request."""

    @abstractmethod
    def sdk(self) -> Any:
        """The SDK's module, imported."""

    @abstractmethod
    def synchronous(self) -> Any:
        """Return a synchronous client."""

    @abstractmethod
    def asynchronous(self, loop: asyncio.AbstractEventLoop) -> Any:
        """Return a client for this event loop."""

    def post(self, exchange: Exchange, cache: PerLoopCache) -> Response:
        """Send a request with the SDK's options `headers`, `params` and `timeout`.

        Args:
            exchange: The request.
            cache: Keeps the client.

        Raises:
            Exception: The SDK's, where there is no reply, or one with an error status.
        """
        return cast("Response", cache.get(self, self.synchronous).post(**self._request(exchange)))

    async def apost(self, exchange: Exchange, cache: PerLoopCache) -> Response:
        """Like `post`, asynchronously."""
        loop = asyncio.get_running_loop()
        return cast("Response", await cache.get(self, lambda: self.asynchronous(loop), loop).post(**self._request(exchange)))

    def _request(self, exchange: Exchange) -> dict[str, Any]:
        options, response = {**exchange.options, **self._options}, http_library(self.sdk()).Response
        return {"path": exchange.path, "cast_to": response, "content": exchange.body, "options": options, "stream": True}

    def _http(self) -> Any:
        """The synchronous HTTP client."""
        return self.http_client or shared_client(self.sdk(), self.proxy)

    def _ahttp(self, loop: asyncio.AbstractEventLoop) -> Any:
        """Return the HTTP client for this event loop."""
        return self.http_async_client or shared_async_client(self.sdk(), self.proxy, loop)
