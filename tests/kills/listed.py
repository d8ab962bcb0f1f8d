"""`python -m tests.kills.listed [100000] [--database sqlite]`: how long it takes to list so many conversations of three runs.

A conversation is made by sending, and copied by SQL: 100 to an owner, one every half minute. Each way of listing is measured five times;
of PostgreSQL the nodes of the query plans are shown that read a table. Prints JSON.
"""

import argparse
import json
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any

import sqlalchemy
from sqlalchemy.engine import Engine

from langchain_autotools.durable import Conversations, launch, shutdown
from langchain_autotools.durable.engine import engine
from langchain_autotools.testing import ScriptedChatModel
from tests.support.postgres import postgres

RUNS, OF_AN_OWNER, EVERY, TIMES = 3, 100, 30_000, 5

COPY = """
with recursive numbers(i) as (select 1 union all select i + 1 from numbers where i < :count)
insert into {table} ({columns}) select {values} from {table} t, numbers where t.queue_name like '%Conversations%'
"""
VALUES = {
    "workflow_uuid": "replace(t.workflow_uuid, 'template', 'c' || i)",
    "queue_partition_key": "replace(t.queue_partition_key, 'template', 'c' || i)",
    "authenticated_user": "replace(t.authenticated_user, 'template', '' || (i % :owners))",
    "attributes": "{json}replace(replace(t.attributes{text}, 'owner template', 'owner ' || (i % :owners)), 'template', 'c' || i){end}",
    **{column: f"t.{column} - (:count - i) * cast({EVERY} as bigint)" for column in ("created_at", "updated_at", "completed_at")},
}


def ways(chats: Conversations) -> dict[str, Callable[[], Any]]:
    """What is measured."""
    since = datetime.now(UTC) - timedelta(hours=1)
    return {
        "list(50)": lambda: chats.list(50),
        'list(50, order="activity")': lambda: chats.list(50, order="activity"),
        'list(owner=..., order="activity")': lambda: chats.list(owner="owner 7", order="activity"),
        "list(updated_after=an hour ago)": lambda: chats.list(updated_after=since),
        "list(labels=...) of 100": lambda: chats.list(labels={"of": "owner 7"}),
        "info(...)": lambda: chats.info("c7"),
        "health()": chats.health,
        "once a second, each worker": lambda: engine.lease and engine.lease._beat(),
    }


def fill(url: str, chats: Conversations, count: int) -> None:
    """Make one conversation, and copies of it."""
    for text in ("Hello", "How are you?", "Bye")[:RUNS]:
        chats.result(chats.send("template", text, owner="owner template", labels={"of": "owner template"}))
    sqlite = url.startswith("sqlite")
    database = sqlalchemy.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    table = "workflow_status" if sqlite else "dbos.workflow_status"
    with database.begin() as connection:
        columns = [one["name"] for one in sqlalchemy.inspect(connection).get_columns("workflow_status", None if sqlite else "dbos")]
        casts = {"json": "", "text": "", "end": ""} if sqlite else {"json": "cast(", "text": "::text", "end": " as jsonb)"}
        values = [VALUES.get(column, f"t.{column}").format(**casts) for column in columns]
        statement = COPY.format(table=table, columns=", ".join(columns), values=", ".join(values))
        connection.execute(sqlalchemy.text(statement), {"count": count, "owners": count // OF_AN_OWNER})
    with database.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("analyze" if sqlite else f"vacuum analyze {table}")
    database.dispose()
    chats.delete("template")


@contextmanager
def asked(statements: list[tuple[str, Any]]) -> Iterator[None]:
    """Note the statements that list workflows, in this thread."""
    here = threading.get_ident()

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if threading.get_ident() == here and "workflow_status.workflow_uuid" in statement:
            statements.append((statement, parameters))

    sqlalchemy.event.listen(Engine, "before_cursor_execute", note)
    try:
        yield
    finally:
        sqlalchemy.event.remove(Engine, "before_cursor_execute", note)


def plans(url: str, way: Callable[[], Any]) -> list[str]:
    """The nodes that read a table, of each statement of a way."""
    statements: list[tuple[str, Any]] = []
    with asked(statements):
        way()
    database, found = sqlalchemy.create_engine(url.replace("postgresql://", "postgresql+psycopg://")), []
    with database.connect() as connection:
        for statement, parameters in statements[:4]:
            lines = [row[0] for row in connection.exec_driver_sql(f"explain (analyze, timing off) {statement}", parameters)]
            nodes = [re.sub(r" +\(cost=.*?\)", "", line).strip(" ->") for line in lines if " Scan" in line]
            found.append(f"{'; '.join(nodes)}; {lines[-1]}")
    database.dispose()
    return found


def measured(url: str, count: int) -> dict[str, Any]:
    """What the ways take over a database: milliseconds, conversations and plans."""
    chats = Conversations(ScriptedChatModel(replies=lambda messages, **_: "Yes."), url, name="listed")
    launch(url)
    try:
        fill(url, chats, count)
        figures: dict[str, Any] = {}
        for name, way in ways(chats).items():
            times = []
            for _ in range(TIMES):
                begun = time.perf_counter()
                found = way()
                times.append(time.perf_counter() - begun)
            figures[name] = {"milliseconds": round(1000 * median(times), 1), "found": len(found) if isinstance(found, list) else None}
            if not url.startswith("sqlite"):
                figures[name]["plans"] = plans(url, way)
        return figures
    finally:
        shutdown()


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=100_000)
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="postgresql")
    asked_for = parser.parse_args()
    if asked_for.database == "postgresql":
        with postgres() as server:
            print(json.dumps(measured(server.create("listed"), asked_for.count), indent=2))
    else:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(measured(f"sqlite:///{folder}/runs.sqlite", asked_for.count), indent=2))


if __name__ == "__main__":
    main()
