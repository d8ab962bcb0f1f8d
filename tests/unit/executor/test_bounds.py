"""What a model or a program asks for in great numbers stays bounded: names, threads."""

import asyncio
import threading
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from langchain_autotools import ToolExecutor, ToolPolicy, new_messages
from langchain_autotools.executor import user_functions
from langchain_autotools.testing import ScriptedChatModel
from tests.support.calls import call


def x() -> str:
    """A tool."""
    return "ran"


@pytest.mark.parametrize("name", ["functions." * 25_000 + "x", "mcp_" * 60_000 + "x", "_tool" * 50_000, "x" + ":1" * 100_000])
def test_a_name_of_any_length_is_judged_in_little_memory(name: str) -> None:
    """Quadratic work on such a name would take minutes, and hundreds of megabytes."""
    executor = ToolExecutor([x])
    tracemalloc.start()
    assert executor.find(name) is None
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50 * len(name)


def test_what_stands_after_a_special_token_may_be_of_any_length() -> None:
    """A model that leaks its channel text into the name still means the tool before it."""
    tool = ToolExecutor([x]).find("functions.x<|channel|>" + "functions." * 100_000)
    assert tool is not None and tool.name == "x"


def test_a_call_without_a_name_is_no_tools() -> None:
    """Also where a tool's name is nothing but signs that spellings differ in."""
    executor = ToolExecutor({"_": x})
    assert executor.find("") is executor.find(" ") is None
    assert executor.find("-") is executor.find("_") is not None


# ---------------------------------------------------------------------------------------------- threads


def synchronously(executor: ToolExecutor, calls: list[Any]) -> list[Any]:
    """What the results of a synchronous run say."""
    return [message.content for message in executor.execute_all(calls)]


def asynchronously(executor: ToolExecutor, calls: list[Any]) -> list[Any]:
    """The same of an asynchronous one."""
    return [message.content for message in asyncio.run(executor.aexecute_all(calls))]


Way = Callable[[ToolExecutor, list[Any]], list[Any]]
both_ways = pytest.mark.parametrize("way", [synchronously, asynchronously])


class Counted:
    """A tool that knows how many of it ran at a time."""

    def __init__(self) -> None:
        self.most = self._running = 0
        self._lock = threading.Lock()

    def look(self) -> str:
        """Look."""
        with self._lock:
            self._running += 1
            self.most = max(self.most, self._running)
        time.sleep(0.002)
        with self._lock:
            self._running -= 1
        return "seen"


@pytest.mark.further
@both_ways
def test_a_thousand_calls_share_the_threads_that_there_may_be(way: Way) -> None:
    """1,000 calls of one turn are all answered, by no more threads than the default allows."""
    counted = Counted()
    assert way(ToolExecutor([counted.look]), [call("look")] * 1000) == ["seen"] * 1000
    assert 1 < counted.most <= ToolExecutor.max_threads


@pytest.mark.further
async def test_hundreds_of_runs_share_them_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is the process's: of runs at once, each with one call, further ones wait."""
    monkeypatch.setattr(ToolExecutor, "max_threads", 8)
    counted = Counted()
    asks = AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "1"}])
    model = ScriptedChatModel(tools=[counted.look], replies=lambda messages, **_: "Done." if messages[1:] else asks)
    runs = await asyncio.gather(*(model.ainvoke("Hi") for _ in range(300)))
    assert {new_messages(run)[1].content for run in runs} == {"seen"}
    assert 1 < counted.most <= 8


