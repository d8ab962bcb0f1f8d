"""Conversations in a database: runs follow one another, in any worker, each with the messages before it."""

import asyncio
import builtins
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Generator, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime, timedelta
from functools import partial, wraps
from typing import Any, Literal, ParamSpec, TypeVar

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from sqlalchemy.exc import DBAPIError

from ..errors import ConfigurationError, DecisionProblem, DecisionsError
from ..event_types import RunEvent
from ..executor import Decision, PendingCall, pending_calls
from ..executor.pending import read_decisions
from ..messages.run_messages import new_messages
from ..mixin import ToolsAndMessagesMixin
from ..run.inbox import user_message
from ..run.settings import drop_settings
from .conversation_reader import ConversationInfo, ConversationList, Metadata, Order, check_position, read_conversation, start_of
from .conversation_runs import (
    APPEND,
    LEFT,
    SEND,
    ConversationRun,
    ConversationRuns,
    Health,
    Incarnation,
    Sent,
    request_of,
    request_of_appended,
    request_of_decisions,
    request_of_retry,
    request_of_sent,
    undecided_calls,
)
from .engine import Link, begun, cancel_run, engine, launch, register
from .journal import RecordedTexts
from .run_reader import ReaderTimeout, adriven, driven
from .runs import check, execute
from .stored import (
    RunFailedError,
    check_name,
    check_storable,
    is_storable,
    mapping_of,
    message_of,
    plain_messages,
    reading,
    reply_of,
    request_of_run,
)
from .workers import is_of_disk

_FORMAT = 1  # of what `export` returns
_NOTHING = Metadata()

_Made = Callable[[list[ConversationRun]], Any]
_M = TypeVar("_M", bound=BaseMessage)
_P = ParamSpec("_P")
_T = TypeVar("_T")


