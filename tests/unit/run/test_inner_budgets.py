"""Models and agents that are given as tools: what they use counts in the run around, and is bounded by what that run has left."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_autotools import (
    Agent,
    RetryPolicy,
    ToolPolicy,
    events,
    new_messages,
    pending_calls,
    results_of,
    run_cost,
    run_usage,
    stop_reason,
)
from langchain_autotools.event_types import RunEnded
from langchain_autotools.testing import ScriptedChatModel
from tests.laws.service import through_json
from tests.laws.ways import WAYS, run
from tests.support.at_once import at_once, with_time_for_it

PRICES = {"m": {"input_mtok": 10, "output_mtok": 10}}
QUESTION = HumanMessage("Look.", id="question")
EACH = 1000
"""The tokens of each reply."""


class Named(ScriptedChatModel):
    """A model that has a name, as those of vendors do."""

    model: str = "m"


def said(text: str = "", *calls: tuple[str, dict[str, Any]], model: str = "m") -> AIMessage:
    """A reply of `EACH` tokens, with these calls."""
    usage: Any = {"input_tokens": EACH - 1, "output_tokens": 1, "total_tokens": EACH}
    made: Any = [{"name": name, "args": args, "id": f"call_{number}"} for number, (name, args) in enumerate(calls)]
    about = {"model_provider": "own", "model_name": model}
    return AIMessage(text, tool_calls=made, usage_metadata=usage, response_metadata=about)


def look(number: int = 0) -> str:
    """Look."""
    return f"seen {number}"


def answering(*calls: tuple[str, dict[str, Any]], model: str = "m") -> Any:
    """A reply function: first these calls, then an answer."""

    def reply(messages: Sequence[BaseMessage], **_: Any) -> AIMessage:
        return said("Done.", model=model) if messages[-1].type == "tool" else said("", *calls, model=model)

    return reply


def endless(messages: Sequence[BaseMessage], **_: Any) -> AIMessage:
    """The next call."""
    return said("", ("look", {"number": len(messages)}))


def ask(name: str, times: int = 1) -> Any:
    """A reply function that asks a model or agent so many times at once."""
    return answering(*[(name, {"question": f"{number}?"}) for number in range(times)])


def inner(**fields: Any) -> Named:
    """A model that makes two replies and one call."""
    return Named(**{"name": "inner", "tools": [look], "replies": answering(("look", {})), **fields})


def outer(*tools: Any, **fields: Any) -> Named:
    """A model that asks the inner one."""
    return Named(**{"tools": tools or [inner()], "replies": ask("inner"), "prices": PRICES, **fields})


def tokens(message: Any) -> int:
    """The tokens of a run."""
    usage = run_usage(message)
    assert usage is not None
    return usage["total_tokens"]


def paid(*models: Named) -> int:
    """The tokens of all replies that these models have made."""
    return EACH * sum(len(model.requests) for model in models)


def tree(as_agent: bool = False, **fields: Any) -> tuple[Named, Named, Named]:
    """Three models, each the tool of the next."""
    lowest = inner(name="lowest", **fields)
    middle = inner(tools=[Agent(lowest) if as_agent else lowest], replies=ask("lowest", 2))
    return outer(Agent(middle) if as_agent else middle), middle, lowest


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("as_agent", [False, True])
def test_the_usage_and_the_cost_of_a_run_are_those_of_all_replies_paid_for_in_it(way: str, as_agent: bool) -> None:
    """At any depth; the size of the context is that of the outer model's own last reply."""
    models = tree(as_agent)
    ran = run(way, models[0], [QUESTION])
    assert ran.message is not None and ran.message.usage_metadata is not None
    assert [len(model.requests) for model in models] == [2, 2, 4]
    assert tokens(ran.message) == paid(*models) and ran.message.usage_metadata["total_tokens"] == EACH
    cost = run_cost(ran.message, prices=PRICES)
    assert cost.total == Decimal(paid(*models)) / 100_000 and len(cost.turns) == 8


