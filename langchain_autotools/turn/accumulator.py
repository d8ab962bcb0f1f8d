"""Accumulation of a turn's chunks to its message: chunks that leave at once, data for the last chunk.

Text and reasoning leave with the chunk they came with. Fragments of tool calls, usage, finish reason, model name and id are kept back
and leave on one last chunk, where `+` cannot glue them together or add them up. With them goes the verdict: how the turn ended, and for
every call whether it may run. What is shown of calls while they are written has no part in that.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, BaseMessageChunk
from langchain_core.messages.ai import UsageMetadata, add_usage
from langchain_core.messages.tool import ToolCallChunk, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatResult

from ..chunks import new_chunk
from ..compat import UNPARSABLE
from ..errors import ConfigurationError, StreamError
from ..event_types import RunEvent
from ..messages.blocks import is_call_block
from ..messages.calls import ToolCallRecord, with_block_keys
from ..messages.metadata import CACHED_ID, FAILOVER, KEY, REJECTED, CarrierDict, Note, attach, note_of
from ..messages.run_messages import BLOCKING, may_repeat
from ..strict_json import read_json
from ..tool_calls import ToolCallAssembler
from ..tool_calls.slot import read_fragment, text_at

_CUT: Final = "stream cut"

_NEVER_RAW = frozenset({"calls", "blocked", "messages", "stop_reason", "turns", "usage", CACHED_ID, FAILOVER, REJECTED})
"""Metadata that only this package may set; values in a raw chunk (from a nested model) are discarded."""

_FRAGMENTS = frozenset({"tool_calls", "function_call"})
_ONLY_CALLS = {"tool_calls"}
_OF_VENDOR = {"model_provider"}
_FORM = "call_blocks"
_LOG_PROBABILITIES = "logprobs"

_OF_BLOCKS = ("model_provider", "output_version")
"""Metadata by which core reads content blocks; preserved by `+`."""


@dataclass(kw_only=True, eq=False, repr=False)
class TurnAccumulator:
    """Converts the raw chunks of one turn to outgoing chunks, and finally to the turn's calls and verdict.

    Args:
        declared: The names of the declared tools.
        is_used: Whether the history already has a call of an id.
        is_taken: Whether the history already has a message of an id. Some servers count their replies, or give all of them one id, and
            whoever keeps messages by their ids would lose some: such a reply is known by core's id.
        new_id: Makes an id for the call at a position of this turn, where the server's own is missing or used.
        sent_id: Gives the id that such a call is sent with, by its position; None where it is sent with the other one.
        runs: Whether a run goes on from this turn; else nobody asks why a turn without calls broke off.

    Attributes:
        message_id: The id of the turn's message, as far as it is known.
        named: Whether the id is settled: later ids of the reply's are ignored.
        begun: Whether a chunk has come.
        adds_usage: Whether usage that comes several times comes in parts, as LangChain's `_stream` yields it; else the last one counts.
    """

    declared: Collection[str] = ()
    is_used: Callable[[str], bool] = lambda _: False
    is_taken: Callable[[str], bool] = lambda _: False
    new_id: Callable[[int], str]
    sent_id: Callable[[int], str] | None = None
    runs: bool = True
    message_id: str | None = field(default=None, init=False)
    adds_usage: bool = field(default=False, init=False)
    begun: bool = field(default=False, init=False)
    named: bool = field(default=False, init=False)
    _wire_id: str | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Discard the reply so far, of which nothing has left, and begin again."""
        self._assembler = ToolCallAssembler(self.declared)
        self._usage: UsageMetadata | None = None
        self._metadata: dict[str, Any] = {}
        self._own: dict[str, Any] = {}
        self._held: dict[str, Any] = {}

    def feed(self, chunk: object) -> AIMessageChunk | None:
        """Process a raw chunk, or a whole message in its place.

        Returns:
            The part of it that may leave at once, the chunk itself if that is all of it; None if nothing is left.

        Raises:
            ConfigurationError: It is no message, nor what `as_message` makes one of.
        """
        if not isinstance(chunk, AIMessageChunk):
            self.begun = True
            chunk = as_message(chunk)
            if not isinstance(chunk, AIMessageChunk):
                return self._feed_message(chunk)
        fields = chunk.__dict__
        content, extra, metadata = fields["content"], fields["additional_kwargs"], fields["response_metadata"]
        if fields["tool_call_chunks"] or fields["usage_metadata"] or fields["chunk_position"]:
            return self._sort(chunk)
        if extra or metadata:
            if self.named and extra.keys() == _ONLY_CALLS and not (content or metadata):
                self._assembler.feed(extra["tool_calls"] or ())
                return None
            if not self._leaves_whole(content, extra, metadata):
                return self._sort(chunk)
        if fields["id"] != self._wire_id or not self.named:
            self._name(chunk)
        fields["id"] = self.message_id
        return chunk if content or extra else None

    def _leaves_whole(self, content: Any, extra: dict[str, Any], metadata: dict[str, Any]) -> bool:
        """Whether a chunk with these is reasoning, or a block marked with its vendor as blocks before it, of which nothing is held back."""
        if extra:
            return not metadata and extra.__class__ is dict and _FRAGMENTS.isdisjoint(extra)
        return content.__class__ is list and metadata.keys() == _OF_VENDOR and self._metadata.items() >= metadata.items()

    def _name(self, chunk: AIMessageChunk) -> None:
        """Set the message's id from the first chunk with content; later ids are ignored.

        Core gives a chunk without an id that of its run, by which listeners then know the message. An id that is not used, because other
        messages have it or may have it, stays in the metadata."""
        self.begun = True
        if not self.named:
            self.message_id = self._wire_id = chunk.id
            if chunk.id and (may_repeat(chunk.id) or self.is_taken(chunk.id)):
                self.message_id, self._metadata["id"] = None, chunk.id
            self.named = bool(chunk.id or chunk.content or chunk.tool_call_chunks or chunk.additional_kwargs)

    def _sort(self, chunk: AIMessageChunk) -> AIMessageChunk | None:
        self._name(chunk)
        usage = chunk.usage_metadata
        if usage:
            self._usage = add_usage(self._usage, usage) if self.adds_usage else usage
        content = chunk.content
        if chunk.tool_call_chunks:
            if not chunk.additional_kwargs.get("tool_calls"):  # else core has made them of these, which are what the wire said
                self._assembler.feed(with_block_keys(chunk.tool_call_chunks, content))
            content = _without_calls(content)
        extra, metadata = self._take_extra(chunk), self._keep_scalars(chunk.response_metadata)
        if chunk.chunk_position == "last":  # takes the objects back that were held: core reads citations in those of a reply's last content
            objects = {key: value for key, value in self._metadata.items() if isinstance(value, dict)}
            metadata |= objects
            self._metadata = {key: value for key, value in self._metadata.items() if key not in objects}
        if metadata and self._held:  # as in the sum of two chunks
            metadata = (new_chunk("", {}, None, self._held) + new_chunk("", {}, None, metadata)).response_metadata
        if not (content or extra):
            self._held = metadata or self._held
            return None
        self._held = {} if metadata else self._held
        if isinstance(content, list):
            metadata |= {name: chunk.response_metadata[name] for name in _OF_BLOCKS if name in chunk.response_metadata}
        return new_chunk(content, {**extra}, self.message_id, metadata)

    def _feed_message(self, message: AIMessage) -> AIMessageChunk | None:
        """Process a whole message: each of its calls is separate, however similar.

        After other fragments it may say again what they said, and is one chunk more.
        """
        calls = message.additional_kwargs.get("tool_calls") or [*message.tool_calls, *message.invalid_tool_calls]
        calls = with_block_keys(calls, message.content)
        if self._assembler.begun:
            self._assembler.feed_again(calls)
        else:
            self._assembler.feed([{**call, "index": index} for index, call in enumerate(calls)])
        extra = {key: value for key, value in message.additional_kwargs.items() if not (calls and key in _FRAGMENTS)}
        content = _without_calls(message.content) if calls else message.content
        chunk = new_chunk(content, extra, message.id, message.response_metadata)
        chunk.usage_metadata = message.usage_metadata
        chunk.chunk_position = "last"
        return self._sort(chunk)

    def _take_extra(self, chunk: AIMessageChunk) -> dict[str, Any]:
        """Return the additional keywords that leave at once: all but fragments of calls.

        A `function_call` beside pieces of calls says one of these again, for readers from before there were several.
        """
        extra = chunk.additional_kwargs
        if not extra or not _FRAGMENTS & extra.keys():
            return extra
        fragments = extra.get("tool_calls")
        if fragments:
            self._assembler.feed(fragments)
        legacy = extra.get("function_call")
        if isinstance(legacy, Mapping) and not chunk.tool_call_chunks:
            self._assembler.feed({"index": -1, "function": legacy})
        return {key: value for key, value in extra.items() if key not in _FRAGMENTS}

    def _keep_scalars(self, metadata: dict[str, Any]) -> dict[str, Any]:
        """Hold back the metadata that `+` would concatenate, add up or merge, of which the last one counts, and return the rest.

        The rest (log probabilities and lists, which come in pieces) leaves with its content, or with the next chunk that has content: so
        an empty reply is one chunk, its own sum."""
        rest: dict[str, Any] = {}
        for key, value in metadata.items():
            if value is None:
                continue
            if key == KEY:
                self._own |= {name: kept for name, kept in value.items() if name not in _NEVER_RAW} if isinstance(value, Mapping) else {}
            elif isinstance(value, list) or key == _LOG_PROBABILITIES:
                rest[key] = value
            elif key != "finish_reason" or self._metadata.get(key) in (None, "stop"):
                self._metadata[key] = value
        return rest

    def known(self) -> AIMessageChunk:
        """Return the usage and the metadata that are held back so far."""
        return AIMessageChunk(content="", usage_metadata=self._usage, response_metadata={**self._held, **self._metadata})

    def finish(self, cut: bool = False) -> AIMessageChunk:
        """Return the last chunk: message id, usage, metadata, every call whole, and the verdict.

        Args:
            cut: Whether the stream broke off before the end that its wire marks.

        Raises:
            StreamError: What the reply says of itself, its usage for example, can be in no message.
        """
        reason = _CUT if cut else self._metadata.get("finish_reason")
        blocked = reason if isinstance(reason, str) and (cut or reason.lower() in BLOCKING) else None
        form = self._own.pop(_FORM, None)
        records, chunks = self._decide_calls(blocked)
        verdict = {"calls": records, "blocked": blocked} if records or (blocked is not None and self.runs) else {}
        self._metadata = {**self._held, **self._metadata}
        if verdict or self._own:
            self._metadata[KEY] = {**self._own, **verdict}
        try:
            return AIMessageChunk(
                content=_call_blocks(records, form) if form else "",
                id=self.message_id,
                usage_metadata=self._usage,
                response_metadata=self._metadata,
                tool_call_chunks=chunks,
                chunk_position="last",
            )
        except ValueError as error:  # counts of tokens beyond all numbers, or with fractions
            raise StreamError(f"the end of the reply is not of its vendor's form: {error}") from error

    def _decide_calls(self, blocked: str | None) -> tuple[list[dict[str, Any]], list[ToolCallChunk]]:
        records: list[dict[str, Any]] = []
        used: set[str] = set()
        for position, call in enumerate(self._assembler.finish()):
            kept = bool(call.id) and call.id not in used and not self.is_used(call.id)
            identifier = call.id if kept else self.new_id(position)
            used.add(identifier)
            record = _decided_call(call, identifier, blocked, self._metadata.get("finish_message"))
            records.append(record if kept or self.sent_id is None else {**record, "sent_id": self.sent_id(position)})
        chunks = [
            tool_call_chunk(
                name=record["name"],
                args=record["arguments"] if record["ok"] else UNPARSABLE + record["arguments"],
                id=record["id"],
                index=index,
            )
            for index, record in enumerate(records)
        ]
        return records, chunks


