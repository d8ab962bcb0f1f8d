"""Decoding of chat completions replies to raw chunks: whole bodies and streams, in the dialects of OpenAI and other servers.

Shapes that servers send and that are read here: chunks without choices, with `delta` null or absent, with a whole `message` in
its place, content as a list of parts, one reply spread over several choices, usage in every chunk or inside a choice or under
`x_groq`, errors inside a stream that began well. A fragment of a tool call is handed on as it came; those that bring nothing but more
text wait for the next one that brings more, or for the end: they leave with the end of the turn at the earliest. Listeners get their
text at once.
"""

from collections.abc import Mapping
from typing import Any, NoReturn

from langchain_core.messages import AIMessageChunk

from ...chunks import new_chunk
from ...errors import StreamError
from ...event_bus import listening
from ...messages.metadata import KEY
from ...tool_calls.fragments import text_at
from ...turn.partial_calls import CallPiece, piece_chunk
from .._base.reply_metadata import reply_metadata
from .._encode.json_text import dumps
from .calls import CUSTOM_ARGUMENT
from .dialect import OPENAI, Dialect
from .encode import REASONING_KEYS, THINKING_PART, THINKING_PARTS
from .errors import error_from_body
from .streamed_parts import add_audio, add_log_probabilities, add_reasoning_details, add_thinking, is_more_than_text, text_of
from .usage import usage_metadata
from .wire import Call, CallText, Choice, Event, Part, Usage

# `obfuscation` is padding, other in each event.
_OF_EVENTS = frozenset({"choices", "error", "id", "model", "obfuscation", "object", "type", "usage"})
_OBJECTS = ("chat.completion", "chat.completion.chunk")
# `content_filter_offsets` are places in a stream, which a whole reply does not name.
_OF_CHOICES = frozenset({"content_filter_offsets", "delta", "error", "finish_reason", "index", "logprobs", "message", "text", "usage"})
_ROLE = "assistant"
_LISTS = ("annotations", "executed_tools", "images")
# Of a message of the server's own tools among the deltas.
_PLACES = ("index", "tool_call_id")
# Two choices of one reply may both number their calls from 0.
_CHOICE_OFFSET = 1_000_000


def _only_piece(event: Event) -> tuple[str, Any] | None:
    """Return the name and the value of the one thing that an event contains, a piece of its delta; None for other events."""
    choices = event.get("choices")
    if choices.__class__ is not list or len(choices) != 1 or event.get("usage") or "error" in event:
        return None
    choice = choices[0]
    delta = choice.get("delta") if choice.__class__ is dict else None
    if not delta or len(delta) != 1 or choice.get("finish_reason") or choice.get("logprobs") or choice.get("index"):
        return None
    ((key, value),) = delta.items()
    return (key, value) if value else None


