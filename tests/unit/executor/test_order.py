"""ToolExecutor: several calls at once, their order, and callers that are synchronous or not."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage

from langchain_autotools.errors import ConfigurationError
from langchain_autotools.executor import ToolExecutor


def calls(*names: str) -> list[dict[str, Any]]:
    """One call of each named tool, without arguments."""
    return [{"name": name, "args": {}, "id": f"call_{position}"} for position, name in enumerate(names)]


def contents(messages: list[ToolMessage]) -> list[Any]:
    """What the messages say."""
    return [message.content for message in messages]


async def test_three_parallel_tools_meet_at_one_barrier() -> None:
    """Calls of one turn run side by side: each waits until all three are there."""
    barrier = threading.Barrier(3, timeout=20)

    def meet(who: str) -> str:
        barrier.wait()
        return who

    executor = ToolExecutor([meet])
    turn = [{"name": "meet", "args": {"who": who}, "id": who} for who in "abc"]
    assert contents(executor.execute_all(turn)) == ["a", "b", "c"]
    assert contents(await executor.aexecute_all(turn)) == ["a", "b", "c"]


async def test_three_parallel_async_tools_meet_at_one_barrier() -> None:
    """Asynchronous tools run side by side too, on the caller's loop or on the background loop."""
    waiting: list[asyncio.Event] = []

    async def meet(who: str) -> str:
        own = asyncio.Event()
        waiting.append(own)
        if len(waiting) == 3:
            for event in waiting:
                event.set()
        await own.wait()
        return who

    executor = ToolExecutor([meet])
    turn = [{"name": "meet", "args": {"who": who}, "id": who} for who in "abc"]
    assert contents(await executor.aexecute_all(turn)) == ["a", "b", "c"]
    waiting.clear()
    assert contents(executor.execute_all(turn)) == ["a", "b", "c"]


async def test_results_come_in_call_order_each_as_soon_as_those_before_it_are_done() -> None:
    """The first result is delivered while a later call still runs; a later one waits for an earlier one."""
    first, last = threading.Event(), threading.Event()

    def early() -> str:
        return "early"

    def slow() -> str:
        assert last.wait(20)
        return "slow"

    def quick() -> str:
        first.set()
        return "quick"

    results = ToolExecutor([early, slow, quick]).stream(calls("early", "slow", "quick"))
    assert next(results).message.content == "early"
    assert first.wait(20)  # `quick` has run although `slow`, before it, has not ended
    last.set()
    assert [result.message.content for result in results] == ["slow", "quick"]

    first.clear(), last.clear()
    stream = ToolExecutor([early, slow, quick]).astream(calls("early", "slow", "quick"))
    assert (await anext(stream)).message.content == "early"
    assert await asyncio.to_thread(first.wait, 20)
    last.set()
    assert [result.message.content async for result in stream] == ["slow", "quick"]


def kinds() -> tuple[list[Callable[..., Any]], list[str]]:
    """One tool of each kind, and what each says of the thread it runs in."""

    def plain() -> str:
        return threading.current_thread().name

    async def asynchronous() -> str:
        await asyncio.sleep(0)
        return threading.current_thread().name

    return [plain, asynchronous], ["plain", "asynchronous"]


async def test_sync_and_async_tools_mix_in_an_async_run() -> None:
    """In an asynchronous run, asynchronous tools run on its loop and synchronous ones in other threads."""
    tools, names = kinds()
    own = threading.current_thread().name
    sync_thread, async_thread = contents(await ToolExecutor(tools).aexecute_all(calls(*names)))
    assert async_thread == own
    assert sync_thread != own


def test_sync_and_async_tools_mix_in_a_sync_run() -> None:
    """In a synchronous run, asynchronous tools share one background loop, the same for every run."""
    tools, names = kinds()
    executor = ToolExecutor(tools)
    one = contents(executor.execute_all(calls(*names, "asynchronous")))
    two = contents(executor.execute_all(calls(*names)))
    assert one[1] == one[2] == two[1]
    assert threading.current_thread().name not in (one[1], one[0])


