"""Values that no vendor takes are refused by every class, by name, in the constructor and at a call, before anything is sent."""

from typing import Any

import pytest

from langchain_autotools import ChatAnthropic, ChatGoogleGenerativeAI, ChatOllama, ChatOpenAI, ConfigurationError
from tests.contract.wires import ROWS, Wire
from tests.support.script import Turn
from tests.support.weather import get_temperature

NEGATIVE = {"max_tokens": -5, "temperature": -1.0, "top_p": -0.5}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
async def test_a_negative_number_is_refused(row: Wire) -> None:
    """By the constructor, in `model_kwargs`, and by every way to a request; 0 and None are none."""
    with row.serve(lambda exchange: Turn("hello")) as server:
        model = row.model(server)
        for name, value in NEGATIVE.items():
            with pytest.raises(ConfigurationError, match=f"{name} must be"):
                row.model(server, **{name: value})
            with pytest.raises(ConfigurationError, match=f"{name} must be"):
                model.invoke("x", **{name: value})
        with pytest.raises(ConfigurationError, match="max_tokens must be"):
            row.model(server, model_kwargs={"max_tokens": -5})
        with pytest.raises(ConfigurationError, match="temperature must be 0 or more, not -1"):
            list(model.stream("x", temperature=-1))
        with pytest.raises(ConfigurationError, match="temperature must be 0 or more, not -1"):
            await model.bind(temperature=-1).ainvoke("x")
        with pytest.raises(ConfigurationError, match="temperature must be 0 or more, not nan"):
            async for _ in model.astream("x", temperature=float("nan")):
                pass
        with pytest.raises(ConfigurationError, match="temperature must be"):
            model.generate([], temperature=-1)
        assert server.exchanges == []
        assert model.invoke("x", temperature=0, top_p=None).text == "hello"


def test_negative_numbers_that_mean_something_are_taken() -> None:
    """Ollama's -1 and -2 tokens, penalties, seeds, and Google's thinking budget of -1."""
    for tokens in (-1, -2):
        assert ChatOllama(model="any", num_predict=tokens).num_predict == ChatOllama(model="any", max_tokens=tokens).num_predict == tokens
    assert ChatOpenAI(model="any", api_key="key", presence_penalty=-1, seed=-1).presence_penalty == -1
    assert ChatGoogleGenerativeAI(model="any", api_key="key", thinking_budget=-1).thinking_budget == -1
    with pytest.raises(ConfigurationError, match="num_predict must be a number of tokens, -1"):
        ChatOllama(model="any", num_predict=-3)
    with pytest.raises(ConfigurationError, match="temperature must be 0 or more"):
        ChatOllama(model="any", options={"temperature": -1})


@pytest.mark.parametrize(
    ("chat_model", "name", "hint"),
    [
        (ChatOpenAI, "reasoning", "reasoning_effort='high' says the effort alone"),
        (ChatOpenAI, "extra_body", ""),
        (ChatAnthropic, "output_config", "effort='high'"),
        (ChatAnthropic, "thinking", "'adaptive'"),
        (ChatGoogleGenerativeAI, "thinking_config", "thinking_level='high'"),
        (ChatGoogleGenerativeAI, "tool_config", ""),
        (ChatOllama, "options", ""),
    ],
)
def test_a_text_in_place_of_a_dict_is_refused_by_name(chat_model: Any, name: str, hint: str) -> None:
    """Invoked and streamed: the error says what was meant, not what the text lacks."""
    model = chat_model(model="any", base_url="http://127.0.0.1:9", **({} if chat_model is ChatOllama else {"api_key": "key"}))
    for way in (model.invoke, lambda *args, **kwargs: list(model.stream(*args, **kwargs))):
        with pytest.raises(ConfigurationError, match=f"{name} must be a dict, not 'high'.*{hint}"):
            way("x", **{name: "high"})


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
async def test_stop_words_and_tools_that_are_none_are_refused(row: Wire) -> None:
    """A number, a tool without its list, a name: by every way to a request, with tools of the model's own or without."""
    with row.serve([]) as server:
        for model in (row.model(server), row.model(server, tools=[get_temperature])):
            for stop in (5, [5], {"a": 1}):
                with pytest.raises(ConfigurationError, match="stop must be a text or a list of texts"):
                    model.invoke("x", stop=stop)
                with pytest.raises(ConfigurationError, match="stop must be a text or a list of texts"):
                    await model.bind(stop=stop).ainvoke("x")
            for tools in (3, "weather", get_temperature, {"get_temperature": get_temperature}):
                for way in (model.bind_tools, model.bind, lambda tools, model=model: list(model.stream("x", tools=tools))):
                    with pytest.raises(ConfigurationError, match=f"tools must be a list of tools, not {type(tools).__name__}"):
                        way(tools=tools)
        assert server.exchanges == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_tool_choice_that_allows_no_tool_is_refused(row: Wire) -> None:
    """Flat or nested, bound or for one call: vendors would take it for no restriction, or refuse it."""
    with row.serve([]) as server:
        model = row.model(server, tools=[get_temperature])
        for choice in ({"type": "allowed_tools", "tools": []}, {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}):
            with pytest.raises(ConfigurationError, match="tool_choice"):
                model.invoke("x", tool_choice=choice)
            with pytest.raises(ConfigurationError, match="tool_choice"):
                model.bind_tools([get_temperature], tool_choice=choice)
        assert server.exchanges == []
