"""What a model or a program asks for in great numbers stays bounded: names, threads."""

import tracemalloc

import pytest

from langchain_autotools import ToolExecutor


def x() -> str:
    """A tool."""
    return "ran"


@pytest.mark.parametrize("name", ["functions." * 25_000 + "x", "mcp_" * 60_000 + "x", "_tool" * 50_000, "x" + ":1" * 100_000])
def test_a_name_of_any_length_is_judged_in_little_memory(name: str) -> None:
    """Quadratic work on such a name would take minutes, and hundreds of megabytes."""
    executor = ToolExecutor([x])
    tracemalloc.start()
    assert executor.find(name) is None
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50 * len(name)


def test_what_stands_after_a_special_token_may_be_of_any_length() -> None:
    """A model that leaks its channel text into the name still means the tool before it."""
    tool = ToolExecutor([x]).find("functions.x<|channel|>" + "functions." * 100_000)
    assert tool is not None and tool.name == "x"
