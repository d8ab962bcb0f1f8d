"""An end of the run leads to no other model, whatever `fallback_on` says; a refused account does, however its server says so."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest
from langchain_core.exceptions import ModelAuthenticationError, ModelRateLimitError
from langchain_core.messages import HumanMessage

from langchain_autotools import stop_reason
from tests.failover.vendors import VENDORS, model_of
from tests.laws.ways import WAYS, run, waited
from tests.support.at_once import at_once, with_time_for_it
from tests.support.http_server import Gate
from tests.support.script import Failure, Turn

QUESTION = [HumanMessage("Go.")]
SILENT, HALF = (lambda: Turn("Never.", holds={0: Gate()})), (lambda: Turn("Let me see, and so on.", holds={3: Gate()}))


def any_error(error: BaseException) -> bool:
    """Every error leads to another model."""
    return True


def pair(down: Any, other: Any, **fields: Any) -> Any:
    """A model that another one follows after any error."""
    return model_of("openai", down, fallbacks=[model_of("anthropic", other)], fallback_on=any_error, **fields)


@pytest.mark.parametrize("reply", [SILENT, HALF], ids=["before text", "after text"])
def test_a_deadline_leads_to_no_other_model(reply: Any) -> None:
    """In every way: the run ends as it says."""
    with VENDORS["openai"][0]([Turn("Yes.")]) as server:
        model_of("openai", server).invoke(QUESTION)  # what is loaded at the first request takes none of the time
    at_once({way: partial(with_time_for_it, partial(ends_at_its_deadline, way, reply), 0.4, 2, 8) for way in WAYS})


def ends_at_its_deadline(way: str, reply: Any, seconds: float) -> None:
    """A run whose server falls silent."""
    with VENDORS["openai"][0](lambda _: reply()) as down, VENDORS["anthropic"][0](lambda _: Turn("No.")) as other:
        ran = run(way, pair(down, other, deadline=seconds), QUESTION)
        assert ran.error is None and ran.message is not None and stop_reason(ran.message) == "deadline"
        assert len(down.exchanges) == 1 and other.exchanges == []


@pytest.mark.parametrize("tools", [[], ["look"]])
def test_an_asynchronous_reader_who_has_left_asks_no_other_model(tools: list[str]) -> None:
    """By closing the stream, or by a task that is cancelled in the middle of a reply or before it."""

    def look(city: str) -> str:
        """Look at a city."""
        return "21"

    async def leaves(model: Any) -> None:
        stream = model.astream(QUESTION)
        await anext(stream)
        await stream.aclose()

    async def is_cancelled(model: Any, down: Any, whole: bool) -> None:
        asked = len(down.exchanges)

        async def read() -> None:
            if whole:
                await model.ainvoke(QUESTION)
            async for _ in model.astream(QUESTION):
                pass

        task = asyncio.ensure_future(read())
        while len(down.exchanges) == asked:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with VENDORS["openai"][0](lambda _: HALF()) as down, VENDORS["anthropic"][0](lambda _: Turn("No.")) as other:
        model = pair(down, other, tools=[look] if tools else [])
        waited(leaves(model))
        waited(is_cancelled(model, down, whole=True))
        waited(is_cancelled(model, down, whole=False))
        assert len(down.exchanges) == 3 and other.exchanges == []


# ---------------------------------------------------------------------------------------------- accounts


ACCOUNTS = {
    "anthropic: no credit": (
        "anthropic",
        Failure(400, "Your credit balance is too low to access the Anthropic API.", "invalid_request_error"),
    ),
    "anthropic: a limit of spending": (
        "anthropic",
        Failure(400, "You have reached your specified API usage limits.", "invalid_request_error"),
    ),
    "anthropic: billing": ("anthropic", Failure(402, "Payment required.", "billing_error")),
    "openai: no quota": ("openai", Failure(429, "You exceeded your current quota.", "insufficient_quota", "insufficient_quota")),
    "openai: a wrong key": ("openai", Failure(401, "Incorrect API key provided.", "invalid_request_error", "invalid_api_key")),
    "openai: no such model": ("openai", Failure(404, "The model does not exist.", "invalid_request_error", "model_not_found")),
    "xai: a wrong key": ("openai", Failure(400, "Incorrect API key provided: x***y.", "Client specified an invalid argument")),
    "google: no quota": ("google", Failure(429, "Quota exceeded.", "RESOURCE_EXHAUSTED")),
    "google: no such model": ("google", Failure(404, "models/x is not found.", "NOT_FOUND")),
    "ollama: no such model": ("ollama", Failure(404, "model 'x' not found")),
}


@pytest.mark.parametrize("name", ACCOUNTS)
def test_a_refused_account_leads_to_another_model(name: str) -> None:
    """By default: a key, a quota or a model of one vendor says nothing of another's. It is asked once, however many retries there are."""
    vendor, failure = ACCOUNTS[name]
    with VENDORS[vendor][0](lambda _: failure) as down, VENDORS["anthropic"][0](lambda _: Turn("Here.")) as other:
        ran = run("invoke", model_of(vendor, down, fallbacks=[model_of("anthropic", other, model="two")], fallback_attempts=3), QUESTION)
        assert ran.message is not None and ran.message.text == "Here."
        assert len(down.exchanges) == (3 if name == "google: no quota" else 1)


@pytest.mark.parametrize(("name", "kind"), [("anthropic: no credit", ModelRateLimitError), ("xai: a wrong key", ModelAuthenticationError)])
def test_an_account_that_is_refused_as_a_wrong_request_has_its_class(name: str, kind: type[Exception]) -> None:
    """LangChain's of what is wrong, beside the SDK's of the status; no retry repeats it."""
    vendor, failure = ACCOUNTS[name]
    with VENDORS[vendor][0](lambda _: failure) as down:
        error: Any = run("invoke", model_of(vendor, down), QUESTION).error
    assert isinstance(error, kind) and error.status_code == 400 and error.is_retryable is False
    assert any(one.__name__ == "BadRequestError" for one in type(error).__mro__)
