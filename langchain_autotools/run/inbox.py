"""What a user says while a run goes on: the reading of `inbox=`."""

import asyncio
import queue
from collections.abc import Sequence
from inspect import iscoroutinefunction
from typing import Any, Final, cast

from langchain_core.messages import BaseMessage, HumanMessage

from ..errors import ConfigurationError
from ..history import repair

_MOST: Final = 1000
"""Maximum number of messages of one reading: a queue that is never empty does not hold a run up."""
_SHUT_DOWN = [getattr(queue, "ShutDown", queue.Empty), getattr(asyncio, "QueueShutDown", asyncio.QueueEmpty)]  # of Python 3.13
_EMPTY = (queue.Empty, asyncio.QueueEmpty, *_SHUT_DOWN)
_WANTED = "inbox must be a queue.Queue, an asyncio.Queue, or another object with get_nowait and empty"


class Inbox:
    """The queue from which a run takes the user's messages. Never shared: each run has its own.

    Args:
        given: The queue, as the caller gave it.
        after_reply: Whether it is read after the last reply, too, where a message makes one more turn.

    Raises:
        ConfigurationError: It is no queue, or one of asyncio's outside of an event loop.
    """

    def __init__(self, given: Any, *, after_reply: bool) -> None:
        if isinstance(given, type) or not all(_is_plain_method(getattr(given, name, None)) for name in ("get_nowait", "empty")):
            raise ConfigurationError(f"{_WANTED}, not {type(given).__name__}")
        if isinstance(given, asyncio.Queue):
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                words = "an asyncio.Queue as inbox goes with ainvoke and astream: give invoke and stream a queue.Queue"
                raise ConfigurationError(words) from None
        self.after_reply = after_reply
        self._queue = given
        self._error: Exception | None = None
        self._is_closed = False

    def take(self, history: Sequence[BaseMessage]) -> list[HumanMessage]:
        """Take the messages out of the queue, in order, and return them; up to an error, which `check` raises.

        Args:
            history: The conversation that they join.
        """
        taken: list[HumanMessage] = []
        known = {message.id for message in history}
        try:
            while not self._is_closed and len(taken) < _MOST and not self._queue.empty():
                message = user_message("a message of the inbox", self._queue.get_nowait())
                if message.id and message.id in known:
                    raise ConfigurationError(f"the conversation has a message with the id {message.id!r} of the inbox already")
                known.add(message.id)
                taken.append(message)
        except _EMPTY:  # another reader of the queue was faster
            pass
        except Exception as error:  # what was taken before joins the run first
            self._error = error
        return taken

    def check(self) -> None:
        """Raise what ended the last reading before its end.

        Raises:
            ConfigurationError: Something that was taken is no message.
            Exception: The queue has raised it.
        """
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Take nothing more: the run has failed."""
        self._is_closed = True


def _is_plain_method(method: Any) -> bool:
    return callable(method) and not iscoroutinefunction(method)


def user_message(what: str, given: Any) -> HumanMessage:
    """Return a text or message that the user gave as a message, as `repair` leaves it.

    Args:
        what: What it is, for the error.
        given: The text or message.

    Raises:
        ConfigurationError: It is neither, or is empty.
    """
    message = HumanMessage(given) if isinstance(given, str) else given
    if type(message) is not HumanMessage:
        raise ConfigurationError(f"{what} must be a text or a HumanMessage, not {type(given).__name__}")
    if not message.content:
        raise ConfigurationError(f"{what} is empty: leave it out where the user has said nothing")
    return cast("HumanMessage", repair([message])[-1])
