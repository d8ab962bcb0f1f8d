"""The form in which a stored history is sent.

A call whose server gave it no id of its own is known by a random one. What is sent for it is derived from its place instead and
remembered beside it, so that the same conversation makes the same requests, whoever had it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from ..messages.calls import call_ids
from ..messages.incremental import GrowingHistory, MessageMemo
from ..messages.metadata import FAILOVER, GO_ON, is_cut_reply, own_metadata
from .repairs import with_call_ids

_memo: MessageMemo[BaseMessage] = MessageMemo()  # the same copy in every turn, so that what was encoded of it is found again


class _SentCopies:
    """A fold that makes the copies of messages with the call ids that are sent, by their places.

    Attributes:
        copies: The copies.
        cut: Whether a reply was cut off, after which a request to go on may stand: what is sent then need not begin with what was sent.
    """

    __slots__ = ("_count", "_sent", "copies", "cut")

    def __init__(self) -> None:
        self.copies: dict[int, BaseMessage] = {}
        self.cut = False
        self._sent: Mapping[str, str] = {}
        self._count = 0

    def copy(self) -> "_SentCopies":
        """Return an independent copy."""
        made = _SentCopies()
        made.copies, made._sent, made._count, made.cut = {**self.copies}, self._sent, self._count, self.cut
        return made

    def read(self, messages: Sequence[BaseMessage]) -> None:
        """Read the next messages."""
        sent = self._sent
        for place, message in enumerate(messages, self._count):
            if isinstance(message, AIMessage):
                own = own_metadata(message)
                self.cut = self.cut or (FAILOVER in own and is_cut_reply(message))
                sent = _sent_ids(message, own)
                if sent:
                    self.copies[place] = _with_ids_sent(message, sent)
            elif sent and isinstance(message, ToolMessage) and message.tool_call_id in sent:
                self.copies[place] = _with_ids_sent(message, {message.tool_call_id: sent[message.tool_call_id]})
        self._sent = sent
        self._count += len(messages)


def as_sent(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return a repaired history as it is sent to the server: with the call ids that it is to have, and with a request to go on after each
    reply that was cut off (`fallbacks`) and that no message of the user follows.

    Returns:
        A new list. Messages that are not touched are the same objects.
    """
    made: list[BaseMessage] = []
    sent: Mapping[str, str] = {}
    cut = False
    for message in messages:
        if isinstance(message, AIMessage):
            if cut:
                made.append(GO_ON)
            own = own_metadata(message)
            cut = FAILOVER in own and is_cut_reply(message)
            sent = _sent_ids(message, own)
            made.append(_with_ids_sent(message, sent) if sent else message)
        elif sent and isinstance(message, ToolMessage) and message.tool_call_id in sent:
            made.append(_with_ids_sent(message, {message.tool_call_id: sent[message.tool_call_id]}))
        else:
            cut = False
            made.append(message)
    return [*made, GO_ON] if cut else made


def grown_as_sent(messages: GrowingHistory) -> list[BaseMessage]:
    """Return a repaired history as of `as_sent`; what is derived from it goes on from the request before."""
    fold = messages.derive(_SentCopies, _SentCopies)
    return as_sent([*messages]) if fold.cut else messages.replaced(fold.copies)


def _with_ids_sent(message: BaseMessage, sent: Mapping[str, str]) -> BaseMessage:
    """Return the message with its call ids replaced."""
    copy = _memo.get(message, sent)
    if copy is None:
        if isinstance(message, AIMessage):
            copy = with_call_ids(message, list(sent), list(sent.values()))
        else:
            (call_id,) = sent.values()
            copy = message.model_copy(update={"tool_call_id": call_id})
        _memo.put(message, sent, copy)
    return copy


def _sent_ids(message: AIMessage, own: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the sent id of each call, by its id; empty if all are unchanged, or if two calls would get the same id."""
    entries = own.get("calls")
    recorded: dict[str, str] = {}
    for entry in entries if isinstance(entries, list) else ():  # not `records_of`: this is done for every message of every request
        if isinstance(entry, Mapping) and entry.get("sent_id"):
            recorded[str(entry.get("id"))] = str(entry["sent_id"])
    if not recorded:
        return recorded
    sent = {call_id: recorded.get(call_id, call_id) for call_id in call_ids(message) if call_id}
    return sent if len(set(sent.values())) == len(sent) and list(sent) != list(sent.values()) else {}


# ---------------------------------------------------------------------------------------------- merging
# Merging of consecutive messages with one role, for wires on which the roles must alternate.
#
# No general repair: most vendors take messages of one role in a row, and joining would change what was sent before.


def merge_runs(messages: Sequence[BaseMessage], *, separator: str = "\n\n") -> list[BaseMessage]:
    """Merge consecutive human, system and AI messages of the same kind.

    Texts are joined by `separator`, lists of content blocks one after another. The joined message keeps the id of the
    first and, of everything else that both have, what the last one says. An AI message with calls only ends a run: its
    results must follow it. Tool results are never joined.

    Returns:
        A new list. Messages that are not joined are the same objects.
    """
    merged: list[BaseMessage] = []
    for message in messages:
        if merged and _joinable(merged[-1], message):
            merged[-1] = _merged_pair(merged[-1], message, separator)
        else:
            merged.append(message)
    return merged


def _joinable(left: BaseMessage, right: BaseMessage) -> bool:
    role = next((role for role in (HumanMessage, SystemMessage, AIMessage) if isinstance(left, role)), None)
    if role is None or not isinstance(right, role):
        return False
    return not isinstance(left, AIMessage) or not (left.tool_calls or left.invalid_tool_calls)


def _merged_pair(left: BaseMessage, right: BaseMessage, separator: str) -> BaseMessage:
    update: dict[str, Any] = {
        "id": left.id,
        "content": _joined_content(left.content, right.content, separator),
        "additional_kwargs": {**left.additional_kwargs, **right.additional_kwargs},
        "response_metadata": {**left.response_metadata, **right.response_metadata},
        "name": left.name if left.name == right.name else None,
    }
    return right.model_copy(update=update)


def _joined_content(left: str | list[Any], right: str | list[Any], separator: str) -> str | list[Any]:
    if isinstance(left, str) and isinstance(right, str):
        return separator.join(part for part in (left, right) if part)
    return [*_as_blocks(left), *_as_blocks(right)]


def _as_blocks(content: str | list[Any]) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content
