"""Clients of HTTP libraries with their connections: created on first use, shared, given back whole, closed at the end."""

import asyncio
import atexit
import logging
import os
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Self, TypeVar, cast
from urllib.request import getproxies

from ...errors import ConfigurationError
from .secrets import concealing, hooks

_logger = logging.getLogger("langchain_autotools")


_T = TypeVar("_T")


# ---------------------------------------------------------------------------------------------- clients
# Clients and connection pools of vendors' SDKs: created on first use, cached per process and event loop, closed at the end.
#
# SDKs of one make (openai, anthropic) give their HTTP clients' classes as `DefaultHttpxClient` and `DefaultAsyncHttpxClient`.


_NO_LOOP = object()
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_PROXIES = "ALL_PROXY, HTTPS_PROXY or HTTP_PROXY"


class Shared:
    """State that copies of a model share and pickles omit."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), ())


class PerLoopCache(Shared):
    """A thread-safe cache of one object per key, process and event loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[Hashable, tuple[Callable[[], Any], Any]] = {}

    def get(self, key: Hashable, make: Callable[[], _T], loop: asyncio.AbstractEventLoop | None = None) -> _T:
        """Return the cached object for `key` in this process and loop; create it if there is none.

        Args:
            key: The object's key.
            make: Makes it.
            loop: The event loop that it is for; None for threads.
        """
        owner: Any = loop or _NO_LOOP
        place = (key, os.getpid(), id(owner))  # a forked process must not share its parent's connections
        entry = self._entries.get(place)
        if entry is None or entry[0]() is not owner:  # another loop has taken the id of one that is gone
            with self._lock:
                self._forget_ended_loops()
                entry = self._entries.get(place)
                if entry is None:
                    entry = (weakref.ref(loop) if loop else lambda: _NO_LOOP, make())
                    self._entries[place] = entry
        return cast("_T", entry[1])

    def _forget_ended_loops(self) -> None:
        for place, (owner, _) in list(self._entries.items()):
            loop = owner()
            if loop is None or (loop is not _NO_LOOP and loop.is_closed()):
                del self._entries[place]

    def close(self) -> None:
        """Close the objects that were made for threads."""
        with self._lock:
            for owner, client in self._entries.values():
                if owner() is _NO_LOOP:
                    client.close()
            self._entries.clear()


SHARED_POOLS = PerLoopCache()
"""Connection pools that all models share, also models with different keys."""
atexit.register(SHARED_POOLS.close)


def shared_ssl_context(library: Any) -> Any:
    """Return the TLS context of all pools, shared because loading its certificates takes longer than a request.

    Raises:
        ConfigurationError: The environment names certificates that cannot be read.
    """
    return usable(lambda: _ssl_context(library, *(os.environ.get(name) for name in _CERTIFICATES)))


@cache
def _ssl_context(library: Any, *certificates: str | None) -> Any:
    return library.create_ssl_context()


def connection_environment() -> Hashable:
    """Return the proxies and certificates that the environment names now. (A client reads them once, when it is made.)"""
    return (*sorted(getproxies().items()), *(os.environ.get(name) for name in _CERTIFICATES))


def usable(make: Callable[[], _T]) -> _T:
    """Return what `make` makes of an HTTP library: a client, or its certificates.

    Raises:
        ConfigurationError: The environment says what cannot work; the text names the variables.
    """
    try:
        return make()
    except ConfigurationError:
        raise
    except ImportError as error:
        raise ConfigurationError(f"the HTTP client lacks a package for the proxy that {_PROXIES} or an argument names ({error})") from error
    except OSError as error:
        names = " and ".join(_CERTIFICATES)
        raise ConfigurationError(f"the certificates cannot be read ({type(error).__name__}: {error.strerror}): see {names}") from error
    except ValueError as error:
        raise ConfigurationError(f"the HTTP client cannot be made: see {_PROXIES}, and arguments that name a proxy") from error


@cache
def http_library(sdk: Any) -> Any:
    """Return the HTTP library of an installed SDK, `httpx` or `httpx2`, from the base of its public client class."""
    return sys.modules[sdk.DefaultHttpxClient.__bases__[0].__module__.partition(".")[0]]


