"""System messages for wires that accept them only at the start of a request."""

from collections.abc import Iterable, Sequence

from langchain_core.messages import BaseMessage, SystemMessage


def count_leading_system(messages: Sequence[BaseMessage]) -> int:
    """Return the number of system messages at the start of a history."""
    return next((place for place, message in enumerate(messages) if not isinstance(message, SystemMessage)), len(messages))


def as_user_text(texts: Iterable[str]) -> str:
    """Return a later system message as marked text for a user message."""
    return "<system>\n" + "\n".join(texts) + "\n</system>"
