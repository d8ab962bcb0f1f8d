"""Calls that are tried again: after named errors only, each attempt a run of its own, and told of once."""

import asyncio
import logging
import pickle
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tools import BaseTool, StructuredTool, ToolException

from langchain_autotools import ConfigurationError, OutcomeUnknownError, RetryPolicy, ToolExecutor, ToolPolicy
from langchain_autotools.executor import batch_drivers, user_functions
from tests.support.calls import Way, asynchronously, both_ways, call, error

AT_ONCE = RetryPolicy(attempts=3, wait_scale=0)
POLICY = ToolPolicy(retry=AT_ONCE, retry_on=(ConnectionError,))


class Flaky:
    """A tool that fails some times before it succeeds."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = list(errors)
        self.times = 0

    def _look(self) -> str:
        self.times += 1
        if self.errors:
            raise self.errors.pop(0)
        return "seen"

    def tool(self, *, asynchronous: bool) -> BaseTool:
        """It, as a tool named `look`."""

        def look() -> str:
            """Look."""
            return self._look()

        async def alook() -> str:
            """Look."""
            await asyncio.sleep(0)
            return self._look()

        given: dict[str, Any] = {"coroutine": alook} if asynchronous else {"func": look}
        return StructuredTool.from_function(name="look", description="Look.", **given)


def executor_of(flaky: Flaky, policy: ToolPolicy = POLICY, *, asynchronous: bool = False, **options: Any) -> ToolExecutor:
    """An executor with that tool and policy."""
    return ToolExecutor([flaky.tool(asynchronous=asynchronous)], policies={"look": policy}, **options)


kinds = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync_tool", "async_tool"])


@both_ways
@kinds
def test_a_named_error_is_tried_again(run: Way, asynchronous: bool) -> None:
    """Until it succeeds; the result says how often it was tried."""
    flaky = Flaky(ConnectionResetError("once"), ConnectionError("twice"))
    (result,) = run(executor_of(flaky, asynchronous=asynchronous), call("look"))
    assert (result.message.content, result.attempts, flaky.times, result.error) == ("seen", 3, 3, None)


@both_ways
@kinds
def test_the_last_error_is_told_when_the_attempts_are_used_up(run: Way, asynchronous: bool) -> None:
    """No attempt more than the policy allows."""
    flaky = Flaky(*(ConnectionError(f"number {number}") for number in range(1, 9)))
    (result,) = run(executor_of(flaky, asynchronous=asynchronous), call("look"))
    assert (error(result), result.attempts, flaky.times) == ("ConnectionError: number 3", 3, 3)


@both_ways
@pytest.mark.parametrize("failure", [ValueError("no"), OSError("no"), ToolException("no")], ids=lambda one: type(one).__name__)
def test_an_error_that_is_not_named_is_not_tried_again(run: Way, failure: Exception) -> None:
    """Also not one of a kind that the named one is itself of."""
    flaky = Flaky(failure)
    (result,) = run(executor_of(flaky), call("look"))
    assert (result.message.status, result.attempts, flaky.times) == ("error", 1, 1)


@both_ways
def test_an_empty_retry_on_means_never(run: Way) -> None:
    """Also where the default policy names errors."""
    flaky = Flaky(ConnectionError("no"))
    tools = [flaky.tool(asynchronous=False)]
    (result,) = run(ToolExecutor(tools, policies={"look": ToolPolicy(retry_on=())}, default_policy=POLICY), call("look"))
    assert (result.message.status, result.attempts, flaky.times) == ("error", 1, 1)


@both_ways
def test_a_group_is_tried_again_if_all_in_it_are_named(run: Way) -> None:
    """Of tools that run tasks of their own."""
    mixed = ExceptionGroup("tasks", [ConnectionError("lost"), ValueError("wrong")])
    flaky = Flaky(ExceptionGroup("tasks", [ConnectionError("lost")]), mixed)
    (result,) = run(executor_of(flaky), call("look"))
    assert (result.error, result.attempts) == (mixed, 2)


@pytest.mark.further
@both_ways
@kinds
def test_a_call_whose_outcome_is_unknown_is_not_tried_again(run: Way, asynchronous: bool) -> None:
    """Whatever errors are named, in a group too; `rerun` says that it may be. The model is told the tool's own words."""
    unknown = OutcomeUnknownError("sent, and not confirmed: look at the account before you pay again")
    everything = ToolPolicy(retry=AT_ONCE, retry_on=(Exception,))
    for failure in (unknown, ExceptionGroup("tasks", [ConnectionError("lost"), unknown])):
        flaky = Flaky(failure)
        (result,) = run(executor_of(flaky, everything, asynchronous=asynchronous), call("look"))
        assert (result.error, result.attempts, flaky.times) == (failure, 1, 1) and str(unknown) in error(result)
        for rerun in (True, False):
            flaky = Flaky(failure)
            (result,) = run(executor_of(flaky, replace(everything, rerun=rerun), asynchronous=asynchronous), call("look"))
            assert (result.message.status, flaky.times) == (("success", 2) if rerun else ("error", 1))
    copy = pickle.loads(pickle.dumps(unknown))
    assert (type(copy), str(copy)) == (OutcomeUnknownError, str(unknown)) and isinstance(copy, ToolException)


