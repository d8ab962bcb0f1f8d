"""What a vendor's wire must be able to do: the protocol between a chat model and its mapper.

A mapper is stateless: one serves any number of streams at once. The state of one stream is in its `StreamDecoder`. Both work
on plain data and do no I/O. Chunks are *raw*: text is `content`, fragments of tool calls are the wire's own dicts in
`additional_kwargs["tool_calls"]`, everything that may be said only once (ids, usage, metadata) comes with `finish`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata

from ..choices import ToolChoice

__all__ = ["Mapper", "StreamDecoder"]


class StreamDecoder(Protocol):
    """Reads the events of one streamed reply.

    Attributes:
        ended: Whether the wire's own end marker has come, where that is one of its events; that event brings no chunk, unless it is a
            whole body. Always false where the end is marked otherwise.
        complete: Whether anything has come by which the wire says that the reply is at its end.
    """

    ended: bool

    @property
    def complete(self) -> bool: ...

    def feed(self, event: Mapping[str, Any]) -> AIMessageChunk | None:
        """Take one event; returns what it brings, or None. An error in the stream is raised."""
        ...

    def done(self) -> None:
        """Note that the wire's own end marker has come."""
        ...

    def finish(self) -> AIMessageChunk:
        """What is said once, at the end. A stream without its end says so: `finish_reason` is "incomplete"."""
        ...


class Mapper(Protocol):
    """Translates between LangChain's messages and tools and one vendor's JSON."""

    def encode_request(self, messages: Sequence[BaseMessage], params: Mapping[str, Any]) -> bytes:
        """The body of a request. `params` are already in the wire's names."""
        ...

    def encode_message(self, message: BaseMessage) -> bytes:
        """One message as it would stand in a request, alone."""
        ...

    def decode_body(self, body: Mapping[str, Any]) -> AIMessageChunk:
        """A whole reply as one raw chunk."""
        ...

    def stream_decoder(self) -> StreamDecoder:
        """A decoder for one stream."""
        ...

    def format_tool(self, tool: Any, *, strict: bool | None = None) -> dict[str, Any]:
        """A tool as this wire declares it."""
        ...

    def format_tool_choice(self, choice: Any, tools: Sequence[Mapping[str, Any]]) -> Any:
        """A tool choice as this wire says it; None: say nothing."""
        ...

    def read_tool_choice(self, choice: Any) -> ToolChoice:
        """What a choice that `format_tool_choice` gave means for a run."""
        ...

    def usage(self, usage: Mapping[str, Any], service_tier: str | None = None) -> UsageMetadata:
        """The wire's token counts in LangChain's terms."""
        ...
