"""`max_cost`: no request is made that would exceed it; it acts as `return`; what has no price ends the run, by name."""

import asyncio
import logging
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from langchain_autotools import (
    Agent,
    ChatAnthropic,
    ChatOpenAI,
    ConfigurationError,
    LimitReachedError,
    aevents,
    events,
    new_messages,
    pending_calls,
    run_cost,
    stop_reason,
)
from langchain_autotools.testing import ScriptedChatModel
from tests.support.anthropic_server import AnthropicServer
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Turn

PRICES = {"m": {"input_mtok": 10, "output_mtok": 10}}
EACH = Decimal("0.0011")  # a turn of 110 tokens


def look(number: int) -> str:
    """Look."""
    return "fine"


class Model(ScriptedChatModel):
    """A model that has a name, as those of vendors do."""

    model: str = "m"


def asks(number: int, model: str = "m", **metadata: Any) -> AIMessage:
    """A turn that calls the tool."""
    call = {"name": "look", "args": {"number": number}, "id": f"call {number}"}
    usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
    about = {"model_provider": "own", "model_name": model, **metadata}
    return AIMessage("", tool_calls=[call], usage_metadata=usage, response_metadata=about)


def endless(messages: Sequence[BaseMessage], **_: Any) -> AIMessage:
    """The next call."""
    return asks(len(messages))


def model(**settings: Any) -> Model:
    """A model whose run would go on for ever."""
    return Model(**{"tools": [look], "replies": endless, "prices": PRICES, **settings})


async def gather(chunks: Any) -> Any:
    """The sum of the chunks."""
    parts = [chunk async for chunk in chunks]
    return sum(parts[1:], parts[0])


def streamed(made: Model, **keywords: Any) -> Any:
    """The sum of the chunks of a stream."""
    first, *rest = made.stream("Hi", **keywords)
    return sum(rest, first)


async def through_events(made: Model, limit: Any) -> str:
    """The stop reason that the events of an asynchronous run end with."""
    told = [event async for event in aevents(made.astream("Hi", max_cost=limit))]
    return told[-1].stop_reason  # type: ignore[union-attr]


