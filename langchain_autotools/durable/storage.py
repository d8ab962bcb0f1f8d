"""Handling of a full disk: recording waits until there is space again.

DBOS waits for a database that is away, and for a PostgreSQL whose disk is full: it tries again after a second, later after a minute. A
SQLite file that cannot be written it does not know, and would record that the run has failed. So such an error is called a lost connection
here, which is how an engine of SQLAlchemy says that a statement is worth another try. A client that sends a message, and a worker that
tells that it lives, do not wait; who waits for a run does, as long as its timeout says.
"""

import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, ContextVar
from typing import Any

from sqlalchemy import event
from sqlalchemy.dialects import plugins
from sqlalchemy.exc import DBAPIError

from .ending import Lifetime

_logger = logging.getLogger("langchain_autotools")

_NAME = "langchain_autotools"
_LIFETIME = "autotools_lifetime"
_CREATED = "autotools_created"
_WRITES_NOTHING = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}
_SAYS_SECONDS = 60.0

_waits: ContextVar[bool] = ContextVar("autotools_waits_for_storage", default=True)


def not_waiting() -> Context:
    """Return a new context in which a disk error is raised."""
    context = Context()
    context.run(_waits.set, False)
    return context


def is_of_disk(error: BaseException) -> bool:
    """Whether a statement failed because of the disk. Reading may: SQLite first rolls back what a failed write has left."""
    return isinstance(error, DBAPIError) and _is_of_disk(error.orig)


def _is_of_disk(error: BaseException | None) -> bool:
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF in _WRITES_NOTHING


def engine_keywords(lifetime: Lifetime, created: Callable[[Any], None]) -> dict[str, Any]:
    """Return keywords for SQLAlchemy engines whose statements wait for disk space until the worker ends; `created` takes each engine."""
    return {"plugins": [_NAME], _LIFETIME: lifetime, _CREATED: created, "hide_parameters": True}


class StoragePlugin:
    """The `CreateEnginePlugin` that SQLAlchemy calls when it creates the engine."""

    def __init__(self, url: Any, keywords: dict[str, Any]) -> None:
        self._lifetime: Lifetime = keywords.pop(_LIFETIME)
        self._created: Callable[[Any], None] = keywords.pop(_CREATED)
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
        if _waits.get() and not self._lifetime.is_shut_down:
            context.is_disconnect = True
            context.invalidate_pool_on_disconnect = False
            _roll_back(context)
            self._say(error)

    def _say(self, error: sqlite3.Error) -> None:
        with self._lock:
            is_new = time.monotonic() >= self._silent_until
            self._silent_until = time.monotonic() + _SAYS_SECONDS
        if is_new:
            _logger.warning("the database of durable runs cannot be written (%s): they wait until it can", error)


def _roll_back(context: Any) -> None:
    """Roll the transaction back: a connection that is only closed keeps its lock while the error exists."""
    with suppress(sqlite3.Error):
        if context.connection is not None:
            context.connection.connection.dbapi_connection.rollback()


plugins.register(_NAME, __name__, "StoragePlugin")
