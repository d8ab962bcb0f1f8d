"""What a user says while a run goes on: somebody who says something in replies of a script, and a queue whose readings are planned."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from langchain_core.messages import BaseMessage

from langchain_autotools.testing import ScriptedChatModel
from tests.support.desk import asking, call

SAID = "Only in Celsius."
LOOKS = asking(call("look", "1", city="Paris"), call("look", "2", city="Rome"))


class Readings:
    """A queue into which the next part of a plan has come whenever a run reads it.

    Args:
        plan: What is there at the first reading, at the second one, and so on.

    Attributes:
        taken: What was taken out, in order.
    """

    def __init__(self, plan: Sequence[Sequence[Any]]) -> None:
        self.taken: list[Any] = []
        self._plan = [list(part) for part in plan]
        self._there: list[Any] = []
        self._is_read = False

    def empty(self) -> bool:
        """Whether nothing is there; that ends a reading."""
        if not self._is_read and self._plan:
            self._there += self._plan.pop(0)
        self._is_read = bool(self._there)
        return not self._there

    def get_nowait(self) -> Any:
        """Take the next one."""
        self.taken.append(self._there.pop(0))
        return self.taken[-1]

    @property
    def texts(self) -> list[str]:
        """The texts of the messages that were taken; what is none is left out."""
        messages = [one for one in self.taken if (isinstance(one, str) and one) or getattr(one, "type", None) == "human"]
        return [one if isinstance(one, str) else one.text for one in messages]


def kinds(messages: Iterable[BaseMessage]) -> list[str]:
    """The types of messages."""
    return [message.type for message in messages]


def texts(messages: Iterable[BaseMessage]) -> list[str]:
    """The texts of the user's messages."""
    return [message.text for message in messages if message.type == "human"]


def left(inbox: Any) -> list[Any]:
    """What is still in a queue."""
    found = []
    while not inbox.empty():
        found.append(inbox.get_nowait())
    return found


class User:
    """Somebody who says something while a tool runs or a reply is written.

    Args:
        inbox: Where it goes.
    """

    def __init__(self, inbox: Any = None) -> None:
        self.inbox = queue.Queue() if inbox is None else inbox
        self.looked: list[str] = []

    def says(self, *what: Any, then: Any = "Done.") -> Callable[..., Any]:
        """A reply during which something is said."""

        def reply(messages: list[BaseMessage], **_: Any) -> Any:
            for one in what:
                self.inbox.put(one) if not isinstance(self.inbox, asyncio.Queue) else self.inbox.put_nowait(one)
            return then

        return reply

    def model(self, *replies: Any, tools: Iterable[Any] = (), **fields: Any) -> ScriptedChatModel:
        """A model with a tool; `"Done."` is its last word."""

        def look(city: str) -> str:
            """Look at a city."""
            self.looked.append(city)
            return f"{city}: 21"

        return ScriptedChatModel(tools=[look, *tools], replies=[*replies, "Done.", "Done.", "Done."], **fields)


def declared(name: str) -> dict[str, Any]:
    """A tool that is only declared."""
    return {"type": "function", "function": {"name": name, "description": "Theirs.", "parameters": {"type": "object", "properties": {}}}}
