"""System messages, for wires that have a place for them at the start of a request alone."""

from collections.abc import Iterable, Sequence

from langchain_core.messages import BaseMessage, SystemMessage


def count_leading_system(messages: Sequence[BaseMessage]) -> int:
    """How many system messages a history begins with."""
    return next((place for place, message in enumerate(messages) if not isinstance(message, SystemMessage)), len(messages))


def as_user_text(texts: Iterable[str]) -> str:
    """The text of a later system message as the user says it, marked."""
    return "<system>\n" + "\n".join(texts) + "\n</system>"
