"""What Google answers instead of a reply, as typed errors; and the HTTP clients that requests are made with."""

from __future__ import annotations

import asyncio
import gc
import warnings
from typing import Any

import pytest
from google.genai import errors as sdk_errors
from langchain_core.exceptions import (
    ContextOverflowError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelError,
    ModelInvalidRequestError,
    ModelNotFoundError,
    ModelPermissionDeniedError,
    ModelRateLimitError,
    ModelTimeoutError,
)

from langchain_autotools import ChatGoogleGenerativeAI, RetryPolicy
from langchain_autotools.providers._transport.exchange import library
from tests.contract.talk import WAYS, run_in
from tests.support.google_server import GoogleServer
from tests.support.http_server import Gate
from tests.support.script import Call, Failure, Raw, Turn
from tests.support.weather import get_temperature

KEY = "AIza-secret-1234"


def model(server: GoogleServer, **more: Any) -> ChatGoogleGenerativeAI:
    """A model that asks the server."""
    return ChatGoogleGenerativeAI(**{"model": "gemini-test", "base_url": server.url, "api_key": KEY, "max_retries": 0, **more})


ERRORS = [
    (400, "Bad.", ModelInvalidRequestError, False),
    (400, "The input token count (9) exceeds the maximum number of tokens allowed (8).", ContextOverflowError, False),
    (401, "Who?", ModelAuthenticationError, False),
    (403, "No.", ModelPermissionDeniedError, False),
    (404, "Where?", ModelNotFoundError, False),
    (408, "Late.", ModelTimeoutError, True),
    (409, "Twice.", ModelAPIError, True),
    (418, "Tea.", ModelError, False),
    (429, "Slow.", ModelRateLimitError, True),
    (500, "Oops.", ModelAPIError, True),
    (503, "Busy.", ModelAPIError, True),
    (504, "Slow.", ModelTimeoutError, True),
]


@pytest.mark.parametrize(("status", "text", "kind", "again"), ERRORS)
async def test_errors_are_both_vendors(status: int, text: str, kind: type[ModelError], again: bool) -> None:
    """Every status is the SDK's error and LangChain's, says whether to try again, and holds no key."""
    for way in WAYS:
        with GoogleServer([Failure(status, f"{text} ({KEY})")]) as server:
            with pytest.raises(kind) as raised:
                await run_in(way, model(server), "x")
        error: Any = raised.value
        assert isinstance(error, sdk_errors.ServerError if status >= 500 else sdk_errors.APIError)
        assert (error.code, error.is_retryable) == (status, again)
        assert text in str(error) and KEY not in f"{error!r} {error.details} {error.message}"


async def test_a_key_in_a_streamed_error_is_hidden() -> None:
    """An error inside a reply is held to the same: no key in it."""
    said = b'data: {"error": {"code": 403, "message": "Key %s may not."}}\n\n' % KEY.encode()
    for way in ("stream", "astream"):
        with GoogleServer([Raw([said])]) as server, pytest.raises(ModelPermissionDeniedError, match=r"Key \*\*\* may not") as raised:
            await run_in(way, model(server), "x")
        assert KEY not in repr(vars(raised.value))


def test_a_refused_key_is_an_authentication_error() -> None:
    """The vendor says 400 for a wrong key, and in the details what it means."""
    body = b'{"error": {"code": 400, "message": "API key not valid.", "details": [{"reason": "API_KEY_INVALID"}]}}'
    with GoogleServer([Raw([body], "application/json", 400)]) as server, pytest.raises(ModelAuthenticationError, match="not valid"):
        model(server).invoke("x")


@pytest.mark.parametrize(
    "body", [b"<html>Bad gateway</html>", b"", b"[]", b'"no"', b'{"error": "plain"}', b'[{"error": {"message": "listed"}}]']
)
def test_errors_in_any_shape(body: bytes) -> None:
    """What a gateway answers instead of JSON is told as it is."""
    with GoogleServer([Raw([body], "text/html", 502)]) as server, pytest.raises(ModelAPIError) as raised:
        model(server).invoke("x")
    words = {b"<html>Bad gateway</html>": "Bad gateway", b'{"error": "plain"}': "plain", b'[{"error": {"message": "listed"}}]': "listed"}
    assert words.get(body, "502") in str(raised.value)


