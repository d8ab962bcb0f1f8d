"""System messages for wires that accept them only at the start of a request."""

from collections.abc import Iterable


def as_user_text(texts: Iterable[str]) -> str:
    """Return a later system message as marked text for a user message."""
    return "<system>\n" + "\n".join(texts) + "\n</system>"
