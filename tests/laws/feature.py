"""What a feature of the table of features and entrances is."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

from langchain_autotools import Decision, PendingCall
from tests.laws.planned import Plan, Seen


class Feature(ABC):
    """What one feature adds to a conversation."""

    name: ClassVar[str]
    waits: ClassVar[bool] = False
    """Whether its calls wait for somebody."""

    @property
    def prefix(self) -> str:
        """What the ids of its calls begin with."""
        return self.name.partition(" ")[0]

    def add(self, plan: Plan) -> None:
        """Add what the feature needs."""
        raise NotImplementedError

    def decide(self, call: PendingCall) -> Decision:
        """What somebody decides about a call of the feature's own that waits."""
        raise NotImplementedError

    def misdecide(self, call: PendingCall) -> Decision | None:
        """A decision about the same call that cannot be carried out; None for none."""
        return None

    def check(self, seen: Seen) -> None:
        """Check what came of it."""
        raise NotImplementedError
