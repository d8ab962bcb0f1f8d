"""Requests and replies of asynchronous clients that a cancellation cannot cut short while a connection changes hands.

The HTTP libraries take a new connection into use, and give one back, in several steps of the event loop. A cancellation between two of
them leaves the connection in its pool for ever, taken by a request that nobody makes or a reply that nobody has.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


async def uninterrupted(work: Coroutine[Any, Any, T]) -> T:
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
                await uninterrupted(_give_up(sending, progress))
                raise
            response = sending.result()
            close = response.stream.aclose
            response.stream.aclose = lambda: uninterrupted(close())
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
