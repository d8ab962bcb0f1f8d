"""Chat models by name: providers, inferred providers, and errors that name the nearest."""

import re
import sys
import tomllib
import traceback
from pathlib import Path
from typing import Any

import langchain.chat_models.base as langchain_names
import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool

import langchain_autotools
from langchain_autotools import Agent, ConfigurationError, ToolsAndMessagesMixin, init_chat_model, new_messages, pending_calls
from langchain_autotools.cli import main
from langchain_autotools.providers.known import LANGCHAIN_CLASSES, PROVIDERS
from langchain_autotools.providers.registry import model_named
from tests.support.openai_server import OpenAIServer
from tests.support.responses_server import ResponsesServer
from tests.support.script import Call, Turn

REPOSITORY = Path(__file__).parents[3]
KEY = "-".join(("secret", "key"))  # in two pieces, since tracebacks show these lines
PAGE = REPOSITORY / "docs" / "providers.md"


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
    """`provider:model` gives the provider's class with that model, its tools and its arguments; the class is in the root too."""
    model: Any = init_chat_model(f"{name}:some-model:1", tools=[add], temperature=0.5)
    assert type(model) is getattr(langchain_autotools, PROVIDERS[name].class_name)
    assert (model.model, list(model.tools or []), model.temperature) == ("some-model:1", [add], 0.5)
    assert type(init_chat_model("some-model", model_provider=name)) is type(model)


KNOWN_BY_NAME = {
    "gpt-5": "ChatOpenAI", "o3-mini": "ChatOpenAI", "claude-sonnet-5": "ChatAnthropic", "command-a": "ChatCohere",
    "accounts/fireworks/models/x": "ChatFireworks", "Mixtral-8x7b": "ChatMistralAI", "deepseek-chat": "ChatDeepSeek",
    "grok-4": "ChatXAI", "gemini-3-pro-preview": "ChatGoogleGenerativeAI", "ollama:qwen3:8b": "ChatOllama",
    "azure:gpt-5": "AzureChatOpenAI", "Azure-OpenAI:gpt-5": "AzureChatOpenAI", "mistral:x": "ChatMistralAI",
    "LangSmith:gpt-5": "ChatOpenAI",
}  # fmt: skip


def test_providers_are_told_from_names() -> None:
    """Well-known beginnings of models' names, other names of providers, capitals and hyphens."""
    assert {name: type(init_chat_model(name)).__name__ for name in KNOWN_BY_NAME} == KNOWN_BY_NAME


@pytest.mark.filterwarnings("ignore:Inferred:DeprecationWarning")  # of LangChain's, about Gemini
def test_every_name_of_langchain_resolves(monkeypatch: pytest.MonkeyPatch) -> None:
    """To a class of this package, else to LangChain's own; where its package is missing the error says what to install."""
    theirs = langchain_names._BUILTIN_PROVIDERS
    ours = PROVIDERS.keys() - {"local"} | LANGCHAIN_CLASSES.keys()
    assert not theirs.keys() - ours
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for name, row in LANGCHAIN_CLASSES.items():
        assert name not in theirs or theirs[name][:2] == (row.module, row.class_name)
        package, _, parts = row.package.rstrip("]").partition("[")
        (line,) = extras[row.extra]
        assert line.startswith(package) and parts in line
        monkeypatch.setitem(sys.modules, row.module.partition(".")[0], None)
        with pytest.raises(ConfigurationError, match=re.escape(f"pip install '{row.package}', or the extra `{row.extra}`")):
            init_chat_model(f"{name}:some-model")
        with pytest.raises(ConfigurationError, match=f"{row.class_name} needs the package"):
            init_chat_model("some-model", model_provider=name.replace("_", "-").upper())

    prefixes = {prefix: name for name, one in (*PROVIDERS.items(), *LANGCHAIN_CLASSES.items()) for prefix in one.prefixes}
    inferred = {prefix: langchain_names._attempt_infer_model_provider(f"{prefix}-1") for prefix in prefixes}
    assert {prefix: name for prefix, name in prefixes.items() if inferred[prefix] != name} == {"gemini": "google_genai", "o4": "openai"}
    assert model_named("anthropic.claude-sonnet-4-v1:0")[0] == model_named("Amazon.nova-pro-v1:0")[0] == "bedrock"
    assert model_named("sonar-pro")[0] == "perplexity"


def test_the_page_of_names_says_what_the_tables_say() -> None:
    """Each name of LangChain's has a row of its class and package, and of tests that are there, in which it ran."""
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    own = {name: (f"`{one.class_name}`", "this package") for name, one in PROVIDERS.items() if name != "local"}
    others = {name: (f"`{one.module}.{one.class_name}`", f"`{one.package}`, `{one.extra}`") for name, one in LANGCHAIN_CLASSES.items()}
    assert {name.strip("`"): (cls, package) for name, cls, package, _ in rows} == own | others
    for name, *_, ran in rows:
        place = ran.strip("`")
        assert ran == f"`{place}`" and place.startswith("tests/") and (REPOSITORY / place).exists(), name
        assert (place == "tests/named") is (name.strip("`") in LANGCHAIN_CLASSES), name


