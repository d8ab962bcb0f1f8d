"""A kept conversation as LangChain's `BaseChatMessageHistory`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import BaseMessage

if TYPE_CHECKING:
    from .conversations import Conversations


class ConversationHistory(BaseChatMessageHistory):
    """Reads a conversation, and appends to it; made by `Conversations.history`.

    Args:
        conversations: The conversations.
        conversation: The id of the conversation.
    """

    def __init__(self, conversations: "Conversations", conversation: str) -> None:
        self._conversations = conversations
        self._conversation = conversation

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]  # core declares a field, and says to write a property
        """The messages of the conversation, as `Conversations.messages` gives them."""
        return self._conversations.messages(self._conversation)

    async def aget_messages(self) -> list[BaseMessage]:
        """Like `messages`, asynchronously."""
        return await self._conversations.amessages(self._conversation)

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Append messages, in their place among what is sent."""
        if messages:
            self._conversations.append(self._conversation, messages)

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Like `add_messages`, asynchronously."""
        if messages:
            await self._conversations.aappend(self._conversation, messages)

    def clear(self) -> None:
        """Delete the conversation."""
        self._conversations.delete(self._conversation)

    async def aclear(self) -> None:
        """Like `clear`, asynchronously."""
        await self._conversations.adelete(self._conversation)