def shared_client(sdk: Any, proxy: str | None) -> Any:
    """Return the synchronous HTTP client that all models of an SDK share, by proxy.

    Args:
        sdk: The SDK's module.
        proxy: The proxy's URL.
    """

    def make() -> Any:
        verify, kind = shared_ssl_context(http_library(sdk)), concealing(sdk.DefaultHttpxClient)
        return usable(lambda: kind(proxy=proxy, verify=verify, event_hooks=hooks()))

    return SHARED_POOLS.get((sdk.__name__, proxy, connection_environment()), make)


def shared_async_client(sdk: Any, proxy: str | None, loop: asyncio.AbstractEventLoop) -> Any:
    """Return the HTTP client that all models of an SDK share in an event loop, by proxy.

    Args:
        sdk: The SDK's module.
        proxy: The proxy's URL.
        loop: The event loop.
    """

    def make() -> LoopPool:
        verify, kind = shared_ssl_context(http_library(sdk)), concealing(closing_whole(sdk.DefaultAsyncHttpxClient))
        return LoopPool(usable(lambda: kind(proxy=proxy, verify=verify, event_hooks=hooks(awaited=True))))

    return SHARED_POOLS.get((sdk.__name__, proxy, connection_environment()), make, loop).client


class LoopPool:
    """A connection pool of one event loop, closed when the loop ends or its owner is garbage collected.

    A suspended asynchronous generator does that: its loop closes it in `shutdown_asyncgens`, which `asyncio.run` calls at its end,
    and as soon as nobody holds it.

    Args:
        client: The HTTP client.
        owner: The object whose lifetime bounds the pool's; None: the pool is permanent.
    """

    def __init__(self, client: Any, owner: object = None) -> None:
        self.client = client
        self._guard = self._closing(self.client)
        with suppress(StopIteration):  # it comes to its `yield` without waiting for anything
            self._guard.__anext__().send(None)
        if owner is not None:  # held from outside the owner: else the collector would take the sockets along, unclosed
            weakref.finalize(owner, _let_go, self._guard).atexit = False

    @staticmethod
    async def _closing(client: Any) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            with suppress(Exception):  # no loop runs any more (nest_asyncio leaves generators to the collector): the sockets go with it
                await client.aclose()


def _let_go(guard: AsyncGenerator[None, None]) -> None:
    """Drop the last reference to the guard, so that its loop closes it."""


# ---------------------------------------------------------------------------------------------- connections that come free
# The HTTP libraries take a new connection into use, and give one back, in several steps of the event loop. A cancellation between two of
# them leaves the connection in its pool for ever, taken by a request that nobody makes or a reply that nobody has.


