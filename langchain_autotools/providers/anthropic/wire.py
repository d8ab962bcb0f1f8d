"""Types of the Messages API: requests as they are written, replies as they are read.

Of a reply any key may be absent, and gateways add others. (The SDK's own types name fewer media types than servers take.)
"""

from typing import TYPE_CHECKING, Any, Literal, Required, TypedDict

if TYPE_CHECKING:
    from anthropic.types import CacheControlEphemeralParam, CitationsConfigParam


class Text(TypedDict, total=False):
    """A text in a request."""

    type: Required[Literal["text"]]
    text: Required[str]
    citations: list[Any]
    cache_control: "CacheControlEphemeralParam"


class MediaSource(TypedDict, total=False):
    """The source of an image's or document's data."""

    type: Required[Literal["base64", "url", "file", "text", "content"]]
    media_type: str
    data: str
    url: str
    file_id: str
    content: Any


class Media(TypedDict, total=False):
    """An image or a document in a request."""

    type: Required[Literal["image", "document"]]
    source: Required[MediaSource]
    title: str
    context: str
    citations: "CitationsConfigParam"
    transformations: Any
    cache_control: "CacheControlEphemeralParam"


Part = Text | Media | dict[str, Any]
"""A content block of a request; a dict is one of the wire's own blocks and is sent unchanged."""


class ToolResult(TypedDict, total=False):
    """The result of a call in a request."""

    type: Required[Literal["tool_result"]]
    tool_use_id: Required[str]
    content: Required[str | list[Part]]
    is_error: bool
    toolset_name: str
    cache_control: "CacheControlEphemeralParam"


class ContentBlock(TypedDict, total=False):
    """A content block at its start."""

    type: str
    id: str | None
    name: str | None
    text: str | None
    citations: list[Any] | None
    thinking: str | None
    signature: str | None
    input: Any


class Delta(TypedDict, total=False):
    """An increment of a content block."""

    type: str
    text: str | None
    citation: Any
    thinking: str | None
    signature: str | None
    partial_json: str | None


class Message(TypedDict, total=False):
    """A whole message, its head, or the fields of `message_delta`."""

    id: str | None
    model: str | None
    content: list[ContentBlock] | None
    stop_reason: str | None
    stop_sequence: str | None
