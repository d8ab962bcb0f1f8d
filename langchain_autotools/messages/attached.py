"""Objects of this process that are attached to messages, chunks or errors without being sent or stored.

A note rides on a dict that the message has anyway, as an attribute of a subclass of `dict`. Nothing else goes all the way: a field of our
own would need a subclass of the message, which leaves the package; an attribute in the message's `__dict__` becomes a field of whatever
`message_chunk_to_message` makes of a chunk, and is pickled and copied with it; private attributes of pydantic's make equal messages differ.
Of the dict nobody sees the difference: it is equal to a plain one, and `+`, a dump, a pickle, a deep copy and a checkpoint make a plain one
of it, without the note.

What a core that copied chunks would cost is in `tests/unit/test_compat_copies.py`.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, ClassVar, Final, TypeVar

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage

from ..compat import whole_reply
from ..pickling import unportable
from .metadata import KEY


class Note:
    """Base class of notes attached to a chunk or a message, beside its data.

    Attributes:
        beside: The field whose dict carries notes of this class. Core gives each chunk of a stream new `response_metadata` and leaves
            `additional_kwargs` alone: what a turn says to its run goes there. What stands for a part of the metadata goes with that:
            whoever replaces the metadata drops both.
    """

    beside: ClassVar[str] = "additional_kwargs"


_N = TypeVar("_N", bound=Note)


class CarrierDict(dict[str, Any]):
    """A dict that carries a note."""

    __slots__ = ("note",)
    note: Note

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)

    def __repr__(self) -> str:
        """Return a dict's repr, with the number of a run message's messages in their place, because the data of a run is long."""
        return repr({key: _brief(value) for key, value in self.items()})


class _Omitted(str):
    """The placeholder of an omitted value in a repr."""

    __slots__ = ()
    __repr__ = str.__str__


def _brief(value: Any) -> Any:
    messages = value.get("messages") if isinstance(value, dict) else None
    return {**value, "messages": _Omitted(f"<{len(messages)} messages>")} if messages and isinstance(messages, list) else value


def attach(message: BaseMessage, note: Note) -> None:
    """Attach a note to a chunk or a message, in place of any other beside the same field."""
    fields = message.__dict__
    carrier = fields[note.beside] = CarrierDict(fields[note.beside])
    carrier.note = note


def note_of(message: BaseMessage, kind: type[_N]) -> _N | None:
    """Return the note of this class that is attached to a chunk or a message; None if there is none."""
    carrier = message.__dict__[kind.beside]
    note = carrier.note if isinstance(carrier, CarrierDict) else None
    return note if isinstance(note, kind) else None


# ---------------------------------------------------------------------------------------------- artifacts
# Artifacts of tool results: objects for the program, which may not be serializable.


_UNCARRIED = "artifact not carried"


def without_artifact(message: ToolMessage) -> ToolMessage:
    """Return the message with its artifact replaced by a mark that names the artifact's type."""
    return message.model_copy(update={"artifact": {KEY: _UNCARRIED, "type": type(message.artifact).__qualname__}})


def portable_result(value: Any) -> Any:
    """Return a value for a pickle: a result with an artifact that cannot be pickled gets a mark; other values are unchanged."""
    if not isinstance(value, ToolMessage) or unportable("artifact", {"": value.artifact}) is None:
        return value
    return without_artifact(value)


# ---------------------------------------------------------------------------------------------- live
# Live messages attached to chunks, messages and errors: the objects of this process, artifacts included.
#
# They are in no data: a sum, a copy that serialises, a pickle, a checkpoint have what the data says.


_LIVE: Final = "_autotools_messages"  # attribute of an error
_CUT_REPLY: Final = "_autotools_cut_reply"  # likewise
_WHOLE_REPLY: Final = "_autotools_whole_reply"  # likewise


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


def keep_reply(error: BaseException) -> None:
    """Attach to an error that ended an LLM run of core the reply that it took with it, if that was whole."""
    if (reply := whole_reply(error)) is not None:
        error.__dict__[_WHOLE_REPLY] = reply


def take_reply(error: BaseException) -> AIMessage | None:
    """Return the whole reply that an error took with it, and detach it; None if there is none."""
    reply: AIMessage | None = error.__dict__.pop(_WHOLE_REPLY, None)
    return reply


def known_of_cut_reply(reply: Callable[[], AIMessageChunk] | None) -> AIMessageChunk | None:
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
