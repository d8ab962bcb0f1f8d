"""Requests that are made again by tenacity's strategies: theirs beside what may be retried at all, never in its place."""

import asyncio
import logging
import sys
import traceback
from contextlib import nullcontext
from typing import Any

import pytest
import tenacity
from langchain_core.exceptions import ModelError

from langchain_autotools import ChatOpenAI, ConfigurationError, RetryPolicy, ToolExecutor, ToolPolicy, aevents, events, stop_reason
from tests.providers.openai.test_transport_retries import (
    ERROR,
    HELLO,
    ROLE,
    Way,
    ainvoke,
    astream,
    every_way,
    invoke,
    model_of,
    stream,
    streamed,
)
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Cut, Events, Failure, Turn

SYNCHRONOUS, ASYNCHRONOUS = [invoke, stream], [ainvoke, astream]


CALLED: list[Any] = []
LONG = tenacity.wait_fixed(600)


def forecast(city: str) -> str:
    """The forecast of a city."""
    return "rain"


@every_way
@pytest.mark.parametrize(
    ("retry", "settings", "requests"),
    [
        (tenacity.Retrying(), {}, 3),
        (tenacity.AsyncRetrying(stop=tenacity.stop_after_attempt(5)), {}, 5),
        (tenacity.Retrying(stop=tenacity.stop_after_attempt(5)), {"max_retries": 1}, 2),
        (tenacity.Retrying(stop=tenacity.stop_after_attempt(2)), {"max_retries": 7}, 2),
        (tenacity.AsyncRetrying(), {"max_retries": 4}, 5),
        (tenacity.AsyncRetrying(retry=tenacity.retry_never), {}, 1),
        (tenacity.Retrying(retry=lambda state: state.attempt_number < 2), {}, 2),
    ],
    ids=["none", "stop", "max_retries first", "stop first", "max_retries", "never", "once"],
)
def test_the_strategies_end_the_attempts(way: Way, retry: Any, settings: dict[str, Any], requests: int) -> None:
    """Their stop, or three attempts without one; `max_retries` holds besides; the error is that of the last attempt."""
    with OpenAIServer([Failure(500)] * 9) as server:
        with pytest.raises(ModelError) as raised:
            way(model_of(server, retry=retry, **settings))
        assert len(server.requests) == requests
    files = [frame.filename for frame in traceback.extract_tb(raised.value.__traceback__)]
    assert not [name for name in files if "tenacity" in name]


@every_way
@pytest.mark.parametrize("failure", [Failure(400), Failure(401), Failure(500, headers={"x-should-retry": "false"})], ids=str)
def test_what_may_not_be_retried_is_not(way: Way, failure: Failure) -> None:
    """Whatever their predicate says: it is not even asked."""
    asked: list[Any] = []
    with OpenAIServer([failure, Turn("Hello")]) as server:
        with pytest.raises(ModelError):
            way(model_of(server, retry=tenacity.Retrying(retry=lambda state: not asked.append(state))))
        assert (len(server.requests), asked) == (1, [])


@streamed
def test_nothing_is_retried_after_the_first_content(way: Way) -> None:
    """Nor is a strategy asked about it."""
    with OpenAIServer([Events([ROLE, HELLO, ERROR]), Turn("Hello")]) as server:
        with pytest.raises(ModelError):
            way(model_of(server, retry=tenacity.Retrying(retry=tenacity.retry_always, stop=tenacity.stop_after_attempt(9))))
        assert len(server.requests) == 1


@every_way
@pytest.mark.parametrize(("wait", "demanded", "slept"), [(0.001, "20", 0.02), (0.02, "10", 0.02), (0.003, "", 0.003)])
def test_the_larger_wait_counts(way: Way, wait: float, demanded: str, slept: float) -> None:
    """Theirs, or the one that the server demands."""
    waits: list[float] = []
    retry = tenacity.Retrying(wait=tenacity.wait_fixed(wait), before_sleep=lambda state: waits.append(state.next_action.sleep))
    with OpenAIServer([Failure(429, headers={"retry-after-ms": demanded}), Turn("Hello")]) as server:
        assert way(model_of(server, retry=retry)) == "Hello"
    assert waits == [slept]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("retry", [tenacity.Retrying(wait=LONG, before_sleep=CALLED.append), RetryPolicy(wait_initial=600, wait_max=600)])
