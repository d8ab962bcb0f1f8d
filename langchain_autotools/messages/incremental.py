"""Values derived from messages, which are found again when the history has grown.

Entries are found by the message's identity and live as long as the message. A message that was changed since, also deep
inside, is not recognised: what was seen of it then is kept and compared, which costs a fraction of encoding it again.
"""

import weakref
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Protocol, Self, TypeVar, cast

from langchain_core.messages import BaseMessage

_T = TypeVar("_T")
_COPIED = frozenset({dict, list})
_Entry = tuple["weakref.ref[BaseMessage]", dict[str, Any], object, _T]


class MessageMemo(Generic[_T]):
    """A weak cache by message identity, safe for threads, which may at worst encode a message twice.

    A pickled or copied memo is empty.
    """

    def __init__(self) -> None:
        self._entries: dict[int, _Entry[_T]] = {}

    def get(self, message: BaseMessage, context: object = None) -> _T | None:
        """Return the cached value for this message object and an equal context, unless the message has changed."""
        entry = self._entries.get(id(message))
        if entry is None:
            return None
        reference, seen, known, value = entry
        if known != context or reference() is not message:
            return None
        fields = message.__dict__
        if fields.get("artifact") is not None:
            fields = {**fields, "artifact": None}
        try:
            return value if fields == seen else None
        except Exception:  # a foreign object (an array, say) whose comparison is no truth value took another's place
            return None

    def put(self, message: BaseMessage, context: object, value: _T) -> None:
        """Cache a value for a message in its current state.

        Args:
            message: The message.
            context: Other data that the value depends on.
            value: The value derived from the message.
        """
        key, entries = id(message), self._entries
        reference = weakref.ref(message, partial(entries.pop, key))
        entries[key] = (reference, _snapshot(message), context, value)

    def __len__(self) -> int:
        return len(self._entries)

    def __reduce__(self) -> tuple[Any, ...]:
        return (MessageMemo, ())


_snapshots: dict[int, tuple["weakref.ref[BaseMessage]", dict[str, Any]]] = {}


def _snapshot(message: BaseMessage) -> dict[str, Any]:
    """Return the fields of a message as they are now, to compare with later ones; one dict for all who take it of the same state.

    Artifacts are left out, because they are never sent: they may be large, or hold the whole conversation. So are notes.
    """
    fields = message.__dict__
    if fields.get("artifact") is not None:
        fields = {**fields, "artifact": None}
    key, known = id(message), _snapshots.get(id(message))
    with suppress(Exception):  # see `MessageMemo.get`
        if known is not None and known[1] == fields:
            return known[1]
    about, more = fields["response_metadata"], fields["additional_kwargs"]
    if about.__class__ is not dict or more.__class__ is not dict:  # a note may hold the message itself
        fields = {**fields, "response_metadata": {**about}, "additional_kwargs": {**more}}
    made: dict[str, Any] = copy_containers(fields)
    _snapshots[key] = weakref.ref(message, partial(_snapshots.pop, key)), made
    return made


def copy_containers(value: Any) -> Any:
    """Return a copy of nested dicts and lists with shared leaves, so that comparing unchanged data compares identities."""
    if value.__class__ is dict:
        return {key: copy_containers(item) if item.__class__ in _COPIED else item for key, item in value.items()}
    if value.__class__ is list:
        return [copy_containers(item) if item.__class__ in _COPIED else item for item in value]
    return value


# ---------------------------------------------------------------------------------------------- growing
# Histories that grow: what was derived from the messages of one request is found again by the next, which begins with them.
#
# A fold reads messages in order and keeps what it made of them: whether they are sound, which ids they have, their bytes on a wire. The
# folds of a list are kept until its last message is gone. A longer list that begins with the same message objects, none of them changed
# since, goes on from there: only what is new is read. The messages are compared as a whole, by what was in them when they were read.


_MOST_FOLDS = 10
"""The number of folds that a longer list takes over: those of one wire, and of a few more models that take turns."""


class Fold(Protocol):
    """A value that is derived from messages in order. Once it is kept, nobody changes it: others read on in a copy."""

    def copy(self) -> Self:
        """Return an independent copy."""

    def read(self, messages: Sequence[BaseMessage]) -> None:
        """Read the next messages."""


_F = TypeVar("_F", bound=Fold)