def test_the_end_of_the_run_has_the_same_usage_in_its_events() -> None:
    """`RunEnded` of the outer run, the last event."""
    models = tree()
    ended = [event for event in events(models[0].stream([QUESTION])) if isinstance(event, RunEnded)]
    assert ended[-1].usage is not None and ended[-1].usage["total_tokens"] == paid(*models)


@pytest.mark.parametrize("way", WAYS)
def test_a_resumed_run_counts_what_it_has_newly_used(way: str) -> None:
    """The runs before and after the decision are paid for once each, at depth three, also where the history was stored."""
    models = tree(requires_approval=True)
    history: list[BaseMessage] = [QUESTION]
    counted, decisions = [], None
    while decisions is None or decisions:
        before = paid(*models)
        ran = run(way, models[0], history, **({} if decisions is None else {"resume": decisions}))
        assert ran.message is not None
        assert tokens(ran.message) == paid(*models) - before
        counted.append(run_cost(ran.message, prices=PRICES).total)
        history = through_json([*history, *ran.new])
        decisions = [call.approve() for call in pending_calls(ran.message)][:1]
    assert stop_reason(ran.message) == "complete" and len(counted) == 3
    assert sum(filter(None, counted)) == Decimal(paid(*models)) / 100_000


def test_the_token_budget_bounds_runs_inside() -> None:
    """The inner run ends where its own replies and those before it have reached the limit; its last answer is one reply more."""
    helper = inner(replies=endless, on_limit="return")
    model = outer(helper, on_limit="return")
    answer = model.invoke([QUESTION], token_budget=3 * EACH + 5)
    assert (stop_reason(answer), len(model.requests), len(helper.requests)) == ("token_budget", 1, 3)
    assert "token_budget" in results_of(answer)[0].text and tokens(answer) == 4 * EACH


def test_the_smaller_limit_holds() -> None:
    """A limit of the inner model's own stays where it is smaller than what is left."""
    helper = inner(replies=endless, on_limit="return", token_budget=EACH, max_tool_calls=1)
    answer = outer(helper).invoke([QUESTION], token_budget=100 * EACH, max_tool_calls=100)
    assert len(helper.requests) == 1 and stop_reason(answer) == "complete"


def test_nothing_begins_inside_when_nothing_is_left() -> None:
    """The model's own reply has used the budget: the call is answered, and no request is made inside, whatever the tool is."""
    for helper in (inner(), Named(name="inner", replies=[said("Hello.")])):
        answer = outer(helper, on_limit="return").invoke([QUESTION], token_budget=EACH)
        assert helper.requests == [] and "token_budget of this run is used up" in results_of(answer)[0].text
        assert stop_reason(answer) == "token_budget"


@pytest.mark.parametrize("way", WAYS)
def test_tool_calls_inside_are_tool_calls_of_the_run(way: str) -> None:
    """At any depth: the calls around take their part of the limit, and what is left bounds the innermost run."""
    done: list[int] = []

    def count(number: int) -> str:
        """Count."""
        done.append(number)
        return "counted"

    def counting(messages: Sequence[BaseMessage], **_: Any) -> AIMessage:
        return said("", ("count", {"number": len(messages)}))

    lowest = inner(name="lowest", tools=[count], replies=counting, on_limit="return")
    middle = inner(tools=[lowest], replies=ask("lowest"), on_limit="return")
    model = outer(middle, replies=lambda messages, **_: said("", ("inner", {"question": f"{len(messages)}?"})), on_limit="return")
    ran = run(way, model, [QUESTION], max_tool_calls=5)
    assert ran.message is not None and stop_reason(ran.message) == "max_tool_calls"
    assert len(done) == 3  # one call asks the middle model, one the lowest


def test_calls_after_a_run_inside_find_less_of_the_limit() -> None:
    """What a run inside did is not done again by the run around: its next call is refused."""
    replies = [said("", ("inner", {"question": "?"})), said("", ("look", {"number": 1})), said("Enough.")]
    model = outer(inner(), look, replies=replies)
    answer = model.invoke([QUESTION], max_tool_calls=2)
    assert stop_reason(answer) == "max_tool_calls" and "limit of tool calls" in results_of(answer)[-1].text


