"""LangChain chat models that run their own tools.

Importing this package imports no vendor SDK: every name below is loaded when it is first used.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from .agent import Agent, AgentResult
    from .errors import (
        AlreadyResumedError,
        AutoToolsError,
        CallsPendingError,
        ConfigurationError,
        EventsInterruptedError,
        LimitReachedError,
        StreamError,
        UnsupportedFeatureError,
    )
    from .event_types import (
        CallArgumentsDelta,
        CallDiscarded,
        CallProgress,
        CallReady,
        CallResult,
        CallsPending,
        CallStarted,
        MessageDiscarded,
        MessageDone,
        MessagesAdded,
        ReasoningDelta,
        RunEnded,
        RunEvent,
        RunFailed,
        RunStarted,
        TextDelta,
        TurnUsage,
        partial_arguments,
    )
    from .executor import (
        Decision,
        PendingCall,
        ToolCallResult,
        ToolContext,
        ToolExecutor,
        ToolPolicy,
        pending_calls,
        raw_functions,
        serialize_result,
    )
    from .following import aevents, events
    from .history import explain, repair, validate
    from .history.generations import join_generations, split_generations
    from .joined import with_tools
    from .messages.calls import ToolCallRecord, calls_of
    from .messages.carrier import final_message, new_messages, results_of, run_usage
    from .messages.endings import max_turns_reached, stop_reason
    from .messages.markdown import markdown_of
    from .messages.metadata import text_of
    from .messages.stop_reasons import StopReason
    from .mixin import ToolsAndMessagesMixin
    from .providers._base.errors import ProviderError
    from .providers._base.refusal import ModelRefusalError
    from .providers.anthropic import ChatAnthropic
    from .providers.google import ChatGoogleGenerativeAI
    from .providers.local import ChatLocal
    from .providers.ollama import ChatOllama
    from .providers.openai import AzureChatOpenAI, ChatOpenAI
    from .providers.presets.cohere import ChatCohere
    from .providers.presets.deepseek import ChatDeepSeek
    from .providers.presets.fireworks import ChatFireworks
    from .providers.presets.groq import ChatGroq
    from .providers.presets.mistralai import ChatMistralAI
    from .providers.presets.openrouter import ChatOpenRouter
    from .providers.presets.together import ChatTogether
    from .providers.presets.xai import ChatXAI
    from .providers.registry import init_chat_model
    from .providers.results import format_for_anthropic, format_for_google, format_for_ollama, format_for_openai
    from .retry import RetryPolicy
    from .run.by_hand import add_assistant_tool_calls, add_tool_calls_and_results
    from .showing import show

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
    "with_tools",
    "Agent",
    "AgentResult",
    # The messages of a run
    "calls_of",
    "final_message",
    "markdown_of",
    "max_turns_reached",
    "new_messages",
    "results_of",
    "run_usage",
    "stop_reason",
    "text_of",
    # Histories
    "add_assistant_tool_calls",
    "add_tool_calls_and_results",
    "explain",
    "join_generations",
    "repair",
    "split_generations",
    "validate",
    # Tools
    "ToolCallRecord",
    "ToolCallResult",
    "ToolContext",
    "ToolExecutor",
    "format_for_anthropic",
    "format_for_google",
    "format_for_ollama",
    "format_for_openai",
    "raw_functions",
    # Approvals
    "Decision",
    "PendingCall",
    "pending_calls",
    # Events
    "CallArgumentsDelta",
    "CallDiscarded",
    "CallProgress",
    "CallReady",
    "CallResult",
    "CallStarted",
    "CallsPending",
    "MessageDiscarded",
    "MessageDone",
    "MessagesAdded",
    "ReasoningDelta",
    "RunEnded",
    "RunEvent",
    "RunFailed",
    "RunStarted",
    "TextDelta",
    "TurnUsage",
    "aevents",
    "events",
    "partial_arguments",
    "serialize_result",
    "show",
    # Policies and limits
    "RetryPolicy",
    "StopReason",
    "ToolPolicy",
    # Errors
    "AlreadyResumedError",
    "AutoToolsError",
    "CallsPendingError",
    "ConfigurationError",
    "EventsInterruptedError",
    "LimitReachedError",
    "ModelRefusalError",
    "ProviderError",
    "StreamError",
    "UnsupportedFeatureError",
    # The version of this package
    "__version__",
]

_HOMES = {
    "agent": ("Agent", "AgentResult"),
    "errors": (
        "AlreadyResumedError",
        "AutoToolsError",
        "CallsPendingError",
        "ConfigurationError",
        "EventsInterruptedError",
        "LimitReachedError",
        "StreamError",
        "UnsupportedFeatureError",
    ),
    "event_types": (
        "CallArgumentsDelta",
        "CallDiscarded",
        "CallProgress",
        "CallReady",
        "CallResult",
        "CallStarted",
        "CallsPending",
        "MessageDiscarded",
        "MessageDone",
        "MessagesAdded",
        "ReasoningDelta",
        "RunEnded",
        "RunEvent",
        "RunFailed",
        "RunStarted",
        "TextDelta",
        "TurnUsage",
        "partial_arguments",
    ),
    "executor": (
        "Decision",
        "PendingCall",
        "ToolCallResult",
        "ToolContext",
        "ToolExecutor",
        "ToolPolicy",
        "pending_calls",
        "raw_functions",
        "serialize_result",
    ),
    "following": ("aevents", "events"),
    "history": ("explain", "repair", "validate"),
    "joined": ("with_tools",),
    "history.generations": ("join_generations", "split_generations"),
    "messages.calls": ("ToolCallRecord", "calls_of"),
    "messages.carrier": ("final_message", "new_messages", "results_of", "run_usage"),
    "messages.markdown": ("markdown_of",),
    "messages.metadata": ("text_of",),
    "messages.endings": ("max_turns_reached", "stop_reason"),
    "messages.stop_reasons": ("StopReason",),
    "mixin": ("ToolsAndMessagesMixin",),
    "providers._base.errors": ("ProviderError",),
    "providers._base.refusal": ("ModelRefusalError",),
    "providers.anthropic": ("ChatAnthropic",),
    "providers.google": ("ChatGoogleGenerativeAI",),
    "providers.local": ("ChatLocal",),
    "providers.ollama": ("ChatOllama",),
    "providers.openai": ("AzureChatOpenAI", "ChatOpenAI"),
    "providers.presets.cohere": ("ChatCohere",),
    "providers.presets.deepseek": ("ChatDeepSeek",),
    "providers.presets.fireworks": ("ChatFireworks",),
    "providers.presets.groq": ("ChatGroq",),
    "providers.presets.mistralai": ("ChatMistralAI",),
    "providers.presets.openrouter": ("ChatOpenRouter",),
    "providers.presets.together": ("ChatTogether",),
    "providers.presets.xai": ("ChatXAI",),
    "providers.results": ("format_for_anthropic", "format_for_google", "format_for_ollama", "format_for_openai"),
    "run.by_hand": ("add_assistant_tool_calls", "add_tool_calls_and_results"),
    "providers.registry": ("init_chat_model",),
    "retry": ("RetryPolicy",),
    "showing": ("show",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


if "IPython" in sys.modules:
    from .messages.notebook import show_runs

    show_runs()


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
