"""Addresses as people have them: with a query, with a version or without, with a path that a request adds by itself."""

from __future__ import annotations

import asyncio
import logging
import traceback
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from langchain_autotools import AzureChatOpenAI, ChatAnthropic, ChatOpenAI, ConfigurationError, ProviderError
from tests.contract.wires import PRESETS, WIRES, Wire
from tests.support.anthropic_server import AnthropicServer
from tests.support.azure_server import KEY, VERSION, AzureServer
from tests.support.openai_server import OpenAIServer
from tests.support.script import Failure, Turn

SECRET = "query-key-1234567890"
ROWS = [*WIRES, *PRESETS[:1], *(pytest.param(row, marks=pytest.mark.exhaustive) for row in PRESETS[1:])]


def asked(row: Wire, server: Any, **more: Any) -> Any:
    """A model whose address has a query."""
    name = "azure_endpoint" if "azure" in row.name else "base_url"
    address = server.address if "azure" in row.name else server.url
    return row.model(server, **{name: f"{address}?tenant=7&key={SECRET}", **more})


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_query_of_an_address_stands_behind_the_path(row: Wire, caplog: pytest.LogCaptureFixture) -> None:
    """It is joined with the queries of the class and the call, on every way, and shown to nobody."""
    caplog.set_level(logging.INFO)
    with row.serve([Turn("Hi."), Turn("Hi."), Failure(401, f"The key {SECRET} is wrong.")]) as server:
        own = {"default_query": {"team": "blue"}} if "default_query" in row.chat_model.model_fields else {}
        model = asked(row, server, **own)
        model.invoke("Hi", extra_query={"call": "1"})
        asyncio.run(model.ainvoke("Hi"))
        with pytest.raises(ProviderError) as caught:
            list(model.stream("Hi"))
        for exchange in server.exchanges:
            query = parse_qs(urlsplit(exchange.path).query)
            assert (query["tenant"], query["key"], query.get("team")) == (["7"], [SECRET], ["blue"] if own else None)
            assert "?" not in urlsplit(exchange.path).path and not urlsplit(exchange.path).path.startswith("//")
        assert "call=1" in server.exchanges[0].path
    shown = [repr(model), model.model_dump_json(), caplog.text, *traceback.format_exception(caught.value)]
    assert [text for text in shown if SECRET in text] == []


def test_a_presets_own_path_stands_before_the_query() -> None:
    """An address without a path gets the vendor's."""
    row = next(row for row in PRESETS if row.name == "deepseek")
    with row.serve([Turn("Hi.")]) as server:
        row.model(server, base_url=f"{server.address}?tenant=7").invoke("Hi")
        assert urlsplit(server.exchanges[0].path).query == "tenant=7"


def test_a_parameter_that_an_address_says_twice_is_refused() -> None:
    """No SDK would send both."""
    with pytest.raises(ConfigurationError, match="query parameter 'a' twice"):
        ChatOpenAI(model="any", base_url="http://127.0.0.1:1/v1?a=1&a=2", api_key="key")


def test_anthropics_address_may_say_the_version() -> None:
    """A request says it by itself."""
    paths = ["", "/", "/v1", "/v1/", "/v1/messages", "/v1?tenant=7"]
    with AnthropicServer([Turn("Hi.")] * len(paths)) as server:
        for path in paths:
            assert ChatAnthropic(model="any", base_url=f"{server.address}{path}", api_key="key").invoke("Hi").text == "Hi."


def test_an_address_may_be_that_of_a_request() -> None:
    """As vendors' pages show it."""
    with OpenAIServer([Turn("Hi.")]) as server:
        assert ChatOpenAI(model="any", base_url=f"{server.url}/chat/completions", api_key="key").invoke("Hi").text == "Hi."


def test_azures_addresses() -> None:
    """The newer one of a resource means the resource, that of a deployment says all; what cannot work is said where it is given."""
    with AzureServer([Turn("Hi.")] * 2) as server:
        place = {"azure_deployment": "mine", "api_version": VERSION, "api_key": KEY}
        assert AzureChatOpenAI(azure_endpoint=f"{server.address}/openai/v1/", **place).invoke("Hi").text == "Hi."
        target = f"{server.address}/openai/deployments/mine/chat/completions?api-version={VERSION}"
        assert AzureChatOpenAI(base_url=target, api_key=KEY).invoke("Hi").text == "Hi."
        with pytest.raises(ConfigurationError, match="azure_endpoint says a deployment"):
            AzureChatOpenAI(azure_endpoint=target, **place)
        with pytest.raises(ConfigurationError, match=r"use ChatOpenAI\(base_url"):
            AzureChatOpenAI(base_url=f"{server.address}/openai/v1/", model="mine", api_version=VERSION, api_key=KEY)
