"""Heartbeats of workers, and the takeover of runs of a worker that has fallen silent.

All by what DBOS offers: each worker is the name of a workflow that ended long ago, whose attributes it touches now and then; the
database's own clock says when. What a worker that is silent left pending is found by its id (`list_workflows(status=)`) and
resumed (`resume_workflow`), by one of those that live: the first by name, so that no two do it. A worker that was only slow finds at its
next step that its runs are no longer its own, and leaves them. A worker that has told nothing yet may hold runs already, as DBOS takes
them from its queue: it is silent when it has held one for that long. Where the database was away, all workers were silent: whoever was
silent itself gives the others the time of a lease to come back. The row of a worker that has nothing left is deleted; one that comes back
makes it anew.

Each worker also looks for runs that it took and never began: a database that fails between the two leaves them to nobody, and a run whose
stored request is gone cannot begin at all.
"""

import logging
import math
import threading
from collections.abc import Callable, Container, Mapping
from functools import partial
from typing import Any

from dbos import DBOS, SetWorkflowID, WorkflowStatus

from ..executor.workers.threads import run_beside
from .storage import not_waiting

_logger = logging.getLogger("langchain_autotools")

CANCELLED = "autotools_cancelled"
"""The attribute of a run's workflow that marks its cancellation."""

_WORKER = "langchain_autotools worker"
_ALIVE = {"alive": True}
_LOOKS_SECONDS = 1.0


def _is_there(worker: str) -> str:
    """Do nothing: the workflow exists to be touched."""
    return worker


_worker: Any = DBOS.workflow(name=_WORKER)(_is_there)


class Lease:
    """The background work of this worker.

    Args:
        worker: Its id.
        version: The application version of the runs that it can go on with.
        seconds: After how much silence of another worker its runs are taken over.
        cancelled: The cancellation flags of the runs that are executed here.
        leave: Notes that the runs that are executed here are left on purpose.
        kinds: The names of the workflows that runs are: a program may have others.
        finds_attributes: Whether the database finds rows by their attributes: else it reads all of them to find the workers.
    """

    def __init__(
        self,
        worker: str,
        version: str,
        seconds: float,
        cancelled: Mapping[str, threading.Event],
        leave: Callable[[], None],
        kinds: Container[str],
        *,
        finds_attributes: bool,
    ) -> None:
        self._worker = worker
        self._version = version
        self._milliseconds = seconds * 1000
        self._reported_at = math.inf  # by the database's clock, as all that follows
        self._waits_until = 0.0
        self._looked_at = -math.inf
        self._looked_at_own = -math.inf
        self._not_begun: set[tuple[str, int | None]] = set()  # with the times at which they were taken
        self._cancelled = cancelled
        self._leave = leave
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
        pause, is_well = min(_LOOKS_SECONDS, self._milliseconds / 4000), True
        while not self._ended.wait(pause):
            try:
                self._look_for_cancelled()
                self._look()
                is_well = True
            except Exception:
                if is_well and not self._ended.is_set():
                    is_well = False
                    _logger.warning("a worker of durable runs could not tell that it lives: it goes on trying", exc_info=True)
        try:
            self._leave()
        except Exception:
            _logger.warning("a worker that shuts down could not note which runs it leaves", exc_info=True)
        self._gone.set()

    def _beat(self) -> list[WorkflowStatus]:
        """Write a heartbeat; return the status of all workers."""
        own = f"{_WORKER} {self._worker}"
        DBOS.update_workflow_attributes(own, _ALIVE)
        known: list[WorkflowStatus] = DBOS.list_workflows(**self._workers, load_input=False, load_output=False)
        if all(one.workflow_id != own for one in known):
            with SetWorkflowID(own):
                DBOS.start_workflow(_worker, self._worker).get_result()
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
        ids = [run.workflow_id for run in taken if run.name in self._kinds and run.workflow_id not in self._cancelled]
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

    def _look_for_cancelled(self) -> None:
        """Cancel runs in this process that were cancelled in another one."""
        here = list(self._cancelled)
        if not here:
            return
        for run in DBOS.list_workflows(workflow_ids=here, load_input=False, load_output=False):
            flag = self._cancelled.get(run.workflow_id)
            if flag is not None and isinstance(run.attributes, Mapping) and run.attributes.get(CANCELLED):
                flag.set()
