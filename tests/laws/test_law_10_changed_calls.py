"""Law 10 for calls that middleware changes: what runs is what a human approved, whatever is changed, and whoever decides when."""

from __future__ import annotations

import random
from typing import Annotated, Any

import pytest

pytest.importorskip("langchain.agents.middleware", reason="needs LangChain")
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import InjectedToolCallId

from langchain_autotools import PendingCall, pending_calls, stop_reason, validate
from langchain_autotools.testing import ScriptedChatModel
from tests.laws.service import through_json
from tests.laws.ways import QUESTION, WAYS, law, run
from tests.support.middleware import Around

Consent = tuple[str, int]
"""The id of a call, and the argument that somebody has agreed to."""


class Changes:
    """A world in which middleware changes arguments.

    Args:
        chance: What everything is drawn from.
    """

    def __init__(self, chance: random.Random) -> None:
        self.ran: list[Consent] = []
        self.consents: set[Consent] = set()
        self.decided: set[str] = set()
        self._rule: Any = chance.choice([True, ["take"], "odd", None])
        self._at_once = chance.random() < 0.2
        self._nested = chance.random() < 0.3
        self._tables = [[chance.randrange(6) for _ in range(6)] for _ in range(chance.randint(1, 2))]
        self._fickle = random.Random(chance.random()) if chance.random() < 0.2 else None
        self._fields = {"parallel": chance.random() < 0.7, "approval_key": chance.choice([None, "secret"])}
        numbers = [chance.randrange(6) for _ in range(chance.randint(1, 3))]
        self._calls: Any = [{"name": "take", "args": {"number": number}, "id": f"c{place}"} for place, number in enumerate(numbers)]

    def needs(self, number: int) -> bool:
        """Whether the rule concerns a call."""
        if self._rule == "odd":
            return number % 2 == 1
        return bool(self._rule) or self._at_once

    def process(self) -> ScriptedChatModel:
        """The model in a process of its own."""
        rule = (lambda one: self.needs(one.args["number"])) if self._rule == "odd" else self._rule
        fields: dict[str, Any] = {**self._fields, "requires_approval": rule, "approve": self._approve if self._at_once else None}
        around = [Around(tool=self._changing(table)) for table in self._tables]
        model = ScriptedChatModel(tools=[self.take], replies=self._reply, middleware=around, name="helper", **fields)
        if not self._nested:
            return model
        key: Any = {"approval_key": self._fields["approval_key"]}
        return ScriptedChatModel(tools=[model], replies=_asking, **key)

    def take(self, number: int, call_id: Annotated[str, InjectedToolCallId]) -> str:
        """Take a number."""
        self.ran.append((call_id, number))
        return f"took {number}"

    def agree(self, call_id: str, number: int) -> None:
        """Note that somebody has agreed to a call."""
        self.consents.add((call_id, number))
        self.decided.add(call_id)

    def _approve(self, call: PendingCall) -> Any:
        self.agree(call.id, call.args["number"])
        return call.approve()

    def _reply(self, messages: list[BaseMessage], **_: Any) -> Any:
        return "Done." if messages[-1].type == "tool" else AIMessage("", tool_calls=self._calls)

    def _changing(self, table: list[int]) -> Any:
        def change(request: Any) -> Any:
            call = request.tool_call
            number = table[call["args"]["number"]] if self._fickle is None else self._fickle.randrange(6)
            call["args"]["number"] = number  # in place, as some do
            return (yield request)

        return change


def _asking(messages: list[BaseMessage], **_: Any) -> Any:
    helps = {"name": "helper", "args": {"question": "?"}, "id": "h"}
    return "Done." if messages[-1].type == "tool" else AIMessage("", tool_calls=[helps])


def _some(chance: random.Random, world: Changes, history: list[BaseMessage], *, only_yes: bool) -> list[Any]:
    """Decisions about some of the calls that wait, as their dicts."""
    waiting = pending_calls(history)
    made = []
    for call in chance.sample(waiting, chance.randint(1, len(waiting))) if waiting else ():
        kind = "approve" if only_yes else chance.choice(["approve", "approve", "reject", "edit", "respond"])
        number = chance.randrange(6) if kind == "edit" else call.args["number"]
        world.decided.add(call.id)
        if call.kind == "queued":
            made.append(call.reject("no"))
            continue
        if kind in ("approve", "edit"):
            world.agree(call.id, number)
        value = {"edit": [{"number": number}], "reject": ["no"], "respond": ["by hand"]}.get(kind, [])
        made.append(getattr(call, kind)(*value))
    return [one.to_dict() for one in made]


@law(15, 2_000)
def test_law_10_a_changed_call_runs_as_it_was_approved_or_not_at_all(data: st.DataObject) -> None:
    """Random changes, decisions and processes: nothing runs with arguments that nobody approved, nor twice; histories are valid."""
    chance = data.draw(st.integers(0, 2**32).map(random.Random))
    world = Changes(chance)
    history: list[BaseMessage] = [QUESTION]
    decisions: list[Any] | None = None
    for number in range(12):
        keywords = {} if decisions is None else {"resume": decisions}
        ran = run(chance.choice(WAYS), world.process(), history, **keywords)
        assert ran.error is None, ran.error
        assert ran.message is not None
        history = through_json([*history, *ran.new])
        assert validate(history, open_end=True) == []
        assert pending_calls(ran.message) == pending_calls(history)
        decisions = _some(chance, world, history, only_yes=number > 3)
        if not decisions:
            break
    for call_id, taken in world.ran:
        assert (call_id, taken) in world.consents or (not world.needs(taken) and call_id not in world.decided), (call_id, taken)
    assert len({call_id for call_id, _ in world.ran}) == len(world.ran)
    if world._fickle is None and ran.message is not None:
        assert stop_reason(ran.message) == "complete"  # a change that is always the same one is approved once
