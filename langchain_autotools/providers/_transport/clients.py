"""Clients and connection pools of vendors' SDKs: created on first use, cached per process and event loop, closed at the end.

SDKs of one make (openai, anthropic) give their HTTP clients' classes as `DefaultHttpxClient` and `DefaultAsyncHttpxClient`.
"""

import asyncio
import atexit
import os
import sys
import threading
import weakref
from collections.abc import AsyncGenerator, Callable, Hashable
from contextlib import suppress
from functools import cache
from typing import Any, Self, TypeVar, cast

from .closing import closing_whole
from .logged import async_hooks, hooks

T = TypeVar("T")

_NO_LOOP = object()


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

    def get(self, key: Hashable, make: Callable[[], T], loop: asyncio.AbstractEventLoop | None = None) -> T:
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
        return cast("T", entry[1])

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


@cache
def shared_ssl_context(library: Any) -> Any:
    """Return the TLS context of all pools, shared because loading its certificates takes longer than a request."""
    return library.create_ssl_context()


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
        return sdk.DefaultHttpxClient(proxy=proxy, verify=shared_ssl_context(http_library(sdk)), event_hooks=hooks())

    return SHARED_POOLS.get((sdk.__name__, proxy), make)


def shared_async_client(sdk: Any, proxy: str | None, loop: asyncio.AbstractEventLoop) -> Any:
    """Return the HTTP client that all models of an SDK share in an event loop, by proxy.

    Args:
        sdk: The SDK's module.
        proxy: The proxy's URL.
        loop: The event loop.
    """

    def make() -> LoopPool:
        verify, kind = shared_ssl_context(http_library(sdk)), closing_whole(sdk.DefaultAsyncHttpxClient)
        return LoopPool(kind(proxy=proxy, verify=verify, event_hooks=async_hooks()))

    return SHARED_POOLS.get((sdk.__name__, proxy), make, loop).client


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
