"""The identity of a call: two calls of one id are two calls, and a decision is about one of them."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_autotools import ConfigurationError, ToolExecutor, new_messages, pending_calls
from langchain_autotools.testing import ScriptedChatModel


def call_me(number: str) -> str:
    """Call somebody."""
    raise AssertionError(number)


class Bank:
    """A tool that notes whom it paid."""

    def __init__(self) -> None:
        self.paid: list[str] = []

    def pay(self, to: str) -> str:
        """Pay somebody."""
        self.paid.append(to)
        return f"paid {to}"


def calling(*names: str, call_id: str = "1", message_id: str | None = "m") -> AIMessage:
    """A message whose calls all have one id."""
    return AIMessage("", id=message_id, tool_calls=[{"id": call_id, "name": "pay", "args": {"to": name}} for name in names])


def declared(*replies: Any, tools: Any = ()) -> Any:
    """A model to which `pay` is only declared."""
    return ScriptedChatModel(replies=list(replies), tools=[call_me, *tools]).bind_tools([Bank().pay])


@pytest.mark.parametrize("key", [None, "secret"])
@pytest.mark.parametrize("names", [("Anna", "Anna"), ("Anna", "Bert")])
def test_two_calls_of_one_id_are_two_calls(names: tuple[str, str], key: str | None) -> None:
    """One may be approved and the other left, or rejected; each is shown for itself."""
    bank = Bank()
    executor = ToolExecutor([bank.pay], requires_approval=["pay"], approval_key=key)
    answer = calling(*names)
    one, two = executor.pending_calls(answer)
    assert one.uuid != two.uuid
    assert executor.pending_calls(answer) == [one, two]
    assert [result.text for result in executor.execute_all(answer, decisions=[two.approve()])] == [f"paid {names[1]}"]
    assert bank.paid == [names[1]]
    results = executor.execute_all(answer, decisions=[two.reject("No."), one.approve()])
    assert [(result.text, result.tool_call_id) for result in results] == [(f"paid {names[0]}", "1"), ('{"error": "No."}', "1")]
    assert bank.paid == [names[1], names[0]]
    with pytest.raises(ConfigurationError, match="two decisions about call '1'"):
        executor.execute_all(answer, decisions=[two.approve(), two.reject()])


@pytest.mark.parametrize("key", [None, "secret"])
def test_a_decision_is_about_the_call_of_one_turn(key: str | None) -> None:
    """A later turn makes an equal call under the same id: what was decided about the first says nothing of it."""
    bank = Bank()
    executor = ToolExecutor([bank.pay], requires_approval=["pay"], approval_key=key)
    first, second = calling("Anna", call_id="call_0"), calling("Anna", call_id="call_0", message_id="n")
    (shown,) = executor.pending_calls(first)
    with pytest.raises(ConfigurationError, match="about another call"):
        executor.execute_all(second, decisions=[shown.approve()])
    history = [first, *executor.execute_all(first, decisions=[shown.approve()]), second]
    (again,) = executor.pending_calls(second)
    assert [one.text for one in executor.execute_all(second, messages=history, decisions=[again.approve()])] == ["paid Anna"]
    assert bank.paid == ["Anna", "Anna"]


def test_a_result_answers_one_of_two_calls() -> None:
    """The other one waits still, is shown, and runs alone."""
    bank = Bank()
    executor = ToolExecutor([bank.pay], requires_approval=["pay"])
    answer = calling("Anna", "Anna")
    one, two = executor.pending_calls(answer)
    history = [answer, *executor.execute_all(answer, decisions=[one.approve()])]
    with pytest.raises(ConfigurationError, match="about another call"):
        executor.execute_all(answer, messages=history, decisions=[one.approve()])
    assert len(executor.execute_all(answer, messages=history, decisions=[two.approve()])) == 1
    assert len(executor.execute_all(answer.tool_calls[1:], messages=history, decisions=[two.approve()])) == 1
    assert bank.paid == ["Anna"] * 3
    assert len(pending_calls(history)) == 1


def test_calls_of_one_id_that_are_left_to_the_caller_are_answered_each() -> None:
    """`resume` takes one decision about each of them, and their results are of two calls."""
    model = declared("Fine.")
    history: list[BaseMessage] = [HumanMessage("Pay."), calling("Anna", "Anna")]
    one, two = pending_calls(history)
    assert one.digest != two.digest
    done = new_messages(model.invoke(history, resume=[two.reject("No."), one.respond("paid")]))
    assert [message.text for message in done] == ["paid", '{"error": "No."}', "Fine."]
    assert pending_calls([*history, ToolMessage("paid", tool_call_id="1")]) == [two]


def test_an_answer_is_about_a_call_of_one_turn() -> None:
    """What was said of a call that the caller ran is no result of an equal one later."""
    model = declared("Fine.")
    (shown,) = pending_calls(calling("Anna"))
    later: list[BaseMessage] = [HumanMessage("Pay."), calling("Anna", message_id="n")]
    with pytest.raises(ConfigurationError, match="about another call"):
        model.invoke(later, resume=[shown.respond("paid")])


def test_a_run_message_shows_the_calls_of_its_last_turn() -> None:
    """The same calls as the history shows, though calls beside them have run."""

    def look() -> str:
        """Look."""
        return "seen"

    asked = AIMessage("", tool_calls=[{"id": "1", "name": "look", "args": {}}, {"id": "2", "name": "pay", "args": {"to": "Anna"}}])
    model = declared(asked, "Fine.", tools=[look])
    run = model.invoke("Pay.")
    history = [HumanMessage("Pay."), *new_messages(run)]
    assert pending_calls(run) == pending_calls(history) != []
    assert model.invoke(history, resume=[pending_calls(run)[0].respond("paid")]).text == "Fine."


def test_the_callers_tool_is_the_callers_however_it_is_spelled() -> None:
    """A name that the caller has bound goes before the model's own tool: plain decisions do not run that one instead."""
    bank = Bank()
    asked = AIMessage("", id="m", tool_calls=[{"id": "1", "name": "PAY", "args": {"to": "Anna"}}])

    def PAY(to: str) -> str:
        """Pay somebody, elsewhere."""
        raise AssertionError

    model: Any = ScriptedChatModel(replies=["Fine."], tools=[bank.pay]).bind_tools([PAY])
    for decisions in (True, {"1": True}, {"1": {"to": "Eve"}}):
        with pytest.raises(ConfigurationError, match="only declared"):
            model.invoke([HumanMessage("Pay."), asked], resume=decisions)
    assert bank.paid == []
