"""Headers that several places ask for: names mean the same in capitals and in small letters, and none is lost or sent twice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from langchain_autotools import ChatAnthropic, ConfigurationError
from tests.contract.wires import PRESETS, WIRES, Wire
from tests.support.anthropic_server import AnthropicServer
from tests.support.http_server import LoopbackServer
from tests.support.script import Turn


def with_headers(row: Wire, headers: dict[str, str]) -> dict[str, Any]:
    """The arguments for headers of every request."""
    fields = row.chat_model.model_fields
    name = next((name for name in ("default_headers", "additional_headers") if name in fields), None)
    return {name: headers} if name else {"client_kwargs": {"headers": headers}}


def test_betas_of_all_places_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the class, the call, headers of either in any spelling, the environment, and what a parameter needs; each once."""
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "Anthropic-Beta: of-environment")
    more: dict[str, Any] = {"betas": ["of-class"], "default_headers": {"Anthropic-Beta": "of-headers, of-class", "X-Team": "blue"}}
    with AnthropicServer([Turn("Hi.")] * 3, strict=False) as server:
        model = ChatAnthropic(model="any", base_url=server.url, api_key="key", **more)
        edits = {"edits": [{"type": "clear_tool_uses_20250919"}]}
        model.invoke("Hi", betas=["of-call"], extra_headers={"ANTHROPIC-BETA": "of-call-headers"}, context_management=edits)
        list(model.stream("Hi"))
        asyncio.run(model.ainvoke("Hi"))
        called = ["of-call", "of-call-headers", "context-management-2025-06-27"]
        own = ["of-environment", "of-headers", "of-class"]
        for exchange, asked in zip(server.exchanges, (called, [], []), strict=True):
            sent = [value for name, value in exchange.lines if name == "anthropic-beta" and "of-class" in value]
            assert len(sent) == 1 and sorted(sent[0].split(",")) == sorted([*own, *asked])
            assert exchange.headers["x-team"] == "blue"


@pytest.mark.parametrize("row", [*WIRES, PRESETS[0]], ids=lambda row: row.name)
def test_a_header_is_sent_once_whatever_its_spelling(row: Wire) -> None:
    """The nearest place wins: the call, then the class, then what the wire sends by itself."""
    own = {"authorization": "Bearer own", "CONTENT-TYPE": "application/json", "X-Goog-Api-Key": "own", "X-api-key": "own", "X-Team": "blue"}
    with row.serve([Turn("Hi.")] * 2) as server:
        server.check_place = lambda exchange: None  # type: ignore[attr-defined] - any key
        model = row.model(server, **with_headers(row, own))
        model.invoke("Hi", extra_headers={"x-team": "red", "AUTHORIZATION": "Bearer call", "x-goog-api-key": "call"})
        model.invoke("Hi")
        for exchange, wins in zip(server.exchanges, ("call", "own"), strict=True):
            names = [name for name, _ in exchange.lines]
            assert [name for name in names if names.count(name) > 1] == []
            assert exchange.headers["authorization"] == f"Bearer {wins}"
            assert (exchange.headers["x-goog-api-key"], exchange.headers["x-api-key"]) == (wins, "own")
            assert exchange.headers["x-team"] == {"call": "red", "own": "blue"}[wins]


@pytest.mark.parametrize("row", [row for row in WIRES if "-" not in row.name], ids=lambda row: row.name)
def test_a_header_that_is_no_text_is_refused_in_words(row: Wire) -> None:
    """Before a request is made."""
    with LoopbackServer(lambda _: pytest.fail("a request")) as server:
        server.url = server.address  # type: ignore[attr-defined]
        for value in (None, 7):
            with pytest.raises(ConfigurationError, match=r"extra_headers\['X'\] is (NoneType|int), not a text"):
                row.model(server).invoke("Hi", extra_headers={"X": value})