def test_calls_one_after_another_each_get_what_is_left() -> None:
    """With `parallel=False` the second run inside finds what the first one has left; the third call finds nothing."""
    helper = inner(replies=endless, on_limit="return")
    model = outer(helper, replies=ask("inner", 3), on_limit="return", parallel=False)
    answer = model.invoke([QUESTION], token_budget=4 * EACH)
    assert len(helper.requests) == 3 and tokens(answer) == paid(model, helper)
    assert ["used up" in result.text for result in results_of(answer)] == [False, True, True]


@pytest.mark.further
def test_a_tool_that_is_no_model_runs_when_nothing_is_left() -> None:
    """Behind a run inside that has used the rest: it needs no tokens of its own."""
    replies = [said("", ("inner", {"question": "?"}), ("look", {"number": 1})), said("Enough.")]
    model = outer(inner(), look, replies=replies, on_limit="return", parallel=False)
    answer = model.invoke([QUESTION], token_budget=2 * EACH)
    assert stop_reason(answer) == "token_budget" and results_of(answer)[1].text == "seen 1"


def test_runs_that_begin_together_each_get_what_is_left_at_their_begin() -> None:
    """Two runs in parallel may use the rest twice; both count, and the run around ends."""
    together = threading.Barrier(2, timeout=20)

    def meet(messages: Sequence[BaseMessage], **_: Any) -> AIMessage:
        if messages[-1].type == "human":
            together.wait()
        return endless(messages)

    helper = inner(replies=meet, on_limit="return")
    model = outer(helper, replies=ask("inner", 2), on_limit="return")
    answer = model.invoke([QUESTION], token_budget=4 * EACH)
    assert (len(helper.requests), stop_reason(answer)) == (6, "token_budget") and tokens(answer) == 7 * EACH


def test_the_cost_inside_counts_and_is_bounded() -> None:
    """With `max_cost` no request inside is made that would exceed it: each reply costs 0.01, and the next one at least as much."""
    helper = inner(replies=endless)
    model = outer(helper)
    answer = model.invoke([QUESTION], max_cost=0.045)
    assert stop_reason(answer) == "max_cost" and "max_cost" in results_of(answer)[0].text
    spent = run_cost(answer, prices=PRICES).total
    assert spent == Decimal(paid(model, helper)) / 100_000 <= Decimal("0.045") and len(helper.requests) == 3


def test_a_model_inside_without_a_price_is_refused_under_a_maximum_cost() -> None:
    """Its first request is not made, and the result names it; prices are those of the outer model."""
    pytest.importorskip("genai_prices", reason="needs the extra `cost`")
    helper = Named(name="inner", tools=[look], model="nobody-s", prices={"nobody-s": PRICES["m"]}, replies=answering(model="nobody-s"))
    model = outer(helper)
    answer = model.invoke([QUESTION], max_cost=1)
    assert helper.requests == [] and "'nobody-s'" in results_of(answer)[0].text and stop_reason(answer) == "complete"
    known = {**PRICES, **helper.prices}
    assert stop_reason(model.invoke([QUESTION], max_cost=1, prices=known)) == "complete" and len(helper.requests) == 1


def test_a_reply_inside_without_a_price_ends_the_run(caplog: pytest.LogCaptureFixture) -> None:
    """A model without tools makes its one request; what has no price is named."""
    pytest.importorskip("genai_prices", reason="needs the extra `cost`")
    model = outer(Named(name="inner", replies=[said("Hello.", model="nobody-s")]))
    answer = model.invoke([QUESTION], max_cost=1)
    assert stop_reason(answer) == "max_cost" and "nobody-s" in caplog.text
    assert run_cost(answer, prices=PRICES).unpriced == ["the model 'nobody-s'"]


def failing(messages: Sequence[BaseMessage], **_: Any) -> AIMessage:
    """A call, then an error."""
    if messages[-1].type == "tool":
        raise ValueError("the connection is gone")
    return said("", ("look", {}))


