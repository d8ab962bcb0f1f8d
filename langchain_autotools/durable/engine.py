"""DBOS in this process: launched once, with one worker's id, over one database."""

import hashlib
import logging
import math
import socket
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, suppress
from contextvars import Context
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from dbos import DBOS, DBOSPortableJSONSerializer
from filelock import FileLock, Timeout
from langchain_core.messages import BaseMessage

from ..errors import ConfigurationError, EventsInterruptedError
from ..executor.user_functions import run_beside, running_loop
from .stored import copy_of
from .workers import CANCELLED, Execution, Executions, Lease, Lifetime, WorkerEndingError, engine_keywords, not_waiting

_logger = logging.getLogger("langchain_autotools")

_PROTOCOL = 2
"""The version of a run's steps and records. A run continues only in processes of its own version."""

VERSION = f"langchain-autotools-{_PROTOCOL}"
_DEFAULT_URL = "sqlite:///autotools_runs.sqlite"
_WORKERS_OF_A_MACHINE = 1000
_MOST = 32_000_000  # characters of JSON, of all that is kept
_T = TypeVar("_T")


# ---------------------------------------------------------------------------------------------- what is kept in memory of ended runs


class EndedRuns(Generic[_T]):
    """A cache of ended runs, bounded by size; those that were not used for longest make room.

    Args:
        limit: Maximum total size of what is kept.
    """

    def __init__(self, limit: int = _MOST) -> None:
        self._limit = limit
        self._size = 0
        self._kept: OrderedDict[str, tuple[int, _T]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, run_id: str) -> _T | None:
        """Return a run; None if it is not kept."""
        with self._lock:
            if run_id not in self._kept:
                return None
            self._kept.move_to_end(run_id)
            return self._kept[run_id][1]

    def put(self, run_id: str, run: _T, size: int) -> None:
        """Keep a run that has ended, if it is not larger than all that may be kept."""
        self.forget([run_id])
        with self._lock:
            self._kept[run_id] = size, run
            self._size += size
            while self._size > self._limit:
                self._size -= self._kept.popitem(last=False)[1][0]

    def forget(self, run_ids: Iterable[str]) -> None:
        """Forget runs that were deleted."""
        with self._lock:
            for run_id in run_ids:
                self._size -= self._kept.pop(run_id, (0, None))[0]


# ---------------------------------------------------------------------------------------------- transcripts
#
# The messages of a conversation, as stored and as the last run here had them. The next run has the same message objects, as far as they
# still are what is stored: what the models derived from them is found again, and none of them is copied. A message that a tool or callback
# has changed in place is copied from what is stored.


@dataclass(frozen=True)
class Transcript:
    """The messages of the first runs of a conversation, all of which have ended for good.

    Attributes:
        runs: The number of these runs.
        size: The number of characters of their input and output as JSON.
        stored: Their messages as stored, which nobody changes.
        given: The messages that the next run was given, and those that it made, as far as its requests had them.
    """

    runs: int = 0
    size: int = 0
    stored: Sequence[BaseMessage] = ()
    given: Sequence[BaseMessage] = field(default=(), repr=False)

    def again(self, stored: Sequence[BaseMessage]) -> list[BaseMessage]:
        """Return messages that a run may change, for stored ones: those that were given before where they are unchanged, and copies."""
        given = self.given[: len(stored)]
        if _equal(given, stored[: len(given)]):
            return [*given, *map(copy_of, stored[len(given) :])]
        kept = [one if _equal([one], [there]) else copy_of(there) for one, there in zip(given, stored, strict=False)]
        return [*kept, *map(copy_of, stored[len(given) :])]


def _equal(some: Sequence[BaseMessage], others: Sequence[BaseMessage]) -> bool:
    """Whether messages are of the same classes, and have equal fields."""
    with suppress(Exception):  # a foreign object whose comparison is no truth value took another's place
        return [*map(type, some)] == [*map(type, others)] and [*map(vars, some)] == [*map(vars, others)]
    return False


# ---------------------------------------------------------------------------------------------- the engine