def _without_calls(content: str | list[Any]) -> str | list[Any]:
    """Return content without the blocks that repeat the fragments of calls."""
    if isinstance(content, str):
        return content
    return [block for block in content if not is_call_block(block)]


def without_call_pieces(chunk: AIMessageChunk) -> AIMessageChunk:
    """Return the chunk without its fragments of calls, not marked as the last."""
    extra = {key: value for key, value in chunk.additional_kwargs.items() if key not in _FRAGMENTS}
    changed = {"content": _without_calls(chunk.content), "additional_kwargs": extra, "chunk_position": None}
    return chunk.model_copy(update={**changed, "tool_calls": [], "invalid_tool_calls": [], "tool_call_chunks": []})


def _decided_call(call: ToolCallRecord, identifier: str, blocked: str | None, message: Any) -> dict[str, Any]:
    """Return a call with the verdict on it; `message` is the vendor's description of the turn's end, for the model."""
    why = call.why
    if blocked is not None and (message or not why):
        reason = message if isinstance(message, str) and message else f"the reply did not end normally ({blocked})"
        why = f"the call was not run: {reason}"
    record: dict[str, Any] = {"id": identifier, "name": call.name, "arguments": call.arguments, "ok": why is None}
    if why is not None:
        record["why"] = why
    if call.id and call.id != identifier:
        record["wire_id"] = call.id
    if call.extra:
        record["extra"] = dict(call.extra)
    return record


