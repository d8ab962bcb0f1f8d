"""Arguments that cannot work are refused by every class where they are given, by name, and no secret of theirs is shown."""

import traceback
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from langchain_autotools import ChatGoogleGenerativeAI, ChatLocal, ChatOllama, ChatOpenAI, ConfigurationError, RetryPolicy, ToolExecutor
from tests.contract.wires import ROWS, Wire
from tests.support.openai_server import OpenAIServer

SECRET = "sk-very-secret-1234567890"
BAD: dict[str, list[Any]] = {
    "api_key": [f"{SECRET}\n", f" {SECRET}", f"{SECRET}\u00fc", f"{SECRET}\nx"],
    "timeout": ["60", -1, 0, float("nan"), (1, 2, 3), [1], {"read": 1}, object(), True],
    "stream_chunk_timeout": [-1, 0, float("nan")],
    "max_retries": [-1, "many"],
    "retry": [{"atempts": 5}, 3],
    "deadline": [0, float("nan")],
    "max_turns": [0, "x"],
    "on_executing": ["print", 1],
    "on_executed": ["print", 1],
}
ADDRESSES = ["localhost:8000/v1", "127.0.0.1", "htp://host/v1", " http://host", "http://host ", "http://", "http://host:99999/v1"]


def refused(row: Wire, **arguments: Any) -> str:
    """What the constructor says."""
    with row.serve([]) as server, pytest.raises(ConfigurationError) as raised:
        row.model(server, **arguments)
    shown = "".join(traceback.format_exception(raised.value))
    assert SECRET not in shown
    return str(raised.value)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_an_argument_that_cannot_work_is_named(row: Wire) -> None:
    """At construction, whatever is wrong with it."""
    for name, values in BAD.items():
        for value in values:
            assert name in refused(row, **{name: value}), (name, value)


@pytest.mark.parametrize("row", [row for row in ROWS if row.chat_model is not ChatOllama], ids=lambda row: row.name)
def test_an_address_without_scheme_or_host_is_refused(row: Wire) -> None:
    """Ollama's address may lack the scheme; any other is one that no request could go to."""
    for address in ADDRESSES:
        assert "base_url" in refused(row, base_url=address)


@pytest.mark.parametrize("row", [row for row in ROWS if row.chat_model is not ChatOllama], ids=lambda row: row.name)
def test_an_http_client_of_the_other_kind_is_refused(row: Wire) -> None:
    """Where it is given, under its own name."""
    assert "http_client must be an httpx.Client" in refused(row, http_client=httpx.AsyncClient())
    with httpx.Client() as client:
        assert "http_async_client must be an httpx.AsyncClient" in refused(row, http_async_client=client)
    assert "http_client" in refused(row, http_client="mine")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_header_that_cannot_be_sent_is_refused_and_not_shown(row: Wire) -> None:
    """The HTTP libraries would repeat its value."""
    with row.serve([]) as server:
        model = row.model(server)
        for headers in ({"authorization": f"Bearer {SECRET}\n"}, {"x-mine": "\u00fc"}, {"not a name": "1"}):
            with pytest.raises(ConfigurationError, match="extra_headers"):
                model.invoke("Hi", extra_headers=headers)
        with pytest.raises(ConfigurationError, match="timeout"):
            model.invoke("Hi", timeout="soon")
        assert not server.exchanges


@pytest.mark.parametrize("row", [row for row in ROWS if row.chat_model is not ChatOllama], ids=lambda row: row.name)
def test_a_missing_key_is_told_with_its_variable(row: Wire) -> None:
    """At the first request, which is not made."""
    with row.serve([]) as server:
        model = row.model(server, api_key=None)
        with pytest.raises(ConfigurationError, match="API_KEY"):
            model.invoke("Hi")
        assert "empty" in refused(row, api_key="")
        assert not server.exchanges


async def test_a_key_that_comes_later_is_not_shown_either() -> None:
    """Set on the model, or returned by a function: the error, and what it came from, say nothing of it, and it is not tried again."""

    async def get() -> str:
        return f"{SECRET}\n"

    with OpenAIServer([]) as server:
        model = ChatOpenAI(model="any", base_url=server.url, api_key="key")
        model.openai_api_key = SecretStr(f"{SECRET}\n")
        with pytest.raises(Exception, match="cannot be sent") as raised:
            model.invoke("Hi")
        assert SECRET not in "".join(traceback.format_exception(raised.value))
        for key in (lambda: f"{SECRET}\n", lambda: "", lambda: None, get):
            with pytest.raises(ConfigurationError, match="api_key returned") as raised_too:
                await ChatOpenAI(model="any", base_url=server.url, api_key=key).ainvoke("Hi")
            assert SECRET not in "".join(traceback.format_exception(raised_too.value))


def test_what_comes_from_the_environment_is_said_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody wrote that argument."""
    monkeypatch.setenv("OPENAI_BASE_URL", "localhost:8000")
    with pytest.raises(ConfigurationError, match="base_url from the environment is no address"):
        ChatOpenAI(model="any")


def test_other_arguments_that_cannot_work_are_named() -> None:
    """Of single classes, of `RetryPolicy` and of `ToolExecutor`."""
    cases: list[tuple[Any, dict[str, Any], str]] = [
        (ChatOpenAI, {"model": ""}, "model is empty"),
        (ChatOpenAI, {"openai_proxy": "localhost:8080"}, "openai_proxy is no address"),
        (ChatOpenAI, {"default_headers": {"X": "a\nb"}}, "default_headers"),
        (ChatOllama, {"model": "any", "num_ctx": -1}, "num_ctx"),
        (ChatOllama, {"model": "any", "client_kwargs": {"headers": {"X": "\u00fc"}}}, r"client_kwargs\['headers'\]"),
        (ChatOllama, {"model": "any", "client_kwargs": {"headers": "X: 1"}}, r"client_kwargs\['headers'\]"),
        (ChatGoogleGenerativeAI, {"model": "any", "client_args": {"headers": {"X": "a\nb"}}}, r"client_args\['headers'\]"),
        (ChatGoogleGenerativeAI, {"model": "any", "credentials": "key"}, "credentials: give a google.auth"),
        (ChatGoogleGenerativeAI, {"model": "any", "thinking_config": "much"}, "thinking_config"),
        (ChatLocal, {"model_path": 3}, "model_path"),
        (ChatLocal, {"start_timeout": -1}, "start_timeout"),
        (RetryPolicy, {"attempts": "x"}, "attempts"),
        (RetryPolicy, {"attempts": 1.5}, "attempts"),
        (RetryPolicy, {"timeout": 0}, "timeout"),
        (RetryPolicy, {"wait_max": float("nan")}, "wait_max"),
        (ToolExecutor, {"tools": [], "on_executed": "print"}, "on_executed"),
    ]
    for made, arguments, said in cases:
        with pytest.raises(ConfigurationError, match=said):
            made(**arguments)
