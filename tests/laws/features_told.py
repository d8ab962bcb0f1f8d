"""Features of the table that readers of events see, and nobody else."""

from __future__ import annotations

from langchain_core.messages import AIMessage

from langchain_autotools.event_types import FileMade, MessageDone, VendorCallDone, VendorCallStarted
from langchain_autotools.messages.metadata import is_cut_reply
from tests.laws.feature import Feature
from tests.laws.planned import Plan, Seen


class VendorEvents(Feature):
    """The vendor does something by itself in each reply: who listens is told, and the conversation is what it is without that."""

    name = "vendor events"

    def add(self, plan: Plan) -> None:
        """A call of the vendor's own, and a file."""
        plan.vendor = True

    def check(self, seen: Seen) -> None:
        """Readers of events have each once for each reply; no message and no result knows of it."""
        assert "web_search" not in repr(seen.history)
        told = [type(event) for event in seen.plan.told]
        done = [event.message for event in seen.plan.told if isinstance(event, MessageDone) and isinstance(event.message, AIMessage)]
        replies = [one.id for one in done if not is_cut_reply(one)]  # what broke off has done nothing by itself
        made = [event.message_id for event in seen.plan.told if isinstance(event, FileMade)]
        repeats = "claim" in seen.plan.fields and seen.again is None  # such a run tells of the messages of the first one alone
        assert {told.count(kind) for kind in (VendorCallStarted, VendorCallDone, FileMade)} == {len(made)}
        assert made == (replies[: len(made)] if repeats and made else replies)