def _in_thread(method: Callable[_P, _T]) -> Callable[_P, Coroutine[Any, Any, _T]]:
    """Return the asynchronous twin of a method, which calls it in a thread."""

    @wraps(method)
    async def twin(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        return await asyncio.to_thread(getattr(args[0], name), *args[1:], **kwargs)

    name = method.__name__
    twin.__name__, twin.__doc__ = f"a{name}", f"Like `{name}`, asynchronously."
    return twin


class Conversations:
    """Conversations with a model, stored in a database that any number of processes share.

    A message is answered by a run that outlives the process, as `durable` makes it. In each conversation one run follows another, in the
    order in which their messages were sent, whichever worker executes them. A process that has made `Conversations` and called `launch` (or
    any method) is a worker, and takes runs of all of them.

    Every method but `history` has an asynchronous twin with an `a` before its name. Each that reads raises `RunFailedError`, with the run's
    id, where what is stored of a run was changed and is no longer of its form.

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
        self.model = model
        self.name = name
        self._url = url
        self._runs = ConversationRuns(name)
        self._list = ConversationList(self._runs)
        self._rerun = frozenset(rerun)
        for workflow in (self._runs.first_workflow, self._runs.workflow):
            register(workflow, self._execute)
        engine.queues[self._runs.queue] = max_concurrency
        engine.wanted = url or engine.wanted

    def __repr__(self) -> str:
        return f"Conversations({self.model!r}, name={self.name!r})"

    def __getitem__(self, conversation: str) -> "ConversationHistory":
        """Return the conversation's history, like `history`: `Agent(model, conversation=chats["alice"])`."""
        return self.history(conversation)

    def _launch(self) -> None:
        """Launch the engine unless it runs, also after a shutdown.

        Raises:
            ConfigurationError: This process has launched with another database than that of these conversations.
        """
        launch(self._url)

    def _open(self, conversation: str) -> None:
        """Check the id of a conversation, then launch the engine."""
        _check_id(conversation)
        self._launch()

    # ------------------------------------------------------------------------------------------ what is said

    def send(
        self,
        conversation: str,
        message: str | BaseMessage,
        config: RunnableConfig | None = None,
        *,
        owner: str | None = None,
        labels: Mapping[str, str] | None = None,
        while_running: Literal["queue", "steer"] = "queue",
        **kwargs: Any,
    ) -> Sent:
        """Send a message, which a run answers after all earlier ones. Nobody needs to wait for it.

        Args:
            conversation: Its id; the first message begins it.
            message: A text or a message. One with the `id` of a message that was sent before is not sent again. One that was appended, or
                came with a fork, and is the last of the conversation is answered where it is.
            config: Its tags, metadata and `configurable` travel with the run.
            owner: Owner of the conversation, set when it begins. Later values must be the same.
            labels: Labels by which `list` finds the conversation. They replace earlier ones;
                None leaves these.
            while_running: What a run that goes on does: `queue` lets it end first; with `steer` it takes the message between two of its
                requests, or after its last reply, where one more turn answers it. It takes only a message with its own keywords and
                `configurable`, and none behind another one that it does not take. What is not taken is answered as with `queue`.
            **kwargs: Keywords of the model's `invoke`, as plain JSON, such as `deadline`.

        Returns:
            What `result` and `events` take. `result` of a message that was taken is the answer of the run that took it, whose events
            tell it where it was read.

        Raises:
            ConfigurationError: The message is none that somebody says to a model, or something cannot travel. Another message of the
                conversation has its id. The conversation has another owner, or none. `while_running` is neither. What steers is no text or
                `HumanMessage`, or is empty, or the model does not carry messages.
        """
        if while_running not in ("queue", "steer"):
            raise ConfigurationError(f'while_running is "queue" or "steer", not {while_running!r}')
        if steers := while_running == "steer":
            user_message("a message that steers a run", message)
            if not kwargs.get("carry_messages", self.model.carry_messages):
                raise ConfigurationError("a run that is steered keeps what it was told in its messages: carry_messages must not be False")
        one = HumanMessage(message) if isinstance(message, str) else message
        if not isinstance(one, BaseMessage) or isinstance(one, AIMessage | ToolMessage):
            raise ConfigurationError(f"send takes a text or what a user says, not {type(one).__name__}: append takes any messages")
        (one,) = named([one])
        request = request_of(SEND, [one], config, kwargs)
        drop_settings(self.model, dict(kwargs))  # a keyword that cannot work is refused before anything is recorded
        has_id = one is message  # else it is new
        made = partial(request_of_sent, message=one if has_id else None, request=request, steers=steers)
        return self._add(conversation, f"message {one.id}", made, Metadata(owner, labels, [one]), whole=has_id)

    asend = _in_thread(send)

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
        return self._add(
            conversation,
            f"messages {' '.join(str(one.id) for one in kept)}",
            partial(request_of_appended, messages=kept),
            Metadata(owner, labels, kept),
        )

    aappend = _in_thread(append)

    def decide(
        self,
        conversation: str,
        decisions: Sequence[Decision],
        config: RunnableConfig | None = None,
        *,
        message: str | HumanMessage | None = None,
    ) -> Sent:
        """Decide about the pending calls from `pending`. A run continues with the decisions; other calls stay pending.

        Each call is decided once: the same decision again, from wherever it comes, does nothing. The run goes on under the keywords of
        the one that left the calls, and its config unless one is given: what it was not allowed to do, it is not now either.

        Args:
            conversation: Its id.
            decisions: The decisions.
            config: As of `send`.
            message: What the user says as well. It joins the conversation behind the results of the calls, if all calls are answered then:
                of a run that leaves calls it is not sent (`message_sent` of the run message is False).

        Returns:
            The run that goes on; of decisions that were made before, the one that did.

        Raises:
            ConfigurationError: There are no decisions.
            DecisionsError: A call does not wait, is another one than was shown, was decided otherwise, or its tool does not take the
                arguments that it was given instead. Nothing is recorded then, nothing has run, and the calls wait on.
        """
        given = read_decisions(decisions)
        if not given:
            raise ConfigurationError("decide takes decisions, as the methods of a pending call make them")
        check = partial(self.model._check_decisions, recorded=True)
        said = HumanMessage(message) if isinstance(message, str) else message
        if not isinstance(said, HumanMessage | None) or (said is not None and not said.content):
            raise ConfigurationError(f"message must be what a user says, a text or a HumanMessage, not {message!r:.100}")
        said = None if said is None else named([said])[0]
        made = partial(request_of_decisions, given=given, config=config, check=check, message=said)
        return self._add(conversation, f"decisions {uuid.uuid4()}", made)

    adecide = _in_thread(decide)

    def check(self, conversation: str, decisions: Sequence[Decision]) -> builtins.list[DecisionProblem]:
        """Return what is wrong with decisions about the calls from `pending`; empty if `decide` takes them. Nothing is recorded.

        Args:
            conversation: Its id.
            decisions: The decisions.
        """
        self._open(conversation)
        check = partial(self.model._check_decisions, recorded=True)
        try:
            request_of_decisions(self._runs.of(conversation, whole=True), read_decisions(decisions), None, check)
        except DecisionsError as error:
            return error.problems
        return []

    acheck = _in_thread(check)

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

    aretry = _in_thread(retry)

    def _add(self, conversation: str, key: str, made: _Made, metadata: Metadata = _NOTHING, *, whole: bool = True) -> Sent:
        """Add a run after all others; `made` creates its request from them (`whole` or not), or names the existing one."""
        self._open(conversation)
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

    def history(self, conversation: str, *, owner: str | None = None, labels: Mapping[str, str] | None = None) -> "ConversationHistory":
        """Return a conversation as LangChain's `BaseChatMessageHistory`: `messages`, `add_messages` (`append`) and `clear` (`delete`).

        Args:
            conversation: Its id.
            owner: The same as for `send`, for appended messages.
            labels: The same as for `send`, for appended messages.
        """
        _check_id(conversation)
        return ConversationHistory(self, conversation, owner=owner, labels=labels)

    # ------------------------------------------------------------------------------------------ what there is to read

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
        self._open(conversation)
        link, start = Link(), start_of(self._runs, conversation, after, last_event_id)
        return driven(partial(read_conversation, self._runs, start, follow, timeout, link))

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
        _check_id(conversation)
        check_position(after)
        return self._aevents(conversation, after, last_event_id, follow, timeout)

    async def _aevents(
        self, conversation: str, after: str | None, last_event_id: str | None, follow: bool, timeout: float | None
    ) -> AsyncGenerator[RunEvent, None]:
        await asyncio.to_thread(self._launch)
        link, start = Link(), await asyncio.to_thread(start_of, self._runs, conversation, after, last_event_id)
        async with aclosing(adriven(partial(read_conversation, self._runs, start, follow, timeout, link))) as events:
            async for event in events:
                yield event

    def messages(self, conversation: str) -> builtins.list[BaseMessage]:
        """Return the messages of a conversation, in order: of a current run the complete ones, then those that wait for an answer."""
        self._open(conversation)
        return self._runs.messages(conversation)

    amessages = _in_thread(messages)

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
        limit = ReaderTimeout(timeout)
        while (message := self._answer(sent)) is None:
            time.sleep(limit.pause())
        return message

    async def aresult(self, sent: Sent | str, timeout: float | None = None) -> AIMessage:
        """Like `result`, asynchronously."""
        await asyncio.to_thread(self._launch)
        limit = ReaderTimeout(timeout)
        while (message := await asyncio.to_thread(self._answer, sent)) is None:
            await asyncio.sleep(limit.pause())
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
        """Return the run that answers a message or a decision, with input and output: where another one has taken the message, that one.

        Raises:
            ConfigurationError: There is none of this id.
        """
        run_id = sent.run_id if isinstance(sent, Sent) else sent
        run = self._runs.one(run_id) if is_storable(run_id) else None
        run = self._runs.one(run.taken_by) if run is not None and run.taken_by is not None else run
        if run is None or run.request["kind"] == APPEND:
            raise ConfigurationError(f"there is no run {run_id!r} that answers something")
        return run

    def pending(self, conversation: str) -> builtins.list[PendingCall]:
        """Return the calls that wait for a decision. Calls before a newer message do not: the model is told that they did not run."""
        self._open(conversation)
        return undecided_calls(self._runs.of(conversation, whole=True))

    apending = _in_thread(pending)

    def export(self, conversation: str) -> dict[str, Any]:
        """Return a conversation as plain JSON: its messages in LangChain's form (for `messages_from_dict`), and its runs.

        Returns:
            `version` (of this form), `conversation`, `messages` and `runs`. Of each run its `id`, `kind` (`send`, `decide` or `append`),
            `begun` (ISO 8601), `status` (`waits`, `goes on`, `ended` or `failed`) and `error`; and `taken_by`, the id of the run that has
            taken its message, where one has.
        """
        messages = plain_messages(self.messages(conversation))
        runs = [run.exported() for run in self._runs.of(conversation, whole=True)]
        return {"version": _FORMAT, "conversation": conversation, "messages": messages, "runs": runs}

    aexport = _in_thread(export)

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

    alist = _in_thread(list)

    def info(self, conversation: str) -> ConversationInfo | None:
        """Return the description of one conversation, as in `list`; None if it does not exist. Compare its `owner` with the client."""
        self._open(conversation)
        return self._list.info(conversation)

    ainfo = _in_thread(info)

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
        return self._runs.health(stalled_after)

    ahealth = _in_thread(health)

    # ------------------------------------------------------------------------------------------ what becomes of it

    def cancel(self, conversation: str) -> None:
        """Cancel the current run and those that wait: each returns what it has, with the stop reason `cancelled`."""
        self._open(conversation)
        for run in reversed(self._runs.of(conversation)):  # the current one last: the next one begins as soon as it has ended
            if not run.has_ended:
                cancel_run(run.id)

    acancel = _in_thread(cancel)

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
            self._open(conversation)
            return self._delete(conversation, timeout)
        if not (isinstance(older_than, timedelta) and older_than >= timedelta(0)):
            raise ConfigurationError(f"older_than takes a timedelta that is not negative, not {older_than!r}")
        self._launch()
        found = self._list.older_than(older_than)
        return sum(self._delete(one, timeout) for one in found if self._list.is_older(one, older_than))

    adelete = _in_thread(delete)

    def _delete(self, conversation: str, timeout: float) -> int:
        limit, now = ReaderTimeout(timeout), self._runs.current(conversation)
        there = bool(self._runs.of(now))
        if there:
            now.end()
        for ended in {now, now.before()}:  # whoever deleted the one before may have died over it
            if ended.is_over():
                self._clear(ended, limit)
        return int(there)

    def _clear(self, ended: Incarnation, limit: ReaderTimeout) -> None:
        """Delete the runs of an incarnation that has ended."""
        while runs := self._runs.of(ended):
            self._runs.end([run for run in runs if run.waits])
            for run in runs:
                if run.goes_on:
                    cancel_run(run.id)
            try:
                if any(run.goes_on for run in runs):
                    time.sleep(limit.pause())
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

    afork = _in_thread(fork)

    # ------------------------------------------------------------------------------------------ the workflow

    def _execute(self, run_id: str, request: dict[str, Any]) -> dict[str, Any]:
        """Execute the unrecorded part of a run. A failed run returns its messages and error, so that the next one continues from there."""
        texts = RecordedTexts()
        try:
            with reading(f"the request of run {run_id!r}"):
                if mapping_of(request, "kind", "messages", "conversation")["kind"] == APPEND:
                    added = [message_of(data) for data in request["messages"]]
                    before = self._runs.before(request["conversation"], run_id) if isinstance(added[0], ToolMessage) else []
                    self._runs.note(run_id, _noted_at_end([*before, *added]))
                    return {"messages": []}
                given = [*map(message_of, request_of_run(request)["messages"])]
            prefix, _, number = run_id.rpartition("/")
            with begun(run_id, f"{prefix}/{int(number) + 1}") as execution:
                before = self._runs.before(request["conversation"], run_id)
                if execution.steers and {one.id for one in given} <= {one.id for one in before}:
                    return self._runs.end_taken(request["conversation"], run_id)
                messages, steering = [*before, *given], self._runs.steering(request, execution)
                started = {**request, "started": execution.started}
                outcome = execute(self.model, self._rerun, execution, messages, started, texts, steering=steering)
            self._runs.given(request["conversation"], run_id, execution.messages)
            self._runs.note(run_id, _noted_at_end(reply_of(outcome["message"])))
            return texts.named(outcome)
        except RunFailedError as error:
            self._runs.note(run_id, _noted_at_end([], str(error)))
            return texts.named({"messages": plain_messages(new_messages(error)), "error": str(error)})


def _check_id(conversation: str) -> None:
    """Raise if the id is not valid for a conversation.

    Raises:
        ConfigurationError: It is none, or one that a database could not keep apart from others.
    """
    check_name("the id of a conversation", conversation)


def sent_to(where: Incarnation, number: int) -> Sent:
    """Return the receipt for the conversation's run with this number."""
    return Sent(where.conversation, where.run_id(number), where.position(number, 0))


def named(messages: Sequence[_M]) -> list[_M]:
    """Return the messages, each with an id.

    Raises:
        ConfigurationError: An id cannot be stored as it is, and could become that of another message.
    """
    for one in messages:
        check_storable("the id of a message", one.id or "")
    return [one if one.id else one.model_copy(update={"id": uuid.uuid4().hex}) for one in messages]


def _noted_at_end(made: BaseMessage | Sequence[BaseMessage], error: str | None = None) -> dict[str, Any]:
    """Return the attributes of a finished run that failed or left calls that wait; empty otherwise."""
    left = "failed" if error is not None else "calls_pending" if made and pending_calls(made) else None
    return {LEFT: left} if left else {}


class ConversationHistory(BaseChatMessageHistory):
    """Reads a conversation, and appends to it; created by `Conversations.history`.

    Args:
        conversations: The conversations.
        conversation: The id of the conversation.
        owner: Owner of the conversation, as for `Conversations.send`.
        labels: Its labels, as of `Conversations.send`.
    """

    def __init__(
        self, conversations: Conversations, conversation: str, *, owner: str | None = None, labels: Mapping[str, str] | None = None
    ) -> None:
        self._conversations = conversations
        self._conversation = conversation
        self._owner = owner
        self._labels = labels

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]  # core declares a field, and says to write a property
        """The messages of the conversation, as from `Conversations.messages`."""
        return self._conversations.messages(self._conversation)

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Append messages in order of sending."""
        if messages:
            self._conversations.append(self._conversation, messages, owner=self._owner, labels=self._labels)

    def clear(self) -> None:
        """Delete the conversation."""
        self._conversations.delete(self._conversation)
