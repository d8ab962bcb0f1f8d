"""Failover over real wires: time limits, attempts, thinking, structured output, what is sent to whom."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from pydantic import BaseModel

from langchain_autotools import ChatAnthropic, ChatOpenAI, ConfigurationError, FirstToken
from tests.laws.ways import run
from tests.support.anthropic_server import AnthropicServer
from tests.support.at_once import at_once, with_time_for_it
from tests.support.http_server import Gate, Pause
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Cut, Failure, Turn


def look(city: str) -> str:
    """Look at a city."""
    return "21"


def openai(server: OpenAIServer, **fields: Any) -> ChatOpenAI:
    """A model of a server."""
    return ChatOpenAI(**{"model": "one", "api_key": "key", "base_url": server.url, "retry": {"wait_scale": 0}, **fields})


def anthropic(server: AnthropicServer, **fields: Any) -> ChatAnthropic:
    """A model of a server."""
    return ChatAnthropic(**{"model": "two", "api_key": "other", "base_url": server.url, "prompt_caching": False, **fields})


def test_a_reply_that_does_not_begin_in_time_is_given_up() -> None:
    """`FirstToken`: the silent server's connection ends, and the next model answers."""
    at_once({way: partial(gives_up_what_does_not_begin, way) for way in ("stream", "astream")})


def gives_up_what_does_not_begin(way: str) -> None:
    """A run whose first model says nothing."""
    with OpenAIServer([Turn("First."), Turn("Never.", holds={0: Gate()})]) as silent, OpenAIServer([Turn("Here.")]) as other:
        run(way, openai(silent), [HumanMessage("Go.")])  # what is loaded at the first request takes none of the time
        model = openai(silent, fallbacks=[openai(other)], fallback_on=FirstToken(1))
        ran = run(way, model, [HumanMessage("Go.")])
        assert ran.message is not None and ran.message.text == "Here."
        assert silent.exchanges[1].disconnected.wait(10)


def test_a_call_begins_a_reply_too() -> None:
    """Though nothing of it leaves before the turn ends: the rest of it may take longer."""
    with_time_for_it(lambda seconds: at_once({way: partial(waits_for_a_call, way, seconds) for way in ("stream", "astream")}), 0.6, 2.5)


def waits_for_a_call(way: str, seconds: float) -> None:
    """A run whose first model takes longer for its call than another one for its first token."""
    slow = Turn(calls=[Call("look", {"city": "a city of a long name"})], holds={3: Pause(seconds)})
    with OpenAIServer([slow, Turn("Done.")]) as server, OpenAIServer([]) as other:
        model = openai(server, tools=[look], fallbacks=[openai(other)], fallback_on=FirstToken(0.8 * seconds))
        ran = run(way, model, [HumanMessage("Go.")])
        assert ran.message is not None and ran.message.text == "Done." and other.exchanges == []


@pytest.mark.parametrize("way", ["invoke", "astream"])
def test_a_model_is_tried_once_while_another_one_is_left(way: str) -> None:
    """Or as often as `fallback_attempts` says; the last one has its own retries."""
    for attempts in (1, 2):
        with OpenAIServer([Failure(503)] * 3) as down, OpenAIServer([Failure(503), Failure(503), Turn("Here.")]) as other:
            model = openai(down, fallbacks=[openai(other)], fallback_attempts=attempts)
            ran = run(way, model, [HumanMessage("Go.")])
            assert ran.message is not None and ran.message.text == "Here."
            assert (len(down.exchanges), len(other.exchanges)) == (attempts, 3)


@pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke", "astream"])
def test_text_of_another_wire_follows_a_turn_of_calls_alone(way: str) -> None:
    """The run message has it, whether the first vendor's content is blocks, of which none has left, or text."""
    look_up = Turn(calls=[Call("look", {"city": "Rome"})])
    with AnthropicServer([look_up, Failure(503)]) as down, OpenAIServer([Turn("It is 21.")]) as other:
        ran = run(way, anthropic(down, tools=[look], max_retries=0, fallbacks=[openai(other)]), [HumanMessage("Go.")])
        assert ran.message is not None and ran.message.text == "It is 21." == ran.new[-1].text


