"""Every name of LangChain's `init_chat_model`: the server of its wire on this machine, and how a model is made that talks to it.

A name that this package has no class for makes the model by `init_chat_model`; of another one LangChain's class is used behind
`with_tools`. Most speak chat completions; what a vendor's own client adds to a request is taken, since it is not this package that writes
it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

import pytest

from langchain_autotools import init_chat_model, with_tools
from langchain_autotools.providers.known import LANGCHAIN_CLASSES
from tests.support.anthropic_server import AnthropicServer
from tests.support.azure_server import KEY as AZURE_KEY
from tests.support.azure_server import VERSION, AzureServer
from tests.support.bedrock_server import BedrockServer
from tests.support.cohere_server import CohereServer
from tests.support.google_server import GoogleServer
from tests.support.http_server import Exchange
from tests.support.ollama_server import OllamaServer
from tests.support.openai_server import OpenAIServer
from tests.support.responses_server import ResponsesServer
from tests.support.scripted_server import Script
from tests.support.strict import Rejection, Rules
from tests.support.strict_anthropic import check_request as check_anthropic
from tests.support.strict_openai import check_request
from tests.support.strict_responses import check_responses_request
from tests.support.watsonx_server import WatsonxServer

KEY = "secret-of-nobody"
_VERTEX_VERSION = re.compile(r"vertex-2023-10-16|\d{4}-\d\d-\d\d")
_VERTEX = re.compile(r".*/projects/any/locations/us-east5/publishers/anthropic/models/([^/:]+):(rawPredict|streamRawPredict)")


class CompletionsServer(OpenAIServer):
    """Chat completions under whatever path a vendor has them, in whatever words besides messages and tools."""

    def __init__(self, script: Script = ()) -> None:
        super().__init__(script, rules=Rules(message_keys=("name",)))

    def check_place(self, exchange: Exchange) -> None:
        """Refuse another path than one of chat completions."""
        if exchange.method != "POST" or not exchange.path.partition("?")[0].endswith("/chat/completions"):
            raise Rejection(f"Invalid URL ({exchange.method} {exchange.path})", status=404)

    def check_body(self, exchange: Exchange, rules: Rules) -> dict[str, Any]:
        """The parsed body, as far as it is messages and tools: the rest is the client's and the vendor's own."""
        body = exchange.json
        for message in body["messages"]:
            for call in message.get("tool_calls") or ():
                call.setdefault("type", "function")
        shared = {"model": "any", **{key: body[key] for key in ("messages", "tools") if key in body}}
        check_request(json.dumps(shared).encode(), rules)
        return body

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The parsed bodies, whatever their path."""
        return [exchange.json for exchange in list(self.exchanges) if exchange.method == "POST"]


class LooseResponsesServer(ResponsesServer):
    """The Responses API of a vendor that takes tools without `strict`, under whatever path."""

    def check_place(self, exchange: Exchange) -> None:
        """Refuse another path than one of responses."""
        if exchange.method != "POST" or not exchange.path.partition("?")[0].endswith("/responses"):
            raise Rejection(f"Invalid URL ({exchange.method} {exchange.path})", status=404)

    def check_body(self, exchange: Exchange, rules: Rules) -> dict[str, Any]:
        """The parsed body, as far as it is input and tools."""
        body = exchange.json
        tools = [{"strict": None, **tool} for tool in body.get("tools", ())]
        shared = {"model": "any", "tools": tools, **{key: body[key] for key in ("input", "instructions") if key in body}}
        check_responses_request(json.dumps(shared).encode(), rules, self.memory)
        return body


class VertexAnthropicServer(AnthropicServer):
    """Anthropic's messages on Vertex AI, where the model is in the path and the version in the body: Vertex AI's own, or a date.

    https://docs.cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude/use-claude
    """

    def check(self, exchange: Exchange) -> dict[str, Any]:
        """The parsed body, or a `Rejection`."""
        place = _VERTEX.fullmatch(exchange.path)
        body = exchange.json
        if exchange.method != "POST" or place is None or bool(body.get("stream")) != (place[2] == "streamRawPredict"):
            raise Rejection(f"Not found: {exchange.path}", status=404)
        if not _VERTEX_VERSION.fullmatch(body.pop("anthropic_version", "")) or "model" in body:
            raise Rejection("anthropic_version: Field required")
        return check_anthropic(json.dumps({"model": place[1], **body}).encode())


