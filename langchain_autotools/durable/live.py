"""Events of a run during its execution, written to the database in batches, each by a step."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial

from dbos import DBOS, StepReservation

from ..event_bus import Listener, Place, listening
from ..event_types import RunEvent
from ..executor.workers.threads import run_beside
from .event_rows import joined, row_of
from .plain import storable
from .recorded_texts import RecordedTexts
from .stored import reading

STREAM = "run"
"""The key of the workflow's stream that readers follow."""

_BATCH_SECONDS = 0.1  # how long events wait for more, so that each batch and not each word is a row


class NotRecorded(BaseException):
    """Raised to leave a step without a record: DBOS records only errors that are an `Exception`."""


class LiveEvents:
    """Writes the events of one execution of a run's workflow into its stream.

    The step that does so lasts as long as the run. It is recorded when all is written; an execution whose process died is followed by
    one that tells again, under another name, what the journal knows. So rows are there at least once, and `Story` reads each thing once.

    Args:
        execution: Names the execution.
        texts: The large texts that are recorded elsewhere.
    """

    def __init__(self, execution: str, texts: RecordedTexts) -> None:
        self._execution = execution
        self._texts = texts
        self._listener = Listener()
        self._changed = threading.Event()
        self._over = threading.Event()
        self._died = False
        self._began = False
        self._error: BaseException | None = None
        self._ended = threading.Event()

    @contextmanager
    def written(self) -> Iterator[None]:
        """A context manager that writes the events of the runs inside. Raises writing errors unless the body raises."""
        step = DBOS.reserve_step()
        run_beside(partial(copy_context().run, self._work, step))
        before = listening.set(Place(self._listener))
        try:
            yield
        except BaseException as error:
            self._died = not isinstance(error, Exception)
            raise
        finally:
            listening.reset(before)
            self._over.set()
            self._changed.set()
            self._ended.wait()
        if self._error is not None:
            raise self._error

    def _work(self, step: StepReservation) -> None:
        try:
            with reading(f"a step of run {DBOS.workflow_id!r}", lambda: self._began):
                step.run({"name": "events"}, self._write)
        except NotRecorded:
            pass
        except BaseException as error:  # for the thread of the run: above all that the run is no longer this execution's
            self._error = error
        finally:  # also where they were written before, or the run is another worker's now
            self._listener.close(left=False)
            self._ended.set()

    def _write(self) -> None:
        self._began = True
        waiting, over = self._listener.waiting, self._over
        with self._listener.waking(self._changed.set):
            self._changed.set()  # the run may have told something before
            while not over.is_set() or waiting:
                self._changed.wait()
                self._changed.clear()
                if self._died:
                    raise NotRecorded
                events: list[RunEvent] = []
                while waiting:
                    joined(events, waiting.popleft())
                if events:
                    row = storable({"execution": self._execution, "events": [row_of(event) for event in events]})
                    DBOS.write_stream(STREAM, self._texts.named(row))
                    over.wait(_BATCH_SECONDS)
