"""Redirects: a request is repeated at another path of its server, and never sent to another server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from langchain_autotools import ProviderError
from tests.contract.wires import PRESETS, WIRES, Wire
from tests.support.http_server import Exchange, HttpReply, LoopbackServer
from tests.support.script import Raw, Turn

ROWS = [*WIRES, *PRESETS[:1], *(pytest.param(row, marks=pytest.mark.exhaustive) for row in PRESETS[1:])]
STATUSES = (301, 302, 307, 308)
SECRET = "gateway-key-1234567890"
WAYS: dict[str, Callable[[Any], Any]] = {
    "invoke": lambda model: model.invoke("Hi").text,
    "stream": lambda model: "".join(chunk.text for chunk in model.stream("Hi")),
    "ainvoke": lambda model: asyncio.run(model.ainvoke("Hi")).text,
    "astream": lambda model: asyncio.run(joined(model)),
}


async def joined(model: Any) -> str:
    """The text of a stream."""
    return "".join([chunk.text async for chunk in model.astream("Hi")])


def with_gateway_key(row: Wire) -> dict[str, Any]:
    """The arguments for a header with a gateway's key, and for retries."""
    fields, headers = row.chat_model.model_fields, {"Ocp-Apim-Subscription-Key": SECRET}
    name = next((name for name in ("default_headers", "additional_headers") if name in fields), None)
    return {"max_retries": 2, **({name: headers} if name else {"client_kwargs": {"headers": headers}})}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_no_request_follows_to_another_server(row: Wire) -> None:
    """Neither headers nor the conversation: the error names the target without its query, at once, whatever the status and the way."""
    with LoopbackServer(lambda _: HttpReply([b"{}"])) as other:
        location, statuses = f"{other.address}/elsewhere?key={SECRET}", iter((*STATUSES, 303))
        redirects = [Raw((b"",), status=status, headers={"location": location}) for status in statuses]
        with row.serve(redirects) as server:
            model = row.model(server, **with_gateway_key(row))
            for way in (*WAYS.values(), WAYS["invoke"]):
                with pytest.raises(ProviderError, match="redirects") as caught:
                    way(model)
                assert f"{other.address}/elsewhere" in str(caught.value) and SECRET not in str(caught.value)
                assert not caught.value.is_retryable
            assert len(server.exchanges) == 5
        assert other.exchanges == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_request_is_repeated_within_its_server(row: Wire) -> None:
    """As it was, with its body, headers and method, also after a status for which HTTP libraries would ask with GET."""
    redirects = [Raw((b"",), status=status, headers={"location": f"?again={status}"}) for status in STATUSES]
    script = [reply for redirect in redirects for reply in (redirect, Turn("Here."))]
    with row.serve(script) as server:
        model = row.model(server, **with_gateway_key(row))
        assert [way(model) for way in WAYS.values()] == ["Here."] * 4
        for first, second in zip(server.exchanges[::2], server.exchanges[1::2], strict=True):
            assert (second.method, second.body) == ("POST", first.body)
            assert "again=" in second.path and second.path.partition("?")[0] == first.path.partition("?")[0]
            assert second.headers["ocp-apim-subscription-key"] == SECRET


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_redirect_without_end_is_an_error_at_once(row: Wire) -> None:
    """One to itself after one request, one to ever other paths after a few; neither is retried."""
    places = iter(["", "/a", "/b", "/c", "/d", "/e", "/f"])

    def again(exchange: Exchange) -> HttpReply:
        return HttpReply(status=307, headers={"location": next(places) or exchange.path}, framing="length")

    with LoopbackServer(again) as server:
        server.url = server.address  # type: ignore[attr-defined]
        model = row.model(server, **with_gateway_key(row))
        for requests in (1, 7):
            with pytest.raises(ProviderError, match="again and again"):
                model.invoke("Hi")
            assert len(server.exchanges) == requests


@pytest.mark.parametrize("row", [row for row in WIRES if row.name in ("openai-chat", "google")], ids=lambda row: row.name)
def test_a_client_of_ones_own_follows_no_further(row: Wire) -> None:
    """Also one that follows every redirect by itself."""
    with LoopbackServer(lambda _: HttpReply([b"{}"])) as other, httpx.Client(follow_redirects=True) as own:
        redirect = Raw((b"",), status=307, headers={"location": other.address})
        with row.serve([Raw((b"",), status=307, headers={"location": "?again=1"}), Turn("Here."), redirect]) as server:
            model = row.model(server, http_client=own)
            assert model.invoke("Hi").text == "Here."
            with pytest.raises(ProviderError, match="which is another server"):
                model.invoke("Hi")
        assert other.exchanges == []


@pytest.mark.parametrize("row", [row for row in WIRES if "responses" not in row.name], ids=lambda row: row.name)
def test_a_list_of_models_is_asked_of_no_other_server(row: Wire) -> None:
    """The request for it has the same headers."""
    with LoopbackServer(lambda _: HttpReply([b"{}"])) as other:
        reply = HttpReply(status=302, headers={"location": other.address}, framing="length")
        with LoopbackServer(lambda _: reply) as server:
            server.url = server.address  # type: ignore[attr-defined]
            with pytest.raises(Exception, match="redirect|30[0-9]"):
                row.model(server, **with_gateway_key(row)).served_models()
        assert other.exchanges == []
