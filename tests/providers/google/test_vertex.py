"""Vertex AI over real HTTP: which key, project and location win, addresses, access tokens."""

from __future__ import annotations

from typing import Any

import google.auth
import pytest
from google.auth.credentials import AnonymousCredentials, Credentials
from google.auth.exceptions import DefaultCredentialsError

from langchain_autotools import ChatGoogleGenerativeAI, ConfigurationError
from langchain_autotools.providers._transport.exchange import library
from langchain_autotools.providers.google.client import Endpoint
from tests.contract.talk import WAYS, run_in
from tests.support.google_server import GoogleServer
from tests.support.script import Call, Turn
from tests.support.weather import get_temperature

VERTEX = [
    ({"project": "p"}, {}, ("p", None, None)),
    ({"vertexai": True, "project": "p", "location": "l"}, {"GOOGLE_API_KEY": "k"}, ("p", "l", None)),
    ({"vertexai": True}, {"GOOGLE_API_KEY": "k"}, (None, None, "k")),
    ({"vertexai": True, "api_key": "own"}, {"GOOGLE_CLOUD_PROJECT": "e", "GOOGLE_CLOUD_LOCATION": "l"}, (None, None, "own")),
    ({"vertexai": True, "api_key": "own", "project": "p"}, {"GOOGLE_CLOUD_LOCATION": "l"}, ("p", "l", "own")),
    ({}, {"GOOGLE_GENAI_USE_VERTEXAI": "true", "GOOGLE_CLOUD_PROJECT": "e", "GOOGLE_API_KEY": "k"}, ("e", None, None)),
    ({"credentials": AnonymousCredentials()}, {"GOOGLE_CLOUD_PROJECT": "e", "GOOGLE_API_KEY": "k"}, ("e", None, None)),
]


@pytest.mark.parametrize(("arguments", "environment", "expected"), VERTEX)
def test_which_key_project_and_location_win(
    monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], environment: dict[str, str], expected: Any
) -> None:
    """Arguments go before the environment, and a project of the environment before its key, as in the SDK."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    asked = ChatGoogleGenerativeAI(model="m", **arguments)
    assert asked.vertexai is True
    key = asked.google_api_key.get_secret_value() if asked.google_api_key else None
    assert (asked.project, asked.location, key) == expected


@pytest.mark.parametrize(
    ("endpoint", "name", "url"),
    [
        (Endpoint(), "g", "https://generativelanguage.googleapis.com/v1beta/models/g"),
        (Endpoint(), "tunedModels/t", "https://generativelanguage.googleapis.com/v1beta/tunedModels/t"),
        (Endpoint(base_url="http://h/v1/"), "models/g", "http://h/v1/models/g"),
        (
            Endpoint(True, project="p"),
            "g",
            "https://aiplatform.googleapis.com/v1beta1/projects/p/locations/global/publishers/google/models/g",
        ),
        (
            Endpoint(True, project="p", location="europe-west4"),
            "models/g",
            "https://europe-west4-aiplatform.googleapis.com/v1beta1/projects/p/locations/europe-west4/publishers/google/models/g",
        ),
        (Endpoint(True, location="eu"), "meta/llama", "https://aiplatform.eu.rep.googleapis.com/v1beta1/publishers/meta/models/llama"),
        (Endpoint(True, api_version="v1"), "g", "https://aiplatform.googleapis.com/v1/publishers/google/models/g"),
        (
            Endpoint(True, project="p"),
            "projects/q/locations/l/endpoints/1",
            "https://aiplatform.googleapis.com/v1beta1/projects/q/locations/l/endpoints/1",
        ),
    ],
)
def test_addresses(endpoint: Endpoint, name: str, url: str) -> None:
    """Addresses and resources are those of the SDK."""
    assert endpoint.url(f"{name}:generateContent") == f"{url}:generateContent"


class Tokens(Credentials):
    """Credentials that count how often they were refreshed."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.refreshed = 0

    def refresh(self, request: Any) -> None:
        """Make a token."""
        self.refreshed += 1
        self.token = f"token-{self.refreshed}"


@pytest.mark.parametrize("way", WAYS)
async def test_vertex_ai_asks_with_tokens(way: str) -> None:
    """Requests to Vertex AI carry the credentials' token, fetched once, and ids of calls are kept out of them."""
    script = [Turn(calls=[Call("get_temperature", {"city": "Paris"}), Call("get_temperature", {"city": "Rome"})]), Turn("Warm.")]
    with GoogleServer(script, vertex=True) as server:
        tokens = Tokens()
        asked = ChatGoogleGenerativeAI(
            model="gemini-test", credentials=tokens, project="p", location="l", base_url=server.url, tools=[get_temperature]
        )
        assert (await run_in(way, asked, "How warm?")).message.text == "Warm."
        assert server.rejections == []
    assert {exchange.headers["authorization"] for exchange in server.exchanges} == {"Bearer token-1"}
    assert all("/projects/p/locations/l/publishers/google/models/gemini-test:" in exchange.path for exchange in server.exchanges)
    assert all("x-goog-api-key" not in exchange.headers for exchange in server.exchanges)
    assert tokens.refreshed == 1


@pytest.mark.parametrize("way", WAYS)
async def test_vertex_ai_finds_the_machines_credentials(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """Without credentials those of the machine are taken; where there are none, the error says what to give."""
    monkeypatch.setattr(google.auth, "default", lambda **_: (Tokens(), "machine"))
    with GoogleServer([Turn("Hi.")], vertex=True) as server:
        clients = {"http_client": rerouted(server, asynchronous=False), "http_async_client": rerouted(server, asynchronous=True)}
        asked = ChatGoogleGenerativeAI(model="gemini-test", vertexai=True, **clients)
        assert (await run_in(way, asked, "Hi")).message.text == "Hi."
        assert "/projects/machine/locations/global/" in server.exchanges[0].path
        clients["http_client"].close()
        await clients["http_async_client"].aclose()

    def nothing(**_: Any) -> Any:
        raise DefaultCredentialsError("File gone.json was not found.")  # type: ignore[no-untyped-call]

    monkeypatch.setattr(google.auth, "default", nothing)
    with pytest.raises(ConfigurationError, match="no credentials for Vertex AI .File gone.json was not found"):
        await run_in(way, ChatGoogleGenerativeAI(model="gemini-test", vertexai=True), "Hi")


def rerouted(server: GoogleServer, *, asynchronous: bool) -> Any:
    """An HTTP client that sends every request to the server here, whatever its address."""

    def reroute(request: Any) -> None:
        request.url = library().URL(f"{server.url}{request.url.raw_path.decode()}")

    async def areroute(request: Any) -> None:
        reroute(request)

    if asynchronous:
        return library().AsyncClient(event_hooks={"request": [areroute]})
    return library().Client(event_hooks={"request": [reroute]})


def test_an_api_key_on_vertex_ai() -> None:
    """With a key alone, Vertex AI is asked without a project."""
    with GoogleServer([Turn("Hi.")], vertex=True) as server:
        asked = ChatGoogleGenerativeAI(model="gemini-test", api_key="secret", base_url=server.url, vertexai=True)
        assert asked.invoke("Hi").text == "Hi."
    assert server.exchanges[0].path == "/v1beta1/publishers/google/models/gemini-test:generateContent"
    assert server.exchanges[0].headers["x-goog-api-key"] == "secret"