@pytest.mark.parametrize("way", ["invoke", "astream"])
def test_thinking_is_off_in_a_tool_loop_of_another_model(way: str) -> None:
    """With `enabled` until the loop is closed: the server refuses a loop that begins without; `adaptive` is sent as it is."""
    for thinking in ({"type": "enabled", "budget_tokens": 1024}, {"type": "adaptive"}):
        calls = [Turn(calls=[Call("look", {"city": str(number)})]) for number in range(2)]
        with OpenAIServer([calls[0], Failure(500)]) as first, AnthropicServer([calls[1], Turn("Done."), Turn("More.")]) as second:
            other = anthropic(second, thinking=thinking, max_tokens=2048)
            ran = run(way, openai(first, tools=[look], fallbacks=[other]), [HumanMessage("Go.")])
            assert ran.message is not None and ran.message.text == "Done." and second.rejections == []
            other.with_tools([look]).invoke([HumanMessage("Go."), *ran.new, HumanMessage("And?")])
            is_on = [request.get("thinking") == thinking for request in second.requests]
            assert is_on == ([False, False, True] if thinking["type"] == "enabled" else [True] * 3)


@pytest.mark.parametrize("way", ["stream", "ainvoke"])
def test_thinking_stays_with_the_model_that_signed_it(way: str) -> None:
    """Another model of the same server, under the same key, gets none of it; nor the first one, in the next run, of the other's."""
    calls = [Turn(calls=[Call("look", {"city": str(number)})], reasoning="Let me think.") for number in range(2)]
    rest = [Turn("Done.", reasoning="Hm."), Turn("More.", reasoning="Hm.")]
    with AnthropicServer([calls[0], Failure(529), calls[1], *rest]) as server:
        fields: dict[str, Any] = {"thinking": {"type": "adaptive"}, "max_retries": 0}
        model = anthropic(server, model="one", tools=[look], fallbacks=[anthropic(server, **fields)], **fields)
        ran = run(way, model, [HumanMessage("Go.")])
        assert ran.message is not None and ran.message.text.endswith("Done."), ran.error
        assert model.invoke([HumanMessage("Go."), *ran.new, HumanMessage("And?")]).text == "More."
        assert server.rejections == [] and [request["model"] for request in server.requests] == ["one", "one", "two", "two", "one"]


class City(BaseModel):
    """A city."""

    name: str


@pytest.mark.parametrize("method", ["function_calling", "json_schema"])
def test_an_output_by_a_schema_is_made_again(method: Any) -> None:
    """By the next model, from its beginning, also where the first one broke off in its middle: two halves are no object."""
    whole = Turn('{"name": "Oslo"}') if method == "json_schema" else Turn(calls=[Call("City", {"name": "Oslo"})])
    wrong = Turn('{"name": "Paris"}') if method == "json_schema" else Turn(calls=[Call("City", {"name": "Paris"})])
    with OpenAIServer([Failure(503), Cut(wrong, 420)]) as down, OpenAIServer([whole] * 2) as other:
        model = openai(down, fallbacks=[openai(other, model="two")]).with_structured_output(City, method=method)
        assert model.invoke("Go.") == City(name="Oslo")
        assert list(model.stream("Go."))[-1] == City(name="Oslo")
        assert other.rejections == [] and len(other.exchanges) == 2


def test_what_is_declared_is_written_for_the_other_wire() -> None:
    """Tools and a choice that were bound in the form of the first model's wire."""
    with OpenAIServer([Failure(500)]) as first, AnthropicServer([Turn(calls=[Call("look", {"city": "Oslo"})])]) as second:
        model = openai(first, fallbacks=[anthropic(second)]).bind_tools([look], tool_choice="look")
        message = model.invoke("Go.")
        assert [call["name"] for call in message.tool_calls] == ["look"] and second.rejections == []
        (request,) = second.requests
        assert request["tool_choice"]["name"] == "look" and request["tools"][0]["input_schema"]["properties"].keys() == {"city"}


def test_headers_of_a_call_go_to_no_other_endpoint() -> None:
    """They may hold a secret of the first one's."""
    with OpenAIServer([Failure(500)]) as first, OpenAIServer([Turn("Here.")]) as second:
        model = openai(first, fallbacks=[openai(second)])
        with pytest.raises(ConfigurationError, match="extra_headers"):
            model.invoke("Go.", extra_headers={"x-secret": "s"})
        assert first.exchanges == second.exchanges == []


def test_a_history_of_both_is_taken_by_each() -> None:
    """The stored parts of a run of two vendors, with calls and results."""
    call = Turn(calls=[Call("look", {"city": "Oslo"})])
    with OpenAIServer([call, Failure(500), Turn("Yes.")]) as first, AnthropicServer([Turn("It is 21."), Turn("Yes.")]) as second:
        model = openai(first, tools=[look], fallbacks=[anthropic(second)])
        ran = run("stream", model, [HumanMessage("Go.")])
        assert [type(one) for one in ran.new] == [AIMessage, ToolMessage, AIMessage]
        for one in (model, anthropic(second, tools=[look])):
            assert one.invoke([HumanMessage("Go."), *ran.new, HumanMessage("Sure?")]).text == "Yes."
        assert first.rejections == second.rejections == []
