"""What becomes of runs whose worker fails: when it ends, falls silent, crashes repeatedly or has a full disk."""

import asyncio
import concurrent.futures
import logging
import math
import sqlite3
import sys
import threading
import time
import uuid
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import Context, ContextVar
from functools import partial
from typing import Any

from dbos import DBOS, SetWorkflowID, WorkflowStatus
from langchain_core.messages import BaseMessage
from sqlalchemy import event
from sqlalchemy.dialects import plugins
from sqlalchemy.exc import DBAPIError

from ..executor.user_functions import run_beside
from .stored import RunFailedError, checked, mapping_of, reading

_logger = logging.getLogger("langchain_autotools")

CANCELLED = "autotools_cancelled"
"""The attribute of a run's workflow that marks its cancellation."""

STEERS = "autotools_steers"
"""The attribute of a run whose message the run before it may take."""

_CANCELLATIONS = (asyncio.CancelledError, concurrent.futures.CancelledError)
_CLOSING_SECONDS = 5.0  # how long a process may take from the end of its event loop to its own
_ENDING_POLL_SECONDS = 0.1
_PLUGIN = "langchain_autotools"
_LIFETIME_KEY = "autotools_lifetime"
_CREATED_KEY = "autotools_created"
_WRITES_NOTHING = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}
_WARNING_SECONDS = 60.0
_WORKER = "langchain_autotools worker"
_ALIVE = {"alive": True}
_HEARTBEAT_SECONDS = 1.0
_EXECUTION = "autotools_execution"  # the attribute that describes the last execution that began
_LEFT = "autotools_left_execution"  # the attribute that names the last execution that `shutdown` left
_LONGEST_TURN_SECONDS = 300.0  # for how long a run under suspicion keeps others waiting: it may wait for one of them itself
_TURN_POLL_SECONDS = 0.2  # how often a run that waits looks whether it still must


# ---------------------------------------------------------------------------------------------- a worker that ends


class WorkerEndingError(BaseException):
    """Raised to leave a run without recording anything: DBOS records only errors that are an `Exception`."""


class Lifetime:
    """The time in which a worker executes runs: from a launch until `shutdown`, or the end of its process.

    Attributes:
        is_shut_down: Whether `shutdown` was called.
    """

    def __init__(self) -> None:
        self.is_shut_down = False

    def is_over(self) -> bool:
        """Whether the worker's time is over."""
        return self.is_shut_down or sys.is_finalizing() or _main_thread_has_ended()

    def leave(self, error: BaseException | None) -> None:
        """Leave the run if its worker is ending. After a cancellation, wait a moment: an event loop that closes cancels its tasks.

        Args:
            error: The error.

        Raises:
            WorkerEndingError: The worker is ending.
        """
        until = time.monotonic() + (_CLOSING_SECONDS if isinstance(error, _CANCELLATIONS) else 0.0)
        while not self.is_over():
            if time.monotonic() >= until:
                return
            time.sleep(_ENDING_POLL_SECONDS)
        raise WorkerEndingError("the process that ran this is ending: the run goes on where a worker is launched") from error

    @contextmanager
    def left(self) -> Iterator[None]:
        """A context manager that leaves the run inside if its worker is ending, whatever it raises."""
        try:
            yield
        except WorkerEndingError:
            raise
        except BaseException as error:
            self.leave(error)
            raise


def _main_thread_has_ended() -> bool:
    """Whether the main thread has ended while the interpreter waits for other threads, which only its thread pools know."""
    try:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(int)
    except RuntimeError as error:
        return "interpreter shutdown" in str(error)  # and not: no thread can be started
    return False


# ---------------------------------------------------------------------------------------------- a worker that has fallen silent
#
# All by what DBOS offers: each worker is the name of a workflow that ended long ago, whose attributes it touches now and then; the
# database's own clock says when. What a worker that is silent left pending is found by its id (`list_workflows(status=)`) and resumed
# (`resume_workflow`), by one of those that live: the first by name, so that no two do it. A worker that was only slow finds at its next
# step that its runs are no longer its own, and leaves them. A worker that has told nothing yet may hold runs already, as DBOS takes them
# from its queue: it is silent when it has held one for that long. Where the database was away, all workers were silent: whoever was
# silent itself gives the others the time of a lease to come back. The row of a worker that has nothing left is deleted; one that comes
# back makes it anew.
#
# Each worker also looks for runs that it took and never began: a database that fails between the two leaves them to nobody, and a run
# whose stored request is gone cannot begin at all.


