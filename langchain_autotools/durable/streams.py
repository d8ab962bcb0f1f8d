"""Events of runs as they stand in the database's streams: of one run while it is written, and of many that have ended."""

import json
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from dbos import DBOS
from dbos import error as dbos_error
from sqlalchemy import column, select, table
from sqlalchemy.exc import SQLAlchemyError

from .engine import engine, outside
from .live import STREAM
from .recorded_texts import with_texts

_PORTABLE = "portable_json"  # what DBOS calls the form in which all is stored here


def rows_behind(run_id: str, had: int) -> tuple[list[Any], bool]:
    """Return the rows of a run after this many, and whether they are the last."""
    rows: list[Any] = []
    has_ended = True
    try:
        with closing(DBOS.read_stream(run_id, STREAM, offset=had, timeout_seconds=0)) as stream:
            rows.extend(stream)
    except dbos_error.DBOSStreamTimeoutError:
        has_ended = False
    except dbos_error.DBOSNonExistentWorkflowError:  # it was deleted
        pass
    return [with_texts(run_id, row) for row in rows], has_ended


def rows_of_ended(run_ids: Sequence[str]) -> dict[str, list[Any]]:
    """Return the rows of runs that have ended, in one statement; nothing of a run whose rows have to be read by themselves.

    DBOS reads streams one by one, so its table is read here. What goes wrong with that does not matter: DBOS tries again.
    """
    rows: dict[str, list[Any]] = {run_id: [] for run_id in run_ids}
    try:
        for run_id, value, form in outside(_read, run_ids) if run_ids else ():
            if run_id in rows and form == _PORTABLE:
                rows[run_id].append(with_texts(run_id, json.loads(value)))
            else:
                rows.pop(run_id, None)
    except SQLAlchemyError:
        return {}
    return rows


def _read(run_ids: Sequence[str]) -> list[Any]:
    names = ("workflow_uuid", "value", "serialization", "key", "offset")
    streams = table("streams", *map(column, names), schema=None if engine.is_sqlite else "dbos")
    run_id, value, form, key, offset = (streams.c[name] for name in names)
    wanted = select(run_id, value, form).where(run_id.in_(run_ids), key == STREAM).order_by(run_id, offset)
    if engine.database is None:
        return []
    with engine.database.connect() as connection:
        return list(connection.execute(wanted))
