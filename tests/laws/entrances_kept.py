"""Entrances whose runs outlive their process: durable runs, and conversations that are kept."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import BaseMessage

from langchain_autotools import ConfigurationError, Decision, DecisionsError, PendingCall, new_messages, pending_calls, stop_reason
from langchain_autotools.errors import DecisionProblem
from tests.laws.entrances import CONFIG, QUESTION, Entrance, Outcome, scripted
from tests.laws.service import through_json
from tests.laws.ways import waited

_numbers = itertools.count()


class Kept(Entrance):
    """A model whose runs are recorded. What would decide anew whenever one goes on is refused: who it is known by makes it run once."""

    def open(self) -> None:
        """Make the model, under a name of its own. It is launched with all others."""
        self.name, self.ids = f"cell {next(_numbers)}", itertools.count()
        self.plan.work.stop = self.stop
        if (claim := self.plan.fields.pop("claim", None)) is not None:
            with pytest.raises(ConfigurationError, match="claim"):
                self.keep(scripted(self.plan, self.tools(), claim=claim), f"{self.name} claimed")
        self.kept = self.keep(self.remembered(scripted(self.plan, self.tools(), **self.plan.fields)), self.name)

    def keep(self, model: Any, name: str) -> Any:
        """What records the runs of a model."""
        raise NotImplementedError

    def stop(self) -> None:
        """End the run that goes on."""
        raise NotImplementedError

    def keywords(self) -> dict[str, Any]:
        """Tools that are declared are said with the call."""
        said = super().keywords()
        said.pop("cancel", None)
        return {**said, **({"tools": self.plan.declared} if self.plan.declared else {})}


class Durable(Kept):
    """A run that outlives its process."""

    ways = ("invoke", "astream")

    def keep(self, model: Any, name: str) -> Any:
        """A durable model."""
        from langchain_autotools.durable import durable

        return durable(model, name)

    def stop(self) -> None:
        """By the id of the run."""
        self.kept.cancel(self.run_id)

    def run(self, history: Sequence[BaseMessage], **keywords: Any) -> Outcome:
        """One run."""
        self.run_id = f"{self.name} run {next(self.ids)}"
        outcome = self._outcome(history, keywords)
        if self.plan.vendor and outcome.error is None:
            self.plan.told += self.kept.events(self.run_id)
        return outcome

    def _outcome(self, history: Sequence[BaseMessage], keywords: Any) -> Outcome:
        options = {"run_id": self.run_id, **self.keywords(), **keywords}
        new: list[BaseMessage] = []
        try:
            if self.way == "invoke":
                new = new_messages(self.kept.invoke(list(history), CONFIG, **options))
            else:
                waited(self._read(new, history, options))
        except Exception as error:
            return Outcome([*history, *new, *new_messages(error)], getattr(error, "stop_reason", None), error=error)
        after = [*history, *new]
        return Outcome(after, stop_reason(self.kept.result(self.run_id)), pending_calls(after))

    async def _read(self, new: list[BaseMessage], history: Sequence[BaseMessage], options: Any) -> None:
        async for chunk in self.kept.astream(list(history), CONFIG, **options):
            new += new_messages(chunk)

    def problems(self, before: Outcome, decisions: Sequence[Decision]) -> list[DecisionProblem] | None:
        """What the durable model says; no run is begun."""
        return self.kept.check(through_json(before.history), [one.to_dict() for one in decisions], **self.keywords())  # type: ignore[no-any-return]

    def again(self, before: Outcome, decisions: Sequence[Decision], after: Outcome) -> Any:
        """The same decisions under the same id."""
        outcome = self._outcome(through_json(before.history), self.decided(decisions))
        assert [one.id for one in outcome.history] == [one.id for one in after.history]
        return "the same run"


class Conversation(Kept):
    """A conversation that is kept in a database."""

    ways = ("send",)

    def keep(self, model: Any, name: str) -> Any:
        """Conversations."""
        from langchain_autotools.durable import Conversations

        return Conversations(model, name=name)

    def stop(self) -> None:
        """By the id of the conversation."""
        self.kept.cancel("alice")

    def ask(self) -> Outcome:
        """Send the question."""
        return self._outcome(self.kept.send("alice", QUESTION, CONFIG, **self.keywords()))

    def problems(self, before: Outcome, decisions: Sequence[Decision]) -> list[DecisionProblem] | None:
        """What the conversations say; `decide` says the same, and nothing is recorded."""
        found: list[DecisionProblem] = self.kept.check("alice", decisions)
        assert waited(self.kept.acheck("alice", decisions)) == found
        if found:
            with pytest.raises(DecisionsError) as refused:
                self.kept.decide("alice", decisions)
            assert refused.value.problems == found
        return found

    def resume(self, before: Outcome, decisions: Sequence[Decision]) -> Outcome:
        """Decide, as another process does, which knows what it was shown."""
        shown = [PendingCall.from_dict(call.to_dict()) for call in self.kept.pending("alice")]
        assert shown == before.pending
        self.sent_last = self.kept.decide("alice", decisions, message=self.plan.says)
        return self._outcome(self.sent_last)

    def again(self, before: Outcome, decisions: Sequence[Decision], after: Outcome) -> Any:
        """The same decisions once more."""
        assert self.kept.decide("alice", decisions, message=self.plan.says) == self.sent_last
        return "the same run"

    def _outcome(self, sent: Any) -> Outcome:
        try:
            reason = stop_reason(self.kept.result(sent, timeout=30))
        except Exception as error:
            return Outcome(self.kept.messages("alice"), getattr(error, "stop_reason", None), error=error)
        return Outcome(self.kept.messages("alice"), reason, self.kept.pending("alice"))
