"""Every class of LangChain's `init_chat_model` that can be made to talk to a server on this machine: the server, and how a model is made.

Most speak chat completions; what a vendor's own client adds to a request is taken, since it is not this package that writes it.
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

from tests.support.anthropic_server import AnthropicServer
from tests.support.azure_server import KEY, VERSION, AzureServer
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
    """Anthropic's messages on Vertex AI, where the model stands in the path and the version in the body.

    https://docs.cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude/use-claude
    """

    def check(self, exchange: Exchange) -> dict[str, Any]:
        """The parsed body, or a `Rejection`."""
        place = _VERTEX.fullmatch(exchange.path)
        body = exchange.json
        if exchange.method != "POST" or place is None or bool(body.get("stream")) != (place[2] == "streamRawPredict"):
            raise Rejection(f"Not found: {exchange.path}", status=404)
        if body.pop("anthropic_version", None) != "vertex-2023-10-16" or "model" in body:
            raise Rejection("anthropic_version: Field required")
        return check_anthropic(json.dumps({"model": place[1], **body}).encode())


@dataclass(frozen=True)
class Other:
    """A class of another package.

    Attributes:
        place: Its module and name.
        made: The arguments of its constructor, for a server.
        serve: The server of its wire.
        environment: Variables that its client reads; `{url}` and `{address}` are the server's.
        unreadable: The number of calls that the class itself makes of a stream beside those that were written: their arguments are no JSON.
    """

    place: str
    made: Callable[[Any], dict[str, Any]]
    serve: Callable[..., Any] = CompletionsServer
    environment: dict[str, str] = field(default_factory=dict)
    unreadable: int = 0

    def model(self, server: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
        """A model for a server; skips where its package is missing."""
        module, name = self.place.rsplit(".", 1)
        pytest.importorskip(module.partition(".")[0], reason="the package is not installed")
        for variable, value in self.environment.items():
            monkeypatch.setenv(variable, value.format(url=server.url, address=server.address))
        cls = getattr(import_module(module), name)
        return cls(**self.made(server))


def _openai(server: Any, **more: Any) -> dict[str, Any]:
    return {"model": "any", "base_url": server.url, "api_key": "key", "max_retries": 0, **more}


def _aws(server: Any, model: str = "anthropic.claude-sonnet-4-5-20250929-v1:0", **more: Any) -> dict[str, Any]:
    return {"model": model, "region_name": "us-east-1", "max_retries": 0, **more}


def _google_credentials() -> Any:
    credentials = import_module("google.oauth2.credentials")
    return credentials.Credentials(token="nobodys")


def _hugging_face(server: Any) -> dict[str, Any]:
    endpoint = import_module("langchain_huggingface").HuggingFaceEndpoint
    return {"llm": endpoint(endpoint_url=server.url, huggingfacehub_api_token="key", task="conversational"), "model_id": "any"}


OTHERS = {
    "anthropic": Other("langchain_anthropic.ChatAnthropic", lambda server: _openai(server, max_tokens=100), AnthropicServer),
    "anthropic_bedrock": Other(
        "langchain_aws.ChatAnthropicBedrock",
        lambda server: _aws(server, max_tokens=100),
        BedrockServer,
        {"ANTHROPIC_BEDROCK_BASE_URL": "{url}"},
    ),
    "azure_ai": Other(
        "langchain_azure_ai.chat_models.AzureAIOpenAIApiChatModel",
        lambda server: {"model": "any", "endpoint": server.url, "credential": "key", "max_retries": 0, "use_responses_api": False},
    ),
    "azure_openai": Other(
        "langchain_openai.AzureChatOpenAI",
        lambda server: {
            "azure_endpoint": server.address,
            "model": "mine",
            "azure_deployment": "mine",
            "api_version": VERSION,
            "api_key": KEY,
            "max_retries": 0,
        },
        AzureServer,
    ),
    "baseten": Other("langchain_baseten.ChatBaseten", lambda server: _openai(server)),
    "bedrock": Other("langchain_aws.ChatBedrock", lambda server: _aws(server, endpoint_url=server.url), BedrockServer),
    "bedrock_converse": Other("langchain_aws.ChatBedrockConverse", lambda server: _aws(server, endpoint_url=server.url), BedrockServer),
    "bedrock_mantle_anthropic": Other(
        "langchain_aws.ChatAnthropicMantle",
        lambda server: _aws(server, base_url=server.url, bedrock_api_key="key", max_tokens=100),
        AnthropicServer,
    ),
    "bedrock_mantle_openai": Other(
        "langchain_aws.ChatOpenAIMantle",
        lambda server: _aws(server, "openai.gpt-5.6", base_url=server.url, bedrock_api_key="key"),
        LooseResponsesServer,
    ),
    "cohere": Other(
        "langchain_cohere.ChatCohere",
        lambda server: {"model": "any", "base_url": server.url, "cohere_api_key": "key"},
        CohereServer,
        unreadable=2,  # it gives the last piece of a call's arguments twice, under another id, and the whole calls at the end
    ),
    "deepseek": Other(
        "langchain_deepseek.ChatDeepSeek", lambda server: {"model": "any", "api_base": server.url, "api_key": "key", "max_retries": 0}
    ),
    "fireworks": Other("langchain_fireworks.ChatFireworks", lambda server: _openai(server)),
    "google_anthropic_vertex": Other(
        "langchain_google_vertexai.model_garden.ChatAnthropicVertex",
        lambda server: {
            **{"model": "claude-any", "project": "any", "location": "us-east5", "credentials": _google_credentials()},
            **{"base_url": server.url, "max_retries": 0},
        },
        VertexAnthropicServer,
    ),
    "google_genai": Other(
        "langchain_google_genai.ChatGoogleGenerativeAI", lambda server: _openai(server), partial(GoogleServer, signed=False)
    ),
    "google_vertexai": Other(
        "langchain_google_vertexai.ChatVertexAI",
        lambda server: {
            **{"model": "gemini-any", "project": "any", "location": "us-east5", "credentials": _google_credentials()},
            **{"base_url": server.url, "transport": "rest", "max_retries": 0},
        },
        partial(GoogleServer, vertex=True, signed=False),
    ),
    "groq": Other("langchain_groq.ChatGroq", lambda server: _openai(server, base_url=server.address)),
    "huggingface": Other("langchain_huggingface.ChatHuggingFace", _hugging_face),
    "langsmith": Other("langchain_openai.ChatOpenAI", lambda server: _openai(server)),
    "litellm": Other(
        "langchain_litellm.ChatLiteLLM",
        lambda server: {"model": "openai/any", "api_base": server.url, "api_key": "key", "max_retries": 0},
        environment={"LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    ),
    "meta": Other("langchain_meta.ChatMetaModel", lambda server: _openai(server), LooseResponsesServer),
    "mistralai": Other(
        "langchain_mistralai.ChatMistralAI", lambda server: {"model": "any", "endpoint": server.url, "api_key": "key", "max_retries": 0}
    ),
    "nvidia": Other("langchain_nvidia_ai_endpoints.ChatNVIDIA", lambda server: {"model": "any", "base_url": server.url, "api_key": "key"}),
    "ollama": Other(
        "langchain_ollama.ChatOllama", lambda server: {"model": "any", "base_url": server.url}, partial(OllamaServer, strict=False)
    ),
    "openai": Other("langchain_openai.ChatOpenAI", lambda server: _openai(server)),
    "openrouter": Other("langchain_openrouter.ChatOpenRouter", lambda server: _openai(server)),
    "perplexity": Other(
        "langchain_perplexity.ChatPerplexity",
        lambda server: {"model": "openai/any", "api_key": "key", "max_retries": 0, "use_responses_api": True},
        LooseResponsesServer,
        {"PERPLEXITY_BASE_URL": "{address}"},
    ),
    "together": Other("langchain_together.ChatTogether", lambda server: _openai(server)),
    "upstage": Other("langchain_upstage.ChatUpstage", lambda server: _openai(server)),
    "xai": Other("langchain_xai.ChatXAI", lambda server: _openai(server)),
}
"""By the names of LangChain's `init_chat_model`."""
