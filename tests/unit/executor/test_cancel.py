"""ToolExecutor: timeouts, closing and cancelling. Nothing hangs, and every call has an answer."""

import asyncio
import contextlib
import gc
import logging
import math
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tools import BaseTool

from langchain_autotools.errors import ConfigurationError
from langchain_autotools.executor import ToolCallResult, ToolExecutor, ToolPolicy, batch_drivers
from tests.support.calls import call, error


class Tools:
    """Tools that wait until they are let go, and note what happens to them."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.release = threading.Event()
        self.stopped = threading.Event()
        self.ran: list[str] = []

    def stuck(self) -> str:
        """Hold a thread."""
        self.ran.append("stuck")
        self.begun.set()
        self.release.wait(60)
        return "too late"

    async def astuck(self) -> str:
        """Hold a task."""
        self.ran.append("astuck")
        self.begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            self.stopped.set()
        return "never"

    def quick(self) -> str:
        """Return at once."""
        self.ran.append("quick")
        return "quick"


@pytest.fixture
def tools() -> Iterator[Tools]:
    """The tools, and their threads let go at the end."""
    made = Tools()
    yield made
    made.release.set()


class Runs(BaseCallbackHandler):
    """Notes how tool runs end."""

    def __init__(self) -> None:
        self.ends: list[Any] = []

    def on_tool_end(self, output: Any, **kwargs: Any) -> None:
        """A tool ends well."""
        self.ends.append(output)

    def on_tool_error(self, error: BaseException, **kwargs: Any) -> None:
        """A tool fails."""
        self.ends.append(error)


# ---------------------------------------------------------------------------------------------- timeouts


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("name", ["stuck", "astuck"])
async def test_a_tool_that_takes_too_long_is_answered(tools: Tools, name: str, is_async: bool, caplog: pytest.LogCaptureFixture) -> None:
    """A timeout is an error result; an asynchronous tool is cancelled, a thread is given up with a line in the log."""
    executor = ToolExecutor(
        [tools.stuck, tools.astuck, tools.quick], default_policy=ToolPolicy(timeout=0.1), policies={"quick": ToolPolicy(timeout=60)}
    )
    turn = [call(name), call("quick", "2")]
    runs = Runs()
    if is_async:
        found = [result async for result in executor.astream(turn, {"callbacks": [runs]})]
    else:
        found = await asyncio.to_thread(lambda: list(executor.stream(turn, {"callbacks": [runs]})))
    assert error(found[0]) == "timed out after 0.1 s"
    assert isinstance(found[0].error, TimeoutError)
    assert found[1].message.content == "quick"
    if name == "astuck":
        assert tools.stopped.is_set()
        assert [type(end) for end in runs.ends if isinstance(end, Exception)] == [TimeoutError]
    else:
        assert "stuck is given up while it runs" in caplog.text


def test_a_timeout_may_be_set_for_single_tools(tools: Tools) -> None:
    """Its own policy beats the default, also with infinity for no limit."""
    executor = ToolExecutor([tools.stuck, tools.quick], policies={"stuck": ToolPolicy(timeout=0.05)})
    assert error(next(executor.stream([call("stuck")]))).startswith("timed out")
    tools.release.set()
    lenient = ToolExecutor([tools.stuck], default_policy=ToolPolicy(timeout=0.05), policies={"stuck": ToolPolicy(timeout=math.inf)})
    assert next(lenient.stream([call("stuck")])).message.content == "too late"


def test_a_tools_own_timeout_error_is_its_own() -> None:
    """A TimeoutError that the tool raises says what the tool says."""

    def slow() -> str:
        raise TimeoutError("the server did not answer")

    assert (
        error(next(ToolExecutor([slow], default_policy=ToolPolicy(timeout=20)).stream([call("slow")])))
        == "TimeoutError: the server did not answer"
    )


@pytest.mark.parametrize("is_async", [True, False])
async def test_an_async_tool_that_does_not_want_to_stop_is_left(
    is_async: bool, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tool that swallows its cancellation is waited for a moment, not for ever."""
    monkeypatch.setattr(batch_drivers, "GRACE_SECONDS", 0.05)
    release = threading.Event()

    async def stubborn() -> str:
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)
        return "done"

    executor = ToolExecutor([stubborn], default_policy=ToolPolicy(timeout=0.05))
    if is_async:
        (message,) = await executor.aexecute_all([call("stubborn")])
    else:
        (message,) = await asyncio.to_thread(executor.execute_all, [call("stubborn")])
    assert message.content == '{"error": "timed out after 0.05 s"}'
    assert "goes on although it was cancelled" in caplog.text
    release.set()


@pytest.mark.parametrize("value", [0, -1, -math.inf, math.nan, True, "5"])
def test_a_timeout_that_cannot_work_is_refused(value: Any) -> None:
    """Timeouts are positive numbers of seconds, for tools that exist."""
    with pytest.raises(ConfigurationError, match="timeout must be"):
        ToolPolicy(timeout=value)
    with pytest.raises(ConfigurationError, match="do not exist: 'g'"):
        ToolExecutor({"f": lambda: 1}, policies={"g": ToolPolicy(timeout=1)})