class Lease:
    """The background work of this worker.

    Args:
        executions: The executions of this worker.
        version: The application version of the runs that it can go on with.
        seconds: After how much silence of another worker its runs are taken over.
        kinds: The names of the workflows that runs are: a program may have others.
        finds_attributes: Whether the database finds rows by their attributes: else it reads all of them to find the workers.
    """

    def __init__(self, executions: "Executions", version: str, seconds: float, kinds: Container[str], *, finds_attributes: bool) -> None:
        self._executions = executions
        self._worker = executions.worker
        self._version = version
        self._milliseconds = seconds * 1000
        self._reported_at = math.inf  # by the database's clock, as all that follows
        self._waits_until = 0.0
        self._looked_at = -math.inf
        self._looked_at_own = -math.inf
        self._not_begun: set[tuple[str, int | None]] = set()  # with the times at which they were taken
        self._kinds = kinds
        self._workers: dict[str, Any] = {"name": _WORKER, **({"attributes": _ALIVE} if finds_attributes else {})}
        self._ended = threading.Event()
        self._gone = threading.Event()

    def begin(self) -> None:
        """Start the heartbeat of this worker."""
        not_waiting().run(self._look)
        run_beside(partial(not_waiting().run, self._work))

    def end(self) -> None:
        """Stop the heartbeat."""
        self._ended.set()
        self._gone.wait(10.0)

    def _work(self) -> None:
        pause, is_well = min(_HEARTBEAT_SECONDS, self._milliseconds / 4000), True
        while not self._ended.wait(pause):
            try:
                self._look_for_messages()
                self._look()
                is_well = True
            except Exception:
                if is_well and not self._ended.is_set():
                    is_well = False
                    _logger.warning("a worker of durable runs could not tell that it lives: it goes on trying", exc_info=True)
        try:
            self._executions.leave()
        except Exception:
            _logger.warning("a worker that shuts down could not note which runs it leaves", exc_info=True)
        self._gone.set()

    def _beat(self) -> list[WorkflowStatus]:
        """Write a heartbeat; return the status of all workers."""
        own = f"{_WORKER} {self._worker}"
        DBOS.update_workflow_attributes(own, _ALIVE)
        known: list[WorkflowStatus] = DBOS.list_workflows(**self._workers, load_input=False, load_output=False)
        if all(one.workflow_id != own for one in known):
            start_workflow(own, _worker, self._worker).get_result()
            return self._beat()
        return known

    def _look(self) -> None:
        """Write a heartbeat; if this is the first living worker, check for runs of silent ones.

        Pending runs are read where a worker is silent, and once in a lease for those of one that told nothing: no index finds them.
        """
        names = {one.workflow_id.removeprefix(f"{_WORKER} "): one.updated_at or 0 for one in self._beat()}
        before, self._reported_at = self._reported_at, names[self._worker]
        if self._reported_at - before > self._milliseconds:
            self._waits_until = self._reported_at + self._milliseconds
        silent_since = self._reported_at - self._milliseconds
        first = min(name for name, reported_at in names.items() if reported_at >= silent_since)
        is_due = self._looked_at < silent_since or min(names.values()) < silent_since
        if first == self._worker and self._reported_at >= self._waits_until and is_due:
            self._looked_at = self._reported_at
            self._take_over(names, silent_since)
        if self._looked_at_own < silent_since:
            self._looked_at_own = self._reported_at
            self._look_for_not_begun()

    def _take_over(self, names: Mapping[str, int], silent_since: float) -> None:
        """Resume the runs of workers that have been silent since then, and delete their rows."""
        for run in DBOS.list_workflows(status="PENDING", app_version=self._version, load_input=False, load_output=False):
            reported_at = names.get(str(run.executor_id), run.updated_at or 0)  # one that never told anything took its run at that time
            if reported_at < silent_since and run.name != _WORKER:
                _logger.warning("the worker %s is silent: its run %s is taken over", run.executor_id, run.workflow_id)
                DBOS.resume_workflow(run.workflow_id, queue_name=run.queue_name)
        silent = [f"{_WORKER} {name}" for name, reported_at in names.items() if reported_at < silent_since]
        if silent:
            DBOS.delete_workflows(silent)

    def _look_for_not_begun(self) -> None:
        """Let runs that this worker took, and has not begun since the last look, wait again; end those that have no request."""
        own: dict[str, Any] = {"status": "PENDING", "executor_id": self._worker, "queues_only": True}
        taken = DBOS.list_workflows(**own, load_input=False, load_output=False)
        ids = [run.workflow_id for run in taken if run.name in self._kinds and run.workflow_id not in self._executions.cancelled]
        before, self._not_begun = self._not_begun, set()
        for run in DBOS.list_workflows(workflow_ids=ids, load_output=False) if ids else ():
            if run.input is None:
                _logger.warning("the request of the run %s is missing: the run ends", run.workflow_id)
                DBOS.cancel_workflow(run.workflow_id)
            elif (run.workflow_id, run.dequeued_at) in before:
                _logger.warning("the run %s was taken and has not begun: it waits again", run.workflow_id)
                DBOS.resume_workflow(run.workflow_id, queue_name=run.queue_name)
            else:
                self._not_begun.add((run.workflow_id, run.dequeued_at))

    def _look_for_messages(self) -> None:
        """Cancel runs in this process that were cancelled in another one, and tell them of messages that were sent there to steer them."""
        flags = (CANCELLED, self._executions.cancelled), (STEERS, self._executions.awaited)
        asked = [run_id for _, known in flags for run_id in list(known)]
        for run in DBOS.list_workflows(workflow_ids=asked, load_input=False, load_output=False) if asked else ():
            for name, known in flags:
                flag = known.get(run.workflow_id)
                if flag is not None and isinstance(run.attributes, Mapping) and run.attributes.get(name):
                    flag.set()


