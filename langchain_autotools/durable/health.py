"""Health of the runs of conversations: waiting, running and stalled ones."""

import time
from collections.abc import Iterable
from dataclasses import dataclass

from dbos import DBOS

from .conversation_run import ConversationRun
from .conversation_runs import ConversationRuns
from .engine import outside

_OPEN = ["ENQUEUED", "PENDING"]  # what DBOS has an index of


@dataclass(frozen=True)
class Health:
    """The health of the runs of all conversations of one name, in all processes.

    Attributes:
        queued: Number of runs that wait, for a worker or for the run before them in their conversation.
        running: Number of runs that a worker executes, or executed when it died.
        oldest_waiting: For how many seconds the run has waited that has waited longest for a worker; 0.0 where none does. A run that
            waits for another one of its conversation waits for no worker.
        stalled: The ids of the running ones that have recorded nothing for long.
    """

    queued: int
    running: int
    oldest_waiting: float
    stalled: tuple[str, ...]


def health_of(runs: ConversationRuns, stalled_after: float) -> Health:
    """See `Conversations.health`."""
    now = time.time()
    found = runs.found(queue_name=runs.queue, status=_OPEN)
    waiting, running = [run for run in found if run.waits], [run for run in found if run.goes_on]
    oldest = min(_since(runs, found), default=now)
    stalled = tuple(run.id for run in running if _progress(run, now - stalled_after) < now - stalled_after)
    return Health(len(waiting), len(running), max(0.0, now - oldest), stalled)


def _since(runs: ConversationRuns, found: Iterable[ConversationRun]) -> list[float]:
    """Return the times since which runs have waited for a worker: since sending, or since the end of the run before."""
    next_ones: dict[str, ConversationRun] = {}
    for run in sorted(found, key=lambda run: run.number, reverse=True):
        next_ones[run.conversation] = run
    ready = {run.beside(run.number - 1): run for run in next_ones.values() if run.waits}
    since = {key: run.begun for key, run in ready.items()}
    for before in runs.by_id(ready):
        since[before.id] = max(since[before.id], before.ended or before.begun)
    return [when.timestamp() for when in since.values()]


def _progress(run: ConversationRun, enough: float) -> float:
    """Return the time of a run's last record; any time not before `enough` if that is recent enough."""
    begun = (run.status.dequeued_at or run.status.updated_at or 0) / 1000
    if begun >= enough:
        return begun
    steps = outside(DBOS.list_workflow_steps, run.id, load_output=False)
    return max([begun, *((step["completed_at_epoch_ms"] or 0) / 1000 for step in steps)])
