"""Conversations in a database: runs follow one another, in any worker, and each knows the messages before it."""

import asyncio
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig

from ..errors import ConfigurationError
from ..executor import Decision
from ..messages.carrier import new_messages
from ..mixin import ToolsAndMessagesMixin
from .conversation_metadata import Metadata, noted_at_end
from .conversation_requests import (
    check_decision,
    check_id,
    check_name,
    key_of,
    named,
    request_of,
    request_of_appended,
    request_of_decisions,
    request_of_retry,
    request_of_sent,
)
from .conversation_run import APPEND, SEND, ConversationRun
from .conversation_runs import ConversationRuns, Sent, sent_to
from .engine import begun, engine, register
from .errors import RunFailedError
from .incarnations import Incarnation
from .message_history import ConversationHistory
from .patience import Patience
from .plain import message_of, plain_messages, reply_of, request_of_run
from .readable_conversations import ReadableConversations
from .recorded_texts import RecordedTexts
from .runs import check, execute
from .stored import mapping_of, reading

_Made = Callable[[list[ConversationRun]], Any]
_NOTHING = Metadata()


class Conversations(ReadableConversations):
    """Conversations with a model, stored in a database that any number of processes share.

    A message is answered by a run that outlives the process, as `durable` makes it. In each conversation one run follows another, in the
    order in which their messages were sent, whichever worker executes them. A process that has made `Conversations` and called `launch` (or
    any method) is a worker, and takes runs of all of them.

    Every method but `history` has an asynchronous twin with an `a` before its name.

    Args:
        model: The model. It is no part of what is stored: every worker makes its own, with the same tools.
        url: The database, as of `launch`; None for that of `launch`.
        name: Name of the conversations in the database. Models that share a database have different names.
        rerun: The names of tools whose calls may run again where a crash left it unknown what they did.
        max_concurrency: Maximum number of runs that a worker executes at a time; the last launched worker sets it for all. 0: this
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
        super().__init__(ConversationRuns(name), url)
        self.model = model
        self.name = name
        self._rerun = frozenset(rerun)
        for workflow in (self._runs.first_workflow, self._runs.workflow):
            register(workflow, self._execute)
        engine.queues[self._runs.queue] = max_concurrency
        engine.wanted = url or engine.wanted

    def __repr__(self) -> str:
        return f"Conversations({self.model!r}, name={self.name!r})"

    def __getitem__(self, conversation: str) -> ConversationHistory:
        """Return the conversation's history, like `history`: `Agent(model, conversation=chats["alice"])`."""
        return self.history(conversation)

    # ------------------------------------------------------------------------------------------ what is said

    def send(
        self,
        conversation: str,
        message: str | BaseMessage,
        config: RunnableConfig | None = None,
        *,
        owner: str | None = None,
        labels: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> Sent:
        """Send a message, which a run answers after all earlier ones. Nobody needs to wait for it.

        Args:
            conversation: Its id; the first message begins it.
            message: A text or a message. One with the `id` of a message that was sent before is not sent again. One that was appended, or
                came with a fork, and is the last of the conversation is answered where it stands.
            config: Its tags, metadata and `configurable` travel with the run.
            owner: Owner of the conversation, set when it begins. Later values must be the same.
            labels: Labels by which `list` finds the conversation. They replace earlier ones;
                None leaves these.
            **kwargs: Keywords of the model's `invoke`, as plain JSON, such as `deadline`.

        Returns:
            What `result` and `events` take.

        Raises:
            ConfigurationError: The message is none that somebody says to a model, or something cannot travel; or another message of
                the conversation has its id; or the conversation has another owner, or none.
        """
        one = HumanMessage(message) if isinstance(message, str) else message
        if not isinstance(one, BaseMessage) or isinstance(one, AIMessage | ToolMessage):
            raise ConfigurationError(f"send takes a text or what a user says, not {type(one).__name__}: append takes any messages")
        (one,) = named([one])
        request = request_of(SEND, [one], config, kwargs)
        has_id = one is message  # else it is new
        made = partial(request_of_sent, message=one if has_id else None, request=request)
        return self._add(conversation, f"message {one.id}", made, Metadata(owner, labels, [one]), whole=has_id)

    def append(
        self,
        conversation: str,
        messages: Sequence[BaseMessage],
        *,
        owner: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> Sent:
        """Append messages to the history in order of sending, without a request.

        One with the id of a message that is there, from wherever that came, is not added.

        Args:
            conversation: Its id; the first messages begin it.
            messages: The messages.
            owner: The same as for `send`.
            labels: The same as for `send`.

        Raises:
            ConfigurationError: They are no messages, or none; or the conversation has another owner, or none.
        """
        if isinstance(messages, str | BaseMessage) or not messages or not all(isinstance(one, BaseMessage) for one in messages):
            raise ConfigurationError("append takes a list of messages")
        kept = named(messages)
        return self._add(conversation, key_of(kept), partial(request_of_appended, messages=kept), Metadata(owner, labels, kept))

    def decide(self, conversation: str, decisions: Sequence[Decision], config: RunnableConfig | None = None) -> Sent:
        """Decide about the pending calls from `pending`. A run continues with the decisions; other calls stay pending.

        Each call is decided once: the same decision again, from wherever it comes, does nothing. The run goes on under the keywords of
        the one that left the calls, and its config unless one is given: what it was not allowed to do, it is not now either.

        Returns:
            The run that goes on; of decisions that were made before, the one that did.

        Raises:
            ConfigurationError: A call does not wait, is another one than was shown, was decided otherwise, or its tool does not take the
                arguments that it was given instead. Nothing has run then, and the calls wait on.
        """
        given = [one if isinstance(one, Decision) else Decision.from_dict(one) for one in decisions]
        if not given:
            raise ConfigurationError("decide takes decisions, as the methods of a pending call make them")
        check = partial(check_decision, self.model._own_tools().executor)
        return self._add(conversation, f"decisions {uuid.uuid4()}", lambda runs: request_of_decisions(runs, given, config, check))

    def retry(self, failed: Sent | str) -> Sent:
        """Retry a failed run: a new run continues from its completed messages, without repeating any.

        Args:
            failed: The receipt from `send` or `decide`, or the id of the run. It is retried once, however often this is called: a run
                that fails again has an id of its own.

        Returns:
            The run that tries again.

        Raises:
            ConfigurationError: There is no such run, it has not failed, or another one has followed it.
        """
        self._launch()
        run = self._run(failed)
        return self._add(run.conversation, f"retry {run.id}", lambda runs: request_of_retry(runs, run))

    def _add(self, conversation: str, key: str, made: _Made, metadata: Metadata = _NOTHING, *, whole: bool = True) -> Sent:
        """Add a run after all others; `made` creates its request from them (`whole` or not), or names the existing one."""
        check_id(conversation)
        self._launch()
        while True:
            now = self._runs.current(conversation)
            ends = self._runs.ends(now)
            metadata.check_owner_of(ends)
            runs = self._runs.of(now, whole=True) if whole and ends else ends
            there = next((run for run in runs if run.key == key), None) or made(runs)
            if isinstance(there, ConversationRun):
                return sent_to(now, there.number)
            request, attributes = there
            number = runs[-1].number + 1 if runs else 1
            noted = attributes if runs else {**attributes, **metadata.noted_first()}
            if self._runs.add(now, number, {**request, "conversation": conversation}, key, **noted):
                if runs:
                    self._runs.note(ends[0].id, metadata.noted_later(ends[0], number))
                return sent_to(now, number)

    def history(self, conversation: str, *, owner: str | None = None, labels: Mapping[str, str] | None = None) -> ConversationHistory:
        """Return a conversation as LangChain's `BaseChatMessageHistory`: `messages`, `add_messages` (`append`) and `clear` (`delete`).

        Args:
            conversation: Its id.
            owner: The same as for `send`, for appended messages.
            labels: The same as for `send`, for appended messages.
        """
        check_id(conversation)
        return ConversationHistory(self, conversation, owner=owner, labels=labels)

    # ------------------------------------------------------------------------------------------ what becomes of it

    def cancel(self, conversation: str) -> None:
        """Cancel the current run and those that wait: each returns what it has, with the stop reason `cancelled`."""
        check_id(conversation)
        self._launch()
        for run in self._runs.of(conversation):
            if not run.has_ended:
                self._runs.cancel(run)

    def delete(self, conversation: str | None = None, timeout: float = 10.0, *, older_than: timedelta | None = None) -> int:
        """Delete a conversation, or old conversations, with all their data in the database.

        What is sent under the id from then on begins another conversation: what was sent before has no result any more, and positions
        of before are none. A row stays that says so, with a hash of the id.

        Args:
            conversation: Its id. One that is not there is deleted already. A run that goes on is cancelled.
            timeout: For how many seconds to wait for a run that goes on; after that it finds its rows gone, and ends.
            older_than: In place of an id: all conversations are deleted whose last run was sent, and has ended, longer ago than this.

        Returns:
            How many conversations were deleted.

        Raises:
            ConfigurationError: Neither an id nor an age is given, or both are; or one is none.
        """
        if (conversation is None) == (older_than is None):
            raise ConfigurationError("delete takes the id of a conversation, or older_than")
        if conversation is not None:
            check_id(conversation)
            self._launch()
            return self._delete(conversation, timeout)
        if not (isinstance(older_than, timedelta) and older_than >= timedelta(0)):
            raise ConfigurationError(f"older_than takes a timedelta that is not negative, not {older_than!r}")
        self._launch()
        found = self._list.older_than(older_than)
        return sum(self._delete(one, timeout) for one in found if self._list.is_older(one, older_than))

    def _delete(self, conversation: str, timeout: float) -> int:
        patience, now = Patience(timeout), self._runs.current(conversation)
        there = bool(self._runs.of(now))
        if there:
            now.end()
        for ended in {now, now.before()}:  # whoever deleted the one before may have died over it
            if ended.is_over():
                self._clear(ended, patience)
        return int(there)

    def _clear(self, ended: Incarnation, patience: Patience) -> None:
        """Delete the runs of an incarnation that has ended."""
        while runs := self._runs.of(ended):
            self._runs.end([run for run in runs if run.waits])
            for run in runs:
                if run.goes_on:
                    self._runs.cancel(run)
            try:
                if any(run.goes_on for run in runs):
                    time.sleep(patience.pause())
                    continue
            except TimeoutError:
                self._runs.end([run for run in runs if run.goes_on])
            self._runs.delete(runs)

    def fork(self, conversation: str, message_id: str, to: str | None = None) -> str:
        """Begin a conversation with a copy of another one's history, up to and including one of its messages.

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

        def begun(runs: list[ConversationRun]) -> Any:
            if runs:
                raise ConfigurationError(f"there is a conversation {new!r}")
            return request, {}

        source = self.info(conversation)
        metadata = Metadata(source.owner, source.labels, messages[: last + 1]) if source else Metadata()
        self._add(new, f"fork {uuid.uuid4()}", begun, metadata, whole=False)
        return new

    # ------------------------------------------------------------------------------------------ asynchronous twins

    async def asend(
        self,
        conversation: str,
        message: str | BaseMessage,
        config: RunnableConfig | None = None,
        *,
        owner: str | None = None,
        labels: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> Sent:
        """Like `send`, asynchronously."""
        return await asyncio.to_thread(self.send, conversation, message, config, owner=owner, labels=labels, **kwargs)

    async def aappend(
        self,
        conversation: str,
        messages: Sequence[BaseMessage],
        *,
        owner: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> Sent:
        """Like `append`, asynchronously."""
        return await asyncio.to_thread(self.append, conversation, messages, owner=owner, labels=labels)

    async def adecide(self, conversation: str, decisions: Sequence[Decision], config: RunnableConfig | None = None) -> Sent:
        """Like `decide`, asynchronously."""
        return await asyncio.to_thread(self.decide, conversation, decisions, config)

    async def aretry(self, failed: Sent | str) -> Sent:
        """Like `retry`, asynchronously."""
        return await asyncio.to_thread(self.retry, failed)

    async def acancel(self, conversation: str) -> None:
        """Like `cancel`, asynchronously."""
        await asyncio.to_thread(self.cancel, conversation)

    async def adelete(self, conversation: str | None = None, timeout: float = 10.0, *, older_than: timedelta | None = None) -> int:
        """Like `delete`, asynchronously."""
        return await asyncio.to_thread(self.delete, conversation, timeout, older_than=older_than)

    async def afork(self, conversation: str, message_id: str, to: str | None = None) -> str:
        """Like `fork`, asynchronously."""
        return await asyncio.to_thread(self.fork, conversation, message_id, to)

    # ------------------------------------------------------------------------------------------ the workflow

    def _execute(self, run_id: str, request: dict[str, Any]) -> dict[str, Any]:
        """Execute the unrecorded part of a run. A failed run returns its messages and error, so that the next one continues from there."""
        texts = RecordedTexts()
        try:
            with reading(f"the request of run {run_id!r}"):
                if mapping_of(request, "kind", "messages", "conversation")["kind"] == APPEND:
                    self._runs.note(run_id, noted_at_end(self._appended(run_id, request)))
                    return {"messages": []}
                given = [*map(message_of, request_of_run(request)["messages"])]
            with begun(run_id) as execution:
                messages = [*self._runs.before(request["conversation"], run_id), *given]
                outcome = execute(self.model, self._rerun, execution, messages, {**request, "started": execution.started}, texts)
            self._runs.given(request["conversation"], run_id, execution.messages)
            self._runs.note(run_id, noted_at_end(reply_of(outcome["message"])))
            return texts.named(outcome)
        except RunFailedError as error:
            self._runs.note(run_id, noted_at_end([], str(error)))
            return texts.named({"messages": plain_messages(new_messages(error)), "error": str(error)})

    def _appended(self, run_id: str, request: Mapping[str, Any]) -> list[BaseMessage]:
        """Return messages that end in the appended ones; they begin with the calls that appended results answer."""
        added = [message_of(data) for data in request["messages"]]
        return [*self._runs.before(request["conversation"], run_id), *added] if isinstance(added[0], ToolMessage) else added
