"""ToolExecutor: names that are not quite right, and calls that bundle others."""

import json
from typing import Any

import pytest

from langchain_autotools.executor import ToolExecutor
from tests.support.calls import call, contents


def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


async def aadd(a: int, b: int = 1) -> int:
    """Add, asynchronously."""
    return a + b


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("get_weather", "get_weather"),
        (" get_weather\n", "get_weather"),
        ("functions.get_weather", "get_weather"),
        ("tools.get_weather", "get_weather"),
        ("default_api.get_weather", "get_weather"),
        ("default_api:get_weather", "get_weather"),
        ("functions.get_weather:0", "get_weather"),
        ("get_weather<|channel|>commentary", "get_weather"),
        ("functions.get_weather<|channel|>json", "get_weather"),
        ("mcp_mcp_read", "mcp_read"),
        ("get_weather_tool", "get_weather"),
        ("GetWeather", "get_weather"),
        ("GetWeatherTool", "get_weather"),
        ("get-weather", "get_weather"),
        ("functions.Get-Weather", "get_weather"),
        ("functions", "functions"),
        ("functionsget_weather", None),
        ("functions_get_weather", None),
        ("tools.", None),
        ("READFILE", None),  # read_file and readFile: not clear which
        ("readFile", "readFile"),
        ("weather", None),
        ("", None),
        ("<|x|>", None),
        (":0", None),
    ],
)
def test_a_name_that_is_not_quite_right_finds_its_tool(written: str, found: str | None) -> None:
    """Known additions are taken off; nothing is guessed (wire quirks N-03, G-12)."""
    executor = ToolExecutor(dict.fromkeys(["get_weather", "mcp_read", "functions", "read_file", "readFile"], add))
    tool_ = executor.find(written)
    assert (tool_.name if tool_ else None) == found


@pytest.mark.parametrize("name", ["functions.f", "f:0", "f_tool", "tools.f", "F", "mcp_f", "f<|x"])
def test_an_exact_name_always_wins(name: str) -> None:
    """A tool whose real name looks like a repaired one is found by it."""
    executor = ToolExecutor({"f": lambda: "plain", name: lambda: "exact"})
    assert contents(executor, call(name), call("f")) == ["exact", "plain"]


def test_the_result_carries_the_name_the_model_wrote() -> None:
    """A message and its call agree in history, whatever was repaired to find the tool."""
    (message,) = ToolExecutor([add]).execute_all([call("functions.add", a=1)])
    assert (message.content, message.name) == ("2", "functions.add")


# ---------------------------------------------------------------------------------------------- bundles (wire quirk N-05)


def uses(*parts: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """A call that bundles others."""
    return call("multi_tool_use.parallel", "outer", tool_uses=[{"recipient_name": name, "parameters": args} for name, args in parts])


def test_a_bundle_of_calls_is_executed_and_answered_as_one() -> None:
    """Every call inside runs; the outer id gets one result that holds them all (wire quirks N-05, P-09)."""
    heard: list[str] = []
    executor = ToolExecutor(
        [add, aadd], on_executing=lambda one: heard.append(one.id), on_executed=lambda result: heard.append(result.call.id)
    )
    (text,) = contents(executor, uses(("functions.add", {"a": 1}), ("aadd", {"a": "x"}), ("aadd", {"a": 2})))
    first, second, third = json.loads(text)
    assert first == {"tool": "functions.add", "status": "success", "result": "2"}
    assert second["status"] == "error"
    assert third["result"] == "3"
    assert heard == ["outer_0", "outer_0", "outer_1", "outer_1", "outer_2", "outer_2"] * 2
    (message,) = executor.execute_all([uses(("add", {"a": "x"}))])
    assert message.status == "error"


@pytest.mark.parametrize(
    "bundle",
    [
        uses(("add", {"a": 1}), ("unknown", {})),
        uses(),
        call("multi_tool_use.parallel", "outer", tool_uses=["add"]),
        call("multi_tool_use.parallel", "outer", tool_uses=[{"recipient_name": "add", "parameters": 5}]),
        call("multi_tool_use.parallel", "outer"),
    ],
    ids=["unknown", "empty", "no dict", "no parameters", "nothing"],
)
def test_a_bundle_that_is_not_clear_is_not_executed(bundle: dict[str, Any]) -> None:
    """One unknown name inside, and nothing runs."""
    (text,) = contents(ToolExecutor([add]), bundle)
    assert "is not a valid tool" in json.loads(text)["error"]


def test_a_tool_named_like_a_bundle_is_a_tool() -> None:
    """A declared name is never taken for a bundle."""

    def parallel(tool_uses: list[Any]) -> str:
        return "mine"

    assert contents(ToolExecutor([parallel, add]), {**uses(("add", {"a": 1})), "name": "parallel"}) == ["mine"]
