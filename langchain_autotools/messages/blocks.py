"""Content blocks that are calls of tools or their results, in LangChain's forms and the vendors'.

The calls of a message stand in `tool_calls`; a block says where they were written, or repeats them. Calls that the vendor executes
itself (`server_tool_call`, `server_tool_use`, ...) are none of these: they stay content.
"""

from collections.abc import Mapping
from typing import Any, TypeGuard

STANDARD_CALLS = frozenset({"tool_call", "tool_call_chunk", "invalid_tool_call"})
"""LangChain's own."""

_WHOLE_CALLS = frozenset({"tool_call", "tool_use", "function_call"})

NAMED_CALLS = STANDARD_CALLS | _WHOLE_CALLS
"""Those that have an id and a name."""

CALL_BLOCKS = NAMED_CALLS | {"input_json_delta"}
"""All of them, the fragments of a stream too."""


def is_call_block(block: object) -> TypeGuard[dict[str, Any]]:
    """Whether a content block is a call, or a part of one."""
    return isinstance(block, dict) and block.get("type") in CALL_BLOCKS


def holds_call(block: object) -> TypeGuard[dict[str, Any]]:
    """Whether a content block is a whole call: one that may stand in content alone, in a message of a program for a vendor's client."""
    return isinstance(block, Mapping) and block.get("type") in _WHOLE_CALLS


def is_result_block(block: object) -> TypeGuard[dict[str, Any]]:
    """Whether a content block is the result of a call: in Anthropic's form results stand in the content of the user's message."""
    return isinstance(block, dict) and block.get("type") == "tool_result"
