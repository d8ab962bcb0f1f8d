"""Executions of runs in this process: detection of runs that end their worker each time.

A tool or a model may end its process: with a fault in native code, or for want of memory. Its run goes on in the next worker, and would
end that one too, with all other runs of it. So each execution is noted in the attributes of its run before it begins. One counts against
the run if its worker fell silent in it before anything more was recorded; one that recorded something, or that `shutdown` left, does not.
Once one counts, the run is under suspicion: a worker begins such runs one at a time, each until it has recorded something. After some that
count, one after another, the run is read as far as it is recorded, and ends as failed.
"""

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import Context
from typing import Any

from dbos import DBOS
from langchain_core.messages import BaseMessage

from .ending import WorkerEndingError
from .errors import RunFailedError
from .leases import CANCELLED
from .stored import checked, mapping_of, reading

_logger = logging.getLogger("langchain_autotools")

_EXECUTION = "autotools_execution"  # the attribute that describes the last execution that began
_LEFT = "autotools_left_execution"  # the attribute that names the last execution that `shutdown` left
_LONGEST_SECONDS = 300.0  # for how long a run under suspicion keeps others waiting: it may wait for one of them itself
_LOOKS_SECONDS = 0.2  # how often a run that waits looks whether it still must


def _attributes_of(data: Any) -> Mapping[str, Any]:
    """Return the attributes of a run, which must be of their form where an execution has noted something.

    Raises:
        TypeError: They are not.
    """
    attributes = mapping_of(data)
    if _EXECUTION in attributes:
        noted = mapping_of(attributes[_EXECUTION], "id", "launch", "worker", "steps", "lost", "started")
        checked(noted, steps=int, lost=int, started=int | float)
    return attributes


class Execution:
    """One execution of a run in this process.

    Args:
        run_id: The run.
        turnstile: The turnstile that suspected runs pass one at a time.

    Attributes:
        id: Names the execution.
        started: When the first execution of the run began.
        cancelled: Set when somebody has cancelled the run.
        refusal: Why nothing may be begun that is not recorded; None where it may.
        messages: The messages of the last request.
    """

    def __init__(self, run_id: str, turnstile: "Turnstile") -> None:
        self.run_id = run_id
        self.id = uuid.uuid4().hex
        self.started = 0.0
        self.cancelled = threading.Event()
        self.refusal: str | None = None
        self.messages: Sequence[BaseMessage] = ()
        self._turnstile = turnstile

    def recorded(self) -> None:
        """Record progress of the execution, which is no longer suspected of crashing the process."""
        self._turnstile.leave(self)


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
                self._changed.wait(_LOOKS_SECONDS)
            if self._closed:
                raise WorkerEndingError("the worker shuts down before the execution has begun")
            self._inside, self._until = execution, time.monotonic() + _LONGEST_SECONDS

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


class Executions:
    """The executions of one launch.

    Args:
        worker: The worker's id.
        limit: The maximum number of consecutive lost executions of a run.
        cancelled: Takes what cancels each run that is executed here.
        clock: Seconds since the epoch.
    """

    def __init__(self, worker: str, limit: int, cancelled: dict[str, threading.Event], clock: Callable[[], float]) -> None:
        self._worker = worker
        self._limit = limit
        self._cancelled = cancelled
        self._clock = clock
        self._launch = uuid.uuid4().hex
        self._turnstile = Turnstile()
        self._running: set[Execution] = set()

    @contextmanager
    def begun(self, run_id: str) -> Iterator[Execution]:
        """A context manager for an execution of a run.

        Raises:
            RunFailedError: Even to read what is recorded of the run has ended its worker.
        """
        execution = Execution(run_id, self._turnstile)
        self._cancelled[run_id] = execution.cancelled  # an execution that has lost the run may have one yet
        try:
            Context().run(self._begin, execution)
            yield execution
        except WorkerEndingError:
            if execution in self._running:
                Context().run(self._leave, execution)
            raise
        finally:
            self._running.discard(execution)
            self._turnstile.leave(execution)
            if self._cancelled.get(run_id) is execution.cancelled:
                del self._cancelled[run_id]

    def leave(self) -> None:
        """Record that the current executions are left on purpose."""
        self._turnstile.close()
        for execution in list(self._running):
            self._running.discard(execution)
            self._leave(execution)

    def _leave(self, execution: Execution) -> None:
        DBOS.update_workflow_attributes(execution.run_id, {_LEFT: execution.id}, merge=True)

    def _begin(self, execution: Execution) -> None:
        found = DBOS.list_workflows(workflow_ids=[execution.run_id], load_input=False, load_output=False)
        with reading(f"the attributes of run {execution.run_id!r}"):
            attributes = _attributes_of((found[0].attributes if found else None) or {})
        if attributes.get(CANCELLED):
            execution.cancelled.set()
        execution.started = attributes.get(_EXECUTION, {}).get("started") or self._clock()
        steps = lost = 0
        if _EXECUTION in attributes:
            steps = len(DBOS.list_workflow_steps(execution.run_id, load_output=False))
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
        began = {"id": execution.id, "launch": self._launch, "worker": self._worker, **counted}
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
