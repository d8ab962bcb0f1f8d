"""The tools that models of the standard suites have of their own, and a count of how often they were called and ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from langchain_core.tools import tool

from tests.support.http_server import Exchange
from tests.support.script import Turn

__all__ = ["RAN", "Listening", "archive_record", "read_clock"]

RAN: Counter[str] = Counter()
"""How often each tool ran since somebody cleared it."""


@tool
def archive_record(record: str) -> str:
    """Archive a record. Only when asked for by name."""
    RAN["archive_record"] += 1
    return f"archived {record}"


@tool
def read_clock() -> str:
    """Tell the time. Call this tool first, before anything else."""
    RAN["read_clock"] += 1
    return "12:00"


class Listening:
    """A thinking model, and which tools it has called."""

    def __init__(self, mind: Callable[[Exchange], Turn]) -> None:
        self._mind = mind
        self.called: Counter[str] = Counter()

    def __call__(self, exchange: Exchange) -> Turn:
        """The reply to a request."""
        turn = self._mind(exchange)
        self.called.update(call.name for call in turn.calls)
        return turn