_worker: Any = DBOS.workflow(name=_WORKER)(lambda worker: worker)  # exists to be touched


def start_workflow(workflow_id: str, workflow: Any, argument: Any) -> Any:
    """Start a workflow under an id, unless it exists; return its handle."""
    with SetWorkflowID(workflow_id):
        return DBOS.start_workflow(workflow, argument)


# ---------------------------------------------------------------------------------------------- a run that ends its workers
#
# A tool or a model may end its process: with a fault in native code, or for want of memory. Its run goes on in the next worker, and would
# end that one too, with all other runs of it. So each execution is noted in the attributes of its run before it begins. One counts
# against the run if its worker fell silent in it before anything more was recorded; one that recorded something, or that `shutdown` left,
# does not. Once one counts, the run is under suspicion: a worker begins such runs one at a time, each until it has recorded something.
# After some that count, one after another, the run is read as far as it is recorded, and ends as failed.


class Execution:
    """One execution of a run in this process.

    Args:
        run_id: The run.
        turnstile: The turnstile that suspected runs pass one at a time.
        awaited: Takes what tells the run of messages that steer it, by the id of the run that has the next one.

    Attributes:
        id: Names the execution.
        started: When the first execution of the run began.
        cancelled: Set when somebody has cancelled the run.
        refusal: Why nothing may be begun that is not recorded; None where it may.
        messages: The messages of the last request.
        recorded_steps: The names of the steps that earlier executions have recorded.
        steers: Whether an earlier run may have taken the run's message.
        arrived: Set when there may be messages that steer the run.
    """

    def __init__(self, run_id: str, turnstile: "Turnstile", awaited: dict[str, threading.Event]) -> None:
        self.run_id = run_id
        self.id = uuid.uuid4().hex
        self.started = 0.0
        self.cancelled = threading.Event()
        self.refusal: str | None = None
        self.messages: Sequence[BaseMessage] = ()
        self.recorded_steps: Container[str] = ()
        self.steers = False
        self.arrived = threading.Event()
        self._turnstile = turnstile
        self._awaited = awaited
        self._awaits: str | None = None

    def recorded(self) -> None:
        """Record progress of the execution, which is no longer suspected of crashing the process."""
        self._turnstile.leave(self)

    def await_run(self, run_id: str | None) -> None:
        """Set `arrived` as soon as a run of this id is there to steer this one; of no other. None: of none."""
        if self._awaits is not None and self._awaited.get(self._awaits) is self.arrived:
            del self._awaited[self._awaits]
        self._awaits = run_id
        if run_id is not None:
            self._awaited[run_id] = self.arrived


