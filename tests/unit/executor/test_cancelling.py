"""`cancel` of an executor's calls: what it may be, what it ends, and what the results say."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from langchain_autotools import ConfigurationError, ToolCallRecord, ToolExecutor, ToolPolicy
from langchain_autotools.deadline import current_deadline
from langchain_autotools.executor import ToolCallResult, batch_drivers
from langchain_autotools.retry import RetryPolicy
from tests.support.calls import call, error

Way = Callable[..., list[ToolCallResult]]


def synchronously(executor: ToolExecutor, *calls: Any, **options: Any) -> list[ToolCallResult]:
    """The results of a synchronous run."""
    return list(executor.stream(calls, **options))


def asynchronously(executor: ToolExecutor, *calls: Any, **options: Any) -> list[ToolCallResult]:
    """The results of an asynchronous run."""

    async def results() -> list[ToolCallResult]:
        return [result async for result in executor.astream(calls, **options)]

    return asyncio.run(results())


both_ways = pytest.mark.parametrize("way", [synchronously, asynchronously])
both_orders = pytest.mark.parametrize("parallel", [True, False])


class Tools:
    """Tools that end when they are let go."""

    def __init__(self) -> None:
        self.flag = threading.Event()
        self.release = threading.Event()
        self.ran: list[str] = []

    def stop(self) -> str:
        """Cancel, then block."""
        self.ran.append("stop")
        self.flag.set()
        self.release.wait(20)
        return "late"

    def look(self) -> str:
        """Look."""
        self.ran.append("look")
        return "seen"


@both_ways
@both_orders
def test_nothing_runs_where_it_is_cancelled_from_the_start(way: Way, parallel: bool) -> None:
    """Each call has its answer all the same: an unknown tool that it is unknown, the others that they did not run."""
    tools = Tools()
    tools.flag.set()
    heard: list[str] = []
    executor = ToolExecutor([tools.look], parallel=parallel, on_executed=lambda result: heard.append(result.call.id))
    results = way(executor, call("look", "a"), call("nothing", "b"), call("look", "c"), cancel=tools.flag)
    assert tools.ran == []
    assert [error(result) for result in results][::2] == ["cancelled before it ran"] * 2
    assert "not a valid tool" in error(results[1])
    assert [result.executed for result in results] == [False] * 3
    assert sorted(heard) == ["a", "b", "c"]


@both_ways
@pytest.mark.parametrize("limit", [1, 2])
def test_what_has_not_begun_never_does(way: Way, limit: int) -> None:
    """The running call is given up, those behind it are not begun, and what the thread returns later is dropped."""
    tools = Tools()
    executor = ToolExecutor([tools.stop, tools.look], max_concurrency=limit)
    calls = [call("stop", "a"), *([call("stop", "b")] if limit == 2 else []), call("look", "c"), call("look", "d")]
    results = way(executor, *calls, cancel=tools.flag)
    tools.release.set()
    assert [result.call.id for result in results] == [one["id"] for one in calls]
    assert error(results[0]).startswith("cancelled before it finished")
    assert [error(result) for result in results[-2:]] == ["cancelled before it ran"] * 2
    assert "look" not in tools.ran


@both_ways
def test_a_bundle_tells_what_became_of_each_call_inside(way: Way) -> None:
    """Calls that had ended have their results."""
    tools = Tools()
    executor = ToolExecutor([tools.stop, tools.look])
    uses = [{"recipient_name": f"functions.{name}", "parameters": {}} for name in ("look", "stop", "look")]
    [result] = way(executor, call("multi_tool_use.parallel", "a", tool_uses=uses), cancel=tools.flag)
    tools.release.set()
    assert [one.message.status for one in result.inner] == ["success", "error", "error"]
    assert tools.ran == ["look", "stop"]


@both_ways
@both_orders
def test_an_error_of_the_function_ends_the_calls(way: Way, parallel: bool) -> None:
    """It is raised where the results are taken, and is no result."""
    tools = Tools()

    def broken() -> bool:
        raise LookupError("no such run")

    with pytest.raises(LookupError, match="no such run"):
        way(ToolExecutor([tools.look], parallel=parallel), call("look", "a"), call("look", "b"), cancel=broken)
    assert tools.ran == []


@both_ways
@pytest.mark.parametrize("answer", [None, 1, "yes", asyncio.sleep])
def test_a_function_that_answers_neither_yes_nor_no_is_refused(way: Way, answer: Any) -> None:
    """What is no truth value is a mistake, such as a function that was not called."""
    with pytest.raises(ConfigurationError, match="a function that returns True or False: it returned"):
        way(ToolExecutor([Tools().look]), call("look"), cancel=lambda: answer)


@pytest.mark.parametrize("flag", [True, 3, "now", threading.Lock(), threading.Event, asyncio.Condition])
def test_what_is_no_flag_is_refused_by_name(flag: Any) -> None:
    """Before anything runs."""
    with pytest.raises(ConfigurationError, match=r"cancel must be a threading\.Event, an asyncio\.Event, or a function"):
        ToolExecutor([Tools().look]).stream([call("look")], cancel=flag)


def test_an_asynchronous_function_is_refused() -> None:
    """It would give a coroutine, which is no answer."""

    async def flag() -> bool:
        return True

    with pytest.raises(ConfigurationError, match="not function"):
        ToolExecutor([Tools().look]).stream([call("look")], cancel=flag)


@both_ways
def test_who_has_cancelled_cannot_take_it_back(way: Way) -> None:
    """A function that says so once is believed."""
    tools, heard, told = Tools(), [], []

    def once() -> bool:
        if not heard or told:
            return False
        told.append(True)
        return True

    executor = ToolExecutor([tools.look], parallel=False, on_executed=heard.append)
    results = way(executor, *(call("look", str(number)) for number in range(6)), cancel=once)
    assert tools.ran == ["look"]
    assert [result.message.status for result in results] == ["success"] + ["error"] * 5


@both_ways
def test_a_call_that_fails_is_not_tried_again(way: Way) -> None:
    """Nor is the pause before its next attempt waited for."""
    flag, tried = threading.Event(), []

    def flaky() -> str:
        """Fail."""
        tried.append(1)
        threading.Timer(0.05, flag.set).start()
        raise ConnectionError("gone")

    policy = ToolPolicy(retry=RetryPolicy(attempts=5, wait_initial=59, wait_max=59), retry_on=(ConnectionError,))
    [result] = way(ToolExecutor([flaky], policies={"flaky": policy}), call("flaky"), cancel=flag)
    assert len(tried) == 1
    assert "cancelled" in error(result)


async def test_a_synchronous_run_on_a_loop_is_cancelled_by_another_thread() -> None:
    """The loop's thread waits for the tools, and can be told to stop waiting."""
    tools = Tools()
    [result] = synchronously(ToolExecutor([tools.stop], parallel=False), call("stop"), cancel=tools.flag)
    tools.release.set()
    assert error(result).startswith("cancelled before it finished")


