"""Types of content blocks for tool calls and results, in the forms of LangChain and the vendors.

The calls of a message stand in `tool_calls`; a block says where they were written, or repeats them. Calls that the vendor executes
itself (`server_tool_call`, `server_tool_use`, ...) are none of these: they stay content.
"""

from collections.abc import Mapping
from typing import Any, TypeGuard

STANDARD_CALLS = frozenset({"tool_call", "tool_call_chunk", "invalid_tool_call"})
"""LangChain's own types of call blocks."""

_WHOLE_CALLS = frozenset({"tool_call", "tool_use", "function_call"})

NAMED_CALLS = STANDARD_CALLS | _WHOLE_CALLS
"""Types of call blocks with an id and a name."""

CALL_BLOCKS = NAMED_CALLS | {"input_json_delta"}
"""All types of call blocks, including fragments of a stream."""


def is_call_block(block: object) -> TypeGuard[dict[str, Any]]:
    """Whether a content block is a call or a fragment of one."""
    return isinstance(block, dict) and block.get("type") in CALL_BLOCKS


def holds_call(block: object) -> TypeGuard[dict[str, Any]]:
    """Whether a content block is a whole call, which programs for a vendor's client store in content alone."""
    return isinstance(block, Mapping) and block.get("type") in _WHOLE_CALLS


def is_result_block(block: object) -> TypeGuard[dict[str, Any]]:
    """Whether a content block is a tool result, which in Anthropic's form belongs to the content of the user's message."""
    return isinstance(block, dict) and block.get("type") == "tool_result"
