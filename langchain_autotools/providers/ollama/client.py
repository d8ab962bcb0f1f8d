"""HTTP requests to Ollama, and the bytes of their replies as they arrive.

The SDK's client has no public way to the bytes of a reply, and its public stream drops ids and places of calls and dies on lines that
servers send (wire quirks O-01 to O-03). So requests go through httpx, the library that the SDK itself stands on, with the SDK's own
configuration: its address rules, environment variables, redirects, and no limit on the time of a reply.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._transport.clients import PerLoopCache
from .._transport.exchange import Exchange, Response
from .._transport.http import ClientArguments, HttpClients, apost, post
from .decode import is_model_mistake
from .errors import error_of_response, message_of

DEFAULT_TIMEOUT = (10.0, None, None, None)
"""Default timeout: ten seconds to connect, no limit for the reply, because a model may have to be loaded first."""


@dataclass(frozen=True)
class ClientSettings:
    """The settings of the HTTP clients. Values that differ between requests are not part of it.

    Attributes:
        url: The server's address.
        arguments: Arguments of the synchronous client.
        async_arguments: Arguments of the asynchronous client.
    """

    url: str
    arguments: Mapping[str, Any] = field(default_factory=dict, repr=False)
    async_arguments: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def post(self, exchange: Exchange, cache: PerLoopCache) -> Response:
        """Send a request.

        Raises:
            ollama.ResponseError: A reply with an error status.
        """
        http = self.clients(cache).synchronous()
        return post(http, self.url + exchange.path, exchange.body, exchange.options, _refusal)

    async def apost(self, exchange: Exchange, cache: PerLoopCache) -> Response:
        """Like `post`, asynchronously."""
        http = self.clients(cache).asynchronous(asyncio.get_running_loop())
        return await apost(http, self.url + exchange.path, exchange.body, exchange.options, _refusal)

    def clients(self, cache: PerLoopCache) -> HttpClients:
        """Return the HTTP clients, of httpx because users pass that library's objects.

        Args:
            cache: Keeps the clients that are the model's own.
        """
        import httpx

        first, second = (ClientArguments({"timeout": DEFAULT_TIMEOUT, **one}) for one in (self.arguments, self.async_arguments))
        return HttpClients(httpx, first, second, cache)


def _refusal(response: Any) -> Exception | None:
    """Return the error for an error status; None for a call that the server could not parse, a normal reply (wire quirk T-07)."""
    return None if is_model_mistake(message_of(response)) else error_of_response(response)
