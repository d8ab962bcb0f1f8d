"""Copies, pickles and secrets of a ChatOpenAI: no stale client, no stale cache, no key where it does not belong."""

import asyncio
import copy
import json
import logging
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.load import dumpd
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.schemas import Run
from pydantic import SecretStr

from langchain_autotools import ChatOpenAI, pending_calls
from tests.support.http_server import Exchange
from tests.support.openai_server import OpenAIServer
from tests.support.responses_server import ResponsesServer
from tests.support.script import Call, Failure, Turn

KEY = "sk-proj-1234567890abcdef"
TOKEN = "tok-9876543210"


def model_of(server: OpenAIServer, **more: Any) -> ChatOpenAI:
    """A model with secrets in every place that may hold one."""
    headers = {"x-auth-token": TOKEN, "x-plain": TOKEN, "x-title": "plain"}
    return ChatOpenAI(**{"model": "any", "base_url": server.url, "api_key": KEY, "max_retries": 0, "default_headers": headers, **more})


def test_a_copy_with_another_address_uses_it() -> None:
    """`model_copy` after a first request: the copy's client is not the original's."""
    with OpenAIServer([Turn("one"), Turn("three")]) as first, OpenAIServer([Turn("two")]) as second:
        model = model_of(first)
        assert model.invoke("Hi").content == "one"
        moved = model.model_copy(update={"openai_api_base": second.url, "openai_api_key": SecretStr("other")})
        assert moved.invoke("Hi").content == "two"
        assert model.invoke("Hi").content == "three"
        assert second.exchanges[0].headers["authorization"] == "Bearer other"


def test_a_changed_field_is_obeyed_by_the_next_request() -> None:
    """Setting a field on a model that has made requests works too."""
    with OpenAIServer([Turn("one")]) as first, OpenAIServer([Turn("two")]) as second:
        model = model_of(first)
        model.invoke("Hi")
        model.openai_api_base = second.url
        assert model.invoke("Hi").content == "two"


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda model: model.model_copy(deep=True)], ids=["copy", "deepcopy", "deep model_copy"]
)
def test_a_copy_of_a_used_model_works(copied: Any) -> None:
    """Copying needs no connection to be copied, and keeps the key and the user's own client."""
    import openai

    with OpenAIServer([Turn("one"), Turn("two"), Turn("three")]) as server, openai.DefaultHttpxClient() as http:
        model = model_of(server, http_client=http)
        model.invoke("Hi")
        asyncio.run(model.ainvoke("Hi"))
        other = copied(model)
        assert other.http_client is http
        assert other.invoke("Hi").content == "three"
        assert server.exchanges[-1].headers["authorization"] == f"Bearer {KEY}"


def test_a_pickle_holds_no_secret_and_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is unpickled takes its key from the environment and sends the rest as it was."""
    with OpenAIServer([Turn("one"), Turn("two")]) as server:
        model = model_of(server, temperature=0.5)
        named = r"ChatOpenAI: default_headers\['x-auth-token'\], default_headers\['x-plain'\] cannot be pickled"
        with pytest.raises(pickle.PicklingError, match=named):
            pickle.dumps(model)
        model.default_headers = {"x-title": "plain"}
        model.invoke("Hi")
        data = pickle.dumps(model)
        assert KEY.encode() not in data
        monkeypatch.setenv("OPENAI_API_KEY", "from the environment")
        other = pickle.loads(data)
        assert (other.temperature, other.openai_proxy, other.default_headers) == (0.5, None, {"x-title": "plain"})
        assert other.invoke("Hi").content == "two"
        assert server.exchanges[1].headers["authorization"] == "Bearer from the environment"
        assert model.openai_api_key.get_secret_value() == KEY  # type: ignore[union-attr]


class Recorder(BaseTracer):
    """Keeps every run."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[Run] = []

    def _persist_run(self, run: Run) -> None:
        self.runs.append(run)


def test_no_secret_is_shown(caplog: pytest.LogCaptureFixture) -> None:
    """Not in repr, dumps, traces or logs, whether the request succeeds or fails."""
    recorder = Recorder()
    with OpenAIServer([Turn("one"), Failure(401, f"wrong key {KEY}")]) as server, caplog.at_level(logging.DEBUG):
        model = model_of(server, openai_proxy=None)
        model.invoke("Hi", {"callbacks": [recorder]})
        with pytest.raises(Exception, match=r"wrong key \*\*\*"):
            list(model.stream("Hi", {"callbacks": [recorder]}))
        shown = [repr(model), str(model), json.dumps(dumpd(model), default=str), repr(model.asdict()), caplog.text]
        shown += [repr(run) for run in recorder.runs]
    assert len(recorder.runs) == 2
    for text in shown:
        assert KEY not in text
        assert TOKEN not in text


@pytest.mark.parametrize("how", ["constructor", "bound", "call"])
def test_what_opens_a_remote_server_is_sent_and_not_traced(how: str) -> None:
    """A tool of a remote MCP server goes to the vendor with its authorization; traces see that there is one."""
    recorder = Recorder()
    remote = {"type": "mcp", "server_label": "s", "server_url": "https://mcp.example", "authorization": TOKEN, "headers": {"X-Auth": TOKEN}}
    with ResponsesServer([Turn("one")]) as server:
        given = {"tools": [remote]} if how == "constructor" else {}
        model = ChatOpenAI(model="any", base_url=server.url, api_key=KEY, use_responses_api=True, max_retries=0, **given)
        asked = model.bind_tools([remote]) if how == "bound" else model
        asked.invoke("Hi", {"callbacks": [recorder]}, **({"tools": [remote]} if how == "call" else {}))
        assert server.requests[0]["tools"] == [remote]
    shown = repr([run.model_dump() for root in recorder.runs for run in (root, *root.child_runs)])
    assert (TOKEN in shown, "https://mcp.example" in shown) == (False, True)


