"""The events of conversations, run after run."""

import asyncio
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, closing, suppress
from dataclasses import replace

from ..errors import ConfigurationError
from ..event_types import MessagesAdded, RunEvent
from .conversation_runs import APPEND, ConversationRun, ConversationRuns
from .engine import Link
from .reading import Patience, aread_run, read_run


def place_of(position: str | None) -> tuple[int, int]:
    """The number of the run, and of the event in it, that a position says.

    Raises:
        ConfigurationError: It is no position.
    """
    if position is None:
        return 1, 0
    run, _, event = position.partition("-") if isinstance(position, str) and position.isascii() else ("", "", "")
    if not (run.isdigit() and event.isdigit() and int(run)):
        raise ConfigurationError(f"after takes the position of an event of a conversation, not {position!r}")
    return int(run), int(event)


def start_of(runs: ConversationRuns, conversation: str, after: str | None, last_event_id: str | None) -> tuple[int, int]:
    """Where reading starts: behind the position that a header names, where the conversation has it, else behind `after`.

    Raises:
        ConfigurationError: `after` is no position, or one that the conversation does not have.
    """
    with suppress(ConfigurationError):
        if last_event_id:
            return _known(runs, conversation, last_event_id)
    return (1, 0) if after is None else _known(runs, conversation, after)


def _known(runs: ConversationRuns, conversation: str, position: str) -> tuple[int, int]:
    number, event = place_of(position)
    if number not in runs.numbered(conversation, [number], load_input=False):
        raise ConfigurationError(f"conversation {conversation!r} has no position {position!r}")
    return number, event


class _Place:
    """Where a reader of a conversation stands.

    Args:
        runs: The runs of all conversations.
        conversation: The conversation.
        start: The run, and how many of its events the reader has.
        link: Asks the database.

    Attributes:
        is_gone: Whether the conversation was deleted while it was read.
    """

    def __init__(self, runs: ConversationRuns, conversation: str, start: tuple[int, int], link: Link) -> None:
        self._runs = runs
        self._conversation = conversation
        self._number, self._had = start
        self._link = link
        self._read = 0
        self.is_gone = False

    def run(self) -> ConversationRun | None:
        """The run to read; None where there is none yet, or (`is_gone`) the conversation was deleted."""
        found = self._link.ask(self._runs.numbered, self._conversation, [self._number - 1, self._number])
        self.is_gone = self._number > 1 and self._number - 1 not in found
        return None if self.is_gone else found.get(self._number)

    def placed(self, event: RunEvent) -> RunEvent | None:
        """The next event, with its position; None where the reader has it."""
        self._read += 1
        return replace(event, position=f"{self._number}-{self._read}") if self._read > self._had else None

    def go_on(self) -> None:
        """The run is read."""
        self._number, self._had, self._read = self._number + 1, 0, 0


def read_conversation(
    runs: ConversationRuns, conversation: str, start: tuple[int, int], follow: bool, timeout: float | None, link: Link
) -> Generator[RunEvent, None, None]:
    """The events of a conversation: see `Conversations.events`."""
    place, patience = _Place(runs, conversation, start, link), Patience(timeout)
    while (run := place.run()) is not None or (follow and not place.is_gone):
        if run is None:
            time.sleep(patience.pause())
            continue
        with closing(_told(run, timeout, link)) as told:
            for event in told:
                if (placed := place.placed(event)) is not None:
                    yield placed
        place.go_on()
        patience.renew()


async def aread_conversation(
    runs: ConversationRuns, conversation: str, start: tuple[int, int], follow: bool, timeout: float | None, link: Link
) -> AsyncGenerator[RunEvent, None]:
    """Like `read_conversation`, asynchronously."""
    place, patience = _Place(runs, conversation, start, link), Patience(timeout)
    while (run := await asyncio.to_thread(place.run)) is not None or (follow and not place.is_gone):
        if run is None:
            await asyncio.sleep(patience.pause())
            continue
        async with aclosing(_atold(run, timeout, link)) as told:
            async for event in told:
                if (placed := place.placed(event)) is not None:
                    yield placed
        place.go_on()
        patience.renew()


def _told(run: ConversationRun, timeout: float | None, link: Link) -> Generator[RunEvent, None, None]:
    yield from _added(run)
    if run.request["kind"] != APPEND:
        yield from read_run(run.id, timeout, link)


async def _atold(run: ConversationRun, timeout: float | None, link: Link) -> AsyncGenerator[RunEvent, None]:
    for event in _added(run):
        yield event
    if run.request["kind"] != APPEND:
        async with aclosing(aread_run(run.id, timeout, link)) as told:
            async for event in told:
                yield event


def _added(run: ConversationRun) -> list[RunEvent]:
    messages = run.added()
    return [MessagesAdded(run_id=run.id, messages=messages)] if messages else []