def _call_blocks(records: list[dict[str, Any]], form: Mapping[str, Any]) -> list[str | dict[Any, Any]]:
    """Return the executable calls as content blocks, for wires whose messages contain them: LangChain's core looks for them there.

    Args:
        records: The turn's calls.
        form: The blocks' `type`, and the first free block number; `id`: the key under which they have the call's id, where that is
            another one, and the arguments are then text.
    """
    blocks: list[str | dict[Any, Any]] = []
    for number, record in enumerate((record for record in records if record["ok"]), form["first"]):
        block = {**record.get("extra", {}), "type": form["type"], "name": record["name"], "index": number}
        if "id" in form:
            blocks.append({**block, form["id"]: record["id"], "arguments": record["arguments"]})
        else:
            blocks.append({**block, "id": record["id"], "input": read_json(record["arguments"])})
    return blocks


# ---------------------------------------------------------------------------------------------- the values of `raw_stream` as messages


_SHARED = ("content", "additional_kwargs", "response_metadata", "name", "id")


def ai_message(message: BaseMessage) -> AIMessage:
    """Return a reply of any kind as an AI message of the same content: classes of LangChain's community give a `ChatMessage` at times.

    Args:
        message: The message, or the chunk. An AI message is returned as it is.
    """
    if isinstance(message, AIMessage):
        return message
    kind = AIMessageChunk if isinstance(message, BaseMessageChunk) else AIMessage
    return kind(**{name: getattr(message, name) for name in _SHARED})


