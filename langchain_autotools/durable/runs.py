"""`durable`: a model whose runs outlive the process."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, cast

from dbos import DBOS
from dbos import error as dbos_error
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.runnables import RunnableConfig

from .. import event_types as kinds
from ..chunks import as_chunk, sum_chunks
from ..compat import input_messages
from ..errors import ConfigurationError, DecisionProblem, DecisionsError
from ..event_bus import Listener
from ..event_types import RunEvent
from ..executor.names import tool_keys
from ..executor.user_functions import run_beside
from ..messages.metadata import attach_messages
from ..messages.run_messages import new_messages
from ..mixin import ToolsAndMessagesMixin
from ..run.settings import drop_settings
from .engine import Link, begun, cancel_run, engine, launch, outside, register
from .journal import Journal, LiveEvents, RecordedTexts, error_text, run_exception, with_texts
from .run_reader import Wait, adriven, driven, position_of, read_run, start_number
from .stored import (
    RunFailedError,
    check_storable,
    is_storable,
    message_of,
    plain_config,
    plain_keywords,
    plain_messages,
    reading,
    reply_of,
    request_of_run,
)
from .workers import Execution, WorkerEndingError, start_workflow

_POLLS_SECONDS = 0.2  # how often a client looks whether its run has ended where nothing wakes it
_clients: dict[str, "_Client"] = {}


class _Client:
    """Waits in this process for a run, and reads it while it is written if it is executed here.

    Attributes:
        listener: Takes the run's chunks.
        error: What it raised here.
        ended: Whether it has ended.
    """

    def __init__(self, run_id: str) -> None:
        self.listener = Listener()
        self.error: BaseException | None = None
        self._run_id = run_id
        self._run: Any = None
        self._failed: BaseException | None = None
        self.ended = False

    def wait(self, handle: Any) -> None:
        """Wait for the workflow, in this thread."""
        try:
            self._run = handle.get_result(polling_interval_sec=_POLLS_SECONDS)
        except BaseException as error:
            self._failed = error
        _clients.pop(self._run_id, None)
        self.ended = True
        self.listener.tell(None)

    def message(self, undelivered: Sequence[BaseMessage] = ()) -> AIMessage:
        """Return the run message.

        Args:
            undelivered: What the run has brought and the caller has not: an error brings it.
        """
        if self._failed is None:
            return _message_out(self._run_id, self._run)
        if self.error is None:
            raise RunFailedError(str(self._failed)) from None
        attach_messages(self.error, [*undelivered, *new_messages(self.error)])
        raise self.error

    def rest(self, last: AIMessageChunk | None) -> Iterator[AIMessageChunk]:
        """Yield the remaining chunks at the end: all of them if the run was not executed here."""
        message = self.message()
        if last is None:
            yield as_chunk(message)
        elif last.chunk_position != "last":
            raise RunFailedError("the run was taken over by another worker while it was read: `events` and `result` have all of it")


class DurableModel:
    """A model whose runs outlive the process; created by `durable`.

    A run is executed in threads of a worker, whoever waits for it: a client that leaves does not end it. Synchronous and asynchronous
    clients wait for the same kind of run; an asynchronous tool runs on the event loop on which the model was made, where that runs,
    else on one of this package's own.

    Args:
        model: The model.
        name: Its name, by which other processes know it.
        rerun: The names of tools whose calls may run again where it is not known what they did.
    """

    def __init__(self, model: ToolsAndMessagesMixin, name: str, rerun: Collection[str] = ()) -> None:
        self.model = model
        self.name = name
        self._rerun = frozenset(rerun)

    @property
    def workflow(self) -> str:
        """The name of the model's workflow."""
        return f"langchain_autotools {self.name}"

    def __repr__(self) -> str:
        return f"durable({self.model!r}, {self.name!r})"

    # ------------------------------------------------------------------------------------------ runs

    def invoke(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, *, run_id: str | None = None, **kwargs: Any
    ) -> AIMessage:
        """Answer the input in a durable run, and wait for it.

        Args:
            input: Messages, a prompt or a text.
            config: Its tags, metadata and `configurable` travel with the run; what else it holds is refused.
            run_id: Names the run, for other processes and for later. One that is there is not begun again: its answer is returned.
                By default the config's, else a new one.
            **kwargs: What `invoke` of the model takes, as plain JSON.

        Returns:
            The run message.

        Raises:
            ConfigurationError: Something cannot travel.
            RunFailedError: The run has failed in another process. Here it raises what it raised.
        """
        client = self._client(run_id, input, config, kwargs)
        return client.message([message for chunk in driven(partial(_chunks_of, client)) for message in new_messages(chunk)])

    async def ainvoke(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, *, run_id: str | None = None, **kwargs: Any
    ) -> AIMessage:
        """Like `invoke`, asynchronously."""
        client = await asyncio.to_thread(self._client, run_id, input, config, kwargs)
        async with aclosing(adriven(partial(_chunks_of, client))) as chunks:
            brought = [message async for chunk in chunks for message in new_messages(chunk)]
        return client.message(brought)

    def stream(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, *, run_id: str | None = None, **kwargs: Any
    ) -> Iterator[AIMessageChunk]:
        """Stream the answer of a durable run; an existing run is one chunk. To stop reading does not end the run.

        Args:
            input: As of `invoke`.
            config: As of `invoke`.
            run_id: As of `invoke`.
            **kwargs: As of `invoke`.
        """
        client, last = self._client(run_id, input, config, kwargs), None
        for chunk in driven(partial(_chunks_of, client)):
            last = chunk
            yield chunk
        yield from client.rest(last)

    async def astream(
        self, input: LanguageModelInput, config: RunnableConfig | None = None, *, run_id: str | None = None, **kwargs: Any
    ) -> AsyncIterator[AIMessageChunk]:
        """Like `stream`, asynchronously."""
        client, last = await asyncio.to_thread(self._client, run_id, input, config, kwargs), None
        async with aclosing(adriven(partial(_chunks_of, client))) as chunks:
            async for chunk in chunks:
                last = chunk
                yield chunk
        for chunk in client.rest(last):
            yield chunk

    def check(self, input: LanguageModelInput, decisions: Any = True, **kwargs: Any) -> list[DecisionProblem]:
        """Return why a run could not go on with decisions, as the model's own `check` does. Nothing is recorded.

        Args:
            input: The history, which ends in calls that wait.
            decisions: The decisions, for `resume=`.
            **kwargs: As of `invoke`.

        Raises:
            ConfigurationError: As of the model's own `check`.
        """
        try:
            self.model._check_decisions(input, {**kwargs, "resume": decisions}, recorded=True)
        except DecisionsError as error:
            return error.problems
        return []

    # ------------------------------------------------------------------------------------------ later, and elsewhere

    def result(self, run_id: str) -> AIMessage:
        """Wait for an earlier run, of this or another process, and return its run message.

        Raises:
            ConfigurationError: There is no such run.
            RunFailedError: The run has failed.
        """
        _check_run(run_id)
        try:
            run = outside(lambda: DBOS.retrieve_workflow(run_id).get_result(polling_interval_sec=_POLLS_SECONDS))
        except Exception as error:
            raise RunFailedError(str(error)) from None
        return _message_out(run_id, run)

    async def aresult(self, run_id: str) -> AIMessage:
        """Like `result`, asynchronously."""
        return await asyncio.to_thread(self.result, run_id)

    def events(
        self, run_id: str, *, after: str | None = None, last_event_id: str | None = None, timeout: float | None = None
    ) -> Iterator[RunEvent]:
        """Yield the events of a run, from any process, during the run, after a crash and after its end.

        Args:
            run_id: The run.
            after: The `position` of the last event that the reader has; None for all.
            last_event_id: The header `Last-Event-ID` of a client that comes back. It goes before `after`; what is no position is ignored.
            timeout: After how many seconds in which nothing comes the reader gives up; None for never.

        Returns:
            The events that `events` tells of the model, in batches. A reply that died with its process is told as `MessageDiscarded`.

        Raises:
            ConfigurationError: There is no such run, or no such position.
            RunFailedError: The run has failed; after the event that says so.
            TimeoutError: Nothing came in time. The run goes on.
            EventsInterruptedError: This process has shut down.
        """
        _check_run(run_id)
        return driven(partial(_events_behind, start_number(after, last_event_id), run_id, timeout, Link()))

    async def aevents(
        self, run_id: str, *, after: str | None = None, last_event_id: str | None = None, timeout: float | None = None
    ) -> AsyncIterator[RunEvent]:
        """Like `events`, asynchronously."""
        await asyncio.to_thread(_check_run, run_id)
        async with aclosing(adriven(partial(_events_behind, start_number(after, last_event_id), run_id, timeout, Link()))) as events:
            async for event in events:
                yield event

    def cancel(self, run_id: str) -> None:
        """Cancel a run, wherever it is executed; it returns what it has, with the stop reason `cancelled`."""
        check_storable("the id of a run", run_id)
        launch()
        cancel_run(run_id)

    async def acancel(self, run_id: str) -> None:
        """Like `cancel`, asynchronously."""
        await asyncio.to_thread(self.cancel, run_id)

    # ------------------------------------------------------------------------------------------ the workflow

    def _client(self, run_id: str | None, input: LanguageModelInput, config: RunnableConfig | None, kwargs: dict[str, Any]) -> _Client:
        """Begin a run, unless it exists."""
        run_id = run_id or str((config or {}).get("run_id") or uuid.uuid4())
        check_storable("the id of a run", run_id)
        request = {
            "messages": plain_messages(input_messages(self.model, input)),
            "config": plain_config(config),
            "keywords": plain_keywords(kwargs),
        }
        drop_settings(self.model, dict(kwargs))  # a keyword that cannot work is refused before anything is recorded
        launch()
        client = _Client(run_id)
        _clients[run_id] = client
        handle = outside(start_workflow, run_id, engine.workflows[self.workflow], {**request, "started": engine.clock()})
        run_beside(partial(outside, client.wait, handle))
        return client

    def execute(self, run_id: str, request: dict[str, Any]) -> dict[str, Any]:
        """Execute the unrecorded part of the run."""
        client = _clients.pop(run_id, None)
        with begun(run_id) as execution:
            texts = RecordedTexts()
            with reading(f"the request of run {run_id!r}"):
                messages = [*map(message_of, request_of_run(request, "started")["messages"])]
            return texts.named(execute(self.model, self._rerun, execution, messages, request, texts, client))


