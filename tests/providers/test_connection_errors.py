"""What goes wrong between a model and its server is said in words, and what servers add to a reply is no fault of it."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from typing import Any

import pytest
from langchain_core.exceptions import ModelConnectionError, ModelError

from langchain_autotools import AzureChatOpenAI, ChatGoogleGenerativeAI, ChatOllama, ChatOpenAI, ConfigurationError, ProviderError
from tests.contract.wires import PRESETS, WIRES, Wire
from tests.support.http_server import Drop, Exchange, HttpReply, LoopbackServer
from tests.support.openai_server import OpenAIServer
from tests.support.script import Failure, Raw, Turn

ROWS = [*WIRES, PRESETS[0]]
MAKES = [row for row in WIRES if row.name in ("openai-chat", "anthropic", "google", "ollama")]


class Everywhere(LoopbackServer):
    """A server with one answer to everything."""

    def __init__(self, reply: HttpReply) -> None:
        super().__init__(lambda _: reply)

    @property
    def url(self) -> str:
        """What a client takes as its base URL."""
        return self.address


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_byte_order_mark_is_no_fault(row: Wire) -> None:
    """Before a whole reply and before a stream."""

    def marked(exchange: Exchange) -> HttpReply:
        reply = plain(exchange)
        return HttpReply([b"\xef\xbb\xbf", *reply.parts], reply.status, reply.headers, reply.framing)

    with row.serve([Turn("Hi.")] * 2) as server:
        plain, server._answer = server._answer, marked
        model = row.model(server)
        assert model.invoke("Hi").text == "Hi."
        assert "".join(chunk.text for chunk in model.stream("Hi")) == "Hi."


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_half_a_reply_is_told_from_none(row: Wire) -> None:
    """An error does not say that there was no reply where one had begun."""
    for way in (lambda model: model.invoke("Hi"), lambda model: asyncio.run(model.ainvoke("Hi"))):
        with row.serve([Raw([b'{"id": "x', Drop()], "application/json")]) as server:
            with pytest.raises(ModelConnectionError, match=f"The reply from {server.address} broke off"):
                way(row.model(server))
    with pytest.raises(ModelConnectionError, match=f"No reply from {server.address}"):
        row.model(server).invoke("Hi")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_page_that_is_not_there_is_no_missing_model(row: Wire) -> None:
    """The error names the address that was asked, whatever a web framework says; a missing model is told without."""
    for body in (b"404 page not found", b'{"detail": "Not Found"}', b'{"error": {"code": 404, "message": "File Not Found"}}'):
        if body.startswith(b"{") and row.name in ("google", "ollama"):
            continue
        with Everywhere(HttpReply([body], 404)) as server, pytest.raises(ModelError, match="there is nothing at http") as caught:
            row.model(server).invoke("Hi")
        assert "see base_url" in str(caught.value)
    with row.serve([Failure(404, "The model 'any' does not exist")]) as server, pytest.raises(ModelError) as caught:
        row.model(server).invoke("Hi")
    assert "there is nothing" not in str(caught.value)


def test_an_address_without_its_version_is_hinted_at() -> None:
    """Of servers such as vLLM and llama.cpp; ChatOllama's with one names what was asked."""
    with Everywhere(HttpReply([b'{"detail": "Not Found"}'], 404)) as server:
        with pytest.raises(ModelError, match="/chat/completions: see base_url, which may lack a /v1"):
            ChatOpenAI(model="any", base_url=server.address, api_key="key").invoke("Hi")
    with Everywhere(HttpReply([b"404 page not found"], 404)) as server, pytest.raises(ModelError, match="/v1/api/chat: see base_url"):
        ChatOllama(model="any", base_url=f"{server.address}/v1").invoke("Hi")


CANNOT_WORK = [
    ("SSL_CERT_FILE", "/nowhere/ca.pem", "certificates cannot be read .* see SSL_CERT_FILE"),
    ("ALL_PROXY", "socks4://127.0.0.1:9", "see ALL_PROXY"),
    *([] if find_spec("socksio") else [("ALL_PROXY", "socks5://127.0.0.1:9", "lacks a package for the proxy that ALL_PROXY")]),
]


@pytest.mark.parametrize("row", MAKES, ids=lambda row: row.name)
def test_an_environment_that_cannot_work_is_said_in_words(row: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the name of the variable, on both ways."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "")
    for name, value, match in CANNOT_WORK:
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            for ask in (lambda model: model.invoke("Hi"), lambda model: asyncio.run(model.ainvoke("Hi"))):
                with row.serve([]) as server, pytest.raises(ConfigurationError, match=match):
                    ask(row.model(server))


@pytest.mark.parametrize("row", MAKES, ids=lambda row: row.name)
def test_proxies_may_be_set_after_the_first_request(row: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """Models that are made then use them; the others keep what they have."""
    with row.serve([Turn("Hi.")] * 3) as server, LoopbackServer(lambda _: HttpReply([b"{}"], 418)) as proxy:
        first = row.model(server)
        first.invoke("Hi")
        monkeypatch.setenv("HTTP_PROXY", proxy.address)
        monkeypatch.setenv("NO_PROXY", "")
        monkeypatch.setenv("no_proxy", "")
        with pytest.raises(ModelError, match="418"):
            row.model(server).invoke("Hi")
        with pytest.raises(ModelError, match="418"):
            asyncio.run(row.model(server).ainvoke("Hi"))
        first.invoke("Hi")
        assert [len(proxy.exchanges), len(server.exchanges)] == [2, 2]


def test_names_that_stand_in_an_address_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A version from the environment with the line end of its file, a deployment, a project."""
    monkeypatch.setenv("OPENAI_API_VERSION", "2025-01-01\n")
    place: dict[str, Any] = {"azure_endpoint": "http://127.0.0.1:1", "azure_deployment": "mine", "api_key": "key"}
    with pytest.raises(ConfigurationError, match="from the environment holds white space"):
        AzureChatOpenAI(**place)
    with pytest.raises(ConfigurationError, match="azure_deployment holds white space"):
        AzureChatOpenAI(**{**place, "azure_deployment": "mine "}, api_version="1")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p\n")
    with pytest.raises(ConfigurationError, match="project from the environment"):
        ChatGoogleGenerativeAI(model="any", vertexai=True)


def test_two_waits_of_a_server_and_a_proxy_are_one() -> None:
    """The longer counts; what is no wait counts for nothing."""
    waits = ["0, 0.01", "0.01, Wed, 21 Oct 2015 07:28:00 GMT", "soon, 0.01"]
    with OpenAIServer([Failure(429, headers={"retry-after": twice}) for twice in waits]) as server:
        model = ChatOpenAI(model="any", base_url=server.url, api_key="key", max_retries=0)
        for _ in waits:
            with pytest.raises(ProviderError) as caught:
                model.invoke("Hi")
            assert caught.value.retry_after == 0.01
