"""What the functions for users say of values that are none of theirs: never a bare error from inside, never a wrong answer."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_autotools import ConfigurationError, final_message, new_messages, repair, run_usage, validate
from langchain_autotools.history import explain
from langchain_autotools.testing import ScriptedChatModel


@pytest.mark.parametrize("function", [new_messages, final_message, run_usage])
@pytest.mark.parametrize("value", [None, "text", 3, [AIMessage("Hi")], {"content": "Hi"}])
def test_what_is_no_message_is_named(function: Callable[..., Any], value: Any) -> None:
    """The error says which function, and what it takes."""
    with pytest.raises(ValueError, match=f"{function.__name__} takes what a chat model returned, not a {type(value).__name__}"):
        function(value)


@pytest.mark.parametrize("function", [repair, validate, explain])
@pytest.mark.parametrize("history", [[{"role": "user", "content": "Hi"}], [("user", "Hi")], "Hi", [HumanMessage("Hi"), None]])
def test_a_history_of_something_else_is_not_called_valid(function: Callable[..., Any], history: Any) -> None:
    """Nobody has looked at what is no message."""
    with pytest.raises(ConfigurationError, match="a history holds LangChain messages, not"):
        function(history)


@pytest.mark.parametrize("decisions", ["yes", [True], False, {"call_1": 3}, {"call_1": None}])
def test_decisions_that_are_none_are_refused(decisions: Any) -> None:
    """A denial and an interrupt are decisions of somebody's; nothing is taken for one."""

    def send(to: str) -> str:
        """Send."""
        return to

    model = ScriptedChatModel(tools=[send], replies=["Done."])
    history = [HumanMessage("Send."), AIMessage("", tool_calls=[{"name": "send", "args": {"to": "x"}, "id": "call_1"}])]
    with pytest.raises(ConfigurationError, match="decision"):
        model.resume(history, decisions)
    assert not model.requests
