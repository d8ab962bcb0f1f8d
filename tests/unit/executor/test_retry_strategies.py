"""Calls that are tried again by tenacity's strategies and by the functions of a RetryPolicy, beside `retry_on`."""

import asyncio
import logging
from typing import Any

import pytest
import tenacity
from langchain_core.messages import AIMessage

from langchain_autotools import ConfigurationError, RetryPolicy, ToolExecutor, ToolPolicy, new_messages
from langchain_autotools.testing import ScriptedChatModel
from tests.support.calls import Way, asynchronously, both_ways, call, error, synchronously
from tests.unit.executor.test_retrying import Flaky, executor_of, kinds


def policy_of(retry: Any, *errors: type[Exception]) -> ToolPolicy:
    """A policy with these retries, after these errors."""
    return ToolPolicy(retry=retry, retry_on=errors or (ConnectionError,))


def lost(number: int) -> list[ConnectionError]:
    """Errors after which a call is tried again."""
    return [ConnectionError(f"number {one}") for one in range(1, number + 1)]


@both_ways
@kinds
@pytest.mark.parametrize("kind", [tenacity.Retrying, tenacity.AsyncRetrying])
@pytest.mark.parametrize(
    ("arguments", "attempts"),
    [
        ({}, 3),
        ({"stop": tenacity.stop_after_attempt(5)}, 5),
        ({"retry": tenacity.retry_if_exception_message(match="number [12]")}, 3),
        ({"retry": tenacity.retry_if_exception_type(TimeoutError)}, 1),
    ],
    ids=["default", "stop", "message", "type"],
)
def test_the_strategies_decide_beside_retry_on(run: Way, asynchronous: bool, kind: Any, arguments: dict[str, Any], attempts: int) -> None:
    """Their stop, or three attempts without one; their predicate can forbid a further attempt."""
    flaky = Flaky(*lost(9))
    (result,) = run(executor_of(flaky, policy_of(kind(**arguments)), asynchronous=asynchronous), call("look"))
    assert (result.attempts, flaky.times, error(result)) == (attempts, attempts, f"ConnectionError: number {attempts}")


@both_ways
def test_an_error_that_retry_on_does_not_name_is_not_tried_again(run: Way) -> None:
    """Whatever the strategies say; they are not asked."""
    asked: list[Any] = []
    retrying = tenacity.Retrying(retry=lambda state: not asked.append(state))
    flaky = Flaky(ValueError("no"))
    (result,) = run(executor_of(flaky, policy_of(retrying)), call("look"))
    assert (result.attempts, asked) == (1, [])
    with pytest.raises(ConfigurationError, match="retry needs retry_on"):
        ToolPolicy(retry=retrying)


@both_ways
def test_a_policy_has_a_predicate_and_a_hook(run: Way, caplog: pytest.LogCaptureFixture) -> None:
    """The hook knows which attempt failed, and how long the wait is; tenacity's log names the tool."""
    log = tenacity.before_sleep_log(logging.getLogger("of the program"), logging.WARNING)
    policy = policy_of(RetryPolicy(attempts=9, wait_initial=0, retry_if=lambda failed: "2" not in str(failed), before_sleep=log))
    (result,) = run(executor_of(Flaky(*lost(5)), policy), call("look"))
    assert (error(result), result.attempts) == ("ConnectionError: number 2", 2)
    said = [record.getMessage() for record in caplog.records if record.name == "of the program"]
    assert [one.replace(" 0.0 ", " 0 ") for one in said] == ["Retrying look in 0 seconds as it raised ConnectionError: number 1."]


async def again(state: tenacity.RetryCallState) -> bool:
    """An asynchronous strategy."""
    await asyncio.sleep(0)
    return True


@kinds
def test_asynchronous_strategies_are_awaited_in_an_asynchronous_run(asynchronous: bool) -> None:
    """Of synchronous tools too."""
    hooked: list[int] = []

    async def hook(state: tenacity.RetryCallState) -> None:
        await asyncio.sleep(0)
        hooked.append(state.attempt_number)

    retrying = tenacity.AsyncRetrying(retry=again, before_sleep=hook)
    (result,) = asynchronously(executor_of(Flaky(*lost(2)), policy_of(retrying), asynchronous=asynchronous), call("look"))
    assert (result.message.content, result.attempts, hooked) == ("seen", 3, [1, 2])


