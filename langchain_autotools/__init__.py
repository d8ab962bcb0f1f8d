"""LangChain chat models that run their own tools.

Importing this package imports no vendor SDK: every name below is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import AutoToolsError, ConfigurationError, LimitReachedError, StreamError, UnsupportedFeatureError
    from .executor import ToolCallResult, ToolExecutor
    from .history import explain, repair, validate
    from .limits import StopReason
    from .messages import calls_of, final_message, new_messages, run_usage, text_of
    from .mixin import ToolsAndMessagesMixin
    from .providers._refusal import ModelRefusalError
    from .providers.anthropic import ChatAnthropic
    from .providers.google import ChatGoogleGenerativeAI
    from .providers.local import ChatLocal
    from .providers.ollama import ChatOllama
    from .providers.openai import ChatOpenAI
    from .retry import RetryPolicy

__all__ = [  # noqa: RUF022 - grouped for readers
    # Chat models
    "ChatAnthropic",
    "ChatGoogleGenerativeAI",
    "ChatLocal",
    "ChatOllama",
    "ChatOpenAI",
    "ToolsAndMessagesMixin",
    # The messages of a run
    "calls_of",
    "final_message",
    "new_messages",
    "run_usage",
    "text_of",
    # Histories
    "explain",
    "repair",
    "validate",
    # Tools
    "ToolCallResult",
    "ToolExecutor",
    # Policies and limits
    "RetryPolicy",
    "StopReason",
    # Errors
    "AutoToolsError",
    "ConfigurationError",
    "LimitReachedError",
    "ModelRefusalError",
    "StreamError",
    "UnsupportedFeatureError",
]

_HOMES = {
    "errors": ("AutoToolsError", "ConfigurationError", "LimitReachedError", "StreamError", "UnsupportedFeatureError"),
    "executor": ("ToolCallResult", "ToolExecutor"),
    "history": ("explain", "repair", "validate"),
    "limits": ("StopReason",),
    "messages": ("calls_of", "final_message", "new_messages", "run_usage", "text_of"),
    "mixin": ("ToolsAndMessagesMixin",),
    "providers._refusal": ("ModelRefusalError",),
    "providers.anthropic": ("ChatAnthropic",),
    "providers.google": ("ChatGoogleGenerativeAI",),
    "providers.local": ("ChatLocal",),
    "providers.ollama": ("ChatOllama",),
    "providers.openai": ("ChatOpenAI",),
    "retry": ("RetryPolicy",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
