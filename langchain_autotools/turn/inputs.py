"""Explanations of invalid model inputs by their likely cause."""

from typing import Any

from ..errors import ConfigurationError


def refuse_fields(given: Any) -> None:
    """Raise a helpful error if the input is a list to which a message was added with `+=`, which iterates over its fields.

    Raises:
        ConfigurationError: That is so.
    """
    if isinstance(given, list) and any(isinstance(item, tuple) and item[:1] == ("content",) for item in given):
        raise ConfigurationError(
            "the history holds the fields of a message, as tuples: `history += message` adds what iterating over it gives. "
            "Write `history += new_messages(message)`, or `history.append(message)`"
        )
