"""Partial tool calls for listeners, on wires that identify the call of each fragment.

For display only. What the fragments come to is decided by the assembler at the end of the turn; nothing here has a part in it. The
pieces go with the chunk that brought them, as a note beside its data: no sum, copy or dump has them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, AIMessageChunk

from ..chunks import new_chunk
from ..event_types import RunEvent
from ..messages.notes import Note, attach, note_of
from ..tool_calls.fragments import read_fragment, text_at


class CallPiece(NamedTuple):
    """A piece of a call that is being written.

    Attributes:
        call_id: The call's id.
        name: The tool's name on the first piece of a call; None on all others.
        text: The piece of the arguments; may be empty.
    """

    call_id: str
    name: str | None
    text: str


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

    def shown(self, raw: AIMessage, left: AIMessageChunk | None, message_id: str | None) -> AIMessageChunk | None:
        """Return the outgoing chunk for a raw chunk, with its fragments of calls.

        Args:
            raw: The chunk as it came.
            left: What of it leaves anyway; None for nothing.
            message_id: The id of the turn's message, as far as it is known.
        """
        if not isinstance(raw, AIMessageChunk):
            return left
        extra, apart = raw.additional_kwargs, pieces_of(raw)
        if apart:
            apart = [piece for piece in apart if isinstance(piece, RunEvent) or not self._is_used(piece.call_id)]
            self._apart.update([piece.call_id for piece in apart if isinstance(piece, CallPiece)])
        fragments = extra.get("tool_calls") or raw.tool_call_chunks
        given = (fragments,) if isinstance(fragments, Mapping) else fragments
        known: list[Shown] = [*apart, *filter(None, map(self._piece, given))]
        if not known:
            return left
        if left is None and len(known) == len(pieces_of(raw)) and not (extra or raw.response_metadata or raw.usage_metadata):
            raw.__dict__["id"] = message_id
            return raw  # which brings nothing else
        chunk = new_chunk([] if isinstance(raw.content, list) else "", {}, message_id) if left is None else left
        attach(chunk, _Pieces(known))
        return chunk

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
    """Return a raw chunk with a piece of a call alone, for a wire that sends the whole call later.

    Its content is an empty list if `listed`, else an empty string.
    """
    chunk = new_chunk([] if listed else "", {}, message_id)
    attach(chunk, _Pieces([piece]))
    return chunk


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
    if chunk.__dict__["additional_kwargs"].__class__ is dict:  # as of most chunks
        return ()
    note = note_of(chunk, _Pieces)
    return () if note is None else note.pieces


def may_show(raw: AIMessage) -> bool:
    """Whether a raw chunk may bring pieces of calls, or a mark: it is not text or reasoning alone."""
    fields = raw.__dict__
    keywords = fields["additional_kwargs"]
    return keywords.__class__ is not dict or "tool_calls" in keywords or bool(fields.get("tool_call_chunks"))


def restart_chunk(message_id: str | None = None) -> AIMessageChunk:
    """Return a chunk that marks a restarted reply: the shown parts of its calls are void."""
    chunk = new_chunk("", {}, message_id)
    attach(chunk, _Restart())
    return chunk


def is_restart(chunk: AIMessage) -> bool:
    """Whether a chunk marks a restarted reply."""
    return chunk.__dict__["additional_kwargs"].__class__ is not dict and note_of(chunk, _Restart) is not None
