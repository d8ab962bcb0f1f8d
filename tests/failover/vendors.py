"""The four wires of failover's tests: a strict server and the chat model of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_autotools import ChatAnthropic, ChatGoogleGenerativeAI, ChatOllama, ChatOpenAI
from tests.support.anthropic_server import AnthropicServer
from tests.support.google_server import GoogleServer
from tests.support.ollama_server import OllamaServer
from tests.support.openai_server import OpenAIServer

VENDORS: Mapping[str, tuple[Any, Any]] = {
    "openai": (OpenAIServer, ChatOpenAI),
    "anthropic": (AnthropicServer, ChatAnthropic),
    "google": (GoogleServer, ChatGoogleGenerativeAI),
    "ollama": (OllamaServer, ChatOllama),
}


def model_of(name: str, server: Any, **fields: Any) -> Any:
    """A model of a server, which waits for no further attempt."""
    key = {} if name == "ollama" else {"api_key": "key"}
    return VENDORS[name][1](**{"model": f"model-{name}", "base_url": server.url, "retry": {"wait_scale": 0}, **key, **fields})