@dataclass(frozen=True)
class Other:
    """A class of another package.

    Attributes:
        made: The arguments of its constructor, the model's name among them, for a server.
        serve: The server of its wire.
        place: Its module and name, where this package has a class of its own for its name. None: the name makes it.
        environment: Variables that its client reads; `{url}` and `{address}` are the server's.
        unreadable: The number of calls that the class itself makes of a stream beside those that were written: their arguments are no JSON.
        shows_key: Whether the class shows a key in its repr.
    """

    made: Callable[[Any], dict[str, Any]]
    serve: Callable[..., Any] = CompletionsServer
    place: str | None = None
    environment: dict[str, str] = field(default_factory=dict)
    unreadable: int = 0
    shows_key: bool = False

    def arguments(self, name: str, server: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
        """The arguments for a server, whose address the client finds where it looks for it; skips where the package is missing."""
        module = self.place or LANGCHAIN_CLASSES[name].module
        pytest.importorskip(module.partition(".")[0], reason="the package is not installed")
        for variable, value in self.environment.items():
            monkeypatch.setenv(variable, value.format(url=server.url, address=server.address))
        return self.made(server)

    def model(self, name: str, arguments: dict[str, Any], **settings: Any) -> Any:
        """A model that has tools and other settings of runs."""
        if self.place is None:
            return init_chat_model(model_provider=name, **arguments, **settings)
        module, class_name = self.place.rsplit(".", 1)
        return with_tools(getattr(import_module(module), class_name)(**arguments), **settings)


def _openai(server: Any, **more: Any) -> dict[str, Any]:
    return {"model": "any", "base_url": server.url, "api_key": KEY, "max_retries": 0, **more}


def _aws(server: Any, model: str = "anthropic.claude-sonnet-4-5-20250929-v1:0", **more: Any) -> dict[str, Any]:
    return {"model": model, "region_name": "us-east-1", "max_retries": 0, **more}


def _vertex(**more: Any) -> dict[str, Any]:
    credentials = import_module("google.oauth2.credentials").Credentials(token=KEY)
    return {"project": "any", "location": "us-east5", "credentials": credentials, "max_retries": 0, **more}


def _hugging_face(server: Any) -> dict[str, Any]:
    # By a model's name its client asks one of the providers that it knows, whose addresses are no settings.
    import_module("huggingface_hub.inference._providers").PROVIDERS["openai"]["conversational"].base_url = server.address
    return {"model": "any", "backend": "endpoint", "task": "conversational", "provider": "openai", "huggingfacehub_api_token": KEY}


OTHERS = {
    "anthropic": Other(lambda server: _openai(server, max_tokens=100), AnthropicServer, "langchain_anthropic.ChatAnthropic"),
    "anthropic_bedrock": Other(
        lambda server: _aws(server, max_tokens=100), BedrockServer, environment={"ANTHROPIC_BEDROCK_BASE_URL": "{url}"}
    ),
    "azure_ai": Other(
        lambda server: {"model": "any", "endpoint": server.url, "credential": KEY, "max_retries": 0, "use_responses_api": False},
        shows_key=True,
    ),
    "azure_openai": Other(
        lambda server: {
            "azure_endpoint": server.address,
            "model": "mine",
            "azure_deployment": "mine",
            "api_version": VERSION,
            "api_key": AZURE_KEY,
            "max_retries": 0,
        },
        AzureServer,
        "langchain_openai.AzureChatOpenAI",
    ),
    "baseten": Other(_openai),
    "bedrock": Other(lambda server: _aws(server, endpoint_url=server.url), BedrockServer),
    "bedrock_converse": Other(lambda server: _aws(server, endpoint_url=server.url), BedrockServer),
    "bedrock_mantle_anthropic": Other(
        lambda server: _aws(server, base_url=server.url, bedrock_api_key=KEY, max_tokens=100), AnthropicServer
    ),
    "bedrock_mantle_openai": Other(
        lambda server: _aws(server, "openai.gpt-5.6", base_url=server.url, bedrock_api_key=KEY), LooseResponsesServer
    ),
    "cohere": Other(
        lambda server: {"model": "any", "base_url": server.url, "cohere_api_key": KEY},
        CohereServer,
        "langchain_cohere.ChatCohere",
        unreadable=2,  # it gives the last piece of a call's arguments twice, under another id, and the whole calls at the end
    ),
    "deepseek": Other(
        lambda server: {"model": "any", "api_base": server.url, "api_key": KEY, "max_retries": 0}, place="langchain_deepseek.ChatDeepSeek"
    ),
    "fireworks": Other(_openai, place="langchain_fireworks.ChatFireworks"),
    "google_anthropic_vertex": Other(lambda server: _vertex(model="claude-any", base_url=server.url), VertexAnthropicServer),
    "google_genai": Other(_openai, partial(GoogleServer, signed=False), "langchain_google_genai.ChatGoogleGenerativeAI"),
    "google_vertexai": Other(
        lambda server: _vertex(model="gemini-any", base_url=server.url, transport="rest"),
        partial(GoogleServer, vertex=True, signed=False),
        "langchain_google_vertexai.ChatVertexAI",
    ),
    "groq": Other(lambda server: _openai(server, base_url=server.address), place="langchain_groq.ChatGroq"),
    "huggingface": Other(_hugging_face),
    "ibm": Other(
        lambda server: {
            **{"model": "any", "url": server.url, "token": KEY, "verify": False, "validate_model": False},
            **{"project_id": "any", "instance_id": "openshift", "version": "5.1"},
        },
        WatsonxServer,
    ),
    "langsmith": Other(_openai, place="langchain_openai.ChatOpenAI"),
    "litellm": Other(
        lambda server: {"model": "openai/any", "api_base": server.url, "api_key": KEY, "max_retries": 0},
        environment={"LITELLM_LOCAL_MODEL_COST_MAP": "True"},  # else it fetches prices when it is imported
    ),
    "meta": Other(_openai, LooseResponsesServer),
    "mistralai": Other(
        lambda server: {"model": "any", "endpoint": server.url, "api_key": KEY, "max_retries": 0}, place="langchain_mistralai.ChatMistralAI"
    ),
    "nvidia": Other(lambda server: {"model": "any", "base_url": server.url, "api_key": KEY}),
    "ollama": Other(
        lambda server: {"model": "any", "base_url": server.url}, partial(OllamaServer, strict=False), "langchain_ollama.ChatOllama"
    ),
    "openai": Other(_openai, place="langchain_openai.ChatOpenAI"),
    "openrouter": Other(_openai, place="langchain_openrouter.ChatOpenRouter"),
    "perplexity": Other(
        lambda server: {"model": "openai/any", "api_key": KEY, "max_retries": 0, "use_responses_api": True},
        LooseResponsesServer,
        environment={"PERPLEXITY_BASE_URL": "{address}"},
    ),
    "together": Other(_openai, place="langchain_together.ChatTogether"),
    "upstage": Other(_openai),
    "xai": Other(_openai, place="langchain_xai.ChatXAI"),
}
"""By the names of LangChain's `init_chat_model`."""
