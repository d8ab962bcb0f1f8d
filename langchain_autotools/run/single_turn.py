"""The single turn of a model without tools: its limits and its events.

There is no run, and so no stop reason: as of any reply that broke off, the message's finish reason says how it ended.
"""

import logging
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator, Sequence
from contextlib import aclosing, closing, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config

from ..cancelling import Cancel, checked_cancel
from ..chunks import ChunkSum
from ..deadline import Deadline, abounded, bounded
from ..errors import LimitReachedError
from ..event_bus import Place
from ..executor import pending_calls
from ..messages.calls import awaited_calls, calls_of
from ..messages.endings import stop_reason
from ..messages.live import attach_messages, attached_messages
from ..messages.metadata import KEY
from ..turn.accumulator import caller_metadata
from .keywords import drop_settings
from .run import stored_message

_logger = logging.getLogger("langchain_autotools")

_Part = TypeVar("_Part", bound=AIMessage)


@dataclass(frozen=True)
class ReplyEnd:
    """What may end a reply before it is whole.

    Attributes:
        deadline: Comes when the time is over, or the caller cancels.
        raises: Whether the end of the time is an error.
        seconds: The time that the reply may take; None where only the caller ends it.
    """

    deadline: Deadline
    raises: bool
    seconds: float | None

    @classmethod
    def take(cls, model: Any, keywords: dict[str, Any]) -> "ReplyEnd | None":
        """The limit of one reply, as the model's fields and the keywords of the call set it; None where nothing does. Takes all run
        settings out of the keywords.

        Raises:
            ConfigurationError: One of them cannot work.
        """
        cancel, limits = keywords.pop("cancel", None), drop_settings(model, keywords)
        if isinstance(cancel, cls):  # a call that another one hands on
            return cancel
        seconds = model.deadline if limits is None else limits.deadline
        if cancel is None and seconds is None:
            return None
        on_limit = model.on_limit if limits is None else limits.on_limit
        return cls(Deadline(seconds) if cancel is None else Cancel(checked_cancel(cancel), seconds), on_limit == "raise", seconds)

    def end(self, last: AIMessage | None) -> AIMessageChunk:
        """The end of a cut reply after this part."""
        if self.deadline.reason == "deadline":
            _logger.warning("a reply has ended at its limit deadline=%s", self.seconds)
        known = None if last is None else last.id
        metadata = {"finish_reason": self.deadline.reason}
        return AIMessageChunk(content="", id=known or str(uuid.uuid4()), response_metadata=metadata, chunk_position="last")

    def check(self, last: AIMessage | None) -> None:
        """Raise if the deadline has cut the reply, and that is an error.

        Args:
            last: The last part of the reply.

        Raises:
            LimitReachedError: It has.
        """
        if self.raises and last is not None and stop_reason(last) == "deadline":
            raise LimitReachedError("the reply reached its limit: deadline", "deadline")


def limited(parts: Iterator[_Part], limit: ReplyEnd) -> Iterator[_Part | AIMessageChunk]:
    """The parts of a turn within the limit; where that is reached, then a last one that says so."""
    part: _Part | AIMessageChunk | None = None
    for part in bounded(parts, limit.deadline):
        yield part
    if limit.deadline.cut is not None:
        part = limit.end(part)
        yield part
    limit.check(part)


async def alimited(parts: AsyncGenerator[_Part, None], limit: ReplyEnd) -> AsyncGenerator[_Part | AIMessageChunk, None]:
    """Like `limited`, asynchronously."""
    part: _Part | AIMessageChunk | None = None
    async with aclosing(abounded(parts, limit.deadline)) as given:
        async for part in given:
            yield part
    if limit.deadline.cut is not None:
        part = limit.end(part)
        yield part
    limit.check(part)


def invoked(invoke: Callable[[], AIMessage], limit: ReplyEnd) -> AIMessage:
    """The reply; an empty one if the limit is reached before it is there."""
    (reply,) = limited((one() for one in (invoke,)), limit)
    return reply


async def ainvoked(invoke: Callable[[], Awaitable[AIMessage]], limit: ReplyEnd) -> AIMessage:
    """Like `invoked`, asynchronously."""

    async def whole() -> AsyncGenerator[AIMessage, None]:
        yield await invoke()

    (reply,) = [part async for part in alimited(whole(), limit)]
    return reply


def reply_message(model: Any, message: AIMessage) -> AIMessage:
    """A reply as it leaves; of a whole chat model class as it came, but for calls that were decided otherwise.

    Args:
        model: The model.
        message: What core made of the reply.
    """
    if model._is_whole and not isinstance(message, AIMessageChunk) and KEY not in message.response_metadata:
        return message
    return stored_message(message, model.output_version, brief=True)


def with_whole(model: Any, chunk: AIMessage, parts: ChunkSum) -> AIMessageChunk:
    """A chunk of the reply as it leaves; the last one also knows the whole message.

    Args:
        model: The model.
        chunk: The chunk.
        parts: Those before it; takes this one.
    """
    if not isinstance(chunk, AIMessageChunk):  # core hands on what invoke returned where streaming is switched off
        attach_messages(chunk, [chunk])
        return cast("AIMessageChunk", chunk)
    parts.add(chunk)
    if chunk.__dict__["chunk_position"] == "last":
        whole = stored_message(parts.message(), model.output_version, brief=True)
        chunk.__dict__["response_metadata"] = caller_metadata(chunk.response_metadata)
        attach_messages(chunk, [whole])
    return chunk


# ---------------------------------------------------------------------------------------------- who listens


class _Telling:
    """Tells of a reply as of a run of one turn."""

    def __init__(self, model: BaseChatModel, config: RunnableConfig | None, place: Place) -> None:
        from .event_emitter import RunEvents  # here, because it costs every other program its import

        known = ensure_config(config)
        self._output_version = model.output_version
        self._parts = ChunkSum()
        self.events = RunEvents(place)
        self.events.begin(str(known.get("run_id") or uuid.uuid4()), known.get("run_name") or model.get_name())

    def part(self, part: AIMessage) -> None:
        """Tell of a part of the reply, and at the last one of the whole."""
        self.events.part(part)
        if not isinstance(part, AIMessageChunk):
            self._end(part)
            return
        self._parts.add(part)
        if part.chunk_position == "last":
            self._end(self._parts.message())

    def _end(self, whole: AIMessage) -> None:
        message = stored_message(whole, self._output_version, brief=True)
        self.events.turn_done(message)
        if pending_calls(message):
            functions = [call for call in calls_of(message) if call.args is not None]
            self.events.pending(message, [*functions, *awaited_calls(message)])
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