@dataclass(slots=True, eq=False, repr=False)
class _Derived:
    """What was derived from the messages of one list.

    Attributes:
        ids: The identities of the messages.
        seen: Their fields as they were read; of messages that are not kept yet, nothing.
        folds: The folds by their key, each with the number of messages that it has read.
        before: The list that this one goes on from.
    """

    ids: list[int]
    seen: list[dict[str, Any]] = field(default_factory=list)
    folds: dict[Hashable, tuple[int, Any]] = field(default_factory=dict)
    before: "_Derived | None" = None


Kept = dict[int, tuple["weakref.ref[BaseMessage]", _Derived]]
"""What is kept of lists of messages: by the identity of the last message, as long as it lives."""

_kept: Kept = {}


class GrowingHistory(list[BaseMessage]):
    """The messages of a request, with what was derived from those that it begins with. Pickled or copied it is a plain list."""

    __slots__ = ("_derived", "_kept", "_read")

    def __init__(self, messages: Sequence[BaseMessage], derived: _Derived, kept: Kept) -> None:
        super().__init__(messages)
        self._derived = derived
        self._read = [*messages]
        self._kept = kept

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return list, ([*self],)

    def derive(self, key: Hashable, begin: Callable[[], _F], end: int | None = None) -> _F:
        """Return the fold of this key over the first `end` messages, or over all of them."""
        if self._is_changed():
            return fold_over([*self], key, begin, end)
        size, folds = len(self) if end is None else end, self._derived.folds
        count, known = folds.get(key, (0, None))
        if known is not None and count == size:
            return cast("_F", known)
        if known is None or count > size:
            count, made = 0, begin()
        else:
            made = known.copy()
        made.read(self[count:size])
        folds.pop(key, None)  # so that it is the newest again
        folds[key] = size, made
        return made

    def _is_changed(self) -> bool:
        """Whether the list has other messages than it was made with. (Of the same objects this compares the identities alone.)"""
        try:
            return self._read != self
        except Exception:  # a message with a foreign object whose comparison is no truth value took another's place
            return True

    def replaced(self, places: dict[int, BaseMessage]) -> "GrowingHistory":
        """Return the list with other messages at some places, which follow from the messages up to there.

        Folds of the one list and of the other have different keys.
        """
        made = [*self]
        for place, message in places.items():
            made[place] = message
        return GrowingHistory(made, self._derived, self._kept)

    def keep(self) -> None:
        """Keep what is derived from this list, from now on, in place of what it goes on from."""
        derived = self._derived
        if not self or len(derived.seen) == len(self):
            return
        derived.seen = [*derived.seen, *map(_snapshot, self[len(derived.seen) :])]
        key, before, derived.before, kept = id(self[-1]), derived.before, None, self._kept
        if before is not None and kept.get(before.ids[-1], (None, None))[1] is before:
            del kept[before.ids[-1]]
        kept[key] = weakref.ref(self[-1], partial(kept.pop, key)), derived


def growing(messages: Sequence[BaseMessage], kept: Kept = _kept) -> GrowingHistory:
    """Return the messages as a list that goes on from the longest one that it begins with.

    Args:
        messages: The messages.
        kept: What is kept of earlier lists. Lists that end in the same message, and are not the same otherwise, have different ones.
    """
    ids = [*map(id, messages)]
    fields: list[dict[str, Any]] | None = None
    for place in range(len(ids) - 1, -1, -1):
        _, known = kept.get(ids[place], (None, None))
        if known is None or known.ids != ids[: place + 1]:
            continue
        if fields is None:
            fields = [  # without a call for each of them
                {**one, "artifact": None} if "artifact" in one and one["artifact"] is not None else one for one in map(vars, messages)
            ]
        try:
            same = known.seen == fields[: place + 1]
        except Exception:  # a foreign object whose comparison is no truth value took another's place
            continue
        if same:
            if place + 1 < len(ids):
                known = _Derived(ids, known.seen, dict([*known.folds.items()][-_MOST_FOLDS:]), known)
            return GrowingHistory(messages, known, kept)
    return GrowingHistory(messages, _Derived(ids), kept)


def fold_over(messages: Sequence[BaseMessage], key: Hashable, begin: Callable[[], _F], end: int | None = None) -> _F:
    """Return a fold over the first `end` messages, or over all; of a `GrowingHistory` reads only what is new.

    Args:
        messages: The messages.
        key: What tells the fold from others over the same messages.
        begin: Makes a fold that has read nothing.
        end: The number of messages to read.
    """
    if isinstance(messages, GrowingHistory):
        return messages.derive(key, begin, end)
    made = begin()
    made.read(messages[:end])
    return made
