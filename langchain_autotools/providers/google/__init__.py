"""Google's Gemini API and Vertex AI. Importing this package loads no SDK."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .chat_model import ChatGoogleGenerativeAI
    from .mapper import GenerateContentMapper

__all__ = ["ChatGoogleGenerativeAI", "GenerateContentMapper"]


def __getattr__(name: str) -> Any:
    if name == "ChatGoogleGenerativeAI":
        from .chat_model import ChatGoogleGenerativeAI

        return ChatGoogleGenerativeAI
    if name == "GenerateContentMapper":
        from .mapper import GenerateContentMapper

        return GenerateContentMapper
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
