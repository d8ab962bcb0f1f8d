"""Tools of the vendor's that run on the caller's machine (bash, text editor, computer, memory), and blocks of its own that are kept."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool

from langchain_autotools import ChatAnthropic, ConfigurationError, new_messages, pending_calls
from tests.contract.talk import WAYS, run_in
from tests.providers.anthropic.test_paused_turns import reply, said
from tests.support.anthropic_server import AnthropicServer
from tests.support.script import Call, Turn
from tests.support.weather import get_temperature

QUESTION = [HumanMessage("Clean up.")]
BASH = {"type": "bash_20250124", "name": "bash"}


def model(server: AnthropicServer, *tools: Any, **more: Any) -> ChatAnthropic:
    """A model with these tools."""
    settings = {"model": "claude-test", "base_url": server.url, "api_key": "key", "max_retries": 0, "tools": [get_temperature, *tools]}
    return ChatAnthropic(**{**settings, **more})


@pytest.mark.parametrize("way", WAYS)
async def test_its_call_is_left_to_the_caller(way: str) -> None:
    """The function beside it runs, the run ends as pending, and goes on with the result that the caller gives."""
    calls = [Call("get_temperature", {"city": "Paris"}), Call("bash", {"command": "ls"}, id="toolu_b")]
    with AnthropicServer([Turn("Look.", calls), Turn("One file.")]) as server:
        asking = model(server, BASH)
        ran = await run_in(way, asking, QUESTION)
        assert (ran.message.response_metadata["autotools"]["stop_reason"], len(server.exchanges)) == ("calls_pending", 1)
        assert [(call["name"], call["args"], call["id"]) for call in ran.message.tool_calls] == [("bash", {"command": "ls"}, "toolu_b")]
        assert [message.type for message in ran.new] == ["ai", "tool"]
        answered = await run_in(way, asking, [*QUESTION, *ran.new, ToolMessage("a.txt", tool_call_id="toolu_b")])
        assert (answered.message.text, server.rejections) == ("One file.", [])
        results = server.messages[1][-1]["content"]
        assert [block["tool_use_id"] for block in results] == [ran.new[0].tool_calls[0]["id"], "toolu_b"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "declared",
    [
        {"type": "memory_20250818", "name": "memory"},
        {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
        {"type": "computer_20250124", "name": "computer", "display_width_px": 800, "display_height_px": 600},
    ],
    ids=lambda declared: declared["name"],
)
def test_each_of_them_is(declared: dict[str, Any]) -> None:
    """Alone, a call of any of them ends the run."""
    with AnthropicServer([Turn("", [Call(declared["name"], {"command": "view"})])]) as server:
        ran = model(server, declared).invoke(QUESTION)
        assert [call["name"] for call in ran.tool_calls] == [declared["name"]]
        assert ran.response_metadata["autotools"]["stop_reason"] == "calls_pending"


def test_its_call_is_shown_as_one_of_a_client_tool() -> None:
    """In the run and in the history; what came of it goes back by a decision, and nothing else can be done with it."""
    with AnthropicServer([Turn("Look.", [Call("bash", {"command": "ls"}, id="toolu_b")]), Turn("One file.")]) as server:
        asking = model(server, BASH)
        ran = asking.invoke(QUESTION)
        history = [*QUESTION, *new_messages(ran)]
        (pending,) = pending_calls(ran)
        assert pending_calls(history) == [pending]
        assert (pending.id, pending.name, pending.args, pending.kind) == ("toolu_b", "bash", {"command": "ls"}, "client_tool")
        with pytest.raises(ConfigurationError, match="user's machine: run it yourself"):
            pending.approve()
        answered = asking.resume(history, [pending.respond("a.txt")])
        assert (answered.text, server.rejections) == ("One file.", [])
        assert server.messages[1][-1]["content"][0]["tool_use_id"] == "toolu_b"


@pytest.mark.parametrize("order", [1, -1])
def test_a_tool_of_its_name_runs_it(order: int) -> None:
    """The vendor's declaration is sent, once; what the model asks for is done by the tool that bears the name."""
    ran: list[str] = []

    @tool
    def bash(command: str) -> str:
        """Run a command."""
        ran.append(command)
        return "a.txt"

    with AnthropicServer([Turn("", [Call("bash", {"command": "ls"})]), Turn("One file.")]) as server:
        answer = model(server, *[BASH, bash][::order]).invoke(QUESTION)
        assert (answer.text, ran, server.rejections) == ("One file.", ["ls"], [])
        assert [tool for tool in server.requests[0]["tools"] if tool["name"] == "bash"] == [BASH]


def test_a_call_of_no_such_tool_is_answered() -> None:
    """Servers' own tools are called by other blocks: a function call of their name is a mistake, and the model is told."""
    search = {"type": "web_search_20250305", "name": "web_search"}
    with AnthropicServer([Turn("", [Call("web_search", {"query": "x"})]), Turn("Sorry.")]) as server:
        answer = model(server, search).invoke(QUESTION)
        assert (answer.text, answer.response_metadata["autotools"]["stop_reason"]) == ("Sorry.", "complete")


@pytest.mark.parametrize("version", [None, "v1"])
async def test_listings_of_remote_tools_go_back(version: str | None) -> None:
    """What a remote server lists (`mcp_tool_listing`) is kept in its place and sent back as it came."""
    listing = {"type": "mcp_tool_listing", "server_name": "docs", "tools": [{"name": "read", "input_schema": {"type": "object"}}]}
    turns = [reply(1, listing, said("Look."), reason="end_turn"), Turn("Yes."), Turn("Yes.")]
    for way in ("invoke", "stream"):
        with AnthropicServer(turns, strict=False) as server:
            asking = model(server, output_version=version)
            ran = await run_in(way, asking, QUESTION)
            await run_in(way, asking, [*QUESTION, *ran.new, HumanMessage("Sure?")])
            assert server.messages[1][1]["content"] == [listing, said("Look.")]
