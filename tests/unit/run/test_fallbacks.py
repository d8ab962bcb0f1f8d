"""Fallbacks: which failures lead to another model, whose turn it is, what holds on every model, what is refused."""

from __future__ import annotations

import logging
import pickle
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.exceptions import ContextOverflowError, ModelAPIError, ModelAuthenticationError, ModelNotFoundError, ModelRateLimitError
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage

from langchain_autotools import (
    Agent,
    ChatAnthropic,
    ChatOpenAI,
    ConfigurationError,
    FirstToken,
    aevents,
    new_messages,
    stop_reason,
    with_tools,
)
from langchain_autotools.event_types import MessageDone, ModelChanged, TextDelta
from langchain_autotools.run import failover
from tests.laws.ways import WAYS, run
from tests.support.failing import (
    DOWN,
    ONE,
    STREAMS,
    TWO,
    First,
    Second,
    Third,
    answer,
    approved,
    called,
    look,
    marks,
    pair,
)


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """No endpoint cools down before or after a test."""
    failover._cooling.clear()
    yield
    failover._cooling.clear()


# ---------------------------------------------------------------------------------------------- which failures


@pytest.mark.parametrize("error", [ModelRateLimitError("quota"), ModelAuthenticationError("key"), ModelNotFoundError("?"), TimeoutError()])
def test_what_leads_to_another_model(error: Exception) -> None:
    """What is the model's or its server's own, by default."""
    assert pair([error], ["Yes."])[0].invoke("Go.").text == "Yes."


@pytest.mark.parametrize("error", [ContextOverflowError("long"), ValueError("mine"), ConfigurationError("mine")])
def test_what_does_not(error: Exception) -> None:
    """A request that no model could answer better."""
    model, other = pair([error], ["Yes."])
    with pytest.raises(type(error)):
        model.invoke("Go.")
    assert other.requests == []


def test_conditions_are_the_callers() -> None:
    """Classes and functions take the place of the default; a stop reason is added to it."""
    assert pair([ContextOverflowError("long")], ["Yes."], fallback_on=ContextOverflowError)[0].invoke("Go.").text == "Yes."
    with pytest.raises(ModelAPIError):
        pair([DOWN], ["Yes."], fallback_on=[ContextOverflowError])[0].invoke("Go.")
    assert pair([ValueError("x")], ["Yes."], fallback_on=lambda error: "x" in str(error))[0].invoke("Go.").text == "Yes."
    refused = AIMessageChunk("", response_metadata={"finish_reason": "content_filter"})
    for way in WAYS:
        assert stop_reason(answer(way, pair([[refused]], ["Yes."])[0])) == "refused"
        assert answer(way, pair([[refused]], ["Yes."], fallback_on="refused")[0]).text == "Yes."
        assert answer(way, pair([DOWN], ["Yes."], fallback_on="refused")[0]).text == "Yes."
    said = pair([["No, ", refused]], ["Yes."], fallback_on="refused")[0]
    assert stop_reason(answer("stream", said)) == "refused"  # its text has left


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_an_end_of_the_run_leads_to_no_other_model(way: str) -> None:
    """Whatever `fallback_on` says: neither a cancellation, nor a deadline."""
    cancel = threading.Event()

    def end(*_: Any, **__: Any) -> Any:
        cancel.set()
        return DOWN

    model, other = pair([end], ["Yes."], fallback_on=lambda error: True)
    ran = run(way, model, [HumanMessage("Go.")], cancel=cancel)
    assert ran.message is not None and stop_reason(ran.message) == "cancelled" and other.requests == []


def test_a_reader_who_has_left_asks_no_other_model() -> None:
    """Closing the stream ends the run."""
    model, other = pair([["One ", "two ", DOWN]], ["Yes."], fallback_on=lambda error: True)
    stream = model.stream("Go.")
    next(iter(stream))
    stream.close()  # type: ignore[attr-defined]
    assert other.requests == []


# ---------------------------------------------------------------------------------------------- whose turn it is


def test_the_model_that_took_over_stays_after_a_pause() -> None:
    """A resumed run goes on with it, by what its history says; a new question begins with the first."""
    model, other = pair([DOWN, "First again."], [called(), "Done."], requires_approval=True)
    paused = run("stream", model, [HumanMessage("Go.")])
    assert paused.message is not None and stop_reason(paused.message) == "calls_pending"
    ran = model.resume([HumanMessage("Go."), *paused.new], approved(paused.new))
    assert ran.text == "Done." and len(model.requests) == 1 and len(other.requests) == 2
    assert model.invoke([HumanMessage("Go."), *paused.new, *new_messages(ran), HumanMessage("And?")]).text == "First again."