WAYS: dict[str, Any] = {
    "invoke": lambda made, limit: stop_reason(made.invoke("Hi", max_cost=limit)),
    "stream": lambda made, limit: stop_reason(streamed(made, max_cost=limit)),
    "ainvoke": lambda made, limit: stop_reason(asyncio.run(made.ainvoke("Hi", max_cost=limit))),
    "astream": lambda made, limit: stop_reason(asyncio.run(gather(made.astream("Hi", max_cost=limit)))),
    "bound": lambda made, limit: stop_reason(made.bind(max_cost=limit).invoke("Hi")),
    "field": lambda made, limit: stop_reason(made.model_copy(update={"max_cost": limit}).invoke("Hi")),
    "Agent": lambda made, limit: Agent(made).run("Hi", max_cost=limit).stop_reason,
    "events": lambda made, limit: list(events(made.stream("Hi", max_cost=limit)))[-1].stop_reason,  # type: ignore[union-attr]
    "aevents": lambda made, limit: asyncio.run(through_events(made, limit)),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_run_ends_before_the_request_that_would_exceed_it(way: str) -> None:
    """Two turns cost 0.0022; the third request would cost at least 0.0011 more."""
    made = model()
    assert WAYS[way](made, 0.0033) == "max_cost"
    assert len(made.requests) == 2


@pytest.mark.parametrize("limit", [Decimal("0.0036"), 0.0036])
def test_what_a_run_costs_stays_within_it(limit: Any) -> None:
    """Every call has its result, and no last answer is bought."""
    made = model(on_limit="answer")
    run = made.invoke("Hi", max_cost=limit)
    said = new_messages(run)
    assert [type(one) for one in said] == [AIMessage, ToolMessage] * 3
    assert run_cost(run, prices=PRICES).total == 3 * EACH <= Decimal(str(limit))


def test_it_is_an_error_where_the_caller_wants_one() -> None:
    """With what the run had."""
    with pytest.raises(LimitReachedError) as raised:
        model(on_limit="raise").invoke("Hi", max_cost=0.002)
    assert (raised.value.stop_reason, len(new_messages(raised.value))) == ("max_cost", 2)


def test_the_first_request_is_checked_too() -> None:
    """A long question is not asked; what it costs is estimated, its tools included."""
    made = model()
    run = made.invoke("Hi " * 10_000, max_cost=0.01)
    assert (stop_reason(run), made.requests, new_messages(run)) == ("max_cost", [], [])
    assert stop_reason(model(replies=["Done."]).invoke("Hi", max_cost=0.01)) == "complete"


@pytest.mark.parametrize("way", WAYS)
def test_the_one_request_of_a_model_without_tools_is_checked(way: str) -> None:
    """It costs money like any other."""
    made = model(tools=[], replies=["Hi."])
    assert WAYS[way](made, 1e-9) == "max_cost" and made.requests == []
    assert WAYS[way](made, 1) == "complete"


def test_the_last_answer_at_another_limit_is_checked_too() -> None:
    """It is a request like the others."""
    made = model(max_turns=2)
    assert stop_reason(made.invoke("Hi", max_cost=0.0025)) == "max_cost"
    assert len(made.requests) == 2


def test_what_the_caller_brings_costs_nothing() -> None:
    """Only what the run itself has spent counts."""
    history = [one for number in range(10) for one in (asks(number), ToolMessage("fine", tool_call_id=f"call {number}"))]
    made = model(replies=["Done."])
    assert stop_reason(made.invoke([*history, ("user", "Hi")], max_cost=0.005)) == "complete"


def test_the_longest_reply_counts_where_the_request_bounds_it() -> None:
    """With `max_tokens` a run never costs more than its limit; without, by one reply at most."""
    with OpenAIServer([Turn("Hi.", usage=(10, 10))] * 2) as server:
        made = ChatOpenAI(model="m", api_key="key", base_url=server.url, tools=[look], prices=PRICES, max_cost=0.01)
        assert stop_reason(made.invoke("Hi", max_tokens=2_000)) == "max_cost"
        assert server.exchanges == []
        assert stop_reason(made.invoke("Hi", max_tokens=500)) == "complete"
        assert stop_reason(made.invoke("Hi")) == "complete"


@pytest.mark.parametrize(("kind", "server_kind"), [(ChatOpenAI, OpenAIServer), (ChatAnthropic, AnthropicServer)])
@pytest.mark.parametrize("stream", [False, True])
def test_over_a_vendor_s_wire(kind: Any, server_kind: Any, stream: bool) -> None:
    """Two requests of 1,100 tokens each fit into the limit, a third does not."""
    turns = [Turn("", [Call("look", {"number": number})], usage=(1000, 100)) for number in range(3)]
    with server_kind(turns) as server:
        prices = {name: {"input_mtok": 1, "output_mtok": 1, "cache_read_mtok": 1} for name in ("m", "claude-sonnet-4-5", "gpt-5")}
        made = kind(model="m", api_key="key", base_url=server.url, tools=[look], prices=prices, max_cost="0.0034", max_tokens=100)
        made = made.model_copy(update={"stream_usage": True}) if kind is ChatOpenAI else made
        run = streamed(made) if stream else made.invoke("Hi")
        assert (stop_reason(run), len(server.exchanges), server.rejections) == ("max_cost", 2, [])


@pytest.mark.parametrize(
    ("reply", "named"),
    [
        (asks(1, "other"), "the model 'other'"),
        (asks(1, service_tier="flex"), "service_tier 'flex'"),
        (asks(1).model_copy(update={"usage_metadata": None}), "a reply without usage"),
    ],
)
def test_a_reply_without_a_price_ends_the_run(reply: AIMessage, named: str, caplog: pytest.LogCaptureFixture) -> None:
    """What was spent is not known any more; its calls are answered, and the log names what has no price."""
    made = model(replies=[reply, "Never asked."])
    with caplog.at_level(logging.WARNING):
        run = made.invoke("Hi", max_cost=100)
    assert (stop_reason(run), len(made.requests), len(new_messages(run))) == ("max_cost", 1, 2)
    assert named in caplog.text and named in run_cost(run, prices=PRICES).unpriced


@pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke", "astream"])
def test_a_model_without_a_price_is_refused_when_the_run_begins(way: str) -> None:
    """Before any request, by its name."""
    pytest.importorskip("genai_prices", reason="needs the extra `cost`")
    made = model(prices=None, model="nobody-s")
    with pytest.raises(ConfigurationError, match="none of the model 'nobody-s'"):
        WAYS[way](made, 1)
    assert made.requests == []


def test_a_known_model_needs_no_prices() -> None:
    """Those of the extra's data hold."""
    pytest.importorskip("genai_prices", reason="needs the extra `cost`")
    with OpenAIServer([Turn("Hi.")]) as server:
        made = ChatOpenAI(model="gpt-5", api_key="key", base_url=server.url, tools=[look], max_cost=1)
        assert stop_reason(made.invoke("Hi")) == "complete"


@pytest.mark.parametrize("limit", [0, -1, True, "1", float("nan"), Decimal("NaN")])
def test_a_limit_that_is_no_amount_is_refused(limit: Any) -> None:
    """By the call; a field takes what pydantic makes of it."""
    with pytest.raises(ConfigurationError, match="max_cost must be greater than 0"):
        model().invoke("Hi", max_cost=limit)


def test_prices_that_nothing_asks_for_are_refused() -> None:
    """At a call without a limit they would have no effect."""
    with pytest.raises(ConfigurationError, match="only with max_cost"):
        model().invoke("Hi", prices=PRICES)


def test_an_approved_run_is_checked_before_its_request() -> None:
    """A resumed run spends its own money."""
    made = model(requires_approval=True)
    waits = made.invoke("Hi", max_cost=1)
    history = [("user", "Hi"), *new_messages(waits)]
    decisions = [call.approve() for call in pending_calls(waits)]
    assert stop_reason(made.resume(history, decisions, max_cost=1e-9)) == "max_cost"
    assert len(made.requests) == 1
