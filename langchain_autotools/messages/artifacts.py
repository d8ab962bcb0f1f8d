"""Artifacts of results: objects that a tool made for the program, and that need not leave the process."""

from typing import Any

from langchain_core.messages import ToolMessage

from ..pickling import unportable
from .metadata import KEY

_UNCARRIED = "artifact not carried"


def without_artifact(message: ToolMessage) -> ToolMessage:
    """The message with a mark in place of its artifact, which says that there was one, and of which type."""
    return message.model_copy(update={"artifact": {KEY: _UNCARRIED, "type": type(message.artifact).__qualname__}})


def portable_result(value: Any) -> Any:
    """What a pickle holds in place of a value: of a result whose artifact cannot be pickled one with a mark; anything else as it is."""
    if not isinstance(value, ToolMessage) or unportable("artifact", {"": value.artifact}) is None:
        return value
    return without_artifact(value)
