"""Calls and results added to a history by hand."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_autotools import ConfigurationError, ToolExecutor, add_assistant_tool_calls, add_tool_calls_and_results, calls_of, validate

HISTORY: list[BaseMessage] = [HumanMessage("Look around.")]
FORMS: list[Any] = [
    {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"at":  "Rome"}'}},
    {"id": "a", "name": "look", "args": {"at": "Rome"}},
    {"call_id": "a", "name": "look", "arguments": '{"at": "Rome"}', "type": "function_call"},
    calls_of(AIMessage("", tool_calls=[{"id": "a", "name": "look", "args": {"at": "Rome"}}]))[0],
]


@pytest.mark.parametrize("form", FORMS)
def test_a_call_in_any_form_becomes_one_of_the_model(form: Any) -> None:
    """A record, LangChain's dict and both of OpenAI's dicts say the same call."""
    *before, message = add_assistant_tool_calls(HISTORY, [form], "Let me look.")
    assert before == HISTORY
    assert isinstance(message, AIMessage)
    assert (message.text, message.tool_calls) == (
        "Let me look.",
        [{"id": "a", "name": "look", "args": {"at": "Rome"}, "type": "tool_call"}],
    )


def test_the_text_of_arguments_stays_as_it_was_written() -> None:
    """Arguments that came as text are kept to the letter, so that they are sent again as they were."""
    (_, message) = add_assistant_tool_calls(HISTORY, FORMS[:1])
    assert isinstance(message, AIMessage)
    assert calls_of(message)[0].arguments == '{"at":  "Rome"}'


@pytest.mark.parametrize(
    ("calls", "words"),
    [
        ([{"id": "a", "function": {"name": "look", "arguments": '{"at": '}}], "'a' of 'look' are not one complete JSON object"),
        ([{"id": "a", "name": "look", "args": [1]}], "not one complete JSON object"),
        ([{"id": "a", "args": {}}], "'a' has no name"),
        ([3], "a call is a ToolCallRecord"),
        ([], "there are no calls"),
        ([FORMS[0], FORMS[1]], "two calls have one id"),
        (calls_of(AIMessage("", invalid_tool_calls=[{"id": "a", "name": "look", "args": "{", "error": None}])), "'a' of 'look'"),
    ],
)
def test_what_is_no_call_is_refused_by_name(calls: Any, words: str) -> None:
    """Arguments that cannot be used, and everything else that makes no call, are refused: nothing is guessed."""
    with pytest.raises(ConfigurationError, match=words):
        add_assistant_tool_calls(HISTORY, calls)


def test_a_call_without_an_id_has_a_new_one() -> None:
    """Two calls without ids can be told apart."""
    message = add_assistant_tool_calls(HISTORY, [{"name": "look", "args": {}}, {"name": "look", "args": {}}])[-1]
    assert isinstance(message, AIMessage)
    assert len({call["id"] for call in message.tool_calls}) == 2


CALLS = [{"id": "a", "name": "look", "args": {}}, {"id": "b", "name": "feel", "args": {}}]
RESULTS: list[Any] = [
    list(ToolExecutor({"look": lambda: "21 °C", "feel": lambda: {"wind": 3}}).stream(CALLS)),
    {"b": {"wind": 3}, "a": "21 °C"},
    [ToolMessage('{"wind": 3}', tool_call_id="b"), ToolMessage("21 °C", tool_call_id="a")],
]


@pytest.mark.parametrize("results", RESULTS)
def test_results_follow_in_the_order_of_the_calls(results: Any) -> None:
    """Values, messages and an executor's results give one valid history, whatever order they came in."""
    history = add_tool_calls_and_results(HISTORY, CALLS, results)
    assert [(message.name, message.text) for message in history[2:]] == [("look", "21 °C"), ("feel", '{"wind": 3}')]
    assert validate(history) == []


@given(st.permutations("abc"), st.integers(0, 3))
def test_open_calls_are_answered_in_any_order_and_in_parts(order: list[str], first: int) -> None:
    """Results that come one after another are put in the order of the calls that the history ends in."""
    history = add_assistant_tool_calls(HISTORY, [{"id": one, "name": f"tool_{one}", "args": {}} for one in "abc"])
    for part in (order[:first], order[first:]):
        history = add_tool_calls_and_results(history, [], {one: one.upper() for one in part}) if part else history
    assert [message.text for message in history[2:]] == ["A", "B", "C"]
    assert validate(history) == []


def test_a_result_that_answers_nothing_is_refused_or_gets_its_call() -> None:
    """An orphan is an error that names it; with `auto_assistant_tool_calls` the call that it answers is made."""
    orphan = ToolMessage("21 °C", tool_call_id="x", name="look")
    for calls in ([], CALLS):
        with pytest.raises(ConfigurationError, match="'x'"):
            add_tool_calls_and_results(HISTORY, calls, [orphan])
    history = add_tool_calls_and_results(HISTORY, [], [orphan], auto_assistant_tool_calls=True)
    assert validate(history) == []
    assert isinstance(history[1], AIMessage)
    assert history[1].tool_calls == [{"id": "x", "name": "look", "args": {}, "type": "tool_call"}]
    with pytest.raises(ConfigurationError, match="'x'"):  # the open call and an orphan cannot be in one turn
        add_tool_calls_and_results(add_assistant_tool_calls(HISTORY, CALLS), [], [orphan], auto_assistant_tool_calls=True)


def test_two_results_of_one_call_are_refused() -> None:
    """Nothing says which of two results is the right one."""
    with pytest.raises(ConfigurationError, match="two results answer call 'a'"):
        add_tool_calls_and_results(HISTORY, CALLS, [ToolMessage("1", tool_call_id="a"), ToolMessage("2", tool_call_id="a")])
    with pytest.raises(ConfigurationError, match="a result is a ToolMessage"):
        add_tool_calls_and_results(HISTORY, CALLS, ["21 °C"])  # type: ignore[list-item]
