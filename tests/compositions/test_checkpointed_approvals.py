"""Approvals in a graph with a checkpointer: decisions that come twice, at once or late, and nodes that die: docs/approvals.md."""

import threading
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from langchain_autotools import AlreadyResumedError, Decision, PendingCall, new_messages
from langchain_autotools.testing import ScriptedChatModel
from tests.compositions.test_approvals import approving_graph
from tests.support.checkpoints import QUESTION, THREAD, Killed, dies_once, run_together, stored
from tests.support.claims import MemoryClaims
from tests.support.desk import Desk, asking, call
from tests.unit.run.test_claim import Store

SEND = asking(call("send", "1", to="Anna"))


def waiting(model: ScriptedChatModel, saver: InMemorySaver) -> tuple[Any, PendingCall]:
    """A graph that has asked, and the call."""
    app = approving_graph(model, saver)
    (shown,) = app.invoke(QUESTION, THREAD)["__interrupt__"][0].value
    return app, PendingCall.from_dict(shown)


def decided(app: Any, decision: Decision) -> Any:
    """Goes on with a decision."""
    return app.invoke(Command(resume=[decision.to_dict()]), THREAD)


class Meeting:
    """A model whose resumed runs begin when two of them are there."""

    def __init__(self, model: ScriptedChatModel) -> None:
        self.invoke, self._resume, self._both = model.invoke, model.resume, threading.Barrier(2, timeout=20)

    def resume(self, *args: Any) -> Any:
        """Wait for the other."""
        self._both.wait()
        return self._resume(*args)


@pytest.mark.parametrize("claim", [None, Store().claim], ids=["without claim", "with claim"])
def test_two_clients_decide_at_once(saver: InMemorySaver, claim: Any) -> None:
    """Both find the graph waiting, and both go on: the call runs twice, unless `claim=` refuses the second."""
    desk = Desk()
    model: Any = Meeting(desk.model(SEND, requires_approval=["send"], claim=claim))
    app, pending = waiting(model, saver)
    ends = []

    def client() -> None:
        try:
            ends.append(decided(app, pending.approve())["messages"][-1].text)
        except AlreadyResumedError:
            ends.append("refused")

    run_together(client, client)
    assert desk.done == ["send Anna 1"] * (1 if claim else 2)
    assert sorted(ends) == ["Done.", "refused" if claim else "Done."]


def test_a_decision_that_comes_again_after_the_call_has_run_does_nothing(saver: InMemorySaver) -> None:
    """The graph has ended, so it gives its state and runs no node."""
    desk = Desk()
    app, pending = waiting(desk.model(SEND, requires_approval=["send"]), saver)
    first = decided(app, pending.approve())
    assert decided(app, pending.approve())["messages"] == first["messages"] and desk.done == ["send Anna 1"]


def test_a_node_that_died_after_a_decision_carries_it_out_again(saver: InMemorySaver) -> None:
    """The decision is kept with the checkpoint, and is found again."""
    desk = Desk()
    app, pending = waiting(dies_once(desk, Killed(), requires_approval=["send"]), saver)
    with pytest.raises(Killed):
        decided(app, pending.approve())
    assert app.invoke(None, THREAD)["messages"][-1].text == "Done."
    assert desk.done == ["send Anna 1", "send Anna 1"]


def test_with_a_claim_such_a_node_waits_for_a_response_by_hand(saver: InMemorySaver) -> None:
    """Another decision is not taken, as the graph keeps the first: `update_state` brings what `resume` makes of the response."""
    desk = Desk()
    model = dies_once(desk, Killed(), requires_approval=["send"], claim=Store().claim)
    app, pending = waiting(model, saver)
    with pytest.raises(Killed):
        decided(app, pending.approve())
    with pytest.raises(AlreadyResumedError):
        app.invoke(None, THREAD)
    with pytest.raises(AlreadyResumedError):
        decided(app, pending.respond("It went out."))
    run = model.resume(stored(app), [pending.respond("It went out.")])
    app.update_state(THREAD, {"messages": new_messages(run)}, as_node="approve")
    assert [message.text for message in stored(app)][-2:] == ["It went out.", "Done."] and app.get_state(THREAD).next == ()
    assert desk.done == ["send Anna 1"]


def test_with_a_store_that_knows_its_owners_such_a_node_goes_on(saver: InMemorySaver) -> None:
    """The call had ended when the node died: `invoke(None)` brings its result, and the decision that comes again does nothing."""
    desk = Desk()
    app, pending = waiting(dies_once(desk, Killed(), requires_approval=["send"], claim=MemoryClaims()), saver)
    with pytest.raises(Killed):
        decided(app, pending.approve())
    state = app.invoke(None, THREAD)
    assert state["messages"][-1].text == "Done."
    assert decided(app, pending.approve())["messages"] == state["messages"]
    assert desk.done == ["send Anna 1"]


def test_a_new_question_drops_what_waits(saver: InMemorySaver) -> None:
    """The model is told that the call was interrupted; a decision that comes later runs nothing, and no error says so."""
    desk = Desk()
    model = desk.model(SEND, requires_approval=["send"])
    app, pending = waiting(model, saver)
    state = app.invoke({"messages": [HumanMessage("Leave it.")]}, THREAD)
    assert state["messages"][-1].text == "Done." and "interrupted" in model.requests[-1].messages[2].text
    assert decided(app, pending.approve())["messages"] == state["messages"] and desk.done == []
