"""Reading of generateContent replies: their JSON, raw chunks for the run, events for its listeners.

Wire facts: the counts of each event are those of the reply so far (wire quirk G-15); `candidatesTokenCount` does not include thinking, and
`promptTokenCount` includes what came from a cache but not what the server's own tools added. Modalities are words, or numbers
where a client asked for those; those of text are left out, because LangChain's details are not to sum to more than the total.
"""

import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessageChunk
from langchain_core.messages.ai import UsageMetadata

from ...chunks import merge_chunks, merge_given, new_chunk
from ...errors import StreamError
from ...event_types import RunEvent
from ...messages.metadata import KEY
from ...tool_calls.arguments import as_text, spell_text
from ...tool_calls.slot import ACCOUNTS, COPY, DOUBT
from .._base.replies import (
    VendorEvents,
    detailed_usage,
    done,
    file_made,
    merged_counts,
    reply_metadata,
    source,
    started,
    sum_of,
    token_count,
)
from .errors import error_from_body

# ---------------------------------------------------------------------------------------------- decode
# Decoding of generateContent replies to raw chunks: streams, and whole bodies read as a stream of one event.
#
# Content is text as long as there has been nothing but text. Where thinking, a signature or anything else comes, it is a list of blocks
# from then on, each numbered by `index`. They have the shapes of LangChain's partner package, which its core translates to standard blocks.
# A part that carries a signature is a block of its own, so that it goes back as it came (wire quirk G-03).
#
# Wire facts (wire quirks G-01 to G-17): calls come whole, several in one event or one in each, with or without an id, and with `args`
# missing where there are none; or in pieces (`PartialCall`). An empty call ends such pieces and is no call. What ends a reply is a
# `finishReason`; a connection may end without one.


PROVIDER = "google_genai"
"""The `model_provider` of replies of both APIs, by which LangChain's core reads their blocks."""

_SHOWN = 200
_OF_EVERY_EVENT = frozenset({"content", "index"})
_ROLE = "model"
_STANDARD = ("audio", "video", "file")  # blocks in LangChain's form, which core does not expect of this vendor
_DATA_OF_PART = frozenset({"text", "thought", "thoughtSignature", "executableCode", "codeExecutionResult", "fileData", "inlineData"})
_OUTCOMES = {"OUTCOME_OK": 1, "OUTCOME_FAILED": 2, "OUTCOME_DEADLINE_EXCEEDED": 3}
_CALL_KEYS = frozenset({"name", "args", "partialArgs", "willContinue"})
_NAMES_IN_MESSAGE = (
    re.compile(r"(?:default_api|functions|tools)[.:]\s*([A-Za-z_][\w.:-]*?)\s*[({]"),
    re.compile(r"undeclared function:?\s+([A-Za-z_][\w.:-]*)"),
)
_CALL_FAILURES = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"})
"""Finish reasons of a wrongly written tool call; the model receives an error as that call's result (wire quirk G-07)."""
_ASKED_AGAIN = _CALL_FAILURES | {"STOP"}


