"""Timeouts of the user's own HTTP clients and in either HTTP library's form."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from langchain_core.exceptions import ModelTimeoutError

from langchain_autotools import ChatGoogleGenerativeAI
from langchain_autotools.providers._transport.exchange import library
from tests.contract.wires import PRESETS, WIRES, Wire
from tests.support.google_server import GoogleServer
from tests.support.http_server import Gate
from tests.support.script import Raw, Turn

OWN: dict[str, Any] = {
    "a client": lambda: {"http_client": httpx.Client(timeout=0.1), "http_async_client": httpx.AsyncClient(timeout=0.1)},
    "arguments": lambda: {"client_args": {"timeout": 0.1}},
}


@pytest.mark.parametrize("own", OWN)
def test_google_heeds_the_timeout_of_a_client(own: str) -> None:
    """Where the model says none; the one that a client has by itself is no limit, and that of a call goes before both."""
    gate = Gate()
    with GoogleServer([Raw([gate])] * 3) as server:
        model = ChatGoogleGenerativeAI(model="any", base_url=server.url, api_key="key", max_retries=0, **OWN[own]())
        for ask in (lambda: model.invoke("Hi"), lambda: asyncio.run(model.ainvoke("Hi")), lambda: list(model.stream("Hi"))):
            with pytest.raises(ModelTimeoutError):
                ask()
        gate.open()
        assert model._timeout({"timeout": 7}) == 7
        plain = ChatGoogleGenerativeAI(model="any", base_url=server.url, api_key="key", http_client=httpx.Client())
        assert plain._timeout({}) is None and plain._client_timeout({}, None)[1] == 600


@pytest.mark.parametrize("row", [*WIRES, PRESETS[0]], ids=lambda row: row.name)
def test_a_timeout_of_either_library_is_taken(row: Wire) -> None:
    """The SDK's own and the other one, of the constructor and of a call, streamed or not."""
    for made in (httpx.Timeout(30, read=0.05), library().Timeout(30, read=0.05)):
        gate = Gate()
        with row.serve([Raw([gate]), Turn("Hi."), Raw([gate])]) as server:
            with pytest.raises(ModelTimeoutError):
                row.model(server, timeout=made).invoke("Hi")
            model = row.model(server, timeout=30)
            assert model.invoke("Hi", timeout=httpx.Timeout(30)).text == "Hi."
            with pytest.raises(ModelTimeoutError):
                list(model.stream("Hi", timeout=made))
            gate.open()
