"""`ChatOllama` over real HTTP: typed errors, retries, timeouts, connections, secrets, histories of others."""

from __future__ import annotations

import asyncio
import pickle
import socket
from collections.abc import AsyncIterator
from typing import Any

import httpx
import ollama
import pytest
from langchain_core.exceptions import (
    ContextOverflowError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelError,
    ModelInvalidRequestError,
    ModelNotFoundError,
    ModelRateLimitError,
    ModelTimeoutError,
)
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_autotools import ChatOllama, RetryPolicy
from langchain_autotools.providers.ollama.error_types import OllamaStatusError
from tests.support.http_server import Gate
from tests.support.ollama_server import OllamaServer
from tests.support.script import Failure, Raw, Turn
from tests.support.weather import get_temperature

SECRET = "very-secret-value"


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


STATUSES = [
    (400, "m does not support tools", ModelInvalidRequestError),
    (400, "the input length exceeds the context length", ContextOverflowError),
    (401, "unauthorized", ModelAuthenticationError),
    (404, "model 'm' not found", ModelNotFoundError),
    (429, "too many requests", ModelRateLimitError),
    (500, "llama runner process has terminated", ModelAPIError),
    (503, "server busy, please try again", ModelAPIError),
    (408, "request timed out", OllamaStatusError),
    (409, "the model is being deleted", OllamaStatusError),
    (418, "I am a teapot", ModelError),
]


@pytest.mark.parametrize(("status", "message", "kind"), STATUSES, ids=[str(number) for number in range(len(STATUSES))])
async def test_statuses_are_typed(status: int, message: str, kind: type[Exception]) -> None:
    """Each status is the SDK's error and LangChain's, in the server's words, in every way to ask."""
    with OllamaServer(lambda _: Failure(status, message, headers={"retry-after": "2"})) as server:
        model = ChatOllama(model="m", base_url=server.url, max_retries=0)
        for ask in (model.ainvoke("x"), anext(model.astream("x"))):
            with pytest.raises(kind) as raised:
                await ask
            error: Any = raised.value
            assert isinstance(error, ollama.ResponseError)
            assert (error.status_code, error.error, error.retry_after) == (status, message, 2.0)
            assert error.is_retryable == (status in (408, 409, 429, 500, 503))
        with pytest.raises(kind):
            await asyncio.to_thread(model.invoke, "x")
        assert type(pickle.loads(pickle.dumps(error))) is type(error)


def test_an_error_page_is_told() -> None:
    """An error that is no JSON is told in its words; a text that happens to be JSON survives."""
    for page, said in ((b"<h1>Bad gateway</h1>", "Bad gateway"), (b"123", "123"), (b"", "without a word")):
        with OllamaServer([Raw([page], "text/html", 502)]) as server:
            with pytest.raises(ModelAPIError, match=said):
                ChatOllama(model="m", base_url=server.url, max_retries=0).invoke("x")


def test_failures_that_pass_are_retried() -> None:
    """A busy server is asked again; a missing model is not."""
    with OllamaServer([Failure(503, "server busy"), Turn("Hi"), Failure(404, "model 'm' not found"), Turn("never")]) as server:
        model = ChatOllama(model="m", base_url=server.url, retry=RetryPolicy(wait_scale=0))
        assert model.invoke("x").text == "Hi"
        with pytest.raises(ModelNotFoundError):
            model.invoke("x")
        assert server.left == 1


def test_nobody_there() -> None:
    """A server that cannot be reached is Python's, the SDK's and LangChain's connection error, and says where it was looked for."""
    port = free_port()
    with pytest.raises(ModelConnectionError, match=rf"http://127.0.0.1:{port} .*Is Ollama running there") as raised:
        ChatOllama(model="m", base_url=f"http://u:{SECRET}@127.0.0.1:{port}", max_retries=0).invoke("x")
    assert isinstance(raised.value, ConnectionError) and SECRET not in str(raised.value)


@pytest.mark.parametrize(
    "arguments", [{"timeout": 0.1}, {"timeout": (5, 0.1)}, {"client_kwargs": {"timeout": 0.1}}, {"timeout": httpx.Timeout(0.1)}]
)
def test_a_server_that_does_not_answer_in_time(arguments: dict[str, Any]) -> None:
    """Each way to say a timeout works; without one there is no limit but the connection's."""
    with OllamaServer([Turn("Hi", holds={0: Gate()})] * 2) as server:
        model = ChatOllama(model="m", base_url=server.url, max_retries=0, **arguments)
        for ask in (lambda: model.invoke("x"), lambda: list(model.stream("x"))):
            with pytest.raises(ModelTimeoutError) as raised:
                ask()
            assert isinstance(raised.value, TimeoutError)


def test_a_stream_that_falls_silent() -> None:
    """`stream_chunk_timeout` is the longest silence between two events."""
    with OllamaServer([Turn("Hello there", holds={2: Gate()})]) as server:
        with pytest.raises(ModelTimeoutError):
            list(ChatOllama(model="m", base_url=server.url, max_retries=0, stream_chunk_timeout=0.1).stream("x"))


# ---------------------------------------------------------------------------------------------- connections and secrets


