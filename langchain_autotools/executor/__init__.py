"""Execution of tool calls, single or in batches: their order, their time, their callbacks."""

from .batch_drivers import AsyncToolCallBatch, ToolCallBatch
from .context import ToolContext
from .executor import OnExecuted, OnExecuting, OnProgress, ToolExecutor
from .pending import Decision, PendingCall, pending_calls
from .policies import ToolPolicy
from .results import OutcomeUnknownError, ToolCallResult, serialize_result
from .tools import raw_functions

__all__ = [
    "AsyncToolCallBatch",
    "Decision",
    "OnExecuted",
    "OnExecuting",
    "OnProgress",
    "OutcomeUnknownError",
    "PendingCall",
    "ToolCallBatch",
    "ToolCallResult",
    "ToolContext",
    "ToolExecutor",
    "ToolPolicy",
    "pending_calls",
    "raw_functions",
    "serialize_result",
]
