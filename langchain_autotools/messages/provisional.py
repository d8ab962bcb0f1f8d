"""Content blocks only for readers of a stream, such as a partial image: no message keeps them."""

from collections.abc import Mapping
from typing import TypeVar

from langchain_core.messages import AIMessage

PROVISIONAL = "provisional"
"""The mark of a provisional block: a key of its own, or of its `extras`."""

_Message = TypeVar("_Message", bound=AIMessage)


def is_provisional(block: object) -> bool:
    """Whether a content block is provisional."""
    if not isinstance(block, Mapping):
        return False
    extras = block.get("extras")
    return bool(block.get(PROVISIONAL)) or (isinstance(extras, Mapping) and bool(extras.get(PROVISIONAL)))


def without_provisional(message: _Message) -> _Message:
    """Return the message without provisional blocks; the same object if it has none."""
    if isinstance(message.content, str) or not any(map(is_provisional, message.content)):
        return message
    return message.model_copy(update={"content": [block for block in message.content if not is_provisional(block)]})
