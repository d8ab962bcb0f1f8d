"""The worker of the durable runs among the cases of failover: one for the process, over a database of its own."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NoReturn

from langchain_autotools import new_messages
from tests.laws.ways import Ran, run

_NAME = "a case of failover"


class Worker:
    """Runs models durably, one after another, all under one name."""

    def __init__(self) -> None:
        from tests.support.durable import Life

        self._folder = tempfile.TemporaryDirectory()
        self._life = Life(Path(self._folder.name))
        self._numbers = itertools.count()
        self._died = False
        self._is_launched = False

    def runs(self, model: Any) -> Callable[..., Ran]:
        """Return what runs this model from now on, as `run` does."""
        from langchain_autotools.durable import durable

        kept = durable(model, _NAME, rerun=["look"])
        if not self._is_launched:
            self._life.begin()
            self._is_launched = True
        return partial(self._run, kept)

    def _run(self, kept: Any, way: str, messages: Any, **keywords: Any) -> Ran:
        run_id = f"run {next(self._numbers)}"
        ran = run(way, kept, [*messages], run_id=run_id, **keywords)
        if self._died:
            self._died = False
            self._life.again()
            message = kept.result(run_id)
            return Ran(new=new_messages(message), message=message)
        return ran

    def crash(self) -> NoReturn:
        """Let the worker die, as far as its runs can tell."""
        from tests.support.durable import crash

        self._died = True
        crash()

    def stop(self) -> None:
        """End it."""
        from langchain_autotools.durable import shutdown

        shutdown()
        self._folder.cleanup()


@cache
def worker() -> Worker:
    """Return the worker of this process."""
    return Worker()


def stop_worker() -> None:
    """End the worker, if there is one."""
    if worker.cache_info().currsize:
        worker().stop()
        worker.cache_clear()
