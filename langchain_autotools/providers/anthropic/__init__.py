"""Anthropic's Messages API, and every server that speaks it. Importing this package loads no SDK."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .chat_model import ChatAnthropic
    from .mapper import MessagesMapper

__all__ = ["ChatAnthropic", "MessagesMapper"]


def __getattr__(name: str) -> Any:
    if name == "ChatAnthropic":
        from .chat_model import ChatAnthropic

        return ChatAnthropic
    if name == "MessagesMapper":
        from .mapper import MessagesMapper

        return MessagesMapper
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
