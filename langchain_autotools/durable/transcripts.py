"""Transcripts in memory: the messages of a conversation, as stored and as the last run here had them.

The next run has the same message objects, as far as they still are what is stored: what the models derived from them is found again, and
none of them is copied. A message that a tool or a callback has changed in place is copied from what is stored.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from langchain_core.messages import BaseMessage

from .plain import copy_of


@dataclass(frozen=True)
class Transcript:
    """The messages of the first runs of a conversation, all of which have ended for good.

    Attributes:
        runs: The number of these runs.
        size: The number of characters of their input and output as JSON.
        stored: Their messages as stored, which nobody changes.
        given: The messages that the next run was given, and those that it made, as far as its requests had them.
    """

    runs: int = 0
    size: int = 0
    stored: Sequence[BaseMessage] = ()
    given: Sequence[BaseMessage] = field(default=(), repr=False)

    def again(self, stored: Sequence[BaseMessage]) -> list[BaseMessage]:
        """Return messages that a run may change, for stored ones: those that were given before where they are unchanged, and copies."""
        given = self.given[: len(stored)]
        if _equal(given, stored[: len(given)]):
            return [*given, *map(copy_of, stored[len(given) :])]
        kept = [one if _equal([one], [there]) else copy_of(there) for one, there in zip(given, stored, strict=False)]
        return [*kept, *map(copy_of, stored[len(given) :])]


def _equal(some: Sequence[BaseMessage], others: Sequence[BaseMessage]) -> bool:
    """Whether messages are of the same classes, and have equal fields."""
    with suppress(Exception):  # a foreign object whose comparison is no truth value took another's place
        return [*map(type, some)] == [*map(type, others)] and [*map(vars, some)] == [*map(vars, others)]
    return False