class GenerateContentDecoder:
    """Decodes the events of one streamed reply, or one whole reply.

    Args:
        origin: The endpoint and model that reply, kept with what is only theirs to read.
        blocks: Whether content is a list of blocks from the start.
        may_be_empty: Whether a reply that says nothing, and ends normally or in a call that nobody names, is a reply; else it is a
            `StreamError`, to be tried again.
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
        self._marked: set[tuple[str | None, str | None]] = set()
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
            self._usage.update(merged_counts(self._usage, usage) if 0 in usage.values() else usage)
            if "thoughtsTokenCount" in usage and self._number < 0:  # who thinks may sign any part
                self.in_blocks = self.in_blocks or self._signs
        self.message_id = self.message_id or str(event.get("responseId") or "") or None
        self._model = str(event.get("modelVersion") or "") or self._model
        self._known = self._known or candidates is not None or usage is not None or "promptFeedback" in event
        if event.keys() - _OF_REPLIES:
            self._about.update(event)
        if not candidates:
            if (event.get("promptFeedback") or {}).get("blockReason"):
                self._reason = _PROMPT_BLOCKED
            return None
        candidate = candidates[0]
        if candidate.keys() - _OF_EVERY_EVENT:
            self._metadata.update(snake_keys(reply_metadata(candidate, _OF_CANDIDATES)))
            self._note_end(candidate.get("finishReason"))
            self._continuation = candidate.get("continuationToken") or self._continuation
        content = candidate.get("content") or {}
        if content.get("role", _ROLE) != _ROLE:
            self._metadata["role"] = content["role"]
        parts = content.get("parts")
        if not parts:
            return None
        return self._part_chunk(parts[0]) if len(parts) == 1 else merge_given(*map(self._part_chunk, parts))

    def _note_end(self, reason_on_wire: Any) -> None:
        reason = _finish_reason(reason_on_wire)
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

    def _part_chunk(self, part: Mapping[str, Any]) -> AIMessageChunk | None:
        if "text" in part:
            if not isinstance(part["text"], str | None):
                raise TypeError("a part's text is no string")
            return self._thought_chunk(part) if part.get("thought") else self._text_chunk(part)
        if "functionCall" in part:
            return self._call_chunk(part)
        return self._block_chunk(_block_of(part), part)

    def _text_chunk(self, part: Mapping[str, Any]) -> AIMessageChunk | None:
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

    def _thought_chunk(self, part: Mapping[str, Any]) -> AIMessageChunk:
        thinking = part["text"] or ""
        if len(part) > 2:
            return self._block_chunk({"type": "thinking", "thinking": thinking}, part)
        if self._kind != "thinking":
            self._begin("thinking")
        return self._vendor_chunk({"type": "thinking", "thinking": thinking, "index": self._number})

    def _block_chunk(self, block: dict[str, Any], part: Mapping[str, Any]) -> AIMessageChunk:
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
        metadata = {"model_provider": PROVIDER}  # which tells core how to read the block
        if block["type"] in _STANDARD:
            metadata["output_version"] = "v1"
        return new_chunk([block], {}, self.message_id, metadata)

    # ------------------------------------------------------------------------------------------ calls

    def _call_chunk(self, part: Mapping[str, Any]) -> AIMessageChunk | None:
        call = part.get("functionCall") or {}
        before = None
        if self._partial is not None and not call.get("name"):
            self._partial.feed(call)
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
            self._partial.feed(call)
            return before if call.get("willContinue") else merge_given(before, self._end_partial(ended=True))
        return merge_given(before, self._fragment_chunk(self._number, part, call.get("args")))

    def _end_partial(self, *, ended: bool) -> AIMessageChunk:
        call, self._partial = self._partial, None
        assert call is not None
        return self._fragment_chunk(call.number, call.part, call.arguments(ended=ended), call.whole)

    def _fragment_chunk(self, number: int, part: Mapping[str, Any], arguments: Any, whole: Sequence[Any] = ()) -> AIMessageChunk:
        """Return the chunk of a call with the extra keys that are sent back with it; `whole`: what else was said of its arguments."""
        call = part.get("functionCall") or {}
        self._calls.append(self._contents)
        beside = {key: value for key, value in part.items() if key != "functionCall" and value}
        within = {key: value for key, value in call.items() if key not in _CALL_KEYS and value}
        fragment: dict[str, Any] = {
            "index": number,
            "id": call.get("id"),
            "function": {"name": call.get("name"), "arguments": {} if arguments is None else arguments},
            "part": beside or None,
            "call": within or None,
        }
        said = (call.get("name"), spell_text(as_text(arguments)))
        if call.get("id") or (part.get("thoughtSignature") and len(self._calls) > 1):  # of parallel calls the first alone is signed
            self._marked.add(said)
        elif not part.get("thoughtSignature") and said in self._marked:
            fragment[DOUBT] = COPY
        if whole:
            fragment[ACCOUNTS] = [[as_text(one)] for one in whole]
        return new_chunk("", {"tool_calls": [fragment]}, self.message_id)

    def _failed_call_chunk(self) -> AIMessageChunk | None:
        """Return the chunk of a call that the model failed to write, as described by the server; it is answered with an error.

        None where the server does not say which: no history should have a call of a tool that does not exist.
        """
        if self._reason not in _CALL_FAILURES or self._calls:
            return None
        message = str(self._metadata.get("finish_message") or self._reason)
        name = next((found[1] for pattern in _NAMES_IN_MESSAGE if (found := pattern.search(message))), None)
        if name is None:
            return None
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
        rest = self._end_partial(ended=False) if self._partial is not None else None
        failed = self._failed_call_chunk()
        if self._reason in _ASKED_AGAIN and self._number < 0 and not self._may_be_empty:
            raise StreamError("the reply is empty")
        chunk = merge_given(rest, failed, self._cited()) or new_chunk("", {}, self.message_id)
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
            **snake_keys(reply_metadata(self._about, _OF_REPLIES)),
            "continuation_token": None if token else self._continuation,
            "usage_metadata": snake_keys(self._usage) or None,
            "service_tier": self._usage.get("serviceTier"),
            "traffic_type": self._usage.get("trafficType"),
        }
        metadata = {key: value for key, value in known.items() if value is not None}
        return {**metadata, KEY: own} if own else metadata


def _block_of(part: Mapping[str, Any]) -> dict[str, Any]:
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
    if value and mime_type.startswith(("audio/", "video/", "text/", "application/")):
        kind = mime_type.partition("/")[0]
        return {"type": kind if kind in _STANDARD else "file", "base64": value, "mime_type": mime_type}
    return None


def _verbatim(part: Mapping[str, Any]) -> dict[str, Any]:
    """Keep a part without visible content, or of an unknown kind, for sending it back: a signature without text, for example."""
    return {"type": "part", "part": dict(part)}


# ---------------------------------------------------------------------------------------------- partial args
# Tool call arguments that arrive as values at JSON paths (`streamFunctionCallArguments`).
#
# Wire facts (wire quirk G-05): `partialArgs: [{"jsonPath": "$.a[0]", "stringValue": "Bos", "willContinue": true}]`; a string goes on
# while its `willContinue` holds; the call goes on while its own does, and an empty `functionCall` ends it.


_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\[\"((?:[^\"\\]|\\.)*)\"\]")
_PATH = re.compile(f"(?:{_STEP.pattern})+")
_ESCAPED = re.compile(r"\\(.)")
_LONGEST_LIST = 100_000  # a path is the model's word: it must not make a list of any length
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")

Step = str | int


class PartialCall:
    """A call that is being written. Linear in the number of updates.

    Args:
        number: Its number among the blocks of the reply.
        part: The part that began it.

    Attributes:
        whole: The arguments that came whole beside the pieces.
    """

    def __init__(self, number: int, part: Mapping[str, Any]) -> None:
        self.number = number
        self.part = part
        self.whole: list[Any] = []
        self._values: dict[str, list[Any]] = {}
        self._open: str | None = None
        self._broken = False

    def feed(self, call: Mapping[str, Any]) -> None:
        """Apply what one part says of the call."""
        self.whole += [call["args"]] if call.get("args") else []
        for piece in call.get("partialArgs") or ():
            path = str(piece.get("jsonPath", ""))
            key = next((key for key in _VALUES if key in piece), None)
            value = None if key in (None, "nullValue") else piece[key]
            if path == self._open and isinstance(value, str):
                self._values[path].append(value)
            elif key is not None:
                self._values[path] = [value]
            self._open = path if piece.get("willContinue") else None

    def arguments(self, *, ended: bool) -> dict[str, Any] | str:
        """Return the arguments; invalid JSON text if they are incomplete or contradictory.

        Args:
            ended: Whether the wire said that the call is complete.
        """
        root: dict[str, Any] = {}
        fits = [_put(root, path, _value_of(values)) for path, values in self._values.items()]
        if ended and self._open is None and all(fits):
            return root
        return json.dumps(root, ensure_ascii=False)[:-1]


def _value_of(values: list[Any]) -> Any:
    """Return the value of these pieces; a number that the wire sent as a float as an integer if it is one."""
    if len(values) > 1:
        return "".join(values)
    return int(values[0]) if isinstance(values[0], float) and values[0].is_integer() else values[0]


def _put(root: dict[str, Any], path: str, value: Any) -> bool:
    """Set the value at a path, creating missing containers; returns False if the path does not fit the data."""
    steps = _steps(path)
    if not steps or not isinstance(steps[0], str):
        return False
    place: Any = root
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        if isinstance(step, str) != isinstance(place, dict) or not _reserve(place, step):
            return False
        if following is None:
            place[step] = value
        elif place[step] is None:
            place[step] = {} if isinstance(following, str) else []
        if not isinstance(place[step], dict | list) and following is not None:
            return False
        place = place[step]
    return True


def _reserve(place: Any, step: Step) -> bool:
    if isinstance(place, dict):
        place.setdefault(step, None)
        return True
    if not isinstance(place, list) or not isinstance(step, int) or step > _LONGEST_LIST:
        return False
    place.extend([None] * (step + 1 - len(place)))
    return True


def _steps(path: str) -> list[Step]:
    """Return a path's keys and positions; empty for an invalid path."""
    rest = path.removeprefix("$")
    if not _PATH.fullmatch(rest):
        return []
    found = (match.groups() for match in _STEP.finditer(rest))
    return [int(place) if place else plain or _ESCAPED.sub(r"\1", single or double or "") for plain, place, single, double in found]


