"""What the repr of a model says: its class, its model, its tools, and the arguments that were given."""

from typing import Any

import pytest

from langchain_autotools import ChatAnthropic, ChatOpenAI, RetryPolicy, ToolExecutor
from langchain_autotools.testing import ScriptedChatModel


def forecast(city: str) -> str:
    """The forecast of a city."""
    return "rain"


def alert(city: str) -> None:
    """Warn a city."""


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        ([forecast, alert], ["forecast", "alert"]),
        ({"weather": forecast}, ["weather"]),
        (ToolExecutor([forecast]), ["forecast"]),
        ([forecast, {"type": "web_search"}], ["forecast", "web_search"]),
        ([{"type": "mcp", "server_label": "shop", "server_url": "https://h", "authorization": "secret-token"}], ["mcp"]),
    ],
    ids=["list", "mapping", "executor", "builtin", "remote server"],
)
def test_a_repr_names_the_tools(tools: Any, said: list[str]) -> None:
    """By their names alone, whichever way they were given."""
    model = ChatOpenAI(model="gpt-5", api_key="sk-secret-key", tools=tools)
    assert repr(model).endswith(f"tools={said})") and len(repr(model)) < 120
    assert "secret" not in repr(model) + str(model)


def test_a_repr_says_what_was_given() -> None:
    """Under the names of the documentation; no profile, no versions, nothing that is empty or a default."""
    given = ChatAnthropic(model="claude-sonnet-4-5", api_key="sk-secret-key", max_tokens=9, temperature=0, metadata={"team": "blue"})
    said = repr(given)
    assert said.startswith(
        "ChatAnthropic(metadata={'team': 'blue'}, model='claude-sonnet-4-5', api_key=SecretStr('**********'), max_tokens=9"
    )
    assert "temperature=0" in said and "profile" not in said and "lc_versions" not in said and "retry" not in said
    assert "retry=RetryPolicy(attempts=1" in repr(ChatOpenAI(model="m", api_key="k", retry=RetryPolicy(attempts=1)))
    assert "tools" not in repr(ChatOpenAI(model="m", api_key="k"))


def test_a_binding_names_its_tools() -> None:
    """Not their schemas; secrets among its keywords are hidden."""
    model = ScriptedChatModel(tools=[forecast])
    assert repr(model.bind_tools([alert])) == "BoundChatModel(bound=ScriptedChatModel(tools=['forecast']), kwargs={'tools': ['alert']})"
    bound = ChatOpenAI(model="m", api_key="k").bind(extra_headers={"Authorization": "Bearer secret-token", "x-title": "blue"})
    assert "secret" not in repr(bound) and "'x-title': 'blue'" in repr(bound)
    assert "config={'tags': ['a']}" in repr(model.with_config(tags=["a"]))
