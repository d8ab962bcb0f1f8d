"""Reading of chat completions replies: raw chunks for the run, events for its listeners."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from langchain_core.messages import AIMessageChunk
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.block_translators import get_translator, register_translator
from langchain_core.messages.tool import tool_call

from ...chunks import new_chunk
from ...errors import StreamError
from ...event_bus import current_scope
from ...event_types import RunEvent
from ...messages.blocks import STANDARD_CALLS
from ...messages.metadata import KEY
from ...tool_calls.slot import REPEATS, text_at
from ...turn.accumulator import CallPiece, piece_chunk
from .._base.replies import VendorEvents, detailed_usage, done, file_made, reply_metadata, source, started, token_count
from .._encode.encoder import dumps, read_object
from .dialect import OPENAI, Call, CallText, Choice, Dialect, Event, Part, Usage
from .errors import error_in, reply_error
from .mapper import CUSTOM_ARGUMENT, THINKING_PART, THINKING_PARTS

_Translate = Callable[[Any], list[Any]]


def _whole(translate: _Translate) -> _Translate:
    """Return core's translator of this wire's content without its gaps, for what `content_blocks` says of a message.

    Of a list it passes over texts that are no blocks, as sums of a stream have them, and over calls; of a text over what the vendor's tools
    did. Reasoning it expects in the content, where it reads that of other vendors beside the content, too.
    """

    def translated(message: Any) -> list[Any]:
        message = _with_tool_outputs(message)
        content, calls = message.content, []
        if isinstance(content, list):
            if any(isinstance(part, str) for part in content):
                content = [{"type": "text", "text": part} if isinstance(part, str) else part for part in content if part]
                message = message.model_copy(update={"content": content})
            told = {part.get("call_id") for part in content if isinstance(part, dict)}
            calls = [call for call in message.tool_calls if call["id"] not in told]
        blocks, thought = translate(message), message.additional_kwargs.get("reasoning_content")
        known = {block.get("id") for block in blocks if block["type"] in STANDARD_CALLS}
        blocks += [tool_call(name=call["name"], args=call["args"], id=call["id"]) for call in calls if call["id"] not in known]
        if not thought or not isinstance(thought, str) or any(block["type"] == "reasoning" for block in blocks):
            return blocks
        return [{"type": "reasoning", "reasoning": thought}, *blocks]

    return translated


def _with_tool_outputs(message: Any) -> Any:
    """Return the message with what the vendor's tools did before its text, where the content is one."""
    did = message.additional_kwargs.get("tool_outputs")
    if not did or not isinstance(did, list) or not isinstance(message.content, str):
        return message
    beside = {key: value for key, value in message.additional_kwargs.items() if key != "tool_outputs"}
    return message.model_copy(update={"content": [*did, *([message.content] if message.content else ())], "additional_kwargs": beside})


if _known := get_translator("openai"):
    register_translator("openai", *(_whole(_known[kind]) for kind in ("translate_content", "translate_content_chunk")))

# Servers count cached and reasoning tokens under the vendor's details, or under a key of their own beside them.
_CACHE_READ = ("cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens", "num_cached_tokens")
_CACHE_CREATION = ("cache_write_tokens", "cache_creation_input_tokens")
_MEDIA = ("audio", "image", "video")
_PRICED_TIERS = frozenset({"priority", "flex"})


def usage_metadata(usage: Usage, service_tier: str | None = None) -> UsageMetadata | None:
    """Return the token counts of one reply; None if it does not say how many tokens it took or wrote.

    Args:
        usage: The wire's `usage`. A missing total counts as the sum, and one missing number as what the total has beside the other.
        service_tier: The tier that served the reply. Tokens of a tier with its own price are counted under its name too, as
            LangChain's partner package does.
    """
    input_tokens, output_tokens = token_count(usage, "prompt_tokens"), token_count(usage, "completion_tokens")
    total = token_count(usage, "total_tokens")
    if total is not None and input_tokens is None:
        input_tokens = None if output_tokens is None else max(0, total - output_tokens)
    elif total is not None and output_tokens is None and input_tokens is not None:
        output_tokens = max(0, total - input_tokens)
    if input_tokens is None or output_tokens is None:
        return None
    prompt, completion = _details(usage, "prompt_tokens_details"), _details(usage, "completion_tokens_details")
    tier = service_tier if service_tier in _PRICED_TIERS else None
    prefix = f"{tier}_" if tier else ""
    cache_read = _first(prompt, usage, _CACHE_READ)
    reasoning = _first(completion, usage, ("reasoning_tokens",))
    read: dict[str, int | None] = {
        **_media_counts(prompt),
        f"{prefix}cache_read": cache_read,
        f"{prefix}cache_creation": _first(prompt, usage, _CACHE_CREATION),
    }
    written: dict[str, int | None] = {**_media_counts(completion), f"{prefix}reasoning": reasoning}
    if tier:
        read[tier] = input_tokens - (cache_read or 0)
        written[tier] = output_tokens - (reasoning or 0)
    return detailed_usage(input_tokens, output_tokens, read, written, total)