def test_a_single_call_runs_in_the_callers_thread() -> None:
    """One call alone, or calls one after another, need no other thread: tools bound to a thread keep working."""
    own = threading.current_thread().name
    tools, _ = kinds()
    assert contents(ToolExecutor(tools).execute_all(calls("plain"))) == [own]
    assert contents(ToolExecutor(tools, parallel=False).execute_all(calls("plain", "plain"))) == [own, own]


async def test_a_sync_run_inside_an_event_loop_gives_tools_a_thread_without_one() -> None:
    """A tool may use asyncio.run even if its synchronous caller is inside a running loop (a notebook)."""

    def nested() -> str:
        return asyncio.run(answer())

    async def answer() -> str:
        return "nested"

    assert contents(ToolExecutor([nested]).execute_all(calls("nested"))) == ["nested"]


async def test_an_async_tool_may_call_a_sync_run_that_needs_an_async_tool() -> None:
    """A synchronous run inside a tool on the background loop does not wait for its own loop, in that thread or another."""

    async def inner() -> str:
        return "inner"

    executor = ToolExecutor([inner])

    async def outer() -> str:
        return str(executor.execute_all(calls("inner"))[0].content)

    def threaded() -> str:
        return str(executor.execute_all(calls("inner"))[0].content)

    async def outer_of_both() -> str:
        return str(ToolExecutor([inner, threaded]).execute_all(calls("inner", "threaded"))[1].content)

    assert contents(ToolExecutor([outer]).execute_all(calls("outer"))) == ["inner"]
    assert contents(ToolExecutor([outer_of_both]).execute_all(calls("outer_of_both"))) == ["inner"]


@pytest.mark.parametrize("how", [{"parallel": False}, {"max_concurrency": 1}], ids=str)
async def test_one_after_another(how: dict[str, Any]) -> None:
    """Without parallel calls, each begins when the result before it has been taken."""
    ran: list[int] = []

    def note(number: int) -> int:
        ran.append(number)
        return number

    async def anote(number: int) -> int:
        return note(number)

    turn = [{"name": name, "args": {"number": number}, "id": str(number)} for number, name in enumerate(["note", "anote", "note"])]
    executor = ToolExecutor([note, anote], **how)
    for number, result in enumerate(executor.stream(turn)):
        assert ran == list(range(number + 1))
        assert result.message.content == str(number)
    ran.clear()
    number = 0
    async for _ in executor.astream(turn):
        number += 1
        assert ran == list(range(number))


@pytest.mark.parametrize("from_config", [False, True])
async def test_max_concurrency_is_never_exceeded(from_config: bool) -> None:
    """At most so many calls run at the same time, and exactly so many when there are enough."""
    lock, running, most = threading.Lock(), 0, 0
    pairs = threading.Barrier(2, timeout=20)

    def count() -> str:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        pairs.wait()
        with lock:
            running -= 1
        pairs.wait()
        return "ok"

    executor = ToolExecutor([count], max_concurrency=None if from_config else 2)
    config = {"max_concurrency": 2} if from_config else None
    assert contents(executor.execute_all(calls(*["count"] * 6), config)) == ["ok"] * 6  # type: ignore[arg-type]
    assert contents(await executor.aexecute_all(calls(*["count"] * 6), config)) == ["ok"] * 6  # type: ignore[arg-type]
    assert most == 2


def test_of_two_limits_the_lower_one_holds() -> None:
    """The executor's own and the configuration's `max_concurrency` both hold, whichever is lower."""
    barrier = threading.Barrier(2)

    def meet() -> str:
        barrier.wait(0.05)
        return "met"

    for own, configured in ((1, 2), (2, 1)):
        barrier.reset()
        results = ToolExecutor([meet], max_concurrency=own).execute_all(calls("meet", "meet"), {"max_concurrency": configured})
        assert "met" not in contents(results)


