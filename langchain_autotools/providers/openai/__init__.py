"""OpenAI and every server that speaks its wires. Importing this package loads no SDK."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .chat_completions import ChatCompletionsMapper
    from .chat_model import ChatOpenAI

__all__ = ["ChatCompletionsMapper", "ChatOpenAI"]


def __getattr__(name: str) -> Any:
    if name == "ChatOpenAI":
        from .chat_model import ChatOpenAI

        return ChatOpenAI
    if name == "ChatCompletionsMapper":
        from .chat_completions import ChatCompletionsMapper

        return ChatCompletionsMapper
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