@pytest.mark.further
def test_rerun_is_for_calls_that_are_tried_again() -> None:
    """Without errors to try again after it has no effect, and is refused; a default policy may leave them to others."""
    with pytest.raises(ConfigurationError, match="rerun and no retry_on"):
        executor_of(Flaky(), ToolPolicy(rerun=True))
    with pytest.raises(ConfigurationError, match="rerun must be True or False"):
        ToolPolicy(rerun=1)  # type: ignore[arg-type]
    assert executor_of(Flaky(), ToolPolicy(rerun=True), default_policy=POLICY)
    assert executor_of(Flaky(), ToolPolicy(retry_on=()), default_policy=ToolPolicy(rerun=True, retry_on=(OSError,)))


def place(number: int) -> str:
    """Look at a place."""
    return str(number)


class Releasing(logging.Handler):
    """Lets a tool's thread end, and waits for that, in the moment in which the thread is given up."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.go_on = threading.Event()
        self.used: list[threading.Thread] = []

    def look(self) -> str:
        """Take too long."""
        self.used.append(threading.current_thread())
        assert self.go_on.wait(20)
        return "late"

    def emit(self, record: logging.LogRecord) -> None:
        """Wait until the thread is done with the tool."""
        if "given up" in record.getMessage():
            self.go_on.set()
            never = threading.Event()
            while self.used[-1].is_alive() and self.used[-1] not in user_functions._free:
                never.wait(0.005)


@both_ways
def test_a_thread_that_took_too_long_is_not_tried_again_though_it_has_ended(run: Way) -> None:
    """What it did until it ended may remain: a timeout is tried again only where the tool was stopped."""
    slow = Releasing()
    policy = ToolPolicy(timeout=0.05, retry=AT_ONCE, retry_on=(TimeoutError,))
    logger = logging.getLogger("langchain_autotools")
    logger.addHandler(slow)
    try:
        (result,) = run(ToolExecutor([slow.look], policies={"look": policy}), call("look"))
    finally:
        logger.removeHandler(slow)
    assert (result.message.status, result.attempts, len(slow.used)) == ("error", 1, 1)


@both_ways
def test_wrong_arguments_are_not_tried_again(run: Way) -> None:
    """A ValidationError is a ValueError, but the tool did not even run."""
    executor = ToolExecutor([place], default_policy=ToolPolicy(retry=AT_ONCE, retry_on=(ValueError,)))
    (result,) = run(executor, call("place", number="x"))
    assert (result.message.status, result.executed, result.attempts) == ("error", False, 0)


class Trace(BaseCallbackHandler):
    """Notes how runs of tools begin and end."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.runs: set[Any] = set()

    def on_tool_start(self, serialized: Any, input_str: str, *, run_id: Any, **kwargs: Any) -> None:
        """A run begins."""
        self.seen.append("start")
        self.runs.add(run_id)

    def on_tool_end(self, output: Any, **kwargs: Any) -> None:
        """A run has ended."""
        self.seen.append("end")

    def on_tool_error(self, error: BaseException, **kwargs: Any) -> None:
        """A run has failed."""
        self.seen.append(str(error))


