"""Which clients ChatOpenAI makes and uses: keys from functions, proxies, the user's own HTTP clients, shared connections."""

import asyncio
import gc
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
from langchain_core.exceptions import ModelTimeoutError
from langchain_core.messages import AIMessageChunk, HumanMessage

from langchain_autotools import ChatOpenAI, ConfigurationError
from tests.support.http_server import Gate
from tests.support.openai_server import OpenAIServer
from tests.support.openai_wire import Asked, chunk_of, event
from tests.support.script import Raw, Turn

HELLO = event(chunk_of(Asked(0, "any", True, False), {"content": "Hello"}))


def model_of(server: OpenAIServer, **more: Any) -> ChatOpenAI:
    """A model that talks to the server and fails at once."""
    return ChatOpenAI(**{"model": "any", "base_url": server.url, "api_key": "key", "max_retries": 0, **more})


@pytest.mark.parametrize("way", ["sync", "async"])
async def test_a_function_may_give_the_key(way: str) -> None:
    """It is asked before each request, so that a key may change."""
    keys = iter(["first", "second", "third", "fourth"])

    def get() -> str:
        return next(keys)

    async def aget() -> str:
        return next(keys)

    with OpenAIServer([Turn("ok")] * 2) as server:
        model = model_of(server, api_key=get if way == "sync" else aget)
        if way == "sync":
            model.invoke("Hi")
        await model.ainvoke("Hi")
        if way == "async":
            await model.ainvoke("Hi")
        sent = [exchange.headers["authorization"] for exchange in server.exchanges]
    assert sent == ["Bearer first", "Bearer second"]


def test_an_asynchronous_key_needs_asynchronous_calls() -> None:
    """The error says what to do."""

    async def get() -> str:
        return "key"

    with pytest.raises(ValueError, match="ainvoke"):
        ChatOpenAI(model="any", api_key=get).invoke("Hi")


def test_a_key_may_come_after_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model without a key can be made; its first request takes the environment's, or says what is missing."""
    with OpenAIServer([Turn("Hi")]) as server:
        model = ChatOpenAI(model="any", base_url=server.url)
        with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
            model.invoke("Hi")
        monkeypatch.setenv("OPENAI_API_KEY", "late")
        model.invoke("Hi")
        assert server.exchanges[0].headers["authorization"] == "Bearer late"


def test_a_proxy_is_used() -> None:
    """`openai_proxy` gets the request, addressed to the server."""
    with OpenAIServer(rules=None) as server:
        model = ChatOpenAI(model="any", base_url="http://nowhere.invalid/v1", api_key="key", max_retries=0, openai_proxy=server.address)
        with pytest.raises(Exception, match="Invalid URL"):
            model.invoke("Hi")
        assert server.exchanges[0].path == "http://nowhere.invalid/v1/chat/completions"


async def test_the_users_own_http_clients_are_used() -> None:
    """`http_client` serves synchronous requests, `http_async_client` the others."""
    import openai

    with OpenAIServer([Turn("one"), Turn("two")]) as server:
        with openai.DefaultHttpxClient(headers={"x-mine": "threads"}) as http:
            async with openai.DefaultAsyncHttpxClient(headers={"x-mine": "tasks"}) as ahttp:
                model = model_of(server, http_client=http, http_async_client=ahttp)
                model.invoke("Hi")
                await model.ainvoke("Hi")
        assert [exchange.headers["x-mine"] for exchange in server.exchanges] == ["threads", "tasks"]


async def test_older_http_clients_are_taken_too() -> None:
    """An `httpx` client works under an SDK that is built on `httpx2`; what it raises is translated."""
    httpx = pytest.importorskip("httpx")
    with OpenAIServer([Turn("one"), Raw([HELLO, Gate()])]) as server:
        with httpx.Client() as http:
            model = model_of(server, http_client=http)
            assert model.invoke("Hi").content == "one"
            with pytest.raises(ModelTimeoutError):
                list(model.stream("Hi", timeout=0.05))


def test_models_share_connections() -> None:
    """Models of other names and keys use the same pool: a new model does not cost a new connection."""
    with OpenAIServer([Turn("one"), Turn("two"), Turn("three")]) as server:
        first = model_of(server)
        first.invoke("Hi")
        model_of(server, model="other", api_key="other").invoke("Hi")
        first.model_copy(update={"temperature": 0.5}).invoke("Hi")
        assert server.connections == 1


def test_connections_of_a_loop_that_tracks_no_generators_end_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nest_asyncio runs the loop nobody closes generators at its end: nothing is printed when they go."""
    printed: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", printed.append)

    async def ask(server: OpenAIServer) -> None:
        await model_of(server).ainvoke("Hi")

    async def ask_untracked(server: OpenAIServer) -> None:
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(None, None)
        try:
            await ask(server)
        finally:
            sys.set_asyncgen_hooks(*hooks)

    with OpenAIServer([Turn("ok")] * 2) as server:
        asyncio.run(ask_untracked(server))
        asyncio.run(ask(server))  # a new loop forgets the connections of the one before
    gc.collect()
    # Python shows a ResourceWarning to nobody who has not asked for it
    assert [problem for problem in printed if problem.exc_type is not ResourceWarning] == []


async def test_the_async_iterator_is_a_generator() -> None:
    """`araw_stream` can be closed, which is what ends its connection."""
    with OpenAIServer([Turn("one")]) as server:
        stream: AsyncIterator[AIMessageChunk] = model_of(server).araw_stream([HumanMessage("Hi")])
        assert hasattr(stream, "aclose")
        async with aclosing(stream) as chunks:  # type: ignore[type-var]
            assert "".join([str(chunk.content) async for chunk in chunks]) == "one"
