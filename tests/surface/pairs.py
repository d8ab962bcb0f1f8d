"""The pairs that are compared: a partner package's class, ours, and a loopback server that both are pointed at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from typing import Any, Self

import langchain_autotools
from tests.support.anthropic_server import AnthropicServer
from tests.support.azure_server import VERSION, AzureResponsesServer, AzureServer
from tests.support.google_server import GoogleServer
from tests.support.http_server import Exchange
from tests.support.ollama_server import OllamaServer
from tests.support.openai_server import OpenAIServer
from tests.support.responses_server import ResponsesServer
from tests.support.script import Reply, Turn
from tests.support.scripted_server import Script, ScriptedServer
from tests.support.vendor_server import VendorServer
from tests.support.vendors import VENDORS

THEIRS, OURS = "theirs", "ours"
SIDES = (THEIRS, OURS)


@dataclass(frozen=True)
class Pair:
    """A class of a partner package and ours of the same name, over one wire.

    Attributes:
        name: How the stored list names it.
        package: The partner package's import name.
        cls: The name of both classes.
        model: A model that the vendor has.
        wire: The form of its replies; "" where the partner's class speaks one that no loopback server here speaks.
        serve: A server of the wire.
        arguments: What both classes are given besides.
        address: The server's address as the partner's class takes it.
        first: Whether it is the first pair of its class: what depends on no wire is compared there.
    """

    name: str
    package: str
    cls: str
    model: str
    wire: str
    serve: Callable[[Script], ScriptedServer] = OpenAIServer
    arguments: Mapping[str, Any] = field(default_factory=dict, hash=False)
    address: Callable[[ScriptedServer], str] = lambda server: server.url
    first: bool = True

    def class_of(self, side: str) -> Any:
        """The class of one side."""
        return getattr(import_module(self.package) if side == THEIRS else langchain_autotools, self.cls)

    def make(self, side: str, server: ScriptedServer | None = None, **arguments: Any) -> Any:
        """A model of one side that asks a server, or nobody."""
        address = {} if server is None else self._place(side, server)
        return self.class_of(side)(**{**_key(self), "model": self.model, **self.arguments, **address, **arguments})

    def _place(self, side: str, server: ScriptedServer) -> dict[str, str]:
        if self.wire.startswith("azure"):
            return {"azure_endpoint": server.address}
        return {"base_url": self.address(server) if side == THEIRS else server.url}


class Stage:
    """One side of a pair before a server that gives the reply of the moment, whatever is asked for."""

    def __init__(self, pair: Pair, side: str) -> None:
        self.pair, self.side = pair, side
        self.reply: Reply = Turn("Hello there.")
        self.server = _lenient(pair.serve)(lambda exchange: self.reply)
        self._made: dict[str, Any] = {}

    def __enter__(self) -> Self:
        """Begin to serve."""
        self.server.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.server.stop()

    def make(self, **arguments: Any) -> Any:
        """A model that asks the server."""
        return self.pair.make(self.side, self.server, **arguments)

    def model(self, **arguments: Any) -> Any:
        """The same, made once for the same arguments: making its client takes longer than all else."""
        key = repr(sorted(arguments.items()))
        if key not in self._made:
            self._made[key] = self.make(**arguments)
        return self._made[key]

    def sent(self, ask: Callable[[], Any]) -> Any:
        """The first request that a call makes."""
        del self.server.exchanges[:]
        ask()
        return self.server.exchanges[0].json


def _key(pair: Pair) -> dict[str, Any]:
    """What both need before they are made: a key, or Azure's place."""
    if pair.wire.startswith("azure"):
        place = {"azure_endpoint": "http://127.0.0.1:9", "azure_deployment": "mine", "api_version": VERSION}
        return {**place, "api_key": "key"}
    if pair.cls == "ChatOllama":
        return {}
    return {_KEYS.get(pair.cls, "api_key"): "key"}


_KEYS = {"ChatCohere": "cohere_api_key"}


@cache
def _lenient(serve: Any) -> Callable[[Script], ScriptedServer]:
    """The server's class, or what makes one, without its checks of requests."""
    if isinstance(serve, partial):
        return partial(_without_checks(serve.func), *serve.args)
    return _without_checks(serve)


def _without_checks(cls: type[Any]) -> Any:
    def check(self: ScriptedServer, exchange: Exchange) -> dict[str, Any]:
        if asked := getattr(self, "asked", None):  # Google's address says what is asked for
            asked(exchange)
        return dict(exchange.json)

    return type(f"Lenient{cls.__name__}", (cls,), {"check": check, "__doc__": "Takes any request."})


def _preset(name: str, cls: str, model: str, **more: Any) -> Pair:
    vendor = next(vendor for vendor in VENDORS if vendor.name == name)
    given = {"package": f"langchain_{name}", "wire": "chat", "serve": partial(VendorServer, vendor), **more}
    return Pair(name, cls=cls, model=model, **given)


_RESPONSES = {"use_responses_api": True}

PAIRS = (
    Pair("openai", "langchain_openai", "ChatOpenAI", "gpt-4.1", "chat"),
    Pair("openai-responses", "langchain_openai", "ChatOpenAI", "gpt-5", "responses", ResponsesServer, _RESPONSES, first=False),
    Pair("azure", "langchain_openai", "AzureChatOpenAI", "gpt-4.1", "azure-chat", AzureServer),
    Pair(
        "azure-responses", "langchain_openai", "AzureChatOpenAI", "gpt-5", "azure-responses", AzureResponsesServer, _RESPONSES, first=False
    ),
    Pair("anthropic", "langchain_anthropic", "ChatAnthropic", "claude-sonnet-4-5", "anthropic", AnthropicServer),
    Pair("google", "langchain_google_genai", "ChatGoogleGenerativeAI", "gemini-2.5-flash", "google", GoogleServer),
    Pair("ollama", "langchain_ollama", "ChatOllama", "llama3.1", "ollama", OllamaServer),
    _preset("cohere", "ChatCohere", "command-a-03-2025", wire=""),
    _preset("deepseek", "ChatDeepSeek", "deepseek-chat"),
    _preset("fireworks", "ChatFireworks", "accounts/fireworks/models/gpt-oss-120b"),
    _preset("groq", "ChatGroq", "openai/gpt-oss-120b", address=lambda server: server.address),
    _preset("mistralai", "ChatMistralAI", "mistral-large-latest"),
    _preset("openrouter", "ChatOpenRouter", "openai/gpt-4.1"),
    _preset("together", "ChatTogether", "meta-llama/Llama-3.3-70B-Instruct-Turbo"),
    _preset("xai", "ChatXAI", "grok-4"),
)