def test_a_model_that_is_gone_is_the_first(caplog: pytest.LogCaptureFixture) -> None:
    """After a deploy without the model that had taken over the first one is asked, with a WARNING."""
    model, _ = pair([DOWN], [called(), "Done."], requires_approval=True)
    paused = run("invoke", model, [HumanMessage("Go.")])
    deployed = First(replies=["First."], fallbacks=[Third(replies=[])], tools=[look])
    with caplog.at_level(logging.WARNING):
        assert deployed.resume([HumanMessage("Go."), *paused.new], approved(paused.new)).text == "First."
    assert any("second/second" in one.message and "not among its models" in one.message for one in caplog.records)


@pytest.mark.further
def test_that_a_model_cools_down_is_logged_only_where_it_does(caplog: pytest.LogCaptureFixture) -> None:
    """A run that begins with its own model says nothing of it."""
    model, _ = pair([DOWN], ["Second.", "Second."], cooldown=60)
    told = []
    for _ in range(2):
        model.invoke("Go.")
        told.append([one.message for one in caplog.records if "cools down" in one.message])
        caplog.clear()
    assert told == [[], [f"{ONE} has failed lately and cools down: {TWO} is asked"]]


def test_a_model_that_failed_cools_down() -> None:
    """In all runs of the process; where all cool down, the first is asked."""
    model, other = pair([DOWN, "First."], ["Second.", "Second.", DOWN, DOWN], cooldown=60)
    assert [model.invoke("Go.").text for _ in range(2)] == ["Second.", "Second."]
    assert len(model.requests) == 1
    again = First(replies=["Another."], fallbacks=[other], tools=[look], cooldown=60)
    with pytest.raises(AssertionError, match="script"):
        again.invoke("Go.") and again.invoke("Go.")  # the second fails, and the first has cooled down for neither
    assert len(again.requests) >= 1


def test_where_all_cool_down_the_first_is_asked() -> None:
    """As if none did: it is asked before the others, in the next run too."""
    other = Second(replies=[DOWN, "Second."])
    model = First(replies=[DOWN, "First.", DOWN], fallbacks=[other], cooldown=60)
    with pytest.raises(ModelAPIError):
        model.invoke("Go.")
    assert model.invoke("Go.").text == "First." and len(other.requests) == 1
    assert model.invoke("Go.").text == "Second."


def test_two_models_of_one_name_are_told_apart() -> None:
    """By their number: the same model in two regions, say."""
    model = First(replies=[DOWN], fallbacks=[First(replies=["There."])])
    assert marks(new_messages(model.invoke("Go."))) == [{"from": ONE, "to": f"{ONE}#2", "after_text": False}]


# ---------------------------------------------------------------------------------------------- entrances, and what is refused


@pytest.mark.parametrize("way", WAYS)
def test_a_model_without_tools_has_failover_too(way: str) -> None:
    """Before text and after it."""
    begun = ["Let me ", DOWN] if way in STREAMS else [DOWN]
    ran = run(way, First(replies=[begun], fallbacks=[Second(replies=["see."])]), [HumanMessage("Go.")])
    assert ran.message is not None and ran.message.text == ("Let me see." if way in STREAMS else "see.")


def test_an_agent_and_a_bound_model_have_failover() -> None:
    """And a model that a tool of another run calls."""
    inner = First(replies=[["Let me ", DOWN]], fallbacks=[Second(replies=["see."])])

    def ask() -> str:
        """Ask."""
        return "".join(one.text for one in inner.stream("Go."))

    model, _ = pair([AIMessage("", tool_calls=[{"name": "ask", "args": {}, "id": "1"}]), ["It ", DOWN]], ["is."], tools=[ask])
    agent = Agent(model)
    text = "".join(one.text for one in agent.run_stream("Go."))
    assert text == "It is." and [one.text for one in agent.history if isinstance(one, ToolMessage)] == ["Let me see."]
    model, _ = pair([DOWN], ["Yes."])
    assert model.bind(max_turns=3).with_config(tags=["x"]).invoke("Go.").text == "Yes."


