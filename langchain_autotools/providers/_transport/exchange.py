"""One request to a server: what is sent, by which client of an SDK or an HTTP library, where a redirect may lead."""

import asyncio
import base64
import importlib
import weakref
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Generator, Hashable, Mapping
from contextlib import aclosing, closing
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.util import find_spec
from types import NoneType
from typing import Any, ClassVar, Protocol, cast
from urllib.parse import unquote, urlsplit

from langchain_core.messages import AIMessageChunk

from ...addresses import public_url
from ...errors import ConfigurationError
from . import clients
from .reader import EventDecoder, ReplyDecoder, ReplyWatch, SSEDecoder
from .secrets import SecretDict, hooks, secret_query, spelled
from .timeouts import PATIENCE

ANSWERED = "autotools_answered"
"""The extension of an HTTP library's request that says that its reply has begun."""


class Response(Protocol):
    """The interface of the HTTP library's response with an unread body."""

    headers: Any

    def iter_bytes(self) -> Generator[bytes, None, None]: ...
    def aiter_bytes(self) -> AsyncGenerator[bytes, None]: ...
    def read(self) -> bytes: ...
    async def aread(self) -> bytes: ...
    def close(self) -> None: ...
    async def aclose(self) -> None: ...


@dataclass(frozen=True)
class Exchange:
    """A request that can be sent any number of times, with the readers of its reply.

    Attributes:
        body: The request's JSON.
        decoder: Makes a decoder for one reply.
        events: Makes what finds the events in a streamed reply's bytes.
        watch: Makes what reads one reply for listeners: what the vendor does by itself.
        options: Options of the client: headers, query, timeout.
        path: The request's path below the base URL; "" for a vendor with one path.
        idle_timeout: Seconds that may pass between two events of the reply; None for any time.
        alternatives: Ways to another form of the request, in the order in which they are tried. Given the error that refused the request
            and the request: the other form, or None if that is not the reason.
        taken: Called once the server has taken the request, where it is another form of one that was refused: the form is kept.
        unforced: Whether it asks as it likes for a call that a refused request forced.
        error_to_turn: Given a translated error: the turn that it stands for, where it is the model's own mistake (a call that the
            vendor could not read), or None. The model is told, as after any other call that cannot run.
    """

    body: bytes = field(repr=False)
    decoder: Callable[[], ReplyDecoder]
    watch: Callable[[], ReplyWatch]
    events: Callable[[], EventDecoder] = SSEDecoder
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    path: str = ""
    idle_timeout: float | None = None
    alternatives: "tuple[Alternative, ...]" = ()
    taken: Callable[[], object] | None = None
    unforced: bool = False
    error_to_turn: Callable[[Exception], AIMessageChunk | None] = lambda error: None

    def alternative_for(self, error: Exception) -> "Exchange | None":
        """Return the request in another form, given the error that refused it; None if no other is known.

        The first way to another form takes the place of all that was changed before. Each other one keeps this, and those before it.
        """
        others = ((number, other) for number, change in enumerate(self.alternatives) if (other := change(error, self)) is not None)
        number, other = next(others, (0, None))
        if other is None or not number:
            return other
        calls = [call for call in (self.taken, other.taken) if call is not None]
        kept, unforced = (*self.alternatives[:number], *other.alternatives), self.unforced or other.unforced
        return replace(other, alternatives=kept, taken=lambda: [call() for call in calls], unforced=unforced)


Alternative = Callable[[Exception, Exchange], Exchange | None]
"""A way to another form of a request that was refused."""


class ClientSettings(Protocol):
    """The client's settings and its method of sending. Values that differ between requests are not part of it."""

    def post(self, exchange: Exchange, cache: clients.PerLoopCache) -> Response:
        """Send a request and return the response as soon as its head has arrived.

        Args:
            exchange: The request.
            cache: Keeps the client.

        Raises:
            Exception: What the SDK or the HTTP library raises where there is no reply, or one with an error status.
        """
        ...

    async def apost(self, exchange: Exchange, cache: clients.PerLoopCache) -> Response:
        """Like `post`, asynchronously."""
        ...


# ---------------------------------------------------------------------------------------------- redirects
# Redirects of a request: it is repeated at another path of the same server, and never sent to another server.
#
# An HTTP library that follows redirects takes headers along that may be a gateway's keys, and the whole conversation, wherever the reply
# points, and after some of them asks with `GET`, which no vendor understands.


_REPEATED = (301, 302, 307, 308)
_MOST = 5


def _where_to_repeat(response: Any, asked: list[str]) -> Any:
    """Return the address of the same server at which a redirect asks for the request again; None for other replies.

    Args:
        response: The HTTP library's response.
        asked: The addresses of this request's earlier redirects; the new one is added.
    """
    if response.status_code not in _REPEATED or len(asked) >= _MOST:
        return None
    target, here = _target(response), response.request.url
    if target is None or _origin(target) != _origin(here):
        return None
    address = f"{target.raw_path!r}"
    if address == f"{here.raw_path!r}" or address in asked:
        return None
    asked.append(address)
    return target


