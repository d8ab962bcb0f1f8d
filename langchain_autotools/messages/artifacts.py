"""Artifacts of tool results: objects for the program, which may not be serializable."""

from typing import Any

from langchain_core.messages import ToolMessage

from ..pickling import unportable
from .metadata import KEY

_UNCARRIED = "artifact not carried"


def without_artifact(message: ToolMessage) -> ToolMessage:
    """Return the message with its artifact replaced by a mark that names the artifact's type."""
    return message.model_copy(update={"artifact": {KEY: _UNCARRIED, "type": type(message.artifact).__qualname__}})


def portable_result(value: Any) -> Any:
    """Return a value for a pickle: a result with an artifact that cannot be pickled gets a mark; other values are unchanged."""
    if not isinstance(value, ToolMessage) or unportable("artifact", {"": value.artifact}) is None:
        return value
    return without_artifact(value)
