"""LangChain chat models that run their own tools.

Importing this package imports no vendor SDK: every name below is loaded when it is first used.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__ as __version__

if TYPE_CHECKING:  # what `_HOMES` says, for type checkers, which read no tables
    from .agent import Agent as Agent, AgentResult as AgentResult
    from .claim_database import claims as claims
    from .errors import (
        AlreadyResumedError as AlreadyResumedError,
        AutoToolsError as AutoToolsError,
        CallsPendingError as CallsPendingError,
        ConfigurationError as ConfigurationError,
        DecisionProblem as DecisionProblem,
        DecisionsError as DecisionsError,
        EventsInterruptedError as EventsInterruptedError,
        LimitReachedError as LimitReachedError,
        LoginError as LoginError,
        LoginNeededError as LoginNeededError,
        StreamError as StreamError,
        UnsupportedFeatureError as UnsupportedFeatureError,
    )
    from .event_types import (
        CallArgumentsDelta as CallArgumentsDelta,
        CallDiscarded as CallDiscarded,
        CallProgress as CallProgress,
        CallReady as CallReady,
        CallResult as CallResult,
        CallStarted as CallStarted,
        CallsPending as CallsPending,
        FileMade as FileMade,
        MessageDiscarded as MessageDiscarded,
        MessageDone as MessageDone,
        MessagesAdded as MessagesAdded,
        ModelChanged as ModelChanged,
        ReasoningDelta as ReasoningDelta,
        RunEnded as RunEnded,
        RunEvent as RunEvent,
        RunFailed as RunFailed,
        RunStarted as RunStarted,
        SourceFound as SourceFound,
        TextDelta as TextDelta,
        TurnUsage as TurnUsage,
        VendorCallDone as VendorCallDone,
        VendorCallProgress as VendorCallProgress,
        VendorCallStarted as VendorCallStarted,
        partial_arguments as partial_arguments,
    )
    from .executor import (
        Decision as Decision,
        OutcomeUnknownError as OutcomeUnknownError,
        PendingCall as PendingCall,
        ToolCallResult as ToolCallResult,
        ToolContext as ToolContext,
        ToolExecutor as ToolExecutor,
        ToolPolicy as ToolPolicy,
        pending_calls as pending_calls,
        raw_functions as raw_functions,
        serialize_result as serialize_result,
    )
    from .executor.handlers import Handler as Handler
    from .event_reader import aevents as aevents, events as events
    from .history import explain as explain, repair as repair, validate as validate
    from .history.expansion import join_generations as join_generations, split_generations as split_generations
    from .mixin import ToolRunningModel as ToolRunningModel, with_tools as with_tools
    from .mcp_client import McpServer as McpServer, mcp_server as mcp_server
    from .messages.calls import ToolCallRecord as ToolCallRecord, calls_of as calls_of
    from .messages.run_messages import (
        final_message as final_message,
        new_messages as new_messages,
        results_of as results_of,
        run_usage as run_usage,
    )
    from .messages.run_messages import max_turns_reached as max_turns_reached, stop_reason as stop_reason
    from .messages.display import markdown_of as markdown_of
    from .messages.metadata import text_of as text_of
    from .messages.run_messages import StopReason as StopReason
    from .mixin import ToolsAndMessagesMixin as ToolsAndMessagesMixin
    from .pricing import RunCost as RunCost, TurnCost as TurnCost, run_cost as run_cost
    from .providers._base.errors import ProviderError as ProviderError
    from .providers._base.errors import ModelRefusalError as ModelRefusalError
    from .providers.anthropic import ChatAnthropic as ChatAnthropic
    from .providers.google import ChatGoogleGenerativeAI as ChatGoogleGenerativeAI
    from .providers.local import ChatLocal as ChatLocal
    from .providers.ollama import ChatOllama as ChatOllama
    from .providers.openai import AzureChatOpenAI as AzureChatOpenAI, ChatOpenAI as ChatOpenAI
    from .providers.presets.cohere import ChatCohere as ChatCohere
    from .providers.presets.deepseek import ChatDeepSeek as ChatDeepSeek
    from .providers.presets.fireworks import ChatFireworks as ChatFireworks
    from .providers.presets.groq import ChatGroq as ChatGroq
    from .providers.presets.mistralai import ChatMistralAI as ChatMistralAI
    from .providers.presets.openrouter import ChatOpenRouter as ChatOpenRouter
    from .providers.presets.together import ChatTogether as ChatTogether
    from .providers.presets.xai import ChatXAI as ChatXAI
    from .providers.registry import init_chat_model as init_chat_model
    from .providers.results import (
        format_for_anthropic as format_for_anthropic,
        format_for_google as format_for_google,
        format_for_ollama as format_for_ollama,
        format_for_openai as format_for_openai,
    )
    from .retry import RetryPolicy as RetryPolicy
    from .run.before_turn import NextTurn as NextTurn
    from .run.failover import FirstToken as FirstToken
    from .run.history_editing import (
        add_assistant_tool_calls as add_assistant_tool_calls,
        add_tool_calls_and_results as add_tool_calls_and_results,
    )
    from .run.loop import RunSoFar as RunSoFar
    from .showing import show as show

_HOMES = {
    "agent": (
        "Agent",
        "AgentResult",
    ),
    "claim_database": ("claims",),
    "errors": (
        "AlreadyResumedError",
        "AutoToolsError",
        "CallsPendingError",
        "ConfigurationError",
        "DecisionProblem",
        "DecisionsError",
        "EventsInterruptedError",
        "LimitReachedError",
        "LoginError",
        "LoginNeededError",
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
        "FileMade",
        "MessageDiscarded",
        "MessageDone",
        "MessagesAdded",
        "ModelChanged",
        "ReasoningDelta",
        "RunEnded",
        "RunEvent",
        "RunFailed",
        "RunStarted",
        "SourceFound",
        "TextDelta",
        "TurnUsage",
        "VendorCallDone",
        "VendorCallProgress",
        "VendorCallStarted",
        "partial_arguments",
    ),
    "executor": (
        "Decision",
        "OutcomeUnknownError",
        "PendingCall",
        "ToolCallResult",
        "ToolContext",
        "ToolExecutor",
        "ToolPolicy",
        "pending_calls",
        "raw_functions",
        "serialize_result",
    ),
    "executor.handlers": ("Handler",),
    "event_reader": (
        "aevents",
        "events",
    ),
    "history": (
        "explain",
        "repair",
        "validate",
    ),
    "mixin": (
        "ToolRunningModel",
        "ToolsAndMessagesMixin",
        "with_tools",
    ),
    "history.expansion": (
        "join_generations",
        "split_generations",
    ),
    "messages.calls": (
        "ToolCallRecord",
        "calls_of",
    ),
    "messages.run_messages": (
        "StopReason",
        "final_message",
        "max_turns_reached",
        "new_messages",
        "results_of",
        "run_usage",
        "stop_reason",
    ),
    "messages.display": ("markdown_of",),
    "messages.metadata": ("text_of",),
    "mcp_client": (
        "McpServer",
        "mcp_server",
    ),
    "pricing": (
        "RunCost",
        "TurnCost",
        "run_cost",
    ),
    "providers._base.errors": (
        "ModelRefusalError",
        "ProviderError",
    ),
    "providers.anthropic": ("ChatAnthropic",),
    "providers.google": ("ChatGoogleGenerativeAI",),
    "providers.local": ("ChatLocal",),
    "providers.ollama": ("ChatOllama",),
    "providers.openai": (
        "AzureChatOpenAI",
        "ChatOpenAI",
    ),
    "providers.presets.cohere": ("ChatCohere",),
    "providers.presets.deepseek": ("ChatDeepSeek",),
    "providers.presets.fireworks": ("ChatFireworks",),
    "providers.presets.groq": ("ChatGroq",),
    "providers.presets.mistralai": ("ChatMistralAI",),
    "providers.presets.openrouter": ("ChatOpenRouter",),
    "providers.presets.together": ("ChatTogether",),
    "providers.presets.xai": ("ChatXAI",),
    "providers.results": (
        "format_for_anthropic",
        "format_for_google",
        "format_for_ollama",
        "format_for_openai",
    ),
    "run.before_turn": ("NextTurn",),
    "run.failover": ("FirstToken",),
    "run.history_editing": (
        "add_assistant_tool_calls",
        "add_tool_calls_and_results",
    ),
    "run.loop": ("RunSoFar",),
    "providers.registry": ("init_chat_model",),
    "retry": ("RetryPolicy",),
    "showing": ("show",),
}
"""Where each public name is defined."""
_HOME = {name: home for home, names in _HOMES.items() for name in names}

if not TYPE_CHECKING:
    __all__ = [*_HOME, "__version__"]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


if "IPython" in sys.modules:
    from .messages.display import show_runs

    show_runs()


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