@dataclass
class Engine:
    """The durable runtime of this process.

    Attributes:
        workflows: The workflows by name, as DBOS runs them.
        bodies: The body of each workflow, by name: takes the id of its run and its request, and returns the outcome.
        queues: The queues that this process takes runs from, and how many at a time; 0 for none.
        wanted: The database that somebody has asked for before the launch.
        last: The database of the last launch that has ended, which the next one has unless it names another.
        url: The database; None before the launch.
        clock: Seconds since the epoch.
        cancelled: The cancellation flags of the runs that are executed here.
        executions: The executions of the last launch; None before the first.
        shutdowns: The number of calls of `shutdown` in this process.
        lifetime: That of the last launch.
        database: SQLAlchemy's engine of the last launch.
        ended_runs: Runs that have ended, of this launch's database.
        transcripts: The messages of conversations that had a run here, by the beginning of its id, of this launch's database.
    """

    workflows: dict[str, Callable[..., Any]] = field(default_factory=dict)
    bodies: dict[str, Callable[[str, dict[str, Any]], dict[str, Any]]] = field(default_factory=dict)
    queues: dict[str, int] = field(default_factory=dict)
    wanted: str | None = None
    last: str | None = None
    url: str | None = None
    clock: Callable[[], float] = time.time
    cancelled: dict[str, threading.Event] = field(default_factory=dict)
    shutdowns: int = 0
    lifetime: Lifetime = field(default_factory=Lifetime)
    database: Any = None
    ended_runs: EndedRuns[Any] = field(default_factory=EndedRuns)
    transcripts: EndedRuns[Transcript] = field(default_factory=EndedRuns)
    lock: threading.RLock = field(default_factory=threading.RLock)
    held: FileLock | None = None
    lease: Lease | None = None
    executions: Executions | None = None

    def keep(self, database: Any) -> None:
        """Keep SQLAlchemy's engine of a launch: the first one, as DBOS makes another one to create a database."""
        self.database = self.database or database

    @property
    def is_sqlite(self) -> bool:
        """Whether the database is SQLite."""
        return (self.url or "").startswith("sqlite")


engine = Engine()
"""The engine of this process."""


def launch(
    url: str | None = None,
    worker: str | None = None,
    *,
    lease: float = 30.0,
    poll_interval: float = 0.1,
    max_silent_executions: int = 3,
    clock: Callable[[], float] = time.time,
) -> str:
    """Begin to execute durable runs in this process: first its own earlier ones, then new ones and those of silent workers.

    Call it after `durable` was called for each model. The first durable run calls it with its defaults.

    Args:
        url: The database: `sqlite:///file` or `postgresql://...`. By default that of the last launch that has ended,
            where there was one, else the file `autotools_runs.sqlite` in the working directory.
        worker: The id of this worker: no other live one has it, and it has it again after a restart. By default one is made of the
            machine's name, and no two processes of a machine have the same.
        lease: After how many seconds of silence the runs of another worker are taken over.
        poll_interval: How many seconds pass between two looks of a worker for messages that wait. One interval holds for all workers of a
            database: that of the last launch.
        max_silent_executions: In how many executions in a row the worker of a run may fall silent before anything more of the run is
            recorded. After these the run ends as failed: it may be what ends its workers.
        clock: Seconds since the epoch, by which deadlines are counted.

    Returns:
        The worker's id.

    Raises:
        ConfigurationError: This process has launched with another database or worker, or uses DBOS by itself; or another process of
            this machine is the same worker; or `max_silent_executions` is no number from 1 on; or `poll_interval` is no number of
            seconds.
    """
    if isinstance(poll_interval, bool) or not (isinstance(poll_interval, int | float) and 0 < poll_interval < math.inf):
        raise ConfigurationError(f"poll_interval must be a number of seconds, not {poll_interval!r}")
    if isinstance(max_silent_executions, bool) or not isinstance(max_silent_executions, int) or max_silent_executions < 1:
        raise ConfigurationError(f"max_silent_executions must be a number from 1 on, not {max_silent_executions!r}")
    place = url or engine.url or engine.wanted or engine.last or _DEFAULT_URL
    return str(outside(_launch, place, worker, lease, poll_interval, max_silent_executions, clock))


def _launch(
    url: str, worker: str | None, lease: float, poll_interval: float, max_silent_executions: int, clock: Callable[[], float]
) -> str:
    with engine.lock:
        if engine.url is not None:
            if url != engine.url or worker not in (None, DBOS.executor_id):
                raise ConfigurationError("this process has launched with another database or worker: DBOS has one of each in a process")
            return str(DBOS.executor_id)
        own, engine.database = _worker_id(url, worker), None
        lifetime = Lifetime()
        config: Any = {
            "name": "langchain-autotools",
            "system_database_url": url,
            "executor_id": own,
            "application_version": VERSION,
            "serializer": DBOSPortableJSONSerializer(),
            "sys_db_idle_transaction_timeout_sec": max(1.0, lease / 2),  # one that is lost in a transaction must not keep its runs locked
            "db_engine_kwargs": engine_keywords(lifetime, engine.keep),
            "log_level": "ERROR",
            "enable_otlp": False,
        }
        DBOS(config=config)
        if (DBOS.executor_id, DBOS.application_version) != (own, VERSION):
            _release()
            raise ConfigurationError("this process uses DBOS by itself: durable runs need a process where they launch it")
        engine.lifetime, engine.ended_runs, engine.transcripts = lifetime, EndedRuns(), EndedRuns()
        engine.executions = Executions(own, max_silent_executions, engine.cancelled, clock)
        finds = not url.startswith("sqlite")
        engine.lease = Lease(engine.executions, VERSION, lease, engine.workflows, finds_attributes=finds)
        try:
            served = {name: at_once for name, at_once in engine.queues.items() if at_once}
            DBOS.listen_queues(list(served))
            DBOS.launch()
            for name, at_once in served.items():
                DBOS.register_queue(
                    name,
                    partition_concurrency=1,
                    worker_concurrency=at_once,
                    polling_interval_sec=poll_interval,
                    on_conflict="always_update",
                )
            engine.lease.begin()
        except BaseException:
            engine.lease = None
            DBOS.destroy()
            _release()
            raise
        engine.url, engine.clock = url, clock
        return own


