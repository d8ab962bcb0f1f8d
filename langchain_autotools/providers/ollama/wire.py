"""The shape of a reply of /api/chat, as far as it is read. Any key may be absent."""

from typing import Any, TypedDict

__all__ = ["ReplyMessage"]


class ReplyMessage(TypedDict, total=False):
    """The message in an event: a piece of the reply, or with whole bodies all of it."""

    role: str
    content: str | None
    thinking: str | None
    tool_calls: list[dict[str, Any]] | None
