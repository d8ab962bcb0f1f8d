"""The caller's condition: when it is asked, what it gets, and how the run ends."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_autotools import ConfigurationError, RunSoFar, new_messages, pending_calls, run_usage, stop_reason
from langchain_autotools.testing import ScriptedChatModel
from tests.support.endless_chat import Way, every_way

USAGE = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}


def look(at: str = "") -> str:
    """Look."""
    return f"seen {at}"


def calls(*places: str) -> AIMessage:
    """A turn that looks at places."""
    made = [{"name": "look", "args": {"at": place}, "id": f"call {place}"} for place in places]
    return AIMessage("Let me look.", tool_calls=made, usage_metadata=USAGE)


class Condition:
    """Keeps what it was asked, and says True at one turn."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.asked: list[RunSoFar] = []

    def __call__(self, run: RunSoFar) -> bool:
        """Whether the run ends."""
        self.asked.append(run)
        return run.turns == self.at


@every_way
def test_the_condition_ends_the_run_after_a_turn_whose_calls_are_answered(way: Way) -> None:
    """No further request is made, the calls of the last turn have results, and the stop reason says why."""
    condition = Condition(2)
    model = ScriptedChatModel(tools=[look], replies=[calls("Rome"), calls("Oslo", "Bern"), "Never."], stop_when=condition)
    run = way(model)[0]
    assert stop_reason(run) == "stop_when"
    assert [message.type for message in new_messages(run)] == ["ai", "tool", "ai", "tool", "tool"]
    assert [(one.turns, one.tool_calls, len(one.messages)) for one in condition.asked] == [(1, 1, 2), (2, 3, 5)]
    assert condition.asked[-1].usage == run_usage(run)
    assert list(condition.asked[-1].messages) == new_messages(run)


def test_the_condition_comes_before_limits_and_ignores_on_limit() -> None:
    """A run that has reached both ends by the condition, without an exception and without a last request."""
    model = ScriptedChatModel(tools=[look], replies=[calls("Rome")], stop_when=Condition(1), max_turns=1, on_limit="raise")
    assert stop_reason(model.invoke("Look.")) == "stop_when"


def test_an_answer_is_not_asked_about() -> None:
    """The condition is asked only after calls have results: an answer ends the run anyway."""
    condition = Condition(1)
    model = ScriptedChatModel(tools=[look], replies=["Fine."], stop_when=condition)
    assert (stop_reason(model.invoke("Hi.")), condition.asked) == ("complete", [])


def test_a_resumed_run_is_asked_when_decided_calls_have_results() -> None:
    """A call that ends the run ends it also where it had to wait for approval; calls found in a history do not."""
    condition = Condition(0)
    model = ScriptedChatModel(tools=[look], replies=[calls("Rome"), "Fine."], stop_when=condition, requires_approval=True)
    history: list[Any] = [HumanMessage("Look.")]
    history += new_messages(model.invoke(history))
    ended = model.resume(history, [call.approve() for call in pending_calls(history)])
    assert (stop_reason(ended), [one.text for one in new_messages(ended)]) == ("stop_when", ["seen Rome"])
    open_calls = [HumanMessage("Look."), calls("Oslo")]
    assert stop_reason(model.invoke(open_calls)) == "complete"


def test_an_exception_of_the_condition_ends_the_run_with_its_messages() -> None:
    """Nothing is swallowed, and what had completed comes with the exception."""

    def broken(run: RunSoFar) -> bool:
        raise ZeroDivisionError

    model = ScriptedChatModel(tools=[look], replies=[calls("Rome")], stop_when=broken)
    with pytest.raises(ZeroDivisionError) as caught:
        model.invoke("Look.")
    assert [message.type for message in new_messages(caught.value)] == ["ai", "tool"]


async def later(run: RunSoFar) -> bool:
    """An asynchronous condition, which the loop cannot await."""
    return True


@pytest.mark.parametrize("condition", [3, later])
def test_what_is_no_condition_is_refused(condition: Any) -> None:
    """At the call and where the model is made."""
    with pytest.raises(ValueError, match="stop_when must be a function"):
        ScriptedChatModel(tools=[look], replies=["."], stop_when=condition)
    with pytest.raises(ConfigurationError, match="stop_when must be a function"):
        ScriptedChatModel(tools=[look], replies=["."]).invoke("Hi.", stop_when=condition)


def test_a_condition_says_true_or_false() -> None:
    """Anything else is an error, not a guess."""
    model = ScriptedChatModel(tools=[look], replies=[calls("Rome")], stop_when=lambda run: run.messages)
    with pytest.raises(ConfigurationError, match="must return True or False, not tuple"):
        model.invoke("Look.")


def test_none_lifts_the_condition_for_one_call() -> None:
    """As with limits."""
    model = ScriptedChatModel(tools=[look], replies=[calls("Rome"), "Fine."], stop_when=Condition(1))
    assert model.invoke("Look.", stop_when=None).text == "Let me look.\nFine."
