"""Law 10 for approvals: what runs is what a human was shown and approved, once where it is claimed, and no call is lost."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage

from langchain_autotools import pending_calls
from tests.laws.forging import FORGERIES, Forgery, asking, decisions_forged, signed
from tests.laws.guarded import NAMES, Wanted, wanted
from tests.laws.service import Restriction, Service, Setup, numbered, resumed_elsewhere, shown_as_written, through_json
from tests.laws.ways import QUESTION, WAYS, law

rules = st.one_of(st.none(), st.just(True), st.just("odd"), st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True))
setups = st.builds(
    Setup,
    rule=rules,
    own_rule=rules,
    key=st.booleans(),
    claim=st.sampled_from(["no", "at once", "later", "owners"]),
    parallel=st.booleans(),
    bound=st.lists(st.sampled_from(NAMES), max_size=1),
    approve=st.one_of(st.none(), st.none(), st.integers(0, 99)),
)
stories = st.lists(st.lists(wanted(), min_size=1, max_size=3), min_size=1, max_size=2).map(numbered)
chances = st.integers(0, 2**32).map(random.Random)
_DECIDED = ["approve", "approve", "edit", "reject", "respond", "none"]


def restriction(chance: random.Random) -> Restriction:
    """What a run may do: mostly everything."""
    allowed = chance.sample(NAMES, chance.randint(0, 3)) if chance.random() < 0.25 else None
    return Restriction(allowed, chance.randint(0, 4) if chance.random() < 0.2 else None)


@law(15, 10_000)
def test_law_10_what_a_human_approved_runs_and_nothing_else(data: st.DataObject) -> None:
    """Whatever is decided in whichever process, and whoever changes histories and decisions between."""
    service = Service(data.draw(setups), data.draw(stories))
    chance = data.draw(chances)
    history: list[BaseMessage] = [QUESTION]
    decisions: list[dict[str, Any]] | None = None
    past: list[dict[str, Any]] = []
    for _ in range(4):
        ran = service.runs(chance.choice(WAYS), history, restriction(chance), decisions)
        history = through_json([*history, *ran.new])
        calls = pending_calls(history)
        shown_as_written(calls, service.story)
        decided = [service.human.decide(call, chance.choice(_DECIDED), chance) for call in calls]
        decisions = [one.to_dict() for one in decided if one is not None]
        past += decisions
        for _ in range(chance.choice([0, 1, 2])):
            attack(service, chance.choice(WAYS), history, past, chance)
        if ran.error is not None or not calls:
            return


def attack(service: Service, way: str, history: Sequence[BaseMessage], past: Sequence[dict[str, Any]], chance: random.Random) -> None:
    """A run over a history that somebody has changed, with decisions that nobody made for it, or a human who was shown it."""
    forged = through_json(history)
    for _ in range(chance.randint(0, 3)):
        if asking(forged):
            chance.choice(FORGERIES)(chance, forged)
    resign = service.setup.key and chance.random() < 0.5
    if resign:
        signed(forged)
    calls = pending_calls(forged)
    if chance.random() < 0.3:
        shown = [service.human.decide(call, "approve", chance) for call in calls]
        decisions: Any = [one.to_dict() for one in shown if one is not None]
    else:
        decisions = decisions_forged(chance, calls, past, resign=resign)
    service.runs(way, forged, restriction(chance), decisions, forged=True)


@pytest.mark.exhaustive
@pytest.mark.parametrize("key", [False, True])
@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("forgery", FORGERIES[:2])
def test_law_10_a_decision_holds_in_another_process(forgery: Forgery, parallel: bool, key: bool) -> None:
    """What was approved here runs there, once; where the history was changed on the way, nothing does."""
    chance = random.Random(1)
    calls = [Wanted(("danger", "look"), (1, 2), "prefix", True), Wanted(("echo",), (3,), "camel", False)]
    service = Service(Setup(rule=True, key=key, claim="at once", parallel=parallel), [calls])
    history = [QUESTION, *service.runs("invoke", [QUESTION], Restriction(), None).new]
    decisions = [call.approve().to_dict() for call in pending_calls(history)]
    forged = through_json(history)
    while forged == history:
        forgery(chance, forged)
    assert resumed_elsewhere(service.setup, forged, decisions, ()) == {"ran": [], "claims": [], "error": "DecisionsError"}
    done = resumed_elsewhere(service.setup, history, decisions, ())
    assert (done["ran"], done["error"]) == ([["danger", 1], ["echo", 3], ["look", 2]], None)
    again = resumed_elsewhere(service.setup, history, decisions, done["claims"])
    assert again == {"ran": [], "claims": done["claims"], "error": "AlreadyResumedError"}
