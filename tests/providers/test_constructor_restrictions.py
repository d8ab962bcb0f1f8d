"""Restrictions that a constructor sets as keywords of every call: they hold at every entrance, whatever the server does."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from pydantic import BaseModel

from langchain_autotools import Agent, ChatAnthropic, ChatOpenAI, ConfigurationError, new_messages, pending_calls
from tests.contract.wires import ROWS
from tests.laws.ways import WAYS, run
from tests.providers.test_restrictions import allowing, google
from tests.support.anthropic_server import AnthropicServer
from tests.support.http_server import Exchange
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Failure, Turn
from tests.support.scripted_server import ScriptedServer

WIRES = {wire.name: wire for wire in ROWS}
QUESTION = HumanMessage("Delete everything.")
FORBIDS: dict[str, dict[str, Any]] = {
    "none": {"tool_choice": "none"},
    "names": {"tool_choice": allowing("auto", "look")},
    "a demand of names": {"tool_choice": allowing("required", "look")},
}


class Tools:
    """Two tools that note that they ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def delete_all(self) -> str:
        """Delete everything."""
        self.ran.append("delete_all")
        return "Everything is gone."

    def look(self) -> str:
        """Look."""
        self.ran.append("look")
        return "It is there."


@pytest.fixture
def tools() -> Tools:
    """The tools of a test."""
    return Tools()


def insisting(wire: str) -> Callable[[Exchange], Turn]:
    """A server that calls what it must not until it is answered."""
    return lambda exchange: Turn("Done.") if WIRES[wire].results(exchange) else Turn(calls=[Call("delete_all")])


def refused(messages: list[BaseMessage]) -> bool:
    """Whether the first result says that the call was not allowed."""
    [first, *_] = [message for message in messages if isinstance(message, ToolMessage)]
    return first.status == "error" and ("not allowed" in first.text or "No tool may be called" in first.text)


CASES = [(wire, how) for wire in WIRES for how in FORBIDS if how == "none" or wire.startswith("openai")]


@pytest.mark.further
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("wire", "how"), CASES)
def test_what_the_constructor_forbids_does_not_run(wire: str, how: str, way: str, tools: Tools) -> None:
    """On every wire: the call is answered with an error, and each request says the restriction."""
    with WIRES[wire].serve(insisting(wire)) as server:
        ran = run(way, WIRES[wire].model(server, tools=[tools.look, tools.delete_all], **FORBIDS[how]), [QUESTION])
    assert (ran.error, tools.ran) == (None, [])
    assert refused(ran.new)
    assert len(server.exchanges) == 2


@pytest.mark.further
@pytest.mark.parametrize(("config", "later"), [("NONE", ["NONE"] * 2), ("ANY", ["ANY", None])])
def test_googles_configuration_is_a_choice_too(config: str, later: list[str | None], tools: Tools) -> None:
    """`tool_config` forbids what it forbids, and demands a call in the first turn only."""
    wire = WIRES["google"]
    with wire.serve(insisting("google")) as server:
        model = wire.model(server, tools=[tools.delete_all], tool_config={"functionCallingConfig": {"mode": config}})
        model.invoke([QUESTION])
        said = [(request.get("toolConfig") or {}).get("functionCallingConfig", {}).get("mode") for request in server.requests]
    assert said == later
    assert tools.ran == (["delete_all"] if config == "ANY" else [])
    with wire.serve(insisting("google")) as server:
        model = wire.model(server, tools=[tools.look, tools.delete_all], tool_config=google("ANY", "look"))
        assert refused(new_messages(model.invoke([QUESTION])))


@pytest.mark.further
@pytest.mark.parametrize("wire", WIRES)
def test_a_demand_of_the_constructor_is_made_once(wire: str, tools: Tools) -> None:
    """A forced choice is in the first request of each run only, so that runs end."""
    with WIRES[wire].serve(insisting(wire)) as server:
        model = WIRES[wire].model(server, tools=[tools.delete_all], tool_choice="required")
        assert [model.invoke([QUESTION]).text for _ in range(2)] == ["Done.", "Done."]
        said = [b'"tool_choice"' in body or b'"functionCallingConfig"' in body for body in (one.body for one in server.exchanges)]
    assert tools.ran == ["delete_all"] * 2
    assert said == ([False] * 4 if wire == "ollama" else [True, False] * 2)


