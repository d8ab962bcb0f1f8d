"""A PostgreSQL server of this machine's own package (Debian's `postgresql`), on loopback, that ends with its test."""

import os
import pwd
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

_OWNER = "postgres"
_PATIENCE = 60.0
_PORTS = 20_000, 32_000
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    "fsync": "off",  # what a machine loses that goes down is not tested here
    "synchronous_commit": "off",
    "full_page_writes": "off",
}


class PostgresMissingError(Exception):
    """There is no server to start."""


def programs() -> Path:
    """The folder of the newest server's programs.

    Raises:
        PostgresMissingError: Debian's package is not installed, or root has no unprivileged user to run it as.
    """
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda file: int(re.sub(r"\D", "", file.parts[-3]) or 0))
    if not found:
        raise PostgresMissingError("no PostgreSQL server under /usr/lib/postgresql: install Debian's package `postgresql`")
    if os.geteuid() == 0 and _unprivileged() is None:
        raise PostgresMissingError("PostgreSQL refuses to run as root, and there is neither a user `postgres` nor a user `nobody`")
    return found[-1].parent


def _unprivileged() -> pwd.struct_passwd | None:
    users = {user.pw_name: user for user in pwd.getpwall()}
    return users.get("postgres") or users.get("nobody")


class PostgresServer:
    """A running server.

    Args:
        programs: The folder of its programs.
        port: Where it listens.
    """

    def __init__(self, programs: Path, port: int) -> None:
        self._programs = programs
        self._port = port

    def url(self, database: str) -> str:
        """The URL of a database."""
        return f"postgresql://{_OWNER}@127.0.0.1:{self._port}/{database}"

    def create(self, database: str, on: Path | None = None) -> str:
        """Create an empty database, in a tablespace of its own `on` another disk if that is given; returns its URL."""
        if on is not None:
            (tables := on / "tables").mkdir()
            user = _unprivileged() if os.geteuid() == 0 else None
            if user is not None:
                os.chown(tables, user.pw_uid, user.pw_gid)
            self._run("psql", "-c", f"create tablespace {database} location '{tables}'", "postgres")
        self._run("createdb", *([] if on is None else ["-D", database]), database)
        return self.url(database)

    def dump(self, database: str) -> str:
        """All rows of a database."""
        return self._run("pg_dump", "--data-only", database)

    def _run(self, program: str, *arguments: str) -> str:
        command = [str(self._programs / program), "-h", "127.0.0.1", "-p", str(self._port), "-U", _OWNER, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=True).stdout

    def wait(self, server: "subprocess.Popen[bytes]") -> None:
        """Wait until it answers."""
        ready = [str(self._programs / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self._port)]
        until = time.monotonic() + _PATIENCE
        while subprocess.run(ready, timeout=_PATIENCE, check=False).returncode:
            assert server.poll() is None and time.monotonic() < until, "the PostgreSQL server does not start"
            time.sleep(0.05)


def _free_port() -> int:
    """A port that nobody listens on, below those that the system gives to whoever asks for any: tests beside this one do."""
    while True:
        port = random.randrange(*_PORTS)
        with socket.socket() as free, suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port


@contextmanager
def postgres() -> Iterator[PostgresServer]:
    """A server with an empty cluster, which ends with the block.

    Raises:
        PostgresMissingError: There is none to start.
    """
    found = programs()
    folder = Path(tempfile.mkdtemp(prefix="postgres"))
    user = _unprivileged() if os.geteuid() == 0 else None
    who: dict[str, Any] = {"cwd": folder}
    if user is not None:
        os.chown(folder, user.pw_uid, user.pw_gid)
        who |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    try:
        command = [
            str(found / "initdb"),
            "-D",
            str(folder / "data"),
            "-U",
            _OWNER,
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
        ]
        subprocess.run(command, capture_output=True, timeout=_PATIENCE, check=True, **who)
        port = _free_port()
        settings = [f"--{name}={value}" for name, value in _SETTINGS.items()]
        command = [str(found / "postgres"), "-D", str(folder / "data"), "-p", str(port), *settings]
        with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log, **who) as process:
            server = PostgresServer(found, port)
            try:
                server.wait(process)
                yield server
            finally:
                process.send_signal(signal.SIGINT)  # PostgreSQL's "fast" shutdown: clients that are still there are sent away
                process.wait(_PATIENCE)
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A server for all tests of a session; skips where there is none."""
    try:
        programs()
    except PostgresMissingError as missing:
        pytest.skip(str(missing))
    with postgres() as server:
        yield server
