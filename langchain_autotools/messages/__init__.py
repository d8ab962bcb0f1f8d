"""What the package reads in messages, or keeps in them: calls, metadata, run messages that carry others."""

from .metadata import text_of
from .run_messages import StopReason, max_turns_reached

__all__ = ["StopReason", "max_turns_reached", "text_of"]
