"""What is sent of a history in another form than it is stored: call ids, and the request to go on with a reply that was cut off.

A call whose server gave it no id of its own is known by a random one. What is sent for it is derived from its place instead and
remembered beside it, so that the same conversation makes the same requests, whoever had it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from ..messages.calls import call_ids
from ..messages.failover import FAILOVER, GO_ON, is_cut
from ..messages.memo import MessageMemo
from ..messages.metadata import own_metadata
from .normalize import with_call_ids

_memo: MessageMemo[BaseMessage] = MessageMemo()  # the same copy in every turn, so that what was encoded of it is found again


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
            cut = FAILOVER in own and is_cut(message)
            sent = _sent_ids(message, own)
            made.append(_with_ids_sent(message, sent) if sent else message)
        elif sent and isinstance(message, ToolMessage) and message.tool_call_id in sent:
            made.append(_with_ids_sent(message, {message.tool_call_id: sent[message.tool_call_id]}))
        else:
            cut = False
            made.append(message)
    return [*made, GO_ON] if cut else made


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
