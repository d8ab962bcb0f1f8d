"""SQL statements, counted."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy
from sqlalchemy.engine import Engine


@contextmanager
def statements(thread: str | None = None) -> Iterator[list[str]]:
    """Note the statements that are made inside.

    Args:
        thread: The beginning of the names of the threads that make them; None for the one that enters.
    """
    here, noted = threading.current_thread(), list[str]()

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        one = threading.current_thread()
        if one is here if thread is None else one.name.startswith(thread):
            noted.append(" ".join(statement.split()))

    sqlalchemy.event.listen(Engine, "before_cursor_execute", note)
    try:
        yield noted
    finally:
        sqlalchemy.event.remove(Engine, "before_cursor_execute", note)
