"""Decoding of generateContent replies to raw chunks: streams, and whole bodies read as a stream of one event.

Content is text as long as there has been nothing but text; where thinking, a signature or anything else comes, it is a list of
blocks from then on, each numbered by `index`, in the shapes of LangChain's partner package, which its core translates to
standard blocks. A part that carries a signature is a block of its own, so that it goes back as it came (wire quirk G-03).

Wire facts (wire quirks G-01 to G-17): calls come whole, several in one event or one in each, with or without an id, and with `args`
missing where there are none; or in pieces (`partial_args`). An empty call ends such pieces and is no call. What ends a reply is
a `finishReason`; a connection may end without one.
"""

import re
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import AIMessageChunk

from ...chunks import merge_chunks, merge_given, new_chunk
from ...errors import StreamError
from ...messages.metadata import KEY
from .errors import error_from_body
from .metadata import CALL_FAILURES, OF_REPLIES, PROMPT_BLOCKED, finish_reason, of_candidate, of_reply, snake, snake_keys
from .partial_args import PartialCall
from .usage import usage_metadata
from .wire import Candidate, FunctionCall, ReplyPart

PROVIDER = "google_genai"
"""The `model_provider` of replies of both APIs, by which LangChain's core reads their blocks."""

_SHOWN = 200
_OF_EVERY_EVENT = frozenset({"content", "index"})
_ROLE = "model"
_DATA_OF_PART = frozenset({"text", "thought", "thoughtSignature", "executableCode", "codeExecutionResult", "fileData", "inlineData"})
_OUTCOMES = {"OUTCOME_OK": 1, "OUTCOME_FAILED": 2, "OUTCOME_DEADLINE_EXCEEDED": 3}
_CALL_KEYS = frozenset({"name", "args", "partialArgs", "willContinue"})
_NAMES_IN_MESSAGE = (
    re.compile(r"(?:default_api|functions|tools)[.:]\s*([A-Za-z_][\w.:-]*?)\s*[({]"),
    re.compile(r"undeclared function:?\s+([A-Za-z_][\w.:-]*)"),
)
_NO_NAME = "malformed_function_call"


