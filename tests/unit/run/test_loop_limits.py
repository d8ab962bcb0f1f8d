"""`tool_loop` at its limits and its deadline: what is answered, what is refused, and what the run ends with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from langchain_autotools import LimitReachedError
from langchain_autotools.messages.calls import ToolCallRecord
from langchain_autotools.run.loop import TurnCut
from tests.support.driven_loop import Driver, call, plan, turn

# ---------------------------------------------------------------------------------------------- limits


def test_at_a_limit_one_last_answer_is_asked_for() -> None:
    """The calls have been answered; the last request forbids calls."""
    driver = Driver([turn(call()), turn(call()), turn(text="what I know")])
    outcome = driver.run(plan(max_turns=2, no_progress=None))
    assert (outcome.stop_reason, outcome.turns, driver.choices) == ("max_turns", 3, ["requested", "auto", "none"])
    assert len(driver.asked) == 2


def test_calls_in_the_last_answer_are_answered_not_run() -> None:
    """Some servers let the model call where it is forbidden: no call stays open, none runs, bundled ones neither."""
    driver = Driver([turn(call()), turn(call("multi", inner=[call(), call()]), call())])
    assert driver.run(plan(max_turns=1)).stop_reason == "max_turns"
    assert driver.ran[1:] == [[]]
    assert [one.inner for one in driver.asked[1].calls] == [(), ()]
    assert all("limit" in (one.why or "") for one in driver.asked[1].calls)


def test_the_last_answer_may_be_the_call_that_ends_the_run() -> None:
    """It is pending as at any other end; what is beside it is refused, in its place."""
    driver = Driver([turn(call()), turn(call(), schema := call("Answer"))])
    outcome = driver.run(plan(max_turns=1, caller_tools={"Answer"}, ends={"Answer"}))
    assert (outcome.stop_reason, list(outcome.pending)) == ("max_turns", [schema])
    assert [list(asked.positions.values()) for asked in driver.asked] == [[0], [0]]


def test_on_limit_return_makes_no_further_request() -> None:
    """The run stays as it is, every call answered."""
    driver = Driver([turn(call())])
    assert driver.run(plan(max_turns=1, on_limit="return")).stop_reason == "max_turns"
    assert len(driver.asked) == 1


def test_on_limit_raise_says_which() -> None:
    """The error has the reason."""
    with pytest.raises(LimitReachedError, match="max_turns") as caught:
        Driver([turn(call())]).run(plan(max_turns=1, on_limit="raise"))
    assert caught.value.stop_reason == "max_turns"


def test_calls_beyond_their_limit_are_refused_and_end_the_run() -> None:
    """The first ones of the turn run; the others are told why not, and the next request is the last."""
    driver = Driver([turn(first := call(), call()), turn()])
    assert driver.run(plan(max_tool_calls=1)).stop_reason == "max_tool_calls"
    assert driver.ran == [[first.id]]
    assert driver.choices == ["requested", "none"]


def test_bundled_calls_count_one_by_one() -> None:
    """A bundle is as many calls as it holds: what is beyond the limit is refused inside it."""
    bundle = call("multi", inner=[first := call(), second := call()])
    driver = Driver([turn(bundle), turn()])
    driver.run(plan(max_tool_calls=1))
    assert driver.ran == [[first.id]]
    (asked,) = driver.asked[0].calls
    assert [(one.id, one.args is None) for one in asked.inner] == [(first.id, False), (second.id, True)]


def test_calls_that_cannot_run_use_up_nothing() -> None:
    """Only what is to be executed is admitted."""
    broken = ToolCallRecord("call_x", "f", "{", None, "not JSON")
    driver = Driver([turn(broken, good := call()), turn()])
    assert driver.run(plan(max_tool_calls=1)).stop_reason == "complete"
    assert driver.ran == [[good.id]]


def test_no_progress_does_not_depend_on_how_arguments_are_written() -> None:
    """Keys in another order and other white space are the same call."""
    one = ToolCallRecord("call_a", "f", '{"a": 1, "b": 2}', {"a": 1, "b": 2})
    other = ToolCallRecord("call_b", "f", '{"b":2,"a":1}', {"b": 2, "a": 1})
    driver = Driver([turn(one), turn(other), turn()])
    assert driver.run(plan(no_progress=2)).stop_reason == "no_progress"


def test_other_arguments_are_progress() -> None:
    """Of calls that cannot run, the text as it was written."""
    calls = [call("f", {"n": number}) for number in range(4)]
    assert Driver([*(turn(one) for one in calls), turn()]).run(plan(no_progress=2)).stop_reason == "complete"
    broken = [ToolCallRecord(f"call_{text}", "f", text, None, "not JSON") for text in ("{", "{{")]
    assert Driver([*(turn(one) for one in broken), turn()]).run(plan(no_progress=2)).stop_reason == "complete"


def test_the_calls_of_a_bundle_are_compared_one_by_one() -> None:
    """A tool that polls, called inside a bundle, is no standing still."""
    turns = [turn(call("multi", {"n": number}, inner=[call("poll")])) for number in range(3)]
    assert Driver([*turns, turn()]).run(plan(no_progress=2, polling_tools=["poll"])).stop_reason == "complete"
    turns = [turn(call("multi", {"n": number}, inner=[call("f")])) for number in range(3)]
    assert Driver([*turns, turn()]).run(plan(no_progress=2)).stop_reason == "no_progress"


# ---------------------------------------------------------------------------------------------- the deadline


def late(driver: Callable[[], Driver], reply: Any) -> Callable[[], Any]:
    """The reply, after which the time is over."""

    def replied() -> Any:
        driver().seconds = 10.0
        return reply

    return replied


def test_calls_that_come_after_the_deadline_do_not_run() -> None:
    """They are answered with that, nothing is asked for any more, and none of them counts."""
    driver = Driver([])
    driver.replies = [late(lambda: driver, turn(call(), call("multi", inner=[call()])))]
    outcome = driver.run(plan(deadline=5))
    assert (outcome.stop_reason, driver.ran, driver.choices) == ("deadline", [[]], ["requested"])
    assert "time for this run is over" in str(driver.asked[0].calls[0].why)


def test_the_deadline_raises_where_limits_raise() -> None:
    """As any other limit."""
    driver = Driver([])
    driver.replies = [late(lambda: driver, turn(call()))]
    with pytest.raises(LimitReachedError, match="deadline"):
        driver.run(plan(deadline=5, on_limit="raise"))


@pytest.mark.parametrize(("message", "turns"), [(AIMessage("half"), 1), (None, 0)])
def test_a_turn_that_the_deadline_cut_ends_the_run(message: AIMessage | None, turns: int) -> None:
    """What of it had left is counted as a turn; nothing is asked for again."""
    outcome = Driver([TurnCut(message)]).run(plan(deadline=5))
    assert (outcome.stop_reason, outcome.turns) == ("deadline", turns)


def test_a_last_answer_that_the_deadline_cut_is_the_deadlines() -> None:
    """The reason is what really ended the run."""
    driver = Driver([turn(call()), TurnCut(None)])
    assert driver.run(plan(max_turns=1, deadline=5)).stop_reason == "deadline"
