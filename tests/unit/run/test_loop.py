"""`tool_loop`: what it asks for next, given what came; driven by hand, without a model, a tool or a clock."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from langchain_autotools import ConfigurationError
from langchain_autotools.messages.calls import ToolCallRecord
from langchain_autotools.messages.metadata import KEY
from langchain_autotools.run.decisions import read_resume
from langchain_autotools.run.loop import turn_calls
from tests.support.driven_loop import QUESTION, Driver, call, found, plan, turn, used

# ---------------------------------------------------------------------------------------------- natural ends


def test_a_reply_without_calls_ends_the_run() -> None:
    """One request, as asked; the outcome counts it."""
    driver = Driver([turn(**used(3, 4))])
    outcome = driver.run(plan())
    assert (outcome.stop_reason, outcome.turns, driver.choices, driver.asked) == ("complete", 1, ["requested"], [])
    assert outcome.usage is not None and outcome.usage["total_tokens"] == 7


def test_calls_are_answered_and_the_model_asked_again() -> None:
    """Message and results join the history, in order; only the first request says what the caller asked for."""
    driver = Driver([turn(one := call(), two := call("g")), turn(call()), turn()])
    assert driver.run(plan()).stop_reason == "complete"
    assert driver.choices == ["requested", "auto", "auto"]
    assert driver.sizes == [1, 4, 6]
    assert [list(asked.positions.values()) for asked in driver.asked] == [[0, 1], [0]]
    assert driver.ran[0] == [one.id, two.id]


def test_the_callers_list_is_copied() -> None:
    """Nothing is added to it."""
    history: list[BaseMessage] = [QUESTION]
    Driver([turn(call()), turn()]).run(plan(), history=history)
    assert history == [QUESTION]


@pytest.mark.parametrize(("blocked", "reason"), [("length", "length"), ("content_filter", "refused"), ("error", "incomplete")])
def test_a_reply_that_was_cut_says_so(blocked: str, reason: str) -> None:
    """Without calls it is the end, by the reason's own name."""
    assert Driver([turn(blocked=blocked)]).run(plan()).stop_reason == reason


def test_a_refusal_without_a_finish_reason_ends_the_run() -> None:
    """Some servers say `stop` and put the refusal beside the text: it is a refusal all the same."""
    refused = turn(additional_kwargs={"refusal": "I cannot help with that."})
    assert Driver([refused]).run(plan()).stop_reason == "refused"


def test_a_refusal_with_calls_answers_them_and_ends() -> None:
    """No second request is made; the calls do not stay open."""
    driver = Driver([turn(call(), additional_kwargs={"refusal": "No."})])
    assert driver.run(plan()).stop_reason == "refused"
    assert len(driver.asked) == 1


def test_a_cut_reply_with_calls_goes_on() -> None:
    """The calls are answered with why they did not run, and the model may write them again."""
    cut = ToolCallRecord("call_cut", "f", "{", None, "the reply did not end normally")
    driver = Driver([turn(cut, blocked="length"), turn()])
    assert driver.run(plan()).stop_reason == "complete"
    assert driver.ran == [[]]


def test_an_interrupted_turn_is_asked_to_go_on() -> None:
    """A server's pause is no end; its message is in the next request."""
    paused = turn(response_metadata={"finish_reason": "pause_turn"})
    driver = Driver([paused, turn()])
    assert driver.run(plan()).stop_reason == "complete"
    assert driver.sizes == [1, 2]


def test_pauses_that_bring_the_same_stand_still() -> None:
    """A server that only ever pauses is not asked for ever."""
    pauses = [turn(response_metadata={"finish_reason": "pause_turn"}) for _ in range(3)]
    driver = Driver([*pauses, turn()])
    assert driver.run(plan(no_progress=3)).stop_reason == "no_progress"
    assert driver.choices[-1] == "none"


# ---------------------------------------------------------------------------------------------- calls of the caller


def test_declared_tools_are_left_to_the_caller() -> None:
    """The run ends with their calls pending; the others have run, in their places."""
    driver = Driver([turn(own := call(), theirs := call("declared"), other := call())])
    outcome = driver.run(plan(caller_tools={"declared"}))
    assert (outcome.stop_reason, list(outcome.pending)) == ("calls_pending", [theirs])
    assert driver.ran == [[own.id, other.id]]
    assert list(driver.asked[0].positions.values()) == [0, 2]


def test_a_declared_call_that_must_not_run_is_answered() -> None:
    """It has no arguments to hand on: nothing waits for the caller."""
    broken = ToolCallRecord("call_broken", "declared", "{", None, "not JSON")
    driver = Driver([turn(broken), turn()])
    assert driver.run(plan(caller_tools={"declared"})).stop_reason == "complete"
    assert [one.id for one in driver.asked[0].calls] == ["call_broken"]


def test_calls_of_the_vendors_tools_on_the_callers_machine_wait() -> None:
    """They are items and no function calls: at the end of a run, and beside own calls; a reply that was cut leaves none."""
    entry = {"id": "call_s", "kind": "client_tool", "answer": "shell_call_output"}
    item: Any = {"type": "shell_call", "call_id": "call_s", "action": {"commands": ["ls"]}}
    for blocked, names in ((None, ["shell_call"]), ("length", [])):
        own = {"awaits": [entry], "calls": [], "blocked": blocked}
        calls, _ = turn_calls(AIMessage([item], response_metadata={KEY: own}))
        assert [one.name for one in calls] == names
        assert Driver([turn(*calls, blocked=blocked)]).run(plan()).stop_reason == (blocked or "calls_pending")
        beside = Driver([turn(call(), *calls), turn()])
        assert beside.run(plan()).stop_reason == ("complete" if blocked else "calls_pending")
        assert len(beside.ran[0]) == 1