def _message_out(run_id: str, outcome: Any) -> AIMessage:
    """Return the run message of a run's outcome.

    Raises:
        RunFailedError: It cannot be read.
    """
    with reading(f"the outcome of run {run_id!r}"):
        return reply_of(with_texts(run_id, outcome)["message"])


def _events_behind(
    after: int, run_id: str, timeout: float | None, link: Link, wake: Callable[[], None]
) -> Generator[RunEvent | Wait, None, None]:
    """Yield the events of a run after a position, with marks where to wait; raise the error of a failed run, after its event."""
    for step in read_run(run_id, timeout, link, wake):
        if isinstance(step, Wait) or position_of(step) > after:
            yield step
        if isinstance(step, kinds.RunFailed) and step.parent_run_id is None:
            raise step.error


def _check_run(run_id: str) -> None:
    """Launch the engine, and raise unless a run exists that will end.

    Raises:
        ConfigurationError: There is no such run.
        RunFailedError: It has no request, and so no end.
    """
    launch()
    status = outside(DBOS.get_workflow_status, run_id) if is_storable(run_id) else None
    if status is not None and status.input is None and status.status != "SUCCESS":
        raise RunFailedError(f"the request of run {run_id!r} cannot be read: it is missing")
    if status is None:
        raise ConfigurationError(f"there is no run {run_id!r}")


