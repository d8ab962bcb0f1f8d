"""Replies that the vendor ends before they are complete (CONTINUATION, wire quirk G-17): the run goes on with them by itself."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from langchain_autotools import ChatGoogleGenerativeAI, run_usage
from tests.contract.talk import WAYS, run_in
from tests.support.google_server import GoogleServer
from tests.support.http_server import Exchange
from tests.support.script import Events, Turn
from tests.support.weather import get_temperature

QUESTION = [HumanMessage("Tell me all.")]


def part(text: str, reason: str, token: str | None = None, *more: dict[str, Any]) -> Events:
    """A reply of one text, streamed or whole, and the token that goes on with it."""
    candidate = {"content": {"role": "model", "parts": [{"text": text}, *more]}, "finishReason": reason, "index": 0}
    event = {"candidates": [{**candidate, **({"continuationToken": token} if token else {})}], "modelVersion": "any"}
    event["usageMetadata"] = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    return Events([event], event)


def model(server: GoogleServer, **more: Any) -> ChatGoogleGenerativeAI:
    """A model with a tool."""
    settings = {"model": "any", "base_url": server.url, "api_key": "key", "max_retries": 0, "tools": [get_temperature]}
    return ChatGoogleGenerativeAI(**{**settings, **more})


@pytest.mark.parametrize("way", WAYS)
async def test_a_run_goes_on_with_an_unfinished_reply(way: str) -> None:
    """The same request is made again with the newest token; the parts join without a separator, and history holds them all."""
    script = [part("One, ", "CONTINUATION", "dG9rMQ=="), part("two, ", "CONTINUATION", "dG9rMg=="), part("three.", "STOP"), Turn("Yes.")]
    with GoogleServer(script) as server:
        ran = await run_in(way, model(server), QUESTION)
        assert ran.message.text == "One, two, three."
        assert ran.message.response_metadata["autotools"]["stop_reason"] == "complete"
        assert [message.text for message in ran.new] == ["One, ", "two, ", "three."]
        assert [request.get("continuationToken") for request in server.requests] == [None, "dG9rMQ==", "dG9rMg=="]
        assert all(request["contents"] == server.requests[0]["contents"] for request in server.requests)
        total = run_usage(ran.message)
        assert total is not None and total["output_tokens"] == 15
        await run_in(way, model(server), [*QUESTION, ran.message, HumanMessage("Really?")])
        assert "continuationToken" not in server.requests[3]
        assert server.messages[3][1] == {"role": "model", "parts": [{"text": "One, "}, {"text": "two, "}, {"text": "three."}]}
        assert server.rejections == []


async def test_without_tools_the_caller_goes_on() -> None:
    """A model that runs nothing returns the first part; sent back as the end of the history, the vendor goes on with it."""
    with GoogleServer([part("One, ", "CONTINUATION", "dG9rMQ=="), part("two.", "STOP")]) as server:
        asking = model(server, tools=())
        first = await asking.ainvoke(QUESTION)
        assert first.response_metadata["finish_reason"] == "CONTINUATION"
        assert (await asking.ainvoke([*QUESTION, first])).text == "two."
        assert server.requests[1] == {**server.requests[0], "continuationToken": "dG9rMQ=="}


async def test_a_token_goes_to_nobody_else() -> None:
    """Another model does not know the token: it is sent the text."""
    with GoogleServer([part("One, ", "CONTINUATION", "dG9rMQ=="), part("two.", "STOP")]) as server:
        first = await model(server, tools=()).ainvoke(QUESTION)
        await model(server, tools=(), model="other").ainvoke([*QUESTION, first])
        assert "continuationToken" not in server.requests[1]
        assert server.messages[1][1]["parts"] == [{"text": "One, "}]


async def test_a_reply_that_never_gets_further_ends_the_run() -> None:
    """The same part again and again, with or without a token, is no progress."""
    for token in (None, "dG9r"):
        with GoogleServer(lambda _, token=token: part("One, ", "CONTINUATION", token)) as server:
            ran = await run_in("stream", model(server), QUESTION)
            assert (len(server.exchanges), ran.message.response_metadata["autotools"]["stop_reason"]) == (4, "no_progress")


async def test_calls_of_an_unfinished_reply_do_not_run() -> None:
    """A call in a reply that is to go on is answered as not run, and the model asked again."""
    call = {"functionCall": {"name": "get_temperature", "args": {"city": "Paris"}, "id": "c1"}, "thoughtSignature": "c2ln"}

    def reply(exchange: Exchange) -> Any:
        return part("Look.", "CONTINUATION", "dG9r", call) if exchange.number == 0 else Turn("Then not.")

    with GoogleServer(reply) as server:
        ran = await run_in("invoke", model(server), QUESTION)
        assert [(message.type, getattr(message, "status", "")) for message in ran.new] == [("ai", ""), ("tool", "error"), ("ai", "")]
        assert "continuationToken" not in server.requests[1]
        assert server.rejections == []