def describe_redirect(response: Any) -> str:
    """Return the text of the error for a redirect that is not followed. It names the target without its query."""
    said, target = f"the server redirects the request (status {response.status_code})", _target(response)
    if target is None:
        return f"{said} and does not say where to: see base_url"
    if _origin(target) != _origin(response.request.url):
        return f"{said} to {public_url(str(target))}, which is another server: nothing was sent there. Is that the address for base_url?"
    if response.status_code not in _REPEATED:
        return f"{said} to {public_url(str(target))}, where it cannot be repeated: see base_url"
    return f"{said} to {public_url(str(target))}, again and again: see base_url"


def _target(response: Any) -> Any:
    """Return the address that a redirect names, without a user; None if it names none."""
    location = response.headers.get("location")
    if not location:
        return None
    try:
        return response.request.url.join(location).copy_with(userinfo=b"")
    except Exception:  # the HTTP library's own for what is no address, and what its parsers raise
        return None


def _origin(url: Any) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


# ---------------------------------------------------------------------------------------------- http
# HTTP requests for vendors whose SDK does not give the reply's bytes, through client pools that models share.
#
# Both `httpx2` and `httpx` will do. A vendor whose SDK uses one of them names it, because its users give that one's objects.


_CONNECTIONS, _IDLE = 1000, 100
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
    owner: clients.PerLoopCache = field(default_factory=clients.PerLoopCache)

    def synchronous(self) -> Any:
        """The synchronous client."""
        keeper = self._keeper(self.arguments)

        def make() -> Any:
            arguments = self._complete(self.arguments)
            made = clients.usable(lambda: _make_client(self.library.Client, {**arguments, "event_hooks": hooks(arguments)}))
            weakref.finalize(keeper, made.close)
            return made

        return keeper.get((self.library.__name__, self.arguments, self._environment), make)

    def asynchronous(self, loop: asyncio.AbstractEventLoop) -> Any:
        """Return the client for an event loop, closed at the loop's end."""

        keeper = self._keeper(self.async_arguments)

        def make() -> clients.LoopPool:
            arguments = self._complete(self.async_arguments)
            kind = clients.closing_whole(self.library.AsyncClient)
            client = clients.usable(lambda: _make_client(kind, {**arguments, "event_hooks": hooks(arguments, awaited=True)}))
            return clients.LoopPool(client, None if keeper is clients.SHARED_POOLS else keeper)

        return keeper.get((self.library.__name__, self.async_arguments, self._environment), make, loop).client

    @property
    def _environment(self) -> Hashable:
        """The environment's proxies and certificates when the model made its first request."""
        return self.owner.get("environment", clients.connection_environment)

    def _keeper(self, arguments: ClientArguments) -> clients.PerLoopCache:
        return clients.SHARED_POOLS if arguments.are_plain else self.owner

    def _complete(self, arguments: ClientArguments) -> dict[str, Any]:
        limits = self.library.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_IDLE)
        verify = {} if {"verify", "transport", "cert"} & arguments.values.keys() else {"verify": clients.shared_ssl_context(self.library)}
        return {"limits": limits, **verify, **arguments.values}


def _make_client(client: Any, arguments: Mapping[str, Any]) -> Any:
    """Create a client from the user's arguments."""
    try:
        return client(**arguments)
    except (TypeError, ValueError, AttributeError) as error:
        if not {"proxy", "mounts"} & arguments.keys() and "proxy" in str(error):  # then the environment names it
            raise ValueError(str(error)) from error
        raise ConfigurationError(f"the arguments given for the HTTP clients cannot work: {error}") from error


# ---------------------------------------------------------------------------------------------- requests


def post(http: Any, url: str, body: bytes, options: Mapping[str, Any], refused: Callable[[Any], Exception | None]) -> Response:
    """Send a request and return the HTTP library's response, its body unread, as soon as the head has arrived.

    Args:
        http: The client.
        url: The request's address.
        body: The JSON body.
        options: `headers`, and `params` and `timeout` where they are not the client's own.
        refused: Given a response with a status of a redirect or an error, its body read: the error that it means; None if it is a
            reply all the same.

    Raises:
        Exception: What the HTTP library raises where there is no reply, or the error of `refused`.
    """
    asked: list[str] = []
    response = http.send(http.build_request("POST", url, content=body, **options), stream=True, follow_redirects=False)
    while (target := _where_to_repeat(response, asked)) is not None:
        response.close()
        again = http.build_request("POST", target, content=body, **_without_query(options))
        response = http.send(again, stream=True, follow_redirects=False)
    if response.status_code >= 300:
        with closing(response):
            response.read()
        if (error := refused(response)) is not None:
            raise error
    response.request.extensions = {**response.request.extensions, ANSWERED: True}
    return cast("Response", response)


