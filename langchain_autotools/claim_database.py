"""`claims(url)`: a store of claims in SQLite or PostgreSQL, for decisions that are carried out once by any number of processes.

Each process holds a lock that dies with it: a locked file beside an SQLite database, an advisory lock of PostgreSQL. A row names the
process of its owner, so that what a dead one has left can be told from what a living one does, however long a tool takes.
"""

import atexit
import json
import os
import secrets
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import SecretStr

from .errors import ConfigurationError

_EXTRA = "claims(url) needs the extra `durable`: pip install 'langchain-autotools-chat[durable]'"
_DRIVERS = {"postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}
_TABLE = "autotools_claims"


def claims(url: SecretStr | str, *, timeout: float = 10.0) -> "DatabaseClaims":
    """Return a store for `claim=` in a database that all processes share; needs the extra `durable`.

    Its table, `autotools_claims`, is made when the store is first used. Rows stay: those that were `made` so long ago that nobody resumes
    their histories any more may be deleted.

    Args:
        url: `sqlite:///claims.db`, for processes of one machine, or `postgresql://user:password@host/database`, not through a pooler that
            lends a session to several clients. It is treated as a secret.
        timeout: Maximum number of seconds that the database may take to answer; nothing begins then.

    Raises:
        ConfigurationError: The extra is not installed, or the URL is that of no such database.
    """
    return DatabaseClaims(url, timeout=timeout)


class DatabaseClaims:
    """A store of claims in SQLite or PostgreSQL, as `claims` returns it.

    A pickle holds the URL without its password, which the database's own means supply (`PGPASSWORD`, a password file).

    Args:
        url: The database.
        timeout: Maximum number of seconds that it may take to answer.

    Raises:
        ConfigurationError: As of `claims`.
    """

    def __init__(self, url: SecretStr | str, *, timeout: float = 10.0) -> None:
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
            raise ConfigurationError(f"timeout must be a number of seconds greater than 0, not {timeout!r}")
        self._timeout = timeout
        self._url = _read_url(url)
        self._engine, self._insert = _engine(self._url, timeout)
        self._processes = _processes_of(self._url, self._engine)

    def __repr__(self) -> str:
        return f"claims({self._url.drivername!r})"

    def __getstate__(self) -> dict[str, Any]:
        url = type(self._url).create(*self._url[:2], None, *self._url[3:])
        return {"url": url.render_as_string(hide_password=False), "timeout": self._timeout}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["url"], timeout=state["timeout"])  # type: ignore[misc]

    def __deepcopy__(self, memo: Any) -> "DatabaseClaims":
        return self

    # ------------------------------------------------------------------------------------------ the store

    def take(self, key: str, owner: str) -> Literal["mine", "running", "left"] | Mapping[str, Any]:
        """Claim a key; see `ClaimStore.take`."""
        from sqlalchemy import select

        process, rows = self._processes.own(), self._rows
        new = {"key": key, "owner": owner, "process": process, "state": "taken"}
        with self._engine.connect() as database:
            while True:
                if database.execute(self._insert(rows).values(new).on_conflict_do_nothing()).rowcount == 1:
                    return "mine"
                row = database.execute(select(rows).where(rows.c.key == key)).first()
                if row is None:  # it was given back in this moment
                    continue
                if row.state == "done":
                    value: Mapping[str, Any] = json.loads(row.value)
                    return value
                if row.owner == owner:
                    return "mine"
                if row.owner and self._processes.is_alive(row.process):
                    return "running"
                same = (rows.c.key == key, rows.c.owner == row.owner, rows.c.state == row.state)
                if database.execute(rows.update().where(*same).values(owner=owner, process=process)).rowcount == 1:
                    return "left" if row.state == "begun" else "mine"

    def begin(self, key: str, owner: str) -> bool:
        """Mark a key as begun; False where it is not the owner's."""
        return self._set(key, owner, state="begun")

    def done(self, key: str, owner: str, value: Mapping[str, Any]) -> bool:
        """Keep what came of a key; False where it is not the owner's."""
        return self._set(key, owner, state="done", value=json.dumps(value))

    def release(self, key: str, owner: str) -> None:
        """Give back a key of the owner's."""
        rows = self._rows
        with self._engine.connect() as database:
            database.execute(rows.delete().where(rows.c.key == key, rows.c.owner == owner, rows.c.state != "done"))

    def end(self, owner: str) -> None:
        """Treat the owner as dead."""
        rows = self._rows
        with self._engine.connect() as database:
            database.execute(rows.update().where(rows.c.owner == owner, rows.c.state != "done").values(owner=""))

    def _set(self, key: str, owner: str, **values: str) -> bool:
        rows = self._rows
        with self._engine.connect() as database:
            made: bool = database.execute(rows.update().where(rows.c.key == key, rows.c.owner == owner).values(values)).rowcount == 1
        return made

    # ------------------------------------------------------------------------------------------ the database

    @cached_property
    def _rows(self) -> Any:
        """The table, which is there."""
        from sqlalchemy import Column, DateTime, MetaData, Table, Text, func, inspect
        from sqlalchemy.exc import DBAPIError
        from sqlalchemy.schema import CreateTable

        texts = [Column(name, Text, nullable=name == "value") for name in ("owner", "process", "state", "value")]
        made = Column("made", DateTime(timezone=True), server_default=func.now())
        table = Table(_TABLE, MetaData(), Column("key", Text, primary_key=True), *texts, made)
        with self._engine.connect() as database:
            if not inspect(database).has_table(_TABLE):
                try:
                    database.execute(CreateTable(table, if_not_exists=True))
                except DBAPIError:
                    if not inspect(database).has_table(_TABLE):  # else another process has made it in this moment
                        raise
        return table


