"""Connections to MCP servers by the SDK's transports. Both major versions are read alike: messages as their data on the wire."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from ..addresses import public_url
from ..errors import ConfigurationError

_OTHER_PROTOCOL = -32022
_SECONDS_TO_CANCEL = 1.0
EXTRA = "MCP servers need the extra `mcp`: pip install 'langchain-autotools-chat[mcp]'"


@dataclass(frozen=True, repr=False)
class Address:
    """Where a server is: a program to start, or an address.

    Attributes:
        command: The program and its arguments; empty for a server with a URL.
        url: The URL of a server that runs already.
        env: Environment variables of the program, besides the few that every program gets.
        cwd: Its working directory.
        headers: HTTP headers of every request.
    """

    command: Sequence[str] = ()
    url: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | Path | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Address({self.name!r})"

    @property
    def name(self) -> str:
        """What it is called where anybody may read it: the program, or the URL without its secret parts."""
        return public_url(self.url) if self.url else Path(self.command[0]).name

    @property
    def secrets(self) -> Sequence[str]:
        """What of it only this process may know."""
        of_url = urlsplit(self.url)
        found = {"a user": "@" in of_url.netloc, "a query": of_url.query, "env": self.env, "headers": self.headers}
        return [name for name, value in found.items() if value]

    def public(self, text: str) -> str:
        """Return a text without the secret parts of the URL."""
        return text.replace(self.url, self.name) if self.url else text

    def open(self) -> Any:
        """Return a context manager that connects, with the two streams of the connection."""
        return self._http() if self.url else self._stdio()

    def _stdio(self) -> Any:
        from mcp import StdioServerParameters, stdio_client

        program, *arguments = self.command
        return stdio_client(StdioServerParameters(command=program, args=arguments, env=dict(self.env) or None, cwd=self.cwd))

    @asynccontextmanager
    async def _http(self) -> AsyncIterator[Any]:
        from mcp.client import streamable_http

        make_client: Any = vars(streamable_http)["create_mcp_http_client"]  # the kind of client differs between the versions
        async with make_client(headers=dict(self.headers)) as client:
            async with streamable_http.streamable_http_client(self.url, http_client=client) as streams:
                yield streams[:2]


class Requests:
    """What goes to a server, with the last request of each task: version 1 of the SDK tells no server that a request is cancelled.

    Args:
        stream: The SDK's stream of what goes to the server.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._last: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stream.__aexit__(*error)

    async def send(self, message: Any) -> None:
        """Send a message."""
        if {"method", "id"} <= message.message.root.model_fields_set:
            self._last[asyncio.current_task()] = message
        await self._stream.send(message)

    async def cancel(self) -> None:
        """Tell the server that nobody waits for the last request of this task."""
        asked = self._last.get(asyncio.current_task())
        if asked is not None:
            params = {"requestId": asked.message.root.id, "reason": "the call was cancelled"}
            notification = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
            with suppress(Exception):  # the server is gone, or reads nothing
                async with asyncio.timeout(_SECONDS_TO_CANCEL):
                    await self._stream.send(type(asked)(type(asked.message).model_validate(notification)))


def check_installed() -> None:
    """Raise if the SDK is missing.

    Raises:
        ConfigurationError: It is.
    """
    try:
        import mcp  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(EXTRA) from error


def wire(value: Any) -> dict[str, Any]:
    """Return an object of the SDK as the data that it is on the wire."""
    data: dict[str, Any] = value.model_dump(by_alias=True, mode="json", exclude_none=True)
    return data


async def begin(session: Any) -> bool:
    """Begin a session; whether its protocol is one in which a call can wait for answers (2026-07-28 or later)."""
    if not hasattr(session, "discover"):
        await session.initialize()
        return False
    from mcp.shared.exceptions import MCPError
    from pydantic import ValidationError

    with suppress(MCPError, RuntimeError, ValidationError):  # a server of an older protocol, or one that starts slowly
        await session.discover()
        return True
    try:
        await session.initialize()
    except MCPError as error:
        if error.error.code != _OTHER_PROTOCOL:
            raise
        await session.discover()
        return True
    return False
