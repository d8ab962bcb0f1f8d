"""Readers of events who leave: whatever the run is doing, it ends, with its connections, threads and tasks, and nothing odd is raised."""

from __future__ import annotations

import asyncio
import gc
import itertools
import logging
import random
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import strategies as st
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableLambda

from langchain_autotools import LimitReachedError, StreamError, aevents, events
from langchain_autotools.event_types import RunEvent, TextDelta
from langchain_autotools.executor import user_functions
from tests.laws.stories import Script
from tests.laws.ways import QUESTION, chat, law, serving
from tests.laws.workshop import Workshop
from tests.support.http_server import Gate
from tests.support.random_runs import random_run, settled, stream_of, told_of
from tests.support.random_tools import Around
from tests.support.script import Call, Turn

WAIT = 20
OF_RUNS = (OSError, StreamError, LimitReachedError)
"""What random runs may fail by, also while they are left: a chain of LangChain's may then have dropped its generator already."""
SHAPES = {"model": lambda model: model, "function": lambda model: model | RunnableLambda(lambda message: message)}


@contextmanager
def nothing_odd() -> Iterator[None]:
    """Nothing is raised where nobody can catch it, and no thread of a tool goes on."""
    odd: list[str] = []
    before = busy()
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: odd.append(record.getMessage())  # type: ignore[method-assign]
    hooks = sys.unraisablehook, threading.excepthook
    sys.unraisablehook = lambda args: None if isinstance(args.exc_value, OF_RUNS) else odd.append(repr(args.exc_value))
    threading.excepthook = lambda args: odd.append(repr(args.exc_value))
    loggers = [logging.getLogger(name) for name in ("asyncio", "langchain_autotools")]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
        gc.collect()
        wait_until_idle(before)
    finally:
        sys.unraisablehook, threading.excepthook = hooks
        for logger in loggers:
            logger.removeHandler(handler)
    assert odd == []


def busy() -> set[threading.Thread]:
    """The threads of ours that are at work."""
    return {one for one in threading.enumerate() if one.name == "autotools-tool" and one not in user_functions._free}


def wait_until_idle(before: set[threading.Thread]) -> None:
    """Every thread of ours waits for work or has ended, but for those that were at work before."""
    never = threading.Event()
    for _ in range(WAIT * 100):
        if not busy() - before:
            return
        never.wait(0.01)
    pytest.fail(f"{len(busy() - before)} threads go on")


@law(5, 1500)
def test_a_reader_may_leave_at_any_event(data: st.DataObject) -> None:
    """Closed after any number of events, a random run ends without a word more."""
    run = random_run(data.draw(st.integers(0, 2**32)))
    with nothing_odd():
        left = told_of(replace(run, leave_after=data.draw(st.integers(1, 40))))
    assert len(left.events) <= (left.run.leave_after or 0)


@law(5, 1500)
def test_a_task_that_reads_may_be_cancelled_at_any_time(data: st.DataObject) -> None:
    """Cancelled between any two steps of its loop, it raises `CancelledError` and leaves no task behind."""
    draw = random.Random(data.draw(st.integers(0, 2**32)))
    way = draw.choice(["astream", "alambda", "aagent", "achain"])
    run = random_run(draw.randrange(2**32), way)
    with nothing_odd():
        asyncio.run(cancelled(run, steps=draw.choice([0, 1, 2, 5, 10, 30, 100])))


async def cancelled(run: Any, steps: int) -> None:
    """Read a run in a task, which is cancelled after some steps of the loop."""
    around = Around()
    told: list[RunEvent] = []

    async def read() -> None:
        async for event in aevents(stream_of(run, run.model.made(around), around)):
            told.append(event)

    task = asyncio.create_task(read())
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    try:
        await asyncio.wait([task], timeout=WAIT)
        assert task.done()
        assert task.cancelled() or task.exception() is not None or task.result() is None
    finally:
        around.release.set()
    del task  # it knows where it was cancelled, and so all that was at work there
    await settled()


@pytest.mark.parametrize(("way", "shape"), [("close", "model"), *itertools.product(["aclose", "cancel"], SHAPES)])
def test_a_reader_who_leaves_ends_the_connection(way: str, shape: str) -> None:
    """The server waits with its next event; it sees the connection end instead, in a first turn and in a later one."""
    for turns in (0, 1):
        gate = Gate()
        before = [Turn("Wait.", [Call("tell_time")])][:turns]
        with serving(Script([*before, Turn("abcdefghij", characters=2, holds={3: gate})])) as server, nothing_odd():
            chain = SHAPES[shape](chat(server, tools=Workshop().tools()))
            if way == "close":
                leave(chain)
            else:
                asyncio.run(aleave(chain, way))
            held = server.exchanges[-1]
            assert held.disconnected.wait(WAIT)
            assert not held.finished.is_set() and not gate.opened.is_set()


