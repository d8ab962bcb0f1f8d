"""Streams that are left: they end, and nothing is printed."""

import asyncio
import gc
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnablePassthrough

from langchain_autotools import Agent, aevents, events
from langchain_autotools.testing import ScriptedChatModel

ASKS = AIMessage("Let me look.", tool_calls=[{"name": "look", "args": {}, "id": "1"}])


async def look() -> str:
    """Look."""
    await asyncio.sleep(0.002)
    return "seen"


def model(**fields: Any) -> ScriptedChatModel:
    """A model that looks again and again."""
    return ScriptedChatModel(tools=[look], replies=lambda *_, **__: ASKS, no_progress=None, **fields)


def talker() -> ScriptedChatModel:
    """A model without tools."""
    return ScriptedChatModel(replies=["one two three four five six"])


STREAMS: dict[str, Callable[[], Any]] = {
    "events of a model": lambda: aevents(model().astream("Hi")),
    "events of a model without tools": lambda: aevents(talker().astream("Hi")),
    "events of a chain": lambda: aevents((RunnablePassthrough() | talker()).astream("Hi")),
    "events of an agent": lambda: aevents(Agent(model()).arun_stream("Hi")),
    "an agent": lambda: Agent(model()).arun_stream("Hi"),
    "a model": lambda: model().astream("Hi"),
    "a model with a deadline": lambda: model(deadline=60).astream("Hi"),
    "a reply with a deadline": lambda: talker().astream("Hi", deadline=60),
}


async def broken_off(stream: Any, after: int) -> None:
    """Leave a stream by `break`."""
    async for _ in stream:
        after -= 1
        if not after:
            break


async def out_of_time(stream: Any, after: int) -> None:
    """Leave a stream where a timeout ends the loop, in its body or while it waits."""
    try:
        async with asyncio.timeout(0.002 * after):
            async for _ in stream:
                await asyncio.sleep(0.001)
    except TimeoutError:
        pass


async def failed(stream: Any, after: int) -> None:
    """Leave a stream by an exception."""
    try:
        async for _ in stream:
            after -= 1
            if not after:
                raise LookupError
    except LookupError:
        pass


@pytest.mark.parametrize("leave", [broken_off, out_of_time, pytest.param(failed, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("stream", STREAMS)
async def test_the_event_loop_hears_of_no_error(leave: Callable[..., Any], stream: str) -> None:
    """Wherever a stream is left, what runs in it is closed in order, with no help of the garbage collector or with it."""
    heard: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context))
    for after in range(1, 6):
        await leave(STREAMS[stream](), after)
        gc.collect()
        await asyncio.sleep(0)
        await asyncio.sleep(0.002)
    gc.collect()
    await asyncio.sleep(0.01)
    assert heard == []
    assert asyncio.all_tasks() == {asyncio.current_task()}


def test_a_stream_of_events_that_is_left_ends_at_once() -> None:
    """No collection of garbage is needed: the stream inside is closed as soon as nobody has its events."""
    gc.disable()
    try:
        stream = model().stream("Hi")
        next(events(stream))
        assert list(stream) == []
    finally:
        gc.enable()


PROGRAM = """
import asyncio
from tests.unit.test_left_streams import STREAMS, broken_off, failed, out_of_time

async def program():
    for make in STREAMS.values():
        for leave in (broken_off, out_of_time, failed):
            for after in (1, 3):
                await leave(make(), after)
    await asyncio.sleep(0.05)

asyncio.run(program())
for name in ("events of a model", "events of a model without tools", "an agent", "a model"):
    asyncio.run(broken_off(STREAMS[name](), 1))
"""


@pytest.mark.exhaustive
def test_a_program_that_leaves_streams_prints_nothing() -> None:
    """Also one whose event loop ends right after a reply was left."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=True)
    assert (done.stdout, done.stderr) == ("", "")
