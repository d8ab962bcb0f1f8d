"""Executing tool calls: one call, a batch, order, timeouts, callbacks."""

from .async_batch import AsyncToolCallBatch
from .checks import checked_concurrency, checked_listener, checked_seconds
from .context import ToolContext
from .executor import OnExecuted, OnExecuting, OnProgress, ToolExecutor
from .policies import Policies, ToolPolicy, joined_timeout
from .raw_functions import raw_functions
from .results import ToolCallResult
from .signatures import check_signature
from .sync_batch import ToolCallBatch
from .tools import dump_tools, restore_tools
from .wrapped import tool_inside

__all__ = [
    "AsyncToolCallBatch",
    "OnExecuted",
    "OnExecuting",
    "OnProgress",
    "Policies",
    "ToolCallBatch",
    "ToolCallResult",
    "ToolContext",
    "ToolExecutor",
    "ToolPolicy",
    "check_signature",
    "checked_concurrency",
    "checked_listener",
    "checked_seconds",
    "dump_tools",
    "joined_timeout",
    "raw_functions",
    "restore_tools",
    "tool_inside",
]
