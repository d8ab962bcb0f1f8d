"""Types of /api/chat: messages, tools, and the read part of replies. (The SDK has classes for them.)"""

from typing import Any, Literal, Required, TypedDict

from .._encode.functions import Function


class Message(TypedDict, total=False):
    """A message of a request, without its calls, which are appended as JSON."""

    role: Required[str]
    content: Required[str]
    thinking: str
    images: list[str]
    tool_name: str
    tool_call_id: str


class Tool(TypedDict):
    """A declared tool; in a choice, the named one."""

    type: Literal["function"]
    function: Function


Choice = str | Tool
"""A tool choice: "auto", "none", "required", or the tool to call."""


class ReplyMessage(TypedDict, total=False):
    """The message in an event: an increment of the reply, or the whole reply. Any key may be absent."""

    role: str
    content: str | None
    images: list[str] | None
    thinking: str | None
    tool_calls: list[dict[str, Any]] | None
