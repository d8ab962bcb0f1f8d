"""What a user says while a run goes on, as a queue whose readings are planned: the same plan makes the same run, whatever the time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Readings:
    """A queue into which the next part of a plan has come whenever a run reads it.

    Args:
        plan: What is there at the first reading, at the second one, and so on.

    Attributes:
        taken: What was taken out, in order.
    """

    def __init__(self, plan: Sequence[Sequence[Any]]) -> None:
        self.taken: list[Any] = []
        self._plan = [list(part) for part in plan]
        self._there: list[Any] = []
        self._is_read = False

    def empty(self) -> bool:
        """Whether nothing is there; that ends a reading."""
        if not self._is_read and self._plan:
            self._there += self._plan.pop(0)
        self._is_read = bool(self._there)
        return not self._there

    def get_nowait(self) -> Any:
        """Take the next one."""
        self.taken.append(self._there.pop(0))
        return self.taken[-1]

    @property
    def texts(self) -> list[str]:
        """The texts of the messages that were taken; what is none is left out."""
        messages = [one for one in self.taken if (isinstance(one, str) and one) or getattr(one, "type", None) == "human"]
        return [one if isinstance(one, str) else one.text for one in messages]