async def apost(http: Any, url: str, body: bytes, options: Mapping[str, Any], refused: Callable[[Any], Exception | None]) -> Response:
    """Like `post`, asynchronously."""
    asked: list[str] = []
    response = await http.send(http.build_request("POST", url, content=body, **options), stream=True, follow_redirects=False)
    while (target := _where_to_repeat(response, asked)) is not None:
        await response.aclose()
        again = http.build_request("POST", target, content=body, **_without_query(options))
        response = await http.send(again, stream=True, follow_redirects=False)
    if response.status_code >= 300:
        async with aclosing(response):
            await response.aread()
        if (error := refused(response)) is not None:
            raise error
    response.request.extensions = {**response.request.extensions, ANSWERED: True}
    return cast("Response", response)


def _without_query(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a request that is repeated where a redirect says: its address has the query."""
    return {name: value for name, value in options.items() if name != "params"}


# ---------------------------------------------------------------------------------------------- sdk
# Clients of SDKs built alike (openai, anthropic), created on first use from settings that hold all they depend on.
#
# The SDK does authentication, base URL, proxies and pooling through its public interface; its own retries are off. A request's bytes go
# through `client.post`, the SDK's way to paths that it does not know, with the HTTP library's response as the type to return. So the body
# is sent as we encoded it and the reply's bytes come as they arrive, without the SDK's objects in between.


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

    sdk: ClassVar["staticmethod[[], Any]"]
    """Returns the SDK's module, imported."""
    _options: ClassVar[Mapping[str, Any]] = {}
    """Options of the SDK for every request."""

    @abstractmethod
    def synchronous(self) -> Any:
        """Return a synchronous client."""

    @abstractmethod
    def asynchronous(self, loop: asyncio.AbstractEventLoop) -> Any:
        """Return a client for this event loop."""

    def post(self, exchange: Exchange, cache: clients.PerLoopCache) -> Response:
        """Send a request with the SDK's options `headers`, `params` and `timeout`.

        Args:
            exchange: The request.
            cache: Keeps the client.

        Raises:
            Exception: The SDK's, where there is no reply, or one with an error status.
        """
        client, request, asked = cache.get(self, self.synchronous), self._request(exchange), list[str]()
        PATIENCE.set(exchange.options.get("timeout"))
        while True:
            try:
                return cast("Response", client.post(**request))
            except Exception as error:
                request = _repeated(request, error, asked)

    async def apost(self, exchange: Exchange, cache: clients.PerLoopCache) -> Response:
        """Like `post`, asynchronously."""
        loop = asyncio.get_running_loop()
        client, request, asked = cache.get(self, lambda: self.asynchronous(loop), loop), self._request(exchange), list[str]()
        PATIENCE.set(exchange.options.get("timeout"))
        while True:
            try:
                return cast("Response", await client.post(**request))
            except Exception as error:
                request = _repeated(request, error, asked)

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> Any:
        """Return the JSON at a path, requested synchronously without retries.

        Raises:
            Exception: The SDK's, where there is no reply, or one with an error status.
        """
        client = self.synchronous()
        options = {"follow_redirects": False, "params": secret_query(query or {}), **self._options}
        return client.get(path, cast_to=object, options=options)

    def _request(self, exchange: Exchange) -> dict[str, Any]:
        options, response = {**exchange.options, **self._options, "follow_redirects": False}, clients.http_library(self.sdk()).Response
        return {"path": exchange.path, "cast_to": response, "content": exchange.body, "options": options, "stream": True}

    def _sent(self, url: str | None) -> tuple[str | None, dict[str, Any]]:
        """Return an address, and the headers of every request: its user and password are among them, since the SDKs log addresses."""
        parts, headers = urlsplit(url or ""), SecretDict(self.headers)
        if parts.username or parts.password:  # as the HTTP libraries would send them
            said = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
            headers["Authorization"] = f"Basic {base64.b64encode(said.encode()).decode()}"
            url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        return url, spelled(headers)

    def _http(self) -> Any:
        """The synchronous HTTP client."""
        return self.http_client or clients.shared_client(self.sdk(), self.proxy)

    def _ahttp(self, loop: asyncio.AbstractEventLoop) -> Any:
        """Return the HTTP client for this event loop."""
        return self.http_async_client or clients.shared_async_client(self.sdk(), self.proxy, loop)


def _repeated(request: Mapping[str, Any], error: Exception, asked: list[str]) -> dict[str, Any]:
    """Return a request at the address that a redirect of the same server names; raise the error if it means no such redirect.

    Args:
        request: The arguments of the SDK's `post`.
        error: The SDK's error.
        asked: The addresses of earlier redirects.
    """
    response = getattr(error, "response", None)
    target = None if response is None else _where_to_repeat(response, asked)
    if target is None:
        raise error
    options = {**request["options"], "params": secret_query(dict(target.params))}
    return {**request, "path": str(target.copy_with(query=None)), "options": options}
