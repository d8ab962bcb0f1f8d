"""HTTP clients for wires that no SDK hands on as bytes: of the HTTP library that is installed, in the pools that all models share.

Both `httpx2` and `httpx` will do; what the vendors' SDKs brought along is used, the newer one where there are both.
"""

import asyncio
import importlib
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

from ._clients import shared_async_client, shared_client

__all__ = ["ClientArguments", "async_client", "client", "library", "timeout_of"]

_CONNECT = 5.0
_CONNECTIONS, _IDLE = 1000, 100


@cache
def library() -> Any:
    """The HTTP library's module."""
    return importlib.import_module("httpx2" if find_spec("httpx2") else "httpx")


class ClientArguments:
    """Arguments of an HTTP client, as a key: equal arguments share a client."""

    def __init__(self, arguments: Mapping[str, Any] | None = None) -> None:
        self.values = dict(arguments or {})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClientArguments) and self.values == other.values

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.values)))


def client(arguments: ClientArguments) -> Any:
    """The HTTP client for threads that all models with these arguments share."""
    return shared_client(_made_with(arguments), arguments.values.get("proxy"))


def async_client(arguments: ClientArguments, loop: asyncio.AbstractEventLoop) -> Any:
    """The HTTP client that all models with these arguments share in an event loop."""
    return shared_async_client(_made_with(arguments), arguments.values.get("proxy"), loop)


@cache
def _made_with(arguments: ClientArguments) -> Any:
    """The library in the shape in which `_clients` knows SDKs; the arguments stand in for the SDK's name in its keys."""
    http = library()
    defaults = {"limits": http.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_IDLE), "follow_redirects": True}

    class Client(http.Client):  # type: ignore[misc, name-defined]
        def __init__(self, **given: Any) -> None:
            super().__init__(**{**defaults, **given, **arguments.values})

    class AsyncClient(http.AsyncClient):  # type: ignore[misc, name-defined]
        def __init__(self, **given: Any) -> None:
            super().__init__(**{**defaults, **given, **arguments.values})

    return SimpleNamespace(__name__=arguments, DefaultHttpxClient=Client, DefaultAsyncHttpxClient=AsyncClient)


def timeout_of(timeout: Any, silence: float | None = None) -> Any:
    """A timeout as every HTTP library of this make takes it: (connect, read, write, pool).

    Args:
        timeout: What the user gave: seconds, (connect, read), the HTTP library's own object, or None for the default.
        silence: Seconds that shorten the time between two bytes.
    """
    from ._timeouts import read_timeout

    read = read_timeout(timeout)
    parts: tuple[float | None, ...]
    if timeout is None:
        parts = (_CONNECT, read, read, read)
    elif isinstance(timeout, int | float):
        parts = (read, read, read, read)
    elif isinstance(timeout, tuple | list):
        parts = (float(timeout[0]), read, read, read)
    else:
        parts = (timeout.connect, read, timeout.write, timeout.pool)
    shortest = min((seconds for seconds in (read, silence) if seconds is not None), default=None)
    return (parts[0], shortest, *parts[2:])
