"""What a reply has used that an exception cut off: as far as its stream had said it, it counts."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.outputs import ChatGenerationChunk

from langchain_autotools import ConfigurationError, run_usage, stop_reason, with_tools
from langchain_autotools.messages.metadata import cut_reply, is_cut_reply
from tests.failover.vendors import VENDORS, model_of
from tests.laws.ways import run
from tests.support.at_once import with_time_for_it
from tests.support.http_server import Pause
from tests.support.script import Call, Cut, Failure, Turn

TEXT = "Let me look at the first of both places now, and then at the other one."
COUNTS = {"anthropic": 11, "google": 11}
"""The tokens that a stream has said before its end, by vendor: of the input."""


def broken(vendor: str, way: str, byte: int, **fields: Any) -> tuple[list[AIMessage], AIMessage]:
    """The new messages of a run whose first vendor tears the connection down behind a byte, and its run message."""
    whole = Turn("and that is all.")
    with VENDORS[vendor][0](lambda _: Cut(Turn(TEXT), byte)) as down, VENDORS["anthropic"][0](lambda _: whole) as other:
        model = model_of(vendor, down, fallbacks=[model_of("anthropic", other, model="two")], **fields)
        ran = run(way, model, [HumanMessage("Go.")])
    assert ran.error is None and ran.message is not None
    return [one for one in ran.new if isinstance(one, AIMessage)], ran.message


@pytest.mark.parametrize("vendor", list(COUNTS))
@pytest.mark.parametrize("way", ["stream", "astream"])
def test_what_the_stream_had_said_counts(vendor: str, way: str) -> None:
    """In the message, in the usage of the run, by the model's name."""
    (cut, _), message = broken(vendor, way, 1000)
    assert is_cut_reply(cut) and TEXT.startswith(cut.text) and cut.text
    assert cut.usage_metadata is not None and cut.usage_metadata["input_tokens"] == COUNTS[vendor]
    assert cut.response_metadata["model_name"] and cut.response_metadata["finish_reason"] == "incomplete"
    total = run_usage(message)
    assert total is not None and total["input_tokens"] == COUNTS[vendor] + 11


def look(city: str) -> str:
    """Look at a city."""
    return "21"


def test_a_budget_counts_it() -> None:
    """`token_budget`: the 12 tokens of the cut reply and the 18 of the next one are more than 25."""
    called = Turn(calls=[Call("look", {"city": "Oslo"})])
    with VENDORS["anthropic"][0](lambda _: Cut(Turn(TEXT), 1000)) as down, VENDORS["anthropic"][0](lambda _: called) as other:
        fields = {"tools": [look], "fallbacks": [model_of("anthropic", other, model="two")]}
        model = model_of("anthropic", down, token_budget=25, on_limit="return", **fields)
        ran = run("stream", model, [HumanMessage("Go.")])
        assert ran.message is not None and stop_reason(ran.message) == "token_budget" and len(other.exchanges) == 1


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_a_budget_in_money_counts_it(way: str) -> None:
    """`max_cost`: the cut reply, of 12 tokens, and the request to go on would together exceed what the first one alone does not."""
    prices = {name: {"input_mtok": 1000, "output_mtok": 1000} for name in ("one", "two")}
    for limit, asked in (("0.02", 0), ("1", 1)):
        with VENDORS["anthropic"][0](lambda _: Cut(Turn(TEXT), 1000)) as down, VENDORS["anthropic"][0](lambda _: Turn("more.")) as other:
            model = model_of(
                "anthropic", down, model="one", max_tokens=10, fallbacks=[model_of("anthropic", other, model="two", max_tokens=10)]
            )
            ran = run(way, model, [HumanMessage("Go.")], prices=prices, max_cost=Decimal(limit))
            assert ran.message is not None, ran.error
            assert len(ran.new) == asked + 1 and len(other.exchanges) == asked
            assert stop_reason(ran.message) == ("complete" if asked else "max_cost")


@pytest.mark.parametrize("way", ["invoke", "astream"])
def test_the_price_of_the_model_that_has_taken_over_counts(way: str) -> None:
    """`max_cost`: its reply and its next request, at its own price, are more than the limit; at the first model's they are nothing."""
    prices = {name: {"input_mtok": price, "output_mtok": price} for name, price in (("one", 1), ("two", 1000))}
    called = Turn(calls=[Call("look", {"city": "Oslo"})])
    for limit, asked in (("0.03", 1), ("1", 2)):
        with VENDORS["openai"][0](lambda _: Failure(500)) as down, VENDORS["anthropic"][0]([called, Turn("21.")]) as other:
            fallback = model_of("anthropic", other, model="two", max_tokens=10)
            model = model_of("openai", down, model="one", tools=[look], fallbacks=[fallback])
            ran = run(way, model, [HumanMessage("Go.")], prices=prices, max_cost=Decimal(limit))
            assert ran.message is not None, ran.error
            assert stop_reason(ran.message) == ("max_cost" if asked == 1 else "complete") and len(other.exchanges) == asked


