"""Decoding of Messages API replies to raw chunks: streams, and whole bodies read as the equivalent stream.

Content is text as long as there can be nothing but text; of requests that may be answered with other blocks (see
`request.may_hold_blocks`) it is a list of the wire's blocks, each numbered by `index`, in the shape that LangChain's partner
package gives them and its core translates to standard blocks. Text and thinking leave as they come, signatures with the end of
their block; what a server tool did leaves whole, as it is sent back whole. A tool call is handed on with its name at its start and
with its arguments at its end, under a number of its own, since gateways use an index twice.

Wire facts (wire quirks C-01 to C-17): blocks may stand in `message_start` already; an index may be missing, begin above 0 or come
twice; a call's input may stand in its start; `content_block_stop` proves nothing, `message_delta` and `message_stop` do.
"""

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessageChunk

from ...chunks import merge_chunks, merge_given, new_chunk
from ...errors import StreamError
from ...event_bus import listening
from ...messages.metadata import KEY
from ...turn.partial_calls import CallPiece, piece_chunk
from .._base.reply_metadata import reply_metadata
from .._encode.json_text import read_object
from .errors import error_from_body
from .usage import merged_usage, usage_metadata
from .wire import ContentBlock, Delta, Message

PROVIDER = "anthropic"
"""The `model_provider` of replies."""

_KINDS = frozenset({"message_start", "content_block_start", "content_block_stop", "message_delta", "message_stop", "message"})
_OF_CALLS = frozenset({"id", "type", "name", "input", "index"})
_OF_MESSAGES = frozenset({"content", "delta", "id", "message", "model", "role", "stop_reason", "stop_sequence", "type", "usage"})
_STREAMED = frozenset({"text", "thinking", "tool_use"})
_KIND_OF_DELTA = {
    "text_delta": "text",
    "citations_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "thinking",
    "input_json_delta": "tool_use",
}


class _Block:
    """A content block that is being written."""

    __slots__ = ("arguments", "kind", "number", "signature", "start", "written")

    def __init__(self, number: int, start: Mapping[str, Any]) -> None:
        self.number = number
        self.kind = str(start.get("type"))
        self.start = start
        self.arguments: list[str] = []
        self.signature = ""
        self.written = False


