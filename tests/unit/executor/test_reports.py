"""The way of progress from a running tool to the listeners of its batch."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from langchain_autotools.errors import ConfigurationError
from langchain_autotools.executor import ToolCallResult, ToolContext, ToolExecutor, ToolPolicy
from langchain_autotools.executor.context import AsyncProgress, ProgressReport
from langchain_autotools.messages.calls import ToolCallRecord
from tests.support.calls import call, run_calls

Told = list[tuple[str, Any]]


def listener(told: Told) -> Callable[[ToolCallRecord, Any], None]:
    """Notes what is told of which call."""
    return lambda call, value: told.append((call.id, value))


def counts(to: int, context: ToolContext) -> str:
    """Count in a thread."""
    for number in range(to):
        context.report(number)
    return "done"


async def acounts(to: int, context: ToolContext) -> str:
    """Count on an event loop."""
    for number in range(to):
        context.report(number)
        await asyncio.sleep(0)
    return "done"


@pytest.mark.parametrize("asynchronous_listener", [False, True])
@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("is_async", [False, True])
async def test_progress_is_told_between_the_start_and_the_end_of_its_call(
    is_async: bool, parallel: bool, asynchronous_listener: bool
) -> None:
    """Every value in order, the executor's listener first, and never two listeners at a time in a synchronous run."""
    told: list[Any] = []
    inside = threading.Semaphore(1)

    def note(entry: Any) -> None:
        assert is_async or inside.acquire(blocking=False)
        told.append(entry)
        if not is_async:
            time.sleep(0.001)
            inside.release()

    async def atell(call: ToolCallRecord, value: Any) -> None:
        await asyncio.sleep(0)
        note((call.id, value))

    def started(call: ToolCallRecord) -> None:
        note((call.id, "start"))

    def ended(result: ToolCallResult) -> None:
        note((result.call.id, "end"))

    def tell(call: ToolCallRecord, value: Any) -> None:
        note((call.id, value))

    own: Any = atell if asynchronous_listener else tell
    executor = ToolExecutor([counts, acounts], parallel=parallel, on_executing=started, on_executed=ended, on_progress=own)
    calls = [call("counts", "a", to=3), call("acounts", "b", to=3), call("counts", "c", to=0)]
    listeners: list[tuple[dict[str, Any], list[Any]]] = [
        ({}, ["start", 0, 1, 2, "end"]),
        ({"on_progress": lambda call, value: note((call.id, -value))}, ["start", 0, -1, -2, "end"]),
    ]
    for options, all_of_it in listeners:
        told.clear()
        assert await run_calls(executor, is_async, *calls, **options) == ["done"] * 3
        assert {name: [value for call_id, value in told if call_id == name] for name in "abc"} == {
            "a": all_of_it,
            "b": all_of_it,
            "c": ["start", "end"],
        }


@pytest.mark.parametrize("name", ["counts", "acounts"])
@pytest.mark.parametrize("is_async", [False, True])
async def test_what_a_listener_of_progress_raises_ends_the_run(is_async: bool, name: str, caplog: pytest.LogCaptureFixture) -> None:
    """The tool ends first and is told of as executed; no more progress of it is told, and nothing logged of that."""
    told: Told = []
    ended: list[str] = []

    def tell(call: ToolCallRecord, value: Any) -> None:
        told.append((call.id, value))
        raise OSError("full")

    executor = ToolExecutor([counts, acounts], on_progress=tell, on_executed=lambda result: ended.append(result.call.id))
    with pytest.raises(OSError, match="full"):
        await run_calls(executor, is_async, call(name, to=3))
    assert (told, ended, caplog.messages) == ([("1", 0)], ["1"], [])


