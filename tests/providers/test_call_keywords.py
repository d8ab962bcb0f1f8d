"""Keywords of a call: those that neither the class nor the vendor's request type knows are refused at every entrance, all others pass."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from pydantic import BaseModel

from langchain_autotools import Agent, ChatOpenAI, ConfigurationError, aevents, events, init_chat_model, with_tools
from langchain_autotools.providers.google.decode import snake
from langchain_autotools.providers.openai.preset import PresetChatModel
from tests.contract.wires import ROWS
from tests.providers.test_constructor_keywords import REQUESTS, TYPES, look_up
from tests.support.script import Turn
from tests.vendor_types.samples import fields_of

WIRES = {wire.name: wire for wire in ROWS}
SERVER = type("Server", (), {"url": "http://127.0.0.1:9", "address": "http://127.0.0.1:9"})
WRONG: dict[str, Any] = {"temprature": 2}
WAITING = [HumanMessage("Where?"), AIMessage("", tool_calls=[{"name": "look_up", "args": {"key": "it"}, "id": "call_1"}])]


class City(BaseModel):
    """A city."""

    name: str


async def _read(stream: Any) -> list[Any]:
    return [one async for one in stream]


def _awaited(ask: Callable[..., Any]) -> Callable[..., Any]:
    """The same way of asking, run to its end."""
    return lambda model, **keywords: asyncio.run(_to_the_end(ask(model, **keywords)))


async def _to_the_end(asked: Any) -> Any:
    return await (_read(asked) if hasattr(asked, "__aiter__") else asked)


ENTRANCES: dict[str, Callable[..., Any]] = {
    "invoke": lambda model, **keywords: model.invoke("Where?", **keywords),
    "ainvoke": _awaited(lambda model, **keywords: model.ainvoke("Where?", **keywords)),
    "stream": lambda model, **keywords: list(model.stream("Where?", **keywords)),
    "astream": _awaited(lambda model, **keywords: model.astream("Where?", **keywords)),
    "batch": lambda model, **keywords: model.batch(["Where?"], **keywords),
    "abatch": _awaited(lambda model, **keywords: model.abatch(["Where?"], **keywords)),
    "batch_as_completed": lambda model, **keywords: list(model.batch_as_completed(["Where?"], **keywords)),
    "generate": lambda model, **keywords: model.generate([[HumanMessage("Where?")]], **keywords),
    "agenerate": _awaited(lambda model, **keywords: model.agenerate([[HumanMessage("Where?")]], **keywords)),
    "events": lambda model, **keywords: list(events(model.stream("Where?", **keywords))),
    "aevents": _awaited(lambda model, **keywords: aevents(model.astream("Where?", **keywords))),
    "stream_events": lambda model, **keywords: list(model.stream_events("Where?", version="v3", **keywords)),
    "astream_events": _awaited(lambda model, **keywords: model.astream_events("Where?", version="v2", **keywords)),
    "bind": lambda model, **keywords: model.bind(**keywords),
    "bind_tools": lambda model, **keywords: model.bind_tools([look_up], **keywords),
    "a bound call": lambda model, **keywords: model.bind(max_turns=3).invoke("Where?", **keywords),
    "a configured call": lambda model, **keywords: model.with_config({"tags": ["a"]}).invoke("Where?", **keywords),
    "structured output": lambda model, **keywords: model.with_structured_output(City, **keywords),
    "a call of structured output": lambda model, **keywords: model.with_structured_output(City).invoke("Where?", **keywords),
    "resume": lambda model, **keywords: model.resume(WAITING, **keywords),
    "aresume": _awaited(lambda model, **keywords: model.aresume(WAITING, **keywords)),
    "check": lambda model, **keywords: model.check(WAITING, **keywords),
    "Agent": lambda model, **keywords: Agent(model).run("Where?", **keywords),
    "Agent.arun": _awaited(lambda model, **keywords: Agent(model).arun("Where?", **keywords)),
    "Agent.stream": lambda model, **keywords: list(Agent(model).run_stream("Where?", **keywords)),
}


@pytest.mark.parametrize("way", ENTRANCES)
@pytest.mark.parametrize("name", WIRES)
@pytest.mark.further
def test_a_misspelt_keyword_is_refused_at_every_entrance(name: str, way: str) -> None:
    """Nothing is sent, no tool runs, and the error names the right one and where a compatible server's own go."""
    ran: list[str] = []

    def look_up(key: str) -> str:
        """Look something up."""
        ran.append(key)
        return key

    wire = WIRES[name]
    with wire.serve(lambda exchange: Turn("There.")) as server:
        for tools in ([look_up], []):
            if not tools and way in ("resume", "aresume", "check"):
                continue
            model = wire.model(server, tools=tools)
            with pytest.raises(ConfigurationError) as caught:
                ENTRANCES[way](model, **WRONG)
            assert f"{type(model).__name__} has no keyword 'temprature': did you mean 'temperature'? " in str(caught.value)
            assert "extra_body={...}" in str(caught.value)
        assert (server.exchanges, ran) == ([], [])


def _names_of(name: str) -> Iterator[str]:
    """The parameters that a vendor's request type has, but for what the package writes itself."""
    row = REQUESTS.get(TYPES.get(name, ""))
    for field in fields_of(row.type) if row else ():
        if field not in ("messages", "input", "contents", "http_options", "client"):
            yield from (field, snake(field))


