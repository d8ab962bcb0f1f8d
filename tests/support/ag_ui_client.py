"""A strict client of AG-UI: reads each event with the protocol's own types, checks what must be open when, and keeps the messages.

What it checks and keeps is what `verifyEvents` and `defaultApplyEvents` of @ag-ui/client 1.0.0 do; tests/parsers asks that client itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ag_ui.core import Event
from pydantic import TypeAdapter

_EVENT: TypeAdapter[Any] = TypeAdapter(Event)
_OPENS = {
    "TEXT_MESSAGE_START": "text",
    "REASONING_START": "span",
    "REASONING_MESSAGE_START": "reasoning",
    "TOOL_CALL_START": "call",
    "STEP_STARTED": "step",
    "SUBAGENT_STARTED": "subagent",
}
_GOES_ON = {"TEXT_MESSAGE_CONTENT": "text", "REASONING_MESSAGE_CONTENT": "reasoning", "TOOL_CALL_ARGS": "call"}
_CLOSES = {
    "TEXT_MESSAGE_END": "text",
    "REASONING_END": "span",
    "REASONING_MESSAGE_END": "reasoning",
    "TOOL_CALL_END": "call",
    "STEP_FINISHED": "step",
    "SUBAGENT_FINISHED": "subagent",
    "SUBAGENT_ERROR": "subagent",
}


class AgUiClient:
    """What a page has of a conversation.

    Attributes:
        messages: The messages, by id, in the order in which they came.
        events: The events of the last run.
    """

    def __init__(self) -> None:
        self.messages: dict[str, dict[str, Any]] = {}
        self.events: list[dict[str, Any]] = []

    def read(self, pieces: Iterable[bytes]) -> dict[str, Any]:
        """Read the stream of a run; returns its last event."""
        self.events, opened, owners = [], set(), {}
        frames = b"".join(pieces).decode().split("\n\n")
        assert frames.pop() == ""
        for frame in frames:
            if not frame.startswith(":"):
                self._take(_parsed(frame), opened, owners)
        last = self.events[-1]
        assert last["type"] in ("RUN_FINISHED", "RUN_ERROR")
        assert not opened
        return last

    def _take(self, event: dict[str, Any], opened: set[Any], owners: dict[Any, Any]) -> None:
        kind, tag = event["type"], event.get("subagentRunId")
        first = not self.events
        assert (kind == "RUN_STARTED") is first or (first and kind == "RUN_ERROR")
        assert first or self.events[-1]["type"] not in ("RUN_FINISHED", "RUN_ERROR")
        self.events.append(event)
        entity = (_OPENS.get(kind) or _GOES_ON.get(kind) or _CLOSES.get(kind), _id_of(event, tag))
        if kind in _OPENS:
            assert entity not in opened
            assert kind == "TEXT_MESSAGE_START" or entity not in owners, "nothing is opened twice"
            opened.add(entity)
        elif kind in _GOES_ON or kind in _CLOSES:
            assert entity in opened
        assert entity[0] in (None, "step", "subagent") or owners.setdefault(entity, tag) == tag
        assert tag is None or kind == "SUBAGENT_STARTED" or ("subagent", tag) in opened
        if kind in _CLOSES:
            opened.remove(entity)
        self._keep(event, kind)

    def _keep(self, event: dict[str, Any], kind: str) -> None:
        if kind == "MESSAGES_SNAPSHOT":
            self._replace(event["messages"])
        elif kind == "TEXT_MESSAGE_START":
            self._message(event, "assistant")
        elif kind == "REASONING_MESSAGE_START":
            self._message(event, "reasoning")
        elif kind in ("TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT"):
            self.messages[event["messageId"]]["content"] += event["delta"]
        elif kind == "TOOL_CALL_START":
            message = self._message({**event, "messageId": event["parentMessageId"]}, "assistant")
            message["calls"][event["toolCallId"]] = [event["toolCallName"], ""]
        elif kind == "TOOL_CALL_ARGS":
            (call,) = [call for one in self.messages.values() for call_id, call in one["calls"].items() if call_id == event["toolCallId"]]
            call[1] += event["delta"]
        elif kind == "TOOL_CALL_RESULT":
            message = self._message(event, "tool")
            message |= {"content": event["content"], "toolCallId": event["toolCallId"], "status": event["metadata"]["autotools"]["status"]}

    def _replace(self, messages: list[dict[str, Any]]) -> None:
        self.messages.clear()
        for one in messages:
            message = self._message({"messageId": one["id"]}, one["role"])
            message["content"] = one["content"]
            message["calls"] = {call["id"]: [call["function"]["name"], call["function"]["arguments"]] for call in one.get("toolCalls", [])}
            if one["role"] == "tool":
                message |= {"toolCallId": one["toolCallId"], "status": one["metadata"]["autotools"]["status"]}

    def _message(self, event: dict[str, Any], role: str) -> dict[str, Any]:
        made = {"role": role, "content": "", "calls": {}, "tag": event.get("subagentRunId")}
        message = self.messages.setdefault(event["messageId"], made)
        assert (message["role"], message["tag"]) == (role, made["tag"])
        return message

    def own(self, role: str) -> list[tuple[str, dict[str, Any]]]:
        """The messages of a role that no subagent made, with their ids."""
        return [(one, message) for one, message in self.messages.items() if message["role"] == role and message["tag"] is None]


def _parsed(frame: str) -> dict[str, Any]:
    head, text = frame.split(": ", 1)
    assert head == "data"
    event = _EVENT.validate_json(text)
    assert not _unknown(event), f"the protocol has no {_unknown(event)}"
    data: dict[str, Any] = event.model_dump(mode="json", by_alias=True)
    return data


def _unknown(event: Any) -> set[str]:
    return set(event.model_extra or ())


def _id_of(event: dict[str, Any], tag: str | None) -> Any:
    if "stepName" in event:
        return (tag, event["stepName"])
    return event.get("messageId") if event["type"].startswith(("TEXT", "REASONING")) else event.get("toolCallId") or tag
