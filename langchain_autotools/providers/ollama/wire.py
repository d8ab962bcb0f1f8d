"""The shapes of /api/chat: the messages of a request, its tools, and the reply as far as it is read. (The SDK has classes for them.)"""

from typing import Any, Literal, Required, TypedDict

from .._encode.functions import Function


class Message(TypedDict, total=False):
    """A message of a request. Calls, which go back as they were written, follow as JSON."""

    role: Required[str]
    content: Required[str]
    thinking: str
    images: list[str]
    tool_name: str
    tool_call_id: str


class Tool(TypedDict):
    """A declared tool; of a choice the one that is named."""

    type: Literal["function"]
    function: Function


Choice = str | Tool
"""A tool choice: "auto", "none", "required", or the tool that is to be called."""


class ReplyMessage(TypedDict, total=False):
    """The message in an event: a piece of the reply, or with whole bodies all of it. Any key may be absent."""

    role: str
    content: str | None
    thinking: str | None
    tool_calls: list[dict[str, Any]] | None