# ---------------------------------------------------------------------------------------------- metadata
# Metadata of replies: the finish reason, and the keys of `response_metadata` that LangChain users expect.


_PROMPT_BLOCKED = "PROMPT_BLOCKED"
"""The finish reason of a reply without candidates, whose prompt was blocked."""

_KNOWN = _CALL_FAILURES | {
    *("STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "LANGUAGE", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR"),
    *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_OTHER", "IMAGE_RECITATION", "NO_IMAGE", "MISSING_THOUGHT_SIGNATURE"),
    *("MALFORMED_RESPONSE", "ESCALATION", "PUP_LIMITED_DISABLED", "CONTINUATION"),
}
_GATEWAYS = frozenset({"END_TURN", "TOOL_CALLS", "TOOL_USE", "FUNCTION_CALL", "LENGTH", "CONTENT_FILTER"})  # words of other wires
# The words behind the numbers that are the same in both APIs; others differ and mean at any rate no normal end.
_REASONS = {0: None, 1: "STOP", 2: "MAX_TOKENS", 3: "SAFETY", 4: "RECITATION", 5: "OTHER"}
_UNSPECIFIED = "FINISH_REASON_UNSPECIFIED"
_OF_CANDIDATES = frozenset({"content", "continuationToken", "finishReason", "index"})
_OF_REPLIES = frozenset({"candidates", "modelVersion", "responseId", "usageMetadata"})
"""The keys of a reply's events that are not metadata."""

