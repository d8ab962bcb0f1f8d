"""Where the messages of a conversation are kept."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from langchain_core.messages import BaseMessage


class Memory(Protocol):
    """Keeps the messages of a conversation."""

    @property
    def is_local(self) -> bool:
        """Whether the messages are in this process, so that nothing waits for them."""

    def read(self) -> list[BaseMessage]:
        """The messages so far."""

    async def aread(self) -> list[BaseMessage]:
        """Like `read`, asynchronously."""

    def add(self, messages: Sequence[BaseMessage]) -> None:
        """Add messages at the end."""

    async def aadd(self, messages: Sequence[BaseMessage]) -> None:
        """Like `add`, asynchronously."""


class OwnMemory:
    """A list of messages.

    Args:
        messages: The messages so far. They are copied.
        keeps: Whether messages are added to it.
    """

    is_local = True

    def __init__(self, messages: Iterable[BaseMessage], *, keeps: bool = True) -> None:
        self.messages = list(messages)
        self._keeps = keeps

    def read(self) -> list[BaseMessage]:
        """The messages so far."""
        return self.messages

    async def aread(self) -> list[BaseMessage]:
        """Like `read`, asynchronously."""
        return self.messages

    def add(self, messages: Sequence[BaseMessage]) -> None:
        """Add messages at the end."""
        if self._keeps:
            self.messages += messages

    async def aadd(self, messages: Sequence[BaseMessage]) -> None:
        """Like `add`, asynchronously."""
        self.add(messages)