# ---------------------------------------------------------------------------------------------- closing


def test_closing_the_iterator_stops_everything(tools: Tools, caplog: pytest.LogCaptureFixture) -> None:
    """Running asynchronous tools are cancelled, threads given up, queued calls never begin; each call is answered."""
    heard: list[str] = []
    executor = ToolExecutor(
        [tools.stuck, tools.astuck, tools.quick],
        max_concurrency=2,
        on_executing=lambda one: heard.append(f"+{one.id}"),
        on_executed=lambda result: heard.append(f"-{result.call.id}"),
    )
    turn = [call("quick", "0"), call("stuck", "1"), call("astuck", "2"), call("stuck", "3"), call("quick", "4")]
    stream = executor.stream(turn)
    assert next(stream).message.content == "quick"
    while sorted(tools.ran) != ["astuck", "quick", "stuck"]:
        threading.Event().wait(0.001)
    stream.close()
    assert tools.stopped.is_set()
    assert "stuck is given up while it runs" in caplog.text
    settled = stream.settled()
    assert [result.executed for result in settled] == [True, True, True, False, False]
    assert [error(result) for result in settled[1:]] == ["cancelled before it finished; what it did until then may remain"] * 2 + [
        "cancelled before it ran"
    ] * 2
    assert all(isinstance(result.error, asyncio.CancelledError) for result in settled[1:])
    assert sorted(heard) == ["+0", "+1", "+2", "-0", "-1", "-2"]
    tools.release.set()
    assert list(stream) == []
    assert [result.message for result in stream.settled()] == [result.message for result in settled]


async def test_closing_the_async_iterator_stops_everything(tools: Tools, caplog: pytest.LogCaptureFixture) -> None:
    """The same for an asynchronous caller."""
    heard: list[str] = []
    executor = ToolExecutor(
        [tools.stuck, tools.astuck, tools.quick],
        max_concurrency=2,
        on_executing=lambda one: heard.append(f"+{one.id}"),
        on_executed=lambda result: heard.append(f"-{result.call.id}"),
    )
    turn = [call("quick", "0"), call("stuck", "1"), call("astuck", "2"), call("stuck", "3")]
    async with executor.astream(turn) as stream:
        assert (await anext(stream)).message.content == "quick"
        while sorted(tools.ran) != ["astuck", "quick", "stuck"]:
            await asyncio.sleep(0.001)
    assert tools.stopped.is_set()
    assert "stuck is given up while it runs" in caplog.text
    assert [result.executed for result in stream.settled()] == [True, True, True, False]
    assert sorted(heard) == ["+0", "+1", "+2", "-0", "-1", "-2"]
    assert tools.ran.count("stuck") == 1


async def test_cancelling_the_waiting_task_cancels_the_tools(tools: Tools) -> None:
    """The tools observe their cancellation, their runs end for tracers, and the caller sees its own CancelledError."""
    runs = Runs()
    executor = ToolExecutor([tools.astuck, tools.quick])
    stream = executor.astream([call("quick", "0"), call("astuck", "1"), call("astuck", "2")], {"callbacks": [runs]})
    received: list[ToolCallResult] = []

    async def run() -> None:
        async for result in stream:
            received.append(result)

    task = asyncio.create_task(run())
    while not received or tools.ran.count("astuck") < 2:
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert tools.stopped.is_set()
    assert [result.message.status for result in stream.settled()] == ["success", "error", "error"]
    assert len(runs.ends) == 3


async def test_letting_go_of_the_iterator_stops_everything(tools: Tools) -> None:
    """A caller that leaves its loop early need not close: nothing goes on unseen."""

    def leave() -> None:
        for result in ToolExecutor([tools.astuck, tools.quick]).stream([call("quick", "0"), call("astuck", "1")]):
            assert result.message.content == "quick"
            assert tools.begun.wait(20)
            break

    await asyncio.to_thread(leave)
    assert tools.stopped.is_set()

    tools.begun.clear(), tools.stopped.clear()

    async def aleave() -> None:
        async for result in ToolExecutor([tools.astuck, tools.quick]).astream([call("quick", "0"), call("astuck", "1")]):
            assert result.message.content == "quick"
            while not tools.begun.is_set():
                await asyncio.sleep(0.001)
            break

    await aleave()
    gc.collect()
    while not tools.stopped.is_set():
        await asyncio.sleep(0.001)


async def test_of_calls_that_never_began_nobody_is_told(tools: Tools) -> None:
    """A caller that takes one result and closes: the listener hears of that call alone."""
    heard: list[str] = []
    executor = ToolExecutor([tools.quick], parallel=False, on_executed=lambda result: heard.append(result.call.id))
    turn = [call("quick", call_id) for call_id in "abc"]
    with executor.stream(turn) as stream:
        next(stream)
    async with executor.astream(turn) as astream:
        await anext(astream)
    assert heard == ["a", "a"]
    assert [result.executed for result in stream.settled()] == [True, False, False]


