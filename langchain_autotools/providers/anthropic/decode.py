"""Reading of Messages API replies: raw chunks for the run, events for its listeners.

Of a reply any key may be absent, and gateways add others.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from langchain_core.messages import AIMessageChunk
from langchain_core.messages.ai import UsageMetadata

from ...chunks import merge_chunks, merge_given, new_chunk
from ...errors import StreamError
from ...event_bus import current_scope
from ...event_types import RunEvent
from ...messages.metadata import KEY
from ...tool_calls.arguments import as_text
from ...tool_calls.slot import ACCOUNTS
from ...turn.accumulator import CallPiece, piece_chunk
from .._base.replies import (
    VendorEvents,
    detailed_usage,
    done,
    file_made,
    merged_counts,
    progress,
    reply_metadata,
    source,
    started,
    token_count,
)
from .._encode.encoder import read_object
from .errors import error_from_body

# ---------------------------------------------------------------------------------------------- usage
# Token counts of the Messages API in LangChain's terms.
#
# Wire facts: `input_tokens` counts what neither came from a cache nor went into one, `output_tokens` includes thinking; of a stream the
# counts of `message_delta` are cumulative and may leave fields out.


_LIFETIMES = ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")


def usage_metadata(usage: Mapping[str, Any]) -> UsageMetadata | None:
    """Return the token counts of one reply; None if it does not say how many tokens it took or wrote.

    As in LangChain's partner package, input tokens include the prompt cache's.

    Args:
        usage: The wire's `usage`.
    """
    given, output_tokens = token_count(usage, "input_tokens"), token_count(usage, "output_tokens")
    if given is None or output_tokens is None:
        return None
    read = token_count(usage, "cache_read_input_tokens")
    created = token_count(usage, "cache_creation_input_tokens")
    by_lifetime = usage.get("cache_creation")
    lifetimes = {key: token_count(by_lifetime, key) for key in _LIFETIMES} if isinstance(by_lifetime, Mapping) else {}
    specific = sum(count or 0 for count in lifetimes.values())
    input_tokens = given + (read or 0) + (specific or created or 0)
    details = usage.get("output_tokens_details")
    thinking = token_count(details, "thinking_tokens") if isinstance(details, Mapping) else None
    # A write that is counted by its lifetime is not counted once more under the general name.
    entered = {"cache_read": read, "cache_creation": 0 if specific else created, **lifetimes}
    return detailed_usage(input_tokens, output_tokens, entered, {"reasoning": thinking})


# ---------------------------------------------------------------------------------------------- decode
# Decoding of Messages API replies to raw chunks: streams, and whole bodies read as the equivalent stream.
#
# Content is text as long as there can be nothing but text. Of requests that may be answered with other blocks (see `_may_hold_blocks` in
# `chat_model`) it is a list of the wire's blocks, each numbered by `index`. They have the shape that LangChain's partner package gives them
# and its core translates to standard blocks. Text and thinking leave as they come, signatures with the end of their block; what a server
# tool did leaves whole, as it is sent back whole. A tool call is handed on with its name at its start and with its arguments at its end,
# under a number of its own, since gateways use an index twice.
#
# Wire facts (wire quirks C-01 to C-17): blocks may be in `message_start` already; an index may be missing, begin above 0 or come
# twice; a call's input may be in its start; `content_block_stop` proves nothing, `message_delta` and `message_stop` do.


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
        self._watched = current_scope.get() is not None

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
            delta, block = event.get("delta"), self._open.get(event.get("index"))
            if block is not None and block.written and delta.__class__ is dict and delta.get("type") == "text_delta":
                text = delta.get("text")
                if text and text.__class__ is str:  # a plain piece of text, as of most events
                    content = [{"type": "text", "text": text, "index": block.number}] if self.in_blocks else text
                    return new_chunk(content, {}, self.message_id)
            self._known = True
            return self._delta(event)
        if kind == "error" or event.get("error"):
            raise error_from_body(event.get("error") or event)
        self._known = self._known or kind in _KINDS
        return None if self.ended else self._read(event, kind)

    def done(self) -> None:
        """Record that the reply has been read to its end: a whole body, or a stream that says so in its own way."""
        self.ended = True

    @property
    def complete(self) -> bool:
        """Whether the end marker or a stop reason has arrived."""
        return self.ended or self._said_stop

    def _read(self, event: Mapping[str, Any], kind: Any) -> AIMessageChunk | None:
        match kind:
            case "content_block_start":
                return self._start(event.get("index"), event.get("content_block") or {})
            case "content_block_stop":
                return self._stop(self._open.pop(event.get("index"), None))
            case "message_start":
                return self._read_message(event.get("message") or {})
            case "message_delta":
                self._note(event.get("delta") or {}, event)
                self._said_stop = bool(self._stop_reason)
            case "message_stop":
                self.ended = True
            case "message":  # a whole body, also where a stream was asked for
                self.ended = True
                return self._read_message(event)
        return None

    def _read_message(self, message: Mapping[str, Any]) -> AIMessageChunk | None:
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

    def _note(self, message: Mapping[str, Any], event: Mapping[str, Any]) -> None:
        self._stop_reason = message.get("stop_reason") or self._stop_reason
        self._stop_sequence = message.get("stop_sequence") or self._stop_sequence
        if isinstance(usage := event.get("usage"), Mapping):
            self._usage = merged_counts(self._usage, usage)
        for key, value in (*event.items(), *message.items()):
            if value is not None:
                self._about[key] = value

    # ------------------------------------------------------------------------------------------ blocks

    def _start(self, index: Any, start: Mapping[str, Any]) -> AIMessageChunk | None:
        before = self._stop(self._open.pop(index, None))  # a gateway that never ends its blocks
        block = self._open[index] = _Block(self._numbers, start)
        self._numbers += 1
        if block.kind == "tool_use":
            self._calls.append(len(self._contents))
            self.in_blocks = self.in_blocks or not self._contents  # the call becomes a block
            beside = {key: value for key, value in start.items() if key not in _OF_CALLS}  # sent back with it: `caller`, `toolset_name`
            return merge_given(before, self._call_chunk(block, {"id": start.get("id"), "name": start.get("name"), **beside}))
        self.in_blocks = self.in_blocks or block.kind != "text"
        if block.kind == "text":
            return merge_given(before, self._text_chunk(block, start.get("text") or "", start.get("citations") or []))
        if block.kind == "thinking":
            block.signature = start.get("signature") or ""
            return merge_given(before, self._thinking_chunk(block, start.get("thinking") or ""))
        return before

    def _delta(self, event: Mapping[str, Any]) -> AIMessageChunk | None:
        delta = event.get("delta") or {}
        index = event.get("index")
        kind = delta.get("type")
        block = self._open.get(index)
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
            written, started = "".join(block.arguments), block.start.get("input")
            if not written or not started:
                return self._call_chunk(block, {"arguments": written or started}) if written or started else None
            return self._call_chunk(block, {"arguments": written, ACCOUNTS: [[as_text(started)]]})
        if block.kind == "thinking":
            signed = {"signature": block.signature} if block.signature or "signature" in block.start else {}
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
            self.in_blocks = self.in_blocks or bool(self._contents)  # two texts are two blocks
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


# ---------------------------------------------------------------------------------------------- vendor events
# What Anthropic does by itself in a reply, for listeners: calls of its server tools and of MCP servers, citations, files.
#
# Wire facts: a call is a `server_tool_use` or `mcp_tool_use` block, whose input comes in `input_json_delta` events. Its result is a block
# whose type ends in `_tool_result`, in the same reply or, after a pause, in the next one. Citations come as `citations_delta`
# (docs.claude.com/en/docs/build-with-claude/streaming).


_MARKS = re.compile(rb"server_tool_use|mcp_tool_use|_tool_result|citation")
_WITH_INPUT = re.compile(_MARKS.pattern + rb"|input_json_delta|content_block_st")
_CALLS = frozenset({"server_tool_use", "mcp_tool_use"})
_RESULT = "_tool_result"
_OPAQUE = frozenset({"encrypted_content", "encrypted_stdout", "encrypted_index"})


class MessagesEvents(VendorEvents):
    """Reads the events of one reply, or a whole body."""

    def __init__(self) -> None:
        self.marks = _MARKS
        self._calls: dict[str, tuple[str, Any]] = {}
        self._open: tuple[Any, str] | None = None  # the block whose input is being written: its index and its call
        self._input: list[str] = []

    def read(self, event: Mapping[str, Any]) -> Iterator[RunEvent]:
        """Yield what listeners are told of an event, or of a whole body."""
        kind = event.get("type")
        if kind == "content_block_start":
            yield from self._close()
            yield from self._block(event.get("content_block") or {}, event.get("index"))
        elif kind == "content_block_delta":
            yield from self._delta(event.get("delta") or {}, event.get("index"))
        elif kind == "content_block_stop":
            yield from self._close()
        else:
            for block in (event.get("message") or event).get("content") or ():
                yield from self._block(block, None)
                yield from self._close()

    def _block(self, block: Mapping[str, Any], index: Any) -> Iterator[RunEvent]:
        kind = str(block.get("type"))
        if kind in _CALLS:
            call_id, name = str(block.get("id")), str(block.get("name"))
            name = f"mcp.{name}" if kind.startswith("mcp") else name
            self._calls[call_id] = name, block.get("input") or None
            self._open, self.marks = (index, call_id), _WITH_INPUT
            yield started(call_id, name, block.get("input"))
        elif kind.endswith(_RESULT) and kind != _RESULT.lstrip("_"):
            yield from self._result(kind, block)
        for citation in block.get("citations") or ():
            yield from _cited(citation)

    def _delta(self, delta: Mapping[str, Any], index: Any) -> Iterator[RunEvent]:
        if delta.get("type") == "citations_delta":
            yield from _cited(delta.get("citation") or {})
        elif self._open is not None and self._open[0] == index and delta.get("partial_json"):
            self._input.append(delta["partial_json"])
            yield progress(self._open[1], text=delta["partial_json"])

    def _close(self) -> Iterator[RunEvent]:
        """Yield what a call is called with once its block is complete: its result may come in another reply."""
        if self._open is not None and self._input:
            call_id = self._open[1]
            name, args = self._calls[call_id]
            self._calls[call_id] = name, read_object("".join(self._input)) or args
            yield started(call_id, *self._calls[call_id])
        self._open, self._input, self.marks = None, [], _MARKS

    def _result(self, kind: str, block: Mapping[str, Any]) -> Iterator[RunEvent]:
        call_id, content = str(block.get("tool_use_id")), block.get("content")
        name, args = self._calls.get(call_id, (kind.removesuffix(_RESULT), None))
        failed = bool(block.get("is_error")) or (isinstance(content, Mapping) and str(content.get("type")).endswith("_error"))
        yield done(call_id, name, args, _readable(content), failed=failed)
        for file_id in _file_ids(content):
            yield file_made(None, file_id=file_id, call_id=call_id)


def _readable(value: Any) -> Any:
    """Return a result without what only the vendor reads."""
    if isinstance(value, Mapping):
        return {key: _readable(item) for key, item in value.items() if key not in _OPAQUE}
    return [_readable(item) for item in value] if isinstance(value, list) else value


def _file_ids(content: Any) -> Iterator[str]:
    """Yield the ids of the files that code has made."""
    made = content.get("content") if isinstance(content, Mapping) else None
    for one in made if isinstance(made, list) else ():
        if isinstance(one, Mapping) and one.get("file_id"):
            yield str(one["file_id"])


def _cited(citation: Mapping[str, Any]) -> Iterator[RunEvent]:
    url, title = citation.get("url"), citation.get("title") or citation.get("document_title")
    document = None if url else citation.get("source") or citation.get("document_title") or citation.get("file_id")
    if not (url or document) and citation.get("document_index") is not None:
        document = f"document {citation['document_index']}"
    yield source(url=url, title=title, document=document, quote=citation.get("cited_text"))
