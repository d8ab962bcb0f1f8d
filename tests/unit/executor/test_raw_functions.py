"""`raw_functions`: tools of functions that take the raw JSON text of their arguments."""

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel

from langchain_autotools import ConfigurationError, PendingCall, ToolCallRecord, ToolContext, ToolExecutor, new_messages, pending_calls
from langchain_autotools.executor import raw_functions
from langchain_autotools.testing import ScriptedChatModel
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


# ---------------------------------------------------------------------------------------------- what was approved is what runs

TWICE = '{"amount": 5000, "to": {"name": "Eve", "name": "Anna"}, "amount": 1}'
ONCE = '{"amount": 1, "to": {"name": "Anna"}}'
WRITTEN = '{"to":  {"name": "Anna"}, "amount": 1.0e0}'


def ran(**options: Any) -> tuple[list[str], ToolExecutor]:
    """What a raw function was given, and its executor."""
    given: list[str] = []
    schema = {"type": "object", "properties": {"amount": {"type": "integer"}, "to": {}}}
    return given, ToolExecutor(
        raw_functions({"pay": given.append}, [{"name": "pay", "description": "Pay.", "parameters": schema}]), **options
    )


def written(text: str, args: dict[str, Any] | None = None) -> AIMessage:
    """A message with one call, and the text of its arguments as it was recorded."""
    made = {"name": "pay", "args": json.loads(text) if args is None else args, "id": "1", "type": "tool_call"}
    return AIMessage("", id="m", tool_calls=[made], response_metadata={"autotools": {"calls": [{"id": "1", "arguments": text}]}})  # type: ignore[list-item]


def test_a_function_gets_the_text_that_the_model_wrote() -> None:
    """Whatever its white space, its numbers and the order of its keys."""
    given, executor = ran()
    executor.execute_all(written(WRITTEN))
    assert given == [WRITTEN]


@pytest.mark.parametrize("text", [TWICE, '{"to": {"name": "Eve", "name": "Anna"}, "amount": 1}'])
def test_a_text_with_a_key_twice_is_handed_to_nobody(text: str) -> None:
    """Function, listeners, rules, restrictions and contexts see one meaning: that of `args`."""
    seen: list[ToolCallRecord] = []

    def noted(record: ToolCallRecord) -> bool:
        seen.append(record)
        return True

    def look(context: ToolContext, **rest: Any) -> None:
        seen.append(context.call)

    given, executor = ran(requires_approval=lambda record: not noted(record), on_executing=lambda record: seen.append(record))
    (result,) = list(executor.stream(written(text), only=noted, on_executed=lambda one: seen.append(one.call)))
    ToolExecutor({"pay": look}).execute_all(written(text))
    assert given == [ONCE]
    assert {record.arguments for record in [*seen, result.call]} == {ONCE}
    assert len(seen) == 5


def test_a_rule_on_arguments_judges_what_will_run() -> None:
    """Of a key that occurs twice the last value counts, for the rule and for the function."""
    given, executor = ran(requires_approval=lambda record: record.args["amount"] > 100)
    executor.execute_all(written('{"amount":5000,"amount":1}'))
    assert given == ['{"amount": 1}']
    assert executor.execute_all(written('{"amount":1,"amount":5000}')) == []


@pytest.mark.parametrize(
    "text", ['{"amount": 666, "amount": 1}', '{"amount": true}', '{"amount": 1, "more": 2}', '{"amount": 1e0}', "{", ""]
)
@pytest.mark.parametrize("way", ["executor", "resume", "at once", "queued"])
def test_an_approved_function_gets_what_was_shown(way: str, text: str) -> None:
    """Whatever text a client has put into the record meanwhile, with and without a key."""
    approve = {"approve": PendingCall.approve} if way == "at once" else {}
    given, executor = ran(requires_approval=True, approval_key="a key", parallel=False if way == "queued" else None, **approve)
    shown = written('{"amount": 1}')
    if way == "executor":
        executor.execute_all(written(text, {"amount": 1}), decisions=[one.approve() for one in executor.pending_calls(shown)])
    elif way == "at once":
        executor.execute_all(written(text, {"amount": 1}))
    else:
        first = [call("other", "0"), *shown.tool_calls] if way == "queued" else shown.tool_calls
        model = ScriptedChatModel(tools=executor, replies=[AIMessage("", tool_calls=first), "Done."])
        question = HumanMessage("Pay.")
        history = [question, *new_messages(model.invoke([question]))]
        for entry in history[1].response_metadata["autotools"]["calls"]:
            entry["arguments"] = text
        model.resume(history, [one.approve() for one in pending_calls(history)])
    assert given == ['{"amount": 1}']


def test_an_edited_function_gets_the_edited_arguments() -> None:
    """In canonical JSON; the history keeps what the model wrote."""
    given, executor = ran(requires_approval=True)
    message = written(TWICE)
    (pending,) = executor.pending_calls(message)
    assert pending.args == {"amount": 1, "to": {"name": "Anna"}}
    executor.execute_all(message, decisions=[pending.edit({"to": "Bén", "amount": 2})])
    assert given == ['{"amount": 2, "to": "Bén"}']


def test_a_call_made_by_hand_is_its_arguments() -> None:
    """Not the text beside them, where the two differ."""
    given, executor = ran()
    executor.execute(ToolCallRecord("1", "pay", '{"amount": 5000}', {"amount": 1}))
    executor.execute(ToolCallRecord("1", "pay", "", {"amount": 1}))
    assert given == ['{"amount": 1}'] * 2


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_a_model_that_writes_a_key_twice_is_sent_its_own_text_again(wire: Wire) -> None:
    """The history has what the model wrote (law 7); the function gets what it means."""
    given: list[str] = []
    with wire.serve([Turn("", [Call("pay", '{"amount":5000,"amount":1}')]), Turn("Paid.")]) as server:
        model = wire.model(server, tools=raw_functions({"pay": given.append}))
        model.invoke([HumanMessage("?")])
        assert ([json.loads(text) for text in given], server.rejections) == ([{"amount": 1}], [])
        assert given[0].count("amount") == 1


def test_a_call_of_a_function_without_a_declaration_can_be_edited() -> None:
    """It takes any arguments, from the model and from a human; one that declares some takes those."""
    asked = AIMessage("", tool_calls=[{"name": "weather", "args": {"city": "Rome"}, "id": "1", "type": "tool_call"}], id="m")
    free = ToolExecutor(raw_functions({"weather": weather}), requires_approval=True)
    (shown,) = free.pending_calls(asked)
    (result,) = free.execute_all(asked, decisions=[shown.edit({"b": [2]})])
    assert '<{"b": [2]}>' in result.text
    declared = ToolExecutor(raw_functions({"weather": weather}, [DECLARATION]), requires_approval=True)
    with pytest.raises(ConfigurationError, match="'b' is no argument"):
        declared.execute_all(asked, decisions=[shown.edit({"b": [2]})])
