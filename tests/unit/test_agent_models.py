"""Agents of bound models, with structured output, and with conversations that are kept elsewhere."""

import asyncio
import pickle
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.exceptions import OutputParserException
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableBinding
from pydantic import BaseModel

from langchain_autotools import Agent, ConfigurationError, ModelRefusalError, new_messages, pending_calls, validate
from langchain_autotools.agent import AgentResult
from langchain_autotools.testing import ScriptedChatModel
from tests.laws.stories import Script
from tests.laws.ways import chat, serving
from tests.support.script import Call, Turn

CALLING = AIMessage("Let me look.", tool_calls=[{"id": "a", "name": "look", "args": {"at": "Rome"}}])


class Kept(BaseChatMessageHistory):
    """A store of LangChain's kind."""

    def __init__(self) -> None:
        self.messages = []

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Keep them."""
        self.messages = [*self.messages, *messages]

    def clear(self) -> None:
        """Forget all."""
        self.messages = []


class City(BaseModel):
    """A city."""

    name: str
    degrees: int


ROME = City(name="Rome", degrees=24)
AS_CALL = AIMessage("", tool_calls=[{"id": "b", "name": "City", "args": {"name": "Rome", "degrees": 24}}])


def look(at: str) -> str:
    """Look at a place."""
    return f"{at} is quiet"


def book(at: str) -> str:
    """Book a room."""
    return f"booked in {at}"


def model(*replies: Any, **fields: Any) -> ScriptedChatModel:
    """A model that says these replies."""
    return ScriptedChatModel(**{"replies": list(replies), "tools": [look], **fields})


def ask(one: Agent, way: str, *args: Any, **kwargs: Any) -> AgentResult:
    """Ask in one of the four ways."""

    async def read() -> AgentResult:
        if way == "arun":
            return await one.arun(*args, **kwargs)
        chunks = one.arun_stream(*args, **kwargs)
        brought = [message async for chunk in chunks for message in new_messages(chunk)]
        assert brought == list(chunks.result.messages)
        return chunks.result

    if way == "run":
        return one.run(*args, **kwargs)
    if way != "run_stream":
        return asyncio.run(read())
    stream = one.run_stream(*args, **kwargs)
    assert [message for chunk in stream for message in new_messages(chunk)] == list(stream.result.messages)
    return stream.result


WAYS = pytest.mark.parametrize("way", ["run", "arun", "run_stream", "arun_stream"])


# ---------------------------------------------------------------------------------------------- bound models


@WAYS
def test_what_is_bound_holds_in_every_request(way: str) -> None:
    """Keywords, configuration and declared tools of the binding; calls of declared tools are left to the caller."""
    scripted = model(CALLING, AIMessage("", tool_calls=[{"id": "c", "name": "book", "args": {"at": "Rome"}}]), "Done.")
    one = Agent(scripted.bind(temperature=0.5).bind_tools([book]).with_config(tags=["mine"]))
    result = ask(one, way, "Book a room.")
    assert [call.name for call in pending_calls(result)] == ["book"]
    assert {"look", "book"} == set(scripted.requests[0].tool_names)
    assert ask(one, way, resume=[call.respond("booked") for call in pending_calls(result)]).text == "Done."
    assert not validate(one.history)


@WAYS
def test_keywords_of_a_binding_reach_the_model(way: str) -> None:
    """Run settings among them; those of the question go before."""
    scripted = model(*[CALLING] * 3, "Enough.")
    one = Agent(scripted.bind(temperature=0.5, max_turns=1, on_limit="return"))
    assert ask(one, way, "Look.").stop_reason == "max_turns"
    assert scripted.requests[0].kwargs["temperature"] == 0.5
    assert ask(one, way, "Look.", max_turns=5).stop_reason == "complete"


def test_a_binding_made_by_langchain_is_taken_as_one_of_ours() -> None:
    """Also with other tools, and with approvals that are resumed."""
    scripted = model(CALLING, "All quiet.", tools=[])
    one = Agent(RunnableBinding(bound=scripted, kwargs={"requires_approval": True}), tools=[look])
    result = one.run("Look.")
    assert one.run(resume=[call.approve() for call in pending_calls(result)]).text == "All quiet."
    assert not scripted.tools


# ---------------------------------------------------------------------------------------------- structured output


@WAYS
@pytest.mark.parametrize("tools", [[look], []])
def test_output_by_a_call_is_read_and_the_call_answered(way: str, tools: list[Any]) -> None:
    """The call that is the output waits for nobody: the next question goes on from a history without open calls."""
    scripted = model(*[CALLING][: len(tools)], AS_CALL, AS_CALL, tools=tools)
    one = Agent(scripted, output=City)
    result = ask(one, way, "How warm is it?")
    assert (result.output, result.stop_reason, pending_calls(result)) == (ROME, "complete", [])
    assert one.history == list(result.messages) and not validate(one.history)
    assert [message.type for message in result.messages[-2:]] == ["ai", "tool"]
    assert ask(one, way, "And now?").output == ROME
    assert "interrupted" not in " ".join(message.text for message in scripted.requests[-1].messages)


@WAYS
@pytest.mark.parametrize("bound", [False, True])
def test_output_by_json_is_read_from_the_last_message(way: str, bound: bool) -> None:
    """Over HTTP, with tools of the model and keywords of a binding."""
    turns = [Turn("Let me look.", [Call("look", {"at": "Rome"})]), Turn('{"name": "Rome", "degrees": 24}')]
    with serving(Script(turns)) as server:
        given: Any = chat(server, tools=[look])
        one = Agent(given.bind(temperature=0.5) if bound else given, output=City)
        result = ask(one, way, "How warm is it?")
        assert (result.output, result.stop_reason) == (ROME, "complete")
        assert result.text == '{"name": "Rome", "degrees": 24}'
        for exchange in server.exchanges:
            assert exchange.json["response_format"]["type"] == "json_schema"
            assert exchange.json.get("temperature") == (0.5 if bound else None)


@WAYS
@pytest.mark.parametrize(
    ("turn", "error", "says"),
    [
        (Turn("Who knows?"), OutputParserException, "not one JSON document"),
        (Turn('{"name": "Rome"}'), OutputParserException, "degrees"),
        (Turn('{"name": "Ro', finish="length"), OutputParserException, "token limit"),
        (Turn(refusal="I will not."), ModelRefusalError, "I will not"),
    ],
)
def test_what_is_no_output_is_an_error_that_loses_nothing(way: str, turn: Turn, error: Any, says: str) -> None:
    """The conversation keeps the answer; what `run` raises brings it, what a stream raises has been delivered."""
    with serving(Script([turn])) as server:
        one = Agent(chat(server, tools=[look]), output=City)
        with pytest.raises(error, match=says) as failed:
            ask(one, way, "How warm is it?")
    assert [message.type for message in one.history] == ["human", "ai"]
    assert [message.type for message in new_messages(failed.value)] == ([] if "stream" in way else ["human", "ai"])


@WAYS
def test_calls_that_wait_come_before_the_output(way: str) -> None:
    """The result has no output yet; the run that is resumed has it."""
    one = Agent(model(CALLING, AS_CALL, requires_approval=["look"]), output=City)
    result = ask(one, way, "How warm is it?")
    assert (result.output, result.stop_reason) == (None, "calls_pending")
    result = ask(one, way, resume=[call.approve() for call in pending_calls(result)])
    assert (result.output, result.stop_reason, pending_calls(one.history)) == (ROME, "complete", [])


def test_a_tool_that_returns_a_result_with_output_gives_the_output() -> None:
    """The agent that called it reads the object, not the text around it."""
    inner = Agent(model(AS_CALL), output=City)

    def city() -> Any:
        """A city."""
        return inner.run("How warm is it?")

    outer = Agent(model(AIMessage("", tool_calls=[{"id": "c", "name": "city", "args": {}}]), "Warm.", tools=[city]))
    outer.run("Is it warm?")
    assert outer.history[2].text == ROME.model_dump_json().replace(":", ": ").replace(",", ", ")


def test_arguments_that_cannot_work_are_refused() -> None:
    """Output and conversation are arguments of the agent, and a conversation has its own history."""
    with pytest.raises(ConfigurationError, match="argument of Agent"):
        Agent(model("Hello.")).run("Hello.", output=City)
    with pytest.raises(ConfigurationError, match="not both"):
        Agent(model(), history=[HumanMessage("Hello.")], conversation=Kept())
    with pytest.raises(ConfigurationError, match="not str"):
        Agent(model(), conversation="alice")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="not RunnableRetry"):
        Agent(model().with_retry())  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="kept elsewhere"):
        Agent(model(), conversation=Kept()).history = []


def test_an_agent_with_output_pickles() -> None:
    """The copy reads output too."""
    one = Agent(model(AS_CALL), output=City)
    copied: Agent = pickle.loads(pickle.dumps(one))
    assert copied.run("How warm is it?").output == ROME and not one.history


# ---------------------------------------------------------------------------------------------- conversations kept elsewhere


class Down(Kept):
    """A store that cannot be written."""

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Fail."""
        raise OSError("down")


