"""Partial tool calls for listeners, on wires that identify the call of each fragment.

For display only. What the fragments come to is decided by the assembler at the end of the turn; nothing here has a part in it. The
pieces go with the chunk that brought them, as a note beside its data: no sum, copy or dump has them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk

from ..chunks import new_chunk
from ..event_types import RunEvent
from ..messages.notes import Note, NotedDict, attach, note_of
from ..tool_calls.fragments import read_fragment, text_at


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


Shown = CallPiece | RunEvent
"""What a chunk brings for listeners: a piece of a call, or an event of what the vendor does."""


@dataclass(frozen=True, slots=True)
class _Pieces(Note):
    """The pieces of calls in a chunk, and the events that come with it."""

    pieces: Sequence[Shown]


class _Restart(Note):
    """The mark of a reply that has broken off and begins anew."""


class PartialCalls:
    """Assigns each fragment of a turn to its call by the id, or by the index that came with it.

    Args:
        is_used: Whether the history already has a call of an id: such a call will have another one.
    """

    def __init__(self, is_used: Callable[[str], bool]) -> None:
        self._is_used = is_used
        self._begun: set[str] = set()
        self._at: dict[int, str] = {}
        self._apart: set[str] = set()  # calls whose pieces come by themselves, before the fragment that has them all
        self._ahead = 0  # how many pieces have come before the fragments that they stand for, which come in the same order

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
        known: list[Shown] = [*apart, *filter(None, map(self._piece, given))]
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
    carrier = NotedDict()
    carrier.note = piece
    return new_chunk([] if listed else "", carrier, message_id)


def with_events(chunk: AIMessageChunk, events: Sequence[RunEvent]) -> AIMessageChunk:
    """Return a raw chunk with events attached to it, for listeners. No message has them."""
    if events:
        attach(chunk, _Pieces([*pieces_of(chunk), *events]))
    return chunk


def keep_events(message: AIMessage, chunks: Sequence[AIMessage]) -> None:
    """Attach the events of a reply's chunks to its whole message."""
    events = [piece for chunk in chunks for piece in pieces_of(chunk) if isinstance(piece, RunEvent)]
    if events:
        attach(message, _Pieces(events))


def pieces_of(chunk: AIMessage) -> Sequence[Shown]:
    """Return the pieces of calls, and the events, that are attached to a chunk."""
    extra = chunk.__dict__["additional_kwargs"]
    if extra.__class__ is not NotedDict:  # as of most chunks
        return ()
    note = extra.note
    return (note,) if isinstance(note, CallPiece) else note.pieces if isinstance(note, _Pieces) else ()


def restart_chunk(message_id: str | None = None) -> AIMessageChunk:
    """Return a chunk that marks a restarted reply: the shown parts of its calls are void."""
    chunk = new_chunk("", {}, message_id)
    attach(chunk, _Restart())
    return chunk


def is_restart(chunk: AIMessage) -> bool:
    """Whether a chunk marks a restarted reply."""
    return chunk.__dict__["additional_kwargs"].__class__ is not dict and note_of(chunk, _Restart) is not None
