"""Runs inside tools that did not finish: what the result of the call around them says, and the log."""

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool, tool

from langchain_autotools import Agent, ToolExecutor, ToolPolicy, new_messages, pending_calls, stop_reason
from langchain_autotools.testing import ScriptedChatModel
from tests.laws.ways import WAYS, run

ASKS = AIMessage("", tool_calls=[{"name": "delegate", "args": {}, "id": "outer"}])
SENDS = AIMessage("I write to her.", tool_calls=[{"name": "send", "args": {"to": "Ada"}, "id": "inner"}])
CUT = AIMessage("It is 2", response_metadata={"finish_reason": "length"})


@tool
def send(to: str) -> str:
    """Send a message."""
    return f"sent to {to}"


def inner(*replies: Any, **settings: Any) -> ScriptedChatModel:
    """The model inside the tool."""
    return ScriptedChatModel(tools=[send], replies=list(replies), **{"requires_approval": True, **settings})


def outer(delegate: Callable[..., Any], **settings: Any) -> ScriptedChatModel:
    """The model whose tool makes a run."""
    return ScriptedChatModel(tools={"delegate": delegate}, replies=[ASKS, "Done."], **settings)


def asynchronous(delegate: Callable[[], Any]) -> Callable[[], Any]:
    """The same tool, as a coroutine function."""

    async def adelegate() -> Any:
        """Delegate."""
        return delegate()

    return adelegate


def answer(way: str, delegate: Callable[..., Any]) -> ToolMessage:
    """The result of the call of a tool that makes a run."""
    (message,) = [one for one in run(way, outer(delegate), [HumanMessage("Tell Ada.")]).new if isinstance(one, ToolMessage)]
    return message


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [lambda delegate: delegate, asynchronous])
def test_a_returned_run_that_waits_is_an_error(way: str, kind: Callable[[Any], Any], caplog: pytest.LogCaptureFixture) -> None:
    """A tool that returns a run with open calls did not succeed: its result says so, with the run's text and what is open."""

    def delegate() -> Any:
        """Delegate."""
        return inner(SENDS).invoke("Tell Ada.")

    message = answer(way, kind(delegate))
    assert message.status == "error"
    said = json.loads(str(message.content))["error"]
    assert "calls_pending" in said and "I write to her." in said and 'send({"to": "Ada"})' in said
    assert said.count('send({"to": "Ada"})') == 1
    (warning,) = [one for one in caplog.records if one.levelno == logging.WARNING]
    assert "delegate" in warning.getMessage() and "send" in warning.getMessage()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [lambda delegate: delegate, asynchronous])
def test_a_plain_text_beside_open_calls_names_them(way: str, kind: Callable[[Any], Any], caplog: pytest.LogCaptureFixture) -> None:
    """Whatever a tool returns, a run inside it that ended with open calls is named in its result and in the log."""

    def delegate() -> str:
        """Delegate."""
        return str(inner(SENDS).invoke("Tell Ada.").text)

    message = answer(way, kind(delegate))
    assert message.status == "success"
    assert "open calls" in message.text and 'send({"to": "Ada"})' in message.text and message.text.endswith("I write to her.")
    assert sum(one.levelno == logging.WARNING for one in caplog.records) == 1


@pytest.mark.parametrize(
    ("returns", "wanted"),
    [
        (lambda: inner(CUT).invoke("Hello?"), "length"),
        (lambda: inner(SENDS, max_turns=1, on_limit="return", requires_approval=None).invoke("Hello?"), "max_turns"),
        (lambda: inner(SENDS).invoke("Hello?", cancel=lambda: True), "cancelled"),
        (lambda: Agent(inner(SENDS)).run("Hello?"), "calls_pending"),
        (lambda: sum_of(inner(SENDS)), "calls_pending"),
        (lambda: ScriptedChatModel(replies=[CUT]).invoke("Hello?"), "length"),
    ],
)
def test_every_unfinished_run_that_is_returned_is_an_error(returns: Callable[[], Any], wanted: str) -> None:
    """Also one that was cut, cancelled or ended by a limit, of an agent, or added up from its chunks; with an executor alone too."""
    (message,) = ToolExecutor({"delegate": StructuredTool.from_function(returns, description="Delegate.", name="delegate")}).execute_all(
        ASKS
    )
    assert message.status == "error" and wanted in message.content


