"""What takes a run message takes an `AgentResult` too: functions, tools, notebooks."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage

from langchain_autotools import (
    Agent,
    ToolExecutor,
    final_message,
    markdown_of,
    new_messages,
    pending_calls,
    results_of,
    run_usage,
    show,
    stop_reason,
)
from langchain_autotools.agent import AgentResult
from langchain_autotools.messages import max_turns_reached
from langchain_autotools.testing import ScriptedChatModel

CALLING = AIMessage("Let me look.", tool_calls=[{"id": "a", "name": "look", "args": {"at": "Rome"}}])


def look(at: str) -> str:
    """Look at a place."""
    return f"{at} is quiet"


def agent(*replies: Any, **fields: Any) -> Agent:
    """An agent whose model says these replies."""
    return Agent(ScriptedChatModel(replies=list(replies), tools=[look], **fields))


def test_functions_of_run_messages_take_the_result() -> None:
    """Each says of it what it says of the run message; the messages begin with the question."""
    result = agent(CALLING, "All quiet.").run("What is up?")
    assert new_messages(result) == list(result.messages)
    assert results_of(result) == results_of(result.message)
    for function in (final_message, markdown_of, stop_reason, max_turns_reached, run_usage, pending_calls):
        assert function(result) == function(result.message)
    assert final_message(result).text == "All quiet."


def test_calls_that_wait_are_those_of_the_result() -> None:
    """The loop of approvals takes what `run` returned."""
    one = agent(CALLING, "All quiet.", requires_approval=True)
    result = one.run("What is up?")
    while calls := pending_calls(result):
        result = one.run(resume=[call.approve() for call in calls])
    assert result.text == "All quiet."


@pytest.mark.parametrize(
    ("wrap", "content"),
    [
        (lambda result: result, "Let me look.\nAll quiet."),
        (lambda result: result.message, "Let me look.\nAll quiet."),
        (lambda result: {"answer": result}, '{"answer": "Let me look.\\nAll quiet."}'),
        (lambda result: [result.message, 1], '["Let me look.\\nAll quiet.", 1]'),
    ],
    ids=["result", "message", "in a dict", "in a list"],
)
@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_tool_that_returns_a_result_gives_its_text(wrap: Any, content: str, asynchronous: bool) -> None:
    """The carrier of its run is nothing for the model that called the tool."""
    inner = agent(CALLING, "All quiet.")

    def ask() -> Any:
        """Ask another agent."""
        return wrap(inner.run("What is up?"))

    async def aask() -> Any:
        """Ask another agent."""
        return wrap(await inner.arun("What is up?"))

    executor = ToolExecutor({"ask": aask if asynchronous else ask})
    calling = AIMessage("", tool_calls=[{"id": "b", "name": "ask", "args": {}}])
    (result,) = await executor.aexecute_all(calling) if asynchronous else executor.execute_all(calling)
    assert (result.content, result.status) == (content, "success")


def test_a_result_is_shown_as_the_run_was(capsys: pytest.CaptureFixture[str]) -> None:
    """`show` of a result prints what `show` of the stream printed, also of calls that wait and of a run that was resumed."""
    for fields in ({}, {"requires_approval": True}):
        shown, streamed = agent(CALLING, "All quiet.", **fields), agent(CALLING, "All quiet.", **fields)
        assert show(streamed.run_stream("What is up?")).text
        expected = capsys.readouterr().out
        result = shown.run("What is up?")
        assert show(result) is result.message
        assert capsys.readouterr().out == expected
    assert show(shown.run(resume=[call.approve() for call in pending_calls(result)])).text == "All quiet."
    assert capsys.readouterr().out == "← look: Rome is quiet\nAll quiet.\n[1 turn]\n"


def test_a_notebook_shows_a_result_as_markdown() -> None:
    """As it shows its run message."""
    result: AgentResult = agent(CALLING, "All quiet.").run("What is up?")
    assert result._repr_markdown_() == markdown_of(result.message)