def test_one_connection_serves_many_requests() -> None:
    """Requests of several models follow one another on one connection, streams included."""
    with OllamaServer([Turn("Hi")] * 4) as server:
        for _ in range(2):
            model = ChatOllama(model="m", base_url=server.url)
            model.invoke("x")
            list(model.stream("x"))
        assert server.connections == 1


async def test_clients_with_arguments_of_their_own() -> None:
    """`client_kwargs` reach both clients, the other two one each; a model with its own client closes it."""
    seen: list[str] = []
    with OllamaServer([Turn("Hi")] * 2) as server:
        hooks = {"event_hooks": {"request": [lambda request: seen.append(request.headers["x-way"])]}}
        model = ChatOllama(
            model="m",
            base_url=server.url,
            sync_client_kwargs={**hooks, "headers": {"x-way": "sync"}},
            async_client_kwargs={"headers": {"x-way": "async"}},
        )
        await asyncio.to_thread(model.invoke, "x")
        await model.ainvoke("x")
        assert [exchange.headers["x-way"] for exchange in server.exchanges] == ["sync", "async"]
    assert seen == ["sync"]


async def test_arguments_of_both_clients_reach_both() -> None:
    """What is no header and no timeout is the client's: here its cookies."""
    with OllamaServer([Turn("Hi")] * 2) as server:
        model = ChatOllama(model="m", base_url=server.url, client_kwargs={"cookies": {"team": "a"}})
        await asyncio.to_thread(model.invoke, "x")
        await model.ainvoke("x")
        assert [exchange.headers["cookie"] for exchange in server.exchanges] == ["team=a"] * 2


def test_secrets_stay_secret() -> None:
    """Neither repr, nor dumps, nor errors hold the key, the password or a secret header; no pickle leaves one out in silence."""
    arguments: dict[str, Any] = {
        "api_key": SECRET,
        "client_kwargs": {"headers": {"x-api-key": f"{SECRET}-2", "x-plain": f"{SECRET}-3", "x-title": "seen"}, "verify": False},
    }
    with OllamaServer([Failure(401, f"bad key {SECRET}")]) as server:
        model = ChatOllama(model="m", base_url=server.url.replace("//", f"//me:{SECRET}@"), **arguments)
        with pytest.raises(ModelAuthenticationError) as raised:
            model.invoke("x")
    assert SECRET not in str(raised.value) and SECRET not in raised.value.error  # type: ignore[attr-defined]
    assert SECRET not in f"{model!r} {model._identifying_params} {model.asdict()}"
    named = r"ChatOllama: base_url, client_kwargs\['headers'\]\['x-api-key'\], client_kwargs\['headers'\]\['x-plain'\] cannot"
    with pytest.raises(pickle.PicklingError, match=named) as refused:
        pickle.dumps(model)
    assert SECRET not in str(refused.value)


def test_pickles_take_their_key_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is unpickled works with the key that is there."""
    pickled = pickle.dumps(ChatOllama(model="m", api_key=SECRET))
    monkeypatch.setenv("OLLAMA_API_KEY", "there")
    key = pickle.loads(pickled).api_key
    assert key is not None and key.get_secret_value() == "there"


def test_a_history_of_the_partner_package_goes_on() -> None:
    """What langchain-ollama stored (ids of its own, reasoning, no record of ours) is sent with its thinking and its pairing."""
    metadata = {"model": "m", "model_name": "m", "model_provider": "ollama", "done": True, "done_reason": "stop"}
    asked = AIMessage(
        "",
        additional_kwargs={"reasoning_content": "Hm."},
        response_metadata=metadata,
        tool_calls=[{"id": "uuid", "name": "get_temperature", "args": {"city": "Paris"}, "type": "tool_call"}],
    )
    with OllamaServer([Turn("21 °C.")]) as server:
        model = ChatOllama(model="m", base_url=server.url, tools=[get_temperature])
        assert model.invoke([HumanMessage("x"), asked, ToolMessage("21", tool_call_id="uuid")]).text == "21 °C."
        assert server.rejections == []
        assert server.messages[0][1]["thinking"] == "Hm."
        assert server.messages[0][2] == {"role": "tool", "content": "21", "tool_name": "get_temperature", "tool_call_id": "uuid"}


class _SlowToClose(httpx.AsyncBaseTransport, httpx.AsyncByteStream):
    """Gives a reply whose connection takes longer to come free than the rest of a reply is waited for."""

    def __init__(self) -> None:
        self.is_free = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, stream=self)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b'{"model":"m","message":{"role":"assistant","content":"Hi"},"done":true,"done_reason":"stop"}\n'

    async def aclose(self) -> None:
        await asyncio.sleep(0.4)
        self.is_free = True


@pytest.mark.parametrize("deadline", [None, 0.2])
async def test_a_connection_comes_free_however_long_that_takes(deadline: float | None) -> None:
    """What cuts that short, a deadline too, would leave it in its pool for ever, taken by a reply that nobody has."""
    for way in ("astream", "ainvoke"):
        transport = _SlowToClose()
        model = ChatOllama(model="m", async_client_kwargs={"transport": transport}, tools=[get_temperature], deadline=deadline)
        if way == "astream":
            assert [chunk.text async for chunk in model.astream("Hi") if chunk.text] == ["Hi"]
        else:
            await model.ainvoke("Hi")
        async with asyncio.timeout(20):
            while not transport.is_free:
                await asyncio.sleep(0.01)