async def test_a_failed_request_is_made_again() -> None:
    """Failures that pass are tried again before anything was heard; the last error is raised."""
    policy = RetryPolicy(attempts=3, wait_scale=0)
    for way in WAYS:
        with GoogleServer([Failure(503), Failure(429), Turn("Fine."), Failure(500), Failure(500), Failure(500), Failure(400)]) as server:
            asked = model(server, max_retries=None, retry=policy)
            assert (await run_in(way, asked, "x")).message.text == "Fine."
            with pytest.raises(ModelAPIError):
                await run_in(way, asked, "x")
            with pytest.raises(ModelInvalidRequestError):
                await run_in(way, asked, "x")
            assert len(server.exchanges) == 7


async def test_no_server() -> None:
    """A server that is not there is a connection error that names the place."""
    with GoogleServer([]) as server:
        address = server.url
    for way in WAYS:
        with pytest.raises(ModelConnectionError, match="127.0.0.1"):
            await run_in(way, ChatGoogleGenerativeAI(model="m", api_key="k", base_url=address, max_retries=0), "x")


# ---------------------------------------------------------------------------------------------- clients


async def test_clients_of_ones_own_and_their_arguments() -> None:
    """The user's clients make the requests; arguments reach the clients that are made here."""
    heard: list[str] = []

    def note(request: Any) -> None:
        heard.append(request.headers["user-agent"])

    async def anote(request: Any) -> None:
        note(request)

    http = library()
    with GoogleServer([Turn("a"), Turn("b"), Turn("c"), Turn("d")]) as server:
        with http.Client(headers={"user-agent": "mine"}, event_hooks={"request": [note]}) as client:
            model(server, http_client=client).invoke("x")
        async with http.AsyncClient(headers={"user-agent": "mine"}, event_hooks={"request": [anote]}) as aclient:
            await model(server, http_async_client=aclient).ainvoke("x")
        arguments = {"headers": {"user-agent": "ours"}}
        model(server, client_args=arguments).invoke("x")
        await model(server, client_args=arguments, additional_headers={"x-title": "t"}).ainvoke("x")
    assert heard == ["mine", "mine"]
    assert [exchange.headers["user-agent"] for exchange in server.exchanges] == ["mine", "mine", "ours", "ours"]
    assert server.exchanges[3].headers["x-title"] == "t"


@pytest.mark.parametrize("way", ["ainvoke", "invoke"])
async def test_a_model_that_is_gone_has_closed_its_own_connections(way: str) -> None:
    """Clients with arguments of their own go with their model; what the garbage collector finds of it holds no open socket."""
    with GoogleServer([Turn("a")]) as server:
        asked = model(server, client_args={"headers": {"user-agent": "ours"}})
        asked.metadata = {"itself": [asked]}  # so that only the garbage collector finds it
        await run_in(way, asked, "x")
        assert server.open_connections == 1
        del asked
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            while server.open_connections:
                gc.collect()
                await asyncio.sleep(0.001)
    assert [str(warning.message) for warning in told if warning.category is ResourceWarning] == []


def test_connections_are_kept() -> None:
    """The turns of a run, and runs of other models, share a connection."""
    with GoogleServer([Turn(calls=[Call("get_temperature", {"city": "Paris"})]), Turn("a"), Turn("b")]) as server:
        list(model(server, tools=[get_temperature]).stream("x"))
        model(server, temperature=1).invoke("x")
        assert server.connections == 1


@pytest.mark.parametrize("limit", [{"timeout": 0.05}, {"timeout": (5, 0.05)}, {"stream_chunk_timeout": 0.05}])
async def test_a_server_that_is_silent(limit: dict[str, Any]) -> None:
    """A server that says nothing for longer than allowed is a timeout; where only streams are limited, of streams."""
    for way in WAYS if "timeout" in limit else ("stream", "astream"):
        with GoogleServer([Turn("Never.", holds={0: Gate()})]) as server, pytest.raises(ModelTimeoutError):
            await run_in(way, model(server, **limit), "x")


@pytest.mark.parametrize("name", ["httpx", "httpx2"])
async def test_clients_of_either_library(name: str) -> None:
    """A client of one's own may be of either HTTP library; its errors are typed too."""
    http = pytest.importorskip(name)
    with http.Client() as client:
        async with http.AsyncClient() as aclient:
            clients = {"http_client": client, "http_async_client": aclient}
            with GoogleServer([Turn("Hi.")] * 4) as server:
                for way in WAYS:
                    assert (await run_in(way, model(server, **clients), "x")).message.text == "Hi."
            for way in WAYS:
                with pytest.raises(ModelConnectionError, match="127.0.0.1"):
                    await run_in(way, model(server, **clients), "x")