@WAYS
def test_a_conversation_that_is_kept_elsewhere_is_read_and_written(way: str) -> None:
    """It is read before each question, and gets what is new once the question is answered."""
    kept = Kept()
    kept.add_messages([HumanMessage("I am Anna."), AIMessage("Hello.")])
    scripted = model(CALLING, "Anna.", "Bye.")
    one = Agent(scripted, system_prompt="Be brief.", conversation=kept)
    result = ask(one, way, "Who am I?")
    assert [message.type for message in scripted.requests[0].messages] == ["system", "human", "ai", "human"]
    assert one.history == kept.messages and kept.messages[2:] == list(result.messages)
    kept.add_messages([HumanMessage("From elsewhere."), AIMessage("Yes.")])
    ask(one, way, "Bye.")
    assert "From elsewhere." in [message.text for message in scripted.requests[-1].messages]
    assert len(kept.messages) == 10 and not validate(kept.messages)


@WAYS
def test_a_store_that_fails_loses_nothing(way: str) -> None:
    """The error brings what was to be stored, and the next question is asked."""
    one = Agent(model(CALLING, "All quiet.", "All quiet."), conversation=Down())
    for expected in (4, 2):
        with pytest.raises(OSError, match="down") as failed:
            ask(one, way, "What is up?")
        assert len(new_messages(failed.value)) == expected


async def test_a_stream_that_is_left_is_stored_before_the_next_question() -> None:
    """Also where its end is still being written when the next question comes."""
    kept = Kept()
    one = Agent(model(CALLING, "Not so quick.", "All quiet."), conversation=kept)
    async for chunk in one.arun_stream("First?"):
        if any(message.type == "tool" for message in new_messages(chunk)):
            break
    await one.arun("Second?")
    assert [message.type for message in kept.messages] == ["human", "ai", "tool", "human", "ai"]