@both_ways
@kinds
def test_each_attempt_is_a_run_in_the_trace_and_listeners_hear_once(run: Way, asynchronous: bool) -> None:
    """The trace tells what happened, the listeners what became of the call."""
    trace, told = Trace(), []
    options: dict[str, Any] = {
        "on_executing": lambda call: told.append(call.id),
        "on_executed": lambda result: told.append(result.attempts),
    }
    executor = executor_of(Flaky(ConnectionError("lost")), asynchronous=asynchronous, **options)
    run(executor, call("look", "7"), config={"callbacks": [trace]})
    assert (trace.seen, len(trace.runs), told) == (["start", "lost", "start", "end"], 2, ["7", 2])


@both_ways
def test_a_wait_that_is_longer_than_the_deadline_is_not_begun(run: Way) -> None:
    """The error is told at once: nobody waits for what cannot come."""
    flaky = Flaky(ConnectionError("lost"))
    policy = ToolPolicy(retry=RetryPolicy(wait_initial=600, wait_max=600), retry_on=(ConnectionError,))
    (result,) = run(executor_of(flaky, policy), call("look"), deadline=60)
    assert (error(result), result.attempts) == ("ConnectionError: lost", 1)


@both_ways
def test_a_wait_that_the_error_asks_for_is_taken(run: Way) -> None:
    """As of a vendor's request: `retry_after` in seconds, unless it is too long."""
    asking, asking_much = ConnectionError("lost"), ConnectionError("lost")
    asking.retry_after, asking_much.retry_after = 0.0, 3600.0  # type: ignore[attr-defined]
    policy = ToolPolicy(retry=RetryPolicy(attempts=9, wait_initial=600, wait_max=600), retry_on=(ConnectionError,))
    (result,) = run(executor_of(Flaky(asking, asking_much), policy), call("look"))
    assert (result.error, result.attempts) == (asking_much, 2)


@both_ways
def test_our_timeout_of_a_synchronous_tool_is_never_tried_again(run: Way) -> None:
    """It may still be running: a second one beside it is what a retry must never be."""
    release, begun = threading.Event(), []

    def look() -> str:
        """Look."""
        begun.append(1)
        release.wait(10)
        return "seen"

    policy = ToolPolicy(timeout=0.05, retry=AT_ONCE, retry_on=(TimeoutError,))
    (result,) = run(ToolExecutor([look], policies={"look": policy}), call("look"))
    release.set()
    assert (error(result), result.attempts, begun) == ("timed out after 0.05 s", 1, [1])


@both_ways
def test_a_timeout_of_the_tools_own_is_tried_again(run: Way) -> None:
    """It has ended, so nothing can be running."""
    (result,) = run(
        executor_of(Flaky(TimeoutError("its own")), ToolPolicy(timeout=9, retry_on=(TimeoutError,), retry=AT_ONCE)), call("look")
    )
    assert (result.message.content, result.attempts) == ("seen", 2)


@both_ways
def test_our_timeout_of_an_asynchronous_tool_is_tried_again_where_it_is_named(run: Way) -> None:
    """It was cancelled and has ended."""
    begun: list[int] = []

    async def look() -> str:
        """Look."""
        begun.append(1)
        await asyncio.sleep(0 if len(begun) > 1 else 60)
        return "seen"

    for errors, expected in (((TimeoutError,), ("seen", 2)), ((ConnectionError,), ('{"error": "timed out after 0.05 s"}', 1))):
        begun.clear()
        policy = ToolPolicy(timeout=0.05, retry=AT_ONCE, retry_on=errors)
        (result,) = run(ToolExecutor([look], policies={"look": policy}), call("look"))
        assert (result.message.content, result.attempts) == expected