def leave(chain: Any) -> None:
    """Read up to a text, then close."""
    stream = events(chain.stream([QUESTION]))
    assert any(isinstance(event, TextDelta) and event.text == "cd" for event in stream)
    stream.close()
    assert list(stream) == []


async def aleave(chain: Any, way: str) -> None:
    """Read up to a text, then close, or be cancelled."""
    stream = aevents(chain.astream([QUESTION]))
    there = asyncio.Event()

    async def read() -> None:
        async for event in stream:
            if isinstance(event, TextDelta) and event.text == "cd":
                there.set()
                if way == "aclose":
                    return
        raise AssertionError("nobody left")

    task = asyncio.create_task(read())
    async with asyncio.timeout(WAIT):
        await there.wait()
        if way == "cancel":
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            await task
            await stream.aclose()
            assert [event async for event in stream] == []
    del task
    await settled()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("way", ["close", "aclose", "cancel"])
def test_a_reader_who_leaves_cancels_the_tools_that_run(way: str, shape: str) -> None:
    """A coroutine is cancelled; no further request is made."""
    begun, ended = threading.Event(), threading.Event()

    async def wait() -> str:
        """Wait for ever."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    async def aread(chain: Any) -> None:
        stream = aevents(chain.astream([QUESTION]))
        task = asyncio.ensure_future(anext(stream))
        async with asyncio.timeout(WAIT):
            while not begun.is_set():
                await asyncio.wait([task], timeout=0.01)
                if task.done() and not begun.is_set():
                    task = asyncio.ensure_future(anext(stream))
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
            await stream.aclose()

    def quick() -> str:
        """Be quick."""
        assert begun.wait(WAIT)
        return "quick"

    with serving(Script([Turn("Look.", [Call("wait"), Call("quick")])])) as server, nothing_odd():
        chain = SHAPES[shape](chat(server, tools=[wait, quick]))
        if way == "close":
            stream = events(chain.stream([QUESTION]))
            assert any(type(event).__name__ == "CallResult" for event in stream)
            stream.close()
        else:
            asyncio.run(aread(chain))
        assert ended.wait(WAIT)
        assert len(server.exchanges) == 1


class WaitsAtTheEnd(AsyncCallbackHandler):
    """A callback handler that is not done with a reply until it is let go on."""

    def __init__(self) -> None:
        self.there, self.goes_on = asyncio.Event(), asyncio.Event()

    async def on_llm_end(self, *_: Any, **__: Any) -> None:
        """Wait."""
        self.there.set()
        await self.goes_on.wait()


@pytest.mark.parametrize("calls", [[Call("tell_time")], []], ids=["tools", "no tools"])
@pytest.mark.parametrize("shape", SHAPES)
async def test_a_task_that_is_cancelled_while_a_handler_works_leaves_nothing(shape: str, calls: list[Call]) -> None:
    """The reply is whole and its reader is gone: the cancellation stays what ends the run, and every generator of a chain is closed."""
    handler = WaitsAtTheEnd()
    with serving(Script([Turn("Look.", calls)])) as server, nothing_odd():
        tools = {"tools": Workshop().tools()} if calls else {}
        stream = aevents(SHAPES[shape](chat(server, **tools, callbacks=[handler])).astream([QUESTION]))

        async def read() -> None:
            async for _ in stream:
                pass

        task = asyncio.create_task(read())
        async with asyncio.timeout(WAIT):
            await handler.there.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        handler.goes_on.set()
        del task
        await settled()
        assert len(server.exchanges) == 1


@pytest.mark.parametrize("way", ["close", "aclose"])
def test_a_chain_that_is_left_asks_and_runs_nothing_more(way: str) -> None:
    """LangChain's chains read on when they are closed; the run in them ends all the same."""
    workshop = Workshop()
    with serving(Script([Turn("abcdefghij", [Call("tell_time")], characters=2)])) as server, nothing_odd():
        chain = chat(server, tools=workshop.tools()) | StrOutputParser()
        if way == "close":
            leave(chain)
        else:
            asyncio.run(aleave(chain, way))
        assert len(server.exchanges) == 1
    assert workshop.ran == []
