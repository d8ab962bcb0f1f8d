"""Two tools that note what they did, and models whose calls of them wait for approval."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, messages_from_dict, messages_to_dict

from langchain_autotools import Decision, PendingCall, ToolExecutor, pending_calls
from langchain_autotools.messages.metadata import KEY
from langchain_autotools.testing import ScriptedChatModel
from tests.laws.ways import Ran, run

QUESTION = HumanMessage("Look at Paris and write to Anna and Ben.")
SECRET = "a key of the server's"


class Desk:
    """Two tools that note what they did."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def look(self, city: str) -> str:
        """Look."""
        self.done.append(f"look {city}")
        return f"{city}: 21"

    def send(self, to: str, amount: int = 1) -> str:
        """Send."""
        self.done.append(f"send {to} {amount}")
        return f"Sent to {to}."

    def executor(self, **options: Any) -> ToolExecutor:
        """An executor of both."""
        return ToolExecutor([self.look, self.send], **options)

    def model(self, *replies: Any, executor: dict[str, Any] | None = None, **fields: Any) -> ScriptedChatModel:
        """A model that has both; it says "Done." at last."""
        tools: Any = [self.look, self.send]
        own = ToolExecutor(tools, **executor) if executor else tools
        return ScriptedChatModel(tools=own, replies=[*replies, "Done.", "Done."], **fields)


def call(name: str, call_id: str, **args: Any) -> dict[str, Any]:
    """A call."""
    return {"name": name, "args": args, "id": call_id, "type": "tool_call"}


def asking(*calls: dict[str, Any]) -> AIMessage:
    """A reply that makes calls."""
    return AIMessage("", tool_calls=list(calls))


TURN = asking(call("send", "1", to="Anna"), call("look", "2", city="Paris"), call("send", "3", to="Ben"))


def through_json(history: Sequence[BaseMessage], decisions: Sequence[Decision]) -> tuple[list[BaseMessage], list[dict[str, Any]]]:
    """What another process reads of a history and decisions that were stored."""
    stored = json.loads(json.dumps([messages_to_dict(history), [decision.to_dict() for decision in decisions]]))
    return messages_from_dict(stored[0]), stored[1]


def asked(model: ScriptedChatModel, way: str = "invoke", **keywords: Any) -> tuple[list[BaseMessage], list[PendingCall], Ran]:
    """A history up to the calls that wait, and these."""
    first = run(way, model, [QUESTION], **keywords)
    assert first.error is None
    assert first.message is not None
    history = [QUESTION, *first.new]
    assert pending_calls(first.message) == pending_calls(history) == pending_calls([QUESTION, first.message])
    return history, pending_calls(history), first


def reason(ran: Ran) -> Any:
    """How a run ended."""
    assert ran.error is None
    assert ran.message is not None
    return ran.message.response_metadata[KEY]["stop_reason"]