def test_an_asynchronous_tool_that_goes_on_when_it_is_cancelled_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may still do something."""
    monkeypatch.setattr(batch_drivers, "GRACE_SECONDS", 0.05)
    begun: list[int] = []

    async def look() -> str:
        """Look."""
        begun.append(1)
        end = time.monotonic() + 0.4
        while time.monotonic() < end:
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                continue
        return "seen"

    policy = ToolPolicy(timeout=0.05, retry=AT_ONCE, retry_on=(TimeoutError,))
    (result,) = asynchronously(ToolExecutor([look], policies={"look": policy}), call("look"))
    assert (result.attempts, begun) == (1, [1])


LONG = ToolPolicy(retry=RetryPolicy(wait_initial=600, wait_max=600), retry_on=(ConnectionError,))


def test_a_batch_that_is_closed_ends_the_waits_of_its_calls() -> None:
    """The thread that waited for a further attempt is free again, and has tried nothing more."""
    used: list[threading.Thread] = []

    def look() -> str:
        """Look."""
        used.append(threading.current_thread())
        raise ConnectionError("lost")

    executor = ToolExecutor([look, place], policies={"look": LONG})
    with executor.stream([call("place", "1", number=1), call("look", "2")]) as batch:
        assert next(batch).message.content == "1"
        wait_until(lambda: used)
    assert "cancelled" in error(batch.settled()[1])
    wait_until(lambda: used[0] in user_functions._free)
    assert len(used) == 1


def test_another_calls_failure_ends_the_waits() -> None:
    """A run that must end does not wait minutes for a call to be tried again."""
    flaky = Flaky(ConnectionError("lost"))

    def listener(one: Any) -> None:
        if one.name == "place":
            raise RuntimeError("the listener fails")

    executor = ToolExecutor([flaky.tool(asynchronous=False), place], policies={"look": LONG})
    with pytest.raises(RuntimeError, match="the listener fails"):
        executor.execute_all([call("look", "1"), call("place", "2", number=1)], on_executing=listener)
    assert flaky.times <= 2


@both_ways
@pytest.mark.parametrize("parallel", [True, False])
def test_a_cancelled_run_does_not_wait_for_a_further_attempt(run: Way, parallel: bool, caplog: pytest.LogCaptureFixture) -> None:
    """The call is answered as cancelled, and tried no more."""
    caplog.set_level(logging.DEBUG, "langchain_autotools")
    flaky, cancel = Flaky(ConnectionError("lost")), threading.Event()
    executor = executor_of(flaky, LONG, parallel=parallel)
    timer = threading.Thread(target=lambda: (wait_until(lambda: "attempt 2 follows" in caplog.text), cancel.set()))
    timer.start()
    (result,) = run(executor, call("look"), cancel=cancel)
    timer.join(10)
    assert "cancelled" in error(result) and flaky.times == 1


@both_ways
def test_attempts_of_a_call_that_is_cancelled_between_them_are_counted(run: Way, caplog: pytest.LogCaptureFixture) -> None:
    """It says that the tool ran, and how often, although no attempt is running."""
    caplog.set_level(logging.DEBUG, "langchain_autotools")
    asking = ConnectionError("busy")
    asking.retry_after = 30  # type: ignore[attr-defined]
    flaky, cancel = Flaky(ConnectionError("lost"), asking), threading.Event()
    timer = threading.Thread(target=lambda: (wait_until(lambda: "attempt 3 follows" in caplog.text), cancel.set()))
    timer.start()
    policy = ToolPolicy(retry=RetryPolicy(wait_initial=0), retry_on=(ConnectionError,))
    (result,) = run(executor_of(flaky, policy), call("look"), cancel=cancel)
    timer.join(10)
    assert (result.attempts, result.executed, flaky.times) == (2, True, 2)
    assert "what it did until then may remain" in error(result)


@both_ways
def test_a_call_that_did_not_run_was_tried_no_time(run: Way) -> None:
    """Calls that are refused, forbidden or answered by hand, in a bundle too."""
    executor = ToolExecutor([place], policies={"place": POLICY}, requires_approval=["place"])
    calls = [call("nowhere", "1"), call("place", "2", number=1)]
    bundle = call("multi_tool_use.parallel", "3", tool_uses=[{"recipient_name": "nowhere", "parameters": {}}])
    decisions = [one.respond("seen") for one in executor.pending_calls(calls)]
    unknown, by_hand, inside = run(executor, *calls, bundle, decisions=decisions)
    forbidden = run(executor, call("place", number=1), only=[])
    assert [(one.attempts, one.executed) for one in (unknown, by_hand, inside, *forbidden)] == [(0, False)] * 4


def wait_until(holds: Callable[[], Any]) -> None:
    """Wait for what another thread does, for some seconds at most."""
    end = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.001)


@both_ways
def test_the_calls_of_a_bundle_have_their_policies(run: Way) -> None:
    """Each call inside is tried again by itself."""
    flaky = Flaky(ConnectionError("lost"))
    uses = [{"recipient_name": "functions.look", "parameters": {}}, {"recipient_name": "functions.look", "parameters": {}}]
    (result,) = run(executor_of(flaky), call("multi_tool_use.parallel", tool_uses=uses))
    assert [(inner.message.content, inner.attempts) for inner in result.inner] == [("seen", 2), ("seen", 1)]