def test_a_tool_with_a_time_limit_counts_for_as_long_as_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many callers with one call each, no more tools run than there may be threads."""
    monkeypatch.setattr(ToolExecutor, "max_threads", 2)
    counted = Counted()
    executor = ToolExecutor([counted.look], default_policy=ToolPolicy(timeout=60))
    callers = [threading.Thread(target=executor.execute_all, args=([call("look")],)) for _ in range(20)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)
    assert counted.most <= 2


@both_ways
@pytest.mark.parametrize("timeout", [None, 60])
def test_runs_inside_tools_go_on_where_all_threads_are_taken(way: Way, timeout: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of six tools runs three tools that each run three, with two threads for each depth."""
    monkeypatch.setattr(ToolExecutor, "max_threads", 2)
    leaf = ToolExecutor([x], default_policy=ToolPolicy(timeout=timeout))

    def middle() -> str:
        """Run three."""
        return "".join(map(str, synchronously(leaf, [call("x")] * 3)))

    inner = ToolExecutor([middle], default_policy=ToolPolicy(timeout=timeout))

    def outer() -> str:
        """Run three that run three."""
        return "".join(map(str, way(inner, [call("middle")] * 3)))

    assert way(ToolExecutor([outer], default_policy=ToolPolicy(timeout=timeout)), [call("outer")] * 6) == ["ran" * 9] * 6


@both_ways
@pytest.mark.parametrize("refused", [False, True])
def test_tools_that_lose_their_context_in_threads_of_their_own_go_on_too(way: Way, refused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """There nobody can know who waits for whom: when nothing moves, there is one thread more. (A watch that was refused is tried again.)"""
    start, watches = threading.Thread.start, ["refused"] if refused else []

    def refuse_one(thread: threading.Thread) -> None:
        if thread.name == "autotools-tool-watch" and watches:
            raise RuntimeError(f"can't start new thread: {watches.pop()}")
        start(thread)

    monkeypatch.setattr(ToolExecutor, "max_threads", 2)
    monkeypatch.setattr(user_functions, "_STALLED_SECONDS", 0.05)
    monkeypatch.setattr(threading.Thread, "start", refuse_one)
    user_functions._watched = False  # one of an earlier test may still sleep
    inner = ToolExecutor([x])

    def outer() -> str:
        """Run a tool from a thread without context."""
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.extend(synchronously(inner, [call("x")] * 2)))
        thread.start()
        thread.join(60)
        return "".join(found)

    assert way(ToolExecutor([outer]), [call("outer")] * 4) == ["ranran"] * 4
    until = time.monotonic() + 10
    while any(depth.running for depth in user_functions._depths.values()) and time.monotonic() < until:
        time.sleep(0.01)
    assert [depth.running for depth in user_functions._depths.values() if depth.running] == []  # the threads that came later count once


