"""`read_choice`: what a tool choice asks of the first turn, what of it stays, and which tools it allows."""

from typing import Any

import pytest

from langchain_autotools.turn.tools import ToolChoice, read_choice

TOOLS = [{"type": "function", "name": "f"}, {"type": "function", "function": {"name": "g"}}, {"type": "web_search"}, "h"]
NAMES = ["f", "g", "web_search", "h"]


@pytest.mark.parametrize("choice", [None, "auto", {"type": "auto", "disable_parallel_tool_use": True}])
def test_a_choice_that_forces_nothing_stays(choice: Any) -> None:
    """It is said on every turn as it was written: what is beside the word restricts."""
    assert read_choice(choice) == ToolChoice(choice, choice, None, False)


@pytest.mark.parametrize("choice", ["none", {"type": "none"}])
def test_no_tool_means_no_tool_on_every_turn(choice: Any) -> None:
    """The word stays, and no name is allowed."""
    assert read_choice(choice) == ToolChoice(choice, choice, (), False)


@pytest.mark.parametrize("choice", ["any", "required", {"type": "function", "function": {"name": "f"}}, {"type": "tool", "name": "f"}])
def test_a_forced_call_is_asked_for_once(choice: Any) -> None:
    """Kept, it would never let the run end; every tool is allowed afterwards."""
    assert read_choice(choice) == ToolChoice(choice, None, None, True)


@pytest.mark.parametrize(("mode", "forced"), [("auto", False), ("required", True), ("any", True)])
@pytest.mark.parametrize("nested", [False, True])
def test_allowed_tools_stay_allowed(mode: str, forced: bool, nested: bool) -> None:
    """The list holds on every turn; that one of them must be called on the first alone."""
    body = {"mode": mode, "tools": TOOLS}
    choice = {"type": "allowed_tools", "allowed_tools": body} if nested else {"type": "allowed_tools", **body}
    read = read_choice(choice)
    free = {**body, "mode": "auto"}
    lasting = {"type": "allowed_tools", "allowed_tools": free} if nested else {"type": "allowed_tools", **free}
    assert read == ToolChoice(choice, lasting, NAMES, forced)
    assert body["mode"] == mode
