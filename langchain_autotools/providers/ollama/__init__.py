"""Ollama's own chat protocol, and every server that speaks it. Importing this package loads neither the SDK nor its HTTP library."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .chat_model import ChatOllama
    from .mapper import OllamaMapper

__all__ = ["ChatOllama", "OllamaMapper"]


def __getattr__(name: str) -> Any:
    if name == "ChatOllama":
        from .chat_model import ChatOllama

        return ChatOllama
    if name == "OllamaMapper":
        from .mapper import OllamaMapper

        return OllamaMapper
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
