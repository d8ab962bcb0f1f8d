"""Holds back what a model writes until its turn is complete, for protocols that cannot take back what was sent."""

from langchain_core.messages import AIMessage

from ..event_types import (
    CallArgumentsDelta,
    CallDiscarded,
    CallReady,
    CallStarted,
    MessageDiscarded,
    MessageDone,
    ReasoningDelta,
    RunEnded,
    RunEvent,
    RunFailed,
    TextDelta,
)
from .streaming import Encoder, Failure

_Piece = TextDelta | ReasoningDelta | CallStarted | CallArgumentsDelta


class WholeTurns:
    """An encoder before another one: that one gets the pieces of a message when the message is complete, and of no other message.

    Pieces are dropped where their message is discarded, and where their run ends without it: no history has them.

    Args:
        encoder: Writes the events.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.heartbeat = encoder.heartbeat
        self._encoder = encoder
        self._held: dict[str, list[_Piece]] = {}  # by run: the pieces of the message that is being written

    def encode(self, event: RunEvent) -> bytes:
        """The bytes of an event, behind those of the pieces that it completes."""
        return b"".join(map(self._encoder.encode, self._released(event)))

    def end(self) -> bytes:
        """The bytes behind the last event."""
        return self._encoder.end()

    def fail(self, failure: Failure) -> bytes:
        """The last bytes where reading the events raised an exception."""
        return self._encoder.fail(failure)

    def _released(self, event: RunEvent) -> list[RunEvent]:
        if isinstance(event, _Piece):
            self._held.setdefault(event.run_id, []).append(event)
            return []
        if isinstance(event, CallDiscarded) and self._forgets(event):
            return []
        if isinstance(event, MessageDiscarded | RunEnded | RunFailed):
            self._held.pop(event.run_id, None)
            return [] if isinstance(event, MessageDiscarded) else [event]
        whole = isinstance(event, CallReady) or (isinstance(event, MessageDone) and isinstance(event.message, AIMessage))
        return [*self._held.pop(event.run_id, ()), event] if whole else [event]

    def _forgets(self, discarded: CallDiscarded) -> bool:
        """Whether a call that came to nothing was still held; its pieces are dropped."""
        held = self._held.get(discarded.run_id, [])
        kept = [piece for piece in held if getattr(piece, "call_id", None) != discarded.call_id]
        self._held[discarded.run_id] = kept
        return len(kept) < len(held)
