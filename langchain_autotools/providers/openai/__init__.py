"""OpenAI and every server that speaks its wires. Importing this package loads no SDK."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .azure import AzureChatOpenAI
    from .chat_completions import ChatCompletionsMapper
    from .chat_model import ChatOpenAI
    from .dialect import Dialect, IdShape
    from .parameters import Environment
    from .preset import Preset, PresetChatModel

__all__ = ["AzureChatOpenAI", "ChatCompletionsMapper", "ChatOpenAI", "Dialect", "Environment", "IdShape", "Preset", "PresetChatModel"]

_HOMES = {
    "AzureChatOpenAI": "azure",
    "ChatCompletionsMapper": "chat_completions",
    "ChatOpenAI": "chat_model",
    "Dialect": "dialect",
    "Environment": "parameters",
    "IdShape": "dialect",
    "Preset": "preset",
    "PresetChatModel": "preset",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