async def _uninterrupted(work: Coroutine[Any, Any, _T]) -> _T:
    """Return what the coroutine returns. A cancellation meanwhile is raised as soon as the coroutine has ended."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled from (None if task.cancelled() else task.exception())
    return task.result()


@cache
def closing_whole(client: Any) -> Any:
    """Return a subclass of an HTTP library's asynchronous client whose connections come free, whenever its user is cancelled.

    Args:
        client: The client's class.
    """

    class ClosingWhole(client):  # type: ignore[misc]
        async def send(self, request: Any, **options: Any) -> Any:
            progress = _Progress(request.extensions.get("trace"))
            request.extensions = {**request.extensions, "trace": progress.note}
            sending = asyncio.ensure_future(super().send(request, **options))
            try:
                await asyncio.wait({sending})
            except asyncio.CancelledError:
                await _uninterrupted(_give_up(sending, progress))
                raise
            response = sending.result()
            close = response.stream.aclose
            response.stream.aclose = lambda: _uninterrupted(close())
            return response

    return ClosingWhole


class _Progress:
    """How far a request is.

    Args:
        further: The user's own `trace` extension.

    Attributes:
        connected: Whether it has a new connection and does not use it yet.
    """

    def __init__(self, further: Callable[[str, Mapping[str, Any]], Awaitable[None]] | None) -> None:
        self.connected = False
        self._further = further

    async def note(self, event: str, info: Mapping[str, Any]) -> None:
        """Note an event of the HTTP library: the extension `trace` (https://www.encode.io/httpcore/extensions/#trace)."""
        self.connected = event.endswith(".complete") and not event.startswith("http")
        if self._further is not None:
            await self._further(event, info)


async def _give_up(sending: "asyncio.Task[Any]", progress: _Progress) -> None:
    """Cancel a request as soon as its connection can be given back; close its response if it has one already."""
    while progress.connected and not sending.done():
        await asyncio.sleep(0)
    sending.cancel()
    await asyncio.wait({sending})
    if not sending.cancelled() and sending.exception() is None:
        with suppress(Exception):  # nobody has asked for this reply any more
            await sending.result().aclose()


# ---------------------------------------------------------------------------------------------- drain
# Reads a reply to its end after its end marker, so that its connection can serve the next request.
#
# HTTP/1.1 needs a body read to its end before a connection is used again; closing it earlier costs the next turn a new connection. But a
# server may keep a finished stream open, so the wait is short, and whatever happens in it is no error.


_SECONDS = 0.2


async def adrain(pieces: AsyncIterator[bytes]) -> None:
    """Read `pieces` to their end, for at most a fifth of a second.

    A task of its own reads: whatever ends the wait, a deadline too, the reading is given up once, and has ended then.
    """
    reading = asyncio.ensure_future(_to_the_end(pieces))
    try:
        await asyncio.wait({reading}, timeout=_SECONDS)
    finally:
        reading.cancel()
        await _uninterrupted(asyncio.wait({reading}))


async def _to_the_end(pieces: AsyncIterator[bytes]) -> None:
    try:
        async for _ in pieces:
            pass
    except (Exception, asyncio.CancelledError) as error:
        _log(error)


def _log(error: BaseException) -> None:
    _logger.debug("the connection of a finished reply is not used again: %s", type(error).__name__)


def drain(response: Any) -> None:
    """Read the rest of the response, for at most a fifth of a second. The caller closes it, which frees its connection.

    A blocking read cannot be given up from within, so a watchdog ends the connection under it. Where the socket cannot be
    reached through the HTTP library's public extension, nothing is read.
    """
    stream = response.extensions.get("network_stream")
    socket = stream.get_extra_info("socket") if stream is not None else None
    if socket is None:
        return
    watched = _watchdog.watch(socket)
    try:
        # Not `iter_bytes`: at its end it closes the response, and then the socket may be another request's already.
        for _ in response.stream:
            pass
    except Exception as error:
        _log(error)
    finally:
        with watched.lock:
            watched.socket = None


@dataclass(slots=True, eq=False)
class _Watched:
    """A socket that is shut down at a set time unless it is taken away before."""

    socket: Any
    time: float
    lock: threading.Lock = field(default_factory=threading.Lock)


class _Watchdog:
    """A thread that shuts sockets down a fifth of a second after they are registered. Starts with the first socket.

    A thread of its own for each reply would cost more than the connection that is saved.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._waiting: deque[_Watched] = deque()
        self._thread: threading.Thread | None = None

    def watch(self, socket: Any) -> _Watched:
        """Register a socket to be shut down in a fifth of a second."""
        watched = _Watched(socket, time.monotonic() + _SECONDS)
        with self._condition:
            self._waiting.append(watched)
            if len(self._waiting) == 1:
                self._condition.notify()
            if self._thread is None or not self._thread.is_alive():  # of a forked process the thread is gone
                self._thread = threading.Thread(target=self._run, name="langchain_autotools:drain", daemon=True)
                self._thread.start()
        return watched

    def _run(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._waiting)
                first = self._waiting[0]
            time.sleep(max(0.0, first.time - time.monotonic()))
            with self._condition:
                self._waiting.popleft()
            with first.lock, suppress(OSError):
                if first.socket is not None:
                    first.socket.shutdown(2)  # both directions: the blocked read returns


_watchdog = _Watchdog()