@pytest.mark.further
@pytest.mark.parametrize("wire", WIRES)
def test_calls_run_one_after_another_where_the_constructor_says_so(wire: str) -> None:
    """Whatever the server sends, and unless the call says otherwise."""
    begun: list[str] = []
    together = threading.Barrier(3)

    def look(at: str) -> str:
        """Look somewhere."""
        begun.append(f"begins {at}")
        if beside:
            together.wait(30)
        begun.append(f"ends {at}")
        return at

    calls = Turn(calls=[Call("look", {"at": at}) for at in "abc"])
    with WIRES[wire].serve([calls, Turn("Done."), calls, Turn("Done.")]) as server:
        model = WIRES[wire].model(server, tools=[look], parallel_tool_calls=False)
        beside = False
        model.invoke("Look.")
        assert begun == [f"{what} {at}" for at in "abc" for what in ("begins", "ends")]
        beside = True
        model.invoke("Look.", parallel_tool_calls=True)
    assert sorted(begun[6:9]) == ["begins a", "begins b", "begins c"]


# ---------------------------------------------------------------------------------------------- entrances


def scripted(exchange: Exchange) -> Turn:
    """A server that calls what it must not, under each name that it is given."""
    return insisting("openai-chat")(exchange)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """A server that calls what it must not."""
    with OpenAIServer(scripted) as made:
        yield made


def model_of(server: Any, **more: Any) -> ChatOpenAI:
    """A model that may call no tool."""
    model: ChatOpenAI = WIRES["openai-chat"].model(server, **{"tool_choice": "none", **more})
    return model


@pytest.mark.further
def test_a_copy_and_a_binding_hold_to_it(server: ScriptedServer, tools: Tools) -> None:
    """A deep copy, an unpickled model, other tools, a bound keyword, a configuration, and a call that demands a tool."""
    own = [tools.delete_all]
    model = model_of(server, tools=own)
    unpickled = pickle.loads(pickle.dumps(model_of(server))).model_copy(update={"openai_api_key": model.openai_api_key})
    for again in (
        model.model_copy(deep=True),
        unpickled.with_tools(own),
        model.bind(user="someone"),
        model.with_config(tags=["one"]),
        model.bind_tools([tools.look]),
        model.bind_tools([tools.look], tool_choice="any"),
    ):
        assert refused(new_messages(again.invoke([QUESTION])))
    assert refused(new_messages(model.invoke([QUESTION], tool_choice="required")))
    assert refused(new_messages(model.invoke([QUESTION], tool_choice="delete_all")))
    assert tools.ran == []


@pytest.mark.further
def test_a_resumed_run_holds_to_it(server: ScriptedServer, tools: Tools) -> None:
    """A call that waits under a model without the restriction is not carried out by one with it."""
    waiting = model_of(server, tools=[tools.delete_all], requires_approval=True, tool_choice=None)
    history = [QUESTION, *new_messages(waiting.invoke([QUESTION]))]
    [call] = pending_calls(history[-1])
    model = model_of(server, tools=[tools.delete_all], requires_approval=True)
    by_call = ending(lambda: waiting.resume(history, [call.approve()], tool_choice="none"))
    by_constructor = ending(lambda: model.resume(history, [call.approve()]))
    assert by_constructor == by_call
    assert waiting.check(history, [call.approve()], tool_choice="none") == model.check(history, [call.approve()])
    assert tools.ran == []


def ending(ask: Callable[[], AIMessage]) -> Any:
    """What comes of a run."""
    try:
        return [message.text for message in new_messages(ask())]
    except Exception as error:
        return f"{type(error).__name__}: {error}"


class Report(BaseModel):
    """A report."""

    done: bool