def sum_of(model: ScriptedChatModel) -> Any:
    """The sum of what a run streams."""
    whole: Any = None
    for chunk in model.stream("Hello?"):
        whole = chunk if whole is None else whole + chunk
    return whole


def test_the_artifact_of_an_unfinished_run_stays() -> None:
    """A tool that returns content and artifact keeps its artifact where its content is a run that did not finish."""

    def delegate() -> Any:
        """Delegate."""
        return inner(SENDS).invoke("Hello?"), [1, 2]

    made = StructuredTool.from_function(delegate, response_format="content_and_artifact")
    (message,) = ToolExecutor([made]).execute_all(ASKS)
    assert message.status == "error" and message.artifact == [1, 2]


@pytest.mark.parametrize("make", [Agent, lambda model: model])
def test_a_finished_run_is_its_text(make: Callable[[Any], Any]) -> None:
    """A run that ended by itself, or with the result of a tool that answers directly, gives its text."""
    model = make(inner("It is done."))
    ask = model.run if isinstance(model, Agent) else model.invoke
    (message,) = ToolExecutor({"delegate": lambda: ask("Hello?")}).execute_all(ASKS)
    assert (message.status, message.content) == ("success", "It is done.")


def test_calls_that_the_tool_goes_on_with_are_not_open(caplog: pytest.LogCaptureFixture) -> None:
    """A tool that resumes the run inside it, or executes the calls itself, has left nothing open."""

    def resumed() -> Any:
        """Resume."""
        model, history = inner(SENDS, "Sent."), [HumanMessage("Tell Ada.")]
        asked = model.invoke(history)
        return model.resume([*history, *new_messages(asked)], [one.approve() for one in pending_calls(asked)])

    def executed() -> str:
        """Execute."""
        return str(ToolExecutor([send]).execute_all(inner(SENDS).invoke("Tell Ada."))[0].content)

    wanted = {resumed: "Sent.", executed: "sent to Ada"}
    for delegate, text in wanted.items():
        (message,) = ToolExecutor({"delegate": delegate}).execute_all(ASKS)
        assert (message.status, message.content) == ("success", text)
    assert not caplog.records


def test_an_error_beside_open_calls_names_both() -> None:
    """Of a tool that raises after a run inside it has left calls open, the error says both."""

    def delegate() -> None:
        """Delegate."""
        inner(SENDS).invoke("Tell Ada.")
        raise ValueError("no answer")

    (message,) = ToolExecutor([delegate]).execute_all(ASKS)
    said = json.loads(str(message.content))["error"]
    assert "ValueError: no answer" in said and 'send({"to": "Ada"})' in said


def test_another_attempt_forgets_what_the_first_left_open() -> None:
    """Only the last attempt of a call that is tried again counts."""
    models = [inner(SENDS), inner("It is done.")]

    def delegate() -> str:
        """Delegate."""
        reply = models.pop(0).invoke("Tell Ada.")
        if stop_reason(reply) != "complete":
            raise ConnectionError
        return str(reply.text)

    executor = ToolExecutor([delegate], default_policy=ToolPolicy(retry_on=(ConnectionError,)))
    (message,) = executor.execute_all(ASKS)
    assert message.content == "It is done."


def test_calls_side_by_side_name_their_own() -> None:
    """Each of several calls names what the run inside itself has left open."""
    asks = AIMessage("", tool_calls=[{"name": "delegate", "args": {"to": to}, "id": to} for to in ("Ada", "Bob")])

    async def delegate(to: str) -> str:
        """Delegate."""
        message = AIMessage("", tool_calls=[{"name": "send", "args": {"to": to}, "id": "1"}])
        await asyncio.sleep(0)
        return str((await inner(message).ainvoke("Hello?")).text)

    first, second = ToolExecutor([delegate]).execute_all(asks)
    assert "Ada" in first.text and "Bob" not in first.text and "Bob" in second.text and "Ada" not in second.text
