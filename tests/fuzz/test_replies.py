"""Replies of any form, on every wire: a run ends with a documented error or a valid result, and no call runs that needs an approval."""

from __future__ import annotations

import itertools
import json
import pickle
import random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from langchain_core.exceptions import LangChainException
from langchain_core.messages import BaseMessage, HumanMessage, messages_to_dict
from pydantic import BaseModel

from langchain_autotools import events, new_messages, pending_calls, stop_reason
from langchain_autotools.errors import AutoToolsError
from langchain_autotools.event_types import MessageDone
from langchain_autotools.history import validate
from tests.faults.cases import WIRES
from tests.faults.proxy import FaultProxy, Spoil, Whole
from tests.fuzz.spoiling import spoilt
from tests.laws.ways import WAYS, run
from tests.support.http_server import Exchange, HttpReply
from tests.support.script import Call, Turn

QUESTION = HumanMessage("How warm is it?")
FORMS = ("run", "declared", "events", "structured")
RUNS = ("run", "events")
DOCUMENTED = (AutoToolsError, LangChainException)
STOPS = frozenset({"complete", "incomplete", "length", "refused", "calls_pending", "no_progress", "max_turns"})


class Report(BaseModel):
    """A report."""

    city: str
    degrees: int = 0


class Talk:
    """A conversation whose replies are spoilt by chance.

    Args:
        wire: The wire.
        form: How the model is used.
        chance: Decides everything else.
    """

    def __init__(self, wire: str, form: str, chance: random.Random) -> None:
        self.wire, self.form, self.chance = wire, form, chance
        self.wiped: list[Any] = []
        self._server, self._kind, self._fields = WIRES[wire]

    def look(self, city: str) -> str:
        """Look at a city."""
        return "21"

    def wipe(self, city: str) -> str:
        """Wipe a city off the map."""
        self.wiped.append(city)
        return "gone"

    def play(self) -> None:
        """Talk, and check what came of it.

        Raises:
            AssertionError: An error is none that is documented, a result is not valid, or what needs an approval has run.
        """
        with self._server(self._reply) as server, FaultProxy(server, self._plan) as proxy:
            running = {"tools": [self.look, self.wipe], "requires_approval": ["wipe"], "max_turns": 3} if self.form in RUNS else {}
            model = self._kind(model="one", base_url=proxy.url, max_retries=0, timeout=30, **running, **self._fields)
            try:
                history = self._talked(model)
            except DOCUMENTED as error:
                assert str(error)
                history = new_messages(error)
            assert self.wiped == []
            self._check(history)

    def _plan(self, number: int) -> Spoil | None:
        return self._spoilt if number == 0 or self.chance.random() < 0.5 else None

    def _spoilt(self, whole: Whole) -> HttpReply:
        return spoilt(self.chance, whole)

    def _reply(self, exchange: Exchange) -> Turn:
        if self.form == "structured":
            return Turn(json.dumps({"city": "Zürich", "degrees": 21}))
        calls = [Call("look", {"city": "Zürich"}), Call("wipe", {"city": "Oslo", "more": [1, {"a": None}]})]
        chosen = self.chance.choice([[], calls[:1], calls[1:], calls, calls])
        reasoning = "I think about it." if self.wire != "anthropic" and self.chance.random() < 0.5 else ""
        return Turn("Let me look at it now.", chosen, reasoning=reasoning)

    def _talked(self, model: Any) -> list[BaseMessage]:
        way = self.chance.choice(WAYS)
        if self.form == "structured":
            made = model.with_structured_output(Report, method="json_schema").invoke([QUESTION])
            assert made is None or isinstance(made, Report)
            return []
        if self.form == "declared":
            model = model.bind_tools([self.look, self.wipe])
        elif self.form == "events":
            return [one.message for one in events(model.stream([QUESTION])) if isinstance(one, MessageDone)]
        ran = run(way, model, [QUESTION])
        if ran.error is not None:
            raise ran.error
        assert ran.message is not None
        assert self.form == "declared" or stop_reason(ran.message) in STOPS
        return ran.new

    def _check(self, new: list[BaseMessage]) -> None:
        """What is handed out can be stored, and is taken by any vendor's class."""
        history = [QUESTION, *new]
        found = [one for one in validate(history) if one.kind not in ("unanswered_call", "call_name")]
        assert not found or self.form == "declared", found
        json.dumps(messages_to_dict(new), ensure_ascii=False).encode()
        pickle.dumps(new)
        pending_calls(history)
        serve, kind, fields = WIRES[self.chance.choice([*WIRES])]
        with serve(lambda _: Turn("Fine.")) as server:
            other = kind(model="two", base_url=server.url, max_retries=0, **fields)
            try:
                assert other.invoke([*history, HumanMessage("And?")]).text == "Fine."
            except DOCUMENTED as error:
                assert str(error)


def play(wire: str, form: str, seed: int) -> None:
    """Play one conversation."""
    Talk(wire, form, random.Random(seed)).play()


CASES = [*itertools.product(WIRES, FORMS)]


@pytest.mark.parametrize("wire", WIRES)
@settings(max_examples=8)
@given(seed=st.integers(0, 2**32))
@example(seed=31)  # an id that is a list
def test_any_reply_ends_in_a_result_or_a_documented_error(wire: str, seed: int) -> None:
    """In every form of use by turns."""
    play(wire, FORMS[seed % len(FORMS)], seed)


@pytest.mark.exhaustive
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("wire", "form"), CASES)
def test_many_replies(wire: str, form: str) -> None:
    """Hundreds of each wire and form."""
    for seed in range(600):
        play(wire, form, seed)
