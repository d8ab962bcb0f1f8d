"""Tool choices on every wire: what restricts holds for every turn of a run, whatever the server does; what asks holds for the first."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, ToolMessage

from langchain_autotools import ChatOpenAI, ConfigurationError, new_messages
from tests.contract.wires import WIRES
from tests.laws.ways import WAYS, run
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Turn

QUESTION = [HumanMessage("How warm is it?")]
ROWS = {wire.name: wire for wire in WIRES if not wire.name.startswith("azure")}
ALIASES = ["Delete-All", "functions.delete_all", "delete_all:0"]


class Tools:
    """Two tools that note when they run."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def get_temperature(self, city: str) -> str:
        """Current temperature of a city."""
        self.ran.append(f"get_temperature {city}")
        return f"{city}: 21 °C"

    def delete_all(self) -> str:
        """Delete everything."""
        self.ran.append("delete_all")
        return "Everything is gone."

    def get_wind(self, city: str) -> str:
        """Wind in a city."""
        self.ran.append("get_wind")
        return "calm"


def pointed(name: str) -> dict[str, Any]:
    """A tool as OpenAI's choices point at it."""
    return {"type": "function", "function": {"name": name}}


def allowing(mode: str, *names: str) -> dict[str, Any]:
    """The choice of some tools in the form of chat completions."""
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [pointed(name) for name in names]}}


def flat(mode: str, *names: str) -> dict[str, Any]:
    """The same in the form of Responses."""
    return {"type": "allowed_tools", "mode": mode, "tools": [{"type": "function", "name": name} for name in names]}


def google(mode: str, *names: str) -> dict[str, Any]:
    """What Google's wire says of a choice."""
    return {"functionCallingConfig": {"mode": mode, "allowedFunctionNames": list(names)}}


def said(wire: str, request: dict[str, Any]) -> Any:
    """What a request says of the choice."""
    return request.get("toolConfig") if wire == "google" else request.get("tool_choice")


# wire, what the caller says, what the first and what each later request says
ONE = "get_temperature"
RESTRICTIONS = [
    ("openai-chat", {"tool_choice": allowing("auto", ONE)}, allowing("auto", ONE), allowing("auto", ONE)),
    ("openai-chat", {"tool_choice": flat("required", ONE)}, allowing("required", ONE), allowing("auto", ONE)),
    ("openai-chat", {"tool_choice": {"type": "allowed_tools", "tools": [ONE]}}, allowing("auto", ONE), allowing("auto", ONE)),
    ("openai-responses", {"tool_choice": allowing("required", ONE)}, flat("required", ONE), flat("auto", ONE)),
    ("openai-responses", {"tool_choice": flat("auto", ONE)}, flat("auto", ONE), flat("auto", ONE)),
    ("google", {"tool_choice": [ONE]}, google("ANY", ONE), google("VALIDATED", ONE)),
    ("google", {"tool_choice": google("VALIDATED", ONE)}, google("VALIDATED", ONE), google("VALIDATED", ONE)),
    ("google", {"tool_config": google("ANY", ONE)}, google("ANY", ONE), google("VALIDATED", ONE)),
    ("google", {"tool_choice": flat("auto", ONE)}, google("VALIDATED", ONE), google("VALIDATED", ONE)),
]


@pytest.mark.parametrize(("wire", "choice", "first", "later"), RESTRICTIONS)
def test_names_that_may_be_called_hold_for_every_turn(wire: str, choice: dict[str, Any], first: Any, later: Any) -> None:
    """Each request says them, a demand for a call goes after the first; another tool does not run though the server calls it.

    Wire quirk T-06.
    """
    tools, row = Tools(), ROWS[wire]
    script = [Turn(calls=[Call(ONE, {"city": "Rome"})]), Turn(calls=[Call("delete_all")]), Turn("Done.")]
    with row.serve(script) as server:
        model = row.model(server, tools=[tools.get_temperature, tools.delete_all])
        new = new_messages(model.invoke(QUESTION, **choice))
    assert server.rejections == []
    assert [said(wire, request) for request in server.requests] == [first, later, later]
    assert tools.ran == ["get_temperature Rome"]
    refused = next(message for message in reversed(new) if isinstance(message, ToolMessage))
    assert refused.status == "error"
    assert json.loads(refused.text)["error"] == (
        "'delete_all' is not allowed here, and was not run. The tools that may be called are: get_temperature."
    )


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("wire", ROWS)
def test_after_none_nothing_runs(wire: str, way: str) -> None:
    """A server that calls a tool although no call is allowed gets an error for it, from the first turn on."""
    tools, row = Tools(), ROWS[wire]
    with row.serve([Turn(calls=[Call("delete_all")]), Turn("Done.")]) as server:
        ran = run(way, row.model(server, tools=[tools.delete_all]), QUESTION, tool_choice="none")
    assert ran.error is None
    assert tools.ran == []
    assert [message.type for message in ran.new] == ["ai", "tool", "ai"]
    assert "No tool may be called" in ran.new[1].text


