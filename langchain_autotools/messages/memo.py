"""Cache of values derived from messages, so that each message of a growing history is encoded once.

Entries are found by the message's identity and live as long as the message. A message that was changed since, also deep
inside, is not recognised: what was seen of it then is kept and compared, which costs a fraction of encoding it again.
"""

import weakref
from contextlib import suppress
from functools import partial
from typing import Any, Generic, TypeVar

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
        entries[key] = (reference, snapshot(message), context, value)

    def __len__(self) -> int:
        return len(self._entries)

    def __reduce__(self) -> tuple[Any, ...]:
        return (MessageMemo, ())


_snapshots: dict[int, tuple["weakref.ref[BaseMessage]", dict[str, Any]]] = {}


def snapshot(message: BaseMessage) -> dict[str, Any]:
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
