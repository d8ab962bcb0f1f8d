"""The usage of runs of models and agents that are given as tools: what the replies inside use is counted once, in the run around."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import strategies as st
from langchain_core.messages import BaseMessage

from langchain_autotools import events, pending_calls, run_usage
from langchain_autotools.event_types import RunEnded
from tests.laws.service import through_json
from tests.laws.ways import QUESTION, WAYS, law, run
from tests.support.agent_trees import Workshop, decided, tree

_KINDS = ["approve", "reject", "edit", "respond"]


@law(8, 1_000)
def test_what_models_inside_use_is_counted_once(data: st.DataObject) -> None:
    """Of a random tree, however its decisions are spread over runs: a run has used what the replies made in it have used."""
    chance = data.draw(st.integers(0, 2**32).map(random.Random))
    node = tree(chance, 3)
    kinds = {label: chance.choice(_KINDS) for label in node.labels()}
    spent: list[int] = []
    history: list[BaseMessage] = [QUESTION]
    keywords: dict[str, Any] = {}
    while True:
        before = sum(spent)
        ran = run(chance.choice(WAYS), Workshop(node, [], spent).model, history, **keywords)
        assert ran.error is None and ran.message is not None, ran.error
        usage = run_usage(ran.message)
        assert (usage["total_tokens"] if usage else 0) == sum(spent) - before
        history = through_json([*history, *ran.new])
        waiting = pending_calls(history)
        if not waiting:
            break
        some = chance.sample(waiting, chance.randint(1, len(waiting)))
        keywords = {"resume": [decision for call in some if (decision := decided(call, kinds)) is not None]}


@law(4, 200)
def test_the_last_event_has_what_all_events_have(data: st.DataObject) -> None:
    """The usage of the end of the outermost run is that of all replies, of a tree that nobody has to be asked about."""
    chance = data.draw(st.integers(0, 2**32).map(random.Random))
    spent: list[int] = []
    model = Workshop(tree(chance, 3), [], spent, approve=lambda call: call.approve()).model
    ended = [event for event in events(model.stream([QUESTION])) if isinstance(event, RunEnded)]
    assert ended[-1].parent_run_id is None and ended[-1].usage is not None
    assert ended[-1].usage["total_tokens"] == sum(spent)
