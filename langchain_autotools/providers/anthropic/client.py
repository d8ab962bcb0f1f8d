"""Settings and checks of the anthropic SDK's clients."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...errors import ConfigurationError
from .._base.checks import check_async_client, check_client
from .._transport.clients import PerLoopCache, http_library
from .._transport.exchange import Exchange, Response
from .._transport.sdk import SdkClientSettings
from .errors import sdk

if TYPE_CHECKING:
    import anthropic


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
        return {"api_key": key, "base_url": self.base_url, "default_headers": dict(self.headers), "max_retries": 0}

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


def check_own_client(name: str, value: Any) -> None:
    """Raise if the value is not a synchronous client of the HTTP library that the installed SDK uses.

    Raises:
        ConfigurationError: It is none.
    """
    check_client(name, value)
    _check_library(name, value, "Client")


def check_own_async_client(name: str, value: Any) -> None:
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