@pytest.mark.parametrize("way", WAYS)
def test_what_failed_runs_have_used_counts(way: str) -> None:
    """Each attempt of a call whose run fails has paid for its replies; the calls in them count too."""
    helper = inner(replies=failing)
    model = outer(helper, policies={"inner": ToolPolicy(retry=RetryPolicy(attempts=2, wait_scale=0), retry_on=(ValueError,))})
    ran = run(way, model, [QUESTION])
    assert ran.message is not None and "gone" in results_of(ran.message)[0].text
    assert len(helper.requests) == 4  # of which each second one fails
    assert tokens(ran.message) == paid(model) + 2 * EACH


@pytest.mark.further
def test_a_run_that_begins_anew_with_nothing_left_ends_after_its_reply(caplog: pytest.LogCaptureFixture) -> None:
    """Its first attempt has used more than there was, and failed at its last answer: what is left is 0, and the log says so."""
    policy = ToolPolicy(retry=RetryPolicy(attempts=2, wait_scale=0), retry_on=(ValueError,))
    helper = inner(replies=[said("", ("look", {})), ValueError("the connection is gone"), said("", ("look", {})), said("Enough.")])
    answer = outer(helper, policies={"inner": policy}, on_limit="return").invoke([QUESTION], token_budget=EACH + 5)
    assert len(helper.requests) == 4 and "Enough." in results_of(answer)[0].text and "limit token_budget=0," in caplog.text


def test_what_a_run_that_is_given_up_has_used_counts() -> None:
    """A call that takes too long, at depth three, has paid for the replies that were whole by then."""
    cases = [(way, limit) for way in WAYS for limit in ("timeout", "deadline")]
    checks = {f"{way} {limit}": partial(counts_what_was_given_up, way, limit) for way, limit in cases}
    at_once({words: partial(with_time_for_it, check, 0.6, 3, 9) for words, check in checks.items()})


def counts_what_was_given_up(way: str, limit: str, seconds: float) -> None:
    """A run whose call does not end."""
    ended = threading.Event()

    def hang() -> str:
        """Wait."""
        ended.wait(20)
        return "at last"

    lowest = inner(name="lowest", tools=[hang], replies=answering(("hang", {})))
    middle = inner(tools=[lowest], replies=ask("lowest"))
    model = outer(middle, policies={"inner": ToolPolicy(timeout=seconds)} if limit == "timeout" else {})
    try:
        ran = run(way, model, [QUESTION], **({"deadline": seconds} if limit == "deadline" else {}))
    finally:
        ended.set()
    assert ran.message is not None and results_of(ran.message)[0].status == "error"
    assert tokens(ran.message) == (4 if limit == "timeout" else 3) * EACH


def test_equal_calls_that_share_a_result_pay_for_it_once() -> None:
    """With a cache one run inside answers both calls."""
    helper = inner()
    model = outer(
        helper,
        replies=answering(("inner", {"question": "?"}), ("inner", {"question": "?"})),
        policies={"inner": ToolPolicy(cache=True, cache_key=dict)},
    )
    answer = model.invoke([QUESTION])
    assert len(helper.requests) == 2 and tokens(answer) == paid(model, helper)


def test_runs_inside_a_bundle_count() -> None:
    """One result stands for several calls, and has what all their runs have used."""
    uses = [{"recipient_name": "functions.inner", "parameters": {"question": str(number)}} for number in range(2)]
    helper = inner()
    model = outer(helper, replies=answering(("multi_tool_use.parallel", {"tool_uses": uses})))
    answer = model.invoke([QUESTION])
    assert len(helper.requests) == 4 and tokens(answer) == paid(model, helper)


def test_what_is_recorded_is_not_sent() -> None:
    """The record is in the metadata of the result; a run of a function of one's own has none, and does not count."""
    helper = inner()

    def own(question: str) -> Any:
        """Ask."""
        return helper.invoke(question)

    model = outer(own, replies=ask("own"))
    answer = model.invoke([QUESTION])
    assert tokens(answer) == paid(model) and len(helper.requests) == 2
    (result,) = results_of(outer(inner()).invoke([QUESTION]))
    assert isinstance(result, ToolMessage) and result.response_metadata["autotools"]["used_inside"]["tool_calls"] == 1
    assert new_messages(answer)[1].response_metadata.keys().isdisjoint({"autotools"})
