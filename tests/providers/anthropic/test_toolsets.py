"""Calls of a toolset of the vendor's (`toolset_name`): they are the caller's, whatever tool of one's own bears their name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool

from langchain_autotools import ChatAnthropic, ConfigurationError, Handler, ToolExecutor, new_messages, pending_calls
from tests.contract.talk import WAYS, run_in
from tests.support.anthropic_server import AnthropicServer
from tests.support.script import Call, Turn
from tests.support.weather import get_temperature

QUESTION = [HumanMessage("What is on the screen?")]
TOOLSET = {"type": "computer_toolset_20260801"}
LOOK = Call("screenshot", {"zoom": 2}, id="toolu_s", extra={"toolset_name": "computer"})
OWN = Call("screenshot", {"zoom": 1}, id="toolu_o")


@pytest.fixture
def ran() -> list[int]:
    """What the user's own tool ran with."""
    return []


@pytest.fixture
def screenshot(ran: list[int]) -> Any:
    """A tool of the user's that bears the name of a toolset's."""

    @tool
    def screenshot(zoom: int) -> str:
        """Take a picture."""
        ran.append(zoom)
        return "mine"

    return screenshot


def model(server: AnthropicServer, *tools: Any, **more: Any) -> ChatAnthropic:
    """A model with the toolset and these tools."""
    settings = {"model": "claude-test", "base_url": server.url, "api_key": "key", "max_retries": 0, "tools": [*tools, TOOLSET]}
    return ChatAnthropic(**{**settings, **more})


@pytest.mark.parametrize("version", [None, "v1"])
@pytest.mark.parametrize("way", WAYS)
async def test_a_tool_of_that_name_does_not_run_it(way: str, version: str | None, screenshot: Any, ran: list[int]) -> None:
    """The user's call of the same name runs, the toolset's waits; its answer goes back under the toolset's name."""
    with AnthropicServer([Turn("Look.", [LOOK, OWN]), Turn("A window.")]) as server:
        asking = model(server, screenshot, output_version=version)
        first = await run_in(way, asking, QUESTION)
        assert (ran, first.message.response_metadata["autotools"]["stop_reason"]) == ([1], "calls_pending")
        (pending,) = pending_calls(first.message)
        assert pending_calls([*QUESTION, *first.new]) == [pending]
        shown = (pending.id, pending.name, pending.toolset, pending.args, pending.kind)
        assert shown == ("toolu_s", "screenshot", "computer", {"zoom": 2}, "client_tool")
        second = await run_in(way, asking, [*QUESTION, *first.new], resume=[pending.respond("a window")])
        assert (second.message.text, ran, server.rejections) == ("A window.", [1], [])
        results = {block["tool_use_id"]: block for block in server.messages[1][-1]["content"]}
        assert (results["toolu_s"]["toolset_name"], results["toolu_s"]["content"]) == ("computer", "a window")
        assert "toolset_name" not in results["toolu_o"]


def test_it_waits_where_no_tool_has_its_name() -> None:
    """The model is not told that there is no such tool."""
    with AnthropicServer([Turn("", [LOOK]), Turn("A window.")]) as server:
        asking = model(server, get_temperature)
        first = asking.invoke(QUESTION)
        assert [call["name"] for call in first.tool_calls] == ["screenshot"]
        (pending,) = pending_calls(first)
        history = [*QUESTION, *new_messages(first)]
        for decide in (lambda: pending.approve(), lambda: pending.edit({}), lambda: asking.resume(history, True)):
            with pytest.raises(ConfigurationError, match="run it yourself"):
                decide()
        assert asking.resume(history, [pending.reject("No.")]).text == "A window."
        assert server.messages[1][-1]["content"][0]["is_error"] is True


def test_no_rule_asks_for_its_approval(screenshot: Any, ran: list[int]) -> None:
    """A rule that names the user's tool is about the user's tool, also one after another and with a function that decides at once."""
    with AnthropicServer([Turn("", [LOOK, OWN]), Turn("", [LOOK, OWN])]) as server:
        asking = model(server, screenshot, requires_approval=["screenshot"])
        kinds = {call.id: call.kind for call in pending_calls(asking.invoke(QUESTION))}
        assert (kinds, ran) == ({"toolu_s": "client_tool", "toolu_o": "approval"}, [])
        at_once = asking.invoke(QUESTION, approve=lambda call: call.approve())
        assert ([call.id for call in pending_calls(at_once)], ran) == (["toolu_s"], [1])


def test_an_executor_alone_leaves_it_out(screenshot: Any, ran: list[int]) -> None:
    """Also where the toolset's name is in the content alone, as langchain-anthropic has it; its answer is taken as a decision."""
    executor = ToolExecutor([screenshot])
    block = {"type": "tool_use", "id": "toolu_s", "name": "screenshot", "input": {"zoom": 2}, "toolset_name": "computer"}
    call: Any = {"type": "tool_call", "id": "toolu_s", "name": "screenshot", "args": {"zoom": 2}}
    answer = AIMessage([block], tool_calls=[call])
    assert (executor.execute_all(answer), ran) == ([], [])
    (pending,) = executor.pending_calls(answer)
    assert [pending] == pending_calls(answer)
    (result,) = executor.execute_all(answer, messages=[*QUESTION, answer], decisions=[pending.respond("a window")])
    assert (result.content, result.tool_call_id, ran) == ("a window", "toolu_s", [])


@pytest.mark.parametrize("left", ["computer_toolset_20260801", "screenshot"])
def test_a_turn_that_leaves_it_out_answers_it(left: str, screenshot: Any, ran: list[int]) -> None:
    """And one that leaves out the user's tool of its name has its handler answer it."""
    handler = Handler(lambda arguments: ran.append(0) or "a window", requires_approval=False)
    with AnthropicServer([Turn("Look.", [LOOK, OWN]), Turn("A window.")]) as server:
        narrows: Any = lambda turn: replace(turn, tools=[left]) if turn.number == 1 else None  # noqa: E731
        asking = model(server, screenshot, handlers={("computer", "screenshot"): handler}, before_turn=narrows)
        run = asking.invoke(QUESTION)
        results = {one.tool_call_id: one.text for one in new_messages(run) if one.type == "tool"}  # type: ignore[attr-defined]
        refused = [call_id for call_id, text in results.items() if "'screenshot' is not allowed here" in text]
        assert (ran, refused, server.rejections) == (([1], ["toolu_s"], []) if left == "screenshot" else ([0], ["toolu_o"], []))
