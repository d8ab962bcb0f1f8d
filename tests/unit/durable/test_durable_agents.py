"""Agents of durable models, and agents whose conversation `Conversations` keep."""

import asyncio
from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from langchain_core.messages import AIMessage
from pydantic import BaseModel

from langchain_autotools import Agent, ConfigurationError, new_messages, pending_calls, validate
from langchain_autotools.agent import AgentResult
from tests.support.durable import Life, asks, counting, double, doubling


class Number(BaseModel):
    """A number."""

    value: int


async def ask(one: Agent, way: str, *args: Any, **kwargs: Any) -> AgentResult:
    """Ask in one of the four ways."""
    if not way.startswith("a"):
        return await asyncio.to_thread(_ask, one, way, *args, **kwargs)
    if way == "arun":
        return await one.arun(*args, **kwargs)
    chunks = one.arun_stream(*args, **kwargs)
    assert [message async for chunk in chunks for message in new_messages(chunk)] == list(chunks.result.messages)
    return chunks.result


def _ask(one: Agent, way: str, *args: Any, **kwargs: Any) -> AgentResult:
    if way == "run":
        return one.run(*args, **kwargs)
    stream = one.run_stream(*args, **kwargs)
    assert [message for chunk in stream for message in new_messages(chunk)] == list(stream.result.messages)
    return stream.result


async def test_an_agent_of_a_durable_model_goes_on(life: Life) -> None:
    """Each question is a durable run, which `run_id` names; the agent keeps the conversation."""
    durable = life.model(counting, [double])
    life.begin()
    one = Agent(durable, system_prompt="Count.")
    for number, way in enumerate(("arun", "run_stream")):
        result = await ask(one, way, "double 1 2", run_id=f"question {number}")
        assert [message.type for message in result.messages] == ["human", "ai", "tool", "tool", "ai"]
        assert durable.result(f"question {number}").text == result.text
        assert len(one.history) == 5 * (number + 1)
    assert not validate(one.history)
    with pytest.raises(ConfigurationError, match="give them to that one"):
        Agent(durable, tools=[double])


async def test_approvals_and_output_of_a_durable_model(life: Life) -> None:
    """A run that waits is resumed by the agent; output is read of the run that ends."""
    said = asks(("Number", {"value": 2}))
    durable = life.model([asks(("double", {"number": 1})), said, said], [double], requires_approval=["double"])
    life.begin()
    one = Agent(durable, output=Number)
    result = await ask(one, "arun", "Go")
    assert result.output is None
    result = await ask(one, "run_stream", resume=[call.approve() for call in pending_calls(result)])
    assert result.output == Number(value=2) and not validate(one.history)


async def test_a_conversation_that_is_kept_is_an_agents(life: Life) -> None:
    """The agent reads what workers answered and writes what it answers, and both go on from there."""
    chats = life.conversations(counting, [double])
    life.begin()
    one = Agent(chats.model, conversation=chats["alice"])
    chats.result(chats.send("alice", "Hello"), timeout=20)
    for place, way in enumerate(("run", "arun_stream")):
        result = await ask(one, way, "And now?")
        assert result.text == f"{2 * place + 3}: And now?"
    assert chats.result(chats.send("alice", "Bye"), timeout=20).text == "7: Bye"
    assert one.history == chats.messages("alice") and not validate(one.history)
    assert chats.messages("bob") == []


async def test_calls_of_an_agent_wait_in_its_conversation(life: Life) -> None:
    """They are in it as calls that wait, and the agent goes on with what was decided."""
    chats = life.conversations(doubling, [double], requires_approval=True)
    durable = life.model(doubling, [double], name="agent", requires_approval=True)
    life.begin()
    one = Agent(durable, conversation=chats["alice"])
    await ask(one, "arun", "Go")
    waiting = pending_calls(chats.messages("alice"))
    assert [call.name for call in waiting] == ["double", "double"]
    result = await ask(one, "run", resume=[call.approve() for call in waiting])
    assert result.text == "That is all." and pending_calls(chats.messages("alice")) == []
    assert isinstance(chats.messages("alice")[-1], AIMessage)


def test_an_agent_of_a_durable_model_is_no_tool(life: Life) -> None:
    """It is refused when it is given, with what to do; the agent of the model itself is a tool of a durable one."""
    durable = life.model(counting, [double])
    agent = Agent(durable)
    for give in (lambda: agent.as_tool("helper"), lambda: life.model(counting, {"helper": agent}, name="outer")):
        with pytest.raises(ValueError, match="DurableModel cannot be a tool.*make the outer model durable"):
            give()
    outer = life.model([asks(("helper", {"question": "?"})), "Done."], {"helper": Agent(durable.model)}, name="outer")
    life.begin()
    assert outer.invoke("Go").text == "Done."
