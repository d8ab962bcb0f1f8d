"""The PostgreSQL server of tests."""

import subprocess
from contextlib import closing

import pytest

from tests.support.postgres import PostgresMissingError, PostgresServer, postgres, postgres_server, programs

__all__ = ["postgres_server"]

psycopg = pytest.importorskip("psycopg", reason="needs the extra `durable`")


def test_databases_stand_for_themselves(postgres_server: PostgresServer) -> None:
    """Each created database is empty, is reached by its URL, and is dumped alone."""
    for name in ("one", "two"):
        with closing(psycopg.connect(postgres_server.create(name), autocommit=True)) as client:
            client.execute("create table notes (said text)")
            client.execute("insert into notes values (%s)", [f"this is {name}"])
    assert "this is one" in postgres_server.dump("one") and "this is two" not in postgres_server.dump("one")


def test_a_server_ends_with_its_block() -> None:
    """Clients that are still connected are sent away, and nothing listens any more."""
    try:
        programs()
    except PostgresMissingError as missing:
        pytest.skip(str(missing))
    with postgres() as server:
        client = psycopg.connect(server.create("one"))
    with closing(client), pytest.raises(psycopg.OperationalError):
        client.execute("select 1")
    with pytest.raises(subprocess.CalledProcessError):
        server.create("two")
