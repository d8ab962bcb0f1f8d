"""Closing of asynchronous replies that a cancellation cannot cut short.

The HTTP libraries note that a reply is closed before they give its connection back. A deadline or a cancellation in between, which takes
a busy event loop, would leave the connection in its pool for ever, taken by a reply that nobody has.
"""

import asyncio
from typing import Any


async def _closing_whole(response: Any) -> None:
    """Let the response give its connection back even where the task that closes it is cancelled."""
    close = response.stream.aclose

    async def aclose() -> None:
        await asyncio.shield(asyncio.ensure_future(close()))

    response.stream.aclose = aclose


EVENT_HOOKS: dict[str, list[Any]] = {"response": [_closing_whole]}
"""Hooks of the package's own asynchronous clients: they receive each response before its body, whoever reads it."""
