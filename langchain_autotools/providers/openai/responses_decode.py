"""Decoding of Responses API replies to raw chunks: whole bodies or streams, in the dialects of OpenAI or other servers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from langchain_core.messages import AIMessage, AIMessageChunk

from ...chunks import new_chunk
from ...errors import StreamError
from ...event_bus import current_scope
from ...messages.blocks import PROVISIONAL
from ...messages.metadata import KEY
from ...tool_calls.arguments import as_text
from ...tool_calls.slot import ACCOUNTS
from ...turn.accumulator import CallPiece, piece_chunk
from .._base.replies import reply_metadata
from .._encode.encoder import dumps
from . import responses_items as wire
from .decode import add_audio, responses_usage
from .dialect import Call
from .errors import error_from_body, is_known_error
from .mapper import CUSTOM_ARGUMENT

_TRANSLATED = "openai"  # the name of core's translator for items of this wire


def _fragment(item: wire.Item, number: int, accounts: list[list[str]]) -> Call:
    """Return a complete call for the accumulator; a custom tool's free text becomes the argument of a function.

    Args:
        item: The call's item.
        number: Its place among the reply's items.
        accounts: What else was said of its arguments.
    """
    call: Call = {"index": number, "id": item.get("call_id") or "", "type": "function"}
    if accounts:
        call[ACCOUNTS] = accounts  # type: ignore[literal-required]
    if item.get("caller"):
        call["caller"] = item["caller"]
    if item.get("type") != wire.CUSTOM_CALL:
        return {**call, "function": {"name": item.get("name"), "arguments": item.get("arguments")}}
    arguments = dumps({CUSTOM_ARGUMENT: str(item.get("input") or "")})
    return {**call, "function": {"name": item.get("name"), "arguments": arguments}, "custom": True}


def _custom_piece(text: str, *, first: bool, last: bool) -> str:
    """Return a piece of a custom tool's input as a piece of the JSON that `_fragment` makes of the whole."""
    return "".join([f'{{"{CUSTOM_ARGUMENT}":"' if first else "", dumps(text)[1:-1], '"}' if last else ""])


