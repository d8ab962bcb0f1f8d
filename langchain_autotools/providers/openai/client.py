"""Settings of the openai SDK's clients."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import SecretStr

from ...errors import ConfigurationError
from .._base.checks import akey_of, key_of
from .._transport.sdk import SdkClientSettings
from .errors import sdk

if TYPE_CHECKING:
    import openai

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

    _options: ClassVar[Mapping[str, Any]] = {"security": {"bearer_auth": True}}  # the SDK would else also offer an admin key, to any server

    def sdk(self) -> Any:
        """The SDK's module."""
        return sdk()

    def synchronous(self) -> "openai.OpenAI":
        """Return a synchronous client.

        Raises:
            ConfigurationError: The key comes from an asynchronous function.
            openai.OpenAIError: There is no key.
        """
        if _is_asynchronous(self.api_key):
            raise ConfigurationError("the api_key is an asynchronous function: use ainvoke and astream, or give a key or a plain function")
        key = self._key()
        client: openai.OpenAI = sdk().OpenAI(**self._common(), api_key=key_of(key) if callable(key) else key, http_client=self._http())
        return client

    def asynchronous(self, loop: asyncio.AbstractEventLoop) -> "openai.AsyncOpenAI":
        """Return a client for this event loop.

        Raises:
            openai.OpenAIError: There is no key.
        """
        key = self._key()
        if callable(key):
            key = akey_of(key if _is_asynchronous(key) else in_thread(key))
        client: openai.AsyncOpenAI = sdk().AsyncOpenAI(**self._common(), api_key=key, http_client=self._ahttp(loop))
        return client

    def _key(self) -> Any:
        return self.api_key.get_secret_value() if isinstance(self.api_key, SecretStr) else self.api_key

    def _common(self) -> dict[str, Any]:
        headers: dict[str, Any] = dict(self.headers)
        if self.foreign:
            headers = {"OpenAI-Organization": sdk().Omit(), "OpenAI-Project": sdk().Omit(), **headers}
        return {"base_url": self.base_url, "organization": self.organization, "default_headers": headers, "max_retries": 0}


def _is_asynchronous(key: Any) -> bool:
    return inspect.iscoroutinefunction(key) or inspect.iscoroutinefunction(getattr(key, "__call__", None))  # noqa: B004


def in_thread(get_key: Callable[[], str]) -> Callable[[], Awaitable[str]]:
    """Return an asynchronous key function, as the asynchronous client requires; the original may block, so it runs in a thread."""

    async def get() -> str:
        return await asyncio.to_thread(get_key)

    return get