def execute(
    model: ToolsAndMessagesMixin,
    rerun: Collection[str],
    execution: Execution,
    messages: list[BaseMessage],
    request: Mapping[str, Any],
    texts: RecordedTexts,
    client: _Client | None = None,
    steering: Callable[[int], list[Any]] | None = None,
) -> dict[str, Any]:
    """Execute the unrecorded part of a run inside its workflow.

    Args:
        model: The model.
        rerun: The names of the tools whose calls may run again.
        execution: The execution.
        messages: The history.
        request: The request of the run, with the time at which it began.
        texts: Takes the large texts that are recorded.
        client: Who waits for the run in this process; None if nobody does.
        steering: Returns what steers the run, behind so many messages that it has taken, as plain JSON; None where nothing can.

    Raises:
        RunFailedError: It has failed; the error brings the messages that it has made.
    """
    lifetime, config = engine.lifetime, cast("RunnableConfig", request["config"])
    chunks: list[AIMessageChunk] = []
    try:
        known = tool_keys(rerun, model._own_tools().executor.tools) if rerun else ()
        journal = Journal(execution, request["started"], engine.clock, known, lifetime, texts)
        inbox = None if steering is None else journal.inbox(steering)
        with LiveEvents(execution.id, texts).written(), lifetime.left():
            for chunk in model.stream(messages, config, journal=journal, inbox=inbox, **request["keywords"]):
                chunks.append(chunk)
                if client is not None:
                    client.listener.tell(chunk)
    except (dbos_error.DBOSException, WorkerEndingError):  # the run is another worker's now or soon, or was ended from outside
        raise
    except BaseException as error:
        if client is not None:
            client.error = run_exception(error)
        failed = RunFailedError(error_text(error))
        attach_messages(failed, [*(message for chunk in chunks for message in new_messages(chunk)), *new_messages(error)])
        raise failed from error
    return {"message": plain_messages([sum_chunks(chunks)])[0]}


