"""`python -m tests.kills.frozen`: a worker is frozen in a transaction that locks its run, as if its machine were lost."""

import json
import os
import signal
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Engine

from tests.support.postgres import postgres

from .harness import Figures, in_child, kill, launched, look
from .worker import Place, effects_of, in_postgresql, stay, work

RUNS = ["frozen0", "frozen1"]
_SOON = 30.0  # DBOS by itself lets a transaction idle for a minute


def freeze_in_transaction(place: Place) -> None:
    """Stop this process once its tools have done something, before a transaction ends that has locked a run."""
    locking = set()

    def begun(connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if "owner_xid" in statement and "FOR NO KEY UPDATE" in statement:
            locking.add(connection)

    def ends(connection: Any) -> None:
        if connection in locking and effects_of(place.folder):
            os.kill(os.getpid(), signal.SIGSTOP)
            time.sleep(_SOON)  # the signal may stop another thread first

    event.listen(Engine, "before_cursor_execute", begun)
    event.listen(Engine, "commit", ends)
    work(place, "freezes", "sync", RUNS)


def main() -> None:
    """Freeze a worker, have another one take over, and print what the runs came to."""
    with postgres() as server, tempfile.TemporaryDirectory() as folder:
        (home := Path(folder) / "frozen").mkdir()
        place = in_postgresql(home, server)
        lives_on = launched(place, "lives on", lambda: stay(place, "lives on"))
        freezes = launched(place, "freezes", lambda: freeze_in_transaction(place))
        try:
            _, status = os.waitpid(freezes, os.WUNTRACED)
            assert os.WIFSTOPPED(status), f"the worker ended with {status}"
            child = in_child(lambda: _look(place), longest=_SOON)
            _, status = os.waitpid(child, 0)
            assert status == 0, "the runs were not taken over"
        finally:
            kill(freezes)
            kill(lives_on)


def _look(place: Place) -> None:
    figures = Figures()
    look(place, RUNS, figures)
    print(json.dumps(asdict(figures)), flush=True)


if __name__ == "__main__":
    main()
