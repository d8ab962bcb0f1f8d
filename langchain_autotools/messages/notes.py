"""Internal notes attached to chunks and messages, which pass in stream order from one part of the package to another.

A note rides on a dict that the message has anyway, as an attribute of a subclass of `dict`. Nothing else goes all the way: a field of our
own would need a subclass of the message, which leaves the package; an attribute in the message's `__dict__` becomes a field of whatever
`message_chunk_to_message` makes of a chunk, and is pickled and copied with it; private attributes of pydantic's make equal messages differ.
Of the dict nobody sees the difference: it is equal to a plain one, and `+`, a dump, a pickle, a deep copy and a checkpoint make a plain one
of it, without the note.

What a core that copied chunks would cost is in `tests/unit/test_compat_copies.py`.
"""

from typing import Any, ClassVar, TypeVar

from langchain_core.messages import BaseMessage


class Note:
    """Base class of notes attached to a chunk or a message, beside its data.

    Attributes:
        beside: The field whose dict carries notes of this class. Core gives each chunk of a stream new `response_metadata` and leaves
            `additional_kwargs` alone: what a turn says to its run goes there. What stands for a part of the metadata goes with that:
            whoever replaces the metadata drops both.
    """

    beside: ClassVar[str] = "additional_kwargs"


_N = TypeVar("_N", bound=Note)


class NotedDict(dict[str, Any]):
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
    carrier = fields[note.beside] = NotedDict(fields[note.beside])
    carrier.note = note


def note_of(message: BaseMessage, kind: type[_N]) -> _N | None:
    """Return the note of this class that is attached to a chunk or a message; None if there is none."""
    carrier = message.__dict__[kind.beside]
    note = carrier.note if isinstance(carrier, NotedDict) else None
    return note if isinstance(note, kind) else None