def _is_postgres(url: Any) -> bool:
    return bool(url.get_backend_name() == "postgresql")


def _engine(url: Any, timeout: float) -> tuple[Any, Any]:
    """Return the engine of a database, and how rows are inserted in its dialect.

    Raises:
        ConfigurationError: Its driver is not installed.
    """
    from sqlalchemy import NullPool, create_engine
    from sqlalchemy.dialects import postgresql, sqlite
    from sqlalchemy.exc import NoSuchModuleError

    limit = max(1, round(timeout * 1000))
    limits: dict[str, Any] = {"timeout": timeout}
    if _is_postgres(url):
        limits = {"connect_timeout": -(-limit // 1000), "tcp_user_timeout": limit, "options": f"-c statement_timeout={limit}"}
    # a connection of its own for each step: processes fork, and a step is rare
    options: dict[str, Any] = {"poolclass": NullPool, "isolation_level": "AUTOCOMMIT", "hide_parameters": True}
    try:
        engine = create_engine(url, connect_args=limits, **options)
    except (ImportError, NoSuchModuleError) as error:
        raise ConfigurationError(f"claims: the driver of {url.drivername} is not installed: {error}") from error
    return engine, (postgresql if _is_postgres(url) else sqlite).insert


def _read_url(url: SecretStr | str) -> Any:
    """Return the URL of a database, as SQLAlchemy has it; a relative path of SQLite is one of the folder that the process is in now."""
    try:
        import filelock as filelock
        from sqlalchemy import make_url
        from sqlalchemy.exc import ArgumentError
    except ImportError as error:
        raise ConfigurationError(_EXTRA) from error
    try:
        known = make_url(url.get_secret_value() if isinstance(url, SecretStr) else url)
    except ArgumentError:
        raise ConfigurationError("claims takes the URL of a database: sqlite:///claims.db, or postgresql://...") from None
    known = known.set(drivername=_DRIVERS.get(known.drivername, known.drivername))
    if known.get_backend_name() == "sqlite":
        if known.database in (None, "", ":memory:") or known.query:
            raise ConfigurationError("claims need a file that all processes share: sqlite:///claims.db")
        return known.set(database=str(Path(str(known.database)).absolute()))
    if known.get_backend_name() != "postgresql":
        raise ConfigurationError(f"claims are kept in SQLite or PostgreSQL, not in {known.get_backend_name()}")
    return known


# ---------------------------------------------------------------------------------------------- which processes are alive


class _Processes(Protocol):
    """The processes that use a store, each known by a token whose lock it holds."""

    def own(self) -> str:
        """Return the token of this process, whose lock it holds from now on."""

    def is_alive(self, token: str) -> bool:
        """Whether a process holds the lock of this token."""


_of_databases: dict[str, _Processes] = {}
_registering = threading.Lock()


def _processes_of(url: Any, engine: Any) -> _Processes:
    """Return the processes that use a database: one lock of this process serves all of its stores, as long as it lives."""
    key = url.render_as_string(hide_password=False)
    with _registering:
        known = _of_databases.get(key)
        if known is None:
            known = _of_databases[key] = _AdvisoryLocks(engine) if _is_postgres(url) else _LockedFiles(Path(str(url.database)))
    return known


class _LockedFiles:
    """Processes of one machine, each with a locked file beside the database.

    Args:
        database: The file of the database.
    """

    def __init__(self, database: Path) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._held: tuple[int, str, Any] = (0, "", None)

    def _file(self, token: str) -> Path:
        return self._database.with_name(f"{self._database.name}-{token}.lock")

    def own(self) -> str:
        from filelock import FileLock

        with self._lock:
            process, token, _ = self._held
            if process != os.getpid():  # also after a fork: the lock of the parent is not that of the child
                token = secrets.token_hex(8)
                lock = FileLock(self._file(token), thread_local=False)
                lock.acquire()
                self._held = os.getpid(), token, lock
                atexit.register(self._remove, os.getpid(), token, lock)
        return token

    def _remove(self, process: int, token: str, lock: Any) -> None:
        if process == os.getpid():
            lock.release()
            self._file(token).unlink(missing_ok=True)

    def is_alive(self, token: str) -> bool:
        from filelock import FileLock, Timeout

        file = self._file(token)
        if token == self._held[1] or not file.exists():
            return token == self._held[1]
        try:
            with FileLock(file, timeout=0, thread_local=False):
                with suppress(OSError):
                    file.unlink()
                return False
        except Timeout:
            return True


class _AdvisoryLocks:
    """Processes that share a database of PostgreSQL, each with a session that holds an advisory lock.

    Args:
        engine: The database.
    """

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._held: tuple[int, str, Any] = (0, "", None)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._detach)

    def _detach(self) -> None:
        """Keep a forked process from ending the session of its parent when it ends itself: it has the same socket."""
        session = self._held[2]
        if session is not None and not session.invalidated:
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.dup2(nowhere, session.connection.dbapi_connection.fileno())
            os.close(nowhere)

    def own(self) -> str:
        from sqlalchemy import text
        from sqlalchemy.exc import DBAPIError

        with self._lock:
            process, token, session = self._held
            try:
                if process == os.getpid():
                    session.execute(text("SELECT 1"))
                    return token
            except DBAPIError:
                session.invalidate()  # and the lock went with it
            number = secrets.randbits(62)
            session = self._engine.connect()
            session.execute(text("SELECT pg_advisory_lock(:number)"), {"number": number})
            self._held = os.getpid(), str(number), session
            return str(number)

    def is_alive(self, token: str) -> bool:
        from sqlalchemy import text

        asked = text(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            " AND (classid::bigint << 32) + objid::bigint = :number"
        )
        with self._engine.connect() as database:
            return bool(database.execute(asked, {"number": int(token)}).scalar())
