"""Executing tool calls: one call, a batch, order, timeouts, callbacks."""

from .async_batch import AsyncToolCallBatch
from .executor import OnExecuted, OnExecuting, ToolExecutor, checked_concurrency, checked_listener, checked_seconds
from .results import ToolCallResult
from .signatures import check_signature
from .sync_batch import ToolCallBatch
from .tools import dump_tools, restore_tools
from .wrapped import tool_inside

__all__ = [
    "AsyncToolCallBatch",
    "OnExecuted",
    "OnExecuting",
    "ToolCallBatch",
    "ToolCallResult",
    "ToolExecutor",
    "check_signature",
    "checked_concurrency",
    "checked_listener",
    "checked_seconds",
    "dump_tools",
    "restore_tools",
    "tool_inside",
]
