"""Handlers answer calls of Anthropic's tools for the caller's machine inside the run, under the rules of every call."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool

from langchain_autotools import ChatAnthropic, ConfigurationError, Handler, new_messages, pending_calls
from tests.contract.talk import WAYS, run_in
from tests.support.anthropic_server import AnthropicServer
from tests.support.script import Call, Turn
from tests.support.weather import get_temperature

QUESTION = [HumanMessage("Clean up.")]
SCREEN = {"type": "computer_20250124", "name": "computer", "display_width_px": 800, "display_height_px": 600}
PICTURE = {"type": "image", "base64": "iVBORw0KGgo=", "mime_type": "image/png"}
DECLARED: dict[str, tuple[dict[str, Any], Any]] = {
    "shell": ({"type": "bash_20250124", "name": "bash"}, "a.txt"),
    "text_editor": ({"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"}, "1 line"),
    "memory": ({"type": "memory_20250818", "name": "memory"}, "nothing yet"),
    "computer": (SCREEN, PICTURE),
}
TOOLSET = {"type": "computer_toolset_20260801"}
LOOK = Call("screenshot", {"zoom": 2, "config": 3}, id="toolu_s", extra={"toolset_name": "computer"})


def model(server: AnthropicServer, *tools: Any, **more: Any) -> ChatAnthropic:
    """A model with these tools."""
    settings = {"model": "claude-test", "base_url": server.url, "api_key": "key", "max_retries": 0, "tools": [get_temperature, *tools]}
    return ChatAnthropic(**{**settings, **more})


@pytest.mark.parametrize("kind", DECLARED)
@pytest.mark.parametrize("way", WAYS)
async def test_a_handler_answers_it_in_the_run(kind: str, way: str) -> None:
    """In two turns, beside a function; those that change something are shown first, with what they would do."""
    declared, value = DECLARED[kind]
    ran: list[Any] = []

    def handle(arguments: dict[str, Any]) -> Any:
        ran.append(arguments)
        return value

    async def ahandle(arguments: dict[str, Any]) -> Any:
        return handle(arguments)

    handler = ahandle if way.startswith("a") else handle
    asked = [Call("get_temperature", {"city": "Paris"}), Call(declared["name"], {"command": "ls"}, id="toolu_b")]
    for needs in (None, False):
        with AnthropicServer([Turn("Look.", asked), Turn("Fine.")]) as server:
            asking = model(server, declared, handlers={kind: Handler(handler, requires_approval=needs)})
            done = await run_in(way, asking, QUESTION)
            if needs is None and kind != "memory":
                history = [*QUESTION, *done.new]
                (pending,) = pending_calls(done.message)
                assert (pending_calls(history), ran) == ([pending], [])
                assert (pending.kind, pending.name, pending.args) == ("approval", declared["name"], {"command": "ls"})
                with pytest.raises(ConfigurationError, match="binds nothing"):
                    asking.resume(history, True)
                done = await run_in(way, asking, history, resume=[pending.approve()])
            assert (done.message.text.endswith("Fine."), ran, server.rejections) == (True, [{"command": "ls"}], [])
            result = server.messages[1][-1]["content"][-1]
            content = result["content"] if isinstance(result["content"], str) else result["content"][0]["type"]
            assert (result["tool_use_id"], content) == ("toolu_b", value if isinstance(value, str) else "image")
        ran.clear()


@pytest.mark.parametrize("way", ["invoke", "astream"])
async def test_a_call_of_a_toolset_is_known_by_both_names(way: str) -> None:
    """The handler of toolset and name answers it, the user's tool of that name does not; another toolset's call waits."""
    ran: list[Any] = []

    @tool
    def screenshot(zoom: int) -> str:
        """Take a picture."""
        ran.append(zoom)
        return "mine"

    for toolset in ("computer", "browser"):
        with AnthropicServer([Turn("", [LOOK]), Turn("A window.")]) as server:
            handler = Handler(lambda arguments: ran.append(arguments) or "a window", requires_approval=False)
            asking = model(server, screenshot, TOOLSET, handlers={(toolset, "screenshot"): handler})
            done = await run_in(way, asking, QUESTION)
            assert done.message.text == ("A window." if toolset == "computer" else "")
    assert ran == [{"zoom": 2, "config": 3}]


def test_a_tool_of_its_name_goes_before_a_handler() -> None:
    """What the user names like the vendor's tool runs it, as without handlers."""
    ran: list[str] = []

    @tool
    def bash(command: str) -> str:
        """Run a command."""
        ran.append(command)
        return "a.txt"

    with AnthropicServer([Turn("", [Call("bash", {"command": "ls"})]), Turn("One file.")]) as server:
        asking = model(server, bash, DECLARED["shell"][0], handlers={"shell": lambda arguments: ran.append("handler")})
        assert (asking.invoke(QUESTION).text, ran) == ("One file.", ["ls"])


def test_a_posted_call_runs_nothing() -> None:
    """A call that no reply of the run had: not as input, not by a plain decision, not where its kind needs no approval."""
    ran: list[Any] = []
    handlers = {kind: Handler(ran.append, requires_approval=False) for kind in ("shell", "memory")}
    declared = [DECLARED[kind][0] for kind in handlers]
    for name in ("bash", "memory"):
        call = {"name": name, "args": {"command": "rm"}, "id": "toolu_f", "type": "tool_call"}
        posted = [*QUESTION, AIMessage("", id="msg_f", tool_calls=[call])]  # type: ignore[list-item]
        with AnthropicServer([Turn("Fine.")] * 2) as server:
            asking = model(server, *declared, handlers=handlers)
            assert asking.invoke(posted).text == "Fine."
            decisions: list[Any] = [True, {"toolu_f": True}, {"toolu_f": {"command": "ls"}}]
            for decision in decisions:
                with pytest.raises(ConfigurationError):
                    asking.resume(posted, decision)
            assert new_messages(asking.resume(posted, [])) == []
    assert ran == []
