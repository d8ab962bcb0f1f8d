"""The anthropic SDK's clients: made when first needed, from settings that hold all they depend on.

The SDK does authentication, base URL, proxies and pooling through its public interface; its own retries are off. A request's
bytes go through `client.post`, the SDK's way to paths that it does not know, with the HTTP library's response as the type to
return: so the body is sent as we encoded it and the reply's bytes come as they arrive, without the SDK's objects in between.
"""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from pydantic import SecretStr

from ...errors import ConfigurationError
from .._base.checks import check_async_client, check_client
from .._transport.clients import http_library, shared_async_client, shared_client

if TYPE_CHECKING:
    import anthropic

__all__ = ["ClientSettings", "apost", "check_own_async_client", "check_own_client", "post"]

_PATH = "/v1/messages"


@dataclass(frozen=True)
class ClientSettings:
    """Everything an SDK client depends on. What may differ from request to request is not in it.

    Attributes:
        api_key: A key, or None: then the SDK looks at its environment variables and profiles.
        base_url: Where requests go; None for the SDK's default.
        headers: Sent with every request.
        proxy: The proxy's URL, for the clients that are made here.
        http_client: The user's own HTTP client, for synchronous requests.
        http_async_client: The user's own HTTP client, for asynchronous requests.
    """

    api_key: SecretStr | None = None
    base_url: str | None = field(default=None, repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    proxy: str | None = field(default=None, repr=False)
    http_client: Any = None
    http_async_client: Any = None

    def synchronous(self) -> "anthropic.Anthropic":
        """A client for threads."""
        import anthropic

        return anthropic.Anthropic(**self._common(), http_client=self.http_client or shared_client(anthropic, self.proxy))

    def asynchronous(self, loop: asyncio.AbstractEventLoop) -> "anthropic.AsyncAnthropic":
        """A client for this event loop."""
        import anthropic

        http_client = self.http_async_client or shared_async_client(anthropic, self.proxy, loop)
        return anthropic.AsyncAnthropic(**self._common(), http_client=http_client)

    def _common(self) -> dict[str, Any]:
        key = self.api_key.get_secret_value() if self.api_key is not None else None
        return {"api_key": key, "base_url": self.base_url, "default_headers": dict(self.headers), "max_retries": 0}


def check_own_client(name: str, value: Any) -> None:
    """Refuse what is no HTTP client, or is one of another library than the installed SDK's, which the SDK takes no other than."""
    check_client(name, value)
    _check_library(name, value, "Client")


def check_own_async_client(name: str, value: Any) -> None:
    """The same for an asynchronous one."""
    check_async_client(name, value)
    _check_library(name, value, "AsyncClient")


def _check_library(name: str, value: Any, kind: str) -> None:
    if value is None:
        return
    import anthropic

    library = http_library(anthropic)
    if not isinstance(value, getattr(library, kind)):
        own = f"{type(value).__module__.partition('.')[0]}.{type(value).__name__}"
        raise ConfigurationError(f"{name} is an {own}, but the installed anthropic SDK takes an {library.__name__}.{kind} only")


def post(client: "anthropic.Anthropic", body: bytes, options: Mapping[str, Any]) -> Any:
    """Send a request; returns the HTTP library's response, its body unread, as soon as the head is there.

    Args:
        client: The client.
        body: The JSON body.
        options: The SDK's request options: `headers`, `params`, `timeout`.

    Raises:
        anthropic.APIError: No reply, or one with an error status.
    """
    with _authorized():
        return cast(Any, client).post(_PATH, cast_to=_response(), content=body, options=dict(options), stream=True)


async def apost(client: "anthropic.AsyncAnthropic", body: bytes, options: Mapping[str, Any]) -> Any:
    """Like `post`, asynchronously."""
    with _authorized():
        return await cast(Any, client).post(_PATH, cast_to=_response(), content=body, options=dict(options), stream=True)


@contextmanager
def _authorized() -> Iterator[None]:
    """Tell of a missing key in our words: the SDK looks in several places and then raises a bare `TypeError`."""
    try:
        yield
    except TypeError as error:
        if "authentication method" not in str(error):
            raise
        raise ConfigurationError("ChatAnthropic has no key: give api_key, or set ANTHROPIC_API_KEY") from None


def _response() -> Any:
    import anthropic

    return http_library(anthropic).Response