def test_a_call_that_must_end_the_run_ends_it() -> None:
    """Structured output by calls: others are answered, the schema's own is the caller's."""
    driver = Driver([turn(call()), turn(schema := call("Answer"))])
    outcome = driver.run(plan(caller_tools={"Answer"}, ends={"Answer"}))
    assert list(outcome.pending) == [schema]


# ---------------------------------------------------------------------------------------------- results as answers


def test_results_that_are_the_answer_end_the_run() -> None:
    """All of the turn's results are of such tools: no further request."""
    driver = Driver([turn(call("show"), call("show"))], direct=["show"])
    outcome = driver.run(plan())
    assert outcome.stop_reason == "return_direct"
    assert [message.content for message in outcome.direct] == ["show ran", "show ran"]


def test_one_other_result_keeps_the_run_going() -> None:
    """The model must see the result of the other call."""
    driver = Driver([turn(call("show"), call()), turn()], direct=["show"])
    outcome = driver.run(plan())
    assert (outcome.stop_reason, list(outcome.direct)) == ("complete", [])


# ---------------------------------------------------------------------------------------------- calls in the input


def test_found_calls_are_answered_before_any_request() -> None:
    """In the places that they have in their message; the model is then asked as at the start."""
    driver, one = Driver([turn()]), call()
    assert driver.run(plan(), found(one)).stop_reason == "complete"
    assert (driver.ran, list(driver.asked[0].positions.values())) == ([[one.id]], [1])
    assert (driver.choices, driver.sizes) == (["requested"], [2])


def test_undecided_calls_stay_pending() -> None:
    """What was decided has run; no request is made."""
    driver = Driver([])
    outcome = driver.run(plan(), found(call(), pending=[waiting := call()]))
    assert (outcome.stop_reason, list(outcome.pending), outcome.turns) == ("calls_pending", [waiting], 0)
    assert len(driver.asked) == 1


def test_only_undecided_calls_ask_for_nothing() -> None:
    """There is nothing to answer."""
    driver = Driver([])
    assert driver.run(plan(), found(pending=[call()])).stop_reason == "calls_pending"
    assert driver.asked == []


@pytest.mark.parametrize("waits", ["approval", "queued"])
def test_calls_that_wait_are_answered_where_somebody_decides_at_once(waits: str) -> None:
    """They go with the others; one that gets no result stays pending."""
    driver = Driver([turn()])
    assert driver.run(plan(leaves=("caller",)), found(pending=[call()], waits=waits)).stop_reason == "complete"
    driver = Driver([turn()])
    assert driver.run(plan(), found(pending=[call()], waits=waits)).stop_reason == "calls_pending"
    assert driver.asked == []


def test_found_calls_may_be_the_answer() -> None:
    """All of them: with another one beside them the model goes on."""
    assert Driver([], direct=["show"]).run(plan(), found(call("show"))).stop_reason == "return_direct"
    assert Driver([turn()], direct=["show"]).run(plan(), found(call("show"), call())).stop_reason == "complete"


def test_found_calls_are_under_the_limits() -> None:
    """What is beyond the limit is refused, and the run comes to its last answer."""
    driver = Driver([turn()])
    assert driver.run(plan(max_tool_calls=1), found(first := call(), call())).stop_reason == "max_tool_calls"
    assert (driver.ran, driver.choices) == ([[first.id]], ["none"])


# ---------------------------------------------------------------------------------------------- the plan and the verdict


@pytest.mark.parametrize("decisions", [["call_1"], "yes", {"call_1": 3}, {"call_1": {1: "a"}}])
def test_decisions_that_decide_nothing_are_refused(decisions: Any) -> None:
    """A list of texts, a text, a number, arguments without names."""
    with pytest.raises(ConfigurationError, match="resume takes|must be True, False|a decision is a dict"):
        read_resume(decisions)


def test_decisions_of_every_kind_are_taken() -> None:
    """True for all; by call: yes, no, why not, other arguments, none at all."""
    for decisions in (True, None, {}, {"a": True, "b": False, "c": "no", "d": {"x": 1}, "e": {}}):
        assert read_resume(decisions) is decisions


def test_only_what_the_verdict_names_may_run() -> None:
    """A call of the message that it does not name, or calls not in order, has no arguments."""
    entries = [{"id": "a", "ok": True}, {"id": "b", "ok": False, "why": "cut"}, {"id": "c", "ok": False}]
    calls = [{"name": "f", "args": {}, "id": one, "type": "tool_call"} for one in "abcd"]
    message = AIMessage("", tool_calls=calls, response_metadata={KEY: {"calls": entries, "blocked": "length"}})
    judged, blocked = turn_calls(message)
    assert [(one.id, one.args is not None) for one in judged] == [("a", True), ("b", False), ("c", False), ("d", False)]
    assert judged[1].why == "cut"
    assert judged[2].why == judged[3].why == "Not run: the model's turn did not end normally."
    assert blocked == "length"
    assert turn_calls(AIMessage("hi")) == ([], None)