class GenerateContentDecoder:
    """Decodes the events of one streamed reply, or one whole reply.

    Args:
        origin: The endpoint and model that reply, kept with what is only theirs to read.
        blocks: Whether content is a list of blocks from the start.
        may_be_empty: Whether a reply that ends normally and says nothing is a reply; else it is a `StreamError`, to be tried again.
        signs: Whether the model may sign texts.

    Attributes:
        ended: Always false: nothing but the end of the body says that nothing follows.
        in_blocks: Whether content is a list by now.
        message_id: The reply's id, once it is known.
    """

    ended = False

    def __init__(self, *, origin: str = "", blocks: bool = False, may_be_empty: bool = True, signs: bool = True) -> None:
        self._origin = origin
        self._signs = signs
        self._may_be_empty = may_be_empty
        self.in_blocks = blocks
        self._known = False
        self.message_id: str | None = None
        self._model: str | None = None
        self._reason: str | None = None
        self._metadata: dict[str, Any] = {}
        self._about: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._kind: str | None = None
        self._number = -1
        self._contents = 0
        self._first_text: int | None = None
        self._opaque = False
        self._calls: list[int] = []
        self._partial: PartialCall | None = None
        self._done = False
        self._continuation: str | None = None

    def decode_body(self, body: Any) -> AIMessageChunk:
        """Return a whole reply as one raw chunk.

        Raises:
            StreamError: The reply is none of this wire, or empty.
            Exception: The reply holds an error; it is raised as the vendor's own.
        """
        events = body if isinstance(body, list) else [body]
        if not all(isinstance(event, Mapping) for event in events):
            raise StreamError(f"the reply is no object but {str(body)[:_SHOWN]!r}")
        chunks = [self.feed(event) for event in events]
        whole = merge_chunks([*(chunk for chunk in chunks if chunk is not None), self.finish()])
        whole.__dict__["chunk_position"] = "last"
        return whole

    # ------------------------------------------------------------------------------------------ events

    def feed(self, event: Mapping[str, Any]) -> AIMessageChunk | None:
        """Process one event and return its text, thoughts, blocks and calls as a chunk, or None.

        Raises:
            Exception: The event is an error; it is raised as the vendor's own.
        """
        if event.get("error"):
            raise error_from_body(event["error"])
        usage, candidates = event.get("usageMetadata"), event.get("candidates")
        if usage:
            self._usage.update(usage)
            if "thoughtsTokenCount" in usage and self._number < 0:  # who thinks may sign any part
                self.in_blocks = self.in_blocks or self._signs
        self.message_id = self.message_id or str(event.get("responseId") or "") or None
        self._model = str(event.get("modelVersion") or "") or self._model
        self._known = self._known or candidates is not None or usage is not None or "promptFeedback" in event
        if event.keys() - OF_REPLIES:
            self._about.update(event)
        if not candidates:
            if (event.get("promptFeedback") or {}).get("blockReason"):
                self._reason = PROMPT_BLOCKED
            return None
        candidate: Candidate = candidates[0]
        if candidate.keys() - _OF_EVERY_EVENT:
            self._metadata.update(of_candidate(candidate))
            self._note_end(candidate.get("finishReason"))
            self._continuation = candidate.get("continuationToken") or self._continuation
        content: Any = candidate.get("content") or {}
        if content.get("role", _ROLE) != _ROLE:
            self._metadata["role"] = content["role"]
        parts = content.get("parts")
        if not parts:
            return None
        return self._part_chunk(parts[0]) if len(parts) == 1 else merge_given(*map(self._part_chunk, parts))

    def _note_end(self, reason_on_wire: Any) -> None:
        reason = finish_reason(reason_on_wire)
        self._reason = reason or self._reason
        if reason and reason != reason_on_wire:
            self._metadata["native_finish_reason"] = reason_on_wire

    def done(self) -> None:
        """Record the end marker of other wires, which some gateways add."""
        self._done = True

    @property
    def complete(self) -> bool:
        """Whether a finish reason, or a gateway's end marker, has arrived."""
        return self._done or self._reason is not None

    # ------------------------------------------------------------------------------------------ parts

    def _part_chunk(self, part: ReplyPart) -> AIMessageChunk | None:
        if "text" in part:
            if not isinstance(part["text"], str | None):
                raise TypeError("a part's text is no string")
            return self._thought_chunk(part) if part.get("thought") else self._text_chunk(part)
        if "functionCall" in part:
            return self._call_chunk(part)
        return self._block_chunk(_block_of(part), part)

    def _text_chunk(self, part: ReplyPart) -> AIMessageChunk | None:
        text = part["text"] or ""
        if len(part) > 1 and part.keys() - {"text", "thought"}:
            return self._block_chunk({"type": "text", "text": text} if text else _verbatim(part), part)
        if not text:
            return None
        if self._kind != "text":
            self._begin("text")
        if not self.in_blocks:
            return new_chunk(text, {}, self.message_id)
        if self._first_text is None:
            self._first_text = self._number
        return new_chunk([{"type": "text", "text": text, "index": self._number}], {}, self.message_id)

    def _thought_chunk(self, part: ReplyPart) -> AIMessageChunk:
        thinking = part["text"] or ""
        if len(part) > 2:
            return self._block_chunk({"type": "thinking", "thinking": thinking}, part)
        if self._kind != "thinking":
            self._begin("thinking")
        return self._vendor_chunk({"type": "thinking", "thinking": thinking, "index": self._number})

    def _block_chunk(self, block: dict[str, Any], part: ReplyPart) -> AIMessageChunk:
        """Return the chunk of a separate block, which no other part joins."""
        self._begin(None)
        if block["type"] == "text" and self._first_text is None:
            self._first_text = self._number
        if block["type"] != "part":
            is_thought = block["type"] == "thinking"
            extras = {snake(key): value for key, value in part.items() if key not in _DATA_OF_PART}
            signature = part.get("thoughtSignature")
            extras |= {"signature": None if is_thought else signature, "thought": None if is_thought else part.get("thought")}
            beside = {"extras": {key: value for key, value in extras.items() if value}, "signature": signature if is_thought else None}
            block = {**block, **{key: value for key, value in beside.items() if value}}
        return self._vendor_chunk({**block, "index": self._number})

    def _begin(self, kind: str | None) -> None:
        """Number a new block; `kind` is the kind of parts that join it, or None."""
        self._kind = kind
        self._number += 1
        self._contents += 1

    def _vendor_chunk(self, block: dict[str, Any]) -> AIMessageChunk:
        self.in_blocks = self._opaque = True
        return new_chunk([block], {}, self.message_id, {"model_provider": PROVIDER})  # which tells core how to read the block

    # ------------------------------------------------------------------------------------------ calls

    def _call_chunk(self, part: ReplyPart) -> AIMessageChunk | None:
        call: FunctionCall = part.get("functionCall") or {}
        before = None
        if self._partial is not None and not call.get("name"):
            self._partial.feed(call.get("partialArgs") or ())
            return None if call.get("willContinue") else self._end_partial(ended=True)
        if self._partial is not None:  # another call begins before the end of this one
            before = self._end_partial(ended=False)
        if not call.get("name") and not call.get("args"):
            return None
        self._kind = None
        self.in_blocks = True
        self._number += 1
        if call.get("willContinue") or call.get("partialArgs"):
            self._partial = PartialCall(self._number, part)
            self._partial.feed(call.get("partialArgs") or ())
            return before if call.get("willContinue") else merge_given(before, self._end_partial(ended=True))
        return merge_given(before, self._fragment_chunk(self._number, part, call.get("args")))

    def _end_partial(self, *, ended: bool) -> AIMessageChunk:
        call, self._partial = self._partial, None
        assert call is not None
        return self._fragment_chunk(call.number, call.part, call.arguments(ended=ended))

    def _fragment_chunk(self, number: int, part: ReplyPart, arguments: Any) -> AIMessageChunk:
        """Return the chunk of a whole call, with the extra keys that are sent back with it."""
        call: FunctionCall = part.get("functionCall") or {}
        self._calls.append(self._contents)
        beside = {key: value for key, value in part.items() if key != "functionCall" and value}
        within = {key: value for key, value in call.items() if key not in _CALL_KEYS and value}
        fragment = {
            "index": number,
            "id": call.get("id"),
            "function": {"name": call.get("name"), "arguments": {} if arguments is None else arguments},
            "part": beside or None,
            "call": within or None,
        }
        return new_chunk("", {"tool_calls": [fragment]}, self.message_id)

    def _failed_call_chunk(self) -> AIMessageChunk | None:
        """Return the chunk of a call that the model failed to write, as described by the server; it is answered with an error."""
        if self._reason not in CALL_FAILURES or self._calls:
            return None
        message = str(self._metadata.get("finish_message") or self._reason)
        name = next((found[1] for pattern in _NAMES_IN_MESSAGE if (found := pattern.search(message))), _NO_NAME)
        self._number += 1
        return self._fragment_chunk(self._number, {"functionCall": {"name": name}}, message)

    # ------------------------------------------------------------------------------------------ the end

    def finish(self) -> AIMessageChunk:
        """Return the last chunk, with the metadata of the whole reply.

        Raises:
            StreamError: The stream held no event of this wire, or an empty reply.
        """
        if not self._known:
            raise StreamError("the reply held no events of generateContent")
        if self._reason == "STOP" and self._number < 0 and not self._may_be_empty:
            raise StreamError("the reply is empty")
        rest = self._end_partial(ended=False) if self._partial is not None else None
        chunk = merge_given(rest, self._failed_call_chunk(), self._cited()) or new_chunk("", {}, self.message_id)
        chunk.__dict__["response_metadata"] = self._last_metadata()
        usage = usage_metadata(self._usage)
        if usage is not None:
            chunk.__dict__["usage_metadata"] = usage
        chunk.__dict__["chunk_position"] = "last"
        return chunk

    def _cited(self) -> AIMessageChunk | None:
        """Return an empty chunk of the first text block, to which core adds the citations of the grounding metadata."""
        if self._first_text is None or "grounding_metadata" not in self._metadata:
            return None
        return new_chunk([{"type": "text", "text": "", "index": self._first_text}], {}, self.message_id)

    def _last_metadata(self) -> dict[str, Any]:
        token = self._continuation if self._reason == "CONTINUATION" else None
        own: dict[str, Any] = {"origin": self._origin} if self._origin and (self._calls or self._opaque or token) else {}
        if token:
            own["continuation"] = token
        if self._calls and self._calls[0] < self._contents:
            own["before_calls"] = self._calls
        known = {
            "model_provider": PROVIDER,
            "model_name": self._model,
            "finish_reason": self._reason if self.complete else "incomplete",
            **self._metadata,
            **of_reply(self._about),
            "continuation_token": None if token else self._continuation,
            "usage_metadata": snake_keys(self._usage) or None,
            "service_tier": self._usage.get("serviceTier"),
            "traffic_type": self._usage.get("trafficType"),
        }
        metadata = {key: value for key, value in known.items() if value is not None}
        return {**metadata, KEY: own} if own else metadata


