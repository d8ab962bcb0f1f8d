"""Live messages attached to chunks, messages and errors: the objects of this process, artifacts included.

They are in no data: a sum, a copy that serialises, a pickle, a checkpoint have what the data says.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final

from langchain_core.messages import AIMessageChunk, BaseMessage

from .artifacts import portable_result
from .notes import Note, attach, note_of

_LIVE: Final = "_autotools_messages"  # attribute of an error
_CUT_REPLY: Final = "_autotools_cut_reply"  # likewise


class _LiveMessages(Note):
    """New messages, beside the metadata that carries their data."""

    beside = "response_metadata"

    def __init__(self, messages: Iterable[BaseMessage]) -> None:
        self.messages = [*messages]
        self.shown = False


class _Attached(list[BaseMessage]):
    """Messages attached to an error, which may go to another process."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _Attached, ([portable_result(message) for message in self],)


def attach_messages(holder: BaseMessage | BaseException, messages: Iterable[BaseMessage]) -> None:
    """Attach messages to a chunk, a message or an exception, for `new_messages` to find.

    Args:
        holder: What they are attached to.
        messages: The messages.
    """
    if isinstance(holder, BaseMessage):
        attach(holder, _LiveMessages(messages))
    else:
        holder.__dict__[_LIVE] = _Attached(messages)


def attached_messages(holder: object) -> list[BaseMessage] | None:
    """Return the messages attached to `holder`; None if there are none."""
    if isinstance(holder, BaseMessage):
        note = note_of(holder, _LiveMessages)
        return None if note is None else [*note.messages]
    messages = getattr(holder, "__dict__", {}).get(_LIVE)
    return None if messages is None else [*messages]


def mark_shown(message: BaseMessage) -> None:
    """Record that the messages attached to a message were displayed while they were streamed."""
    if (note := note_of(message, _LiveMessages)) is not None:
        note.shown = True


def was_shown(message: BaseMessage) -> bool:
    """Whether the messages attached to a message were displayed while they were streamed."""
    note = note_of(message, _LiveMessages)
    return note is not None and note.shown


def attach_cut_reply(error: BaseException, last: AIMessageChunk) -> None:
    """Attach to an error what was known of the reply that it cut off: usage and metadata, without content and calls."""
    error.__dict__[_CUT_REPLY] = _counted(last)


def known_reply(reply: Callable[[], AIMessageChunk] | None) -> AIMessageChunk | None:
    """Return what is known of a reply that a deadline has cut, without its content, its calls and its end; None if nothing is.

    Args:
        reply: Returns its last chunk; None where no reply was read.
    """
    with suppress(Exception):  # what the end of a cut reply would raise is no news
        return None if reply is None else _counted(reply(), "finish_reason")
    return None


def _counted(last: AIMessageChunk, *but: str) -> AIMessageChunk:
    """Return what of a last chunk counts: its usage, and its metadata but for some."""
    metadata = {name: value for name, value in last.response_metadata.items() if name not in but}
    return AIMessageChunk(content="", response_metadata=metadata, usage_metadata=last.usage_metadata)


def cut_reply(error: BaseException | None) -> AIMessageChunk | None:
    """Return what was known of the reply that an error, or one of its causes, cut off; None if nothing was."""
    while error is not None:
        if (known := error.__dict__.get(_CUT_REPLY)) is not None:
            return known if isinstance(known, AIMessageChunk) else None
        error = error.__cause__
    return None
