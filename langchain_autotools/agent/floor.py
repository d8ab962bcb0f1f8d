"""One question at a time in a conversation."""

import threading
from typing import Protocol

from ..errors import ConfigurationError


class Question(Protocol):
    """A question that is being answered."""

    def give_way(self) -> None:
        """End the answer for the next question; raises where it is being made."""

    async def agive_way(self) -> None:
        """Like `give_way`, asynchronously."""


class Floor:
    """Lets one question at a time into a conversation. An answer that nobody reads on gives way to the next question."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holder: Question | None = None

    def enter(self, question: Question) -> None:
        """Let a question in.

        Raises:
            ConfigurationError: Another one is being answered.
        """
        while (holder := self._entered(question)) is not None:
            holder.give_way()

    async def aenter(self, question: Question) -> None:
        """Like `enter`, asynchronously."""
        while (holder := self._entered(question)) is not None:
            await holder.agive_way()

    def _entered(self, question: Question) -> Question | None:
        """Let a question in if there is no other; else the other one."""
        with self._lock:
            if self._holder is None:
                self._holder = question
                return None
            return self._holder

    def leave(self, question: Question) -> None:
        """Note that a question has been answered, or never will be."""
        with self._lock:
            if self._holder is question:
                self._holder = None


def busy() -> ConfigurationError:
    """The error of a question that comes while another one is being answered."""
    return ConfigurationError("the agent is answering already: give history=[...] to ask several questions at once")
