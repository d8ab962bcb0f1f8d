"""Tables of what each consumer of events does with each kind of event.

A table is the consumer's dispatch: it names every kind of `RunEvent`, so that a new kind is not overlooked. tests/test_event_tables.py
compares all tables with the kinds that there are.
"""

from collections.abc import Mapping
from typing import Final, Generic, TypeVar

from .event_types import RunEvent

Entry = TypeVar("Entry")

NOTHING: Final = None
"""The entry of a kind with which a consumer has nothing to do."""


class EventTable(dict[type[RunEvent], Entry | None], Generic[Entry]):
    """The entries of one consumer, by kind of event. A kind that a program has defined itself has none: look entries up with `get`.

    Args:
        consumer: The name of the consumer, for the test that compares the tables.
        entries: The entry of each kind; `NOTHING` for a kind with which the consumer has nothing to do.
    """

    def __init__(self, consumer: str, entries: Mapping[type[RunEvent], Entry | None]) -> None:
        super().__init__(entries)
        self.consumer = consumer
