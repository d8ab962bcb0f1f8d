"""Inputs of models: those that core need not convert again, and explanations of invalid ones by their likely cause."""

from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.prompt_values import ChatPromptValue

from ..errors import ConfigurationError


def converted(given: Any) -> Any:
    """Return a list of messages as a prompt, whose messages core takes as they are; any other input unchanged."""
    if type(given) is not list:
        return given
    for cls in {*map(type, given)}:
        if not issubclass(cls, BaseMessage):
            return given
    return ChatPromptValue.model_construct(messages=given)


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