def test_a_wait_is_cut_at_the_deadline(is_async: bool, retry: Any) -> None:
    """The run ends at once: there is no attempt after the deadline. No hook is called for a wait that does not begin."""
    with OpenAIServer([Failure(500), Turn("Hello")]) as server:
        model = model_of(server, retry=retry, tools=[forecast], deadline=30)
        run = asyncio.run(model.ainvoke("Hi")) if is_async else model.invoke("Hi")
        assert (stop_reason(run), len(server.requests), CALLED) == ("deadline", 1, [])


async def again(state: tenacity.RetryCallState) -> bool:
    """An asynchronous retry strategy."""
    await asyncio.sleep(0)
    return True


async def nothing(state: tenacity.RetryCallState) -> float:
    """An asynchronous wait, stop and hook."""
    await asyncio.sleep(0)
    return 0.0


ASYNC_STRATEGIES = {"retry": again, "wait": nothing, "stop": nothing, "before_sleep": nothing}


@pytest.mark.parametrize("way", ASYNCHRONOUS)
def test_asynchronous_strategies_are_awaited(way: Way) -> None:
    """All of them, in an asynchronous run."""
    with OpenAIServer([Failure(500)] * 5 + [Turn("Hello")]) as server:
        assert way(model_of(server, retry=tenacity.AsyncRetrying(**ASYNC_STRATEGIES))) == "Hello"
        assert len(server.requests) == 6


@pytest.mark.parametrize("way", SYNCHRONOUS)
@pytest.mark.parametrize("name", ASYNC_STRATEGIES)
def test_an_asynchronous_strategy_is_refused_in_a_synchronous_run(way: Way, name: str) -> None:
    """By name, before a request is made."""
    with OpenAIServer([Failure(500), Turn("Hello")]) as server:
        model = model_of(server, retry=tenacity.AsyncRetrying(**{name: ASYNC_STRATEGIES[name]}))
        with pytest.raises(ConfigurationError, match=f"^{name} of retry= is asynchronous"):
            way(model)
        assert server.requests == []


@pytest.mark.parametrize("is_async", [False, True])
def test_a_stream_whose_calls_are_shown_is_retried_by_the_strategies(is_async: bool) -> None:
    """While somebody reads its events, a reply that breaks off inside a call is asked for again; their predicate may forbid it."""
    turn = Turn("", [Call("forecast", {"city": "Rome"}, "call_1")])
    hook: Any = nothing if is_async else lambda state: None
    for predicate, requests in ((tenacity.retry_always, 3), (tenacity.retry_never, 1)):
        with OpenAIServer([Cut(turn, after=400), turn, Turn("Rain.")]) as server:
            retry = tenacity.AsyncRetrying(retry=predicate, before_sleep=hook)
            model = model_of(server, retry=retry, tools=[forecast])
            with nullcontext() if requests == 3 else pytest.raises(ModelError):
                _ = asyncio.run(read(model)) if is_async else list(events(model.stream("Hi")))
            assert len(server.requests) == requests


async def read(model: ChatOpenAI) -> list[Any]:
    """The events of a run."""
    return [event async for event in aevents(model.astream("Hi"))]


def test_the_log_of_tenacity_names_the_model_and_holds_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    """`before_sleep_log` shows what is retried by the name of its function."""
    logger = logging.getLogger("of the program")
    with OpenAIServer([Failure(500), Turn("Hello")]) as server:
        retry = RetryPolicy(wait_scale=0, before_sleep=tenacity.before_sleep_log(logger, logging.WARNING))
        assert invoke(model_of(server, retry=retry, api_key="secret-1234567890")) == "Hello"
    (said,) = [record.getMessage() for record in caplog.records if record.name == logger.name]
    assert said.startswith("Retrying ChatOpenAI in 0") and "seconds as it raised OpenAIAPIError" in said
    assert "secret-1234567890" not in said


@every_way
def test_what_succeeds_does_without_tenacity(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is imported at the first failure: not with a model or a policy, nor by requests and calls that succeed."""
    with OpenAIServer([Turn("Hello"), Failure(500), Turn("Hello")]) as server:
        with monkeypatch.context() as without:
            without.setitem(sys.modules, "tenacity", None)
            policy = ToolPolicy(retry=RetryPolicy(retry_if=lambda error: True), retry_on=(OSError,))
            executor = ToolExecutor([forecast], policies={"forecast": policy})
            model = model_of(server, retry=RetryPolicy(wait_scale=0, retry_if=lambda error: True))
            assert way(model) == "Hello"
            assert executor.execute_all([{"name": "forecast", "args": {"city": "Rome"}, "id": "1"}])[0].content == "rain"
        assert way(model) == "Hello"
        assert len(server.requests) == 3