@pytest.mark.further
@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_structured_output_holds_to_it(method: str, tools: Tools) -> None:
    """With the text as output no tool runs; where the output is a call itself, the choice that forbids it is refused."""
    script = [Turn(calls=[Call("delete_all")]), Turn('{"done": false}')]
    with OpenAIServer(script) as server:
        structured = model_of(server, tools=[tools.delete_all]).with_structured_output(Report, method=method)
        if method == "json_schema":
            assert structured.invoke([QUESTION]) == Report(done=False)
        else:
            with pytest.raises(ConfigurationError, match="which this tool_choice leaves out"):
                structured.invoke([QUESTION])
    with OpenAIServer([Turn(calls=[Call("delete_all")]), Turn(calls=[Call("Report", {"done": True})])]) as server:
        choice = allowing("auto", "look", "Report")
        model = model_of(server, tools=[tools.look, tools.delete_all], tool_choice=choice)
        assert model.with_structured_output(Report, method="function_calling").invoke([QUESTION]) == Report(done=True)
    assert tools.ran == []


@pytest.mark.further
def test_an_agent_and_a_nested_run_hold_to_it(server: ScriptedServer, tools: Tools) -> None:
    """An agent's model, a model as another one's tool, an agent as a tool."""
    model = model_of(server, tools=[tools.delete_all])
    assert Agent(model).run("Delete everything.").text == "Done."
    for inner in (model.as_tool(name="helper", description="Helps."), Agent(model).as_tool("helper", "Helps.")):
        with OpenAIServer([Turn(calls=[Call("helper", {"question": "Delete everything."})]), Turn("Done.")]) as outer:
            result = new_messages(model_of(outer, tools=[inner], tool_choice=None).invoke([QUESTION]))[1]
        assert result.text == "Done."
    assert tools.ran == []
    assert len(server.exchanges) == 6


@pytest.mark.further
def test_a_fallback_of_another_vendor_is_told_it(tools: Tools) -> None:
    """Its request says the choice in its own words, its calls are held to it, and its own parameters stay its own."""
    with OpenAIServer([Failure(503)] * 9) as down, AnthropicServer([Turn(calls=[Call("delete_all")]), Turn("Done.")]) as other:
        spare = ChatAnthropic(model="any", base_url=other.url, api_key="key", max_retries=0, service_tier="auto")
        model = model_of(down, tools=[tools.delete_all], fallbacks=[spare], user="someone", parallel_tool_calls=False)
        new = new_messages(model.invoke([QUESTION]))
    assert refused(new)
    assert tools.ran == []
    assert [request["tool_choice"] for request in other.requests] == [{"type": "none"}] * 2
    assert [(request.get("user"), request["service_tier"]) for request in other.requests] == [(None, "auto")] * 2


@pytest.mark.further
def test_a_function_before_each_turn_does_not_lift_it(server: ScriptedServer, tools: Tools) -> None:
    """Nor does it where that function sets another choice; `generate` makes one turn and runs nothing."""
    model = model_of(server, tools=[tools.delete_all])

    assert refused(new_messages(model.invoke([QUESTION], before_turn=lambda turn: replace(turn, tool_choice="any"))))
    assert b'"tool_choice":"none"' in server.exchanges[-1].body
    model.generate([[QUESTION]])
    assert b'"tool_choice":"none"' in server.exchanges[-1].body
    assert tools.ran == []


@pytest.mark.further
def test_a_durable_run_holds_to_it(tmp_path: Any, server: ScriptedServer, tools: Tools) -> None:
    """What its worker makes of the model has the restriction."""
    pytest.importorskip("dbos", reason="needs the extra `durable`")
    from langchain_autotools.durable import durable, launch, shutdown

    recorded = durable(model_of(server, tools=[tools.delete_all]), "restricted by its constructor")
    launch(f"sqlite:///{tmp_path / 'runs.sqlite'}")
    try:
        assert refused(new_messages(recorded.invoke([QUESTION])))
    finally:
        shutdown()
    assert tools.ran == []