class ChatCompletionsDecoder:
    """Decodes the events of one streamed reply, or one whole reply as its only event.

    Args:
        origin: The endpoint and model that reply, kept with calls so that their opaque state finds its way back.
        dialect: The vendor's way to speak this wire.
        request: The request's parameters, whose repetition in the reply is not kept.
        choices: The number of requested alternatives (`n`). Of several the first is read; where one was asked for, a reply that is spread
            over several choices is put together.

    Attributes:
        ended: False: the end of this wire's streams is marked outside its events.
        in_blocks: False: content is text.
        message_id: The reply's id, once it is known.
    """

    ended = in_blocks = False

    def __init__(self, *, origin: str = "", dialect: Dialect = OPENAI, choices: int = 1, request: Mapping[str, Any] | None = None) -> None:
        self._origin = origin
        self._request = request
        self._provider = dialect.provider
        self._reasoning = dialect.reasoning
        self._first_only = choices > 1
        self._known_head = False
        self._known = False
        self._done = False
        self.message_id: str | None = None
        self._model: str | None = None
        self._finish_reason: str | None = None
        self._metadata: dict[str, Any] = {}
        self._about: dict[str, Any] = {}
        self._usage: Usage | None = None
        self._seen: set[str] = set()
        self._choice_of: dict[str, int] = {}
        self._calls = False
        self._lists: dict[str, list[Any]] = {}
        self._opaque: dict[str, Any] = {}
        self._audio: dict[str, Any] = {}
        self._details: list[Any] = []
        self._thoughts: list[dict[str, Any]] = []
        self._pieces: dict[str, list[Any]] = {}
        self._log_probabilities: dict[str, list[Any]] = {}
        self._custom: set[Any] = set()
        self._fragments: list[Any] = []
        self._watched = listening.get() is not None

    def feed(self, event: Event) -> AIMessageChunk | None:
        """Process one event and return its text, reasoning and fragments of calls as a chunk, or None.

        Raises:
            Exception: The event is an error, or holds one; it is raised as the vendor's own error.
        """
        piece = _only_piece(event) if self._known_head else None
        if piece is None or piece[0] not in self._seen:
            return self._read(event)
        key, value = piece
        if value.__class__ is str and self._choice_of.get(key) == 0:
            if key == "content":
                return new_chunk(value, {}, self.message_id)
            if key in REASONING_KEYS:
                return new_chunk("", {"reasoning_content" if key == self._reasoning else key: value}, self.message_id)
        elif key == "tool_calls" and self._calls and value.__class__ is list and len(value) == 1 and (more := text_at(value[0])):
            self._fragments += value
            return piece_chunk(CallPiece("", None, more[1], more[0]), self.message_id, listed=False) if self._watched else None
        return self._read(event)

    def done(self) -> None:
        """Record that the wire's own end marker (`[DONE]`, or the end of a whole body) has arrived."""
        self._done = True

    @property
    def complete(self) -> bool:
        """Whether a finish reason or the end marker has arrived."""
        return self._done or self._finish_reason is not None

    def decode_body(self, body: Event) -> AIMessageChunk:
        """Return a whole reply as one raw chunk.

        Raises:
            StreamError: The reply is not one of chat completions.
            Exception: The reply holds an error; it is raised as the vendor's own.
        """
        if not isinstance(body, Mapping):
            raise StreamError(f"the reply is not a JSON object of chat completions but {str(body)[:200]!r}")
        first = self.feed(body)
        if not body.get("choices"):
            raise StreamError(f"the reply has no choices, only {sorted(map(str, body))}")
        self.done()
        last = self.finish()
        if first is not None:
            last.content = first.content
            last.additional_kwargs = {**first.additional_kwargs, **last.additional_kwargs}
        return last

    # ------------------------------------------------------------------------------------------ events

    def _read(self, event: Event) -> AIMessageChunk | None:
        _raise_error_of(event)
        choices = event.get("choices")
        self._known = self._known or choices is not None or isinstance(event.get("usage"), Mapping)
        if not choices or self._model is None or self.message_id is None or event.get("usage"):
            self._note(event)
        texts: list[str] = []
        extra: dict[str, Any] = {}
        for choice in [choices] if isinstance(choices, Mapping) else choices or ():
            if isinstance(choice, Mapping) and not (self._first_only and choice.get("index")):
                self._read_choice(choice, event, texts, extra)
        if not texts and not extra:
            return None
        self._known_head = self.message_id is not None and self._model is not None and not self._pieces
        return new_chunk("".join(texts), extra, self.message_id)

    def _note(self, event: Event) -> None:
        """Record metadata of the reply as a whole, which servers send at its start, at its end or in every event."""
        self.message_id = self.message_id or str(event.get("id") or "") or None
        self._model = self._model or str(event.get("model") or "") or None
        for key, value in event.items():
            if value is not None:
                self._about[key] = value
        groq = event.get("x_groq")
        usage: Usage | None = event.get("usage") or (groq.get("usage") if isinstance(groq, Mapping) else None)
        if isinstance(usage, Mapping):
            self._usage = usage

    def _read_choice(self, choice: Choice, event: Event, texts: list[str], extra: dict[str, Any]) -> None:
        _raise_error_of(choice)
        reason = choice.get("finish_reason")
        if reason:
            self._end_of(choice, str(reason), event)
        if choice.get("logprobs"):
            add_log_probabilities(self._log_probabilities, choice["logprobs"])
        if choice.keys() - _OF_CHOICES:
            self._note_choice(choice)
        number = choice.get("index") or 0
        delta, message = choice.get("delta"), choice.get("message")
        if delta and isinstance(delta, Mapping):
            self._read_delta(delta, number, texts, extra)
        elif isinstance(message, Mapping):
            # A whole body in place of a stream ends with itself. A whole message after deltas repeats them.
            self._done = self._done or event.get("object") == "chat.completion"
            rest = {key: value for key, value in message.items() if key not in self._seen}
            self._read_delta(rest, number, texts, extra, whole=True)

    def _end_of(self, choice: Choice, reason: str, event: Event) -> None:
        """Record a finish reason. If a server sends two, the one other than "stop" counts."""
        if reason.lower() == "error":
            _raise_error({"message": "the server ended its reply with the finish reason 'error'"})
        if self._finish_reason in (None, "stop"):
            self._finish_reason = reason
        self._note(event)
        if choice.get("usage"):
            self._usage = choice["usage"]

    def _note_choice(self, choice: Choice) -> None:
        """Record what a choice says besides its message: of a list all pieces, of anything else the last."""
        for key, value in reply_metadata(choice, _OF_CHOICES).items():
            if isinstance(value, list):
                value = self._pieces.setdefault(key, [])
                value += choice[key]  # type: ignore[literal-required]
            self._metadata[key] = value

    def _read_delta(self, delta: Mapping[str, Any], number: int, texts: list[str], extra: dict[str, Any], *, whole: bool = False) -> None:
        for key, value in delta.items():
            if not value or (key != "tool_calls" and self._choice_of.setdefault(key, number) != number):
                continue  # what one choice has said, another does not continue; calls may be spread over several
            if not whole:
                self._seen.add(key)
            if key == "content":
                self._add_content(value, texts, extra)
            elif key == "tool_calls":
                self._add_calls(value, number, extra, whole=whole)
            elif key in REASONING_KEYS:
                name = "reasoning_content" if key == self._reasoning else key
                extra[name] = extra.get(name, "") + text_of(value)
            elif key == "refusal":
                extra[key] = extra.get(key, "") + str(value)
            elif key == "function_call":
                self._add_function_call(value, extra)
            else:
                self._add_whole(key, value)

    def _add_content(self, value: str | Part | list[Part | str], texts: list[str], extra: dict[str, Any]) -> None:
        """Add content: text, or a list of parts, which some servers send."""
        if isinstance(value, str):
            texts.append(value)
            return
        for part in [value] if isinstance(value, Mapping) else value:
            if isinstance(part, str):
                texts.append(part)
            elif not isinstance(part, Mapping):
                continue
            elif part.get("type") == "thinking":
                name = "reasoning_content" if self._reasoning == THINKING_PART else THINKING_PART
                extra[name] = extra.get(name, "") + text_of(part.get("thinking"))
                add_thinking(self._thoughts, part)
            elif isinstance(part.get("text"), str):
                texts.append(part["text"])
            elif part.get("type", "text") != "text":
                self._lists.setdefault("images" if part.get("type") == "image_url" else "content_parts", []).append(part)

    def _add_whole(self, key: str, value: Any) -> None:
        """Collect a value for the last chunk, because LangChain's sum would corrupt fragments of it."""
        if key == "reasoning_details" and isinstance(value, list):
            add_reasoning_details(self._details, value)
        elif key == "audio" and isinstance(value, Mapping):
            add_audio(self._audio, value)
        elif key in _LISTS and isinstance(value, list):
            self._lists.setdefault(key, []).extend(value)
        elif key == "extra_content":
            self._opaque[key] = value
        elif isinstance(value, Mapping | list) or key in _PLACES or (key == "role" and value != _ROLE):
            self._add_unknown(key, value)

    def _add_unknown(self, key: str, value: Any) -> None:
        """Collect a value of which nothing is known as metadata: parts of a list together, of an object the last.

        Other unknown words in a delta are notes on the stream's progress (wire quirk E-01), which a whole reply has not."""
        before = self._metadata.get(key)
        if isinstance(value, list) and isinstance(before, list):
            value = [*before, *value]
        self._metadata.update(reply_metadata({key: value}, _OF_EVENTS))

    # ------------------------------------------------------------------------------------------ calls

    def _add_function_call(self, value: CallText, extra: dict[str, Any]) -> None:
        """Add a call in the wire's older form. Some servers send an empty one with every message."""
        if isinstance(value, Mapping) and (value.get("name") or value.get("arguments")):
            self._calls = True
            extra["function_call"] = dict(value)

    def _add_calls(self, value: Call | list[Call], number: int, extra: dict[str, Any], *, whole: bool) -> None:
        """Add fragments of calls in their original form. Some servers send one without a list around it.

        In a whole message each entry is a call of its own: its place tells it apart, whatever ids and indices say.
        """
        for position, fragment in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(fragment, Mapping):
                continue
            self._calls = True
            if whole:
                fragment = {**fragment, "index": position}
            index = fragment.get("index")
            if number and isinstance(index, int):
                fragment = {**fragment, "index": number * _CHOICE_OFFSET + index}
            if _is_custom(fragment):
                fragment = self._custom_fragment(fragment, whole)
            extra.setdefault("tool_calls", self._taken_fragments()).append(fragment)

    def _taken_fragments(self) -> list[Any]:
        """Return the fragments that wait, once."""
        fragments, self._fragments = self._fragments, []
        return fragments

    def _custom_fragment(self, fragment: Call, whole: bool) -> Call:
        """Convert a call of a custom tool to a function call with one argument: its free text becomes a JSON string, incrementally."""
        custom, slot = fragment["custom"], fragment.get("index")
        text = dumps(str(custom.get("input") or ""))[1:-1]
        if whole or slot not in self._custom:
            text = f'{{"{CUSTOM_ARGUMENT}":"{text}'
        if whole:
            text += '"}'
        else:
            self._custom.add(slot)
        call: Call = {**fragment, "function": {"name": custom.get("name"), "arguments": text}, "custom": True}
        call.pop("type", None)
        return call

    # ------------------------------------------------------------------------------------------ the end

    def finish(self) -> AIMessageChunk:
        """Return the last chunk: id, model, finish reason, usage, and values that cannot be streamed.

        Raises:
            StreamError: The stream held no event of this wire.
        """
        if not self._known:
            raise StreamError("the reply held no events of chat completions")
        chunk = new_chunk("", self._last_extra(), self.message_id)
        chunk.__dict__["response_metadata"] = self._last_metadata()
        if self._usage is not None:
            chunk.__dict__["usage_metadata"] = usage_metadata(self._usage, self._about.get("service_tier"))
        return chunk

    def _last_extra(self) -> dict[str, Any]:
        thoughts = self._thoughts if is_more_than_text(self._thoughts) else []
        whole = {"reasoning_details": self._details, "audio": self._audio, THINKING_PARTS: thoughts}
        extra: dict[str, Any] = {**self._lists, **self._opaque, **{key: value for key, value in whole.items() if value}}
        if self._custom:
            ends = ({"index": slot, "function": {"arguments": '"}'}} for slot in sorted(self._custom, key=str))
            self._fragments += [{key: value for key, value in end.items() if value is not None} for end in ends]
        if self._fragments:
            extra["tool_calls"] = self._taken_fragments()
        return extra

    def _last_metadata(self) -> dict[str, Any]:
        structure = _OF_EVENTS if self._about.get("object") in _OBJECTS else _OF_EVENTS - {"object"}
        metadata = {"model_provider": self._provider, **reply_metadata(self._about, structure, self._request), **self._metadata}
        known = {
            "id": self.message_id,
            "model_name": self._model,
            "finish_reason": self._finish_reason if self.complete else "incomplete",
            "token_usage": self._usage,
            "logprobs": self._log_probabilities,
        }
        metadata.update((key, value) for key, value in known.items() if value)
        if self._origin and self._calls:
            metadata[KEY] = {"origin": self._origin}
        return metadata


def _is_custom(fragment: Call) -> bool:
    """Whether a fragment belongs to a custom tool; some servers send an empty `custom` with every function call."""
    function = fragment.get("function")
    return isinstance(fragment.get("custom"), Mapping) and not (isinstance(function, Mapping) and function.get("name"))


# ---------------------------------------------------------------------------------------------- errors


def _raise_error_of(holder: Mapping[str, Any]) -> None:
    """Raise the error in an event, a body or a choice, if there is one."""
    error = holder.get("error")
    if error:
        _raise_error(error if isinstance(error, Mapping) else {"message": str(error)})
    elif "error" in (holder.get("object"), holder.get("type")) and holder.get("message"):
        _raise_error(holder)


def _raise_error(error: Mapping[str, Any]) -> NoReturn:
    raise error_from_body(error, _status_of(error))


def _status_of(error: Mapping[str, Any]) -> int | None:
    for key in ("status_code", "status", "code"):
        value = error.get(key)
        if isinstance(value, str) and value.isdigit():
            value = int(value)
        if isinstance(value, int) and 400 <= value < 600:
            return value
    return None
