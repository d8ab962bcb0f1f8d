"""Failover in durable runs: what took over before a crash goes on after it, and is told once."""

from collections.abc import Callable

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from langchain_core.messages import AIMessage, ToolMessage

from langchain_autotools import stop_reason
from langchain_autotools.durable import RunFailedError
from langchain_autotools.event_types import MessageDone, ModelChanged, RunEnded, TextDelta
from langchain_autotools.run import failover
from langchain_autotools.testing import ScriptedChatModel
from tests.support.durable import Life, crash
from tests.support.failing import DOWN, marks

CALL = AIMessage("", tool_calls=[{"name": "look", "args": {"city": "Oslo"}, "id": "call_1"}])


def crashing_once() -> Callable[[str], str]:
    """A tool during whose first call the process dies."""
    died: list[str] = []

    def look(city: str) -> str:
        """Look at a city."""
        if not died:
            died.append(city)
            crash()
        return f"{city}: 21"

    return look


def test_a_run_goes_on_with_the_model_that_took_over(life: Life) -> None:
    """The journal has the message that failover stored and what was told of it: after a crash no failed model is asked for it again."""
    look, other = crashing_once(), ScriptedChatModel(replies=[CALL, "It is 21."])
    model = life.model([["Let me ", DOWN], "Nobody asks for this."], tools=[look], rerun=["look"], fallbacks=[other])
    life.begin()
    with pytest.raises(RunFailedError):
        list(model.stream("How warm is it?", run_id="run"))
    life.again()
    message = model.result("run")
    assert stop_reason(message) == "complete"
    told = list(model.events("run"))
    new = [one.message for one in told if isinstance(one, MessageDone)]
    assert [one.text for one in new] == ["Let me ", "", "Oslo: 21", "It is 21."]
    assert [isinstance(one, ToolMessage) for one in new] == [False, False, True, False]
    assert [mark is not None for mark in marks(new)] == [True, False, False]
    (changed,) = [one for one in told if isinstance(one, ModelChanged)]
    assert changed.after_text and changed.turn == 1 and changed.run_id == "run"
    assert "".join(one.separator + one.text for one in told if isinstance(one, TextDelta)).startswith("Let me ")
    assert [one.turns for one in told if isinstance(one, RunEnded)] == [2]
    assert len(other.requests) == 2


def test_a_failure_before_text_is_told_again_and_not_met_again(life: Life) -> None:
    """After a crash behind it: the journal has who took over. Nothing of the cooldown is recorded."""
    look, other = crashing_once(), ScriptedChatModel(replies=[CALL, "It is 21."])
    model = life.model([DOWN, "Nobody asks for this."], tools=[look], rerun=["look"], fallbacks=[other], cooldown=3600)
    life.begin()
    with pytest.raises(RunFailedError):
        model.invoke("How warm is it?", run_id="run")
    failover._cooling.clear()  # as in another process
    life.again()
    assert model.result("run").text == "It is 21."
    told = list(model.events("run"))
    assert [(one.after_text, one.turn) for one in told if isinstance(one, ModelChanged)] == [(False, 1)]
    assert len(model.model.requests) == 1 and len(other.requests) == 2  # type: ignore[attr-defined]
    assert "cool" not in life.dump()