async def test_closing_before_the_start_runs_nothing(tools: Tools) -> None:
    """Nothing runs before the first result is asked for."""
    executor = ToolExecutor([tools.quick])
    with executor.stream([call("quick")]) as stream:
        pass
    async with executor.astream([call("quick")]) as astream:
        pass
    assert not tools.ran
    results = [*stream.settled(), *astream.settled()]
    assert [error(result) for result in results] == ["cancelled before it ran"] * 2
    assert [(result.duration, result.executed) for result in results] == [(0.0, False)] * 2


async def test_a_listener_that_fails_while_everything_stops_hides_nothing(tools: Tools, caplog: pytest.LogCaptureFixture) -> None:
    """The cancellation stays what the caller sees."""

    def listen(result: ToolCallResult) -> None:
        raise OSError("disk full")

    executor = ToolExecutor([tools.quick, tools.astuck], on_executed=listen)
    task = asyncio.create_task(executor.aexecute_all([call("astuck")]))
    while not tools.ran:
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert "on_executed failed for a call that was cut off" in caplog.text

    def hear(result: ToolCallResult) -> None:
        if result.call.name == "astuck":
            raise OSError("disk full")

    caplog.clear(), tools.begun.clear()
    stream = ToolExecutor([tools.quick, tools.astuck], on_executed=hear).stream([call("quick", "0"), call("astuck", "1")])
    assert (await asyncio.to_thread(next, stream)).message.content == "quick"
    assert await asyncio.to_thread(tools.begun.wait, 20)
    await asyncio.to_thread(stream.close)
    assert "on_executed failed for a call that was cut off" in caplog.text


def test_a_late_result_of_a_given_up_thread_is_dropped(tools: Tools, caplog: pytest.LogCaptureFixture) -> None:
    """A thread that ends after its call was given up changes nothing any more."""
    executor = ToolExecutor([tools.stuck, tools.quick])
    stream = executor.stream([call("quick", "0"), call("stuck", "1")])
    next(stream)
    assert tools.begun.wait(20)
    stream.close()
    settled = stream.settled()
    with caplog.at_level(logging.DEBUG, "langchain_autotools"):
        tools.release.set()
        while "after it was given up" not in caplog.text:
            threading.Event().wait(0.001)
    assert stream.settled() == settled


def test_a_thread_that_outlives_its_event_loop_is_no_crash(tools: Tools, caplog: pytest.LogCaptureFixture) -> None:
    """`asyncio.run` ends although a tool that was given up still runs; when that ends, nobody is disturbed."""
    executor = ToolExecutor([tools.stuck], default_policy=ToolPolicy(timeout=0.05))
    with caplog.at_level(logging.DEBUG, "langchain_autotools"):
        (message,) = asyncio.run(executor.aexecute_all([call("stuck")]))
        assert message.status == "error"
        tools.release.set()
        while "after its event loop" not in caplog.text:
            threading.Event().wait(0.001)


def test_calls_inside_a_bundle_stop_with_it(tools: Tools) -> None:
    """When a bundle of calls is cancelled, those inside it that have not begun never do."""
    inside = [{"recipient_name": name, "parameters": {}} for name in ("stuck", "quick")]
    stream = ToolExecutor([tools.stuck, tools.quick]).stream([call("quick"), call("parallel", "2", tool_uses=inside)])
    assert next(stream).message.content == "quick"
    assert tools.begun.wait(20)
    stream.close()
    assert error(stream.settled()[1]).startswith("cancelled before it finished")
    tools.release.set()
    assert tools.ran.count("quick") == 1


def test_an_interrupt_of_the_user_stops_an_async_tool_in_a_sync_run(tools: Tools) -> None:
    """Ctrl-C while a synchronous caller waits for an asynchronous tool cancels the tool and is raised."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        pytest.skip("interrupts do not arrive here")

    def interrupt() -> None:
        assert tools.begun.wait(20)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    stream = ToolExecutor([tools.astuck]).stream([call("astuck")])
    with pytest.raises(KeyboardInterrupt):
        list(stream)
    thread.join()
    assert tools.stopped.is_set()


async def test_a_tool_class_that_is_only_asynchronous_works_in_a_sync_run() -> None:
    """A BaseTool whose synchronous method is a placeholder is run on the background loop, as one tool run."""

    class Remote(BaseTool):
        name: str = "remote"
        description: str = "Remote."

        def _run(self, city: str) -> str:
            message = f"{self.name} is asynchronous"
            raise NotImplementedError(message)

        async def _arun(self, city: str) -> str:
            await asyncio.sleep(0)
            return city

    class Both(Remote):
        name: str = "both"

        def _run(self, city: str) -> str:
            if not city:
                raise NotImplementedError
            return f"here: {city}"

    runs = Runs()
    turn = [call("remote", "1", city="Rome"), call("both", "2", city="Rome")]
    found = await asyncio.to_thread(ToolExecutor([Remote(), Both()]).execute_all, turn, {"callbacks": [runs]})
    assert [message.content for message in found] == ["Rome", "here: Rome"]
    assert len(runs.ends) == 2