def test_an_asynchronous_tool_that_is_stopped_before_it_begins_is_no_failure() -> None:
    """A synchronous run answers its call as cancelled, also where the thread that waits for the tool hears of its end first."""
    flag, held, let_go = threading.Event(), threading.Event(), threading.Event()

    async def hold() -> str:
        """Hold the loop on which the other one would begin."""
        held.set()
        return str(let_go.wait(20))

    async def wait() -> str:
        """Wait."""
        await asyncio.sleep(60)
        return "late"

    def begins(_: ToolCallRecord) -> None:
        """Cancel the call while its tool cannot begin, and let it begin then."""
        threading.Timer(0.1, flag.set).start()
        threading.Timer(0.5, let_go.set).start()

    holding = threading.Thread(target=list, args=[ToolExecutor([hold]).stream([call("hold", "a")])])
    holding.start()
    assert held.wait(20)
    executor = ToolExecutor([wait], on_executing=begins, on_executed=lambda _: threading.Event().wait(0.2))
    (result,) = executor.stream([call("wait", "b")], cancel=flag)
    assert error(result) == "cancelled before it ran"
    holding.join(20)


async def test_an_asynchronous_tool_that_does_not_stop_is_left(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has a moment to do so, then a log warns, once."""
    monkeypatch.setattr(batch_drivers, "GRACE_SECONDS", 0.05)
    flag, release = asyncio.Event(), asyncio.Event()

    async def stubborn() -> str:
        """Go on."""
        flag.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    results = [result async for result in ToolExecutor([stubborn]).astream([call("stubborn")], cancel=flag)]
    release.set()
    assert error(results[0]).startswith("cancelled")
    assert caplog.text.count("goes on although it was cancelled") == 1


@both_ways
def test_an_error_of_a_listener_ends_a_cancelled_run_too(way: Way) -> None:
    """As it does any run: it is not the cancellation's to hide."""

    def broken(result: ToolCallResult) -> None:
        raise LookupError(result.call.id)

    with pytest.raises(LookupError, match="a"):
        way(ToolExecutor([Tools().look], on_executed=broken), call("look", "a"), cancel=lambda: True)


@both_ways
def test_what_a_tool_has_begun_may_outlive_the_run(way: Way) -> None:
    """Who cancels a run that has ended stops nothing that goes on after it; of a cancelled run it is stopped."""
    seen: list[Any] = []

    def begin() -> str:
        """Begin something that sees how long it may go on."""
        seen.append(current_deadline())
        return "begun"

    flag = threading.Event()
    way(ToolExecutor([begin]), call("begin"), cancel=flag)
    flag.set()
    assert [one.passed() for one in seen] == [None]

    def stop() -> str:
        """Cancel."""
        seen.append(current_deadline())
        flag.set()
        release.wait(20)
        return "late"

    release = threading.Event()
    flag.clear()
    way(ToolExecutor([stop]), call("stop"), cancel=flag)
    release.set()
    assert [one.passed() is None for one in seen] == [True, False]
    assert way(ToolExecutor([begin]), call("begin"))[0].message.content == "begun" and seen[-1] is None


def test_a_program_that_ends_while_a_tool_works_logs_no_error(caplog: pytest.LogCaptureFixture) -> None:
    """`asyncio.run` cancels what is left, and logs each task that then ends in an exception: the tool's is none."""
    left: list[Any] = []

    async def main() -> None:
        began = asyncio.Event()

        async def work() -> str:
            began.set()
            return str(await asyncio.Event().wait())

        left.append(asyncio.create_task(ToolExecutor({"work": work}).aexecute_all([call("work")])))
        await began.wait()

    asyncio.run(main())
    assert left[0].done()
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio" and record.levelno >= 40] == []
