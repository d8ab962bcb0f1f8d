"""`init_chat_model` with arguments that come with each call."""

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool

from langchain_autotools import ConfigurationError, init_chat_model, new_messages
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Turn


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    """A server that the environment names as the place to ask."""
    with OpenAIServer(lambda exchange: Turn("hello")) as running:
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        yield running


def asking(**values: Any) -> RunnableConfig:
    """A configuration that sets these."""
    return {"configurable": values}


async def test_a_call_names_the_model_and_its_arguments(server: OpenAIServer) -> None:
    """Invoked and streamed, synchronously and not; what a call does not set is as it was given, and each call stands alone."""
    model = init_chat_model("openai:default", configurable_fields="any", temperature=0.5)
    said = asking(model="openai:other", temperature=0.25)
    model.invoke("x", said)
    list(model.stream("x", said))
    await model.ainvoke("x", said)
    assert [chunk async for chunk in model.astream("x", said)]
    assert [event async for event in model.astream_events("x", said, version="v2")]
    assert {(request["model"], request["temperature"]) for request in server.requests} == {("other", 0.25)}
    model.batch(["x", "y"], [said, asking(model="openai:third")])
    model.invoke("x")
    sent = sorted((request["model"], request["temperature"]) for request in server.requests[5:])
    assert sent == [("default", 0.5), ("other", 0.25), ("third", 0.5)]


def test_only_the_named_fields_under_the_prefix(server: OpenAIServer) -> None:
    """Other names of `configurable`, with or without the prefix, change nothing."""
    model = init_chat_model("openai:default", configurable_fields=("temperature",), config_prefix="first")
    model.invoke("x", asking(first_temperature=0.5, first_model="openai:other", temperature=0.1, thread_id="1"))
    model.with_config(configurable={"first_temperature": 0.75}).invoke("x")
    assert [(request["model"], request["temperature"]) for request in server.requests] == [("default", 0.5), ("default", 0.75)]


def test_without_a_name_each_call_names_the_model(server: OpenAIServer) -> None:
    """`init_chat_model()` takes model and provider from the configuration; without them it says what is missing."""
    model = init_chat_model(temperature=0.5)
    model.invoke("x", asking(model="any", model_provider="openai", temperature=1.0, __pregel_x=1))
    assert (server.requests[0]["model"], server.requests[0]["temperature"]) == ("any", 0.5)
    with pytest.raises(ConfigurationError, match="which model"):
        model.invoke("x")
    assert not hasattr(model, "get_num_tokens")


def test_what_a_graph_keeps_in_configurable_is_not_the_models(server: OpenAIServer) -> None:
    """With "any" and no prefix, names of graphs are left alone, and an unknown name is an error that names the nearest."""
    model = init_chat_model("openai:default", configurable_fields="any")
    model.invoke("x", asking(thread_id="1", checkpoint_ns="", __pregel_resuming=False))
    with pytest.raises(ConfigurationError, match="did you mean 'temperature'"):
        model.invoke("x", asking(temprature=1))


def test_tools_run_and_declarations_are_kept() -> None:
    """Constructor tools run, `bind_tools` and `with_structured_output` are done on the model that a call makes."""
    replies = [Turn(calls=[Call("add", {"a": 1, "b": 2})]), Turn("3"), Turn(calls=[Call("add", {"a": 1, "b": 2})]), Turn('{"a": 1}')]
    with OpenAIServer(replies) as server:
        own = init_chat_model("openai:any", configurable_fields=("temperature",), base_url=server.url, api_key="key", tools=[add])
        assert [message.type for message in new_messages(own.invoke("1 + 2?", asking(temperature=0.5)))] == ["ai", "tool", "ai"]
        plain = init_chat_model("openai:any", configurable_fields=("temperature",), base_url=server.url, api_key="key")
        assert plain.bind_tools([add], parallel_tool_calls=False).invoke("1 + 2?", asking(temperature=0.5)).tool_calls
        schema = {"title": "A", "type": "object", "properties": {"a": {"type": "integer"}}}
        assert plain.with_structured_output(schema).invoke("1?", asking(temperature=0.5)) == {"a": 1}
        assert {request["temperature"] for request in server.requests} == {0.5}
        assert server.requests[2]["parallel_tool_calls"] is False
        assert plain.get_num_tokens("some words") > 0
        assert "ConfigurableChatModel" in repr(plain)
