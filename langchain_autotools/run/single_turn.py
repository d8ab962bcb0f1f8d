"""A turn of a model without tools of its own: that its caller can cancel, and that whoever listens is told of.

There is no run, and so no stop reason: as of any reply that broke off, the message's finish reason says how it ended.
"""

import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator, Sequence
from contextlib import aclosing, closing, contextmanager
from typing import TypeVar, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config

from ..cancelling import Cancel, CancelFlag
from ..chunks import ChunkSum
from ..deadline import abounded, bounded
from ..executor import pending_calls
from ..listening import Place
from ..messages.calls import calls_of
from ..messages.endings import stop_reason
from ..messages.live import attach_messages, attached_messages
from ..turn.accumulator import caller_metadata
from ..turn.forming import only_shows
from .run import stored_message

_Part = TypeVar("_Part", bound=AIMessage)


def cancellable(parts: Iterator[_Part], flag: CancelFlag) -> Iterator[_Part | AIMessageChunk]:
    """The parts of a turn until the caller cancels; then a last one that says so."""
    cancel, part = Cancel(flag), None
    for part in bounded(parts, cancel):
        yield part
    if cancel.cut is not None:
        yield _end(part)


async def acancellable(parts: AsyncGenerator[_Part, None], flag: CancelFlag) -> AsyncGenerator[_Part | AIMessageChunk, None]:
    """Like `cancellable`, asynchronously."""
    cancel, part = Cancel(flag), None
    async with aclosing(abounded(parts, cancel)) as given:
        async for part in given:
            yield part
    if cancel.cut is not None:
        yield _end(part)


def invoked(invoke: Callable[[], AIMessage], flag: CancelFlag) -> AIMessage:
    """The reply; an empty one if the caller cancels before it is there."""
    return next(cancellable((one() for one in (invoke,)), flag))


async def ainvoked(invoke: Callable[[], Awaitable[AIMessage]], flag: CancelFlag) -> AIMessage:
    """Like `invoked`, asynchronously."""

    async def reply() -> AsyncGenerator[AIMessage, None]:
        yield await invoke()

    async with aclosing(acancellable(reply(), flag)) as parts:
        return await anext(parts)


def _end(last: AIMessage | None) -> AIMessageChunk:
    """The end of a turn after this part."""
    known = None if last is None else last.id
    return AIMessageChunk(
        content="", id=known or str(uuid.uuid4()), response_metadata={"finish_reason": "cancelled"}, chunk_position="last"
    )


def knowing_whole(chunk: AIMessage, parts: ChunkSum, output_version: str | None) -> AIMessageChunk:
    """A chunk of the reply as it leaves; the last one also knows the whole message.

    Args:
        chunk: The chunk.
        parts: Those before it; takes this one.
        output_version: The model's.
    """
    if not isinstance(chunk, AIMessageChunk):  # core hands on what invoke returned where streaming is switched off
        attach_messages(chunk, [chunk])
        return cast("AIMessageChunk", chunk)
    if chunk.__dict__["additional_kwargs"].__class__ is dict or not only_shows(chunk):
        parts.add(chunk)
    if chunk.__dict__["chunk_position"] == "last":
        whole = stored_message(parts.message(), output_version, brief=True)
        chunk.__dict__["response_metadata"] = caller_metadata(chunk.response_metadata)
        attach_messages(chunk, [whole])
    return chunk


# ---------------------------------------------------------------------------------------------- who listens


class _Telling:
    """Tells of a reply as of a run of one turn."""

    def __init__(self, model: BaseChatModel, config: RunnableConfig | None, place: Place) -> None:
        from .telling import RunEvents  # here, because it costs every other program its import

        known = ensure_config(config)
        self._output_version = model.output_version
        self._parts = ChunkSum()
        self.events = RunEvents(place, str(known.get("run_id") or uuid.uuid4()), known.get("run_name") or model.get_name())

    def part(self, part: AIMessage) -> None:
        """Tell of a part of the reply, and at the last one of the whole."""
        self.events.part(part)
        if not isinstance(part, AIMessageChunk):
            self._end(part)
            return
        if not only_shows(part):
            self._parts.add(part)
        if part.chunk_position == "last":
            self._end(self._parts.message())

    def _end(self, whole: AIMessage) -> None:
        message = stored_message(whole, self._output_version, brief=True)
        self.events.turn_done(message)
        if pending_calls(message):
            self.events.pending(message, [call for call in calls_of(message) if call.args is not None])
        self.events.ended(stop_reason(message) or "complete", 1, message.usage_metadata, lambda: message)


@contextmanager
def _told_to_its_end(model: BaseChatModel, config: RunnableConfig | None, place: Place) -> Generator[_Telling, None, None]:
    telling = _Telling(model, config, place)
    try:
        yield telling
    except BaseException as error:
        telling.events.stopped(error)
        raise
    else:
        telling.events.leave()  # where no part was the last


def told(model: BaseChatModel, config: RunnableConfig | None, place: Place, parts: Iterator[_Part]) -> Generator[_Part, None, None]:
    """The parts of a reply, of which whoever listens is told."""
    with _told_to_its_end(model, config, place) as telling, closing(cast("Generator[_Part, None, None]", parts)):
        for part in parts:
            telling.part(part)
            yield part


async def atold(
    model: BaseChatModel, config: RunnableConfig | None, place: Place, parts: AsyncGenerator[_Part, None]
) -> AsyncGenerator[_Part, None]:
    """Like `told`, asynchronously."""
    with _told_to_its_end(model, config, place) as telling:
        async with aclosing(parts):
            async for part in parts:
                telling.part(part)
                yield part


def told_reply(model: BaseChatModel, config: RunnableConfig | None, place: Place, ask: Callable[[], AIMessage]) -> AIMessage:
    """The reply that comes whole, of which whoever listens is told."""
    with _told_to_its_end(model, config, place) as telling:
        reply = ask()
        telling.part(reply)
        return reply


async def atold_reply(
    model: BaseChatModel, config: RunnableConfig | None, place: Place, ask: Callable[[], Awaitable[AIMessage]]
) -> AIMessage:
    """Like `told_reply`, asynchronously."""
    with _told_to_its_end(model, config, place) as telling:
        reply = await ask()
        telling.part(reply)
        return reply


def whole_reply(chunks: Sequence[AIMessageChunk]) -> AIMessage:
    """The message of a reply, which its last chunk knows."""
    (message,) = attached_messages(chunks[-1]) or [chunks[-1]]
    return cast("AIMessage", message)