@pytest.mark.parametrize("name", ALIASES)
def test_another_spelling_passes_no_restriction(name: str) -> None:
    """The name that counts is the one of the tool that would run."""
    tools = Tools()
    with OpenAIServer([Turn(calls=[Call(name)]), Turn("Done.")], rules=None) as server:
        model = ROWS["openai-chat"].model(server, tools=[tools.get_temperature, tools.delete_all])
        model.invoke(QUESTION, tool_choice=allowing("auto", ONE))
    assert tools.ran == []


def test_calls_of_bound_tools_outside_the_restriction_are_answered() -> None:
    """They are not handed to the caller, who would run them; those inside are."""
    tools = Tools()
    script = [Turn(calls=[Call("delete_all"), Call(ONE, {"city": "Rome"})]), Turn(calls=[Call("get_wind", {"city": "Rome"})])]
    with OpenAIServer(script) as server:
        model = ROWS["openai-chat"].model(server, tools=[tools.get_temperature])
        bound = model.bind_tools([tools.delete_all, tools.get_wind], tool_choice=allowing("auto", ONE, "get_wind"))
        result = bound.invoke(QUESTION)
    assert [call["name"] for call in result.tool_calls] == ["get_wind"]
    assert tools.ran == ["get_temperature Rome"]
    assert "is not allowed here" in new_messages(result)[1].text


def test_calls_inside_a_bundle_are_held_to_the_restriction() -> None:
    """Of a bundle only what may be called runs."""
    tools = Tools()
    uses = [{"recipient_name": "functions.delete_all", "parameters": {}}, {"recipient_name": ONE, "parameters": {"city": "Rome"}}]
    with OpenAIServer([Turn(calls=[Call("multi_tool_use.parallel", {"tool_uses": uses})]), Turn("Done.")], rules=None) as server:
        model = ROWS["openai-chat"].model(server, tools=[tools.get_temperature, tools.delete_all])
        result = new_messages(model.invoke(QUESTION, tool_choice=allowing("auto", ONE)))[1]
    assert tools.ran == ["get_temperature Rome"]
    assert [part["status"] for part in json.loads(result.text)] == ["error", "success"]


def test_one_call_at_a_time_stays_so() -> None:
    """What Anthropic is told of parallel calls is in every request; the demand for a call in the first only."""
    row, tools = ROWS["anthropic"], Tools()
    with row.serve([Turn(calls=[Call(ONE, {"city": "Rome"})]), Turn("Done.")]) as server:
        model = row.model(server, tools=[tools.get_temperature])
        model.invoke(QUESTION, tool_choice={"type": "any", "disable_parallel_tool_use": True})
    assert [request["tool_choice"] for request in server.requests] == [
        {"type": "any", "disable_parallel_tool_use": True},
        {"type": "auto", "disable_parallel_tool_use": True},
    ]


SINGLE = {
    "a keyword": ("", {"parallel_tool_calls": False}, {}),
    "a body": ("openai", {"extra_body": {"parallel_tool_calls": False}}, {}),
    "the model's own": ("openai", {}, {"model_kwargs": {"parallel_tool_calls": False}}),
    "a choice of the model's under another one": (
        "anthropic",
        {"tool_choice": "any"},
        {"model_kwargs": {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}},
    ),
    "a choice": ("anthropic", {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}, {}),
}
SINGLE_ON = [(wire, how) for how, (of, _, _) in SINGLE.items() for wire in ROWS if wire.startswith(of) and (how == "a keyword" or of)]


