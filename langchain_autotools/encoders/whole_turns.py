"""Holds back a message until its turn is complete, for protocols that cannot take back sent data."""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from langchain_core.messages import AIMessage

from .. import event_types as kinds
from .. import vendor_event_types as vendor_kinds
from ..event_tables import EventTable
from ..event_types import RunEvent
from .streaming import Encoder, Failure

_Piece: TypeAlias = (
    kinds.TextDelta
    | kinds.ReasoningDelta
    | kinds.CallStarted
    | kinds.CallArgumentsDelta
    | vendor_kinds.VendorCallStarted
    | vendor_kinds.VendorCallProgress
    | vendor_kinds.VendorCallDone
    | vendor_kinds.SourceFound
    | vendor_kinds.FileMade
)


class WholeTurns:
    """A filter before another encoder that passes the fragments of a message only when the message is complete.

    Pieces are dropped where their message is discarded, and where their run ends without it: no history has them.

    Args:
        encoder: Writes the events.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.heartbeat = encoder.heartbeat
        self._encoder = encoder
        self._held: dict[str, list[_Piece]] = {}  # by run: the pieces of the message that is being written

    def encode(self, event: RunEvent) -> bytes:
        """Return the bytes of an event, after those of the fragments that it completes."""
        return b"".join(map(self._encoder.encode, self._released(event)))

    def end(self) -> bytes:
        """Return the bytes after the last event."""
        return self._encoder.end()

    def fail(self, failure: Failure) -> bytes:
        """Return the last bytes after an exception of the events."""
        return self._encoder.fail(failure)

    def _released(self, event: RunEvent) -> list[RunEvent]:
        release = _RELEASES.get(type(event))
        return [event] if release is None else release(self, event)

    def _hold(self, piece: _Piece) -> list[RunEvent]:
        self._held.setdefault(piece.run_id, []).append(piece)
        return []

    def _hold_end(self, done: vendor_kinds.VendorCallDone) -> list[RunEvent]:
        """Hold the end of a vendor's call with its start; pass on the end of one that began in an earlier message."""
        begun = any(getattr(piece, "call_id", None) == done.call_id for piece in self._held.get(done.run_id, ()))
        return self._hold(done) if begun else [done]

    def _discard_call(self, discarded: kinds.CallDiscarded) -> list[RunEvent]:
        """Drop the pieces of a call that is still held; pass the event on if none are."""
        held = self._held.get(discarded.run_id, [])
        kept = [piece for piece in held if getattr(piece, "call_id", None) != discarded.call_id]
        self._held[discarded.run_id] = kept
        return [discarded] if len(kept) == len(held) else []

    def _discard(self, event: kinds.MessageDiscarded) -> list[RunEvent]:
        self._held.pop(event.run_id, None)
        return []

    def _end(self, event: kinds.RunEnded | kinds.RunFailed) -> list[RunEvent]:
        self._held.pop(event.run_id, None)
        return [event]

    def _complete(self, event: kinds.CallReady | kinds.MessageDone) -> list[RunEvent]:
        return [*self._held.pop(event.run_id, ()), event]

    def _message(self, event: kinds.MessageDone) -> list[RunEvent]:
        return self._complete(event) if isinstance(event.message, AIMessage) else [event]

    def _pass_on(self, event: RunEvent) -> list[RunEvent]:
        return [event]


_RELEASES: Final = EventTable[Callable[[WholeTurns, Any], list[RunEvent]]](
    "whole turns",
    {
        kinds.RunStarted: WholeTurns._pass_on,
        kinds.TextDelta: WholeTurns._hold,
        kinds.ReasoningDelta: WholeTurns._hold,
        kinds.CallStarted: WholeTurns._hold,
        kinds.CallArgumentsDelta: WholeTurns._hold,
        kinds.CallReady: WholeTurns._complete,
        kinds.CallDiscarded: WholeTurns._discard_call,
        kinds.CallProgress: WholeTurns._pass_on,
        kinds.CallResult: WholeTurns._pass_on,
        kinds.MessageDone: WholeTurns._message,
        kinds.MessageDiscarded: WholeTurns._discard,
        kinds.ModelChanged: WholeTurns._pass_on,
        kinds.MessagesAdded: WholeTurns._pass_on,
        kinds.TurnUsage: WholeTurns._pass_on,
        kinds.CallsPending: WholeTurns._pass_on,
        vendor_kinds.VendorCallStarted: WholeTurns._hold,
        vendor_kinds.VendorCallProgress: WholeTurns._hold,
        vendor_kinds.VendorCallDone: WholeTurns._hold_end,
        vendor_kinds.SourceFound: WholeTurns._hold,
        vendor_kinds.FileMade: WholeTurns._hold,
        kinds.RunEnded: WholeTurns._end,
        kinds.RunFailed: WholeTurns._end,
    },
)
