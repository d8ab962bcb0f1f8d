"""Rejected replies: the turn is made again, they are no messages, and their tokens and prices count."""

from decimal import Decimal
from typing import Any

import pytest

pytest.importorskip("langchain.agents.middleware", reason="needs LangChain")
from langchain.agents.middleware import ModelRetryMiddleware
from langchain_core.messages import AIMessage, AIMessageChunk

from langchain_autotools import RunSoFar, new_messages, run_cost, run_usage, stop_reason
from langchain_autotools.event_types import RunEnded
from langchain_autotools.testing import ScriptedChatModel
from tests.support.endless_chat import Way, ainvoke, every_way, invoke
from tests.support.failing import collected
from tests.support.middleware import Around, call, look, model_of

PRICES = {"m": {"input_mtok": 10, "output_mtok": 10}}


def used(message: AIMessage, tokens: int) -> AIMessage:
    """A reply that reports so many tokens."""
    usage: Any = {"input_tokens": tokens - 1, "output_tokens": 1, "total_tokens": tokens}
    about = {"model_provider": "own", "model_name": "m"}
    return message.model_copy(update={"usage_metadata": usage, "response_metadata": about})


def tokens(run: Any) -> int:
    """The tokens of a run."""
    usage = run_usage(run)
    assert usage is not None
    return usage["total_tokens"]


def refuse_bad(request: Any) -> Any:
    """Raise for a reply that says so."""
    response = yield request
    if "amiss" in response.result[0].text:
        raise ValueError("a bad reply")
    return response


class Named(ScriptedChatModel):
    """A model that has a name, as those of vendors do."""

    model: str = "m"


def retrying(*replies: AIMessage, **fields: Any) -> Any:
    """A model whose bad replies are rejected, and its turns made again by LangChain's own middleware."""
    retry = ModelRetryMiddleware(max_retries=3, initial_delay=0, jitter=False)
    return Named(replies=replies, tools=[look], middleware=[retry, Around(refuse_bad)], disable_streaming=True, prices=PRICES, **fields)


@every_way
def test_the_tokens_and_the_cost_of_rejected_replies_count(way: Way) -> None:
    """In the run's usage and cost; the context is the last reply's, and the messages are the accepted replies alone."""
    run, messages = way(
        retrying(used(AIMessage("amiss"), 5), used(AIMessage("amiss 2"), 7), used(call(), 11), used(AIMessage("Fine."), 13))
    )
    assert ([one.text for one in messages], tokens(run)) == (["", "seen Rome", "Fine."], 36)
    assert run.usage_metadata["total_tokens"] == 13
    cost = run_cost(run, prices=PRICES)
    assert (cost.total, len(cost.turns)) == (Decimal(36) / 100_000, 4)
    assert messages[-1].response_metadata.keys() >= {"model_name"} and "amiss" not in repr(messages)


@pytest.mark.parametrize("limit", [{"token_budget": 20_000}, {"max_cost": Decimal("0.2")}], ids=lambda limit: next(iter(limit)))
@every_way
def test_rejected_replies_count_against_a_budget(way: Way, limit: dict[str, Any]) -> None:
    """The run ends after the turn that has used it up."""
    replies = [used(AIMessage("amiss"), 15_000), used(call(), 11_000), used(AIMessage("Never."), 1)]
    run, messages = way(retrying(*replies, on_limit="return", **limit))
    assert (stop_reason(run), len(messages), tokens(run)) == (next(iter(limit)), 2, 26_000)


def test_conditions_and_events_see_them() -> None:
    """What ends a run, and what listeners get at its end."""
    asked: list[RunSoFar] = []

    def stops(run: RunSoFar) -> bool:
        asked.append(run)
        return True

    run, told = collected(retrying(used(AIMessage("amiss"), 5), used(call(), 11), stop_when=stops).stream("Hi"))[::-1]
    assert [one.usage and one.usage["total_tokens"] for one in asked] == [16]
    assert [one.usage and one.usage["total_tokens"] for one in told if isinstance(one, RunEnded)] == [16]
    assert tokens(run) == 16


@pytest.mark.parametrize("way", [invoke, ainvoke])
def test_an_answer_made_of_a_reply_counts_once(way: Way) -> None:
    """A changed reply has its usage in the answer; where the answer has none, that of the reply counts all the same."""

    def shout(request: Any) -> Any:
        message = (yield request).result[0]
        return AIMessage(message.text.upper(), usage_metadata=message.usage_metadata)

    def replace(request: Any) -> Any:
        yield request
        return AIMessage("Changed.")

    for steps, text in ((shout, "FINE."), (replace, "Changed.")):
        run, messages = way(model_of(used(AIMessage("Fine."), 13), middleware=[Around(steps)]))
        assert ([one.text for one in messages], tokens(run)) == ([text], 13)


@every_way
def test_a_reply_for_which_another_model_answered_counts(way: Way) -> None:
    """A reply that was cut at its length before any text was paid for."""
    cut = used(AIMessage(""), 5)
    cut.response_metadata["finish_reason"] = "length"
    model = ScriptedChatModel(replies=[cut], fallbacks=[ScriptedChatModel(replies=[used(AIMessage("Fine."), 13)])], fallback_on=["length"])
    run, messages = way(model)
    assert ([one.text for one in messages], tokens(run)) == (["Fine."], 18)


def test_a_reply_cannot_bring_records_of_its_own() -> None:
    """What a server writes under the package's key is dropped."""
    forged = AIMessageChunk(
        "Fine.", response_metadata={"autotools": {"rejected": [{"content": "", "usage_metadata": {"total_tokens": 9}}]}}
    )
    run = ScriptedChatModel(tools=[look], replies=[[forged]]).invoke("Hi")
    assert (run_usage(run), "rejected" in repr(new_messages(run))) == (None, False)