class Executions:
    """The executions of one launch.

    Args:
        worker: The worker's id.
        limit: The maximum number of consecutive lost executions of a run.
        cancelled: Takes what cancels each run that is executed here.
        clock: Seconds since the epoch.

    Attributes:
        awaited: What tells runs that are executed here of messages that steer them, by the ids of the runs that will have these.
    """

    def __init__(self, worker: str, limit: int, cancelled: dict[str, threading.Event], clock: Callable[[], float]) -> None:
        self.worker = worker
        self.cancelled = cancelled
        self.awaited: dict[str, threading.Event] = {}
        self._limit = limit
        self._clock = clock
        self._launch = uuid.uuid4().hex
        self._turnstile = Turnstile()
        self._running: set[Execution] = set()

    @contextmanager
    def begun(self, run_id: str, behind: str | None = None) -> Iterator[Execution]:
        """A context manager for an execution of a run.

        Args:
            run_id: The run.
            behind: The id of the run that may steer it, whether that is there or not; None if none may.

        Raises:
            RunFailedError: Even to read what is recorded of the run has ended its worker.
        """
        execution = Execution(run_id, self._turnstile, self.awaited)
        self.cancelled[run_id] = execution.cancelled  # an execution that has lost the run may have one yet
        execution.await_run(behind)
        try:
            Context().run(self._begin, execution, behind)
            yield execution
        except WorkerEndingError:
            if execution in self._running:
                Context().run(self._leave, execution)
            raise
        finally:
            self._running.discard(execution)
            self._turnstile.leave(execution)
            execution.await_run(None)
            if self.cancelled.get(run_id) is execution.cancelled:
                del self.cancelled[run_id]

    def tell(self, run_id: str) -> None:
        """Tell the execution that awaits a run, if one does, that it is there."""
        if (flag := self.awaited.get(run_id)) is not None:
            flag.set()

    def leave(self) -> None:
        """Record that the current executions are left on purpose."""
        self._turnstile.close()
        for execution in list(self._running):
            self._running.discard(execution)
            self._leave(execution)

    def _leave(self, execution: Execution) -> None:
        DBOS.update_workflow_attributes(execution.run_id, {_LEFT: execution.id}, merge=True)

    def _begin(self, execution: Execution, behind: str | None) -> None:
        asked = [execution.run_id, *([] if behind is None else [behind])]
        found = {run.workflow_id: run.attributes for run in DBOS.list_workflows(workflow_ids=asked, load_input=False, load_output=False)}
        with reading(f"the attributes of run {execution.run_id!r}"):
            attributes = _execution_attributes(found.get(execution.run_id) or {})
        if isinstance(steering := found.get(str(behind)), Mapping) and steering.get(STEERS):
            execution.arrived.set()
        if attributes.get(CANCELLED):
            execution.cancelled.set()
        execution.steers = bool(attributes.get(STEERS))
        execution.started = attributes.get(_EXECUTION, {}).get("started") or self._clock()
        steps = lost = 0
        if _EXECUTION in attributes:
            execution.recorded_steps = names = [
                step["function_name"] for step in DBOS.list_workflow_steps(execution.run_id, load_output=False)
            ]
            steps = len(names)
            lost = self._lost(execution.run_id, attributes, steps)
        if lost:
            self._turnstile.enter(execution)
        if lost >= self._limit:
            execution.refusal = (
                f"the run was given up: in {lost} executions, one after the other, its worker fell silent before anything more was recorded"
                f" (the last one was {attributes[_EXECUTION]['worker']}). A tool or the model may have ended the process"
            )
        if lost > self._limit:
            raise RunFailedError(execution.refusal)
        counted = {"steps": steps, "lost": lost, "started": execution.started}
        began = {"id": execution.id, "launch": self._launch, "worker": self.worker, **counted}
        DBOS.update_workflow_attributes(execution.run_id, {_EXECUTION: began}, merge=True)
        self._running.add(execution)

    def _lost(self, run_id: str, attributes: Mapping[str, Any], steps: int) -> int:
        """Return the number of consecutive lost executions of a run."""
        last = attributes[_EXECUTION]
        if steps > last["steps"]:
            return 0
        lost = int(last["lost"])
        if attributes.get(_LEFT) == last["id"] or last["launch"] == self._launch:
            return lost
        _logger.warning(
            "the worker %s fell silent in the run %s before anything was recorded: %s of at most %s times",
            *(last["worker"], run_id, lost + 1, self._limit),
        )
        return lost + 1


