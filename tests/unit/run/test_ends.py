"""Runs that end in another way than with an answer, and runs that are told as events: what is handed out of them."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage

from langchain_autotools import ToolsAndMessagesMixin, new_messages
from langchain_autotools.testing import ScriptedChatModel

ASKED = AIMessage("Let me look.", tool_calls=[{"name": "look", "args": {}, "id": "call_1"}])


def look() -> str:
    """Look."""
    return "warm"


class Slow(ToolsAndMessagesMixin):
    """Says words, and takes its time for each."""

    @property
    def _llm_type(self) -> str:
        return "slow"

    def raw_stream(self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> Iterator[AIMessageChunk]:
        """Three words."""
        for word in ("one ", "two ", "three"):
            yield AIMessageChunk(word)
            time.sleep(0.3)


def _fails_after_looking(messages: list[BaseMessage], **kwargs: Any) -> AIMessage:
    if any(message.type == "tool" for message in messages):
        raise ValueError("no more")
    return ASKED


def test_an_error_brings_what_no_chunk_has() -> None:
    """All that had completed where nothing was streamed; nothing where chunks had brought it."""
    model = ScriptedChatModel(tools=[look], replies=_fails_after_looking)
    with pytest.raises(ValueError, match="no more") as failed:
        model.invoke("?")
    assert [message.type for message in new_messages(failed.value)] == ["ai", "tool"]
    brought = []
    with pytest.raises(ValueError, match="no more") as failed:
        for chunk in model.stream("?"):
            brought += new_messages(chunk)
    assert [message.type for message in brought] == ["ai", "tool"]
    assert new_messages(failed.value) == []


def test_the_deadline_keeps_what_was_said() -> None:
    """The text of the turn that it cut is the run's, and its last message."""
    chunks = list(Slow(tools=[look]).stream("?", deadline=0.1))
    assert chunks[-1].response_metadata["autotools"]["stop_reason"] == "deadline"
    said = "".join(chunk.text for chunk in chunks)
    assert said in ("one ", "one two ") and [new.text for chunk in chunks for new in new_messages(chunk)] == [said]


def test_the_events_of_a_run_end_in_its_message() -> None:
    """With the messages that it brings."""
    message = (
        ScriptedChatModel(tools=[look], replies=[ASKED, AIMessage("Warm.", response_metadata={"model_name": "m"})])
        .stream_events("?", version="v3")
        .output
    )
    assert message.text == "Let me look.\nWarm."
    assert message.response_metadata["model_name"] == "m"
    assert [new.type for new in new_messages(message)] == ["ai", "tool", "ai"]