class MessagesDecoder:
    """Decodes the events of one streamed reply, or one whole reply.

    Args:
        origin: The endpoint and model that reply, kept with what is only theirs to read.
        blocks: Whether content is a list of blocks from the start.
        usage: Whether to say how many tokens were used.

    Attributes:
        ended: Whether the wire's end marker has come.
        in_blocks: Whether content is a list by now.
        message_id: The reply's id, once it is known.
    """

    def __init__(self, *, origin: str = "", blocks: bool = False, usage: bool = True) -> None:
        self.ended = False
        self._origin = origin
        self.in_blocks = blocks
        self._tell_usage = usage
        self._known = False
        self.message_id: str | None = None
        self._model: str | None = None
        self._stop_reason: str | None = None
        self._stop_sequence: str | None = None
        self._said_stop = False
        self._about: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._open: dict[Any, _Block] = {}
        self._numbers = 0
        self._opaque = False
        self._contents: list[int] = []
        self._calls: list[int] = []
        self._watched = listening.get() is not None

    def decode_body(self, body: Mapping[str, Any]) -> AIMessageChunk:
        """Return a whole reply as one raw chunk.

        Raises:
            StreamError: The reply is no message.
            Exception: The reply holds an error; it is raised as the vendor's own.
        """
        if not isinstance(body, Mapping) or ("content" not in body and body.get("type") != "error"):
            raise StreamError(f"the reply is no message but {str(body)[:200]!r}")
        read = self.feed({**body, "type": "message"})
        last = self.finish()
        return last if read is None else merge_chunks([read, last])

    # ------------------------------------------------------------------------------------------ events

    def feed(self, event: Mapping[str, Any]) -> AIMessageChunk | None:
        """Process one event and return its text, thinking, blocks and fragments of calls as a chunk, or None.

        Raises:
            Exception: The event is an error; it is raised as the vendor's own.
        """
        kind = event.get("type")
        if kind == "content_block_delta":
            self._known = True
            return self._delta(event)
        if kind == "error" or event.get("error"):
            raise error_from_body(event.get("error") or event)
        self._known = self._known or kind in _KINDS
        return None if self.ended else self._read(event, kind)

    def done(self) -> None:
        """Record that a whole body has been read to its end."""
        self.ended = True

    @property
    def complete(self) -> bool:
        """Whether the end marker or a stop reason has arrived."""
        return self.ended or self._said_stop

    def _read(self, event: Mapping[str, Any], kind: Any) -> AIMessageChunk | None:
        match kind:
            case "content_block_start":
                return self._start(event.get("index"), event.get("content_block") or ContentBlock())
            case "content_block_stop":
                return self._stop(self._open.pop(event.get("index"), None))
            case "message_start":
                return self._read_message(event.get("message") or Message())
            case "message_delta":
                self._note(event.get("delta") or Message(), event)
                self._said_stop = bool(self._stop_reason)
            case "message_stop":
                self.ended = True
            case "message":  # a whole body, also where a stream was asked for
                self.ended = True
                whole: Any = event
                return self._read_message(whole)
        return None

    def _read_message(self, message: Message) -> AIMessageChunk | None:
        """Read the reply's head, or the whole reply. A second head of the same reply is ignored."""
        if self.message_id is not None and message.get("id") == self.message_id:
            return None
        self.message_id = str(message.get("id") or "") or None
        self._model = str(message.get("model") or "") or None
        self._note(message, message)
        chunks: list[AIMessageChunk | None] = []
        for position, block in enumerate(message.get("content") or ()):
            chunks += [self._start(("whole", position), block), self._stop(self._open.pop(("whole", position), None))]
        return merge_given(*chunks)

    def _note(self, message: Message, event: Mapping[str, Any]) -> None:
        self._stop_reason = message.get("stop_reason") or self._stop_reason
        self._stop_sequence = message.get("stop_sequence") or self._stop_sequence
        self._usage = merged_usage(self._usage, event.get("usage"))
        for key, value in (*event.items(), *message.items()):
            if value is not None:
                self._about[key] = value

    # ------------------------------------------------------------------------------------------ blocks

    def _start(self, index: Any, start: ContentBlock) -> AIMessageChunk | None:
        before = self._stop(self._open.pop(index, None))  # a gateway that never ends its blocks
        block = self._open[index] = _Block(self._numbers, start)
        self._numbers += 1
        if block.kind == "tool_use":
            self._calls.append(len(self._contents))
            self.in_blocks = self.in_blocks or not self._contents  # the call becomes a block
            return merge_given(before, self._call_chunk(block, {"id": start.get("id"), "name": start.get("name"), **_extra(start)}))
        self.in_blocks = self.in_blocks or block.kind != "text"
        if block.kind == "text":
            return merge_given(before, self._text_chunk(block, start.get("text") or "", start.get("citations") or []))
        if block.kind == "thinking":
            block.signature = start.get("signature") or ""
            return merge_given(before, self._thinking_chunk(block, start.get("thinking") or ""))
        return before

    def _delta(self, event: Mapping[str, Any]) -> AIMessageChunk | None:
        delta: Delta = event.get("delta") or Delta()
        index = event.get("index")
        kind = delta.get("type")
        block = self._open.get(index)
        if kind == "text_delta" and block is not None and block.written:
            text = delta.get("text")
            if text.__class__ is str:
                content = [{"type": "text", "text": text, "index": block.number}] if self.in_blocks else text
                return new_chunk(content, {}, self.message_id) if text else None
        if block is None:
            if self.ended or kind not in _KIND_OF_DELTA:
                return None
            return merge_given(self._start(index, {"type": _KIND_OF_DELTA[kind]}), self._delta(event))
        if kind == "text_delta":
            return self._text_chunk(block, delta.get("text") or "", [])
        if kind == "input_json_delta":
            return self._arguments(block, delta.get("partial_json") or "")
        if kind == "thinking_delta":
            return self._thinking_chunk(block, delta.get("thinking") or "")
        if kind == "signature_delta":
            block.signature = delta.get("signature") or block.signature
        elif kind == "citations_delta":
            return self._text_chunk(block, "", [delta.get("citation")])
        else:
            block.start = {**block.start, **{key: value for key, value in delta.items() if key != "type"}}
        return None

    def _stop(self, block: _Block | None) -> AIMessageChunk | None:
        """Return the chunk for the end of a block, with the data that is complete only now."""
        if block is None:
            return None
        if block.kind == "tool_use":
            given = "".join(block.arguments) or block.start.get("input")
            return self._call_chunk(block, {"arguments": given}) if given else None
        if block.kind == "thinking":
            signed = {"signature": block.signature} if block.signature else {}
            return self._content_chunk(block, {"thinking": "", **signed}) if signed or not block.written else None
        if block.kind == "text":
            return None
        return self._server_block_chunk(block)

    def _server_block_chunk(self, block: _Block) -> AIMessageChunk:
        """Return a server tool's block for sending it back unchanged, with its streamed input parsed."""
        content = {key: value for key, value in block.start.items() if key not in ("type", "index")}
        if block.arguments:
            raw = "".join(block.arguments)
            value = read_object(raw)
            content |= {"input": value} if value is not None else {"partial_json": raw}
        return self._content_chunk(block, content)

    def _text_chunk(self, block: _Block, text: str, citations: list[Any]) -> AIMessageChunk | None:
        if text.__class__ is not str:
            raise TypeError("a block's text is no string")
        if citations:
            self.in_blocks = self._opaque = True
        elif not text:
            return None
        if not block.written:
            block.written = True
            self._contents.append(block.number)
        if not self.in_blocks:
            return new_chunk(text, {}, self.message_id)
        part = {"type": "text", "text": text, "index": block.number}
        if not citations:
            return new_chunk([part], {}, self.message_id)
        return self._vendor_chunk({**part, "citations": citations})

    def _thinking_chunk(self, block: _Block, text: str) -> AIMessageChunk | None:
        if block.written and text:
            return new_chunk(
                [{"type": block.kind, "thinking": str(text), "index": block.number}], {}, self.message_id, {"model_provider": PROVIDER}
            )
        return self._content_chunk(block, {"thinking": str(text)}) if text else None

    def _content_chunk(self, block: _Block, content: Mapping[str, Any]) -> AIMessageChunk:
        self._opaque = True
        if not block.written:
            block.written = True
            self._contents.append(block.number)
        return self._vendor_chunk({"type": block.kind, **content, "index": block.number})

    def _vendor_chunk(self, block: dict[str, Any]) -> AIMessageChunk:
        """Return the chunk of a block, marked with its provider, by which core reads it."""
        return new_chunk([block], {}, self.message_id, {"model_provider": PROVIDER})

    # ------------------------------------------------------------------------------------------ calls

    def _arguments(self, block: _Block, text: str) -> AIMessageChunk | None:
        """Collect an increment of a call's arguments until the end of their block; return it as a chunk only for listeners."""
        if text:
            block.arguments.append(text)
        call_id = block.start.get("id") if self._watched else None
        if not text or not call_id or not isinstance(call_id, str):
            return None
        return piece_chunk(CallPiece(call_id, None, text), self.message_id, listed=self.in_blocks)

    def _call_chunk(self, block: _Block, fragment: Mapping[str, Any]) -> AIMessageChunk:
        return new_chunk([] if self.in_blocks else "", {"tool_calls": [{"index": block.number, **fragment}]}, self.message_id)

    # ------------------------------------------------------------------------------------------ the end

    def finish(self) -> AIMessageChunk:
        """Return the last chunk, with the metadata of the whole reply.

        Raises:
            StreamError: The stream held no event of this wire.
        """
        if not self._known:
            raise StreamError("the reply held no events of the Messages API")
        rest = [self._stop(block) for block in self._open.values() if block.arguments or self.complete if block.kind in _STREAMED]
        self._open = {}
        chunk = merge_given(*rest) or new_chunk([] if self.in_blocks else "", {}, self.message_id)
        chunk.__dict__["response_metadata"] = self._last_metadata()
        if self._usage and self._tell_usage:
            chunk.__dict__["usage_metadata"] = usage_metadata(self._usage)
        return chunk

    def _last_metadata(self) -> dict[str, Any]:
        known = {
            "id": self.message_id,
            "model": self._model,
            "model_name": self._model,
            "finish_reason": (self._stop_reason if self.complete else "incomplete") or None,
            "stop_reason": self._stop_reason,
            "stop_sequence": self._stop_sequence,
            "usage": self._usage,
        }
        own: dict[str, Any] = {"origin": self._origin} if self._origin and (self._calls or self._opaque) else {}
        if self._calls:
            own["call_blocks"] = {"type": "tool_use", "first": self._numbers}
            if self._calls[0] < len(self._contents):
                own["before_calls"] = self._calls
        metadata = {
            "model_provider": PROVIDER,
            **reply_metadata(self._about, _OF_MESSAGES),
            **{key: value for key, value in known.items() if value},
        }
        return {**metadata, KEY: own} if own else metadata


def _extra(start: ContentBlock) -> dict[str, Any]:
    """Return the call's extra keys, which are sent back with it (`caller`, `toolset_name`)."""
    return {key: value for key, value in start.items() if key not in _OF_CALLS}