@pytest.mark.parametrize("way", ["invoke", "astream"])
def test_a_fallback_without_a_price_is_refused_when_the_run_begins(way: str) -> None:
    """By its name, before any request: not after a reply that nobody can count."""
    prices = {"one": {"input_mtok": 1, "output_mtok": 1}}
    with VENDORS["openai"][0]([Turn("Never.")]) as server, VENDORS["anthropic"][0]([Turn("Never.")]) as other:
        model = model_of("openai", server, model="one", fallbacks=[model_of("anthropic", other, model="two")])
        ran = run(way, model, [HumanMessage("Go.")], prices=prices, max_cost=1)
        assert isinstance(ran.error, ConfigurationError) and "'two'" in str(ran.error)
        assert server.exchanges == other.exchanges == []


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_without_fallbacks_the_error_holds_no_content(way: str) -> None:
    """What is attached for those who count is usage and metadata alone."""
    with VENDORS["anthropic"][0](lambda _: Cut(Turn(TEXT), 1000)) as down:
        ran = run(way, model_of("anthropic", down), [HumanMessage("Go.")])
    assert ran.error is not None and (known := cut_reply(ran.error)) is not None
    assert known.usage_metadata is not None and known.content == "" and not known.tool_calls


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_a_reply_that_is_discarded_counts_too(way: str) -> None:
    """It had begun, and was paid for, though no text of it had come."""
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2048}
    thought = Turn(TEXT, reasoning="I think about it for a while, and then for another while.")
    with VENDORS["anthropic"][0](lambda _: Cut(thought, 700)) as down, VENDORS["anthropic"][0](lambda _: Turn("Done.")) as other:
        model = model_of("anthropic", down, fallbacks=[model_of("anthropic", other, model="two")], **thinking)
        ran = run(way, model, [HumanMessage("Go.")])
    assert ran.message is not None and [one.text for one in ran.new] == ["Done."]
    total = run_usage(ran.message)
    assert total is not None and total["input_tokens"] == 22


@pytest.mark.parametrize(("way", "tools"), [("stream", [look]), ("astream", [look]), ("stream", []), ("astream", [])])
def test_what_a_deadline_has_cut_counts_too(way: str, tools: list[Any]) -> None:
    """As far as the stream had said it, in a run with tools and in a single reply."""
    vendor = "google" if len(tools) == (way == "stream") else "anthropic"
    slow = Turn(TEXT, holds={6: Pause(60)})

    def counts(seconds: float) -> None:
        with VENDORS[vendor][0](lambda _: slow) as server:
            ran = run(way, model_of(vendor, server, deadline=seconds, tools=tools), [HumanMessage("Go.")])
        assert ran.error is None and ran.message is not None and ran.message.text and TEXT.startswith(ran.message.text)
        assert stop_reason(ran.message) == "deadline"
        total = run_usage(ran.message)
        assert total is not None and total["input_tokens"] == COUNTS[vendor]
        assert [one.response_metadata.get("model_name") for one in ran.new] == [f"model-{vendor}"]

    with_time_for_it(counts, 0.3, 1, 6)


class OfLangChain(GenericFakeChatModel):
    """A chat model of another package, whose stream says first what it has read, and breaks off in its text."""

    def _stream(self, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        read = {"input_tokens": 7, "output_tokens": 1, "total_tokens": 8}
        yield ChatGenerationChunk(message=AIMessageChunk("", usage_metadata=read, response_metadata={"model_name": "theirs"}))  # type: ignore[arg-type]
        yield ChatGenerationChunk(message=AIMessageChunk("Let me "))
        raise ConnectionError("gone")


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_what_a_model_of_another_package_had_said_counts(way: str) -> None:
    """As of the package's own: in the message, in the usage of the run."""
    with VENDORS["anthropic"][0](lambda _: Turn("see.")) as other:
        model = with_tools(OfLangChain(messages=iter(())), [], fallbacks=[model_of("anthropic", other)])
        ran = run(way, model, [HumanMessage("Go.")])
    assert ran.message is not None, ran.error
    (cut, _) = [one for one in ran.new if isinstance(one, AIMessage)]
    assert is_cut_reply(cut) and cut.text == "Let me " and cut.response_metadata["model_name"] == "theirs"
    total = run_usage(ran.message)
    assert total is not None and total["input_tokens"] == 7 + 11