def durable(model: ToolsAndMessagesMixin, name: str, rerun: Collection[str] = ()) -> DurableModel:
    """Return a model whose `invoke`, `stream` and asynchronous versions outlive the process.

    Each request and each tool call is recorded as it ends. After a crash the run goes on, in the same worker when it
    is back, or in another one:
    nothing that is recorded is done again. A call that was running is answered with "interrupted, outcome unknown", unless its tool
    may run again.

    Args:
        model: The model, with `tools` or without. It is no part of what is stored: every worker makes its own.
        name: What this model is called in the database. Every worker calls the same model so.
        rerun: The names of tools whose calls may run again where a crash left it unknown what they did.

    Raises:
        ConfigurationError: The model's `approve` or `claim` would decide anew whenever a run goes on, `rerun` names no tool of it, or
            workers have been launched in this process without a model of this name.
    """
    check(model, rerun)
    made = DurableModel(model, name, rerun)
    register(made.workflow, made.execute)
    return made


def check(model: ToolsAndMessagesMixin, rerun: Collection[str]) -> None:
    """Raise if a model cannot be durable.

    Raises:
        ConfigurationError: As `durable` does.
    """
    if model.approve is not None or model.claim is not None:
        raise ConfigurationError("approve and claim would decide anew whenever a run goes on: use requires_approval and resume")
    known = model._own_tools().executor
    if known.approvals is not None and (known.approvals.approve is not None or known.approvals.claim is not None):
        raise ConfigurationError(
            "approve and claim of an executor would decide anew whenever a run goes on: use requires_approval and resume"
        )
    unknown = set(tool_keys(rerun, known.tools)) - known.tools.keys()
    if isinstance(rerun, str) or unknown:
        raise ConfigurationError(f"rerun names tools that do not exist: {', '.join(sorted(unknown))}")


def _chunks_of(client: _Client, wake: Callable[[], None]) -> Generator[AIMessageChunk | Wait, None, None]:
    """Yield the chunks of a run until it has ended, with marks where to wait."""
    waiting = client.listener.waiting
    with client.listener.waking(wake):
        while not client.ended or waiting:
            while waiting:
                if (chunk := waiting.popleft()) is not None:
                    yield chunk
            if not client.ended:
                yield Wait(1.0)
