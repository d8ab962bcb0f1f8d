"""Runs that meet a database that cannot be written."""

import logging
import random
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.tools import tool

from langchain_autotools.durable import Conversations
from langchain_autotools.event_types import RunFailed
from langchain_autotools.testing import ScriptedChatModel

from .durable import asks

_LONG = random.Random(0).randbytes(40_000).hex()


class Warnings(logging.Handler):
    """Waits for the warning that runs wait."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        """Take a record."""
        if "cannot be written" in record.getMessage():
            self.said.set()


class Runs:
    """Runs of conversations that wait in a request and in a tool, and messages behind them.

    Args:
        url: The database.
    """

    def __init__(self, url: str) -> None:
        self.over = threading.Event()
        self.ran: list[str] = []
        self._begun = threading.Barrier(3)

        @tool
        def pay(who: str) -> str:
            """Pay somebody."""
            self.ran.append(who)
            self._wait()
            return f"paid {who}"

        self.chats = Conversations(ScriptedChatModel(replies=self._reply, tools=[pay]), url)

    def _wait(self) -> None:
        if not self.over.is_set():
            self._begun.wait(30)
            assert self.over.wait(30)

    def _reply(self, messages: list[BaseMessage], **_: Any) -> Any:
        if messages[-1].text == "Pay":
            return asks(("pay", {"who": "alice"}), text=_LONG)
        if messages[-1].text == "Talk":
            self._wait()
        return f"{len(messages)} messages. {_LONG}"

    def play(self, broken: Callable[[], AbstractContextManager[None]], meanwhile: Callable[[Conversations], None]) -> None:
        """Break the database while they run, and see that they wait; then that all are answered, and nothing ran twice."""
        chats = self.chats
        sent = [chats.send(name, name) for name in ("Pay", "Talk")]
        sent += [chats.send(name, "Then") for name in ("Pay", "Talk")]
        self._begun.wait(30)
        with broken():
            self.over.set()
            meanwhile(chats)
        texts = [chats.result(one, timeout=60).text.split(_LONG)[-2].strip() for one in sent]
        assert texts == ["3 messages.", "1 messages.", "5 messages.", "3 messages."] and self.ran == ["alice"]
        assert not any(isinstance(event, RunFailed) for name in ("Pay", "Talk") for event in chats.events(name))
