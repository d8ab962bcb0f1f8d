"""A function that changes the next request of a run: what it gets, what it may change, and what holds all the same."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from langchain_autotools import ConfigurationError, NextTurn, new_messages, pending_calls, stop_reason, with_tools
from langchain_autotools.testing import ScriptedChatModel
from tests.contract.wires import WIRES, Wire
from tests.support.endless_chat import Way, every_way
from tests.support.script import Call, Turn

Change = Callable[[NextTurn], Any]


def look(at: str = "") -> str:
    """Look."""
    return f"seen {at}"


def listen() -> str:
    """Listen."""
    return "heard"


def calls(*names: str, **args: Any) -> AIMessage:
    """A turn that calls tools."""
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"{name} {number}"} for number, name in enumerate(names)])


def model_of(change: Change, *replies: Any, **fields: Any) -> ScriptedChatModel:
    """A model with two tools and the function."""
    return ScriptedChatModel(tools=[look, listen], replies=list(replies), before_turn=change, **fields)


@every_way
def test_the_function_gets_each_request_and_changes_that_one_alone(way: Way) -> None:
    """Messages of one request are sent and not kept; what is not changed comes as it would have been sent."""
    turns: list[NextTurn] = []

    def remind(turn: NextTurn) -> NextTurn | None:
        turns.append(turn)
        return replace(turn, messages=[SystemMessage("Be brief."), *turn.messages]) if turn.number == 2 else None

    model = model_of(remind, calls("look"), "Fine.")
    run = way(model)[0]
    assert [(one.number, tuple(one.tools), len(one.messages)) for one in turns] == [(1, ("look", "listen"), 1), (2, ("look", "listen"), 3)]
    assert turns[0].model is model
    assert [[one.type for one in request.messages] for request in model.requests] == [["human"], ["system", "human", "ai", "tool"]]
    assert [one.type for one in new_messages(run)] == ["ai", "tool", "ai"]


def test_only_the_tools_that_are_left_are_declared_and_run() -> None:
    """A call of another one does not run in this turn, however it is written, alone or inside a bundle; it stays a call of the history."""
    bundle = {"tool_uses": [{"recipient_name": "functions.listen", "parameters": {}}]}
    reply = calls("look", "functions.Listen")
    reply.tool_calls.append({"name": "multi_tool_use.parallel", "args": bundle, "id": "bundle", "type": "tool_call"})
    model = model_of(lambda turn: replace(turn, tools=["look"]) if turn.number == 1 else None, reply, calls("listen"), "Fine.")
    messages = new_messages(model.invoke("Go."))
    assert [[tool["function"]["name"] for tool in request.tools] for request in model.requests] == [["look"], *[["look", "listen"]] * 2]
    assert [one.text for one in messages if one.type == "tool"][::3] == ["seen ", "heard"]
    refused = [one for one in messages if one.type == "tool"][1:3]
    assert all("'listen' is not allowed here" in one.text and one.status == "error" for one in refused)
    assert [call["name"] for call in messages[0].tool_calls] == ["look", "functions.Listen", "multi_tool_use.parallel"]


def test_a_tool_that_is_left_out_waits_for_nobody() -> None:
    """Neither the caller of a declared tool nor who approves is asked about a call that must not run."""
    declared = {"type": "function", "function": {"name": "ask", "description": "Ask.", "parameters": {"type": "object", "properties": {}}}}
    model = model_of(lambda turn: replace(turn, tools=["look"]), calls("ask", "listen"), "Fine.", requires_approval=["listen"])
    run = model.bind_tools([declared]).invoke("Go.")
    assert (stop_reason(run), pending_calls(run), [one.type for one in new_messages(run)]) == ("complete", [], ["ai", "tool", "tool", "ai"])


@pytest.mark.parametrize("choice", ["any", "look"])
def test_a_tool_choice_is_that_of_its_turn_alone(choice: str) -> None:
    """It is sent in a later turn too, and not in the one after it."""
    model = model_of(lambda turn: replace(turn, tool_choice=choice) if turn.number == 2 else None, calls("look"), calls("look"), "Fine.")
    model.invoke("Go.")
    assert [request.tool_choice for request in model.requests] == [None, choice, None]


def test_a_turn_without_tools_runs_none() -> None:
    """The choice "none" is a restriction: a call that comes all the same is answered with an error."""
    model = model_of(lambda turn: replace(turn, tool_choice="none") if turn.number == 1 else None, calls("look"), "Fine.")
    (_, result, _) = new_messages(model.invoke("Go."))
    assert "No tool may be called" in result.text


@pytest.mark.parametrize("wire", [wire for wire in WIRES if "azure" not in wire.name], ids=lambda wire: wire.name)
def test_a_turn_may_declare_no_tools(wire: Wire) -> None:
    """Where the function leaves none, the request declares none, also after calls, and vendors take it."""
    with wire.serve([Turn(calls=[Call("look", {"at": "Rome"})]), Turn("Fine."), Turn("Fine.")]) as server:
        model = wire.model(server, tools=[look], before_turn=lambda turn: replace(turn, tools=()) if turn.number == 2 else None)
        assert model.invoke("Go.").text == "Fine."
        model.invoke("Go.")
        assert [bool(exchange.json.get("tools")) for exchange in server.exchanges] == [True, False, True]
        assert not server.rejections and all(exchange.json.get("tools") != [] for exchange in server.exchanges)


def test_a_model_of_another_package_is_given_no_tools_where_none_are_left() -> None:
    """Neither its `bind_tools` nor an empty list reaches the request."""
    given: list[dict[str, Any]] = []

    class Partner(FakeMessagesListChatModel):
        def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
            given.append(kwargs)
            return super()._generate(messages, stop, run_manager, **kwargs)

    model = with_tools(Partner(responses=[AIMessage("Fine.")]), [look], before_turn=lambda turn: replace(turn, tools=()))
    assert model.invoke("Go.").text == "Fine."
    assert [kwargs for kwargs in given if "tools" in kwargs] == [] and len(given) == 1


def test_what_the_call_restricts_holds_in_each_turn() -> None:
    """A turn's choice does not lift the choice of the call."""
    only = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "look"}]}
    model = model_of(lambda turn: replace(turn, tool_choice="any"), calls("listen"), "Fine.")
    (_, result, _) = new_messages(model.invoke("Go.", tool_choice=only))
    assert "not allowed" in result.text
    forbidden = model_of(lambda turn: replace(turn, tool_choice="any"), "Fine.")
    forbidden.invoke("Go.", tool_choice="none")
    assert forbidden.requests[0].tool_choice == "none"


