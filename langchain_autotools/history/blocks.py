"""Calls and results that exist only in content blocks, as programs for Anthropic's or OpenAI's own client write them.

There the assistant's content holds the calls (`tool_use`, `function_call`) and the user's content their results (`tool_result`).
LangChain makes messages of such dicts without looking into their blocks, so that `tool_calls` is empty. Here they become what they
say: calls of the message, and tool messages.
"""

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from ..messages.blocks import holds_call, is_result_block
from .normalize import call_entry, with_calls
from .pairing import Finding, Item, Problem, says_in_blocks


def read_blocks(items: list[Item]) -> Finding:
    """Convert calls and results that exist only in content blocks to LangChain's fields and messages."""
    read: list[Item] = []
    problems: list[Problem] = []
    for source, message in items:
        if not says_in_blocks(message):
            read.append((source, message))
        elif isinstance(message, AIMessage):
            read.append((source, with_calls(message, [_call_in(block) for block in message.content if holds_call(block)])))
            problems.append(Problem(source, "call_in_content", "calls that stand in its content alone; they are read from there"))
        else:
            read += [(source, part) for part in _results_and_rest(message)]
            problems.append(Problem(source, "result_in_content", "results of calls in its content; each becomes a tool message"))
    return (read if problems else items), problems


def _call_in(block: Mapping[str, Any]) -> dict[str, Any]:
    raw = next((block[key] for key in ("input", "args", "arguments") if block.get(key)), block.get("partial_json") or {})
    return call_entry(str(block.get("name") or ""), raw, str(block.get("call_id") or block.get("id") or ""))


def _results_and_rest(message: BaseMessage) -> list[BaseMessage]:
    """Return the results in a message as tool messages, followed by its other content."""
    results: list[BaseMessage] = [_tool_message(block, message) for block in message.content if is_result_block(block)]
    rest = [block for block in message.content if not is_result_block(block)]
    return [*results, *([message.model_copy(update={"content": rest})] if rest and isinstance(message, HumanMessage) else [])]


def _tool_message(block: Mapping[str, Any], message: BaseMessage) -> ToolMessage:
    content, mark = block.get("content") or "", block.get("cache_control")
    content = content if isinstance(content, str | list) else str(content)
    if mark:  # also on a result without content
        blocks: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        last = blocks[-1] if isinstance(blocks[-1], dict) else {"type": "text", "text": str(blocks[-1])}
        content = [*blocks[:-1], {**last, "cache_control": mark}]
    failed = block.get("is_error") or getattr(message, "status", None) == "error"
    identifier = block.get("tool_use_id") or getattr(message, "tool_call_id", "")
    return ToolMessage(content=content, tool_call_id=str(identifier), name=message.name, status="error" if failed else "success")
