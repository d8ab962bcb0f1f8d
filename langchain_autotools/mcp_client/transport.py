"""Connections to MCP servers by the SDK's transports. Both major versions are read alike: messages as their data on the wire."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import ConfigurationError

_OTHER_PROTOCOL = -32022
EXTRA = "MCP servers need the extra `mcp`: pip install 'langchain-autotools-chat[mcp]'"


@dataclass(frozen=True)
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
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | Path | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

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
