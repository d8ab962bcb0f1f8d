"""Reading of /api/chat replies: raw chunks for the run, events for its listeners."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from langchain_core.messages import AIMessageChunk
from langchain_core.messages.ai import UsageMetadata

from ...chunks import new_chunk
from ...errors import StreamError
from ...event_types import RunEvent
from ...messages.metadata import KEY
from .._base.replies import VendorEvents, file_made, reply_metadata, sum_of
from .._encode.sources import image_type
from .errors import error_from_body, error_text

# ---------------------------------------------------------------------------------------------- usage
# Token counts of /api/chat in LangChain's terms.


def usage_metadata(reply: Mapping[str, Any]) -> UsageMetadata | None:
    """Return the token counts of one reply; None if there are none, or one of them is no number of tokens.

    Args:
        reply: The reply's last event: `prompt_eval_count` is left out by servers that took the whole prompt from their cache.
    """
    read, written = sum_of(reply, "prompt_eval_count"), sum_of(reply, "eval_count")
    if read is None or written is None or not {"prompt_eval_count", "eval_count"} & reply.keys():
        return None
    return UsageMetadata(input_tokens=read, output_tokens=written, total_tokens=read + written)


# ---------------------------------------------------------------------------------------------- decode
# Decoding of /api/chat replies to raw chunks: streams of JSON lines, and whole bodies as a stream of one.
#
# Wire facts (wire quirks O-01 to O-09, T-07): a call comes whole, its arguments as an object, in any event, the last one included; older
# servers send neither id nor index, so a call's place tells it apart. `done` marks the end and `done_reason` says "stop" also where there
# are calls. An event may have no message (`done_reason` "load"). An error is a line of its own, `{"error": ...}`, of some releases under
# the key "error parsing tool call". That one is the model's mistake, not the server's: it becomes a call that cannot run, and the model
# is told.


PROVIDER = "ollama"
"""The `model_provider` of replies."""

_REASONING = "reasoning_content"
_MISTAKE = "error parsing tool call"
_RAW = re.compile(r"raw='(?P<raw>.*)', err=", re.DOTALL)
_OF_EVENTS = frozenset({"error", "logprobs", "message", "model"})
_OF_MESSAGES = frozenset({"content", "images", "role", "thinking", "tool_calls"})
_ROLE = "assistant"


def is_model_mistake(error: str) -> bool:
    """Whether an error means that the model wrote a call which the server cannot parse."""
    return error.startswith(_MISTAKE)


class OllamaDecoder:
    """Decodes the events of one streamed reply, or one whole reply as its only event.

    Args:
        origin: The endpoint and model that reply, kept with calls so that their opaque state finds its way back.

    Attributes:
        ended: Whether the wire's end marker has come.
        mistaken: Whether the server gave up on a call that the model wrote.
        in_blocks: False: content is text.
        message_id: None: replies have no id.
    """

    in_blocks = False
    message_id = None

    def __init__(self, *, origin: str = "") -> None:
        self.ended = False
        self.mistaken = False
        self._origin = origin
        self._known = False
        self._model: str | None = None
        self._calls = 0
        self._last: Mapping[str, Any] = {}
        self._of_message: dict[str, Any] = {}
        self._images: list[Any] = []

    def feed(self, event: Mapping[str, Any]) -> AIMessageChunk | None:
        """Process one event and return its text, reasoning and calls as a chunk, or None.

        Raises:
            Exception: The event is an error; it is raised as the vendor's own.
        """
        message = event.get("message")
        if self._known and message.__class__ is dict and event.get("done") is False and "logprobs" not in event and "role" in message:
            text, thinking, size = message.get("content"), message.get("thinking"), len(message)
            if size == 2 and text.__class__ is str:
                return new_chunk(text, {}, None) if text else None
            if size == 3 and text == "" and thinking and thinking.__class__ is str:
                return new_chunk("", {_REASONING: thinking}, None)
        return self._read(event, message)

    def done(self) -> None:
        """Record that the wire's own end marker has come."""
        self.ended = True

    @property
    def complete(self) -> bool:
        """Whether the end marker, or an error that ends the reply, has arrived."""
        return self.ended or self.mistaken

    def decode_body(self, body: Mapping[str, Any]) -> AIMessageChunk:
        """Return a whole reply as one raw chunk.

        Raises:
            StreamError: The reply is not one of /api/chat.
            Exception: The reply holds an error; it is raised as the vendor's own.
        """
        if not isinstance(body, Mapping):
            raise StreamError(f"the reply is no JSON object but {str(body)[:200]!r}")
        first = self.feed(body)
        if not self.complete:
            raise StreamError(f"the reply is no whole answer of /api/chat: it has only {sorted(map(str, body))}")
        last = self.finish()
        if first is not None:
            last.content = [str(first.content), *last.content] if first.content and last.content else first.content or last.content
            last.additional_kwargs = {**first.additional_kwargs, **last.additional_kwargs}
            last.response_metadata |= first.response_metadata
        return last

    def _read(self, event: Mapping[str, Any], message: Any) -> AIMessageChunk | None:
        failed = _error_of(event)
        if failed is not None:
            return self._failure(failed)
        self._known = self._known or isinstance(message, Mapping) or "done" in event
        self._model = self._model or str(event.get("model") or "") or None
        if event.get("done"):
            self.ended = True
            self._last = event
        reply = message if isinstance(message, Mapping) else {}
        self._images += reply.get("images") or ()
        if reply.keys() - _OF_MESSAGES or reply.get("role", _ROLE) != _ROLE:
            self._of_message |= reply_metadata(reply, _OF_MESSAGES - {"role"} if reply.get("role", _ROLE) != _ROLE else _OF_MESSAGES)
        extra: dict[str, Any] = {}
        if reply.get("thinking"):
            extra[_REASONING] = str(reply["thinking"])
        if reply.get("tool_calls"):
            extra["tool_calls"] = self._numbered(reply["tool_calls"])
        text, logprobs = str(reply.get("content") or ""), event.get("logprobs")
        if not text and not extra and not logprobs:
            return None
        chunk = new_chunk(text, extra, None)
        if logprobs:
            chunk.__dict__["response_metadata"] = {"logprobs": logprobs}
        return chunk

    def _numbered(self, calls: Any) -> list[dict[str, Any]]:
        """Return the calls with their positions in the reply: each is whole, and equal ones are distinct."""
        fragments = []
        for call in [calls] if isinstance(calls, Mapping) else calls:
            if isinstance(call, Mapping):
                fragments.append({**call, "index": self._calls})
                self._calls += 1
        return fragments

    def _failure(self, error: Any) -> AIMessageChunk:
        """Return the chunk for an error in the reply.

        Raises:
            Exception: The vendor's own error, unless it is the model's mistake.
        """
        text = error_text(error)
        if not is_model_mistake(text):
            raise error_from_body(error)
        self._known = self.mistaken = True
        raw = _RAW.search(text)
        function = {"name": "", "arguments": raw["raw"] if raw else text}
        return new_chunk("", {"tool_calls": self._numbered({"function": function})}, None)

    # ------------------------------------------------------------------------------------------ the end

    def finish(self) -> AIMessageChunk:
        """Return the last chunk, with the metadata of the whole reply.

        Raises:
            StreamError: The stream held no event of this wire.
        """
        if not self._known:
            raise StreamError("the reply held no events of /api/chat")
        chunk = new_chunk(image_blocks(map(str, self._images)) or "", {}, None)
        chunk.__dict__["response_metadata"] = self._last_metadata()
        chunk.__dict__["usage_metadata"] = usage_metadata(self._last)
        return chunk

    def _last_metadata(self) -> dict[str, Any]:
        metadata: dict[str, Any] = {"model_provider": PROVIDER}
        if self._model:
            metadata |= {"model": self._model, "model_name": self._model}
        metadata |= {**self._of_message, **reply_metadata(self._last, _OF_EVENTS)}
        if not self.complete:
            metadata["finish_reason"] = "incomplete"
        elif self._last.get("done_reason"):
            metadata["finish_reason"] = str(self._last["done_reason"])
        return {**metadata, KEY: {"origin": self._origin}} if self._origin and self._calls else metadata


def image_blocks(images: Iterable[str]) -> list[dict[str, Any]]:
    """Return pictures, each given as base64, as content blocks."""
    return [{"type": "image", "base64": data, "mime_type": image_type(data) or "image/png"} for data in images]


def _error_of(event: Mapping[str, Any]) -> Any:
    """Return the error in an event, under any key; None for other events."""
    error = event.get("error")
    if error is None and not isinstance(event.get("message"), Mapping):
        key = next((key for key in event if str(key).startswith("error")), None)
        error = None if key is None else f"{key}: {event[key]}"
    return error or None


# ---------------------------------------------------------------------------------------------- vendor events
# The images in a reply of Ollama, for listeners. They are in the message as base64 (`images`).


class OllamaEvents(VendorEvents):
    """Reads the events of one reply, or a whole body."""

    marks = re.compile(rb'"images"')

    def read(self, event: Mapping[str, Any]) -> Iterator[RunEvent]:
        """Yield the images in an event."""
        for data in (event.get("message") or {}).get("images") or ():
            yield file_made(None, data)