def _block_of(part: ReplyPart) -> dict[str, Any]:
    """Convert a part that is neither text nor a call to a block of LangChain's partner package."""
    if code := part.get("executableCode"):
        known = {"executable_code": code.get("code", ""), "language": code.get("language", "")}
        return {"type": "executable_code", **known, **({"id": code["id"]} if code.get("id") else {})}
    if result := part.get("codeExecutionResult"):
        outcome = result.get("outcome", 1)
        known = {"code_execution_result": result.get("output", ""), "outcome": _OUTCOMES.get(outcome, outcome)}
        return {"type": "code_execution_result", **known, "tool_call_id": result.get("id") or ""}
    if file := part.get("fileData"):
        return {"type": "file_data", **{snake(key): value for key, value in file.items()}}
    return _media_block(part.get("inlineData") or {}) or _verbatim(part)


def _media_block(data: Mapping[str, Any]) -> dict[str, Any] | None:
    mime_type, value = str(data.get("mimeType") or ""), data.get("data") or ""
    if mime_type.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": f"data:{mime_type};base64,{value}"}}
    if mime_type.startswith(("audio/", "video/")):
        return {"type": mime_type.partition("/")[0], "base64": value, "mime_type": mime_type}
    return None


def _verbatim(part: ReplyPart) -> dict[str, Any]:
    """Keep a part without visible content, or of an unknown kind, for sending it back: a signature without text, for example."""
    return {"type": "part", "part": dict(part)}