@kinds
@pytest.mark.parametrize("where", ["policies", "default_policy"])
def test_an_asynchronous_strategy_is_refused_in_a_synchronous_run(asynchronous: bool, where: str) -> None:
    """Before anything runs, by name."""
    flaky, policy = Flaky(), policy_of(tenacity.AsyncRetrying(retry=again))
    options: dict[str, Any] = {where: {"look": policy} if where == "policies" else policy}
    executor = ToolExecutor([flaky.tool(asynchronous=asynchronous)], **options)
    approved = ToolExecutor([flaky.tool(asynchronous=asynchronous)], requires_approval=True, approve=lambda one: one.approve(), **options)
    for one in (executor, approved):
        with pytest.raises(ConfigurationError, match="^retry of retry= is asynchronous"):
            synchronously(one, call("look"))
    assert flaky.times == 0


def test_a_strategy_that_turns_out_to_be_asynchronous_ends_a_synchronous_run() -> None:
    """Nothing is taken for a yes that is a coroutine."""
    flaky = Flaky(*lost(1))
    with pytest.raises(ConfigurationError, match="^retry_if of retry= is asynchronous"):
        synchronously(executor_of(flaky, policy_of(RetryPolicy(wait_scale=0, retry_if=lambda failed: again(Any)))), call("look"))
    assert flaky.times == 1


@both_ways
def test_what_a_hook_raises_ends_the_run(run: Way) -> None:
    """As of the other functions that a batch calls."""

    def hook(state: tenacity.RetryCallState) -> None:
        raise RuntimeError("the hook fails")

    with pytest.raises(RuntimeError, match="the hook fails"):
        run(executor_of(Flaky(*lost(1)), policy_of(RetryPolicy(wait_scale=0, before_sleep=hook))), call("look"))


def test_an_asynchronous_strategy_is_not_waited_for_beyond_the_deadline() -> None:
    """There is no further attempt then: the call is answered with its last error."""

    async def for_ever(state: tenacity.RetryCallState) -> bool:
        await asyncio.Event().wait()
        return True

    executor = executor_of(Flaky(*lost(2)), policy_of(tenacity.AsyncRetrying(retry=for_ever)))
    (result,) = asynchronously(executor, call("look"), deadline=0.05)
    assert (error(result), result.attempts) == ("ConnectionError: number 1", 1)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_wait_of_theirs_that_is_longer_than_the_deadline_is_not_begun(is_async: bool) -> None:
    """The hook is not called for it either."""
    hooked: list[Any] = []
    policy = policy_of(tenacity.Retrying(wait=tenacity.wait_fixed(600), before_sleep=hooked.append))
    run = asynchronously if is_async else synchronously
    (result,) = run(executor_of(Flaky(*lost(1)), policy), call("look"), deadline=60)
    assert (error(result), result.attempts, hooked) == ("ConnectionError: number 1", 1, [])


@pytest.mark.parametrize("is_async", [False, True])
def test_calls_of_a_run_are_tried_again_by_the_strategies(is_async: bool) -> None:
    """As fields of a model and as keywords of a call."""
    flaky, policy = Flaky(*lost(1)), policy_of(tenacity.Retrying())
    tools: Any = [flaky.tool(asynchronous=False)]
    for field, keyword in (({"default_policy": policy}, {}), ({}, {"policies": {"look": policy}})):
        flaky.errors = [*lost(1)]
        model = ScriptedChatModel(replies=[AIMessage("", tool_calls=[call("look")]), "Done."], tools=tools, **field)
        run = asyncio.run(model.ainvoke("Hi", **keyword)) if is_async else model.invoke("Hi", **keyword)
        assert [message.text for message in new_messages(run)] == ["", "seen", "Done."]
