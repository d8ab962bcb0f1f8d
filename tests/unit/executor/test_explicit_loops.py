"""What a loop of one's own asks of an executor: one call, some calls only, and where each result goes."""

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from langchain_autotools import ConfigurationError, ToolExecutor
from langchain_autotools.executor import ToolCallResult


def look(place: str) -> str:
    """Look at a place."""
    return f"{place} is quiet"


def delete(place: str) -> str:
    """Delete a place."""
    raise AssertionError("nobody allowed this")


def call(name: str, identifier: str, **args: Any) -> Any:
    """An entry of `tool_calls`."""
    return {"name": name, "args": args, "id": identifier, "type": "tool_call"}


ANSWER = AIMessage(
    "", tool_calls=[call("look", "a", place="Rome"), call("functions.delete", "b", place="Rome"), call("look", "c", place="Oslo")]
)
BUNDLE = AIMessage(
    "",
    tool_calls=[call("multi_tool_use.parallel", "p", tool_uses=[{"recipient_name": "functions.delete", "parameters": {"place": "Rome"}}])],
)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_one_call_is_executed_by_itself(asynchronous: bool) -> None:
    """`execute` gives the result of one call, whatever becomes of it."""

    def execute(one: Any) -> ToolCallResult:
        executor = ToolExecutor([look, delete])
        return asyncio.run(executor.aexecute(one)) if asynchronous else executor.execute(one)

    assert execute(ANSWER.tool_calls[0]).message.content == "Rome is quiet"
    failure = execute(ANSWER.tool_calls[1])
    assert isinstance(failure.error, AssertionError)
    assert failure.message.status == "error"
    assert execute(call("nothing", "x")).message.status == "error"


@pytest.mark.parametrize("only", [["look"], lambda one: one.name != "delete"])
def test_only_what_is_allowed_is_executed(only: Any) -> None:
    """Names or a function say which calls are executed; all others are answered, under every spelling and in bundles too."""
    executor = ToolExecutor([look, delete])
    first, refused, last = executor.execute_all(ANSWER, only=only)
    assert (first.content, last.content) == ("Rome is quiet", "Oslo is quiet")
    assert refused.status == "error"
    assert "'delete' is not allowed here" in refused.text
    (bundle,) = executor.execute_all(BUNDLE, only=only)
    assert "'delete' is not allowed here" in bundle.text


@pytest.mark.parametrize("only", ["look", 3, lambda one: None, lambda one: one.nothing])
def test_a_restriction_that_decides_nothing_runs_nothing(only: Any) -> None:
    """What is neither names nor a function that says True or False is refused before anything runs."""
    with pytest.raises((ConfigurationError, AttributeError)):
        ToolExecutor([look, delete]).execute_all(ANSWER, only=only)


def test_results_say_where_they_stand() -> None:
    """The results of an AI message say which call of which turn they answer; those of a list of calls say nothing."""
    executor = ToolExecutor([look, delete])
    marked = ANSWER.model_copy(update={"response_metadata": {"generation_id": "turn 1"}})
    places = [message.response_metadata for message in executor.execute_all(marked)]
    assert places == [{"generation_id": "turn 1", "message_order_idx": number + 1, "tool_call_idx": number} for number in range(3)]
    assert executor.execute_all(ANSWER)[2].response_metadata == {"message_order_idx": 3, "tool_call_idx": 2}
    assert executor.execute_all(ANSWER.tool_calls)[2].response_metadata == {}
    assert "message_order_idx" not in ANSWER.response_metadata