def test_a_tool_that_is_replaced_runs_from_then_on() -> None:
    """`tools` is the executor's own mapping: what is there when a call comes is what runs."""
    executor, other = ToolExecutor({"say": lambda: "old"}), ToolExecutor({"say": lambda: "new"})
    assert contents(executor.execute_all(calls("say"))) == ["old"]
    executor.tools["say"] = other.tools["say"]
    assert contents(executor.execute_all(calls("say"))) == ["new"]


def test_law_5_a_hundred_batches_at_once_do_not_mix_in_threads() -> None:
    """A hundred threads share one executor; each gets its own results."""

    def echo(value: str) -> str:
        return value

    async def aecho(value: str) -> str:
        await asyncio.sleep(0)
        return value

    executor = ToolExecutor([echo, aecho])
    found: dict[int, list[Any]] = {}
    start = threading.Barrier(100, timeout=60)

    def run(number: int) -> None:
        start.wait()
        turn = [{"name": name, "args": {"value": f"{number}.{k}"}, "id": str(k)} for k, name in enumerate(["echo", "aecho", "echo"])]
        found[number] = contents(executor.execute_all(turn))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: [f"{number}.0", f"{number}.1", f"{number}.2"] for number in range(100)}


async def test_law_5_a_hundred_batches_at_once_do_not_mix_in_tasks() -> None:
    """A hundred tasks share one executor, even if all their synchronous tools wait for one another."""
    barrier = threading.Barrier(100, timeout=60)

    def echo(value: str) -> str:
        barrier.wait()
        return value

    async def aecho(value: str) -> str:
        return value

    executor = ToolExecutor([echo, aecho])

    async def run(number: int) -> list[Any]:
        turn = [{"name": name, "args": {"value": f"{number}.{k}"}, "id": str(k)} for k, name in enumerate(["echo", "aecho"])]
        return contents(await executor.aexecute_all(turn))

    found = await asyncio.gather(*(run(number) for number in range(100)))
    assert found == [[f"{number}.0", f"{number}.1"] for number in range(100)]


async def test_an_ai_message_is_a_whole_turn() -> None:
    """An AI message is executed call by call, the unreadable ones answered in their place."""

    def double(number: int) -> int:
        return 2 * number

    message = AIMessage(
        content="",
        tool_calls=[{"name": "double", "args": {"number": 4}, "id": "a"}],
        invalid_tool_calls=[{"name": "double", "args": '{"number": 4', "id": "b", "error": "cut off"}],
    )
    executor = ToolExecutor([double])
    for results in (executor.execute_all(message), await executor.aexecute_all(message)):
        assert [(result.tool_call_id, result.status, result.name) for result in results] == [
            ("a", "success", "double"),
            ("b", "error", "double"),
        ]
        assert contents(results) == ["8", '{"error": "cut off"}']
    assert executor.execute_all(AIMessage(content="no calls")) == []
    assert await executor.aexecute_all([]) == []


def test_calls_without_an_id_are_given_one() -> None:
    """A call without an id is answered under an id made of its position."""
    executor = ToolExecutor({"one": lambda: 1})
    assert [message.tool_call_id for message in executor.execute_all([{"name": "one", "args": {}, "id": None}] * 2)] == ["call_0", "call_1"]


def test_something_that_is_no_call_is_refused() -> None:
    """A wrong argument raises before anything runs."""
    with pytest.raises(TypeError, match="a call is a ToolCallRecord or a dict"):
        ToolExecutor([]).execute_all(["add"])  # type: ignore[list-item]


@pytest.mark.parametrize("value", [0, -1, True, 1.5, "2"])
def test_a_concurrency_that_cannot_work_is_refused(value: Any) -> None:
    """max_concurrency is a whole number of at least one."""
    with pytest.raises(ConfigurationError, match="max_concurrency"):
        ToolExecutor([], max_concurrency=value)