def test_secret_fields_are_named() -> None:
    """`lc_secrets` names the key, headers that are not known to be harmless, and a proxy with a password."""
    headers = {"Authorization": "a", "x-plain": "b", "x-title": "c"}
    model = ChatOpenAI(model="any", api_key=KEY, default_headers=headers, openai_proxy="http://a:b@c")
    names = {
        "openai_api_key": "OPENAI_API_KEY",
        "default_headers.Authorization": "OPENAI_HEADER_AUTHORIZATION",
        "default_headers.x-plain": "OPENAI_HEADER_X_PLAIN",
        "openai_proxy": "OPENAI_PROXY",
    }
    assert model.lc_secrets == names
    assert ChatOpenAI(model="any", openai_proxy="http://c").lc_secrets == {"openai_api_key": "OPENAI_API_KEY"}


@pytest.mark.parametrize(
    "change",
    [
        {"temperature": 1.5},
        {"model_name": "other"},
        {"extra_body": {"ttl": 1}},
        {"model_kwargs": {"metadata": {"a": "b"}}},
        {"output_version": "v1"},
        {"max_tokens": 5},
        {"stop": ["END"]},
    ],
    ids=lambda change: next(iter(change)),
)
def test_the_cache_keeps_copies_apart(change: dict[str, Any]) -> None:
    """A copy that would ask for something else never gets the original's reply; an equal one does."""
    with OpenAIServer([Turn("one"), Turn("two")], rules=None) as server:
        model = model_of(server, temperature=0, cache=InMemoryCache())
        assert model.invoke("Hi").text == "one"
        assert model.model_copy().invoke("Hi").text == "one"
        assert model.model_copy(update=change).invoke("Hi").text == "two"
        assert model.invoke("Hi").text == "one"
        assert len(server.requests) == 2


def test_a_copy_of_another_name_has_that_models_profile() -> None:
    """A profile that was looked up is looked up again; one that was given stays."""
    model = ChatOpenAI(model="gpt-4", api_key="k")
    assert model.model_copy(update={"model_name": "gpt-5"}).profile == ChatOpenAI(model="gpt-5", api_key="k").profile != model.profile
    given = ChatOpenAI(model="gpt-4", api_key="k", profile={"max_input_tokens": 5})
    assert given.model_copy(update={"model_name": "gpt-5"}).profile == {"max_input_tokens": 5}


def test_the_cache_keeps_servers_apart() -> None:
    """The same model name at another address is another model."""
    with OpenAIServer([Turn("one")]) as first, OpenAIServer([Turn("two")]) as second:
        cache = InMemoryCache()
        assert model_of(first, cache=cache).invoke("Hi").content == "one"
        assert model_of(second, cache=cache).invoke("Hi").content == "two"


def test_many_threads_make_one_client() -> None:
    """Concurrent first requests of one model share what they need, and nobody gets another's reply."""

    def echo(exchange: Exchange) -> Turn:
        return Turn(exchange.json["messages"][0]["content"])

    with OpenAIServer(echo) as server, ThreadPoolExecutor(16) as pool:
        model = model_of(server)
        texts = [f"text {number}" for number in range(64)]
        assert [message.content for message in pool.map(model.invoke, texts)] == texts
        assert server.connections <= 16


async def test_many_tasks_share_one_model() -> None:
    """The same in tasks, streamed."""

    def echo(exchange: Exchange) -> Turn:
        return Turn(exchange.json["messages"][0]["content"])

    with OpenAIServer(echo) as server:
        model = model_of(server)

        async def ask(text: str) -> str:
            return "".join([str(chunk.content) async for chunk in model.astream(text)])

        texts = [f"text {number}" for number in range(64)]
        assert await asyncio.gather(*map(ask, texts)) == texts


def test_a_model_made_of_the_dump_of_another_runs_the_same_tools_by_the_same_rules() -> None:
    """In Python's mode the dump has the objects themselves, and lets them be left out; JSON and what traces serialize have none of them."""
    looked: list[str] = []

    @tool
    def look(city: str) -> str:
        """Look."""
        looked.append(city)
        return "21 °C"

    model = ChatOpenAI(model="any", api_key="key", tools=[look], requires_approval=["look"], max_retries=0)
    with OpenAIServer([Turn(calls=[Call("look", {"city": "Rome"})]), Turn("Done.")]) as server:
        copied = ChatOpenAI(**{**model.model_dump(exclude={"openai_api_base"}), "base_url": server.url})
        asked = copied.invoke("How warm is it?")
        assert looked == [] and copied.tools == [look]
        assert copied.resume([HumanMessage("How warm is it?"), asked], [one.approve() for one in pending_calls(asked)]).text == "Done."
    assert looked == ["Rome"]
    assert "tools" not in model.model_dump(exclude={"tools"}) and model.model_dump(include={"max_turns"}) == {"max_turns": 25}
    assert "tools" not in json.loads(model.model_dump_json())
    assert "tools" not in model.model_dump(mode="json") and "tools" not in ChatOpenAI(model="any", api_key="key").model_dump()
