"""`init_chat_model` with arguments that come with each call."""

import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import tool

from langchain_autotools import ConfigurationError, init_chat_model, new_messages
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Turn


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def whose(config: RunnableConfig) -> str:
    """Tell the thread."""
    return str(config["configurable"]["thread_id"])


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
    """Invoked and streamed, synchronously and not; what a call does not set is as it was given, and no call changes another."""
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
    model.with_config(configurable={"first_temperature": 0.75, "temperature": 0.1}).invoke("x")
    assert [(request["model"], request["temperature"]) for request in server.requests] == [("default", 0.5), ("default", 0.75)]


SUM = {"title": "Sum", "type": "object", "properties": {"sum": {"type": "integer"}}}
FLAT: list[tuple[dict[str, Any], dict[str, Any]]] = [  # of `with_config` and of a call, with LangChain's own function the same
    ({"config": {"model": "openai:other", "temperature": 0.25}}, {}),
    ({"model": "openai:other", "temperature": 0.25}, {}),
    ({"config": {"model": "openai:other"}, "configurable": {"temperature": 0.25}}, {}),
    ({"config": {"configurable": {"model": "openai:third", "temperature": 0.25}}, "model": "openai:other"}, {}),
    ({"model": "openai:third", "temperature": None}, {"model": "openai:other", "temperature": 0.25}),
    ({"tags": ["a"]}, {"model": "openai:other", "configurable": {"temperature": 0.25}}),
]


def test_flat_keys_of_a_configuration_are_read_where_it_is_given(server: OpenAIServer) -> None:
    """Beside `configurable`, as LangChain's takes them; one that sets no argument is an error that says which there are."""
    for prefix in ("", "first"):
        model = init_chat_model("openai:default", configurable_fields=("model", "temperature"), config_prefix=prefix, temperature=0.5)
        for given, said in FLAT:
            named, asked = _prefixed(given, prefix), _prefixed(said, prefix)
            for made in (model.with_config(**named), model.bind(stop=["x"]).with_config(**named).with_tools([add])):
                assert made.invoke("x", asked).text == "hello"
        assert model.invoke("x", {"temperature": 0.75} if not prefix else {"first_temperature": 0.75}).text == "hello"
    *sent, last = [(request["model"], request["temperature"]) for request in server.requests]
    assert set(sent) == {("other", 0.25), ("default", 0.75)} and last == ("default", 0.75)

    for wrong in ({"modle": "openai:other"}, {"top_p": 0.5}, {"model": "openai:other"}):
        with pytest.raises(ConfigurationError, match="unknown key .*configurable_fields allows first_model, first_temperature"):
            model.with_config(**wrong)
        with pytest.raises(ConfigurationError, match="unknown key"):
            model.invoke("x", RunnableConfig(**wrong))
    with pytest.raises(ConfigurationError, match="did you mean 'first_model'"):
        model.with_config({"model": "openai:other"})  # type: ignore[typeddict-unknown-key]
    everything = init_chat_model("openai:default", configurable_fields="any", config_prefix="first")
    with pytest.raises(ConfigurationError, match="arguments of the model begin with 'first_'"):
        everything.with_config(model="openai:other")
    assert everything.with_config(thread_id="1", first_model="openai:other").invoke("x").text == "hello"


def _prefixed(given: Any, prefix: str) -> Any:
    """The same with names of arguments under a prefix."""
    if not isinstance(given, dict):
        return given
    own = {name: f"{prefix}_{name}" if prefix and name in ("model", "temperature") else name for name in given}
    return {own[name]: _prefixed(value, prefix) for name, value in given.items()}


class Seen(BaseCallbackHandler):
    """A handler that keeps what it is told of each run of a model."""

    def __init__(self) -> None:
        self.runs: list[tuple[Any, Any]] = []

    def on_chat_model_start(self, serialized: Any, messages: Any, **kwargs: Any) -> None:
        """Keep tags and metadata."""
        self.runs.append((set(kwargs["tags"]), kwargs["metadata"]))


def test_nothing_of_the_run_in_which_a_model_is_made_goes_with_it(server: OpenAIServer) -> None:
    """Made inside one tenant's run, by every method that makes one, and used in another's: the first one's configuration stays there."""
    model = init_chat_model("openai:default", configurable_fields="any")
    kept: list[Any] = []

    def make(_: Any) -> str:
        made = (model.with_config(tags=["made"]), model.with_config({"temperature": 0.25}), model.bind(stop=["x"]))  # type: ignore[typeddict-unknown-key]
        kept.extend([*made, model.bind_tools([add]), model.with_tools([add]), model.with_structured_output(SUM, include_raw=True)])
        return str(model.model_name)

    first, second = Seen(), Seen()
    theirs = {"model": "openai:theirs", "api_key": "secret-of-the-first", "seed": 1}
    one: RunnableConfig = {
        "tags": ["first"],
        "callbacks": [first],
        "metadata": {"who": "first"},
        "configurable": {**theirs, "thread_id": "1"},
    }
    assert RunnableLambda(make).invoke("x", one) == "default"
    for each in kept:
        other: RunnableConfig = {
            "tags": ["second"],
            "callbacks": [second],
            "metadata": {"who": "second"},
            "configurable": {"thread_id": "2"},
        }
        RunnableLambda(lambda text, each=each: each.invoke(text)).invoke("x", other)

    asking_inside = RunnableLambda(lambda text: model.invoke(text, {"tags": ["inside"], "seed": 2}).text)  # type: ignore[typeddict-unknown-key]
    assert asking_inside.invoke("x", asking(model="openai:of-the-run", api_key="key")) == "hello"
    assert (server.requests[-1]["model"], server.requests[-1]["seed"]) == ("of-the-run", 2)
    del server.exchanges[-1]

    with OpenAIServer([Turn(calls=[Call("whose", {})]), Turn("done")]) as talking:
        named = init_chat_model("openai:any", configurable_fields=("temperature",), base_url=talking.url, tools=[whose])
        asked = RunnableLambda(lambda text: new_messages(named.with_config(temperature=0.5).invoke(text))[1].text)
        assert asked.invoke("x", asking(thread_id="of the run")) == "of the run"

    assert not first.runs and len(second.runs) == len(kept)
    assert all("first" not in tags and metadata["who"] == "second" for tags, metadata in second.runs)
    assert "first" not in repr([pickle.dumps(each) for each in kept]) + repr([vars(each) for each in kept])
    assert all((request["model"], request.get("seed")) == ("default", None) for request in server.requests)
    assert {exchange.headers["authorization"] for exchange in server.exchanges} == {"Bearer key"}


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
