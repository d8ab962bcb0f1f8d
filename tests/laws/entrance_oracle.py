"""The one oracle of the table: what must be true of every conversation, whatever its features and its entrance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from langchain_autotools import Decision, new_messages
from langchain_autotools.history import validate
from langchain_autotools.messages.run_messages import open_run
from tests.laws.entrances import Entrance, Outcome
from tests.laws.feature import Feature
from tests.laws.features import ENDS
from tests.laws.planned import Plan, Seen, ids_of
from tests.support.script import Call

Accept = Callable[[Sequence[BaseMessage]], None]
"""Sends a history to a strict server, which must take it."""


def planned(features: Sequence[Feature]) -> Plan:
    """The conversation of some features: each one's calls, after a call that concerns none of them."""
    plan = Plan(paired=len(features) > 1)
    plan.add("look", Call("look", {"city": "Paris"}, "look_0"))
    plan.allow("look", city="Paris")
    for feature in features:
        feature.add(plan)
    return plan


def play(features: Sequence[Feature], entrance: Entrance, accept: Accept) -> None:
    """Play a conversation to its end; after each step all laws hold, and at its end what each feature promises."""
    plan, ends = entrance.plan, any(feature.name in ENDS for feature in features)
    outcome, again = entrance.ask(), None
    check_laws(plan, outcome, accept)
    waiting = _waiting(outcome)
    decisions = _decided(features, outcome)
    if not ends:
        assert outcome.error is None, outcome.error
        assert plan.work.times("look", city="Paris") == 1
        first = [call.id for call in (*plan.turns[0], *plan.handled)]
        assert waiting == {call_id for call_id in first if any(one.waits and _is_of(one, call_id) for one in features)}
    entrance.check(outcome)
    if decisions:
        assert outcome.reason in ("calls_pending", None) or ends  # a run that is cut leaves the caller's calls open too
        check_first(features, entrance, outcome, decisions)
        before, outcome = outcome, entrance.resume(outcome, decisions)
        check_laws(plan, outcome, accept, resumed=True)
        entrance.check(outcome)
        if {"claim", "double click"} & {feature.name for feature in features}:
            once = list(plan.work.ran)
            again = entrance.again(before, decisions, outcome)
            assert not {name for name, _ in plan.work.ran[len(once) :]} & {*plan.fields["requires_approval"], *plan.kinds}
            plan.work.ran[:] = once  # with the results of a store the second run goes on, and calls what needs nobody
        if changed := _decided(features, outcome):
            assert all(call.changed for call in outcome.pending)
            check_first(features, entrance, outcome, changed)
            outcome = entrance.resume(outcome, changed)
            check_laws(plan, outcome, accept, resumed=True)
            entrance.check(outcome)
    if not ends:
        assert outcome.error is None, outcome.error
        assert outcome.reason in ("complete", None) and not outcome.pending
        assert outcome.history[-1].text in ("Done.", '{"answer": "Done."}')
    seen = Seen(plan, outcome.history, outcome.reason, outcome.error, entrance.requests(), again)
    if not ends or len(features) == 1:
        for feature in features:
            feature.check(seen)


def _waiting(outcome: Outcome) -> set[str]:
    """The ids of the calls that wait; a question of a server has its own, behind that of the call."""
    return {call.id.partition(":")[0] for call in outcome.pending}


def _decided(features: Sequence[Feature], outcome: Outcome) -> list[Decision]:
    return [one.decide(call) for call in outcome.pending for one in features if one.waits and _is_of(one, call.id)]


def check_first(features: Sequence[Feature], entrance: Entrance, outcome: Outcome, decisions: Sequence[Decision]) -> None:
    """What can be carried out passes `check`, which names the call of what cannot; nothing runs, and nothing is asked of a model."""
    before = list(entrance.plan.work.ran), entrance.requests()
    assert not entrance.problems(outcome, decisions)
    wrong = [one.misdecide(call) for call in outcome.pending for one in features if one.waits and _is_of(one, call.id)]
    wrong = [one for one in wrong if one is not None]
    if wrong and (problems := entrance.problems(outcome, wrong)) is not None:
        assert [(uuid, call_id) for uuid, call_id, words in problems if words] == [(one.uuid, one.id) for one in wrong]
    assert (list(entrance.plan.work.ran), entrance.requests()) == before


def _is_of(feature: Feature, call_id: str) -> bool:
    return call_id.startswith(f"{feature.prefix}_")


def check_laws(plan: Plan, outcome: Outcome, accept: Accept, *, resumed: bool = False) -> None:
    """Every call is answered once or waits; nothing ran that was not allowed; any vendor takes the history; nothing is lost."""
    check_ran(plan)
    mended = {"vendor_result", "misplaced_result"} if resumed and plan.handled else set()  # items for items, a later result before them
    assert {problem.kind for problem in validate(outcome.history, open_end=True)} <= mended
    waiting = _waiting(outcome)
    results = Counter(one.tool_call_id for one in outcome.history if isinstance(one, ToolMessage) and open_run(one) is None)
    asking = [one for one in outcome.history if isinstance(one, AIMessage)]
    calls = [call_id for one in asking for call_id in ids_of(one)]
    assert len(set(calls)) == len(calls) and set(results) <= set(calls)
    assert {call_id: results[call_id] + (call_id in waiting) for call_id in calls} == dict.fromkeys(calls, 1)
    if outcome.error is not None:
        assert {one.id for one in new_messages(outcome.error)} <= {one.id for one in outcome.history}
    accept(outcome.history)


def check_ran(plan: Plan) -> None:
    """Nothing ran that was not allowed, or oftener; a function that reads its arguments itself reads no argument twice."""
    ran = Counter(repr(one) for one in plan.work.ran)
    assert ran <= Counter(repr(one) for one in plan.allowed), ran
    for text in plan.work.texts:
        assert text.count('"amount"') <= 1, text
