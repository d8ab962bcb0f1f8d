"""The question to an `Agent`: the first of the messages and events of its run."""

import asyncio
from functools import reduce
from operator import add
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage

from langchain_autotools import Agent, ConfigurationError, aevents, events, new_messages, pending_calls
from langchain_autotools.event_types import MessageDone, MessagesAdded, RunEnded, RunStarted
from langchain_autotools.testing import ScriptedChatModel

CALLING = AIMessage("Let me look.", tool_calls=[{"id": "a", "name": "look", "args": {"at": "Rome"}}])


def look(at: str) -> str:
    """Look at a place."""
    return f"{at} is quiet"


def agent(*replies: Any) -> Agent:
    """An agent whose model says these replies."""
    return Agent(ScriptedChatModel(replies=list(replies), tools=[look]))


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("history", [None, [HumanMessage("Hello."), AIMessage("Hello.")]])
def test_the_messages_of_a_stream_begin_with_the_question(asynchronous: bool, history: list[BaseMessage] | None) -> None:
    """What the chunks bring, one after another, are the messages of the result; the run message is that of the model."""
    one = agent(CALLING, "All quiet.")
    stream: Any = (one.arun_stream if asynchronous else one.run_stream)("What is up?", history=history)

    async def read() -> list[AIMessageChunk]:
        return [chunk async for chunk in stream]

    chunks = asyncio.run(read()) if asynchronous else list(stream)
    brought = [message for chunk in chunks for message in new_messages(chunk)]
    assert [message.type for message in brought] == ["human", "ai", "tool", "ai"]
    assert brought == list(stream.result.messages)
    assert brought[0].id and new_messages(chunks[0])[0] == brought[0]
    assert [message.type for message in new_messages(stream.result.message)] == ["ai", "tool", "ai"]


@pytest.mark.parametrize("output_version", ["v0", "v1"])
@pytest.mark.parametrize("tools", [[look], []])
def test_the_chunks_of_a_stream_are_those_of_its_model(output_version: str, tools: list[Any]) -> None:
    """They sum to the run message, whether its content is text or blocks: the question adds nothing to it."""
    stream = Agent(ScriptedChatModel(replies=["All quiet."], tools=tools, output_version=output_version)).run_stream("What is up?")
    whole = reduce(add, stream)
    assert whole.content == stream.result.message.content
    assert len(whole.content) == (1 if output_version == "v1" else len("All quiet."))


@pytest.mark.parametrize("replies, brought", [([ValueError("no")], []), ([CALLING, ValueError("no")], ["human", "ai", "tool"])])
def test_a_stream_that_fails_brings_the_question_once(replies: list[Any], brought: list[str]) -> None:
    """With its first chunk, or with the error; not at all where nothing was completed, as the agent keeps nothing then."""
    one, new = agent(*replies), []
    with pytest.raises(ValueError) as caught:
        for chunk in one.run_stream("What is up?"):
            new += new_messages(chunk)
    new += new_messages(caught.value)
    assert [message.type for message in new] == [message.type for message in one.history] == brought


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("tools", [[look], []])
def test_the_events_of_a_stream_begin_with_the_question(asynchronous: bool, tools: list[Any]) -> None:
    """`MessagesAdded` of the same run comes before its start, as of conversations that are kept."""
    one = Agent(ScriptedChatModel(replies=["All quiet."], tools=tools))

    async def read() -> list[Any]:
        return [event async for event in aevents(one.arun_stream("What is up?"))]

    told = asyncio.run(read()) if asynchronous else list(events(one.run_stream("What is up?")))
    added, started = told[:2]
    assert isinstance(added, MessagesAdded) and isinstance(started, RunStarted) and isinstance(told[-1], RunEnded)
    assert {event.run_id for event in told} == {started.run_id}
    assert [*added.messages, *(event.message for event in told if isinstance(event, MessageDone))] == one.history


def test_a_resumed_stream_has_no_question() -> None:
    """Neither a chunk nor an event of its own comes before those of the run."""
    one = Agent(ScriptedChatModel(replies=[CALLING, "All quiet."], tools=[look], requires_approval=True))
    one.run("What is up?")
    told = list(events(one.run_stream(resume=[call.approve() for call in pending_calls(one.history)])))
    assert isinstance(told[0], RunStarted)


def test_the_error_of_a_run_brings_the_question_with_what_was_completed() -> None:
    """A caller who keeps the conversation himself loses nothing; where nothing was completed there is nothing to keep."""
    one = agent(CALLING, OSError("down"), OSError("down"))
    with pytest.raises(OSError, match="down") as failed:
        one.run("What is up?", history=[])
    assert [message.type for message in new_messages(failed.value)] == ["human", "ai", "tool"]
    with pytest.raises(OSError, match="down") as failed:
        one.run("What is up?", history=[])
    assert new_messages(failed.value) == []


def test_an_error_before_a_run_does_not_bring_the_messages_of_another() -> None:
    """Asked again in an `except` block, a question that is refused adds nothing: the error around it is not its own."""
    one = agent(CALLING, OSError("down"))
    try:
        one.run("What is up?")
    except OSError:
        with pytest.raises(ConfigurationError):
            one.run("What is up?", max_turns=-1)
    assert [message.type for message in one.history] == ["human", "ai", "tool"]