async def test_events_name_both_models() -> None:
    """`ModelChanged`, before the message that has been cut."""
    model, _ = pair([["Let me ", DOWN]], ["see."])
    told = [one async for one in aevents(model.astream("Go."))]
    place = next(number for number, one in enumerate(told) if isinstance(one, ModelChanged))
    change, done = told[place : place + 2]
    assert isinstance(change, ModelChanged) and isinstance(done, MessageDone)
    assert (change.from_model, change.to_model, change.error, change.after_text, change.turn) == (ONE, TWO, DOWN, True, 1)
    assert change.run_id == done.run_id and done.message.text == "Let me "
    assert [one.message_id for one in told if isinstance(one, TextDelta)] == [
        one.message_id for one in told if isinstance(one, MessageDone)
    ]


def test_models_of_other_packages_take_over() -> None:
    """What `with_tools` makes of one."""
    other = with_tools(FakeListChatModel(responses=["Yes."]), [])
    assert First(replies=[DOWN], fallbacks=[other]).invoke("Go.").text == "Yes."


def test_restrictions_hold_on_every_model() -> None:
    """A tool that may not be called is not, and a choice is written for each model's wire."""
    choice = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "look"}]}

    def erase() -> str:
        """Erase."""
        raise AssertionError

    erasing = AIMessage("", tool_calls=[{"name": "erase", "args": {}, "id": "1"}])
    model, other = pair([DOWN], [erasing, "Done."], tools=[look, erase])
    ran = run("invoke", model, [HumanMessage("Go.")], tool_choice=choice)
    assert [one.status for one in ran.new if isinstance(one, ToolMessage)] == ["error"]
    assert other.requests[0].tool_choice == choice


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"fallbacks": [FakeListChatModel(responses=[])]}, "with_tools"),
        ({"fallbacks": [Second(tools=[look])]}, "tools of its own"),
        ({"fallbacks": [Second(max_turns=2)]}, "max_turns"),
        ({"fallbacks": [Second(fallbacks=[Third()])]}, "fallbacks"),
        ({"fallbacks": [Second().bind(stop=["x"])]}, "BoundChatModel"),
        ({"fallbacks": [Second()], "fallback_on": 3}, "fallback_on"),
        ({"fallbacks": [Second()], "fallback_on": "complete"}, "fallback_on"),
        ({"fallbacks": [Second()], "fallback_attempts": 0}, "fallback_attempts"),
        ({"fallbacks": [Second()], "cooldown": 0}, "cooldown"),
        ({"fallbacks": [Second()], "after_text": "stop"}, "after_text"),
    ],
)
def test_what_cannot_work_is_refused_by_name(fields: dict[str, Any], says: str) -> None:
    """Where the model is made."""
    with pytest.raises((ConfigurationError, ValueError), match=says):
        First(replies=[], tools=[look], **fields)


def test_what_another_vendor_cannot_take_is_refused_by_name() -> None:
    """A tool of the vendor's own where the model is made; a keyword of the vendor's at the call, before any request."""
    other = ChatAnthropic(model="two", api_key="k")
    with pytest.raises(ConfigurationError, match="web_search"):
        ChatOpenAI(model="one", api_key="k", tools=[{"type": "web_search"}], fallbacks=[other])
    model = ChatOpenAI(model="one", api_key="k", tools=[look], fallbacks=[other])
    with pytest.raises(ConfigurationError, match="service_tier"):
        model.invoke("Go.", service_tier="flex")
    with pytest.raises(ConfigurationError, match="seed is a keyword for openai/one, which the fallback anthropic/two cannot take"):
        model.invoke("Go.", seed=3)
    with pytest.raises(ConfigurationError, match="fallbacks"):
        model.invoke("Go.", fallbacks=[])
    with pytest.raises(ConfigurationError, match="FirstToken"):
        FirstToken(0)


def test_models_travel_without_their_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pickle and a repr hold the fallbacks, and no key of theirs."""
    monkeypatch.setenv("OPENAI_API_KEY", "from the environment")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "from the environment")
    model = ChatOpenAI(model="one", api_key="secret-1", fallbacks=[ChatAnthropic(model="two", api_key="secret-2")], cooldown=5)
    assert "secret" not in repr(model) and "ChatAnthropic" in repr(model)
    data = pickle.dumps(model)
    assert b"secret-" not in data
    other = pickle.loads(data)
    assert other.fallbacks[0].model == "two" and other.cooldown == 5
