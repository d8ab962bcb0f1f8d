"""`send(..., while_running="steer")`: a run takes what is sent while it goes on, once, wherever its process ends."""

import threading
from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.tools import tool

from langchain_autotools.durable import Conversations
from langchain_autotools.event_types import MessageDone, MessagesAdded
from tests.support.durable import Life, asks, double


def said(messages: list[BaseMessage]) -> list[str]:
    """The messages in short."""
    return [f"{message.type} {message.text}".strip() for message in messages]


def told(chats: Conversations, conversation: str = "alice") -> list[BaseMessage]:
    """The messages that the events tell."""
    found: list[BaseMessage] = []
    for event in chats.events(conversation, timeout=20):
        found += event.messages if isinstance(event, MessagesAdded) else [event.message] if isinstance(event, MessageDone) else []
    return found


def test_a_run_takes_what_is_sent_while_its_tools_run(life: Life) -> None:
    """The message stands where the model read it, once; its own run ends without a request."""
    sent: list[Any] = []

    @tool
    def look() -> str:
        """Look."""
        sent.append(chats.send("alice", "Only in Celsius.", while_running="steer"))
        return "70 °F"

    def reply(messages: list[BaseMessage], **_: Any) -> Any:
        return asks(("look", {})) if len(messages) == 1 else f"{len(messages)}: {messages[-1].text}"

    chats = life.conversations(reply, [look])
    first = chats.send("alice", "How warm is it?")
    answer = chats.result(first, 20)
    assert said(chats.messages("alice")) == [
        "human How warm is it?",
        "ai",
        "tool 70 °F",
        "human Only in Celsius.",
        "ai 4: Only in Celsius.",
    ]
    assert chats.result(sent[0], 20) == answer
    assert said(chats.messages("alice")) == [
        "human How warm is it?",
        "ai",
        "tool 70 °F",
        "human Only in Celsius.",
        "ai 4: Only in Celsius.",
    ]
    assert told(chats) == chats.messages("alice")
    assert [run.get("taken_by") for run in chats.export("alice")["runs"]] == [None, first.run_id]
