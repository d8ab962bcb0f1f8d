"""HTTP requests for vendors whose SDK does not give the reply's bytes, through client pools that models share.

Both `httpx2` and `httpx` will do. A vendor whose SDK stands on one of them names it, because its users give that one's objects.
"""

import asyncio
import importlib
import weakref
from collections.abc import Callable, Mapping
from contextlib import aclosing, closing
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from types import NoneType
from typing import Any

from ...errors import ConfigurationError
from .clients import SHARED_POOLS, LoopPool, PerLoopCache, shared_ssl_context
from .closing import closing_whole
from .exchange import Response
from .logged import async_hooks, hooks
from .secrets import is_secret_header

_CONNECTIONS, _IDLE = 1000, 100
_REDIRECTS = 20
_PLAIN = (NoneType, bool, int, float, str, tuple)


@cache
def library() -> Any:
    """Return the HTTP library's module: the newer of those that the vendors' SDKs installed."""
    return importlib.import_module("httpx2" if find_spec("httpx2") else "httpx")


class ClientArguments:
    """Arguments of an HTTP client as a hashable key."""

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        self.values = dict(arguments or {})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClientArguments) and self.values == other.values

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.values)))

    @property
    def are_plain(self) -> bool:
        """Whether unrelated models may share a client with these arguments."""
        return all(isinstance(value, _PLAIN) for value in self.values.values())


@dataclass(frozen=True)
class HttpClients:
    """The HTTP clients of a model, created on first use.

    Models with equal plain arguments share them; with other arguments they are the model's own, closed when it is gone.

    Attributes:
        library: The HTTP library's module.
        arguments: Arguments of the synchronous client.
        async_arguments: Arguments of the asynchronous client.
        owner: Keeps the clients that are the model's own.
    """

    library: Any
    arguments: ClientArguments = field(default_factory=ClientArguments)
    async_arguments: ClientArguments = field(default_factory=ClientArguments)
    owner: PerLoopCache = field(default_factory=PerLoopCache)

    def synchronous(self) -> Any:
        """The synchronous client."""
        keeper = self._keeper(self.arguments)

        def make() -> Any:
            arguments = self._complete(self.arguments)
            made = _make_client(self.library.Client, {**arguments, "event_hooks": hooks(**_hooked(arguments))})
            weakref.finalize(keeper, made.close)
            return made

        return keeper.get((self.library.__name__, self.arguments), make)

    def asynchronous(self, loop: asyncio.AbstractEventLoop) -> Any:
        """Return the client for an event loop, closed at the loop's end."""

        keeper = self._keeper(self.async_arguments)

        def make() -> LoopPool:
            arguments = self._complete(self.async_arguments)
            kind = closing_whole(self.library.AsyncClient)
            client = _make_client(kind, {**arguments, "event_hooks": async_hooks(**_hooked(arguments))})
            return LoopPool(client, None if keeper is SHARED_POOLS else keeper)

        return keeper.get((self.library.__name__, self.async_arguments), make, loop).client

    def _keeper(self, arguments: ClientArguments) -> PerLoopCache:
        return SHARED_POOLS if arguments.are_plain else self.owner

    def _complete(self, arguments: ClientArguments) -> dict[str, Any]:
        limits = self.library.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_IDLE)
        verify = {} if {"verify", "transport", "cert"} & arguments.values.keys() else {"verify": shared_ssl_context(self.library)}
        return {"follow_redirects": True, "limits": limits, **verify, **arguments.values}


def _hooked(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"own": arguments.get("event_hooks"), "concealing": not {"transport", "mounts"} & arguments.keys()}


def _make_client(client: Any, arguments: Mapping[str, Any]) -> Any:
    """Create a client from the user's arguments."""
    try:
        return client(**arguments)
    except (TypeError, ValueError, AttributeError) as error:
        raise ConfigurationError(f"the arguments given for the HTTP clients cannot work: {error}") from error


# ---------------------------------------------------------------------------------------------- requests


def post(http: Any, url: str, body: bytes, options: Mapping[str, Any], refused: Callable[[Any], Exception | None]) -> Response:
    """Send a request and return the HTTP library's response, its body unread, as soon as the head has arrived.

    Args:
        http: The client.
        url: The request's address.
        body: The JSON body.
        options: `headers`, and `params` and `timeout` where they are not the client's own.
        refused: Given a response with an error status, its body read: the error that it means; None if it is a reply all the same.

    Raises:
        Exception: What the HTTP library raises where there is no reply, or the error of `refused`.
    """
    response = http.send(http.build_request("POST", url, content=body, **options), stream=True, follow_redirects=False)
    for _ in range(_REDIRECTS):
        further = _redirected(http, response)
        if further is None:
            break
        response.close()
        response = http.send(further, stream=True, follow_redirects=False)
    if response.status_code >= 400:
        with closing(response):
            response.read()
        _raise(refused(response))
    answer: Response = response
    return answer


async def apost(http: Any, url: str, body: bytes, options: Mapping[str, Any], refused: Callable[[Any], Exception | None]) -> Response:
    """Like `post`, asynchronously."""
    response = await http.send(http.build_request("POST", url, content=body, **options), stream=True, follow_redirects=False)
    for _ in range(_REDIRECTS):
        further = _redirected(http, response)
        if further is None:
            break
        await response.aclose()
        response = await http.send(further, stream=True, follow_redirects=False)
    if response.status_code >= 400:
        async with aclosing(response):
            await response.aread()
        _raise(refused(response))
    answer: Response = response
    return answer


def _redirected(http: Any, response: Any) -> Any:
    """Return the request for a redirect; None for other replies. (The HTTP library itself would send keys to any host.)"""
    further = response.next_request if http.follow_redirects else None
    if further is not None and further.url.copy_with(path="/", query=None) != response.request.url.copy_with(path="/", query=None):
        for name in [name for name in further.headers if is_secret_header(name)]:
            del further.headers[name]
    return further


def _raise(error: Exception | None) -> None:
    if error is not None:
        raise error
