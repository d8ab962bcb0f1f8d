"""Law 10 for models and agents that are given as tools: whoever decides, at the top and whenever, the same runs."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from langchain_autotools import PendingCall, pending_calls, stop_reason
from tests.laws.service import through_json
from tests.laws.ways import QUESTION, WAYS, Ran, law, run
from tests.support.agent_trees import KEY, Workshop, decided, tree

_KINDS = ["approve", "approve", "reject", "edit", "respond"]


@law(5, 1_000)
def test_law_10_a_tree_that_waits_does_what_one_does_that_is_asked_at_once(data: st.DataObject) -> None:
    """Effects, results and answer are equal, however the decisions are spread over runs, each in another process."""
    chance = data.draw(st.integers(0, 2**32).map(random.Random))
    node = tree(chance, 3)
    undecided = chance.random() < 0.2
    kinds = {label: chance.choice([*_KINDS, *(["none"] if undecided else [])]) for label in node.labels()}
    key = {"approval_key": KEY} if chance.random() < 0.5 else {}
    at_once: list[str] = []
    paths: list[Any] = []

    def approve(call: PendingCall) -> Any:
        paths.append((call.args["label"], call.path))
        return decided(call, kinds)

    expected = run(chance.choice(WAYS), Workshop(node, at_once, approve=approve, **key).model, [QUESTION])
    ran: list[str] = []
    history: list[BaseMessage] = [QUESTION]
    found = _one_run(chance, Workshop(node, ran, **key), history)
    shown: set[Any] = set()
    while decisions := _some(chance, history, kinds, shown):
        found = _one_run(chance, Workshop(node, ran, **key), history, resume=decisions)
    assert sorted(ran) == sorted(at_once)
    assert shown == set(paths)
    assert found.message is not None and expected.message is not None
    assert found.message.text == expected.message.text
    assert stop_reason(found.message) == stop_reason(expected.message)
    assert len(pending_calls(history)) == len(pending_calls(expected.message))
    assert _answers(history) == _answers([QUESTION, *expected.new])


def _one_run(chance: random.Random, process: Workshop, history: list[BaseMessage], **keywords: Any) -> Ran:
    ran = run(chance.choice(WAYS), process.model, history, **keywords)
    assert ran.error is None, ran.error
    history[:] = through_json([*history, *ran.new])
    assert ran.message is not None and (not pending_calls(ran.message) or pending_calls(ran.message) == pending_calls(history))
    return ran


def _some(chance: random.Random, history: list[BaseMessage], kinds: Any, shown: set[Any]) -> list[Any]:
    """Some of the decisions about the calls that wait, as their dicts; none where nobody decides about any."""
    waiting = pending_calls(history)
    shown.update((call.args["label"], call.path) for call in waiting)
    made = [one.to_dict() for one in (decided(call, kinds) for call in waiting) if one is not None]
    return chance.sample(made, chance.randint(1, len(made))) if made else []


def _answers(history: list[BaseMessage]) -> list[tuple[int, str, str]]:
    """The last result of each call of the outermost run, but those that only say that a run waits."""
    results = [(place, one) for place, one in enumerate(history) if isinstance(one, ToolMessage)]
    turns = {one.id: sum(isinstance(before, AIMessage) for before in history[:place]) for place, one in results}
    last = {(turns[one.id], one.tool_call_id): one for _, one in results}
    return sorted((turn, str(one.name), one.text) for (turn, _), one in last.items() if "did not finish" not in one.text)
