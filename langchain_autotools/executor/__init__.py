"""Executing tool calls: one call, a batch, order, timeouts, callbacks."""

from .approvals import Approvals, portable_key
from .async_batch import AsyncToolCallBatch
from .checks import OnExecuted, OnExecuting, OnProgress, checked_concurrency, checked_listener, checked_seconds
from .context import ToolContext
from .executor import ToolExecutor
from .identity import CallIdentity, identities
from .nested_runs import inside
from .pending import (
    ON_CLIENT,
    Decision,
    PendingCall,
    by_position,
    caller_digest,
    check_ids,
    check_offered,
    digest_of,
    edited,
    pending_calls,
    read_decisions,
)
from .policies import Policies, ToolPolicy, joined_timeout
from .raw_functions import raw_functions
from .results import ToolCallResult
from .serialized import serialize_result
from .signatures import check_signature
from .sync_batch import ToolCallBatch
from .tools import dump_tools, restore_tools
from .wrapped import tool_inside

__all__ = [
    "ON_CLIENT",
    "Approvals",
    "AsyncToolCallBatch",
    "CallIdentity",
    "Decision",
    "OnExecuted",
    "OnExecuting",
    "OnProgress",
    "PendingCall",
    "Policies",
    "ToolCallBatch",
    "ToolCallResult",
    "ToolContext",
    "ToolExecutor",
    "ToolPolicy",
    "by_position",
    "caller_digest",
    "check_ids",
    "check_offered",
    "check_signature",
    "checked_concurrency",
    "checked_listener",
    "checked_seconds",
    "digest_of",
    "dump_tools",
    "edited",
    "identities",
    "inside",
    "joined_timeout",
    "pending_calls",
    "portable_key",
    "raw_functions",
    "read_decisions",
    "restore_tools",
    "serialize_result",
    "tool_inside",
]
