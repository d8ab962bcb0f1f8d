"""The lock of a conversation: one question at a time."""

import threading
from typing import Protocol

from ..errors import ConfigurationError


class Question(Protocol):
    """The interface of a question that is being answered."""

    def give_way(self) -> None:
        """End the answer for the next question; raise if the answer is in progress."""

    async def agive_way(self) -> None:
        """Like `give_way`, asynchronously."""


class Floor:
    """Admits one question at a time to a conversation. An answer that is no longer read ends for the next question."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holder: Question | None = None

    def enter(self, question: Question) -> None:
        """Admit a question.

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
        """Admit a question if there is no other; else return the other one."""
        with self._lock:
            if self._holder is None:
                self._holder = question
                return None
            return self._holder

    def leave(self, question: Question) -> None:
        """Remove a question that has been answered or has failed."""
        with self._lock:
            if self._holder is question:
                self._holder = None


def busy() -> ConfigurationError:
    """Return the error for a question during the answer to another one."""
    return ConfigurationError("the agent is answering already: give history=[...] to ask several questions at once")