@pytest.mark.parametrize("name", WIRES)
@pytest.mark.further
def test_what_the_vendor_or_langchain_knows_is_no_misspelling(name: str) -> None:
    """Each name of the request type, each parameter of a preset under both of its names, and LangChain's own."""
    model: Any = WIRES[name].model(SERVER)
    preset = getattr(model, "preset", None)
    of_preset = {*preset.parameters, *preset.fields.values(), *preset.renamed, *preset.renamed.values()} if preset else set()
    langchains = {"stop", "tools", "tool_choice", "strict", "stream", "response_format", "parallel_tool_calls", "stream_usage", "timeout"}
    langchains |= {"ls_structured_output_format", "extra_headers", "extra_query", "extra_body", "max_tokens", "model"}
    for keyword in {*_names_of(name), *of_preset, *langchains}:
        if keyword not in getattr(model, "_refused"):  # noqa: B009
            getattr(model, "_check_keywords")({keyword})  # noqa: B009
    assert isinstance(model, PresetChatModel) or len({*_names_of(name)}) >= 6


@pytest.mark.further
@pytest.mark.parametrize("name", WIRES)
@pytest.mark.further
def test_extra_body_takes_what_a_compatible_server_knows(name: str) -> None:
    """At a call, bound, and for structured output; what is there is sent as it is."""
    wire = WIRES[name]
    with wire.serve(lambda exchange: Turn("There.")) as server:
        model = wire.model(server)
        for asked in (model, model.bind(extra_body={"temprature": 2})):
            try:
                asked.invoke("Where?", extra_body={"temprature": 2})
            except Exception as error:  # the server of a test is a strict one
                assert "temprature" in str(error)
        assert [exchange.json["temprature"] for exchange in server.exchanges] == [2, 2]


@pytest.mark.further
@pytest.mark.parametrize(("keyword", "reason"), [("tags", "it goes into config={...}"), ("callbacks", "it goes into config={...}")])
def test_what_belongs_to_the_configuration_says_so(keyword: str, reason: str) -> None:
    """LangChain itself fails with an error about arguments of its inner functions."""
    with pytest.raises(ConfigurationError, match=f"ChatOpenAI has no keyword '{keyword}': {reason}"):
        ChatOpenAI(model="any", api_key="key").invoke("Where?", **{keyword: []})


@pytest.mark.further
def test_model_kwargs_take_any_name() -> None:
    """They are what the class does not name; a call with further keywords does not refuse them, and may say the same name."""
    wire = WIRES["openai-chat"]
    with wire.serve(lambda exchange: Turn("There.")) as server:
        model = wire.model(server, model_kwargs={"top_k": 5})
        for ask in (model.invoke, model.bind(temperature=0).invoke, model.bind(top_k=6).invoke):
            with pytest.raises(Exception, match="Unknown parameter: 'top_k'"):
                ask("Where?")


class _Own(ChatOpenAI):
    """A class whose requests are its own: it takes what it likes."""

    def raw_stream(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> Iterator[AIMessageChunk]:
        yield AIMessageChunk(f"{kwargs.get('colour')}")


class _Plain(ChatOpenAI):
    """A class that only has a field more."""

    colour: str = "red"


@pytest.mark.further
def test_a_class_of_ones_own_takes_what_it_likes() -> None:
    """That is one that makes its requests, and whatever chat model is behind `with_tools`; a field of a subclass is known too."""
    from langchain_core.language_models.fake_chat_models import FakeListChatModel

    assert [chunk.text for chunk in _Own(model="any", api_key="key").stream("Where?", colour="red")] == ["red", ""]
    assert with_tools(FakeListChatModel(responses=["There."]), [look_up]).invoke("Where?", colour="red").text == "There."
    getattr(_Plain(model="any", api_key="key"), "_check_keywords")({"colour"})  # noqa: B009
    with pytest.raises(ConfigurationError, match="_Plain has no keyword 'color': did you mean 'colour'?"):
        _Plain(model="any", api_key="key").invoke("Where?", color="red")


@pytest.mark.further
def test_a_model_that_a_call_configures_refuses_too() -> None:
    """`init_chat_model` with configurable fields makes its model at the call."""
    model: Any = init_chat_model("openai:any", configurable_fields="any", api_key="key")
    with pytest.raises(ConfigurationError, match="did you mean 'temperature'"):
        model.invoke("Where?", **WRONG)


@pytest.mark.further
def test_before_turn_and_middleware_are_held_to_it_under_the_model_of_the_turn() -> None:
    """What a turn's own keywords say is checked with the model that makes it."""
    wire, other = WIRES["openai-chat"], WIRES["anthropic"]
    with wire.serve(lambda exchange: Turn("Here.")) as server, other.serve(lambda exchange: Turn("There.")) as second:
        model, marked = wire.model(server), {"cache_control": {"type": "ephemeral"}}
        claude = other.model(second)
        with pytest.raises(ConfigurationError, match="ChatOpenAI has no keyword 'temprature'"):
            model.invoke("Where?", before_turn=lambda turn: replace(turn, keywords=WRONG))
        turned = model.invoke("Where?", before_turn=lambda turn: replace(turn, model=claude, keywords=marked))
        assert (turned.text, len(server.exchanges), second.exchanges[0].json["cache_control"]) == ("There.", 0, marked["cache_control"])
