"""Conversations that are kept in a database: runs follow one another, in whichever worker, and each knows what was said before."""

import asyncio
import builtins
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Collection, Generator, Sequence
from contextlib import aclosing
from typing import Any

from dbos import DBOS
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig

from ..errors import ConfigurationError
from ..event_types import RunEvent
from ..executor import Decision, PendingCall
from ..messages.carrier import new_messages
from ..mixin import ToolsAndMessagesMixin
from .conversation_reading import aread_conversation, read_conversation, start_of
from .conversation_requests import check_id, check_name, is_storable, key_of, named, request_of, request_of_decisions, waiting
from .conversation_runs import APPEND, SEND, ConversationInfo, ConversationRun, ConversationRuns, Sent
from .engine import Link, engine, launch, register
from .errors import RunFailedError
from .message_history import ConversationHistory
from .plain import message_out, plain_messages
from .reading import Patience
from .runs import check, execute

_FORMAT = 1  # of what `export` returns


class Conversations:
    """Conversations with a model, kept in a database, which any number of processes share.

    A message is answered by a run that outlives the process, as `durable` makes it. In each conversation one run follows another, in the
    order in which their messages were sent, whichever worker executes them. A process that has made `Conversations` and called `launch` (or
    any method) is a worker, and takes runs of all of them.

    Every method but `history` has an asynchronous twin with an `a` before its name.

    Args:
        model: The model. It is no part of what is stored: every worker makes its own, with the same tools.
        url: The database, as of `launch`; None for that of `launch`.
        name: Under which the conversations stand in the database. Models that share a database have different ones.
        rerun: The names of tools whose calls may run again where a crash left it unknown what they did.
        max_concurrency: How many runs a worker executes at a time; what the worker that launched last has said is true of all. 0: this
            process executes none, and only sends and reads.

    Raises:
        ConfigurationError: As of `durable`; or `max_concurrency` is no such number; or another database is in use in this process.
    """

    def __init__(
        self,
        model: ToolsAndMessagesMixin,
        url: str | None = None,
        *,
        name: str = "default",
        rerun: Collection[str] = (),
        max_concurrency: int = 32,
    ) -> None:
        check(model, rerun)
        if isinstance(max_concurrency, bool) or not isinstance(max_concurrency, int) or max_concurrency < 0:
            raise ConfigurationError(f"max_concurrency must be a number of runs, or 0 for none, not {max_concurrency!r}")
        check_name("the name of conversations", name)
        taken = engine.url or engine.wanted
        if url is not None and taken not in (None, url):
            raise ConfigurationError("this process uses another database: DBOS has one in a process")
        self.model = model
        self.name = name
        self._rerun = frozenset(rerun)
        self._runs = ConversationRuns(name)
        for workflow in (self._runs.first_workflow, self._runs.workflow):
            register(workflow, self._execute)
        engine.queues[self._runs.queue] = max_concurrency
        engine.wanted = url or engine.wanted

    def __repr__(self) -> str:
        return f"Conversations({self.model!r}, name={self.name!r})"

    def __getitem__(self, conversation: str) -> ConversationHistory:
        """As `history`: `Agent(model, conversation=chats["alice"])`."""
        return self.history(conversation)

    # ------------------------------------------------------------------------------------------ what is said

    def send(self, conversation: str, message: str | BaseMessage, config: RunnableConfig | None = None, **kwargs: Any) -> Sent:
        """Send a message, which a run will answer once all before it are answered. Nobody needs to wait for it.

        Args:
            conversation: Its id; the first message begins it.
            message: A text or a message. One with the `id` of a message that was sent before is not sent again.
            config: Its tags, metadata and `configurable` travel with the run.
            **kwargs: What `invoke` of the model takes, as plain JSON, such as `deadline`.

        Returns:
            What `result` and `events` take.

        Raises:
            ConfigurationError: The message is none that somebody says to a model, or something cannot travel.
        """
        one = HumanMessage(message) if isinstance(message, str) else message
        if not isinstance(one, BaseMessage) or isinstance(one, AIMessage | ToolMessage):
            raise ConfigurationError(f"send takes a text or what a user says, not {type(one).__name__}: append takes any messages")
        (one,) = named([one])
        request = request_of(SEND, [one], config, kwargs)
        return self._add(conversation, f"message {one.id}", lambda _: (request, {}))

    def append(self, conversation: str, messages: Sequence[BaseMessage]) -> Sent:
        """Add messages to the history, in their place among what is sent; no request answers them. Those with the same ids are added once.

        Raises:
            ConfigurationError: They are no messages, or none.
        """
        if isinstance(messages, str | BaseMessage) or not messages or not all(isinstance(one, BaseMessage) for one in messages):
            raise ConfigurationError("append takes a list of messages")
        kept = named(messages)
        request = request_of(APPEND, kept)
        return self._add(conversation, key_of(kept), lambda _: (request, {}))

    def decide(self, conversation: str, decisions: Sequence[Decision], config: RunnableConfig | None = None) -> Sent:
        """Decide about calls that wait, as `pending` shows them. A run goes on with them; calls that are left out wait on.

        Each call is decided once: the same decision again, from wherever it comes, does nothing. The run goes on under the keywords of
        the one that left the calls, and its config unless one is given: what it was not allowed to do, it is not now either.

        Returns:
            The run that goes on; of decisions that were made before, the one that did.

        Raises:
            ConfigurationError: A call does not wait, is another one than was shown, or was decided otherwise.
        """
        given = [one if isinstance(one, Decision) else Decision.from_dict(one) for one in decisions]
        if not given:
            raise ConfigurationError("decide takes decisions, as the methods of a pending call make them")
        return self._add(conversation, f"decisions {uuid.uuid4()}", lambda runs: request_of_decisions(runs, given, config))

    def _add(self, conversation: str, key: str, made: Callable[[builtins.list[ConversationRun]], Any]) -> Sent:
        """Add a run behind all others; `made` says of what, given them, or names the one that is there."""
        check_id(conversation)
        launch()
        while True:
            runs = self._runs.of(conversation, whole=key.startswith("decisions"))
            there = next((run for run in runs if run.key == key), None) or made(runs)
            if isinstance(there, ConversationRun):
                return self._sent(conversation, there.number)
            request, attributes = there
            number = runs[-1].number + 1 if runs else 1
            if self._runs.add(conversation, number, {**request, "conversation": conversation}, key, **attributes):
                return self._sent(conversation, number)

    def _sent(self, conversation: str, number: int) -> Sent:
        return Sent(conversation, self._runs.id_of(conversation, number), f"{number}-0")

    # ------------------------------------------------------------------------------------------ what was said

    def events(
        self,
        conversation: str,
        *,
        after: str | None = None,
        last_event_id: str | None = None,
        follow: bool = False,
        timeout: float | None = None,
    ) -> Generator[RunEvent, None, None]:
        """The events of a conversation, from any process and any position. To stop reading ends nothing.

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
        launch()
        link, start = Link(), start_of(self._runs, conversation, after, last_event_id)
        return read_conversation(self._runs, conversation, start, follow, timeout, link)

    async def aevents(
        self,
        conversation: str,
        *,
        after: str | None = None,
        last_event_id: str | None = None,
        follow: bool = False,
        timeout: float | None = None,
    ) -> AsyncGenerator[RunEvent, None]:
        """Like `events`, asynchronously."""
        check_id(conversation)
        await asyncio.to_thread(launch)
        link, start = Link(), await asyncio.to_thread(start_of, self._runs, conversation, after, last_event_id)
        async with aclosing(aread_conversation(self._runs, conversation, start, follow, timeout, link)) as told:
            async for event in told:
                yield event

    def messages(self, conversation: str) -> builtins.list[BaseMessage]:
        """The messages of a conversation, in order: of a run that goes on those that are complete, then what waits to be answered."""
        check_id(conversation)
        launch()
        return [message for run in self._runs.of(conversation, whole=True) for message in (*run.added(), *run.made_so_far())]

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
        launch()
        patience = Patience(timeout)
        while (message := self._answer(sent)) is None:
            time.sleep(patience.pause())
        return message

    async def aresult(self, sent: Sent | str, timeout: float | None = None) -> AIMessage:
        """Like `result`, asynchronously."""
        await asyncio.to_thread(launch)
        patience = Patience(timeout)
        while (message := await asyncio.to_thread(self._answer, sent)) is None:
            await asyncio.sleep(patience.pause())
        return message

    def _answer(self, sent: Sent | str) -> AIMessage | None:
        """The run message; None where the run goes on."""
        run_id = sent.run_id if isinstance(sent, Sent) else sent
        run = self._runs.one(run_id) if is_storable(run_id) else None
        if run is None or run.request["kind"] == APPEND:
            raise ConfigurationError(f"there is no run {run_id!r} that answers something")
        if not run.has_ended:
            return None
        run.raise_failed()
        return message_out(run.outcome)

    def pending(self, conversation: str) -> builtins.list[PendingCall]:
        """The calls that wait for a decision. None does where a message was sent after them: the model is told that they did not run."""
        check_id(conversation)
        launch()
        return waiting(self._runs.of(conversation, whole=True))

    def history(self, conversation: str) -> ConversationHistory:
        """A conversation as LangChain's `BaseChatMessageHistory`: `messages`, `add_messages` (which is `append`) and `clear` (`delete`)."""
        check_id(conversation)
        return ConversationHistory(self, conversation)

    # ------------------------------------------------------------------------------------------ what becomes of it

    def cancel(self, conversation: str) -> None:
        """End the run that goes on, and those that wait: each returns what it has, with the stop reason `cancelled`."""
        check_id(conversation)
        launch()
        for run in self._runs.of(conversation):
            if not run.has_ended:
                self._runs.cancel(run)

    def delete(self, conversation: str, timeout: float = 10.0) -> None:
        """Delete a conversation, with all that stands in the database of it. Runs that go on are cancelled.

        Args:
            conversation: Its id. One that is not there is deleted already.
            timeout: For how many seconds to wait for a run that goes on; after that it finds its rows gone, and ends.
        """
        self.cancel(conversation)
        patience = Patience(timeout)
        while runs := self._runs.of(conversation):
            self._runs.end([run for run in runs if run.waits])
            try:
                if any(run.goes_on for run in runs):
                    time.sleep(patience.pause())
                    continue
            except TimeoutError:
                self._runs.end([run for run in runs if run.goes_on])
            self._runs.delete(runs)

    def fork(self, conversation: str, message_id: str, to: str | None = None) -> str:
        """Begin a conversation with the history of another one, up to one of its messages and with it. They share nothing after that.

        Args:
            conversation: The other one.
            message_id: The id of the message.
            to: The id of the new conversation; by default one is made.

        Returns:
            The id of the new conversation.

        Raises:
            ConfigurationError: There is no such message, or there is a conversation with the new id.
        """
        messages = self.messages(conversation)
        last = next((number for number, message in enumerate(messages) if message.id == message_id), None)
        if last is None:
            raise ConfigurationError(f"conversation {conversation!r} has no message {message_id!r}")
        new = to or uuid.uuid4().hex
        request = request_of(APPEND, messages[: last + 1])

        def begun(runs: builtins.list[ConversationRun]) -> Any:
            if runs:
                raise ConfigurationError(f"there is a conversation {new!r}")
            return request, {}

        self._add(new, f"fork {uuid.uuid4()}", begun)
        return new

    def export(self, conversation: str) -> dict[str, Any]:
        """A conversation as plain JSON: its messages in LangChain's form (`messages_from_dict` reads them), and its runs.

        Returns:
            `version` (of this form), `conversation`, `messages`, and `runs`: of each its `id`, `kind` (`send`, `decide` or `append`),
            `begun` (ISO 8601), `status` (`waits`, `goes on`, `ended` or `failed`) and `error`.
        """
        messages = plain_messages(self.messages(conversation))
        runs = [run.exported() for run in self._runs.of(conversation, whole=True)]
        return {"version": _FORMAT, "conversation": conversation, "messages": messages, "runs": runs}

    def list(self, limit: int | None = None, offset: int = 0) -> builtins.list[ConversationInfo]:
        """The conversations that there are, newest first.

        Args:
            limit: How many; None for all.
            offset: How many of the newest are left out.
        """
        launch()
        return [ConversationInfo(run.conversation, run.begun) for run in self._runs.first(limit, offset)]

    # ------------------------------------------------------------------------------------------ asynchronous twins

    async def asend(self, conversation: str, message: str | BaseMessage, config: RunnableConfig | None = None, **kwargs: Any) -> Sent:
        """Like `send`, asynchronously."""
        return await asyncio.to_thread(self.send, conversation, message, config, **kwargs)

    async def aappend(self, conversation: str, messages: Sequence[BaseMessage]) -> Sent:
        """Like `append`, asynchronously."""
        return await asyncio.to_thread(self.append, conversation, messages)

    async def adecide(self, conversation: str, decisions: Sequence[Decision], config: RunnableConfig | None = None) -> Sent:
        """Like `decide`, asynchronously."""
        return await asyncio.to_thread(self.decide, conversation, decisions, config)

    async def amessages(self, conversation: str) -> builtins.list[BaseMessage]:
        """Like `messages`, asynchronously."""
        return await asyncio.to_thread(self.messages, conversation)

    async def apending(self, conversation: str) -> builtins.list[PendingCall]:
        """Like `pending`, asynchronously."""
        return await asyncio.to_thread(self.pending, conversation)

    async def acancel(self, conversation: str) -> None:
        """Like `cancel`, asynchronously."""
        await asyncio.to_thread(self.cancel, conversation)

    async def adelete(self, conversation: str, timeout: float = 10.0) -> None:
        """Like `delete`, asynchronously."""
        await asyncio.to_thread(self.delete, conversation, timeout)

    async def afork(self, conversation: str, message_id: str, to: str | None = None) -> str:
        """Like `fork`, asynchronously."""
        return await asyncio.to_thread(self.fork, conversation, message_id, to)

    async def aexport(self, conversation: str) -> dict[str, Any]:
        """Like `export`, asynchronously."""
        return await asyncio.to_thread(self.export, conversation)

    async def alist(self, limit: int | None = None, offset: int = 0) -> builtins.list[ConversationInfo]:
        """Like `list`, asynchronously."""
        return await asyncio.to_thread(self.list, limit, offset)

    # ------------------------------------------------------------------------------------------ the workflow

    def _execute(self, run_id: str, request: dict[str, Any]) -> dict[str, Any]:
        """Make a run, as far as it is not recorded. One that fails comes to what it had and why: the next one goes on from there."""
        if request["kind"] == APPEND:
            return {"messages": []}
        history = plain_messages(self._runs.before(request["conversation"], run_id))
        started = DBOS.run_step({"name": "begin"}, engine.clock)
        whole = {**request, "messages": [*history, *request["messages"]], "started": started}
        try:
            return execute(self.model, self._rerun, run_id, whole)
        except RunFailedError as error:
            return {"messages": plain_messages(new_messages(error)), "error": str(error)}
