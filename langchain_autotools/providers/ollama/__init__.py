"""Ollama's own chat protocol, of every server that speaks it. Importing this package loads neither the SDK nor its HTTP library."""

from typing import TYPE_CHECKING

from .._base import lazy

if TYPE_CHECKING:
    from .chat_model import ChatOllama
    from .mapper import OllamaMapper

__all__ = ["ChatOllama", "OllamaMapper"]

__getattr__ = lazy(__name__, {"ChatOllama": f"{__name__}.chat_model", "OllamaMapper": f"{__name__}.mapper"}.get)
