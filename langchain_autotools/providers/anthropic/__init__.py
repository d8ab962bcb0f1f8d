"""Anthropic's Messages API, of every server that speaks it. Importing this package loads no SDK."""

from typing import TYPE_CHECKING

from .._base import lazy

if TYPE_CHECKING:
    from .chat_model import ChatAnthropic
    from .mapper import MessagesMapper

__all__ = ["ChatAnthropic", "MessagesMapper"]

__getattr__ = lazy(__name__, {"ChatAnthropic": f"{__name__}.chat_model", "MessagesMapper": f"{__name__}.mapper"}.get)
