"""Messages that a chunk, a message or an error knows beside its data, as they are in this process, artifacts and all.

They are no field and in no data: a sum, a copy that serialises, a pickle, a checkpoint have what the data says.
"""

from collections.abc import Iterable
from typing import Any, Final

from langchain_core.messages import BaseMessage

from .artifacts import portable_result

_LIVE: Final = "_autotools_messages"  # attribute of an error


class _MetadataWithMessages(dict[str, Any]):
    """A message's metadata, which also knows messages: whatever makes another message or data of this one makes a plain dict of it."""

    live: list[BaseMessage]
    shown = False

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)

    def __repr__(self) -> str:
        """As a dict's, with the number of the messages that it carries in their place: the data of a run is long."""
        return repr({key: _brief(value) for key, value in self.items()})


class _Attached(list[BaseMessage]):
    """Messages attached to an error, which may go to another process."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _Attached, ([portable_result(message) for message in self],)


class _Omitted(str):
    """What a repr says in place of a value."""

    __repr__ = str.__str__


def _brief(value: Any) -> Any:
    messages = value.get("messages") if isinstance(value, dict) else None
    return {**value, "messages": _Omitted(f"<{len(messages)} messages>")} if messages and isinstance(messages, list) else value


def attach_messages(holder: BaseMessage | BaseException, messages: Iterable[BaseMessage]) -> None:
    """Attach messages to a chunk, a message or an exception, for `new_messages` to find.

    Args:
        holder: What they are attached to.
        messages: The messages.
    """
    if not isinstance(holder, BaseMessage):
        holder.__dict__[_LIVE] = _Attached(messages)
        return
    metadata = _MetadataWithMessages(holder.response_metadata)
    metadata.live = [*messages]
    holder.__dict__["response_metadata"] = metadata


def attached_messages(holder: object) -> list[BaseMessage] | None:
    """The messages attached to `holder`; None where none were."""
    values = getattr(holder, "__dict__", {})
    metadata = values.get("response_metadata")
    messages = metadata.live if isinstance(metadata, _MetadataWithMessages) else values.get(_LIVE)
    return None if messages is None else list(messages)


def mark_shown(message: BaseMessage) -> None:
    """Remember of a message with messages attached to it that they have been shown as they came."""
    if isinstance(message.response_metadata, _MetadataWithMessages):
        message.response_metadata.shown = True


def was_shown(message: BaseMessage) -> bool:
    """Whether that is remembered of a message."""
    return isinstance(message.response_metadata, _MetadataWithMessages) and message.response_metadata.shown
