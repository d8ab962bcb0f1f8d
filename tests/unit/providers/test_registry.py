"""Chat models by name: providers, inferred providers, and errors that name the nearest."""

from typing import Any

import pytest
from langchain_core.tools import tool

import langchain_autotools
from langchain_autotools import ConfigurationError, init_chat_model
from langchain_autotools.providers.registry import PROVIDERS
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Turn


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every provider's key is set, and what Azure needs besides."""
    for provider in PROVIDERS.values():
        for variable in provider.key_variables:
            monkeypatch.setenv(variable, "key")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OPENAI_API_VERSION", "2025-04-01-preview")


@pytest.mark.parametrize("name", [name for name in PROVIDERS if PROVIDERS[name].model_needed])
def test_every_provider_by_its_name(name: str) -> None:
    """`provider:model` gives the provider's class with that model, its tools and its arguments; the class stands in the root too."""
    model: Any = init_chat_model(f"{name}:some-model:1", tools=[add], temperature=0.5)
    assert type(model) is getattr(langchain_autotools, PROVIDERS[name].class_name)
    assert (model.model, list(model.tools or []), model.temperature) == ("some-model:1", [add], 0.5)
    assert type(init_chat_model("some-model", model_provider=name)) is type(model)


@pytest.mark.parametrize(
    ("name", "class_name"),
    [
        ("gpt-5", "ChatOpenAI"), ("o3-mini", "ChatOpenAI"), ("claude-sonnet-5", "ChatAnthropic"), ("command-a", "ChatCohere"),
        ("accounts/fireworks/models/x", "ChatFireworks"), ("Mixtral-8x7b", "ChatMistralAI"), ("deepseek-chat", "ChatDeepSeek"),
        ("grok-4", "ChatXAI"), ("gemini-3-pro-preview", "ChatGoogleGenerativeAI"), ("ollama:qwen3:8b", "ChatOllama"),
        ("azure:gpt-5", "AzureChatOpenAI"),
        ("Azure-OpenAI:gpt-5", "AzureChatOpenAI"), ("mistral:x", "ChatMistralAI"),
    ],
)  # fmt: skip
def test_providers_are_told_from_names(name: str, class_name: str) -> None:
    """Well-known beginnings of models' names, other names of providers, capitals and hyphens."""
    assert type(init_chat_model(name)).__name__ == class_name


def test_the_local_model_by_its_name() -> None:
    """`local` is the default weights, `local:FILE` a file."""
    assert type(init_chat_model("local")).__name__ == "ChatLocal"
    model: Any = init_chat_model("local:/tmp/other.gguf")
    assert (str(model.model_path), model.model_name) == ("/tmp/other.gguf", "other")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"model": "antropic:claude"}, "no such provider: 'antropic'; did you mean 'anthropic'"),
        ({"model": "x", "model_provider": "gorq"}, "did you mean 'groq'"),
        ({"model": "qqq"}, "the provider of 'qqq' cannot be told: write provider:model"),
        ({"model": "openai:"}, "names no model"),
        ({"model": 5}, "not int"),
        ({"model": "gpt-5", "config_prefix": "first"}, "config_prefix='first' has no effect"),
        ({"model": "gpt-5", "configurable_fields": "temperature"}, "a list of arguments' names or 'any'"),
        ({"model": "gpt-5", "temprature": 1}, "did you mean 'temperature'"),
    ],
)
def test_what_cannot_be_told_is_an_error(arguments: dict[str, Any], said: str) -> None:
    """The error names the nearest, or says what to write."""
    with pytest.raises(ConfigurationError, match=said):
        init_chat_model(**arguments)


def test_its_tools_run() -> None:
    """A model made by its name runs its tools like any other."""
    with OpenAIServer([Turn(calls=[Call("add", {"a": 1, "b": 2})]), Turn("3")]) as server:
        model = init_chat_model("openai:any", base_url=server.url, tools=[add])
        assert model.invoke("1 + 2?").text == "3"