def _standard(block: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Convert an item or block of this wire to v1 content blocks with core's own translator."""
    message = AIMessage(content=[dict(block)], response_metadata={"model_provider": _TRANSLATED})
    return [dict(one) for one in message.content_blocks]


def _unfinished(items: Iterable[wire.Item]) -> list[dict[str, Any]]:
    """Return kind, id and status of the model's own items whose status is not "completed", which is not sent back with them."""
    ended = (None, "completed")
    return [
        {"type": item["type"], "id": item.get("id"), "status": item.get("status")}
        for item in items
        if _is_own(item) and item.get("status") not in ended
    ]


def _is_own(item: wire.Item) -> bool:
    return item.get("type") in wire.MODEL_MADE


def _log_probabilities(items: Iterable[wire.Item]) -> dict[str, list[Any]]:
    """Return the log probabilities of a reply in the form of chat completions; empty if there are none."""
    content = [entry for item in items for part in wire.text_parts(item) for entry in part.get("logprobs") or ()]
    return {"content": content} if content else {}


# ---------------------------------------------------------------------------------------------- open items
# The growing output items of one streamed reply: the item of each event, and the part already handed on.
#
# Servers name an item by its place (`output_index`), by its id, by both or, for some events, by neither. Ids may differ between two events
# of one item, and an item may come only at its end or only in the reply as a whole (wire quirks P-01, P-03, P-04; llama.cpp sends no
# output_index). Of text and reasoning the item as it is in `output_item.done` is the truth, deltas are for display; of a call all accounts
# are kept, and compared when it is read (wire quirks P-02, P-11).


@dataclass(slots=True, eq=False)
class Slot:
    """One output item.

    Attributes:
        number: Its place among the items, in the order in which they came.
        index: Its `output_index`, where the server says one.
        item: The item as far as it is known.
        done: Whether `item` is complete.
        text_length: The number of characters of its text that were handed on.
        thought_length: The number of characters of its reasoning that were handed on.
        thinks_in: The text that is handed on as its reasoning, "summary" or "content": the first to arrive.
        refusal_length: The number of characters of its refusal that were handed on.
        pieces: Fragments of a call's arguments.
        shown: Whether it was shown as a call that is being written.
        given: What events and items said of a call's whole arguments.
    """

    number: int
    index: int | None
    item: wire.Item
    done: bool = False
    text_length: int = 0
    thought_length: int = 0
    thinks_in: Literal["content", "summary"] | None = None
    refusal_length: int = 0
    pieces: list[str] = field(default_factory=list)
    shown: bool = False
    given: list[Any] = field(default_factory=list)

    @property
    def kind(self) -> str | None:
        """The item's type."""
        return self.item.get("type")

    def unsaid(self) -> str:
        """Return the part of a complete item's text that no chunk has contained yet."""
        text = "".join(str(part.get("text") or "") for part in wire.parts_of(self.item) if part.get("type") == "output_text")
        return text[self.text_length :]

    def unrefused(self) -> str:
        """Return the part of a complete item's refusal that no chunk has contained yet."""
        refusal = "".join(str(part.get("refusal") or "") for part in wire.parts_of(self.item) if part.get("type") == "refusal")
        return refusal[self.refusal_length :]

    def unthought(self) -> list[str]:
        """Return the part of a complete item's reasoning that has not been handed on: its parts, or the remainder as one."""
        parts = _thoughts_of(self.item, self.thinks_in)
        if not self.thought_length:
            return [part for part in parts if part]
        rest = "".join(parts)[self.thought_length :]
        return [rest] if rest else []

    def piece(self, text: str, *, ended: bool = False) -> CallPiece | None:
        """Return a piece of a call that is being written; None if there is nothing to show.

        Args:
            text: The piece of the arguments; of a custom tool's input, which becomes the JSON of one argument.
            ended: Whether the item is complete.
        """
        kind, call_id, name = self.item.get("type"), self.item.get("call_id"), self.item.get("name")
        if kind not in wire.CALL_TYPES or not call_id or not name:
            return None
        if kind == wire.CUSTOM_CALL:
            text = _custom_piece(text if self.pieces or not ended else str(self.item.get("input") or ""), first=not self.shown, last=ended)
        elif ended:
            return None
        first, self.shown = not self.shown, True
        return CallPiece(call_id, name if first else None, text)

    def note(self, item: wire.Item) -> None:
        """Keep what an item says of a call's arguments."""
        if self.kind in wire.CALL_TYPES:
            self.given.append(item.get("input" if self.kind == wire.CUSTOM_CALL else "arguments"))

    def as_item(self) -> wire.Item:
        """Return the item; a call without arguments gets those that were streamed."""
        if self.kind not in wire.CALL_TYPES or (self.done and not self.pieces):
            return self.item
        written = "".join(self.pieces)
        if self.kind == wire.CUSTOM_CALL:
            return {**self.item, "input": self.item.get("input") or written}
        return {**self.item, "arguments": self.item.get("arguments") or written}

    def accounts(self) -> list[list[str]]:
        """Return all that was said of a call's arguments, where that is more than one thing: the pieces of each account."""
        written, given = "".join(self.pieces), {as_text(one) for one in self.given} - {""}
        if len(given | {written}) < 2 or (self.kind == wire.CUSTOM_CALL and not written and len(given) < 2):
            return []
        if self.kind != wire.CUSTOM_CALL:
            return [self.pieces, *([one] for one in given)]
        ended = not given  # else the pieces of a free text may be the beginning of the whole
        pieces = [_custom_piece(written, first=True, last=ended)] if written and written not in given else []
        return [pieces, *([_custom_piece(one, first=True, last=True)] for one in given)]


def _thoughts_of(item: wire.Item, kind: Literal["content", "summary"] | None) -> list[str]:
    """Return the parts of a reasoning item's text: of its summary, else of its content.

    Args:
        item: The item.
        kind: The text to return; None: the first that is not empty.
    """
    keys: tuple[Literal["content", "summary"], ...] = (kind,) if kind else ("summary", "content")
    for key in keys:
        texts = [str(part.get("text") or "") for part in wire.parts_of(item, key)]
        if any(texts):
            return texts
    return []


def _is_same(item: wire.Item, other: wire.Item) -> bool:
    """Whether two items are the same by their id or by their call's."""
    return any(item.get(key) == other.get(key) for key in ("id", "call_id") if item.get(key))


class Slots:
    """The items of one reply."""

    def __init__(self) -> None:
        self._slots: list[Slot] = []
        self._by_index: dict[int, Slot] = {}
        self._by_id: dict[str, Slot] = {}

    def of(self, event: wire.ResponseEvent, kind: str) -> Slot:
        """Return the slot of the item that an event belongs to; `kind` is the item's type.

        Args:
            event: The event.
            kind: The type of the item that it is about.
        """
        found = self._find(event.get("output_index"), event.get("item_id"))
        if found is None and event.get("item_id") is None and event.get("output_index") is None:
            found = next((slot for slot in reversed(self._slots) if slot.kind == kind and not slot.done), None)
        return found if found is not None else self._new(event.get("output_index"), {"type": kind, "id": event.get("item_id")})

    def open(self, event: wire.ResponseEvent, item: wire.Item) -> Slot:
        """Return the slot of an item that begins.

        Args:
            event: The event that says so.
            item: The item as it begins.
        """
        found = self._find(event.get("output_index"), item.get("id"))
        if found is None:
            found = self._new(event.get("output_index"), item)
        found.item = {**found.item, **item}
        found.note(item)
        return found

    def close(self, event: wire.ResponseEvent, item: wire.Item) -> Slot:
        """Return the slot of an item that is complete.

        Args:
            event: The event that says so.
            item: The whole item.
        """
        slot = self._find(event.get("output_index"), item.get("id")) or self._same_call(item) or self._new(event.get("output_index"), item)
        return self._complete(slot, item)

    def complete_from(self, output: Sequence[wire.Item]) -> list[Slot]:
        """Complete the items from the whole reply and return the slots that were incomplete."""
        aligned = len(output) == len(self._slots)
        closed = len(output) <= len(self._slots) and all(slot.done for slot in self._slots)
        completed = []
        for position, item in enumerate(output):
            slot = self._by_id.get(item.get("id") or "") or self._same_call(item) or self._at(position, item)
            if slot is not None and slot.done:
                if aligned or _is_same(slot.item, item):
                    slot.note(item)
            elif slot is not None or not closed:
                completed.append(self._complete(slot or self._new(position, item), item))
        return completed

    def ordered(self) -> list[Slot]:
        """Return all slots in the order of the reply."""
        if any(slot.index is None for slot in self._slots):
            return self._slots
        return sorted(self._slots, key=lambda slot: slot.index or 0)

    def _find(self, index: int | None, identifier: str | None) -> Slot | None:
        found = self._by_index.get(index) if index is not None else None
        return found if found is not None or not identifier else self._by_id.get(identifier)

    def _same_call(self, item: wire.Item) -> Slot | None:
        """Return the open slot of the same call, for servers that change an item's id at the end."""
        wanted = item.get("call_id")
        return next((slot for slot in self._slots if wanted and not slot.done and slot.item.get("call_id") == wanted), None)

    def _at(self, position: int, item: wire.Item) -> Slot | None:
        ordered = self.ordered()
        return ordered[position] if position < len(ordered) and ordered[position].kind == item.get("type") else None

    def _new(self, index: int | None, item: wire.Item) -> Slot:
        slot = Slot(len(self._slots), index if isinstance(index, int) else None, item)
        self._slots.append(slot)
        if index is not None:
            self._by_index[index] = slot
        if identifier := item.get("id"):
            self._by_id[identifier] = slot
        return slot

    def _complete(self, slot: Slot, item: wire.Item) -> Slot:
        slot.item, slot.done = item, True
        slot.note(item)
        if identifier := item.get("id"):
            self._by_id[identifier] = slot
        return slot


# ---------------------------------------------------------------------------------------------- decode
# Decoding of Responses API replies to raw chunks: whole bodies and streams, in the dialects of OpenAI and other servers.
#
# Text, reasoning and refusals leave with their deltas. Calls are taken from complete items at the end, together with the outline of the
# items (see `responses_items`) that lets them go back as they were. A whole body is a stream that brings everything with its last event.


_Blocks = list[dict[str, Any]]

_TEXT_DELTA = "response.output_text.delta"
_SUMMARY_DELTA = "response.reasoning_summary_text.delta"
_THOUGHT_DELTA = "response.reasoning_text.delta"
_CALL_DELTAS = {"response.function_call_arguments.delta": wire.FUNCTION_CALL, "response.custom_tool_call_input.delta": wire.CUSTOM_CALL}
_OF_RESPONSES = frozenset({"error", "id", "model", "object", "output", "output_text", "usage"})
_ENDS = {"max_output_tokens": "length", "max_tokens": "length", "content_filter": "content_filter"}
_UNFINISHED = frozenset({"queued", "in_progress"})
_WHOLE = ("stop", "tool_calls")
_REASONING = "reasoning_content"
_PROVIDER = "openai"
_IMAGE = "image_generation_call"
_PIECE = "piece"
_OF_IMAGES = ("output_format", "quality", "size", "background")


class ResponsesDecoder:
    """Decodes the events of one streamed reply, or one whole reply.

    Args:
        origin: The endpoint and model that reply, kept so that items find their way back.
        request: The request's parameters, whose repetition in the reply is not kept.
        stored: Whether the server was asked to store the reply (one that says otherwise is believed).
        blocks: Whether content is a list of v1 content blocks.
        listed: Whether content is a list of the wire's blocks from the start, of a reply that may hold calls for the caller.

    Attributes:
        ended: Whether the wire's own end marker has come.
        in_blocks: Whether content is a list.
        message_id: The reply's id, once it is known.
    """

    def __init__(
        self,
        *,
        origin: str = "",
        request: Mapping[str, Any] | None = None,
        stored: bool = True,
        blocks: bool = False,
        listed: bool = False,
    ) -> None:
        self.ended = False
        self._origin = origin
        self._request = request
        self._stored = stored
        self._blocks, self._listed, self.in_blocks = blocks, listed and not blocks, blocks or listed
        self._known = False
        self.message_id: str | None = None
        self._response: wire.Response = {}
        self._slots = Slots()
        self._finish_reason: str | None = None
        self._done = False
        self._rest: _Blocks = []
        self._audio: dict[str, Any] = {}
        self._unknown: dict[str, Any] | None = None
        self._watched = current_scope.get() is not None

    def feed(self, event: wire.ResponseEvent) -> AIMessageChunk | None:
        """Process one event and return its text, reasoning or refusal as a chunk, or None.

        Raises:
            Exception: The event is an error, or holds one; it is raised as the vendor's own error.
        """
        kind = event.get("type")
        self._known = self._known or str(kind).startswith("response.")
        if kind == _TEXT_DELTA and not self.in_blocks:
            text = event.get("delta")
            if not text or text.__class__ is not str:
                return None
            self._slots.of(event, "message").text_length += len(text)
            return new_chunk(text, {}, self.message_id)
        if kind in (_SUMMARY_DELTA, _THOUGHT_DELTA) and not self._blocks:
            thought = self._thought(event)[1]
            return new_chunk([] if self.in_blocks else "", {_REASONING: thought}, self.message_id) if thought else None
        if event.get("error") or kind == "error":
            self._error(event.get("error") or event)
            return None
        if self._unknown is not None and kind != "response.failed":
            raise error_from_body(self._unknown)
        handler = _HANDLERS.get(kind) if isinstance(kind, str) else None
        if handler is not None:
            return self._chunk(handler(self, event))
        if isinstance(kind, str) and kind in _CALL_DELTAS:
            return self._call_delta(event, _CALL_DELTAS[kind])
        if kind is None and isinstance(event.get("output"), list):  # a whole body where a stream was asked for
            self._known = True
            self._end({"type": "response.completed", "response": event})
        return None

    def done(self) -> None:
        """Record that a server has closed its stream with `[DONE]`, which ends the reply if no event did."""
        self._done = True

    @property
    def complete(self) -> bool:
        """Whether an event with the end of the reply, or a gateway's end marker, has arrived."""
        return self.ended or self._done

    def decode_body(self, body: wire.Response) -> AIMessageChunk:
        """Return a whole reply as one raw chunk.

        Raises:
            StreamError: The reply is not one of the Responses API, or is not finished.
            Exception: The reply holds an error; it is raised as the vendor's own.
        """
        if not isinstance(body, Mapping):
            raise StreamError(f"the reply is not a JSON object of the Responses API but {str(body)[:200]!r}")
        if body.get("error"):
            raise error_from_body(body["error"])
        self.feed({"type": "response.completed", "response": body})
        if not isinstance(body.get("output"), list):
            raise StreamError(f"the reply has no output, only {sorted(map(str, body))}")
        return self.finish()

    # ------------------------------------------------------------------------------------------ what leaves at once

    def _text_delta(self, event: wire.ResponseEvent) -> _Blocks:
        slot, text = self._slots.of(event, "message"), str(event.get("delta") or "")
        slot.text_length += len(text)
        return [{"type": "text", "text": text, "index": f"{slot.number}"}] if text else []

    def _refusal_delta(self, event: wire.ResponseEvent) -> _Blocks:
        slot, text = self._slots.of(event, "message"), str(event.get("delta") or "")
        slot.refusal_length += len(text)
        return [{"type": "refusal", "refusal": text}] if text else []

    def _thought(self, event: wire.ResponseEvent) -> tuple[Slot, str]:
        """Record a delta of reasoning; return its item, and its text, empty where the item thinks elsewhere."""
        key: Literal["content", "summary"] = "summary" if event["type"] == _SUMMARY_DELTA else "content"
        slot, text = self._slots.of(event, "reasoning"), str(event.get("delta") or "")
        slot.thinks_in = slot.thinks_in or key
        if slot.thinks_in != key:
            return slot, ""
        slot.thought_length += len(text)
        return slot, text

    def _thought_delta(self, event: wire.ResponseEvent) -> _Blocks:
        slot, text = self._thought(event)
        part = event.get("summary_index" if event["type"] == _SUMMARY_DELTA else "content_index")
        return [{"type": "reasoning", "reasoning": text, "index": f"{slot.number}.{part or 0}"}] if text else []

    def _arguments_done(self, event: wire.ResponseEvent) -> _Blocks:
        slot = self._slots.of(event, wire.FUNCTION_CALL)
        if event.get("arguments"):
            slot.given.append(event["arguments"])
            if not slot.done:
                slot.item = {**slot.item, "name": event.get("name") or slot.item.get("name"), "arguments": event["arguments"]}
        return []

    def _input_done(self, event: wire.ResponseEvent) -> _Blocks:
        self._slots.of(event, wire.CUSTOM_CALL).given.append(event.get("input"))
        return []

    def _call_delta(self, event: wire.ResponseEvent, kind: str) -> AIMessageChunk | None:
        slot, text = self._slots.of(event, kind), str(event.get("delta") or "")
        slot.pieces.append(text)
        piece = slot.piece(text) if self._watched else None
        return None if piece is None else piece_chunk(piece, self.message_id, listed=self.in_blocks)

    def _item_added(self, event: wire.ResponseEvent) -> _Blocks:
        return self._shown(self._slots.open(event, {**event["item"]})) if isinstance(event.get("item"), Mapping) else []

    def _shown(self, slot: Slot, *, ended: bool = False) -> _Blocks:
        """Return the beginning or the end of a growing call, for listeners only: the call itself follows with its item."""
        piece = slot.piece("", ended=ended) if self._watched else None
        return [{"type": _PIECE, "piece": piece}] if piece else []

    def _item_done(self, event: wire.ResponseEvent) -> _Blocks:
        slot = self._slots.close(event, {**event["item"]}) if isinstance(event.get("item"), Mapping) else None
        return self._rest_of_item(slot) or self._shown(slot, ended=True) if slot else []

    def _rest_of_item(self, slot: Slot) -> _Blocks:
        """Return the content of a complete item that has not been handed on."""
        if slot.kind == "message":
            refusal = slot.unrefused()
            return [*self._rest_of_text(slot), *([{"type": "refusal", "refusal": refusal}] if refusal else [])]
        if slot.kind == "reasoning":
            first = 1 if slot.thought_length else 0
            return [
                {"type": "reasoning", "reasoning": text, "index": f"{slot.number}.{part if not first else 'rest'}"}
                for part, text in enumerate(slot.unthought())
            ]
        if slot.kind in wire.CALL_TYPES or not self._blocks:
            return []
        return [{**block, "index": f"{slot.number}.{part}"} for part, block in enumerate(_standard(slot.item))]

    def _rest_of_text(self, slot: Slot) -> _Blocks:
        text, annotations = slot.unsaid(), wire.annotations_of(slot.item) if self._blocks else []
        if not text and not annotations:
            return []
        block: dict[str, Any] = {"type": "text", "text": text}
        (block,) = _standard({**block, "annotations": annotations}) if annotations else [block]
        return [{**block, "index": f"{slot.number}"}]

    def _partial_image(self, event: wire.ResponseEvent) -> _Blocks:
        """Return a partial image, which readers of the stream receive and messages do not keep."""
        data = event.get("partial_image_b64")
        if not self.in_blocks or not data:
            return []
        slot, number = self._slots.of(event, _IMAGE), event.get("partial_image_index") or 0
        block: dict[str, Any] = {"type": _IMAGE, "id": slot.item.get("id") or event.get("item_id"), "result": data}
        block |= {key: value for key, value in event.items() if key in _OF_IMAGES and value}
        marks = {PROVISIONAL: True, "partial_image_index": number}
        if self._listed:
            return [{**block, **marks}]
        return [
            {**one, "extras": {**one.get("extras", {}), **marks}, "index": f"{slot.number}.partial{number}"} for one in _standard(block)
        ]

    def _audio_delta(self, event: wire.ResponseEvent) -> _Blocks:
        """Collect sound, or what is spoken in it: no item says it."""
        add_audio(self._audio, {"transcript" if "transcript" in event["type"] else "data": event.get("delta")})
        return []

    def _chunk(self, blocks: _Blocks) -> AIMessageChunk | None:
        if not blocks:
            return None
        if blocks[0]["type"] == _PIECE:
            return piece_chunk(blocks[0]["piece"], self.message_id, listed=self.in_blocks)
        content, extra = self._in_form(blocks)
        chunk = new_chunk(content, extra, self.message_id)
        if self._listed and any(block["type"] == _IMAGE for block in blocks):
            chunk.__dict__["response_metadata"] = {"model_provider": _PROVIDER}  # tells core how to read the block
        return chunk

    def _in_form(self, blocks: _Blocks) -> tuple[str | list[Any], dict[str, Any]]:
        """Return blocks as a chunk's content and additional keywords, in the requested form."""
        refusal = "".join(block["refusal"] for block in blocks if block["type"] == "refusal")
        extra = {"refusal": refusal} if refusal else {}
        if self._blocks:
            return [block for block in blocks if block["type"] != "refusal"], extra
        thought = "".join(block["reasoning"] for block in blocks if block["type"] == "reasoning")
        texts = [block for block in blocks if block["type"] == "text"]
        extra |= {_REASONING: thought} if thought else {}
        if self._listed:
            numbered = [{"type": "text", "text": block["text"], "index": int(block["index"])} for block in texts]
            return [*numbered, *(block for block in blocks if block["type"] == _IMAGE)], extra
        return "".join(block["text"] for block in texts), extra

    # ------------------------------------------------------------------------------------------ the reply as a whole

    def _note(self, event: wire.ResponseEvent) -> _Blocks:
        response = event.get("response")
        if isinstance(response, Mapping):
            known: Any = {key: value for key, value in response.items() if value is not None}
            self._response = {**self._response, **known}
            self.message_id = self.message_id or str(response.get("id") or "") or None
        return []

    def _error(self, error: Any) -> None:
        """Handle an error in the stream. One without a kind waits for the next event, which may contain it."""
        body = dict(error) if isinstance(error, Mapping) else {"message": str(error)}
        if body.get("type") == "error":
            del body["type"]
        if self._unknown is not None or is_known_error(body):
            raise error_from_body(body)
        self._unknown = body

    def _failed(self, event: wire.ResponseEvent) -> _Blocks:
        response = event.get("response")
        error = response.get("error") if isinstance(response, Mapping) else None
        raise error_from_body(error or self._unknown or {"message": "the server says that its reply failed"})

    def _end(self, event: wire.ResponseEvent) -> _Blocks:
        if not isinstance(event.get("response"), Mapping):
            raise StreamError(f"the event {event['type']} holds no response")
        self._note(event)
        status = self._response.get("status")
        if self._response.get("error") or status == "failed":
            self._failed({"type": "response.failed", "response": self._response})
        if status in _UNFINISHED and event["type"] == "response.completed":
            raise StreamError(f"the reply is not finished: its status is {status!r} (a background response is polled, not read)")
        self.ended = True
        output = self._response.get("output")
        items: list[wire.Item] = [{**item} for item in output if isinstance(item, Mapping)] if isinstance(output, list) else []
        for slot in self._slots.complete_from(items):
            self._rest += self._rest_of_item(slot)
        self._finish_reason = self._reason(status, event["type"])
        return []

    def _reason(self, status: str | None, kind: str) -> str:
        """Return the finish reason. A call marked incomplete makes the turn incomplete, so that no call of it runs."""
        details = self._response.get("incomplete_details")
        if status == "incomplete" or (kind == "response.incomplete" and status in (None, *_UNFINISHED)):
            reason = details.get("reason") if isinstance(details, Mapping) else None
            return _ENDS.get(str(reason), "incomplete")
        if status not in (None, "completed", *_UNFINISHED):
            return str(status)
        calls = [slot.item for slot in self._slots.ordered() if slot.kind in wire.CALL_TYPES]
        if any(call.get("status") == "incomplete" for call in calls):
            return "incomplete"
        return "tool_calls" if calls else "stop"

    # ------------------------------------------------------------------------------------------ the end

    def finish(self) -> AIMessageChunk:
        """Return the last chunk: calls, id, model, finish reason, usage, and the data for sending the reply back unchanged.

        Raises:
            StreamError: The stream held no event of this wire.
        """
        if self._unknown is not None:
            raise error_from_body(self._unknown)
        if not self._known:
            raise StreamError("the reply held no events of the Responses API")
        if self._finish_reason is None:  # nothing but [DONE], or not even that
            whole = self._done and all(slot.done for slot in self._slots.ordered())
            self._finish_reason = self._reason(None, "") if whole else "incomplete"
        slots = self._slots.ordered()
        items = [slot.as_item() for slot in slots]
        content, extra = self._in_form(self._rest)
        pending = wire.pending_calls(items) if self._finish_reason in _WHOLE else []
        drawn = [item for item in items if item.get("type") == _IMAGE and item.get("result")]  # pictures
        inside = [slot for slot in slots if slot.item in [*pending, *drawn] or (self._listed and _is_other(slot.item))]
        inside = [] if self._blocks else inside
        if inside:
            waiting = [{**slot.item, "index": slot.number} for slot in inside]
            content = [*([content] if isinstance(content, str) and content else content), *waiting]
        chunk = new_chunk(content, {**extra, **self._extra(slots, items, [slot.item for slot in inside])}, self.message_id)
        chunk.__dict__["response_metadata"] = self._last_metadata(items, pending)
        usage = self._response.get("usage")
        if isinstance(usage, Mapping):
            chunk.__dict__["usage_metadata"] = responses_usage(usage, self._response.get("service_tier"))
        return chunk

    def _extra(self, slots: Sequence[Slot], items: list[wire.Item], inside: list[wire.Item]) -> dict[str, Any]:
        extra: dict[str, Any] = {"audio": self._audio} if self._audio else {}
        numbered = enumerate(zip(slots, items, strict=True))
        calls = [_fragment(item, number, slot.accounts()) for number, (slot, item) in numbered if slot.kind in wire.CALL_TYPES]
        if calls:
            extra["tool_calls"] = calls
        if not self._blocks:
            annotations = [entry for item in items for entry in wire.annotations_of(item)]
            others = [item for item in items if _is_other(item) and item not in inside]
            extra |= {name: value for name, value in (("annotations", annotations), ("tool_outputs", others)) if value}
        return extra

    def _last_metadata(self, items: list[wire.Item], pending: Sequence[wire.Item]) -> dict[str, Any]:
        known = {
            "model_provider": _PROVIDER,
            "output_version": "v1" if self._blocks else None,
            "id": str(self._response.get("id") or ""),
            "model_name": self._response.get("model"),
            "finish_reason": self._finish_reason,
            "token_usage": self._response.get("usage"),
            "logprobs": _log_probabilities(items),
            "unfinished_items": _unfinished(items),
        }
        metadata = reply_metadata(self._response, _OF_RESPONSES, self._request) | {key: value for key, value in known.items() if value}
        if self._origin:
            complete = self._finish_reason in _WHOLE
            kept = wire.outline(items, stored=self._response.get("store", self._stored) is not False) if complete else []
            metadata[KEY] = {"origin": self._origin, **({"items": kept} if kept else {})}
        own: dict[str, Any] = {"awaits": [wire.awaited_entry(item) for item in pending]} if pending else {}
        if self._listed:
            own["call_blocks"] = {"type": wire.FUNCTION_CALL, "first": len(items), "id": "call_id"}
        return {**metadata, KEY: {**metadata.get(KEY, {}), **own}} if own else metadata


_HANDLERS: dict[str, Callable[[ResponsesDecoder, wire.ResponseEvent], _Blocks]] = {
    _TEXT_DELTA: ResponsesDecoder._text_delta,
    "response.refusal.delta": ResponsesDecoder._refusal_delta,
    _SUMMARY_DELTA: ResponsesDecoder._thought_delta,
    _THOUGHT_DELTA: ResponsesDecoder._thought_delta,
    "response.function_call_arguments.done": ResponsesDecoder._arguments_done,
    "response.custom_tool_call_input.done": ResponsesDecoder._input_done,
    "response.image_generation_call.partial_image": ResponsesDecoder._partial_image,
    "response.audio.delta": ResponsesDecoder._audio_delta,
    "response.audio.transcript.delta": ResponsesDecoder._audio_delta,
    "response.output_item.added": ResponsesDecoder._item_added,
    "response.output_item.done": ResponsesDecoder._item_done,
    "response.created": ResponsesDecoder._note,
    "response.in_progress": ResponsesDecoder._note,
    "response.queued": ResponsesDecoder._note,
    "response.completed": ResponsesDecoder._end,
    "response.incomplete": ResponsesDecoder._end,
    "response.cancelled": ResponsesDecoder._end,
    "response.failed": ResponsesDecoder._failed,
}


def _is_other(item: wire.Item) -> bool:
    """Whether an item is neither a message nor a function call of the model."""
    return item.get("type") not in ("message", "reasoning", *wire.CALL_TYPES)
