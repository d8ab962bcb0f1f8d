"""What a model is given as tools: which of them its vendor executes."""

from typing import Any

import pytest

from langchain_autotools.executor.names import tool_name
from langchain_autotools.turn.tools import is_builtin


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ({"type": "web_search"}, True),
        ({"type": "web_search_20250305", "name": "web_search"}, True),
        ({"google_search": {}}, True),
        ({"type": "function", "name": "f"}, False),
        ({"type": "custom_kind", "function": {"name": "f"}}, False),
        ({"function": {"name": "f"}}, False),
        ({"name": "f", "parameters": {}}, False),
        ({"title": "f"}, False),
        ({"functionDeclarations": []}, False),
        (print, False),
    ],
)
def test_which_tools_are_the_vendors_own(tool: Any, expected: bool) -> None:
    """A dict that says a type of its own, or names no function in any wire's words."""
    assert is_builtin(tool) is expected


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        ({"type": "function", "function": {"name": "f"}}, "f"),
        ({"type": "web_search_20250305", "name": "web_search"}, "web_search"),
        ({"type": "web_search"}, "web_search"),
        ({"google_search": {}}, ""),
    ],
)
def test_a_tool_without_a_name_goes_by_its_type(tool: dict[str, Any], name: str) -> None:
    """In whatever wire's form it is declared."""
    assert tool_name(tool) == name