class Turnstile:
    """Admits executions of suspected runs one at a time."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside: Execution | None = None
        self._until = 0.0
        self._closed = False

    def enter(self, execution: Execution) -> None:
        """Wait until no other execution is inside, then enter. A cancelled one does not wait and begins nothing.

        Raises:
            WorkerEndingError: The worker shuts down, and the execution has not begun.
        """
        with self._changed:
            while self._inside is not None and time.monotonic() < self._until and not self._closed:
                if execution.cancelled.is_set():
                    return
                self._changed.wait(_TURN_POLL_SECONDS)
            if self._closed:
                raise WorkerEndingError("the worker shuts down before the execution has begun")
            self._inside, self._until = execution, time.monotonic() + _LONGEST_TURN_SECONDS

    def leave(self, execution: Execution) -> None:
        """Admit the next one, if this execution is inside."""
        with self._changed:
            if self._inside is execution:
                self._inside = None
                self._changed.notify_all()

    def close(self) -> None:
        """Admit no more executions."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


def _execution_attributes(data: Any) -> Mapping[str, Any]:
    """Return the attributes of a run, which must be of their form where an execution has noted something.

    Raises:
        TypeError: They are not.
    """
    attributes = mapping_of(data)
    if _EXECUTION in attributes:
        noted = mapping_of(attributes[_EXECUTION], "id", "launch", "worker", "steps", "lost", "started")
        checked(noted, steps=int, lost=int, started=int | float)
    return attributes


# ---------------------------------------------------------------------------------------------- a full disk
#
# DBOS waits for a database that is away, and for a PostgreSQL whose disk is full: it tries again after a second, later after a minute. A
# SQLite file that cannot be written it does not know, and would record that the run has failed. So such an error is called a lost
# connection here, which is how an engine of SQLAlchemy says that a statement is worth another try. A client that sends a message, and a
# worker that tells that it lives, do not wait; who waits for a run does, as long as its timeout says.


_waits_for_disk: ContextVar[bool] = ContextVar("autotools_waits_for_storage", default=True)


def not_waiting() -> Context:
    """Return a new context in which a disk error is raised."""
    context = Context()
    context.run(_waits_for_disk.set, False)
    return context


def is_of_disk(error: BaseException) -> bool:
    """Whether a statement failed because of the disk. Reading may: SQLite first rolls back what a failed write has left."""
    return isinstance(error, DBAPIError) and _is_of_disk(error.orig)


def _is_of_disk(error: BaseException | None) -> bool:
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF in _WRITES_NOTHING


def engine_keywords(lifetime: Lifetime, created: Callable[[Any], None]) -> dict[str, Any]:
    """Return keywords for SQLAlchemy engines whose statements wait for disk space until the worker ends; `created` takes each engine."""
    return {"plugins": [_PLUGIN], _LIFETIME_KEY: lifetime, _CREATED_KEY: created, "hide_parameters": True}


class StoragePlugin:
    """The `CreateEnginePlugin` that SQLAlchemy calls when it creates the engine."""

    def __init__(self, url: Any, keywords: dict[str, Any]) -> None:
        self._lifetime: Lifetime = keywords.pop(_LIFETIME_KEY)
        self._created: Callable[[Any], None] = keywords.pop(_CREATED_KEY)
        self._lock = threading.Lock()
        self._silent_until = 0.0

    def update_url(self, url: Any) -> Any:
        """Return the URL unchanged."""
        return url

    def handle_dialect_kwargs(self, dialect: Any, keywords: dict[str, Any]) -> None:
        """Leave the keywords of the dialect unchanged."""

    def handle_pool_kwargs(self, pool: Any, keywords: dict[str, Any]) -> None:
        """Leave the keywords of the pool unchanged."""

    def engine_created(self, engine: Any) -> None:
        """Listen to the engine's errors."""
        self._created(engine)
        event.listen(engine, "handle_error", self._failed)

    def _failed(self, context: Any) -> None:
        error = context.original_exception
        if not _is_of_disk(error):
            return
        if _waits_for_disk.get() and not self._lifetime.is_shut_down:
            context.is_disconnect = True
            context.invalidate_pool_on_disconnect = False
            with suppress(sqlite3.Error):  # roll back: a connection that is only closed keeps its lock while the error exists
                if context.connection is not None:
                    context.connection.connection.dbapi_connection.rollback()
            with self._lock:
                is_new = time.monotonic() >= self._silent_until
                self._silent_until = time.monotonic() + _WARNING_SECONDS
            if is_new:
                _logger.warning("the database of durable runs cannot be written (%s): they wait until it can", error)


plugins.register(_PLUGIN, __name__, "StoragePlugin")