@pytest.mark.parametrize("way", ["invoke", "astream"])
@pytest.mark.parametrize(("wire", "how"), SINGLE_ON)
def test_calls_that_may_not_be_parallel_run_one_after_another(wire: str, how: str, way: str) -> None:
    """Whatever the server sends: nine calls in one turn, each begins when the one before it has ended, in call order."""
    row, begun = ROWS[wire], list[str]()

    def look(at: str) -> str:
        """Look somewhere."""
        begun.append(f"begins {at}")
        time.sleep(0.002)
        begun.append(f"ends {at}")
        return at

    places = [str(number) for number in range(9)]
    _, keywords, fields = SINGLE[how]
    with row.serve([Turn(calls=[Call("look", {"at": at}) for at in places]), Turn("Done.")]) as server:
        ran = run(way, row.model(server, tools=[look], **fields), QUESTION, **keywords)
    assert ran.error is None
    assert begun == [f"{what} {at}" for at in places for what in ("begins", "ends")]


def test_calls_run_side_by_side_where_the_call_says_so() -> None:
    """What a call says goes before the model's own `model_kwargs`."""
    row, together = ROWS["openai-chat"], threading.Barrier(3)

    def look(at: str) -> str:
        """Look somewhere, together with two others."""
        together.wait(30)
        return at

    script = [Turn(calls=[Call("look", {"at": at}) for at in "abc"]), Turn("Done.")]
    with row.serve(script) as server:
        model = row.model(server, tools=[look], model_kwargs={"parallel_tool_calls": False})
        new = new_messages(model.invoke(QUESTION, parallel_tool_calls=True))
    assert [message.text for message in new[1:]] == ["a", "b", "c", "Done."]


@pytest.mark.parametrize("wire", ["openai-chat", "openai-responses", "anthropic", "google"])
def test_a_name_is_asked_for_once(wire: str) -> None:
    """A tool's name alone asks for that tool in the first turn; later turns are free, and other tools may be called."""
    tools, row = Tools(), ROWS[wire]
    script = [Turn(calls=[Call(ONE, {"city": "Rome"})]), Turn(calls=[Call("get_wind", {"city": "Rome"})]), Turn("Done.")]
    with row.serve(script) as server:
        row.model(server, tools=[tools.get_temperature, tools.get_wind]).invoke(QUESTION, tool_choice=ONE)
    assert tools.ran == ["get_temperature Rome", "get_wind"]
    assert [said(wire, request) is None for request in server.requests] == [False, True, True]


def test_a_choice_in_model_kwargs_is_a_choice() -> None:
    """What the constructor asks for is asked for once, and what it forbids does not run."""
    tools = Tools()
    with OpenAIServer([Turn(calls=[Call(ONE, {"city": "Rome"})]), Turn("Done.")]) as server:
        model: ChatOpenAI = ROWS["openai-chat"].model(server, tools=[tools.get_temperature], model_kwargs={"tool_choice": "required"})
        model.invoke(QUESTION)
    assert [request.get("tool_choice") for request in server.requests] == ["required", None]
    with OpenAIServer([Turn(calls=[Call("delete_all")]), Turn("Done.")]) as server:
        model = ROWS["openai-chat"].model(server, tools=[tools.delete_all], model_kwargs={"tool_choice": "none"})
        model.invoke(QUESTION)
    assert tools.ran == ["get_temperature Rome"]


@pytest.mark.parametrize("at_call", [False, True])
def test_a_choice_in_the_extra_body_is_refused(at_call: bool) -> None:
    """There it would be sent on every turn, and nobody would hold to it."""
    tools, body = Tools(), {"extra_body": {"tool_choice": "none"}}
    with OpenAIServer([]) as server:
        fields = {"model": "any", "base_url": server.url, "api_key": "key", "tools": [tools.delete_all]}
        with pytest.raises(ConfigurationError, match="tool_choice is an argument of its own"):
            ChatOpenAI(**fields, **({} if at_call else body)).invoke(QUESTION, **(body if at_call else {}))
    assert (tools.ran, server.requests) == ([], [])
