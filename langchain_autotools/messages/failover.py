"""Marks of failover in messages: which model took over from which, and whether the reply was cut off after text.

A mark stands among the package's metadata of an AI message: of the reply that was cut off after text, or of the first reply of a model
that took over before any text. The request to go on with a cut reply stands in no history: it is derived from the mark for each request.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from .metadata import own_metadata, with_own_metadata

FAILOVER: Final = "failover"
"""The key of the mark, in the package's metadata of an AI message."""

OF_RUN: Final = "of_run"
"""The key of True in the metadata of a human message that the run itself has added to a request: no new run begins with it."""

GO_ON: Final = HumanMessage(
    "Your reply above was cut off by a technical fault, and is shown as far as it came. Go on exactly where it stops, so that both parts "
    "read as one reply: repeat nothing of it, say nothing about the interruption, and call tools where that is the next step."
)
"""The request to go on with a reply that was cut off."""

_M = TypeVar("_M", bound=AIMessage)


def failover_mark(from_model: str, to_model: str, *, after_text: bool) -> dict[str, Any]:
    """Return the mark of a message: the names of both models, and whether the message is a reply cut off after text."""
    return {"from": from_model, "to": to_model, "after_text": after_text}


def mark_of(message: BaseMessage) -> Mapping[str, Any]:
    """Return the mark of a message; empty if it has none."""
    mark = own_metadata(message).get(FAILOVER)
    return mark if isinstance(mark, Mapping) else {}


def is_cut(message: BaseMessage) -> bool:
    """Whether a message is a reply that was cut off after text, with which another model goes on."""
    return mark_of(message).get("after_text") is True


def with_mark(message: _M, mark: Mapping[str, Any]) -> _M:
    """Return a message or chunk with a mark."""
    own = {**own_metadata(message), FAILOVER: dict(mark)}
    return message.model_copy(update={"response_metadata": with_own_metadata(message.response_metadata, own)})


def marks_of_run(messages: Sequence[BaseMessage]) -> list[Mapping[str, Any]]:
    """Return the marks of the messages since the user's last one, in order."""
    marks: list[Mapping[str, Any]] = []
    for message in reversed(messages):
        if isinstance(message, HumanMessage) and not own_metadata(message).get(OF_RUN):
            break
        if isinstance(message, AIMessage) and (mark := mark_of(message)):
            marks.append(mark)
    return marks[::-1]


def open_cuts(messages: Sequence[BaseMessage]) -> list[Mapping[str, Any]]:
    """Return the marks of the cut replies that messages end in, in order: the same turn is to be gone on with."""
    marks: list[Mapping[str, Any]] = []
    for message in reversed(messages):
        if not isinstance(message, AIMessage) or not is_cut(message):
            break
        marks.append(mark_of(message))
    return marks[::-1]
