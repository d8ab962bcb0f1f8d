"""Generator tools: with `ToolPolicy(progress=True)` what they yield is progress; without it they are what they were."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from langchain_core.tools import BaseTool, ToolException, tool

from langchain_autotools import ToolContext, ToolExecutor, ToolPolicy
from tests.support.calls import call, contents, run_calls
from tests.unit.executor.test_reports import Told, listener

PROGRESS = ToolPolicy(progress=True)


def counts(to: int) -> Iterator[int]:
    """Count, and return a sentence."""
    yield from range(to)
    return f"counted to {to}"


def last(to: int) -> Iterator[int]:
    """Count, and return nothing."""
    yield from range(to)


@tool
async def acounts(to: int) -> AsyncIterator[int]:
    """Count on an event loop."""
    for number in range(to):
        await asyncio.sleep(0)
        yield number


async def with_context(to: int, context: ToolContext) -> AsyncIterator[Any]:
    """Yield and report."""
    context.report("reported")
    yield context.call.id
    yield to


class OfClass(BaseTool):
    """A class whose methods are generators."""

    name: str = "of_class"
    description: str = "A class."

    def _run(self, to: int) -> Any:
        yield from range(to)
        return "run"

    async def _arun(self, to: int) -> Any:  # type: ignore[override]
        for number in range(to):
            yield number


@tool(response_format="content_and_artifact")
def with_artifact(to: int) -> Any:
    """Return content and artifact."""
    yield "half"
    return f"counted to {to}", [to]


def plain(to: int) -> list[int]:
    """Return a list."""
    return list(range(to))


TOOLS = [counts, last, acounts, with_context, OfClass(), with_artifact, plain]
WANTED = {
    "counts": ([0, 1, 2], "counted to 3"),
    "last": ([0, 1, 2], "2"),
    "acounts": ([0, 1, 2], "2"),
    "with_context": (["reported", "1", 3], "3"),
    "with_artifact": (["half"], "counted to 3"),
    "plain": ([], "[0, 1, 2]"),
}


@pytest.mark.parametrize("name", WANTED)
@pytest.mark.parametrize("is_async", [False, True])
async def test_what_a_generator_yields_is_progress(is_async: bool, name: str) -> None:
    """Its return value is the result, else the last thing it yields; the policy may be the default one."""
    told: Told = []
    executor = ToolExecutor(TOOLS, default_policy=PROGRESS, on_progress=listener(told))
    assert await run_calls(executor, is_async, call(name, to=3)) == [WANTED[name][1]]
    assert [value for _, value in told] == WANTED[name][0]


@pytest.mark.parametrize("is_async", [False, True])
async def test_the_methods_of_a_class_may_be_generators(is_async: bool) -> None:
    """Each form of the tool where it is the one that runs."""
    told: Told = []
    executor = ToolExecutor([OfClass()], policies={"of_class": PROGRESS}, on_progress=listener(told))
    assert await run_calls(executor, is_async, call("of_class", to=2)) == ["1" if is_async else "run"]
    assert [value for _, value in told] == [0, 1]


def test_without_the_policy_generators_are_what_they_were() -> None:
    """A generator is read into a list, an asynchronous one is an error, and nothing is reported."""
    told: Told = []
    executor = ToolExecutor([counts, acounts], on_progress=listener(told))
    listed, failed = contents(executor, call("counts", "a", to=2), call("acounts", "b", to=2))
    assert listed == "[0, 1]" and "unfinished 'async_generator'" in failed and told == []


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_generator_that_yields_nothing_gives_nothing(is_async: bool) -> None:
    """Its result says that there is no output."""
    executor = ToolExecutor([last, acounts], default_policy=PROGRESS)
    assert await run_calls(executor, is_async, call("last", "a", to=0), call("acounts", "b", to=0)) == ["(no output)"] * 2


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_generator_that_raises_is_an_error_after_its_progress(is_async: bool) -> None:
    """What it yielded was told; the model is told the error."""
    told: Told = []

    def breaks() -> Iterator[int]:
        """Break."""
        yield 1
        raise ToolException("broken")

    executor = ToolExecutor([breaks], default_policy=PROGRESS, on_progress=listener(told))
    assert await run_calls(executor, is_async, call("breaks")) == ['{"error": "broken"}']
    assert told == [("1", 1)]


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_generator_that_is_given_up_ends_at_its_next_yield(is_async: bool) -> None:
    """Its thread does not go on for ever, and what it holds is released."""
    closed = threading.Event()

    def endless() -> Iterator[int]:
        """Yield for ever."""
        try:
            while True:
                time.sleep(0.001)
                yield 1
        finally:
            closed.set()

    executor = ToolExecutor([endless], default_policy=ToolPolicy(progress=True, timeout=0.05))
    assert await run_calls(executor, is_async, call("endless")) == ['{"error": "timed out after 0.05 s"}']
    assert await asyncio.to_thread(closed.wait, 5)


@pytest.mark.parametrize("is_async", [False, True])
async def test_an_asynchronous_generator_that_is_cancelled_is_closed(is_async: bool) -> None:
    """Its `finally` has run when its answer is there."""
    closed = threading.Event()

    async def waits() -> AsyncIterator[int]:
        """Wait for long."""
        try:
            yield 1
            await asyncio.sleep(30)
        finally:
            closed.set()

    executor = ToolExecutor([waits], default_policy=ToolPolicy(progress=True, timeout=0.05))
    assert await run_calls(executor, is_async, call("waits")) == ['{"error": "timed out after 0.05 s"}']
    assert closed.is_set()
