"""The openai SDK's clients: made when first needed, from settings that hold all they depend on.

The SDK does authentication, base URL, proxies and pooling through its public interface; its own retries are off. A request's
bytes go through `client.post`, the SDK's way to paths that it does not know, with the HTTP library's response as the type to
return: so the body is sent as we encoded it and the reply's bytes come as they arrive, without the SDK's objects in between.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from pydantic import SecretStr

from ...errors import ConfigurationError
from .._base.checks import akey_of, key_of
from .._transport.clients import Clients, shared_async_client, shared_client
from .errors import http_library

if TYPE_CHECKING:
    import openai

__all__ = ["ApiKey", "ClientSettings", "Clients", "apost", "in_thread", "post"]

ApiKey = SecretStr | Callable[[], str] | Callable[[], Awaitable[str]] | None


@dataclass(frozen=True)
class ClientSettings:
    """Everything an SDK client depends on. What may differ from request to request is not in it.

    Attributes:
        api_key: A key, a function that returns one (synchronous or not), or None: then the SDK looks at `OPENAI_API_KEY`.
        base_url: Where requests go; None for the SDK's default.
        organization: Sent as `OpenAI-Organization`.
        headers: Sent with every request. (Those of single requests go with them; some releases of the SDK log these.)
        proxy: The proxy's URL, for the clients that are made here.
        http_client: The user's own HTTP client, for synchronous requests.
        http_async_client: The user's own HTTP client, for asynchronous requests.
        foreign: Whether the server is another vendor's: then nothing that the SDK finds in OpenAI's environment goes there.
    """

    api_key: ApiKey = None
    base_url: str | None = field(default=None, repr=False)
    organization: str | None = None
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    proxy: str | None = field(default=None, repr=False)
    http_client: Any = None
    http_async_client: Any = None
    foreign: bool = False

    def synchronous(self) -> "openai.OpenAI":
        """A client for threads.

        Raises:
            ConfigurationError: The key comes from an asynchronous function.
            openai.OpenAIError: There is no key.
        """
        import openai

        if _is_asynchronous(self.api_key):
            raise ConfigurationError("the api_key is an asynchronous function: use ainvoke and astream, or give a key or a plain function")
        http_client = self.http_client or shared_client(openai, self.proxy)
        key = self.api_key.get_secret_value() if isinstance(self.api_key, SecretStr) else self.api_key
        if callable(key):
            key = key_of(cast("Callable[[], str]", key))
        return openai.OpenAI(**self._common(), api_key=cast(Any, key), http_client=http_client)

    def asynchronous(self, loop: asyncio.AbstractEventLoop) -> "openai.AsyncOpenAI":
        """A client for this event loop.

        Raises:
            openai.OpenAIError: There is no key.
        """
        import openai

        http_client = self.http_async_client or shared_async_client(openai, self.proxy, loop)
        key = self.api_key.get_secret_value() if isinstance(self.api_key, SecretStr) else self.api_key
        if callable(key):
            key = akey_of(cast("Callable[[], Awaitable[str]]", key) if _is_asynchronous(key) else in_thread(cast("Callable[[], str]", key)))
        return openai.AsyncOpenAI(**self._common(), api_key=cast(Any, key), http_client=http_client)

    def _common(self) -> dict[str, Any]:
        headers: dict[str, Any] = dict(self.headers)
        if self.foreign:
            import openai

            headers = {"OpenAI-Organization": openai.Omit(), "OpenAI-Project": openai.Omit(), **headers}
        return {"base_url": self.base_url, "organization": self.organization, "default_headers": headers, "max_retries": 0}


def _is_asynchronous(key: Any) -> bool:
    return inspect.iscoroutinefunction(key) or inspect.iscoroutinefunction(getattr(key, "__call__", None))  # noqa: B004


def in_thread(get_key: Callable[[], str]) -> Callable[[], Awaitable[str]]:
    """A plain key function as the asynchronous client wants it; it may block, so it runs in a thread."""

    async def get() -> str:
        return await asyncio.to_thread(get_key)

    return get


# ---------------------------------------------------------------------------------------------- requests


def post(client: "openai.OpenAI", path: str, body: bytes, options: Mapping[str, Any]) -> Any:
    """Send a request; returns the HTTP library's response, its body unread, as soon as the head is there.

    Args:
        client: The client.
        path: Where the request goes, below the base URL.
        body: The JSON body.
        options: The SDK's request options: `headers`, `params`, `timeout`.

    Raises:
        openai.APIError: No reply, or one with an error status.
    """
    return cast(Any, client).post(path, cast_to=http_library().Response, content=body, options=_secured(options), stream=True)


async def apost(client: "openai.AsyncOpenAI", path: str, body: bytes, options: Mapping[str, Any]) -> Any:
    """Like `post`, asynchronously."""
    return await cast(Any, client).post(path, cast_to=http_library().Response, content=body, options=_secured(options), stream=True)


def _secured(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with bearer authentication alone: the SDK would else also offer an admin key, to any server."""
    return {**options, "security": {"bearer_auth": True}}
