"""Execution of tool calls: single calls and batches, with order, timeouts and callbacks."""

from .approval.pending import Decision, PendingCall, pending_calls
from .checks import OnExecuted, OnExecuting, OnProgress
from .context import ToolContext
from .executor import ToolExecutor
from .policy.policies import ToolPolicy
from .raw_functions import raw_functions
from .results import ToolCallResult
from .serialized import serialize_result
from .workers.async_batch import AsyncToolCallBatch
from .workers.sync_batch import ToolCallBatch

__all__ = [
    "AsyncToolCallBatch",
    "Decision",
    "OnExecuted",
    "OnExecuting",
    "OnProgress",
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
