"""Wire quirks of single vendors that concern a whole run: read over HTTP, as a user would see them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from langchain_autotools import ChatAnthropic, ChatGoogleGenerativeAI, ChatOpenAI, new_messages, repair, validate
from tests.faults.cases import WIRES
from tests.support.anthropic_server import AnthropicServer
from tests.support.google_server import GoogleServer
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Events, Raw, Turn
from tests.support.vendor_server import VendorServer
from tests.support.vendors import VENDORS, Vendor

QUESTION = "Hi"


def chat_events(*deltas: dict[str, Any], finish: str = "stop") -> list[dict[str, Any]]:
    """A stream of chat completions whose envelope differs from event to event."""
    choices = [[{"index": 0, "delta": delta}] for delta in deltas] + [[{"index": 0, "delta": {}, "finish_reason": finish}]]
    ids = [f"chatcmpl-{number:012}" for number in range(len(choices))]  # as long as vendors': shorter ones are replaced
    return [{"id": ids[number], "model": f"m{number}", "created": number, "choices": one} for number, one in enumerate(choices)]


def test_the_first_id_and_model_of_a_stream_count() -> None:
    """Wire quirk E-15: a server that changes both from event to event has sent one message."""
    with OpenAIServer([Events(chat_events({"content": "a"}, {"content": "b"}))]) as server:
        model = ChatOpenAI(model="any", base_url=server.url, api_key="k", max_retries=0)
        chunks = list(model.stream(QUESTION))
    assert {chunk.id for chunk in chunks} == {"chatcmpl-000000000000"}
    assert "".join(chunk.text for chunk in chunks) == "ab"
    assert [chunk.response_metadata["model_name"] for chunk in chunks if "model_name" in chunk.response_metadata] == ["m0"]


def test_calls_that_are_announced_and_do_not_come_are_none() -> None:
    """Wire quirk T-02: a reply that ends in `tool_calls` and has none is the answer, and is not asked for again."""
    with OpenAIServer([Events(chat_events({"content": "No need."}, finish="tool_calls"))]) as server:
        model = ChatOpenAI(model="any", base_url=server.url, api_key="k", max_retries=0, tools=[count])
        chunks = list(model.stream(QUESTION))
        assert len(server.requests) == 1
    assert "".join(chunk.text for chunk in chunks) == "No need."


def test_a_stream_without_names_of_events_is_read() -> None:
    """Wire quirk C-07: the type that the data says is enough."""
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hello"}}
    events = [
        {"type": "message_start", "message": {"id": "msg_1", "model": "m", "content": [], "usage": {"input_tokens": 1}}},
        *(block, {"type": "content_block_stop", "index": 0}),
        *({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}, {"type": "message_stop"}),
    ]
    with AnthropicServer([Raw([f"data: {json.dumps(event)}\n\n".encode() for event in events])]) as server:
        model = ChatAnthropic(model="any", base_url=server.url, api_key="k", max_retries=0)
        assert "".join(chunk.text for chunk in model.stream(QUESTION)) == "Hello"


def test_counts_in_every_event_are_not_added_up() -> None:
    """Wire quirk G-15: each event's counts are those of the reply so far."""

    def event(text: str, written: int, **more: Any) -> dict[str, Any]:
        content = {"role": "model", "parts": [{"text": text}]}
        counts = {"promptTokenCount": 5, "candidatesTokenCount": written, "totalTokenCount": 5 + written}
        return {"candidates": [{"index": 0, "content": content, **more}], "usageMetadata": counts}

    with GoogleServer([Events([event("a", 1), event("b", 2), event("c", 3, finishReason="STOP")])]) as server:
        model = ChatGoogleGenerativeAI(model="any", base_url=server.url, api_key="key", max_retries=0)
        usages = [chunk.usage_metadata for chunk in model.stream(QUESTION) if chunk.usage_metadata]
    assert [(usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) for usage in usages] == [(5, 3, 8)]


def is_taken(server: Any, model: Any) -> None:
    """A reply that says nothing, and the results of two resumes, are valid, and sent as a strict server takes them."""
    asked = AIMessage("", tool_calls=[{"name": "count", "args": {"to": place, "by": []}, "id": f"call{place:05d}"} for place in (1, 2)])
    results = [ToolMessage(f"to {place}", tool_call_id=f"call{place:05d}", name="count") for place in (2, 1)]
    history = [HumanMessage(QUESTION), AIMessage(""), HumanMessage("Well?"), asked, *results, AIMessage([]), HumanMessage("And?")]
    assert validate(history) == [] and repair(history) == history
    assert model.bind_tools([count]).invoke(history).text == "Fine."
    assert server.rejections == []
    body = json.dumps(server.requests[-1])
    assert 0 < body.index("to 1") < body.index("to 2")


@pytest.mark.parametrize("wire", WIRES)
def test_a_valid_history_is_taken_by_each_wire(wire: str) -> None:
    """Replies that say nothing in it, and results in another order than their calls, too."""
    serve, kind, fields = WIRES[wire]
    with serve([Turn("Fine.")]) as server:
        is_taken(server, kind(model="any", base_url=server.url, max_retries=0, **fields))


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda one: one.name)
def test_a_valid_history_is_taken_by_each_vendor(vendor: Vendor) -> None:
    """Likewise."""
    with VendorServer(vendor, [Turn("Fine.")]) as server:
        is_taken(server, vendor.chat_model(model="any", base_url=server.url, api_key="key", max_retries=0))


@tool
def count(to: int, by: list[int]) -> str:
    """Count."""
    return f"{to!r} {by!r}"


def results(arguments: Sequence[str]) -> list[str]:
    """What calls of `count` with these arguments are answered."""
    with OpenAIServer([Turn(calls=[Call("count", text) for text in arguments]), Turn("ok")]) as server:
        model = ChatOpenAI(model="any", base_url=server.url, api_key="k", max_retries=0, tools=[count])
        return [message.text for message in new_messages(model.invoke(QUESTION)) if message.type == "tool"]


def test_numbers_are_read_as_the_schema_has_them_and_lists_are_not() -> None:
    """Wire quirks B-23, B-24: a whole float and a number in quotes are an integer; a list in quotes is a mistake that the model is told."""
    first, second, third = results(['{"to":3.0,"by":[1]}', '{"to":"3","by":[1]}', '{"to":3,"by":"[1]"}'])
    assert (first, second) == ("3 [1]", "3 [1]")
    assert "by" in third and "list" in third
