"""LangChain chat models that run their own tools.

Importing this package imports no vendor SDK: every name below is loaded when it is first used. Type checkers read `__init__.pyi`, which
`python -m tests.stub --write` makes from the two tables.
"""

import sys
import warnings
from importlib import import_module
from typing import Any

from ._version import __version__ as __version__

_HOMES = {
    "agent": "Agent",
    "claim_database": "claims",
    "errors": (
        "AlreadyResumedError AutoToolsError CallsPendingError ConfigurationError DecisionsError EventsInterruptedError "
        "LimitReachedError LoginError LoginNeededError StreamError UnsupportedFeatureError"
    ),
    "executor": "Decision OutcomeUnknownError PendingCall ToolCallResult ToolContext ToolExecutor ToolPolicy pending_calls",
    "executor.handlers": "Handler",
    "event_reader": "aevents events",
    "history": "repair validate",
    "mixin": "ToolsAndMessagesMixin with_tools",
    "messages.calls": "ToolCallRecord calls_of",
    "messages.run_messages": "final_message new_messages results_of run_usage stop_reason",
    "messages.display": "markdown_of",
    "mcp_client": "McpServer mcp_server",
    "pricing": "run_cost",
    "providers._base.errors": "ModelRefusalError ProviderError",
    "providers.anthropic": "ChatAnthropic",
    "providers.google": "ChatGoogleGenerativeAI",
    "providers.local": "ChatLocal",
    "providers.ollama": "ChatOllama",
    "providers.openai": "AzureChatOpenAI ChatOpenAI",
    "providers.presets.cohere": "ChatCohere",
    "providers.presets.deepseek": "ChatDeepSeek",
    "providers.presets.fireworks": "ChatFireworks",
    "providers.presets.groq": "ChatGroq",
    "providers.presets.mistralai": "ChatMistralAI",
    "providers.presets.openrouter": "ChatOpenRouter",
    "providers.presets.together": "ChatTogether",
    "providers.presets.xai": "ChatXAI",
    "run.compaction": "Compaction",
    "run.failover": "FirstToken",
    "run.history_editing": "add_assistant_tool_calls add_tool_calls_and_results",
    "run.loop": "RunSoFar",
    "run.middleware": "NextTurn",
    "providers.registry": "init_chat_model",
    "retry": "RetryPolicy",
    "showing": "show",
}
"""The public names by the module that defines them."""
_MOVED = {
    "agent": "AgentResult",
    "errors": "DecisionProblem",
    "event_types": (
        "CallArgumentsDelta CallDiscarded CallProgress CallReady CallResult CallStarted CallsPending FileMade MessageDiscarded "
        "MessageDone MessagesAdded ModelChanged ReasoningDelta RunEnded RunEvent RunFailed RunStarted SourceFound TextDelta "
        "TurnUsage VendorCallDone VendorCallProgress VendorCallStarted partial_arguments"
    ),
    "executor": "raw_functions serialize_result",
    "history": "explain join_generations split_generations",
    "messages": "StopReason max_turns_reached text_of",
    "mixin": "ToolRunningModel",
    "pricing": "RunCost TurnCost",
    "providers.results": "format_for_anthropic format_for_google format_for_ollama format_for_openai",
}
"""Names that were public here in 0.1, by the module to import them from. Here they are deprecated."""

_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}
_FORMER = {name: home for home, names in _MOVED.items() for name in names.split()}
__all__ = [*_HOME, "__version__"]


def __getattr__(name: str) -> Any:
    if former := _FORMER.get(name):
        place = f"{__name__}.{former}"
        warnings.warn(f"import {name} from {place}: {__name__}.{name} will go", DeprecationWarning, stacklevel=2)
        return getattr(import_module(place), name)
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})


if "IPython" in sys.modules:
    from .messages.display import show_runs

    show_runs()
