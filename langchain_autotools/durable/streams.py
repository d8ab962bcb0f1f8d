"""Events of runs as they stand in the database's streams: of one run while it is written, and of many that have ended."""

import json
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from typing import Any

from dbos import DBOS
from dbos import error as dbos_error
from sqlalchemy import and_, column, or_, select, table
from sqlalchemy.exc import SQLAlchemyError

from .engine import engine
from .errors import RunFailedError
from .live import STREAM
from .recorded_texts import with_texts
from .stored import reading

GOES_ON = ("ENQUEUED", "PENDING", "DELAYED")
"""The states of a run that has not ended."""

_PORTABLE = "portable_json"  # what DBOS calls the form in which all is stored here


def rows_of(had: Mapping[str, int]) -> dict[str, list[Any]]:
    """Return the rows of runs, of each those after so many, in one statement. In place of one that cannot be read stands the error.

    DBOS reads streams one by one, so its table is read here. What goes wrong with that does not matter: DBOS reads it then.
    """
    if not had:
        return {}
    rows: dict[str, list[Any]] = {run_id: [] for run_id in had}
    try:
        for run_id, value, form in _read(had):
            if form != _PORTABLE:
                raise LookupError(form)
            rows[run_id].append(_row(run_id, value, json.loads))
    except (LookupError, SQLAlchemyError):
        return {run_id: _alone(run_id, number) for run_id, number in had.items()}
    return rows


def _alone(run_id: str, had: int) -> list[Any]:
    rows: list[Any] = []
    try:
        with (
            reading(f"a row of the events of run {run_id!r}"),
            suppress(dbos_error.DBOSStreamTimeoutError, dbos_error.DBOSNonExistentWorkflowError),  # it goes on, or was deleted
            closing(DBOS.read_stream(run_id, STREAM, offset=had, timeout_seconds=0)) as stream,
        ):
            rows.extend(_row(run_id, row, lambda read: read) for row in stream)
    except RunFailedError as error:
        rows.append(error)
    return rows


def _row(run_id: str, value: Any, read: Callable[[Any], Any]) -> Any:
    try:
        with reading(f"a row of the events of run {run_id!r}"):
            return with_texts(run_id, read(value))
    except RunFailedError as error:
        return error


def _read(had: Mapping[str, int]) -> list[Any]:
    names = ("workflow_uuid", "value", "serialization", "key", "offset")
    streams = table("streams", *map(column, names), schema=None if engine.is_sqlite else "dbos")
    run_id, value, form, key, offset = (streams.c[name] for name in names)
    whole = [one for one, number in had.items() if not number]
    behind = [and_(run_id == one, offset >= number) for one, number in had.items() if number]
    wanted = select(run_id, value, form).where(key == STREAM, or_(run_id.in_(whole), *behind)).order_by(run_id, offset)
    with engine.database.connect() as connection:
        return list(connection.execute(wanted))
