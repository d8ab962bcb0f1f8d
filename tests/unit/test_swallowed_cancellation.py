"""A reply whose library swallows a cancellation, as cleaning up in a scope of its own may do, ends at its deadline all the same."""

import asyncio
from collections.abc import AsyncIterator
from threading import Event, Timer
from typing import Any

import pytest
from langchain_core.messages import AIMessageChunk

from langchain_autotools import stop_reason
from langchain_autotools.testing import ScriptedChatModel


class Swallowing(ScriptedChatModel):
    """A model whose first cancellation has no effect."""

    async def araw_stream(self, messages: Any, stop: Any = None, **kwargs: Any) -> AsyncIterator[AIMessageChunk]:
        """Wait for ever, twice."""
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.Event().wait()
        yield AIMessageChunk("Never.")


async def test_a_swallowed_cancellation_is_made_again() -> None:
    """With and without tools, at a deadline and when the caller cancels; the task itself is not cancelled by it."""
    async with asyncio.TaskGroup() as group:
        for tools in ({}, {"look": lambda: "seen"}):
            for end in ("deadline", "cancelled"):
                group.create_task(_made_again(tools, end))


async def _made_again(tools: dict[str, Any], end: str) -> None:
    flag = Event()
    Timer(0.05, flag.set).start()
    keywords: dict[str, Any] = {"deadline": 0.05} if end == "deadline" else {"cancel": flag}
    model = Swallowing(replies=["Never."], tools=tools)
    assert stop_reason(await model.ainvoke("Hi", **keywords)) == end
    task = asyncio.current_task()
    assert task is not None and task.cancelling() == 0


class Miscounting(ScriptedChatModel):
    """A model whose library cancels the task too while it cleans up, and does not take that back."""

    async def araw_stream(self, messages: Any, stop: Any = None, **kwargs: Any) -> AsyncIterator[AIMessageChunk]:
        """Wait for ever."""
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            assert task is not None
            task.cancel("Cancelled via cancel scope 1234")
            raise
        yield AIMessageChunk("Never.")


@pytest.mark.parametrize("tools", [[], [print]], ids=["no tools", "tools"])
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_cancellation_that_a_library_leaves_is_not_the_callers(tools: list[Any], streamed: bool) -> None:
    """The run ends at its deadline, and no `CancelledError` leaves it."""
    model = Miscounting(replies=["Never."], tools={"look": lambda: "seen"} if tools else [])
    if streamed:
        chunks = [chunk async for chunk in model.astream("Hi", deadline=0.05)]
        assert stop_reason(chunks[-1]) == "deadline"
    else:
        assert stop_reason(await model.ainvoke("Hi", deadline=0.05)) == "deadline"
    task = asyncio.current_task()
    assert task is not None and task.cancelling() == 0


@pytest.mark.parametrize("tools", [[], [print]], ids=["no tools", "tools"])
async def test_a_cancellation_by_the_caller_stays_one(tools: list[Any]) -> None:
    """Also where the deadline comes while the step that the caller has cancelled cleans up."""
    model = Swallowing(replies=["Never."], tools={"look": lambda: "seen"} if tools else [])
    task = asyncio.create_task(model.ainvoke("Hi", deadline=0.2))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
