"""What HTTP libraries log of requests holds no secret, as long as the HTTP client is the package's own."""

import asyncio
import base64
import logging
from contextlib import nullcontext
from typing import Any

import httpx
import pydantic
import pytest

from langchain_autotools import ChatGoogleGenerativeAI, ChatOpenAI
from langchain_autotools.providers._transport.exchange import library
from tests.contract.wires import WIRES, Wire
from tests.support.openai_server import OpenAIServer
from tests.support.script import Turn

PASSWORD, KEY, CALLS = "password-1234567890", "key-1234567890", "signature-1234567890"
PYDANTIC = tuple(int(part) for part in pydantic.VERSION.split(".")[:2])


def with_secrets(row: Wire, url: str) -> dict[str, Any]:
    """Arguments with a password in the address, and a key in the query of every request, where the class takes them."""
    name = "azure_endpoint" if "azure" in row.name else "base_url"
    given: dict[str, Any] = {name: url.replace("//", f"//user:{PASSWORD}@"), "max_retries": 0}
    return given | ({"default_query": {"code": KEY, "more": "a b&c"}} if "default_query" in row.chat_model.model_fields else {})


def _without_broken_lines(caplog: pytest.LogCaptureFixture) -> Any:
    """The anthropic SDK (0.80) asks pydantic before 2.11 for what it does not know, and every request fails where it logs."""
    return nullcontext() if PYDANTIC >= (2, 11) else caplog.at_level(logging.INFO, "anthropic")


@pytest.mark.parametrize("row", WIRES, ids=lambda row: row.name)
def test_the_log_of_requests_holds_no_secret(row: Wire, caplog: pytest.LogCaptureFixture) -> None:
    """The server gets the user and password as authorization, and the whole query, as before; so it does in an asynchronous run."""
    with row.serve([Turn("Hi."), Turn("Hi.")]) as server:
        server.check_place = lambda exchange: None  # type: ignore[attr-defined] - any key, any query
        model = row.model(server, **with_secrets(row, server.address if "azure" in row.name else server.url))
        of_call: dict[str, Any] = {"extra_query": {"sig": CALLS}} if row.name not in ("google", "ollama") else {}
        with caplog.at_level(logging.DEBUG), _without_broken_lines(caplog):  # the SDKs' own lines are there too
            model.invoke("Hi", **of_call)
            asyncio.run(model.ainvoke("Hi", **of_call))
        said = [record.getMessage() for record in caplog.records if record.getMessage().startswith("HTTP Request: POST http")]
        assert len(said) == 2
        assert not [secret for secret in (PASSWORD, KEY, CALLS) if secret in caplog.text]
        basic = base64.b64encode(f"user:{PASSWORD}".encode()).decode()
        for exchange in server.exchanges:
            assert exchange.headers["authorization"] == f"Basic {basic}"
            assert not of_call or f"sig={CALLS}" in exchange.path
            if "default_query" in row.chat_model.model_fields:
                assert f"code={KEY}" in exchange.path
                assert "more=a+b%26c" in exchange.path or "more=a%20b%26c" in exchange.path


def test_a_client_of_the_users_own_logs_what_it_logs(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody's clients, transports and loggers are changed."""
    seen: list[str] = []

    def answer(request: Any) -> Any:
        seen.append(str(request.url))
        return library().Response(500, json={})

    with OpenAIServer([Turn("Hi.")], rules=None) as server, httpx.Client() as http, caplog.at_level(logging.INFO):
        server.check_place = lambda exchange: None  # type: ignore[method-assign]
        ChatOpenAI(model="any", base_url=server.url, api_key="key", http_client=http, default_query={"code": KEY}).invoke("Hi")
    assert KEY in caplog.text
    arguments = {"transport": library().MockTransport(answer)}
    model = ChatGoogleGenerativeAI(
        model="any", base_url=f"http://user:{PASSWORD}@gateway/v1", api_key="key", client_args=arguments, max_retries=0
    )
    with pytest.raises(Exception, match="500"):
        model.invoke("Hi")
    assert PASSWORD in seen[0]
