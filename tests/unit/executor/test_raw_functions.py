"""`raw_functions`: tools of functions that take the raw JSON text of their arguments."""

import json
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel

from langchain_autotools import ConfigurationError, ToolExecutor, new_messages, raw_functions
from tests.contract.wires import WIRES, Wire
from tests.support.calls import call, contents
from tests.support.script import Call, Turn

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
DECLARATION = {"type": "function", "function": {"name": "weather", "description": "The weather.", "parameters": PARAMETERS}}
OTHER = {"name": "aweather", "description": "The weather.", "input_schema": PARAMETERS}


def weather(text: str) -> str:
    """The weather of a city."""
    return f"<{text}>"


async def aweather(text: str) -> dict[str, Any]:
    """The weather of a city, later."""
    return {"read": json.loads(text)}


FUNCTIONS = {"weather": weather, "aweather": aweather}


def test_functions_get_the_text_of_their_arguments() -> None:
    """Whatever the arguments are called; what they return becomes a result as of any tool."""
    names = {"self": 1, "config": 2, "run_manager": 3, "args": [4], "callbacks": 5, "kwargs": {}, "autotools_context": 6}
    executor = ToolExecutor(raw_functions(FUNCTIONS))
    text = json.dumps(names, separators=(",", ":"))
    assert contents(executor, call("weather", "a", **names), call("aweather", "b", city="Rome")) == [
        f"<{text}>",
        '{"read": {"city": "Rome"}}',
    ]


def test_text_that_is_no_object_reaches_no_function() -> None:
    """The model is told instead."""
    broken = {"name": "weather", "args": '{"city": "Ro', "id": "1"}
    assert "not one complete JSON object" in contents(ToolExecutor(raw_functions(FUNCTIONS)), broken)[0]


def test_a_declaration_is_what_the_model_is_told() -> None:
    """In any vendor's form, or as a class; without one the docstring is."""

    class Weather(BaseModel):
        """The weather."""

        city: str

    tools = raw_functions({**FUNCTIONS, "Weather": weather, "plain": weather}, [DECLARATION, OTHER, Weather])
    told = [convert_to_openai_tool(one)["function"] for one in tools]
    assert [one["name"] for one in told] == ["weather", "aweather", "Weather", "plain"]
    assert [list(one["parameters"]["properties"]) for one in told] == [["city"], ["city"], ["city"], []]
    assert [one["description"] for one in told] == ["The weather."] * 3 + ["The weather of a city."]


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_a_model_takes_them_as_tools(wire: Wire) -> None:
    """Every strict server takes the declarations, and the function gets the text that the model wrote."""
    with wire.serve([Turn("", [Call("weather", {"city": "Rome"}), Call("plain", {})]), Turn("Warm.")]) as server:
        model = wire.model(server, tools=raw_functions({"weather": weather, "plain": weather}, [DECLARATION]))
        results = new_messages(model.invoke([HumanMessage("?")]))[1:3]
        assert json.loads(results[0].text[1:-1]) == {"city": "Rome"}
        assert (results[1].text, server.rejections) == ("<{}>", [])


@pytest.mark.parametrize("functions", [[weather], {"weather": 1}, weather])
def test_what_is_no_mapping_of_functions_is_refused(functions: Any) -> None:
    """It is said what is wanted."""
    with pytest.raises(ConfigurationError, match="a mapping of tool names to functions"):
        raw_functions(functions)


def test_a_declaration_without_its_function_is_refused() -> None:
    """By name."""
    with pytest.raises(ConfigurationError, match="no function: 'weather'"):
        raw_functions({"aweather": aweather}, [DECLARATION])
