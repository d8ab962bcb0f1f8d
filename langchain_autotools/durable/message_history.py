"""A stored conversation as LangChain's `BaseChatMessageHistory`."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import BaseMessage


class Kept(Protocol):
    """The interface of `Conversations` used here."""

    def messages(self, conversation: str, /) -> list[BaseMessage]:
        """Return the messages of a conversation."""

    async def amessages(self, conversation: str, /) -> list[BaseMessage]:
        """Return the messages of a conversation, asynchronously."""

    def append(self, conversation: str, messages: Sequence[BaseMessage], /, *, owner: str | None, labels: Mapping[str, str] | None) -> Any:
        """Append messages."""

    async def aappend(
        self, conversation: str, messages: Sequence[BaseMessage], /, *, owner: str | None, labels: Mapping[str, str] | None
    ) -> Any:
        """Append messages asynchronously."""

    def delete(self, conversation: str, /) -> int:
        """Delete a conversation."""

    async def adelete(self, conversation: str, /) -> int:
        """Delete a conversation asynchronously."""


class ConversationHistory(BaseChatMessageHistory):
    """Reads a conversation, and appends to it; created by `Conversations.history`.

    Args:
        conversations: The conversations.
        conversation: The id of the conversation.
        owner: Owner of the conversation, as for `Conversations.send`.
        labels: Its labels, as of `Conversations.send`.
    """

    def __init__(
        self, conversations: Kept, conversation: str, *, owner: str | None = None, labels: Mapping[str, str] | None = None
    ) -> None:
        self._conversations = conversations
        self._conversation = conversation
        self._owner = owner
        self._labels = labels

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]  # core declares a field, and says to write a property
        """The messages of the conversation, as from `Conversations.messages`."""
        return self._conversations.messages(self._conversation)

    async def aget_messages(self) -> list[BaseMessage]:
        """Like `messages`, asynchronously."""
        return await self._conversations.amessages(self._conversation)

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Append messages in order of sending."""
        if messages:
            self._conversations.append(self._conversation, messages, owner=self._owner, labels=self._labels)

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Like `add_messages`, asynchronously."""
        if messages:
            await self._conversations.aappend(self._conversation, messages, owner=self._owner, labels=self._labels)

    def clear(self) -> None:
        """Delete the conversation."""
        self._conversations.delete(self._conversation)

    async def aclear(self) -> None:
        """Like `clear`, asynchronously."""
        await self._conversations.adelete(self._conversation)
