"""The shapes of replies of the Messages API, as far as they are read. Any key may be absent, and gateways add others."""

from typing import Any, TypedDict

__all__ = ["ContentBlock", "Delta", "Message"]


class ContentBlock(TypedDict, total=False):
    """A content block as its start says it."""

    type: str
    id: str | None
    name: str | None
    text: str | None
    citations: list[Any] | None
    thinking: str | None
    signature: str | None
    input: Any


class Delta(TypedDict, total=False):
    """A piece of a content block."""

    type: str
    text: str | None
    citation: Any
    thinking: str | None
    signature: str | None
    partial_json: str | None


class Message(TypedDict, total=False):
    """A whole message, or its head, or what `message_delta` says of it."""

    id: str | None
    model: str | None
    content: list[ContentBlock] | None
    stop_reason: str | None
    stop_sequence: str | None