def shutdown() -> None:
    """End what `launch` began. Runs in execution are left as after a crash."""
    with engine.lock:
        engine.shutdowns += 1
        engine.lifetime.is_shut_down = True
        if engine.lease is not None:
            engine.lease.end()
        if engine.url is not None:
            outside(DBOS.destroy)
        engine.last = engine.url or engine.last
        engine.url = engine.lease = engine.wanted = None
        _release()


def register(name: str, body: Callable[[str, dict[str, Any]], dict[str, Any]]) -> None:
    """Register a function as the body of a workflow.

    Raises:
        ConfigurationError: Workers have been launched in this process without a workflow of this name.
    """
    if name not in engine.workflows:
        if engine.url is not None:
            raise ConfigurationError("call durable for each model before launch: runs that wait for this one would not have found it")
        engine.workflows[name] = _workflow(name)
    engine.bodies[name] = body


def begun(run_id: str, behind: str | None = None) -> AbstractContextManager[Execution]:
    """Return the context of one execution of a run in this process; `behind` is the id of the run that may steer it."""
    if engine.executions is None:
        raise WorkerEndingError("a run is executed where somebody has launched")
    return engine.executions.begun(run_id, behind)


def _workflow(name: str) -> Callable[..., Any]:
    def run(request: dict[str, Any]) -> dict[str, Any]:
        lifetime = engine.lifetime
        with lifetime.left():
            outcome = engine.bodies[name](str(DBOS.workflow_id), request)
        if lifetime.is_shut_down:  # nobody can record it any more
            lifetime.leave(None)
        return outcome

    def validated(stored: tuple[Any, ...], named: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the request, or None, which the body refuses: over some others DBOS would fail, and leave the run pending."""
        return (stored[0] if len(stored) == 1 and named == {} else None,), {}

    workflow: Callable[..., Any] = DBOS.workflow(name=name, validate_args=validated)(run)  # typed only where DBOS is installed
    return workflow


def cancel_run(run_id: str) -> None:
    """Cancel a run, wherever it is executed.

    Its row says so first: an execution that begins between the two steps reads it there. One that goes on in this process ends also where
    the database fails.
    """
    try:
        outside(DBOS.update_workflow_attributes, run_id, {CANCELLED: True}, merge=True)
    finally:
        if (flag := engine.cancelled.get(run_id)) is not None:
            flag.set()


def outside(function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    """Return a function's result, called outside any workflow, step and event loop.

    In a workflow each request to DBOS would be a step, and on a loop DBOS rejects it. Only a workflow waits for a disk that is full."""
    around = not_waiting() if DBOS.workflow_id is None else Context()
    asked = partial(around.run, function, *args, **keywords)
    if running_loop() is None:
        return asked()
    outcome: Future[Any] = Future()

    def answer() -> None:
        try:
            outcome.set_result(asked())
        except BaseException as error:
            outcome.set_exception(error)

    run_beside(answer)
    return outcome.result()


class Link:
    """The database of the current launch, for readers that may outlast the launch."""

    def __init__(self) -> None:
        self._shutdowns = engine.shutdowns

    def ask(self, function: Callable[..., _T], *args: Any) -> _T:
        """Return the result of a function that queries the database.

        Raises:
            EventsInterruptedError: `shutdown` was called since the link was made.
        """
        self.check()
        try:
            return function(*args)
        except Exception:
            self.check()
            raise

    @property
    def is_current(self) -> bool:
        """Whether `shutdown` was not called since the link was made."""
        return engine.shutdowns == self._shutdowns

    def check(self) -> None:
        """Raise if `shutdown` was called since the link was made.

        Raises:
            EventsInterruptedError: It was.
        """
        if not self.is_current:
            raise EventsInterruptedError("this process has shut down: read on after the last position, here after a launch or elsewhere")


def _worker_id(url: str, worker: str | None) -> str:
    """Return the worker's id, held by a lock that ends with the process."""
    file = url.removeprefix("sqlite:///")
    place = url if file == url else str(Path(file).resolve())  # whatever the working directory is
    names = [worker] if worker else [f"{socket.gethostname()}-{number}" for number in range(1, _WORKERS_OF_A_MACHINE)]
    folder = Path(tempfile.gettempdir()) / "langchain-autotools-workers"
    with suppress(FileExistsError):
        folder.mkdir()
        folder.chmod(0o1777)  # for the workers of all users of the machine
    for name in names:
        lock = FileLock(folder / hashlib.sha256(f"{place}\n{name}".encode()).hexdigest()[:32])
        try:
            lock.acquire(timeout=0)
        except (Timeout, PermissionError):  # the file of another user
            continue
        engine.held = lock
        return name
    raise ConfigurationError(f"another process of this machine is the worker {worker!r}: two workers with one id would run the same steps")


def _release() -> None:
    if engine.held is not None:
        engine.held.release()
        engine.held = None
