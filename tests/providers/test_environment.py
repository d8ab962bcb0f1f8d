"""What an SDK reads from the environment for its own company reaches no other company's server."""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from langchain_autotools import ChatAnthropic, ChatOpenAI, ProviderError
from tests.contract.wires import PRESETS, ROWS, Wire
from tests.support.anthropic_server import AnthropicServer
from tests.support.http_server import Exchange
from tests.support.openai_server import OpenAIServer
from tests.support.script import Events, Failure, Turn

SDKS = ("openai", "anthropic", "ollama", "google.genai", "google.auth", "httpx", "httpx2")
NAME = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")
OF_THE_MACHINE = re.compile(r"SSL_CERT_\w+|PYTEST_\w+|.*_LOG|.*DEBUG|.*_PROXY")
"""What no request can be made with if it holds a marker, and what only writes a log."""
OWN: dict[str, str | tuple[str, ...]] = {
    "openai-chat": "OPENAI_",
    "openai-responses": "OPENAI_",
    "azure-chat": ("AZURE_OPENAI_", "OPENAI_ORG"),  # as langchain-openai's class has it
    "azure-responses": ("AZURE_OPENAI_", "OPENAI_ORG"),
    "anthropic": "ANTHROPIC_",
    "google": "GOOGLE_",
    "ollama": "OLLAMA_",
}
"""The prefixes of the variables that may reach a row's server."""


def sources(package: str) -> Iterator[str]:
    """The texts of a package's modules that may read the environment."""
    spec = find_spec(package)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for file in Path(folder).rglob("*.py"):
            text = file.read_text(encoding="utf-8")
            if re.search(r"environ\b|getenv|\bENV_", text):
                yield text


def names_in(tree: ast.AST) -> Iterator[str]:
    """The names of variables that a module reads, and the constants that may be such names in another."""
    for node in ast.walk(tree):
        held: list[ast.AST] = []
        if isinstance(node, ast.Call | ast.Subscript) and re.search(
            r"environ\b|env\b", ast.unparse(getattr(node, "func", None) or node.value)
        ):
            held = [*node.args, *node.keywords] if isinstance(node, ast.Call) else [node.slice]
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            held = [node.value]
        for part in held:
            for one in ast.walk(part):
                if isinstance(one, ast.Constant) and isinstance(one.value, str) and NAME.fullmatch(one.value):
                    yield one.value


@cache
def variables() -> frozenset[str]:
    """Every environment variable that an installed SDK or a class of this package reads."""
    read = {name for package in SDKS for text in sources(package) for name in names_in(ast.parse(text))}
    own = {name for row in ROWS for names in vars(row.chat_model._environment).values() for name in names}
    return frozenset(name for name in read | own if not OF_THE_MACHINE.fullmatch(name))


def marker(name: str) -> str:
    """A value that a server recognises: lines of headers where the variable holds such, else a text."""
    found = f"marker-{name}-marker"
    return f"Authorization: Bearer {found}\nX-Corp: {found}\nUser-Agent: {found}" if "HEADERS" in name else found


@pytest.fixture
def marked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A marker in every variable."""
    for name in variables():
        monkeypatch.setenv(name, marker(name))


def arrived(exchange: Exchange) -> set[str]:
    """The variables whose markers are in a request."""
    return set(re.findall(r"marker-([A-Z0-9_]+)-marker", f"{exchange.path} {exchange.headers} {exchange.body!r}"))


@pytest.mark.further
def test_the_variables_are_found() -> None:
    """Those that are known to be read by an SDK are among them."""
    known = {"OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "AZURE_OPENAI_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GEMINI_API_KEY"}
    assert known | {"OLLAMA_HOST", "GOOGLE_CLOUD_PROJECT", "GOOGLE_APPLICATION_CREDENTIALS", "XAI_API_KEY"} <= variables()


@pytest.mark.usefixtures("marked")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_environment_of_one_company_reaches_no_other(row: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither headers nor an address nor a body has what another company's SDK reads; the key that was given arrives."""
    if row.name == "google":
        monkeypatch.delenv("GOOGLE_GENAI_API_VERSION", raising=False)  # its own server would not know the version
    with row.serve([Turn("Hi.")] * 3) as server:
        model = row.model(server)
        model.invoke("Hi")
        list(model.stream("Hi"))
        asyncio.run(model.ainvoke("Hi"))
        for exchange in server.exchanges:
            assert [name for name in arrived(exchange) if not name.startswith(OWN.get(row.name, "nothing"))] == []
        if row in PRESETS:
            sent = [(exchange.headers["authorization"], exchange.headers["content-type"]) for exchange in server.exchanges]
            assert sent == [("Bearer key", "application/json")] * 3
            assert all("OpenAI" in exchange.headers["user-agent"] for exchange in server.exchanges)


ECHO = "Bearer header-1234567890 is refused, and so is corp-1234567890"


@pytest.mark.parametrize("reply", [Failure(401, ECHO), Events([{"error": {"message": ECHO, "type": "api_error"}}])], ids=["401", "a frame"])
@pytest.mark.parametrize(("chat_model", "serve"), [(ChatOpenAI, OpenAIServer), (ChatAnthropic, AnthropicServer)])
def test_headers_of_the_environment_stand_in_no_error(
    monkeypatch: pytest.MonkeyPatch, chat_model: type, serve: type, reply: Failure | Events
) -> None:
    """Where they are the company's own they are sent, and a server that repeats them shows nobody what they hold."""
    variable = f"{chat_model.__name__.removeprefix('Chat').upper()}_CUSTOM_HEADERS"
    monkeypatch.setenv(variable, "Authorization: Bearer header-1234567890\nX-Corp: corp-1234567890")
    with serve([reply]) as server, pytest.raises(ProviderError) as caught:
        list(chat_model(model="any", base_url=server.url, api_key="key", max_retries=0).stream("Hi"))
    assert "1234567890" not in f"{caught.value} {caught.value.__cause__} {vars(caught.value)}"
