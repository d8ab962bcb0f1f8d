"""ChatGoogleGenerativeAI over HTTP: replies that send a request elsewhere."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.exceptions import ModelError

from langchain_autotools import ChatGoogleGenerativeAI
from langchain_autotools.errors import StreamError
from tests.support.google_server import GoogleServer
from tests.support.http_server import Exchange, HttpReply, LoopbackServer
from tests.support.script import Raw, Turn


def ask(url: str, way: str) -> Any:
    """The answer to a question."""
    model = ChatGoogleGenerativeAI(model="any", base_url=url, api_key="the-secret", max_retries=0)
    return asyncio.run(model.ainvoke("Where?")) if way == "ainvoke" else model.invoke("Where?")


def elsewhere(place: str) -> HttpReply:
    """A redirect that keeps the method and the body."""
    return HttpReply(status=307, headers={"location": place}, framing="length")


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_redirect_within_a_server_keeps_the_key(way: str) -> None:
    """The request goes on whole."""
    with GoogleServer([Raw((), status=307, headers={"location": "?again=1"}), Turn("Here.")]) as server:
        assert ask(server.url, way).text == "Here."
        assert [exchange.headers["x-goog-api-key"] for exchange in server.exchanges] == ["the-secret"] * 2
        assert server.exchanges[1].body == server.exchanges[0].body


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_redirect_to_another_server_takes_no_key_along(way: str) -> None:
    """What answers there need not be what the key was made for."""
    with LoopbackServer(lambda _: HttpReply([b"{}"], status=403)) as other:
        with LoopbackServer(lambda _: elsewhere(f"{other.address}/x")) as server, pytest.raises(ModelError):
            ask(server.address, way)
        (exchange,) = other.exchanges
        assert exchange.json["contents"]
        assert "the-secret" not in str(exchange.headers)


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_redirect_without_end_is_an_error_of_ours(way: str) -> None:
    """It is followed so often and no further."""

    def again(exchange: Exchange) -> HttpReply:
        return elsewhere(exchange.path)

    with LoopbackServer(again) as server:
        with pytest.raises(StreamError):
            ask(server.address, way)
        assert len(server.exchanges) == 21