def as_message(piece: object) -> AIMessage:
    """Return a value of `raw_stream` or `raw_invoke` as a message; also accepts texts and values of LangChain's own methods.

    Raises:
        ConfigurationError: It is none of these.
    """
    if isinstance(piece, AIMessage):
        return piece
    if isinstance(piece, str):
        return new_chunk(piece, {}, None)
    if isinstance(piece, ChatResult) and piece.generations:
        piece = piece.generations[0]
    if isinstance(piece, ChatGeneration):
        about = {**(piece.generation_info or {}), **piece.message.response_metadata}
        return ai_message(piece.message).model_copy(update={"response_metadata": about})
    hint = ": `yield` a message, do not `return` it" if isinstance(piece, tuple) else ""  # a message iterates as its fields
    raise ConfigurationError(f"raw_stream yields AIMessageChunks (or texts, or ChatGenerationChunks), not {type(piece).__name__}{hint}")


# ---------------------------------------------------------------------------------------------- calls while they are written
#
# For display only: what the fragments come to is decided by the assembler at the end of the turn. The pieces go with the chunk that brought
# them, as a note beside its data: no sum, copy or dump has them.


@dataclass(slots=True)
class CallPiece(Note):
    """A piece of a call that is being written. As the note of a chunk it is all that the chunk brings.

    Attributes:
        call_id: The call's id; empty where only its index is known.
        name: The tool's name on the first piece of a call; None on all others.
        text: The piece of the arguments; may be empty.
        index: The call's index, in a raw chunk that came in place of a fragment without an id. The fragment itself follows.
    """

    call_id: str
    name: str | None
    text: str
    index: int | None = None


_Shown = CallPiece | RunEvent
"""What a chunk brings for listeners: a piece of a call, or an event of what the vendor does."""


@dataclass(frozen=True, slots=True)
class _Pieces(Note):
    """The pieces of calls in a chunk, and the events that come with it; of a whole message also the content that its chunks would have."""

    pieces: Sequence[_Shown]
    content: str | list[Any] | None = None