def test_the_last_request_at_a_limit_calls_nothing() -> None:
    """A choice of the turn is not in the way of an end."""
    model = model_of(lambda turn: replace(turn, tool_choice="any"), calls("look"), "Fine.", max_turns=1)
    assert model.invoke("Go.").text == "Fine."
    assert [request.tool_choice for request in model.requests] == ["any", "none"]


@every_way
def test_another_model_makes_the_turn(way: Way) -> None:
    """A model of this package or of any other, with the run's tools and not its own, in a single turn."""
    other = ScriptedChatModel(tools=[listen], replies=[calls("look", at="Rome")])
    foreign = FakeMessagesListChatModel(responses=[AIMessage("Fine.")])
    model = model_of(lambda turn: replace(turn, model=[other, foreign][turn.number - 1]))
    ai, result, last = new_messages(way(model)[0])
    assert (ai.tool_calls[0]["name"], result.text, last.text) == ("look", "seen Rome", "Fine.")
    assert [tool["function"]["name"] for tool in other.requests[0].tools] == ["look", "listen"]
    assert (model.requests, [message.text for message in other.requests[0].messages]) == ([], ["Hi"])


def test_keywords_go_to_the_vendor() -> None:
    """Those of the call are in the turn, and may be changed for it."""
    model = model_of(lambda turn: replace(turn, keywords={**turn.keywords, "seed": turn.number}), calls("look"), "Fine.")
    model.invoke("Go.", user="Anna")
    assert [dict(request.kwargs) for request in model.requests] == [{"user": "Anna", "seed": 1}, {"user": "Anna", "seed": 2}]


def test_an_asynchronous_function_is_for_asynchronous_runs() -> None:
    """It is awaited there, and refused in a synchronous run."""

    async def later(turn: NextTurn) -> NextTurn:
        await asyncio.sleep(0)
        return replace(turn, messages=[HumanMessage("Changed.")])

    model = model_of(later, "Fine.", "Fine.")
    asyncio.run(model.ainvoke("Go."))
    assert model.requests[0].messages[0].text == "Changed."
    with pytest.raises(ConfigurationError, match="before_turn is asynchronous"):
        model.invoke("Go.")


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"tools": ["smell"]}, "names tools that are not declared: 'smell'"),
        ({"messages": "Hi"}, "must be a list of messages"),
        ({"model": "gpt"}, "must be a LangChain chat model, not str"),
        ({"keywords": {"max_turns": 3}}, "settings of a run"),
        ({"keywords": {"tools": []}}, "settings of a run"),
        ({"keywords": {"max_turn": 3}}, "did you mean 'max_turns'"),
    ],
)
def test_a_change_that_cannot_work_is_refused(change: dict[str, Any], error: str) -> None:
    """Before the request is made."""
    model = model_of(lambda turn: replace(turn, **change), "Never.")
    with pytest.raises(ConfigurationError, match=error):
        model.invoke("Go.")
    assert model.requests == []


def test_what_is_no_turn_is_refused() -> None:
    """A function that returns something else changes nothing silently."""
    with pytest.raises(ConfigurationError, match="must return the NextTurn"):
        model_of(lambda turn: "changed", "Never.").invoke("Go.")
    with pytest.raises(ConfigurationError, match="before_turn must be a function"):
        ScriptedChatModel(replies=["."]).invoke("Go.", before_turn=3)


@every_way
def test_a_model_without_tools_has_the_function_too(way: Way) -> None:
    """Its single turn is a run: it has a stop reason, and its request is changed."""
    model = ScriptedChatModel(replies=["Fine."], before_turn=lambda turn: replace(turn, messages=[HumanMessage("Changed.")]))
    run = way(model)[0]
    assert (run.text, stop_reason(run), model.requests[0].messages[0].text) == ("Fine.", "complete", "Changed.")


def test_the_schema_of_the_output_cannot_be_left_out() -> None:
    """The call that holds a structured output must stay possible in each turn."""
    schema = {"title": "Answer", "description": "The answer.", "type": "object", "properties": {"text": {"type": "string"}}}
    model = model_of(lambda turn: replace(turn, tools=["look"]), "Never.")
    with pytest.raises(ConfigurationError, match="the output is a call of 'Answer'"):
        model.with_structured_output(schema).invoke("Go.")
