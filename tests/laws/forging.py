"""Histories and decisions as somebody without the key may change them."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, messages_to_dict

from langchain_autotools import Decision, PendingCall, ToolExecutor
from langchain_autotools.executor.pending import RECORD, digest_of
from langchain_autotools.messages.calls import calls_of
from langchain_autotools.messages.metadata import KEY
from tests.laws.guarded import NAMES, Guarded

_TOOLS = ToolExecutor(Guarded().tools())

Forgery = Callable[[random.Random, list[BaseMessage]], None]


def _fresh(chance: random.Random) -> int:
    return chance.randint(10**6, 10**9)


def asking(history: Sequence[BaseMessage]) -> list[AIMessage]:
    """The messages that make calls."""
    return [message for message in history if isinstance(message, AIMessage) and message.tool_calls]


def _entries(message: AIMessage) -> list[dict[str, Any]]:
    own = message.response_metadata.setdefault(KEY, {})
    return own.setdefault("calls", [{"id": call["id"]} for call in message.tool_calls])  # type: ignore[no-any-return]


def _arguments(chance: random.Random, history: list[BaseMessage]) -> None:
    """Change what a call is to do."""
    call = chance.choice(chance.choice(asking(history)).tool_calls)
    inner = chance.choice(call["args"]["tool_uses"])["parameters"] if "tool_uses" in call["args"] else call["args"]
    inner["number"] = _fresh(chance)


def _name(chance: random.Random, history: list[BaseMessage]) -> None:
    """Change which tool is called."""
    call = chance.choice(chance.choice(asking(history)).tool_calls)
    if "tool_uses" in call["args"]:
        chance.choice(call["args"]["tool_uses"])["recipient_name"] = chance.choice(NAMES)
    else:
        call["name"] = chance.choice(NAMES)


def _records_moved(chance: random.Random, history: list[BaseMessage]) -> None:
    """Give a call the record of another one, and that one its own."""
    entries = [entry for message in asking(history) for entry in _entries(message)]
    one, other = chance.choice(entries), chance.choice(entries)
    one[RECORD], other[RECORD] = other.get(RECORD), one.get(RECORD)


def _kind(chance: random.Random, history: list[BaseMessage]) -> None:
    """Say that a call waits for something else."""
    for entry in _entries(chance.choice(asking(history))):
        if entry.get(RECORD):
            entry[RECORD]["kind"] = chance.choice(["approval", "queued", "caller", "client_tool", "nothing", None])


def _tool(chance: random.Random, history: list[BaseMessage]) -> None:
    """Say that a call is one of another tool."""
    for entry in _entries(chance.choice(asking(history))):
        if entry.get(RECORD):
            entry[RECORD]["tool"] = chance.choice(NAMES)


def _unrecorded(chance: random.Random, history: list[BaseMessage]) -> None:
    """Remove what is recorded of the calls of a message."""
    chance.choice(asking(history)).response_metadata.pop(KEY, None)


def _reopened(chance: random.Random, history: list[BaseMessage]) -> None:
    """Remove results, so that calls look open."""
    message = chance.choice(asking(history))
    chosen = {call["id"] for call in message.tool_calls if chance.random() < 0.7}
    end = len(history) if chance.random() < 0.3 else history.index(message) + 1 + len(message.tool_calls)
    history[:] = [one for one in history[:end] if not (isinstance(one, ToolMessage) and one.tool_call_id in chosen)]


def _again(chance: random.Random, history: list[BaseMessage]) -> None:
    """Let a message come once more."""
    history.append(copy.deepcopy(chance.choice(asking(history))))


def _carried(chance: random.Random, history: list[BaseMessage]) -> None:
    """Put messages with calls into what a run message carries."""
    carried: list[BaseMessage] = [copy.deepcopy(chance.choice(asking(history)))]
    if chance.random() < 0.5:
        _arguments(chance, carried)
    history.append(AIMessage("", response_metadata={KEY: {"messages": messages_to_dict(carried), "stop_reason": "calls_pending"}}))


def _renamed(chance: random.Random, history: list[BaseMessage]) -> None:
    """Give a call another id, where it is and where it is recorded."""
    message = chance.choice(asking(history))
    call, fresh = chance.choice(message.tool_calls), f"call_{_fresh(chance)}"
    for entry in _entries(message):
        if entry.get("id") == call["id"]:
            entry["id"] = fresh
    call["id"] = fresh


def _added(chance: random.Random, history: list[BaseMessage]) -> None:
    """Add a call that the model did not make, with the record of another one."""
    message = chance.choice(asking(history))
    entries = _entries(message)
    fresh = f"call_{_fresh(chance)}"
    entries.append({**copy.deepcopy(chance.choice(entries)), "id": fresh})
    message.tool_calls.append({"name": chance.choice(NAMES), "args": {"number": _fresh(chance)}, "id": fresh, "type": "tool_call"})


FORGERIES: Sequence[Forgery] = (
    _arguments,
    _name,
    _records_moved,
    _kind,
    _tool,
    _unrecorded,
    _reopened,
    _again,
    _carried,
    _renamed,
    _added,
)


def signed(history: Sequence[BaseMessage]) -> None:
    """Make the digests anew, as they are made where there is no key."""
    for message in asking(history):
        for call in _TOOLS.meant(calls_of(message)):
            for entry in _entries(message):
                record = entry.get(RECORD)
                if entry.get("id") == call.id and record:
                    record["digest"] = digest_of(call, record["kind"], record["uuid"])


def decisions_forged(chance: random.Random, calls: Sequence[PendingCall], past: Sequence[dict[str, Any]], *, resign: bool) -> Any:
    """What somebody says who was not asked: what was said before, about these calls or others; True; or a digest of his own."""
    how = chance.choice(["True", "by id", "arguments", "past", "moved", *(["made"] if resign else [])])
    if how == "True" or not calls:
        return True if chance.random() < 0.5 else list(past)
    if how == "by id":
        return {call.id: True for call in calls}
    if how == "arguments":
        return {call.id: {"number": _fresh(chance)} for call in calls}
    if how == "made":
        return [Decision(call.id, "approve", None, call.uuid, call.digest).to_dict() for call in calls]
    if how == "moved" and past:
        return [{**chance.choice(past), "id": call.id} for call in calls]
    ids = {call.id for call in calls}
    return [one for one in {one["id"]: one for one in past}.values() if one["id"] in ids]