@dataclass(eq=False, repr=False)
class PartialCalls:
    """Assigns each fragment of a turn to its call by the id, or by the index that came with it.

    Args:
        is_used: Whether the history already has a call of an id: such a call will have another one.
    """

    _is_used: Callable[[str], bool]
    _begun: set[str] = field(default_factory=set)
    _at: dict[int, str] = field(default_factory=dict)
    _apart: set[str] = field(default_factory=set)  # calls whose pieces come by themselves, before the fragment that has them all
    _ahead: int = 0  # how many pieces have come before the fragments that they stand for, which come in the same order

    def shown(self, raw: AIMessage, left: AIMessageChunk | None, message_id: str | None) -> AIMessageChunk | None:
        """Return the outgoing chunk for a raw chunk, with its fragments of calls.

        Args:
            raw: The chunk as it came.
            left: What of it leaves anyway; None for nothing.
            message_id: The id of the turn's message, as far as it is known.
        """
        if not isinstance(raw, AIMessageChunk):
            return left
        extra = raw.additional_kwargs
        apart = [piece for piece in pieces_of(raw) if isinstance(piece, RunEvent) or self.admits(piece)]
        fragments = extra.get("tool_calls") or raw.tool_call_chunks
        given: Sequence[Any] = (fragments,) if isinstance(fragments, Mapping) else fragments
        if given:
            given, self._ahead = given[self._ahead :], 0
        known: list[_Shown] = [*apart, *filter(None, map(self._piece, given))]
        if not known:
            return left
        if left is None and len(known) == len(pieces_of(raw)) and not (extra or raw.response_metadata or raw.usage_metadata):
            raw.__dict__["id"] = message_id
            return raw  # which brings nothing else
        chunk = new_chunk([] if isinstance(raw.content, list) else "", {}, message_id) if left is None else left
        attach(chunk, _Pieces(known))
        return chunk

    def admits(self, piece: CallPiece) -> bool:
        """Whether a piece that arrives on its own is shown. One with an index gets the id of its call."""
        if piece.index is not None:
            self._ahead += 1
            piece.call_id = self._at.get(piece.index, "")
            return bool(piece.call_id and piece.text)
        if piece.call_id not in self._apart:
            if self._is_used(piece.call_id):
                return False
            self._apart.add(piece.call_id)
        return True

    def _piece(self, raw: Mapping[str, Any]) -> CallPiece | None:
        more = text_at(raw)
        if more is not None:
            known, text = self._at.get(more[0]), more[1]
            return CallPiece(known, None, text) if known and known not in self._apart and text else None
        fragment = read_fragment(raw)
        call_id, index = fragment.id, fragment.index
        if call_id is None or call_id in self._begun:
            known = call_id or self._at.get(index if index is not None else -1)
            return CallPiece(known, None, fragment.text) if known and known not in self._apart and fragment.text else None
        if fragment.name is None or self._is_used(call_id):
            if index is not None:
                self._at.pop(index, None)
            return None
        self._begun.add(call_id)
        if index is not None:
            self._at[index] = call_id
        return CallPiece(call_id, fragment.name, "" if call_id in self._apart else fragment.text)


def piece_chunk(piece: CallPiece, message_id: str | None, *, listed: bool) -> AIMessageChunk:
    """Return a raw chunk with a piece of a call alone, for a wire whose decoder hands the call on later.

    Its content is an empty list if `listed`, else an empty string.
    """
    carrier = CarrierDict()
    carrier.note = piece
    return new_chunk([] if listed else "", carrier, message_id)


def with_events(chunk: AIMessageChunk, events: Sequence[RunEvent]) -> AIMessageChunk:
    """Return a raw chunk with events attached to it, for listeners. No message has them."""
    if events:
        attach(chunk, _Pieces([*pieces_of(chunk), *events]))
    return chunk


def keep_pieces(message: AIMessage, chunks: Sequence[AIMessage] = (), content: str | list[Any] | None = None) -> None:
    """Attach to a reply's whole message what its run is told of its chunks.

    Args:
        message: The message.
        chunks: Chunks whose events the run is told of.
        content: The content that the chunks had, where the message has another form of it; None: as attached before.
    """
    events = [piece for chunk in chunks for piece in pieces_of(chunk) if isinstance(piece, RunEvent)]
    if events or content is not None:
        attach(message, _Pieces(events, content_in_chunks(message) if content is None else content))


def content_in_chunks(message: AIMessage) -> str | list[Any]:
    """Return the content of a whole message as its chunks had it, as far as that is known."""
    note = note_of(message, _Pieces)
    return message.content if note is None or note.content is None else note.content


def pieces_of(chunk: AIMessage) -> Sequence[_Shown]:
    """Return the pieces of calls, and the events, that are attached to a chunk."""
    extra = chunk.__dict__["additional_kwargs"]
    if extra.__class__ is not CarrierDict:  # as of most chunks
        return ()
    note = extra.note
    return (note,) if isinstance(note, CallPiece) else note.pieces if isinstance(note, _Pieces) else ()


class _Restart(Note):
    """The mark of a reply that has broken off and begins anew."""


def restart_chunk(message_id: str | None = None) -> AIMessageChunk:
    """Return a chunk that marks a restarted reply: the shown parts of its calls are void."""
    chunk = new_chunk("", {}, message_id)
    attach(chunk, _Restart())
    return chunk


def is_restart(chunk: AIMessage) -> bool:
    """Whether a chunk marks a restarted reply."""
    return chunk.__dict__["additional_kwargs"].__class__ is not dict and note_of(chunk, _Restart) is not None