_UNDERSCORE = re.compile(r"_([a-z0-9])")
_CAPITAL = re.compile(r"(?<=[a-z0-9])([A-Z])")


def _finish_reason(value: Any) -> str | None:
    """Return a finish reason as a word; None if there is none. An unknown one becomes `OTHER`, after which no calls run."""
    if isinstance(value, int):
        return _REASONS.get(value, "OTHER")
    if not value or value == _UNSPECIFIED:
        return None
    word = str(value)
    return word if word.upper() in _KNOWN or word.upper() in _GATEWAYS else "OTHER"


def camel(name: str) -> str:
    """Return a name in camel case, the wire's form."""
    return _UNDERSCORE.sub(lambda match: match[1].upper(), name)


def snake(name: str) -> str:
    """Return a wire name in snake case, the form of LangChain's packages."""
    return _CAPITAL.sub(r"_\1", name).lower()


def snake_keys(value: Any) -> Any:
    """Return data with every key in snake case, in which LangChain's core looks for citations."""
    if isinstance(value, Mapping):
        return {snake(key): snake_keys(item) for key, item in value.items()}
    return [snake_keys(item) for item in value] if isinstance(value, list) else value


_MODALITIES = {1: "text", 2: "image", 3: "video", 4: "audio", 5: "document"}
_TEXT = "text"


def usage_metadata(usage: Mapping[str, Any]) -> UsageMetadata | None:
    """Return the token counts of one reply; None if there are none, or one of them is no number of tokens.

    Args:
        usage: The wire's `usageMetadata`, which leaves zeros out.
    """
    input_tokens = sum_of(usage, "promptTokenCount", "toolUsePromptTokenCount")
    output_tokens = sum_of(usage, "candidatesTokenCount", "thoughtsTokenCount")
    if input_tokens is None or output_tokens is None or not any(isinstance(value, int | float) for value in usage.values()):
        return None
    put = _by_modality(usage, "promptTokensDetails", "toolUsePromptTokensDetails")
    out = _by_modality(usage, "candidatesTokensDetails")
    # The last event may leave out what it has written, and its total is then that of the rest.
    total = max(token_count(usage, "totalTokenCount") or 0, input_tokens + output_tokens)
    read = {"cache_read": token_count(usage, "cachedContentTokenCount"), **put}
    return detailed_usage(input_tokens, output_tokens, read, {"reasoning": token_count(usage, "thoughtsTokenCount"), **out}, total)