def test_an_interrupt_while_a_listener_runs_stops_the_tool() -> None:
    """KeyboardInterrupt, which comes to the caller's own thread, is not held back until the tool has ended."""
    reached: list[int] = []

    def slow(context: ToolContext) -> None:
        """Go on for long."""
        context.report(1)
        reached.append(1)

    def tell(call: ToolCallRecord, value: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ToolExecutor([slow], parallel=False, on_progress=tell).execute_all([call("slow")])
    assert reached == []


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_report_after_the_end_of_its_call_is_logged_and_told_to_nobody(is_async: bool, caplog: pytest.LogCaptureFixture) -> None:
    """A context that outlives its call, and one whose call took too long; each is logged once."""
    told: Told = []
    kept: list[ToolContext] = []
    late = threading.Event()

    def keeps(context: ToolContext) -> None:
        """Keep the context."""
        kept.append(context)

    def hangs(context: ToolContext) -> None:
        """Take too long."""
        kept.append(context)
        late.wait(5)

    executor = ToolExecutor([keeps, hangs], policies={"hangs": ToolPolicy(timeout=0.01)}, on_progress=listener(told))
    await run_calls(executor, is_async, call("keeps", "a"), call("hangs", "b"))
    with caplog.at_level(logging.WARNING, "langchain_autotools"):
        caplog.clear()
        for context in kept * 2:
            context.report("late")
    late.set()
    assert told == []
    assert sorted(record.getMessage() for record in caplog.records) == [
        "tool hangs reports progress after its call b has ended: nobody is told",
        "tool keeps reports progress after its call a has ended: nobody is told",
    ]


async def test_a_report_after_the_end_of_the_event_loop_is_told_to_nobody() -> None:
    """A thread that outlives the loop of its asynchronous run gets no error."""
    told: Told = []
    kept: list[ToolContext] = []
    go, gone = threading.Event(), threading.Event()

    def hangs(context: ToolContext) -> None:
        """Take too long."""
        go.wait(5)
        context.report("late")
        kept.append(context)
        gone.set()

    def run() -> None:
        async def leave() -> None:
            async with ToolExecutor([hangs], default_policy=ToolPolicy(timeout=0.01), on_progress=listener(told)).astream(
                [call("hangs")]
            ) as results:
                assert (await anext(results)).message.status == "error"

        asyncio.run(leave())

    await asyncio.to_thread(run)
    go.set()
    assert await asyncio.to_thread(gone.wait, 5)
    assert told == [] and len(kept) == 1


def test_a_report_to_a_closed_event_loop_is_no_error() -> None:
    """Of a tool whose loop was closed without its batch: nobody listens any more."""

    async def tell(report: ProgressReport) -> None:
        pytest.fail("nobody listens")

    async def make() -> AsyncProgress:
        return AsyncProgress(lambda index, error: None, tell)

    reports = asyncio.run(make())
    late = ProgressReport(0, ToolCallRecord("1", "hangs", "{}"), "late")
    assert not reports.is_late(late)
    reports.report(late)
    assert reports.is_late(late)


def test_progress_of_an_asynchronous_tool_does_not_wait_on_its_loop_for_listeners() -> None:
    """An asynchronous listener runs on the loop of the tool that reports; neither waits for the other for ever."""
    told: Told = []

    async def tell(call: ToolCallRecord, value: Any) -> None:
        await asyncio.sleep(0.001)
        told.append((call.id, value))

    executor = ToolExecutor([acounts], on_progress=tell)
    assert [message.content for message in executor.execute_all([call("acounts", "a", to=5), call("acounts", "b", to=5)])] == ["done"] * 2
    assert [value for call_id, value in told if call_id == "b"] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("is_async", [False, True])
async def test_closing_a_batch_tells_no_more_progress(is_async: bool) -> None:
    """What a tool reports while its batch is being closed comes to nobody."""
    told: Told = []

    async def goes_on(context: ToolContext) -> None:
        """Report when cancelled."""
        context.report("started")
        try:
            await asyncio.sleep(30)
        finally:
            context.report("cancelled")

    def quick() -> str:
        """End at once."""
        while not told:
            time.sleep(0.001)
        return "done"

    executor = ToolExecutor([quick, goes_on], on_progress=listener(told))
    calls = [call("quick", "a"), call("goes_on", "b")]
    if is_async:
        async with executor.astream(calls) as results:
            await anext(results)
    else:
        with executor.stream(calls) as batch:
            next(batch)
    assert told == [("b", "started")]


def test_a_listener_must_be_a_function() -> None:
    """What cannot be called is refused by name, at construction and at a call."""
    with pytest.raises(ConfigurationError, match="on_progress must be a function"):
        ToolExecutor([counts], on_progress="yes")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="on_progress must be a function"):
        ToolExecutor([counts]).execute_all([], on_progress=1)
