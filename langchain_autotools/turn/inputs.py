"""Inputs that are no conversation, explained by what was done to make them."""

from typing import Any

from ..errors import ConfigurationError


def refuse_fields(given: Any) -> None:
    """Explain an input that LangChain cannot read because a message was added to a list, which iterated over its fields.

    Raises:
        ConfigurationError: That is so.
    """
    if isinstance(given, list) and any(isinstance(item, tuple) and item[:1] == ("content",) for item in given):
        raise ConfigurationError(
            "the history holds the fields of a message, as tuples: `history += message` adds what iterating over it gives. "
            "Write `history += new_messages(message)`, or `history.append(message)`"
        )
