"""Shapes in which classes of LangChain's packages hand out calls, endings and errors. The packages themselves run in tests/named."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from functools import reduce
from operator import add
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.tools import tool
from pydantic import BaseModel

from langchain_autotools import ToolsAndMessagesMixin, new_messages, stop_reason, with_tools
from langchain_autotools.testing import ScriptedChatModel
from tests.support.whole_classes import ChatHouse, ChatStreams, call_of

pytestmark = pytest.mark.further

WAYS = ("invoke", "stream", "ainvoke", "astream")


def shout(text: str) -> str:
    """Say it louder."""
    return text.upper()


async def run_message(model: Any, way: str, **keywords: Any) -> Any:
    """The run message, in one of the ways."""
    if way == "ainvoke":
        return await model.ainvoke("hi", **keywords)
    if way == "astream":
        return reduce(add, [chunk async for chunk in model.astream("hi", **keywords)])
    return model.invoke("hi", **keywords) if way == "invoke" else reduce(add, model.stream("hi", **keywords))


class SaysTwice(ChatStreams):
    """Names each call in `function_call` too, beside its pieces."""

    def _stream(self, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        for chunk in super()._stream(*args, **kwargs):
            for piece in chunk.message.tool_call_chunks:  # type: ignore[attr-defined]
                chunk.message.additional_kwargs["function_call"] = {"name": "shout", "arguments": piece["args"]}
            yield chunk


class TheirCall(BaseModel):
    """A call as a vendor's client has it."""

    id: str
    type: str
    function: dict[str, str]


class GivesObjects(ChatStreams):
    """Leaves its client's objects in the additional keywords."""

    def _reply(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> AIMessage:
        reply = super()._reply(messages, kwargs)
        calls = [
            TheirCall(id="call_1", type="function", function={"name": "shout", "arguments": '{"text": "x"}'}) for _ in reply.tool_calls
        ]
        return reply.model_copy(update={"additional_kwargs": {"tool_calls": calls}} if calls else {})


class ReadsOldKeywords(ChatStreams):
    """Sends the calls of additional keywords alone."""

    def _reply(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> AIMessage:
        for message in messages:
            listed = message.additional_kwargs.get("tool_calls", [])
            assert [call["id"] for call in listed] == [call["id"] for call in getattr(message, "tool_calls", ())]
            assert all(json.loads(call["function"]["arguments"]) == {"text": "x"} for call in listed)
        return super()._reply(messages, kwargs)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("cls", [SaysTwice, GivesObjects, ReadsOldKeywords])
async def test_a_call_runs_once_in_whatever_places_it_stands(cls: type[ChatHouse], way: str) -> None:
    """In `function_call` beside its pieces, as an object of a vendor's client; and it is sent in both places of LangChain's."""
    run = await run_message(with_tools(cls(), [shout]), way)
    assert [message.type for message in new_messages(run)] == ["ai", "tool", "ai"]
    assert (new_messages(run)[1].text, run.text.split("\n")[-1]) == ("X", "done X")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("key", ["stopReason", "finishReason", "stop_reason", "finish_reason"])
@pytest.mark.parametrize("reason", ["malformed_tool_use", "malformed_model_output", "max_tokens", "guardrail_intervened"])
async def test_an_ending_blocks_calls_under_whatever_key_it_stands(key: str, reason: str, way: str) -> None:
    """No call of a turn that ended so runs, and a reply without calls says how it ended, also of the class itself."""
    called = AIMessage("look", tool_calls=[call_of()], response_metadata={key: reason})
    run = await run_message(with_tools(ChatStreams(script=(called, AIMessage("sorry"))), [shout]), way)
    assert all("error" in message.text for message in new_messages(run) if message.type == "tool")
    assert stop_reason(AIMessage("lo", response_metadata={key: reason})) in ("incomplete", "length", "refused")


class TheirError(Exception):
    """An error whose status is in the answer as it was parsed."""

    def __init__(self, status: int) -> None:
        super().__init__(str(status))
        self.response = {"Error": {"Code": "Any"}, "ResponseMetadata": {"HTTPStatusCode": status}}


class HTTPClientError(Exception):
    """A lost connection, of a class that knows no other error."""


class Fails(ChatStreams):
    """Whose server does not answer."""

    error: Any = None

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise self.error


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("error", "answered"), [(TheirError(503), True), (TheirError(429), True), (TheirError(400), False), (HTTPClientError("lost"), True)]
)
async def test_failover_reads_a_status_that_was_parsed(error: Exception, answered: bool, way: str) -> None:
    """And knows a lost connection by its class; a wrong request is no failure of the server's."""
    model = with_tools(Fails(error=error), [shout], fallbacks=[ScriptedChatModel(replies=["Yes."])])
    if answered:
        assert (await run_message(model, way)).text == "Yes."
    else:
        with pytest.raises(type(error)):
            await run_message(model, way)


def test_tools_of_one_call_may_be_objects_where_the_class_takes_them() -> None:
    """Beside a choice, without tools of the model's own: they are the class's own affair."""

    class House(ToolsAndMessagesMixin, ChatHouse):
        """Without a stream."""

    model = House(script=(AIMessage("done"),))
    assert asyncio.run(model.ainvoke([HumanMessage("hi")], tools=[tool(shout)], tool_choice="auto")).text == "done"


@pytest.mark.parametrize("way", WAYS)
async def test_the_choice_true_is_any(way: str) -> None:
    """For a class whose own `bind_tools` does not know it."""
    model = with_tools(ChatStreams(), [shout])
    assert (await run_message(model, way, tool_choice=True)).text.split("\n")[-1] == "done X"
    assert [keywords.get("pick") for _, keywords in model.sent] == [{"what": "any"}, None]


def test_a_schema_with_a_title_is_a_tool_of_that_name() -> None:
    """Beside tools that run, in whatever form the class says a choice."""
    schema = {"title": "Weather", "type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    model = with_tools(ChatStreams(script=(AIMessage("", tool_calls=[call_of("Weather", text="fine")]),)), [shout])
    assert model.with_structured_output(schema).invoke("hi") == {"text": "fine"}
    assert model.sent[0][1]["tools"] == [{"toolSpec": {"name": "shout"}}, {"toolSpec": {"name": "Weather"}}]
