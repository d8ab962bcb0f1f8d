"""The interface between a vendor's chat model and the transport: one request ready to send, and how to read its reply."""

from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from langchain_core.messages import AIMessageChunk

from ...event_bus import listening
from ...turn.partial_calls import with_events
from .clients import PerLoopCache
from .decoders import SSEDecoder
from .reader import EventDecoder, ReplyDecoder, ReplyWatch


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
        alternative_for: Given the error that refused the request: the same request in another form, or None if no other is known.
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
    alternative_for: "Callable[[Exception], Exchange | None]" = lambda error: None
    error_to_turn: Callable[[Exception], AIMessageChunk | None] = lambda error: None

    def watch_of_listeners(self) -> ReplyWatch | None:
        """Return what reads the reply for listeners; None where nobody listens."""
        return None if listening.get() is None else self.watch()

    def with_events_of(self, body: Any, chunk: AIMessageChunk) -> AIMessageChunk:
        """Return the chunk of a whole body with what listeners are told of it."""
        watch = self.watch_of_listeners()
        return chunk if watch is None else with_events(chunk, [*watch.feed(body), *watch.finish()])


class ClientSettings(Protocol):
    """The client's settings and its method of sending. Values that differ between requests are not part of it."""

    def post(self, exchange: Exchange, cache: PerLoopCache) -> Response:
        """Send a request and return the response as soon as its head has arrived.

        Args:
            exchange: The request.
            cache: Keeps the client.

        Raises:
            Exception: What the SDK or the HTTP library raises where there is no reply, or one with an error status.
        """
        ...

    async def apost(self, exchange: Exchange, cache: PerLoopCache) -> Response:
        """Like `post`, asynchronously."""
        ...
