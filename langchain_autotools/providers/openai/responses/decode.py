"""Decoding of Responses API replies to raw chunks: whole bodies and streams, in the dialects of OpenAI and other servers.

Text, reasoning and refusals leave with their deltas. Calls are taken from complete items at the end, together with the outline of
the items (see `items`) that lets them go back as they were. A whole body is a stream that brings everything with its last event.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from langchain_core.messages import AIMessageChunk

from ....chunks import new_chunk
from ....errors import StreamError
from ....event_bus import listening
from ....messages.metadata import KEY
from ....messages.provisional import PROVISIONAL
from ....turn.partial_calls import piece_chunk
from ..._base.reply_metadata import reply_metadata
from ..errors import error_from_body, is_known_error
from ..streamed_parts import add_audio
from ..usage import responses_usage
from .client_calls import awaited_entry, pending_calls
from .item_parts import annotations_of, fragment, log_probabilities, standard, unfinished
from .items import CALL_TYPES, CUSTOM_CALL, FUNCTION_CALL, outline
from .open_items import Slot, Slots
from .wire import Item, Response, ResponseEvent

_Blocks = list[dict[str, Any]]

_TEXT_DELTA = "response.output_text.delta"
_SUMMARY_DELTA = "response.reasoning_summary_text.delta"
_THOUGHT_DELTA = "response.reasoning_text.delta"
_CALL_DELTAS = {"response.function_call_arguments.delta": FUNCTION_CALL, "response.custom_tool_call_input.delta": CUSTOM_CALL}
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
        self._response: Response = {}
        self._slots = Slots()
        self._finish_reason: str | None = None
        self._done = False
        self._rest: _Blocks = []
        self._audio: dict[str, Any] = {}
        self._unknown: dict[str, Any] | None = None
        self._watched = listening.get() is not None

    def feed(self, event: ResponseEvent) -> AIMessageChunk | None:
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

    def decode_body(self, body: Response) -> AIMessageChunk:
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

    def _text_delta(self, event: ResponseEvent) -> _Blocks:
        slot, text = self._slots.of(event, "message"), str(event.get("delta") or "")
        slot.text_length += len(text)
        return [{"type": "text", "text": text, "index": f"{slot.number}"}] if text else []

    def _refusal_delta(self, event: ResponseEvent) -> _Blocks:
        slot, text = self._slots.of(event, "message"), str(event.get("delta") or "")
        slot.refusal_length += len(text)
        return [{"type": "refusal", "refusal": text}] if text else []

    def _thought(self, event: ResponseEvent) -> tuple[Slot, str]:
        """Record a delta of reasoning; return its item, and its text, empty where the item thinks elsewhere."""
        key: Literal["content", "summary"] = "summary" if event["type"] == _SUMMARY_DELTA else "content"
        slot, text = self._slots.of(event, "reasoning"), str(event.get("delta") or "")
        slot.thinks_in = slot.thinks_in or key
        if slot.thinks_in != key:
            return slot, ""
        slot.thought_length += len(text)
        return slot, text

    def _thought_delta(self, event: ResponseEvent) -> _Blocks:
        slot, text = self._thought(event)
        part = event.get("summary_index" if event["type"] == _SUMMARY_DELTA else "content_index")
        return [{"type": "reasoning", "reasoning": text, "index": f"{slot.number}.{part or 0}"}] if text else []

    def _arguments_done(self, event: ResponseEvent) -> _Blocks:
        slot = self._slots.of(event, FUNCTION_CALL)
        if not slot.done and event.get("arguments"):
            slot.item = {**slot.item, "name": event.get("name") or slot.item.get("name"), "arguments": event["arguments"]}
        return []

    def _call_delta(self, event: ResponseEvent, kind: str) -> AIMessageChunk | None:
        slot, text = self._slots.of(event, kind), str(event.get("delta") or "")
        slot.pieces.append(text)
        piece = slot.piece(text) if self._watched else None
        return None if piece is None else piece_chunk(piece, self.message_id, listed=self.in_blocks)

    def _item_added(self, event: ResponseEvent) -> _Blocks:
        return self._shown(self._slots.open(event, {**event["item"]})) if isinstance(event.get("item"), Mapping) else []

    def _shown(self, slot: Slot, *, ended: bool = False) -> _Blocks:
        """Return the beginning or the end of a growing call, for listeners only: the call itself follows with its item."""
        piece = slot.piece("", ended=ended) if self._watched else None
        return [{"type": _PIECE, "piece": piece}] if piece else []

    def _item_done(self, event: ResponseEvent) -> _Blocks:
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
        if slot.kind in CALL_TYPES or not self._blocks:
            return []
        return [{**block, "index": f"{slot.number}.{part}"} for part, block in enumerate(standard(slot.item))]

    def _rest_of_text(self, slot: Slot) -> _Blocks:
        text, annotations = slot.unsaid(), annotations_of(slot.item) if self._blocks else []
        if not text and not annotations:
            return []
        block: dict[str, Any] = {"type": "text", "text": text}
        (block,) = standard({**block, "annotations": annotations}) if annotations else [block]
        return [{**block, "index": f"{slot.number}"}]

    def _partial_image(self, event: ResponseEvent) -> _Blocks:
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
        return [{**one, "extras": {**one.get("extras", {}), **marks}, "index": f"{slot.number}.partial{number}"} for one in standard(block)]

    def _audio_delta(self, event: ResponseEvent) -> _Blocks:
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

    def _note(self, event: ResponseEvent) -> _Blocks:
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

    def _failed(self, event: ResponseEvent) -> _Blocks:
        response = event.get("response")
        error = response.get("error") if isinstance(response, Mapping) else None
        raise error_from_body(error or self._unknown or {"message": "the server says that its reply failed"})

    def _end(self, event: ResponseEvent) -> _Blocks:
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
        items: list[Item] = [{**item} for item in output if isinstance(item, Mapping)] if isinstance(output, list) else []
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
        calls = [slot.item for slot in self._slots.ordered() if slot.kind in CALL_TYPES]
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
        pending = pending_calls(items) if self._finish_reason in _WHOLE else []
        inside = [] if self._blocks else [slot for slot in slots if slot.item in pending or (self._listed and _is_other(slot.item))]
        if inside:
            waiting = [{**slot.item, "index": slot.number} for slot in inside]
            content = [*([content] if isinstance(content, str) and content else content), *waiting]
        chunk = new_chunk(content, {**extra, **self._extra(items, [slot.item for slot in inside])}, self.message_id)
        chunk.__dict__["response_metadata"] = self._last_metadata(items, pending)
        usage = self._response.get("usage")
        if isinstance(usage, Mapping):
            chunk.__dict__["usage_metadata"] = responses_usage(usage, self._response.get("service_tier"))
        return chunk

    def _extra(self, items: list[Item], inside: list[Item]) -> dict[str, Any]:
        extra: dict[str, Any] = {"audio": self._audio} if self._audio else {}
        calls = [fragment(item, number) for number, item in enumerate(items) if item.get("type") in CALL_TYPES]
        if calls:
            extra["tool_calls"] = calls
        if not self._blocks:
            annotations = [entry for item in items for entry in annotations_of(item)]
            others = [item for item in items if _is_other(item) and item not in inside]
            extra |= {name: value for name, value in (("annotations", annotations), ("tool_outputs", others)) if value}
        return extra

    def _last_metadata(self, items: list[Item], pending: Sequence[Item]) -> dict[str, Any]:
        known = {
            "model_provider": _PROVIDER,
            "output_version": "v1" if self._blocks else None,
            "id": self._response.get("id"),
            "model_name": self._response.get("model"),
            "finish_reason": self._finish_reason,
            "token_usage": self._response.get("usage"),
            "logprobs": log_probabilities(items),
            "unfinished_items": unfinished(items),
        }
        metadata = reply_metadata(self._response, _OF_RESPONSES, self._request) | {key: value for key, value in known.items() if value}
        if self._origin:
            complete = self._finish_reason in _WHOLE
            kept = outline(items, stored=self._response.get("store", self._stored) is not False) if complete else []
            metadata[KEY] = {"origin": self._origin, **({"items": kept} if kept else {})}
        own: dict[str, Any] = {"awaits": [awaited_entry(item) for item in pending]} if pending else {}
        if self._listed:
            own["call_blocks"] = {"type": FUNCTION_CALL, "first": len(items), "id": "call_id"}
        return {**metadata, KEY: {**metadata.get(KEY, {}), **own}} if own else metadata


_HANDLERS: dict[str, Callable[[ResponsesDecoder, ResponseEvent], _Blocks]] = {
    _TEXT_DELTA: ResponsesDecoder._text_delta,
    "response.refusal.delta": ResponsesDecoder._refusal_delta,
    _SUMMARY_DELTA: ResponsesDecoder._thought_delta,
    _THOUGHT_DELTA: ResponsesDecoder._thought_delta,
    "response.function_call_arguments.done": ResponsesDecoder._arguments_done,
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


def _is_other(item: Item) -> bool:
    """Whether an item is neither a message nor a function call of the model."""
    return item.get("type") not in ("message", "reasoning", *CALL_TYPES)
