"""The AI SDK's UI message stream, for `useChat` of the npm package `ai`."""

from collections.abc import AsyncGenerator, AsyncIterable, Generator, Iterable, Mapping
from types import MappingProxyType
from typing import Final, overload

from ..event_types import RunEvent
from .ai_sdk_chunks import UIMessageChunks
from .ai_sdk_values import Chunk
from .plain import to_json
from .streaming import Failure, encoded
from .whole_turns import WholeTurns

AI_SDK_HEADERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "content-type": "text/event-stream",
        "cache-control": "no-cache",
        "x-accel-buffering": "no",
        "x-vercel-ai-ui-message-stream": "v1",
    }
)
"""The required headers of a response with the output of `ai_sdk`."""


@overload
def ai_sdk(
    events: Iterable[RunEvent],
    *,
    message_id: str | None = None,
    heartbeat: float | None = 15.0,
    details: bool = False,
    whole_turns: bool = False,
) -> Generator[bytes, None, None]: ...


@overload
def ai_sdk(
    events: AsyncIterable[RunEvent],
    *,
    message_id: str | None = None,
    heartbeat: float | None = 15.0,
    details: bool = False,
    whole_turns: bool = False,
) -> AsyncGenerator[bytes, None]: ...


def ai_sdk(
    events: Iterable[RunEvent] | AsyncIterable[RunEvent],
    *,
    message_id: str | None = None,
    heartbeat: float | None = 15.0,
    details: bool = False,
    whole_turns: bool = False,
) -> Generator[bytes, None, None] | AsyncGenerator[bytes, None]:
    """Encode events as the AI SDK's UI message stream, version 1, for a response with `AI_SDK_HEADERS`.

    One stream is one assistant message. A run that goes on after decisions (`resume=`) goes on with the message that asked for them. Where
    the reading process shuts down (`EventsInterruptedError`) the bytes end without `finish` and `[DONE]`, so that the page can resume.

    Args:
        events: What `events` or `aevents` returned. Closing the bytes, as a server does when its client is gone, ends the run.
        message_id: The id of the assistant message; None leaves it to the page. For a resumed run it must be that of the message that
            goes on.
        heartbeat: The seconds in which nothing is sent after which a comment keeps the connection open, of asynchronous events; None for
            never.
        details: Whether the text of an exception is sent, besides its class.
        whole_turns: Whether the text, the reasoning and the calls of a turn are sent only when the turn is complete. For durable runs:
            a reply that dies with its process is asked for again, and the protocol has no way to take back what was sent of it.

    Returns:
        A generator of bytes, asynchronous for asynchronous events.

    Raises:
        ConfigurationError: `events` is no iterable, or `heartbeat` no number of seconds.
    """
    encoder = _Encoder(message_id)
    return encoded(events, WholeTurns(encoder) if whole_turns else encoder, heartbeat=heartbeat, details=details)


class _Encoder:
    heartbeat = b": heartbeat\n\n"

    def __init__(self, message_id: str | None) -> None:
        self._chunks = UIMessageChunks(message_id)

    def encode(self, event: RunEvent) -> bytes:
        return _frames(self._chunks.feed(event))

    def end(self) -> bytes:
        return _frames(self._chunks.end()) + b"data: [DONE]\n\n"

    def fail(self, failure: Failure) -> bytes:
        if failure.interrupted:
            return b""
        details = "" if failure.details is None else f" {failure.details}"
        return _frames(self._chunks.end(f"{failure.name}: {failure.text}{details}")) + b"data: [DONE]\n\n"


def _frames(chunks: Iterable[Chunk]) -> bytes:
    return b"".join(f"data: {to_json(chunk)}\n\n".encode() for chunk in chunks)
