"""Reading of conversations from a database: messages, events, lists and health."""

import asyncio
import builtins
import time
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import aclosing
from datetime import datetime
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from sqlalchemy.exc import DBAPIError

from ..errors import ConfigurationError
from ..event_types import RunEvent
from ..executor import PendingCall
from .conversation_list import ConversationInfo, ConversationList, Order
from .conversation_reading import aread_conversation, check_position, read_conversation, start_of
from .conversation_requests import check_id, waiting
from .conversation_run import APPEND, ConversationRun
from .conversation_runs import ConversationRuns, Sent
from .engine import Link, launch
from .health import Health, health_of
from .patience import Patience
from .plain import is_storable, plain_messages
from .storage import is_of_disk

_FORMAT = 1  # of what `export` returns


class ReadableConversations:
    """The reading part of `Conversations`.

    Each method raises `RunFailedError`, with the run's id, where what is stored of a run was changed and is no longer of its form.

    Args:
        runs: The runs of all conversations.
        url: Their database; None for that of the launch.
    """

    def __init__(self, runs: ConversationRuns, url: str | None) -> None:
        self._runs = runs
        self._url = url
        self._list = ConversationList(runs)

    def _launch(self) -> None:
        """Launch the engine unless it runs, also after a shutdown.

        Raises:
            ConfigurationError: This process has launched with another database than that of these conversations.
        """
        launch(self._url)

    def events(
        self,
        conversation: str,
        *,
        after: str | None = None,
        last_event_id: str | None = None,
        follow: bool = False,
        timeout: float | None = None,
    ) -> Generator[RunEvent, None, None]:
        """Yield the events of a conversation, from any process and any position. To stop reading ends nothing.

        Args:
            conversation: Its id.
            after: The `position` of the last event that the reader has, or of what `send` returned; None for all from the beginning.
            last_event_id: The header `Last-Event-ID` of a client that comes back. It goes before `after`; one that is no position of this
                conversation is ignored, whoever sent it.
            follow: Whether to wait for runs to come once all that were sent for are told of.
            timeout: After how many seconds in which nothing comes the reader gives up; None for never.

        Returns:
            `MessagesAdded` and then the events of the run, for each run. A run that failed says so (`RunFailed`), and the next one follows.

        Raises:
            ConfigurationError: `after` is no position of this conversation.
            TimeoutError: Nothing came in time.
            EventsInterruptedError: This process has shut down.
        """
        check_id(conversation)
        self._launch()
        link, start = Link(), start_of(self._runs, conversation, after, last_event_id)
        return read_conversation(self._runs, start, follow, timeout, link)

    def aevents(
        self,
        conversation: str,
        *,
        after: str | None = None,
        last_event_id: str | None = None,
        follow: bool = False,
        timeout: float | None = None,
    ) -> AsyncGenerator[RunEvent, None]:
        """Like `events`, asynchronously. A well-formed position that the conversation does not have is refused with the first event."""
        check_id(conversation)
        check_position(after)
        return self._aevents(conversation, after, last_event_id, follow, timeout)

    async def _aevents(
        self, conversation: str, after: str | None, last_event_id: str | None, follow: bool, timeout: float | None
    ) -> AsyncGenerator[RunEvent, None]:
        await asyncio.to_thread(self._launch)
        link, start = Link(), await asyncio.to_thread(start_of, self._runs, conversation, after, last_event_id)
        async with aclosing(aread_conversation(self._runs, start, follow, timeout, link)) as events:
            async for event in events:
                yield event

    def messages(self, conversation: str) -> builtins.list[BaseMessage]:
        """Return the messages of a conversation, in order: of a current run the complete ones, then those that wait for an answer."""
        check_id(conversation)
        self._launch()
        return [message for run in self._runs.of(conversation, whole=True) for message in (*run.added(), *run.made_so_far())]

    async def amessages(self, conversation: str) -> builtins.list[BaseMessage]:
        """Like `messages`, asynchronously."""
        return await asyncio.to_thread(self.messages, conversation)

    def result(self, sent: Sent | str, timeout: float | None = None) -> AIMessage:
        """Wait for a run, and return its run message.

        Args:
            sent: What `send` or `decide` returned, or the id of the run.
            timeout: For how many seconds to wait; None for ever.

        Raises:
            ConfigurationError: There is no such run, or it was deleted; or it only appended messages.
            RunFailedError: The run has failed; `new_messages` of it are what had completed.
            TimeoutError: It has not ended in time. It goes on.
        """
        self._launch()
        patience = Patience(timeout)
        while (message := self._answer(sent)) is None:
            time.sleep(patience.pause())
        return message

    async def aresult(self, sent: Sent | str, timeout: float | None = None) -> AIMessage:
        """Like `result`, asynchronously."""
        await asyncio.to_thread(self._launch)
        patience = Patience(timeout)
        while (message := await asyncio.to_thread(self._answer, sent)) is None:
            await asyncio.sleep(patience.pause())
        return message

    def _answer(self, sent: Sent | str) -> AIMessage | None:
        """Return the run message; None while the run continues, or the disk fails."""
        try:
            run = self._run(sent)
        except DBAPIError as error:
            if is_of_disk(error):
                return None
            raise
        if not run.has_ended:
            return None
        run.raise_failed()
        return run.message

    def _run(self, sent: Sent | str) -> ConversationRun:
        """Return a run that answers a message or a decision, with input and output.

        Raises:
            ConfigurationError: There is none of this id.
        """
        run_id = sent.run_id if isinstance(sent, Sent) else sent
        run = self._runs.one(run_id) if is_storable(run_id) else None
        if run is None or run.request["kind"] == APPEND:
            raise ConfigurationError(f"there is no run {run_id!r} that answers something")
        return run

    def pending(self, conversation: str) -> builtins.list[PendingCall]:
        """Return the calls that wait for a decision. Calls before a newer message do not: the model is told that they did not run."""
        check_id(conversation)
        self._launch()
        return waiting(self._runs.of(conversation, whole=True))

    async def apending(self, conversation: str) -> builtins.list[PendingCall]:
        """Like `pending`, asynchronously."""
        return await asyncio.to_thread(self.pending, conversation)

    def export(self, conversation: str) -> dict[str, Any]:
        """Return a conversation as plain JSON: its messages in LangChain's form (for `messages_from_dict`), and its runs.

        Returns:
            `version` (of this form), `conversation`, `messages`, and `runs`: of each its `id`, `kind` (`send`, `decide` or `append`),
            `begun` (ISO 8601), `status` (`waits`, `goes on`, `ended` or `failed`) and `error`.
        """
        messages = plain_messages(self.messages(conversation))
        runs = [run.exported() for run in self._runs.of(conversation, whole=True)]
        return {"version": _FORMAT, "conversation": conversation, "messages": messages, "runs": runs}

    async def aexport(self, conversation: str) -> dict[str, Any]:
        """Like `export`, asynchronously."""
        return await asyncio.to_thread(self.export, conversation)

    # ------------------------------------------------------------------------------------------ which ones there are

    def list(
        self,
        limit: int | None = None,
        offset: int = 0,
        *,
        owner: str | None = None,
        labels: Mapping[str, str] | None = None,
        updated_after: datetime | None = None,
        order: Order = "begun",
    ) -> builtins.list[ConversationInfo]:
        """Return the conversations, newest first.

        Args:
            limit: How many; None for all.
            offset: How many of the newest are left out.
            owner: Only those of this owner, which is compared character for character.
            labels: Only those that have all of these labels.
            updated_after: Only those with a last run that was sent, or has ended, at this time or later. It has a time zone, and counts to
                the second: what changed in the same second may be among them, and nothing is missed.
            order: By what they are new: `begun`, when the conversation began, or `activity`, when its last run was sent or has ended.

        Raises:
            ConfigurationError: An argument is none of these.
        """
        self._launch()
        return self._list.find(limit, offset, owner, labels, updated_after, order)

    async def alist(
        self,
        limit: int | None = None,
        offset: int = 0,
        *,
        owner: str | None = None,
        labels: Mapping[str, str] | None = None,
        updated_after: datetime | None = None,
        order: Order = "begun",
    ) -> builtins.list[ConversationInfo]:
        """Like `list`, asynchronously."""
        return await asyncio.to_thread(self.list, limit, offset, owner=owner, labels=labels, updated_after=updated_after, order=order)

    def info(self, conversation: str) -> ConversationInfo | None:
        """Return the description of one conversation, as in `list`; None if it does not exist. Compare its `owner` with the client."""
        check_id(conversation)
        self._launch()
        return self._list.info(conversation)

    async def ainfo(self, conversation: str) -> ConversationInfo | None:
        """Like `info`, asynchronously."""
        return await asyncio.to_thread(self.info, conversation)

    def health(self, stalled_after: float = 300.0) -> Health:
        """Return the health of the runs of all conversations, in all processes: waiting, running and stalled ones.

        Args:
            stalled_after: After how many seconds in which it recorded no request and no call a run counts as one without progress.

        Raises:
            ConfigurationError: `stalled_after` is no number of seconds.
        """
        if isinstance(stalled_after, bool) or not (isinstance(stalled_after, int | float) and stalled_after >= 0):
            raise ConfigurationError(f"stalled_after must be a number of seconds, not {stalled_after!r}")
        self._launch()
        return health_of(self._runs, stalled_after)

    async def ahealth(self, stalled_after: float = 300.0) -> Health:
        """Like `health`, asynchronously."""
        return await asyncio.to_thread(self.health, stalled_after)