@both_ways
def test_a_tool_that_is_given_up_keeps_no_other_from_running(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that hangs is not counted any more; a call that waits for a thread does not use up its time."""
    monkeypatch.setattr(ToolExecutor, "max_threads", 1)
    release = threading.Event()

    def hang() -> str:
        """Hang."""
        release.wait(60)
        return "late"

    executor = ToolExecutor([hang, x], policies={"hang": ToolPolicy(timeout=0.2), "x": ToolPolicy(timeout=60)})
    results = way(executor, [call("hang"), call("hang"), call("x")])
    release.set()
    assert [("timed out" in str(one), one) for one in results][2] == (False, "ran")
    assert ["timed out" in str(one) for one in results] == [True, True, False]


@both_ways
def test_a_call_that_is_cancelled_while_it_waits_never_runs(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deadline answers it, and a thread that becomes free later finds nothing of it."""
    monkeypatch.setattr(ToolExecutor, "max_threads", 1)
    release, ran = threading.Event(), []

    def hang(number: int) -> str:
        """Hang."""
        ran.append(number)
        release.wait(60)
        return "late"

    executor = ToolExecutor([hang])
    calls = [call("hang", number=number) for number in range(3)]
    if way is synchronously:
        results = [message.content for message in executor.execute_all(calls, deadline=0.3)]
    else:
        results = [message.content for message in asyncio.run(executor.aexecute_all(calls, deadline=0.3))]
    release.set()
    time.sleep(0.05)
    assert ran == [0]
    assert ["time for this run is over" in str(one) for one in results] == [True] * 3


@both_ways
@pytest.mark.parametrize("timeout", [None, 60])
def test_where_no_thread_can_be_started_calls_are_answered(way: Way, timeout: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """They run one after another in the caller's thread, or are answered with an error where that cannot be; nothing raw is raised."""
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name.startswith("autotools-tool"):
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(user_functions, "_free", [])
    monkeypatch.setattr(threading.Thread, "start", refuse)
    results = way(ToolExecutor([x], default_policy=ToolPolicy(timeout=timeout)), [call("x")] * 3)
    if way is synchronously and timeout is None:
        assert results == ["ran"] * 3
    else:
        assert ["no thread can be started" in str(one) for one in results] == [True] * 3


def test_where_no_thread_can_be_started_an_error_of_a_listener_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for workers that never began."""
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name.startswith("autotools-tool"):
            raise RuntimeError("can't start new thread")
        start(thread)

    def forbid(_: Any) -> None:
        raise PermissionError("stop")

    monkeypatch.setattr(user_functions, "_free", [])
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(PermissionError):
        ToolExecutor([x], on_executing=forbid).execute_all([call("x")] * 3)


@both_ways
def test_a_call_whose_listener_took_all_the_time_does_not_run(way: Way) -> None:
    """The deadline is looked at once more just before the tool would begin."""
    ran = []

    def note() -> str:
        """Note."""
        ran.append("ran")
        return "ran"

    executor = ToolExecutor([note], on_executing=lambda _: time.sleep(0.1))
    if way is synchronously:
        results = executor.execute_all([call("note")] * 2, deadline=0.05)
    else:
        results = asyncio.run(executor.aexecute_all([call("note")] * 2, deadline=0.05))
    assert ["time for this run is over" in str(one.content) for one in results] == [True, True]
    assert ran == []


def test_what_waits_is_begun_as_soon_as_a_thread_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the system refused one more than once, and nothing else runs that could take it over."""
    start, release, attempts = threading.Thread.start, threading.Event(), []

    def refuse_some(thread: threading.Thread) -> None:
        if thread.name == "autotools-tool":
            attempts.append(thread)
            if 1 < len(attempts) < 5:
                raise RuntimeError("can't start new thread")
        start(thread)

    def hang() -> str:
        """Hang."""
        release.wait(60)
        return "late"

    monkeypatch.setattr(ToolExecutor, "max_threads", 1)
    monkeypatch.setattr(user_functions, "_STALLED_SECONDS", 0.1)
    monkeypatch.setattr(user_functions, "_free", [])
    monkeypatch.setattr(threading.Thread, "start", refuse_some)
    user_functions._watched = False  # one of an earlier test may still sleep
    results = asynchronously(ToolExecutor([hang, x], policies={"hang": ToolPolicy(timeout=0.05)}), [call("hang"), call("x")])
    release.set()
    assert results[1] == "ran"
    assert len(attempts) == 5


async def test_a_tool_that_runs_tools_does_not_wait_for_its_own_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where calls run one after another, in a thread because the caller's has an event loop, the tools of a tool have another."""
    monkeypatch.setattr(ToolExecutor, "max_threads", 1)
    monkeypatch.setattr(user_functions, "_STALLED_SECONDS", 60)
    inner = ToolExecutor([x], default_policy=ToolPolicy(timeout=60))

    def outer() -> str:
        """Run a tool."""
        return "".join(map(str, synchronously(inner, [call("x")])))

    assert synchronously(ToolExecutor([outer], parallel=False), [call("outer")]) == ["ran"]


def test_a_call_whose_arguments_are_text_does_not_run() -> None:
    """Only a mapping is arguments, whatever the call is said to be."""
    (message,) = ToolExecutor([x]).execute_all([{"name": "x", "args": "oops", "id": "1"}])
    assert "not one complete JSON object" in str(message.content)