def _by_modality(usage: Mapping[str, Any], *names: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for detail in (detail for name in names for detail in usage.get(name) or ()):
        modality = detail.get("modality") if isinstance(detail, Mapping) else None
        name = _MODALITIES.get(modality) if isinstance(modality, int) else str(modality or "").lower()
        if name and name != _TEXT:
            found[name] = found.get(name, 0) + (token_count(detail, "tokenCount") or 0)
    return found


# ---------------------------------------------------------------------------------------------- vendor events
# What Google does by itself in a reply, for listeners: searches and code, what an answer is grounded in, and files.
#
# Wire facts: code and its output are parts (`executableCode`, `codeExecutionResult`), of newer models with an `id`. Searches are known by
# the grounding metadata alone, which grows from event to event, so they are told at the end of the reply. So are the pages that were read
# (`urlContextMetadata`). Other tools on the server are `toolCall` and `toolResponse` parts (ai.google.dev/api/generate-content).


_MARKS = re.compile(
    rb'"(?:citationMetadata|codeExecutionResult|executableCode|fileData|groundingMetadata|inlineData|toolCall|toolResponse|urlContextMetadata)"'
)
_CODE = "code_execution"
_GROUNDS = ("web", "retrievedContext", "maps", "image")


class GenerateContentEvents(VendorEvents):
    """Reads the events of one reply, or a whole body."""

    marks = _MARKS

    def __init__(self) -> None:
        self._calls: dict[str, tuple[str, Any]] = {}
        self._last = ""  # the call whose result comes next, where results name none
        self._at_the_end: dict[str, Any] = {}

    def read(self, event: Any) -> Iterator[RunEvent]:
        """Yield what listeners are told of an event, or of a whole body."""
        for one in event if isinstance(event, list) else [event]:
            for candidate in (one.get("candidates") or ())[:1]:
                self._at_the_end |= {key: value for key, value in candidate.items() if value and key.endswith("Metadata")}
                for part in (candidate.get("content") or {}).get("parts") or ():
                    yield from self._part(part)

    def _part(self, part: Mapping[str, Any]) -> Iterator[RunEvent]:
        if code := part.get("executableCode"):
            yield self._begin(code.get("id"), _CODE, {"language": code.get("language"), "code": code.get("code")})
        elif result := part.get("codeExecutionResult"):
            failed = result.get("outcome", "OUTCOME_OK") not in ("OUTCOME_OK", 1)
            yield self._end(result.get("id"), _CODE, result.get("output"), failed=failed)
        elif call := part.get("toolCall"):
            yield self._begin(call.get("id"), str(call.get("toolType") or "tool").lower(), call.get("args"))
        elif answer := part.get("toolResponse"):
            yield self._end(answer.get("id"), str(answer.get("toolType") or "tool").lower(), answer.get("response"))
        elif (data := part.get("inlineData")) and not part.get("thought"):
            yield file_made(data.get("mimeType"), data.get("data"), name=data.get("displayName"))
        elif file := part.get("fileData"):
            yield file_made(file.get("mimeType"), url=file.get("fileUri"), name=file.get("displayName"))

    def _begin(self, call_id: Any, name: str, args: Any) -> RunEvent:
        self._last = str(call_id or f"call_{uuid.uuid4().hex}")
        self._calls[self._last] = name, args
        return started(self._last, name, args)

    def _end(self, call_id: Any, name: str, output: Any, *, failed: bool = False) -> RunEvent:
        known = str(call_id or self._last or f"call_{uuid.uuid4().hex}")
        made, args = self._calls.get(known, (name, None))
        return done(known, made, args, output, failed=failed)

    def rest(self) -> Iterator[RunEvent]:
        """Yield what the reply is grounded in."""
        grounding = self._at_the_end.get("groundingMetadata") or {}
        if queries := grounding.get("webSearchQueries") or grounding.get("imageSearchQueries"):
            yield done(f"call_{uuid.uuid4().hex}", "google_search", {"queries": queries})
        if pages := (self._at_the_end.get("urlContextMetadata") or {}).get("urlMetadata"):
            yield done(f"call_{uuid.uuid4().hex}", "url_context", {"urls": [page.get("retrievedUrl") for page in pages]}, pages)
        for chunk in grounding.get("groundingChunks") or ():
            found: Mapping[str, Any] = next((chunk[kind] for kind in _GROUNDS if chunk.get(kind)), {})
            url = found.get("uri") or found.get("sourceUri")
            document = None if url else found.get("documentName") or found.get("title")
            yield source(url=url, title=found.get("title"), document=document, quote=found.get("text"))
        citations = self._at_the_end.get("citationMetadata") or {}
        for one in citations.get("citationSources") or citations.get("citations") or ():
            yield source(url=one.get("uri"), title=one.get("title"))