STAND_IN = """
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from pydantic import SecretStr, model_validator

CALL = {"name": "add", "args": {"a": 1, "b": 2}, "id": "call_1"}


class ChatUpstage(FakeMessagesListChatModel):
    model: str
    api_key: SecretStr = SecretStr("")
    temperature: float = 1.0
    responses: list = [AIMessage("Let me add.", tool_calls=[CALL]), AIMessage("3")]

    @model_validator(mode="before")
    @classmethod
    def check(cls, given):
        assert given.get("temperature", 0) <= 2, "at most 2"
        return given

    @classmethod
    def from_model_id(cls, model_id, **kwargs):
        return cls(model=model_id, **kwargs)


class ChatWatsonx(ChatUpstage):
    def __init__(self, *, model_id, **kwargs):
        super().__init__(model=model_id, **kwargs)


ChatHuggingFace = ChatUpstage
"""


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Packages of LangChain's that hold a class which adds one and two, made in each of the ways in which there are classes made."""
    for package in ("langchain_upstage", "langchain_ibm", "langchain_huggingface"):
        (tmp_path / f"{package}.py").write_text(STAND_IN, encoding="utf-8")
        monkeypatch.delitem(sys.modules, package, raising=False)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.further
@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize("name", ["upstage", "ibm", "huggingface"])
def test_a_class_of_langchains_runs_its_tools(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings of runs are the mixin's, all other arguments the class's; by every entrance that takes a name."""
    settings: Any = {"tools": [add], "max_turns": 3, "message_separator": " ", "requires_approval": ["add"], "name": "mine"}
    model: Any = init_chat_model(f"{name}:some-model:1", api_key=KEY, temperature=0.5, **settings)
    assert (model.model, model.temperature, model.max_turns, model.name) == ("some-model:1", 0.5, 3, "mine")
    assert isinstance(model, ToolsAndMessagesMixin) and KEY not in repr(model)
    waiting = model.invoke("1 + 2?")
    (call,) = pending_calls(waiting)
    assert model.resume([HumanMessage("1 + 2?"), *new_messages(waiting)], [call.approve()]).text == "3"

    plain: Any = init_chat_model("some-model", model_provider=name)
    assert plain.invoke("1 + 2?").tool_calls and not plain.tools
    named: Any = init_chat_model("openai:any", configurable_fields=("model",), tools=[add])
    assert named.with_config(model=f"{name}:x").invoke("1 + 2?").text == "Let me add.\n3"
    assert Agent(f"{name}:x", tools=[add]).run("1 + 2?").text == "Let me add.\n3"
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["chat", "1 + 2?", "-m", f"{name}:x", "-T", f"{__file__}:add", "--max-turns", "3"]) == 0
    shown = capsys.readouterr()
    assert shown.out.endswith("3\n") and f"model: {name}:x" in shown.err
    assert main(["models", name]) == 2 and "lists no models" in capsys.readouterr().err


@pytest.mark.further
@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"max_turn": 3}, "ChatUpstage has no argument 'max_turn': did you mean 'max_turns'"),
        ({"tool": [add]}, "did you mean 'tools'"),
        ({"retry": 3}, "requests are repeated by this class itself"),
        ({"max_turns": -1}, "max_turns"),
        ({"temperature": 3}, "^ChatUpstage: .*at most 2$"),
    ],
)
def test_what_a_class_of_langchains_cannot_take_is_an_error(arguments: dict[str, Any], said: str) -> None:
    """A setting of runs is not handed to a class that passes over it; no text has a key."""
    with pytest.raises(ConfigurationError, match=said) as caught:
        init_chat_model("upstage:some-model", api_key=KEY, **arguments)
    assert KEY not in "".join(traceback.format_exception(caught.value))


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


def test_its_tools_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model made by its name runs its tools like any other; LangSmith's gateway gets its own key, never OpenAI's."""
    with OpenAIServer([Turn(calls=[Call("add", {"a": 1, "b": 2})]), Turn("3")]) as server:
        model = init_chat_model("openai:any", base_url=server.url, tools=[add])
        assert model.invoke("1 + 2?").text == "3"
    pair = Turn(calls=[Call("add", {"a": 1, "b": 2}), Call("add", {"a": 3, "b": 4})])
    with ResponsesServer([pair, Turn("3 and 7"), pair, Turn("3 and 7"), Turn("x")]) as server:
        monkeypatch.setenv("LANGSMITH_GATEWAY", server.url.removesuffix("/v1"))
        monkeypatch.setenv("LANGSMITH_GATEWAY_API_KEY", "of-the-gateway")
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
        model = init_chat_model("langsmith:any", tools=[add])
        assert model.invoke("1 + 2, 3 + 4?").text == "".join(chunk.text for chunk in model.stream("1 + 2, 3 + 4?")) == "3 and 7"
        assert init_chat_model("langsmith:any", api_key="another", base_url=server.url).invoke("1 + 2?").text == "x"
        assert [exchange.headers["authorization"][7:] for exchange in server.exchanges] == ["of-the-gateway"] * 4 + ["another"]
        assert server.rejections == []
    for variable in PROVIDERS["langsmith"].key_variables:
        monkeypatch.delenv(variable)
    with pytest.raises(ConfigurationError, match="no key for LangSmith's gateway: set LANGSMITH_GATEWAY_API_KEY or LANGSMITH_API_KEY"):
        init_chat_model("langsmith:any")
