"""Executing tool calls: one call, a batch, order, timeouts, callbacks."""

from .async_batch import AsyncToolCallBatch
from .context import ToolContext
from .executor import OnExecuted, OnExecuting, OnProgress, ToolExecutor, checked_concurrency, checked_listener, checked_seconds
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
    "ToolCallBatch",
    "ToolCallResult",
    "ToolContext",
    "ToolExecutor",
    "check_signature",
    "checked_concurrency",
    "checked_listener",
    "checked_seconds",
    "dump_tools",
    "restore_tools",
    "tool_inside",
]
