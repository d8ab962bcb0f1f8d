"""Keys and tokens that are fetched for a request: the request's timeout, retries and errors are theirs too."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from google.oauth2.credentials import Credentials
from langchain_core.exceptions import ModelAuthenticationError, ModelConnectionError, ModelTimeoutError

from langchain_autotools import AzureChatOpenAI, ChatDeepSeek, ChatGoogleGenerativeAI, ChatOpenAI, ConfigurationError, ProviderError
from tests.support.azure_server import VERSION, AzureServer
from tests.support.google_server import GoogleServer
from tests.support.http_server import Gate, HttpReply, LoopbackServer
from tests.support.openai_server import OpenAIServer
from tests.support.script import Turn
from tests.support.weather import get_temperature

WAYS: dict[str, Callable[..., Any]] = {
    "invoke": lambda model, **more: model.invoke("Hi", **more),
    "astream": lambda model, **more: asyncio.run(joined(model, **more)),
}


async def joined(model: Any, **more: Any) -> list[Any]:
    """The chunks of a stream."""
    return [chunk async for chunk in model.astream("Hi", **more)]


def vertex(tokens: LoopbackServer, server: GoogleServer | None, **more: Any) -> ChatGoogleGenerativeAI:
    """A model whose token a server gives."""
    credentials = Credentials(
        None, refresh_token="refresh-1234567890", token_uri=f"{tokens.address}/token", client_id="id", client_secret="secret-1234567890"
    )
    place = {"base_url": "http://127.0.0.1:1" if server is None else server.url, "project": "p", "location": "l"}
    return ChatGoogleGenerativeAI(**{"model": "gemini-test", "credentials": credentials, "max_retries": 0, **place, **more})


def given(token: str = "token") -> HttpReply:
    """A token."""
    return HttpReply([b'{"access_token": "%s", "expires_in": 3600, "token_type": "Bearer"}' % token.encode()])


@pytest.mark.parametrize("way", WAYS)
def test_a_silent_token_server_has_the_requests_timeout(way: str) -> None:
    """Of the model or the call; the error is the one of a request. A deadline ends the wait too."""
    gate = Gate()
    with LoopbackServer(lambda _: HttpReply([gate])) as tokens:
        for model, call in ((vertex(tokens, None, timeout=0.3), {}), (vertex(tokens, None), {"timeout": 0.3})):
            with pytest.raises(ModelTimeoutError, match="access token") as caught:
                WAYS[way](model, **call)
            assert isinstance(caught.value, ProviderError) and caught.value.is_retryable
        assert len(tokens.exchanges) == 2
        said = vertex(tokens, None, tools=[get_temperature], timeout=30, deadline=0.3).invoke("Hi").response_metadata["autotools"]
        assert said["stop_reason"] == "deadline"
        gate.open()


@pytest.mark.parametrize("way", WAYS)
def test_a_token_is_asked_for_again_as_a_request_is(way: str) -> None:
    """So often as `max_retries` says, and not once more; a refusal is not retried; a token that no header can hold is said to be one."""
    replies: Iterator[HttpReply] = iter([HttpReply([b"{}"], 503), given()])
    with LoopbackServer(lambda _: next(replies)) as tokens, GoogleServer([Turn("Hi.")], vertex=True) as server:
        WAYS[way](vertex(tokens, server, max_retries=1))
        assert [exchange.headers["authorization"] for exchange in server.exchanges] == ["Bearer token"]
    for reply, error, requests in (
        (HttpReply([b"{}"], 503), ProviderError, 2),
        (HttpReply([b'{"error": "invalid_grant"}'], 400), ModelAuthenticationError, 1),
        (given("token\\n"), ConfigurationError, 1),
    ):
        with LoopbackServer(lambda _, reply=reply: reply) as tokens, pytest.raises(error) as caught:
            WAYS[way](vertex(tokens, None, max_retries=1))
        assert len(tokens.exchanges) == requests and "1234567890" not in str(caught.value)
    tokens = LoopbackServer(lambda _: given())
    with tokens:
        pass
    with pytest.raises(ModelConnectionError, match="no access token for Vertex AI"):
        WAYS[way](vertex(tokens, None))


class Provider:
    """Gives a key: what its script says, an exception, a text or a wait."""

    def __init__(self, *script: Any) -> None:
        self.script, self.calls, self.stop = list(script), 0, threading.Event()

    def __call__(self) -> str:
        """The next of its script."""
        self.calls += 1
        said = self.script.pop(0)
        if isinstance(said, float):
            self.stop.wait(said)
        if isinstance(said, Exception):
            raise said
        return str(said)

    def asynchronous(self) -> Callable[[], Awaitable[str]]:
        """The same as an asynchronous function."""

        async def get() -> str:
            if isinstance(self.script[0], float):
                await asyncio.sleep(self.script[0])
            return self()

        return get


def model_of(kind: str, server: Any, provider: Provider, **more: Any) -> Any:
    """A model of a class with a function that gives its key."""
    if kind.startswith("azure"):
        asynchronous = {"azure_ad_async_token_provider": provider.asynchronous()}
        given: Any = asynchronous if kind == "azure-async" else {"azure_ad_token_provider": provider}
        place = {"azure_endpoint": server.address, "azure_deployment": "mine", "api_version": VERSION}
        return AzureChatOpenAI(**place, **given, **more)
    key: Any = provider.asynchronous() if kind.endswith("-async") else provider
    made: Any = ChatDeepSeek if kind == "deepseek" else ChatOpenAI
    return made(model="any", base_url=server.url, api_key=key, **more)


@pytest.mark.parametrize(
    ("kind", "way"), [("openai", "invoke"), ("openai-async", "astream"), ("deepseek", "astream"), ("azure", "invoke"), ("azure", "astream")]
)
def test_a_function_that_gives_a_key_is_part_of_the_request(kind: str, way: str) -> None:
    """Its time is bounded, its failures are retried and are our errors; one that is wrong is not called again."""
    with (AzureServer if kind.startswith("azure") else OpenAIServer)([Turn("Hi.")]) as server:
        server.check_place = lambda exchange: None  # type: ignore[method-assign, assignment] - any key
        slow = Provider(30.0)
        with pytest.raises(ModelTimeoutError, match="no key in time"):
            WAYS[way](model_of(kind, server, slow, max_retries=0), timeout=0.3)
        slow.stop.set()
        again = Provider(OSError("no route"), "key")
        WAYS[way](model_of(kind, server, again, max_retries=1))
        assert (again.calls, len(server.exchanges)) == (2, 1)
        for said, error, match in (
            (OSError("no route"), ModelConnectionError, "gave no key .OSError: no route"),
            (KeyError("k"), ModelConnectionError, "gave no key .KeyError"),
            ("key\n", ConfigurationError, "white space"),
            ("", ConfigurationError, "an empty text"),
        ):
            once = Provider(said, said)
            with pytest.raises(error, match=match):
                WAYS[way](model_of(kind, server, once, max_retries=0 if isinstance(said, OSError) else 1))
            assert once.calls == 1
        assert len(server.exchanges) == 1


def test_an_asynchronous_token_provider_is_bounded_too() -> None:
    """Azure's own argument for it."""
    with AzureServer([]) as server, pytest.raises(ModelTimeoutError, match="azure_ad_async_token_provider returned no key"):
        WAYS["astream"](model_of("azure-async", server, Provider(30.0), max_retries=0, timeout=0.3))
