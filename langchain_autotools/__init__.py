"""LangChain chat models that run their own tools.

Importing this package imports no vendor SDK: every name below is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from .errors import AutoToolsError, ConfigurationError, LimitReachedError, StreamError, UnsupportedFeatureError
    from .executor import ToolCallResult, ToolExecutor
    from .history import explain, repair, validate
    from .limits import StopReason
    from .messages import calls_of, final_message, new_messages, run_usage, text_of
    from .mixin import ToolsAndMessagesMixin
    from .providers._errors import ProviderError
    from .providers._refusal import ModelRefusalError
    from .providers.anthropic import ChatAnthropic
    from .providers.cohere import ChatCohere
    from .providers.deepseek import ChatDeepSeek
    from .providers.fireworks import ChatFireworks
    from .providers.google import ChatGoogleGenerativeAI
    from .providers.groq import ChatGroq
    from .providers.local import ChatLocal
    from .providers.mistralai import ChatMistralAI
    from .providers.ollama import ChatOllama
    from .providers.openai import AzureChatOpenAI, ChatOpenAI
    from .providers.openrouter import ChatOpenRouter
    from .providers.registry import init_chat_model
    from .providers.together import ChatTogether
    from .providers.xai import ChatXAI
    from .retry import RetryPolicy

__all__ = [  # noqa: RUF022 - grouped for readers
    # Chat models
    "AzureChatOpenAI",
    "ChatAnthropic",
    "ChatCohere",
    "ChatDeepSeek",
    "ChatFireworks",
    "ChatGoogleGenerativeAI",
    "ChatGroq",
    "ChatLocal",
    "ChatMistralAI",
    "ChatOllama",
    "ChatOpenAI",
    "ChatOpenRouter",
    "ChatTogether",
    "ChatXAI",
    "ToolsAndMessagesMixin",
    "init_chat_model",
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
    "ProviderError",
    "StreamError",
    "UnsupportedFeatureError",
    # The version of this package
    "__version__",
]

_HOMES = {
    "errors": ("AutoToolsError", "ConfigurationError", "LimitReachedError", "StreamError", "UnsupportedFeatureError"),
    "executor": ("ToolCallResult", "ToolExecutor"),
    "history": ("explain", "repair", "validate"),
    "limits": ("StopReason",),
    "messages": ("calls_of", "final_message", "new_messages", "run_usage", "text_of"),
    "mixin": ("ToolsAndMessagesMixin",),
    "providers._errors": ("ProviderError",),
    "providers._refusal": ("ModelRefusalError",),
    "providers.anthropic": ("ChatAnthropic",),
    "providers.cohere": ("ChatCohere",),
    "providers.deepseek": ("ChatDeepSeek",),
    "providers.fireworks": ("ChatFireworks",),
    "providers.google": ("ChatGoogleGenerativeAI",),
    "providers.groq": ("ChatGroq",),
    "providers.local": ("ChatLocal",),
    "providers.mistralai": ("ChatMistralAI",),
    "providers.ollama": ("ChatOllama",),
    "providers.openai": ("AzureChatOpenAI", "ChatOpenAI"),
    "providers.openrouter": ("ChatOpenRouter",),
    "providers.registry": ("init_chat_model",),
    "providers.together": ("ChatTogether",),
    "providers.xai": ("ChatXAI",),
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
