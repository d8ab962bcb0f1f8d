"""The messages of an agent's conversation, which one question at a time may add to."""

import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from langchain_core.messages import BaseMessage

from ..errors import ConfigurationError

if TYPE_CHECKING:
    from langchain_core.chat_history import BaseChatMessageHistory


class Memory(Protocol):
    """The interface of storage for a conversation's messages."""

    @property
    def is_local(self) -> bool:
        """Whether the messages are in this process, so that access never blocks."""

    def read(self) -> list[BaseMessage]:
        """Return the messages so far."""

    async def aread(self) -> list[BaseMessage]:
        """Like `read`, asynchronously."""

    def add(self, messages: Sequence[BaseMessage]) -> None:
        """Append messages."""

    async def aadd(self, messages: Sequence[BaseMessage]) -> None:
        """Like `add`, asynchronously."""


class OwnMemory:
    """A conversation in a list of messages.

    Args:
        messages: The messages so far. They are copied.
        keeps: Whether messages are added to it.
    """

    is_local = True

    def __init__(self, messages: Iterable[BaseMessage], *, keeps: bool = True) -> None:
        self.messages = list(messages)
        self._keeps = keeps

    def read(self) -> list[BaseMessage]:
        """Return the messages so far."""
        return self.messages

    async def aread(self) -> list[BaseMessage]:
        """Return the messages so far."""
        return self.messages

    def add(self, messages: Sequence[BaseMessage]) -> None:
        """Append messages."""
        if self._keeps:
            self.messages += messages

    async def aadd(self, messages: Sequence[BaseMessage]) -> None:
        """Append messages."""
        self.add(messages)


class KeptMemory:
    """A conversation that is stored elsewhere.

    Args:
        conversation: LangChain's `BaseChatMessageHistory`.

    Raises:
        ConfigurationError: It is none.
    """

    is_local = False

    def __init__(self, conversation: "BaseChatMessageHistory") -> None:
        from langchain_core.chat_history import BaseChatMessageHistory  # here, because it costs every other program its import

        if not isinstance(conversation, BaseChatMessageHistory):
            kind = type(conversation).__name__
            raise ConfigurationError(f"conversation takes a BaseChatMessageHistory, as Conversations(...)['alice'] is one, not {kind}")
        self._conversation = conversation

    def read(self) -> list[BaseMessage]:
        """Return the messages so far."""
        return list(self._conversation.messages)

    async def aread(self) -> list[BaseMessage]:
        """Return the messages so far."""
        return list(await self._conversation.aget_messages())

    def add(self, messages: Sequence[BaseMessage]) -> None:
        """Append messages."""
        self._conversation.add_messages(messages)

    async def aadd(self, messages: Sequence[BaseMessage]) -> None:
        """Append messages."""
        await self._conversation.aadd_messages(messages)


def memory_of(history: Iterable[BaseMessage], conversation: Any) -> OwnMemory | KeptMemory:
    """Return the storage of an agent's conversation.

    Args:
        history: The messages that it begins with.
        conversation: The external storage; None for the agent's own.

    Raises:
        ConfigurationError: There are both, or `conversation` is none.
    """
    if conversation is None:
        return OwnMemory(history)
    if any(True for _ in history):
        raise ConfigurationError("the conversation has its own history: give history=[...] or conversation=, not both")
    return KeptMemory(conversation)


# ---------------------------------------------------------------------------------------------- floor
# The lock of a conversation: one question at a time.


class OpenQuestion(Protocol):
    """The interface of a question that is being answered."""

    def give_way(self) -> None:
        """End the answer for the next question; raise if the answer is in progress."""

    async def agive_way(self) -> None:
        """Like `give_way`, asynchronously."""


class ConversationLock:
    """Admits one question at a time to a conversation. An answer that is no longer read ends for the next question."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holder: OpenQuestion | None = None

    def enter(self, question: OpenQuestion) -> None:
        """Admit a question.

        Raises:
            ConfigurationError: Another one is being answered.
        """
        while (holder := self._entered(question)) is not None:
            holder.give_way()

    async def aenter(self, question: OpenQuestion) -> None:
        """Like `enter`, asynchronously."""
        while (holder := self._entered(question)) is not None:
            await holder.agive_way()

    def _entered(self, question: OpenQuestion) -> OpenQuestion | None:
        """Admit a question if there is no other; else return the other one."""
        with self._lock:
            if self._holder is None:
                self._holder = question
                return None
            return self._holder

    def leave(self, question: OpenQuestion) -> None:
        """Remove a question that has been answered or has failed."""
        with self._lock:
            if self._holder is question:
                self._holder = None


def busy_error() -> ConfigurationError:
    """Return the error for a question during the answer to another one."""
    return ConfigurationError("the agent is answering already: give history=[...] to ask several questions at once")
