"""Synchronous runs and asynchronous tools that belong to an event loop: where they run, and what happens where they cannot."""

import asyncio
import logging
import pickle
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import pytest
from langchain_core.messages import AIMessage, ToolMessage

from langchain_autotools import ToolExecutor, ToolPolicy, new_messages
from langchain_autotools.executor import batch_drivers
from langchain_autotools.testing import ScriptedChatModel
from tests.support.calls import call

ASKS = AIMessage("", tool_calls=[{"name": "read", "args": {}, "id": "1"}])


class Session:
    """What a session of the Model Context Protocol is to event loops: requests go through streams in memory to a task of its loop."""

    async def __aenter__(self) -> "Session":
        self._asked, self._questions = anyio.create_memory_object_stream[Any](0)
        self._answers, self._answered = anyio.create_memory_object_stream[str](0)
        self._server = asyncio.create_task(self._serve())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.cancel()
        for stream in (self._asked, self._questions, self._answers, self._answered):
            stream.close()

    async def _serve(self) -> None:
        async for question in self._questions:
            await self._answers.send(f"{question} on {id(asyncio.get_running_loop())}")

    async def read(self) -> str:
        """Read."""
        await self._asked.send("read")
        return await self._answered.receive()


@contextmanager
def application() -> Iterator[Callable[[Awaitable[Any]], Any]]:
    """An application's event loop in a thread; gives what runs a coroutine there."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield lambda awaitable: asyncio.run_coroutine_threadsafe(_awaited(awaitable), loop).result(60)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


async def _awaited(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def contents(executor: ToolExecutor, *calls: dict[str, Any]) -> list[Any]:
    """What the results of a synchronous caller say."""
    return [message.content for message in executor.execute_all(calls)]


async def loop_of_tool() -> str:
    """Which loop it runs on."""
    return str(id(asyncio.get_running_loop()))


async def test_a_model_that_was_made_on_a_loop_runs_its_tools_there() -> None:
    """A session of the application's loop answers a synchronous run in a worker thread: a synchronous node under `ainvoke`."""
    async with Session() as session:
        model = ScriptedChatModel(tools=[session.read], replies=[ASKS, "Done."])
        message = await asyncio.wait_for(asyncio.to_thread(model.invoke, "Hi"), 60)
        assert new_messages(message)[1].content == f"read on {id(asyncio.get_running_loop())}"


async def test_side_by_side_and_in_a_run_inside_a_tool() -> None:
    """Several calls at once, and a synchronous tool in a thread that asks another model."""
    here = str(id(asyncio.get_running_loop()))
    inner = ScriptedChatModel(tools={"read": loop_of_tool}, replies=lambda messages, **_: messages[-1].content if messages[1:] else ASKS)

    def ask() -> str:
        """Ask another model."""
        return inner.invoke("Hi").text

    executor = ToolExecutor([loop_of_tool, ask])
    assert await asyncio.to_thread(contents, executor, call("loop_of_tool"), call("ask"), call("ask")) == [here] * 3
    assert [one.content for one in await executor.aexecute_all([call("loop_of_tool"), call("ask")])] == [here] * 2


async def test_on_the_loops_own_thread_another_loop_is_used() -> None:
    """There the loop waits for the run: it cannot run its tools, nor those of a run inside one."""
    here = str(id(asyncio.get_running_loop()))
    inner = ToolExecutor([loop_of_tool])

    def ask() -> str:
        """Ask further."""
        return contents(inner, call("loop_of_tool"))[0]

    assert here not in contents(ToolExecutor([loop_of_tool, ask]), call("loop_of_tool"), call("ask"))


def test_a_tool_that_runs_a_model_on_its_own_loop_never_waits_for_itself() -> None:
    """An asynchronous tool at home that blocks its loop with a synchronous run, whose tools are at home there too."""
    with application() as run:

        async def make() -> ToolExecutor:
            inner = ToolExecutor([loop_of_tool])

            async def block() -> str:
                return contents(inner, call("loop_of_tool"))[0]

            return ToolExecutor({"block": block, "loop_of_tool": loop_of_tool})

        blocked, home = contents(run(make()), call("block"), call("loop_of_tool"))
        assert blocked != home


def test_a_loop_that_does_not_answer_is_not_waited_for() -> None:
    """The application's thread waits for a thread that runs a model: its loop is blocked, so the tool runs elsewhere."""
    with application() as run:

        async def batch() -> tuple[str, list[str]]:
            executor = ToolExecutor([loop_of_tool])
            results: list[str] = []
            thread = threading.Thread(target=lambda: results.extend(contents(executor, call("loop_of_tool"))))
            thread.start()
            thread.join(60)
            return str(id(asyncio.get_running_loop())), results

        here, results = run(batch())
        assert results != []
        assert here not in results


def test_a_loop_that_has_ended_is_forgotten() -> None:
    """Its tools run where tools without a home do; a pickled executor has no home either."""

    async def make() -> ToolExecutor:
        return ToolExecutor([loop_of_tool])

    executor = asyncio.run(make())
    elsewhere = contents(ToolExecutor([loop_of_tool]), call("loop_of_tool"))
    assert contents(executor, call("loop_of_tool")) == elsewhere
    assert contents(pickle.loads(pickle.dumps(executor)), call("loop_of_tool")) == elsewhere


@pytest.mark.parametrize("bound", [{"default_policy": ToolPolicy(timeout=0.5)}, {"deadline": 0.5}], ids=["timeout", "deadline"])
@pytest.mark.parametrize("parallel", [True, False])
def test_a_tool_that_waits_for_another_loop_is_named_and_ended(
    bound: dict[str, Any], parallel: bool, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session of a loop that nobody knows: the warning says which tool, and what to do; timeout and deadline end it."""
    monkeypatch.setattr(batch_drivers, "SLOW_SECONDS", 0.02)
    with application() as run, caplog.at_level(logging.WARNING, "langchain_autotools"):
        session = run(Session().__aenter__())
        settings = {"parallel": parallel, "on_limit": "return", **bound}
        message = ScriptedChatModel(tools=[session.read], replies=[ASKS, "Done."], **settings).invoke("Hi")
        result = new_messages(message)[1]
        assert isinstance(result, ToolMessage)
        assert result.status == "error"
        (warning,) = [record.getMessage() for record in caplog.records if "has not ended" in record.getMessage()]
        assert "tool read has not ended" in warning
        assert "ainvoke or astream" in warning
        run(session.__aexit__())
