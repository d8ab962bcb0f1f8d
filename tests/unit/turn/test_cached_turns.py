"""Turns from LangChain's cache."""

from typing import Any

from langchain_core.caches import InMemoryCache
from langchain_core.messages import AIMessage

from langchain_autotools import new_messages
from langchain_autotools.testing import ScriptedChatModel


def look(at: str) -> str:
    """Look."""
    return f"seen {at}"


def test_every_turn_of_a_cached_run_comes_from_the_cache_each_time() -> None:
    """The cost that core notes on a reply from the cache is not stored: sent on, it would change the key of the next turn."""
    usage: Any = {"input_tokens": 5, "output_tokens": 1, "total_tokens": 6}
    calls: Any = [{"name": "look", "args": {"at": "Rome"}, "id": "1"}]
    replies = [AIMessage("", tool_calls=calls, usage_metadata=usage), AIMessage("Fine.", usage_metadata=usage)]
    model = ScriptedChatModel(tools=[look], replies=replies, cache=InMemoryCache())
    for _ in range(3):
        messages = new_messages(model.invoke("Hi"))
        assert [message.usage_metadata for message in messages if isinstance(message, AIMessage)] == [usage, usage]
    assert len(model.requests) == 2