def responses_usage(usage: Mapping[str, Any], service_tier: str | None = None) -> UsageMetadata | None:
    """Return the token counts of one reply of the Responses API; see `usage_metadata` for the arguments."""
    names = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"}
    renamed = {old.replace(name, new): value for old, value in usage.items() for name, new in names.items() if name in old}
    counts: Any = {**usage, **renamed}
    return usage_metadata(counts, service_tier)


def _details(usage: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    details = usage.get(key)
    return details if isinstance(details, Mapping) else {}


def _media_counts(details: Mapping[str, Any]) -> dict[str, int | None]:
    return {name: token_count(details, f"{name}_tokens") for name in _MEDIA if f"{name}_tokens" in details}


def _first(details: Mapping[str, Any], usage: Mapping[str, Any], keys: tuple[str, ...]) -> int | None:
    """Return the first of these counts that is not 0: proxies put theirs beside a vendor's, which then says 0."""
    found = None
    for holder in (details, usage):
        for key in keys:
            if key in holder and (count := token_count(holder, key)) is not None:
                found = found or count
    return found


# ---------------------------------------------------------------------------------------------- streamed parts
# Parts of a streamed reply that are only useful as a whole, assembled from fragments.
#
# LangChain's sum of chunks joins strings under equal keys, which would double ids, formats and types; so these are put together here and
# handed on once.


_GROWING = ("text", "summary")
_PLAIN = frozenset({"type", "thinking", "closed"})
_CONTINUED = frozenset({"reasoning.text", "reasoning.summary"})


def _add_listed(entries: list[Any], more: list[Any]) -> None:
    """Append entries. A run of a tool on the server comes again with its output, which takes the place of the one before."""
    for entry in more:
        run = _run_of(entry)
        place = next((place for place, one in enumerate(entries) if run and _run_of(one) == run), len(entries))
        entries[place : place + 1] = [entry]


def _run_of(entry: Any) -> tuple[Any, ...] | None:
    """Return what tells one run of a server's tool from another; None of other entries."""
    return (entry["index"], entry["arguments"]) if isinstance(entry, Mapping) and {"index", "arguments"} <= entry.keys() else None


def _add_reasoning_details(details: list[Any], fragments: Iterable[Any]) -> None:
    """Add one delta's structured reasoning (`reasoning_details`): text and summaries grow; encrypted blocks and signatures are whole.

    The order is kept: the server wants back what it sent (openrouter.ai/docs/use-cases/reasoning-tokens).

    Args:
        details: The details so far; changed in place.
        fragments: The delta's fragments.
    """
    for fragment in fragments:
        last = details[-1] if details else None
        if isinstance(fragment, Mapping) and isinstance(last, dict) and _continues(last, fragment):
            _grow(last, fragment)
        else:
            details.append(dict(fragment) if isinstance(fragment, Mapping) else fragment)


def _continues(last: Mapping[str, Any], fragment: Mapping[str, Any]) -> bool:
    """Whether a fragment continues the last detail: same kind, same place, and not signed yet."""
    if fragment.get("type") not in _CONTINUED or fragment.get("type") != last.get("type"):
        return False
    if fragment.get("id") and last.get("id") and fragment["id"] != last["id"]:
        return False
    signed = bool(last.get("signature")) and any(fragment.get(key) for key in _GROWING)
    return fragment.get("index") == last.get("index") and not signed


def _grow(last: dict[str, Any], fragment: Mapping[str, Any]) -> None:
    for key, value in fragment.items():
        if key in _GROWING and isinstance(last.get(key), str) and isinstance(value, str):
            last[key] += value
        elif value is not None or key not in last:
            last[key] = value


def _add_thinking(parts: list[dict[str, Any]], fragment: Mapping[str, Any]) -> None:
    """Add one fragment of a thinking part: its texts grow, and what is signed is not continued.

    Args:
        parts: The parts so far; changed in place.
        fragment: The fragment.
    """
    inner = fragment.get("thinking")
    entries = inner if isinstance(inner, list) else [{"type": "text", "text": _text_of(inner)}] if inner else []
    if not parts or (entries and parts[-1].get("signature")):
        parts.append({"type": "thinking", "thinking": []})
    part = parts[-1]
    part.update((key, value) for key, value in fragment.items() if key != "thinking" and value is not None)
    for entry in entries:
        last = part["thinking"][-1] if part["thinking"] else {}
        if _is_text_entry(last) and _is_text_entry(entry):
            last["text"] += entry["text"]
        else:
            part["thinking"].append(dict(entry) if isinstance(entry, Mapping) else {"type": "text", "text": str(entry)})


def _is_text_entry(entry: Any) -> bool:
    return isinstance(entry, Mapping) and entry.keys() == {"type", "text"} and isinstance(entry["text"], str)


def _text_of(value: Any) -> str:
    """Return reasoning as text, from a string, a list of parts, or an object around one of these."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return _text_of(value.get("text") or value.get("content") or value.get("thinking") or "")
    return "".join(map(_text_of, value)) if isinstance(value, list) else ""


def add_audio(audio: dict[str, Any], fragment: Mapping[str, Any]) -> None:
    """Add one delta of an audio reply: data and transcript grow; id and expiry are set once; empty values are ignored.

    Args:
        audio: The audio so far; changed in place.
        fragment: The delta's fragment.
    """
    for key, value in fragment.items():
        if value:
            audio[key] = audio.get(key, "") + value if key in ("data", "transcript") else value


def _add_log_probabilities(log_probabilities: dict[str, list[Any]], fragment: Any) -> None:
    """Add the log probabilities of one choice to the lists so far.

    Args:
        log_probabilities: The lists so far; changed in place.
        fragment: The choice's log probabilities.
    """
    for key, value in fragment.items() if isinstance(fragment, Mapping) else ():
        if isinstance(value, list):
            log_probabilities.setdefault(key, []).extend(value)


# ---------------------------------------------------------------------------------------------- decode
# Decoding of chat completions replies to raw chunks: whole bodies and streams, in the dialects of OpenAI and other servers.
#
# Shapes that servers send and that are read here: chunks without choices, with `delta` null or absent, with a whole `message` in its place;
# content as a list of parts. One reply may be spread over several choices, usage come in every chunk or inside a choice or under `x_groq`,
# errors inside a stream that began well. A fragment of a tool call is handed on as it came. Those that bring nothing but more text wait for
# the next one that brings more, or for the end: they leave with the end of the turn at the earliest. Listeners get their text at once.


# `obfuscation` is padding, other in each event.
_OF_EVENTS = frozenset({"choices", "error", "id", "model", "obfuscation", "object", "type", "usage"})
_OBJECTS = ("chat.completion", "chat.completion.chunk")
# `content_filter_offsets` are places in a stream, which a whole reply does not name.
_OF_CHOICES = frozenset({"content_filter_offsets", "delta", "error", "finish_reason", "index", "logprobs", "message", "text", "usage"})
_ROLE = "assistant"
_LISTS = ("annotations", "executed_tools")
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


REASONING_KEYS = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
"""The keys under which servers send reasoning as text."""


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
        in_blocks: Whether content is a list of blocks from the start: of a reply that was asked for pictures.
        message_id: The reply's id, once it is known.
    """

    ended = False

    def __init__(self, *, origin: str = "", dialect: Dialect = OPENAI, choices: int = 1, request: Mapping[str, Any] | None = None) -> None:
        self._origin = origin
        self._request = request
        self._provider = dialect.provider
        self._reasoning = dialect.reasoning
        self._first_only = choices > 1
        self.in_blocks = "image" in ((request or {}).get("modalities") or ())
        self._known_head = False
        self._known = False
        self._done = self._strange = False
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
        self._images: list[Any] = []
        self._opaque: dict[str, Any] = {}
        self._audio: dict[str, Any] = {}
        self._details: list[Any] = []
        self._thoughts: list[dict[str, Any]] = []
        self._pieces: dict[str, list[Any]] = {}
        self._log_probabilities: dict[str, list[Any]] = {}
        self._custom: set[Any] = set()
        self._fragments: list[Any] = []
        self._watched = current_scope.get() is not None

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
                return new_chunk(value if not self.in_blocks else _text_blocks(value), {}, self.message_id)
            if key in REASONING_KEYS:
                return new_chunk(
                    "" if not self.in_blocks else [], {"reasoning_content" if key == self._reasoning else key: value}, self.message_id
                )
        elif key == "tool_calls" and self._calls and value.__class__ is list and len(value) == 1 and (more := text_at(value[0])):
            self._fragments += value
            return piece_chunk(CallPiece("", None, more[1], more[0]), self.message_id, listed=self.in_blocks) if self._watched else None
        return self._read(event)

    def done(self) -> None:
        """Record that the wire's own end marker (`[DONE]`, or the end of a whole body) has arrived."""
        self._done = True

    @property
    def complete(self) -> bool:
        """Whether a finish reason has arrived, or the end marker of a reply all of whose events are known."""
        return (self._done and not self._strange) or self._finish_reason is not None

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
            last.content = _together(first.content, last.content)
            last.additional_kwargs = {**first.additional_kwargs, **last.additional_kwargs}
        return last

    # ------------------------------------------------------------------------------------------ events

    def _read(self, event: Event) -> AIMessageChunk | None:
        choices = event.get("choices")
        if not choices or event.get("error"):
            self._pass_over(event)
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
        text = "".join(texts)
        return new_chunk(_text_blocks(text) if self.in_blocks else text, extra, self.message_id)

    def _pass_over(self, event: Event) -> None:
        """Raise the error that an event without a choice says. After one that says nothing known, `[DONE]` alone is no normal end."""
        if (error := error_in(event)) is not None:
            raise error
        self._strange = self._strange or not isinstance(event.get("usage"), Mapping)

    def _note(self, event: Event) -> None:
        """Record metadata of the reply as a whole, which servers send at its start, at its end or in every event."""
        self.message_id = self.message_id or str(event.get("id") or "") or None
        self._model = self._model or str(event.get("model") or "") or None
        for key, value in event.items():
            if value is not None:
                self._about[key] = value
        groq = event.get("x_groq")
        usage: Usage | None = event.get("usage") or (groq.get("usage") if isinstance(groq, Mapping) else None)
        if isinstance(usage, Mapping) and not (self._usage and _is_zero_usage(usage)):
            self._usage = usage

    def _read_choice(self, choice: Choice, event: Event, texts: list[str], extra: dict[str, Any]) -> None:
        if choice.get("error"):
            raise reply_error(choice["error"])
        reason = choice.get("finish_reason")
        if reason:
            self._end_of(choice, str(reason), event)
        if choice.get("logprobs"):
            _add_log_probabilities(self._log_probabilities, choice["logprobs"])
        if choice.keys() - _OF_CHOICES:
            self._note_choice(choice)
        number = choice.get("index") or 0
        delta, message = choice.get("delta"), choice.get("message")
        if delta and isinstance(delta, Mapping):
            self._read_delta(delta, number, texts, extra)
        elif isinstance(message, Mapping):
            # A whole body in place of a stream ends with itself. A whole message after deltas repeats them.
            self._done = self._done or event.get("object") == "chat.completion"
            rest = {key: value for key, value in message.items() if key == "tool_calls" or key not in self._seen}
            self._read_delta(rest, number, texts, extra, whole=True)

    def _end_of(self, choice: Choice, reason: str, event: Event) -> None:
        """Record a finish reason. If a server sends two, the one other than "stop" counts."""
        if reason.lower() == "error":
            raise reply_error("the server ended its reply with the finish reason 'error'")
        if self._finish_reason in (None, "stop"):
            self._finish_reason = reason
        self._note(event)
        usage = choice.get("usage")
        if usage and not (self._usage and _is_zero_usage(usage)):
            self._usage = usage

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
                extra[name] = extra.get(name, "") + _text_of(value)
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
                extra[name] = extra.get(name, "") + _text_of(part.get("thinking"))
                _add_thinking(self._thoughts, part)
            elif isinstance(part.get("text"), str):
                texts.append(part["text"])
            elif part.get("type", "text") != "text":
                (self._images if part.get("type") == "image_url" else self._lists.setdefault("content_parts", [])).append(part)

    def _add_whole(self, key: str, value: Any) -> None:
        """Collect a value for the last chunk, because LangChain's sum would corrupt fragments of it."""
        if key == "reasoning_details" and isinstance(value, list):
            _add_reasoning_details(self._details, value)
        elif key == "audio" and isinstance(value, Mapping):
            add_audio(self._audio, value)
        elif key == "images" and isinstance(value, list):
            self._images += value
        elif key in _LISTS and isinstance(value, list):
            _add_listed(self._lists.setdefault(key, []), value)
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
                if "tool_calls" in self._seen:
                    fragment[REPEATS] = True  # type: ignore[literal-required]
            index = fragment.get("index")
            if number and isinstance(index, int):
                fragment = {**fragment, "index": number * _CHOICE_OFFSET + index}
            function = fragment.get("function")  # some servers send an empty `custom` with every function call
            if isinstance(fragment.get("custom"), Mapping) and not (isinstance(function, Mapping) and function.get("name")):
                fragment = self._custom_fragment(fragment, whole)
            if "tool_calls" not in extra:  # what waits goes before it
                extra["tool_calls"], self._fragments = self._fragments, []
            extra["tool_calls"].append(fragment)

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
        images = [
            {**block, **({"index": place} if self.in_blocks else {})} for place, block in enumerate(map(_image_block, self._images), 1)
        ]
        chunk = new_chunk(images or ([] if self.in_blocks else ""), self._last_extra(), self.message_id)
        chunk.__dict__["response_metadata"] = self._last_metadata()
        if self._usage is not None:
            chunk.__dict__["usage_metadata"] = usage_metadata(self._usage, self._about.get("service_tier"))
        return chunk

    def _last_extra(self) -> dict[str, Any]:
        more = any(  # than text that is whole: a signature, sources
            part.keys() - _PLAIN or part.get("closed") is False or not all(map(_is_text_entry, part["thinking"])) for part in self._thoughts
        )
        whole = {"reasoning_details": self._details, "audio": self._audio, THINKING_PARTS: self._thoughts if more else []}
        extra: dict[str, Any] = {**self._lists, **self._opaque, **{key: value for key, value in whole.items() if value}}
        if self._custom:
            ends = ({"index": slot, "function": {"arguments": '"}'}} for slot in sorted(self._custom, key=str))
            self._fragments += [{key: value for key, value in end.items() if value is not None} for end in ends]
        if self._fragments:
            extra["tool_calls"], self._fragments = self._fragments, []
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
        if self._origin and (self._calls or self._details or self._thoughts or not self._choice_of.keys().isdisjoint(REASONING_KEYS)):
            metadata[KEY] = {"origin": self._origin}
        return metadata


def _text_blocks(text: str) -> list[Any]:
    return [{"type": "text", "text": text, "index": 0}] if text else []


def _image_block(part: Any) -> dict[str, Any]:
    """Return a picture that a model has drawn as a block of LangChain's, whatever core takes this vendor's content for."""
    image = part.get("image_url") if isinstance(part, Mapping) else part
    told = image if isinstance(image, Mapping) else {"url": image}
    extras = {key: value for key, value in told.items() if key != "url" and value is not None}
    url, more = str(told.get("url")), {"extras": extras} if extras else {}
    head, mark, data = url.partition(";base64,")
    if mark and head.startswith("data:"):
        return {"type": "image", "base64": data, "mime_type": head.removeprefix("data:"), **more}
    return {"type": "image", "url": url, **more}


def _together(text: Any, images: Any) -> Any:
    """Return the content of a whole reply, of its text and its pictures, each in the form of a stream's."""
    if not images or not text:
        return text or images
    return [*([text] if isinstance(text, str) else text), *images]


def _is_zero_usage(usage: Any) -> bool:
    """Whether a usage is one of zeros, with which some servers end a stream whose tokens they have told before."""
    return not (usage.get("completion_tokens") or usage.get("prompt_tokens") or usage.get("total_tokens"))


# ---------------------------------------------------------------------------------------------- vendor events
# What vendors do by themselves in a reply of chat completions, for listeners: citations, files, tools on the server.
#
# Wire facts: OpenAI's and OpenRouter's citations are `annotations` of the message. Perplexity's and xAI's are beside the choices, in every
# event (`citations`, `search_results`). Images are parts with an `image_url`. Sound comes in pieces of base64 that are joined (`audio`).
# Mistral's sources are in a thinking part (`tool_reference`). Groq's tools on the server are `executed_tools`, first without their output,
# then with it.


_MARKS = re.compile(rb'"(?:annotations|audio|citations|executed_tools|image_url|search_results|tool_reference)"')
_SOUNDS = {"mp3": "audio/mpeg", "pcm16": "audio/L16"}


class ChatCompletionsEvents(VendorEvents):
    """Reads the events of one reply, or a whole body.

    Args:
        sound: The format of sound that was asked for.
        choices: The number of alternatives that were asked for; of several the first is read.
    """

    marks = _MARKS

    def __init__(self, *, sound: Any = None, choices: int = 1) -> None:
        self._sound = str(sound.get("format") or "wav") if isinstance(sound, Mapping) else "wav"
        self._first_only = choices > 1
        self._id = ""
        self._cited: set[str] = set()
        self._ended: set[str] = set()
        self._audio: list[str] = []
        self._audio_id: str | None = None

    def read(self, event: Mapping[str, Any]) -> Iterator[RunEvent]:
        """Yield what listeners are told of an event, or of a whole body."""
        self._id = self._id or str(event.get("id") or "")
        choices = event.get("choices") or ()
        for choice in [choices] if isinstance(choices, Mapping) else choices:
            if not (self._first_only and choice.get("index")):
                yield from self._message(choice.get("delta") or choice.get("message") or {})
        for page in event.get("search_results") or ():
            yield from self._page(page.get("url"), page.get("title"))
        for address in event.get("citations") or ():
            yield from self._page(address if isinstance(address, str) else address.get("url"))

    def _message(self, message: Mapping[str, Any]) -> Iterator[RunEvent]:
        for place, tool in enumerate(message.get("executed_tools") or ()):
            yield from self._executed(tool, f"{self._id}:{tool.get('index', place)}")
        for entry in message.get("annotations") or ():
            cited = entry.get("url_citation") or entry
            places = {"start": cited.get("start_index"), "end": cited.get("end_index")}
            yield source(url=cited.get("url"), title=cited.get("title"), quote=cited.get("content"), **places)
        content = message.get("content")
        for part in (*(message.get("images") or ()), *(content if isinstance(content, list) else ())):
            image = part.get("image_url") if isinstance(part, Mapping) else None
            if address := image.get("url") if isinstance(image, Mapping) else image:
                yield file_made("image/png", url=address)
            thoughts = part.get("thinking") if isinstance(part, Mapping) else None
            for entry in thoughts if isinstance(thoughts, list) else ():
                yield from self._page(entry.get("url"), entry.get("title"))
        audio = message.get("audio")
        if isinstance(audio, Mapping):
            self._audio.append(audio.get("data") or "")
            self._audio_id = audio.get("id") or self._audio_id

    def _page(self, url: Any, title: Any = None) -> Iterator[RunEvent]:
        """Yield a page once, however often it is named."""
        if isinstance(url, str) and url not in self._cited:
            self._cited.add(url)
            yield source(url=url, title=title)

    def _executed(self, tool: Mapping[str, Any], call_id: str) -> Iterator[RunEvent]:
        name, args = str(tool.get("type") or "tool"), read_object(str(tool.get("arguments") or ""))
        output = tool.get("output") or tool.get("search_results") or tool.get("code_results")
        if output is None:
            yield started(call_id, name, args)
        elif call_id not in self._ended:
            self._ended.add(call_id)
            yield done(call_id, name, args, output)

    def rest(self) -> Iterator[RunEvent]:
        """Yield the sound of the reply."""
        if data := "".join(self._audio):
            yield file_made(_SOUNDS.get(self._sound, f"audio/{self._sound}"), data, file_id=self._audio_id)
