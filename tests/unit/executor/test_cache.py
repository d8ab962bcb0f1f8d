"""Calls that need not run twice: what is kept where, for how long, and what runs once for all who ask meanwhile."""

import asyncio
import logging
import os
import shelve
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool

from langchain_autotools import ConfigurationError, RetryPolicy, ToolExecutor, ToolPolicy
from langchain_autotools.executor.policies import CachedCall
from langchain_autotools.messages.calls import ToolCallRecord
from tests.support.calls import Way, asynchronously, both_ways, call, error, synchronously


class Counted:
    """A tool that counts its runs by its arguments."""

    def __init__(self) -> None:
        self.runs: Counter[tuple[int, int]] = Counter()

    def add(self, one: int, other: int = 0) -> str:
        """Add two numbers."""
        self.runs[one, other] += 1
        return str(one + other)

    def executor(self, **policy: Any) -> ToolExecutor:
        """An executor with it, its results kept."""
        return ToolExecutor([self.add], policies={"add": ToolPolicy(**{"cache": True, **policy})})


@both_ways
def test_the_same_call_runs_once(run: Way) -> None:
    """Whatever the order of its arguments; each result is its own call's, and says that nothing ran for it."""
    counted = Counted()
    calls = [call("add", "a", one=1, other=2), call("add", "b", other=2, one=1), call("add", "c", one=2, other=1)]
    results = run(counted.executor(), *calls)
    assert counted.runs == {(1, 2): 1, (2, 1): 1}
    assert [(one.message.content, one.message.tool_call_id, one.call.id) for one in results] == [(f"{3}", name, name) for name in "abc"]
    assert sorted((one.executed, one.attempts) for one in results) == [(False, 0), (True, 1), (True, 1)]


@both_ways
def test_listeners_hear_of_what_runs_and_of_every_result(run: Way) -> None:
    """`on_executing` of the call that runs, `on_executed` of all: a result from the cache has run nothing."""
    told: list[Any] = []
    calls = [call("add", str(number), one=1) for number in range(4)]
    run(Counted().executor(), *calls, on_executing=lambda one: told.append("runs"), on_executed=lambda one: told.append(one.executed))
    assert sorted(map(str, told)) == ["False", "False", "False", "True", "runs"]


@both_ways
def test_results_are_kept_for_one_execution_only(run: Way) -> None:
    """Unless they are given a place: one dict for all turns of a loop of one's own, or the policy's own mapping."""
    counted, kept = Counted(), {}
    executor = counted.executor()
    for options in ({}, {}, {"cache": kept}, {"cache": kept}):
        run(executor, call("add", one=1), **options)
    assert counted.runs == {(1, 0): 3}
    mapping: dict[str, Any] = {}
    for other in (counted.executor(cache=mapping), counted.executor(cache=mapping)):
        run(other, call("add", one=2))
    assert counted.runs == {(1, 0): 3, (2, 0): 1}


@both_ways
def test_a_place_for_results_that_is_none_is_refused(run: Way) -> None:
    """By name."""
    with pytest.raises(ConfigurationError, match="cache must be a mutable mapping, not int"):
        run(Counted().executor(), call("add", one=1), cache=7)


@both_ways
def test_results_on_disk_outlive_the_program(run: Way, tmp_path: Path) -> None:
    """Any mapping will do whose keys may be text: here one of the standard library."""
    counted = Counted()
    for _ in range(2):
        with shelve.open(str(tmp_path / "results")) as kept:
            (result,) = run(counted.executor(cache=kept), call("add", one=1))
            assert result.message.content == "1"
    assert counted.runs == {(1, 0): 1}


@both_ways
def test_errors_are_not_kept(run: Way) -> None:
    """The next call tries again, and a retry does not find the error that it is to get over."""
    times: list[int] = []

    def look() -> str:
        """Look."""
        times.append(1)
        if len(times) < 4:
            raise ConnectionError("lost")
        return "seen"

    policy = ToolPolicy(cache={}, retry=RetryPolicy(attempts=2, wait_scale=0), retry_on=(ConnectionError,))
    executor = ToolExecutor([look], policies={"look": policy})
    results = [run(executor, call("look"))[0] for _ in range(3)]
    assert [(one.message.status, one.attempts) for one in results] == [("error", 2), ("success", 2), ("success", 0)]


@both_ways
def test_who_asks_meanwhile_gets_the_error_too(run: Way) -> None:
    """A tool that fails is not run once more for each who has waited for it."""
    times: list[int] = []
    asked = threading.Barrier(2)

    def look() -> str:
        """Look."""
        times.append(1)
        asked.wait(10)
        raise ConnectionError("lost")

    executor = ToolExecutor([look, Counted().add], policies={"look": ToolPolicy(cache=True)})
    calls = [call("look", "1"), call("look", "2"), call("add", "3", one=1)]
    results = run(executor, *calls, on_executing=lambda one: asked.wait(10) if one.name == "add" else None)
    failures = [one for one in results if one.message.status == "error"]
    assert {error(one) for one in failures} == {"ConnectionError: lost"}
    assert [one.message.tool_call_id for one in failures] == ["1", "2"]
    assert len(times) + sum(not one.executed for one in failures) == 2


@both_ways
def test_a_cache_key_stands_for_the_arguments(run: Way) -> None:
    """Of a tool that is given more than them, and where some of them make no difference."""

    def look(place: str, call_id: Annotated[str, InjectedToolCallId], mood: str = "") -> str:
        """Look."""
        return f"{place} for {call_id}"

    executor = ToolExecutor([look], policies={"look": ToolPolicy(cache=True, cache_key=lambda args: args["place"].lower())})
    calls = [call("look", "1", place="Paris", mood="glad"), call("look", "2", place="PARIS"), call("look", "3", place="Rome")]
    executor.parallel = False
    assert [one.message.content for one in run(executor, *calls)] == ["Paris for 1", "Paris for 1", "Rome for 3"]


@both_ways
@pytest.mark.parametrize(
    ("cache_key", "kind", "words"), [(lambda args: {1}, ConfigurationError, "set"), (lambda args: args["x"], KeyError, "x")]
)
def test_a_cache_key_that_fails_ends_the_run(run: Way, cache_key: Callable[..., Any], kind: type[Exception], words: str) -> None:
    """As a listener does: it is the program's, not the model's."""
    with pytest.raises(kind, match=words):
        run(Counted().executor(cache_key=cache_key), call("add", one=1))


@both_ways
def test_what_a_program_does_to_a_result_does_not_change_what_is_kept(run: Way) -> None:
    """Content blocks are copied on their way in and out."""

    def look() -> list[dict[str, str]]:
        """Look."""
        return [{"type": "text", "text": "seen"}]

    executor = ToolExecutor([look], policies={"look": ToolPolicy(cache={})})
    for _ in range(3):
        (result,) = run(executor, call("look"))
        assert result.message.content == [{"type": "text", "text": "seen"}]
        result.message.content[0]["text"] = "changed"  # type: ignore[index]


@both_ways
def test_what_is_kept_is_whole(run: Way) -> None:
    """Each policy shortens for itself, and the artifact comes along."""
    tool = StructuredTool.from_function(
        lambda: ("x" * 500, {"rows": 7}), name="read", description="Read.", response_format="content_and_artifact"
    )
    kept: dict[str, Any] = {}
    for limit in (300, 400, None):
        (result,) = run(ToolExecutor([tool], policies={"read": ToolPolicy(cache=kept, max_output=limit)}), call("read"))
        assert (len(str(result.message.content)), result.message.artifact) == (limit or 500, {"rows": 7})
    assert len(kept) == 1


@both_ways
def test_an_answer_for_the_user_stays_one(run: Way) -> None:
    """`return_direct` is the tool's, also where its result was kept."""
    tool = StructuredTool.from_function(lambda: "done", name="end", description="End.", return_direct=True)
    executor = ToolExecutor([tool], policies={"end": ToolPolicy(cache={})})
    assert [run(executor, call("end"))[0].return_direct for _ in range(2)] == [True, True]


class Broken(dict[str, Any]):
    """A mapping that cannot be used."""

    def __getitem__(self, key: str) -> Any:
        """Fail."""
        raise OSError("secret text")

    def __setitem__(self, key: str, value: Any) -> None:
        """Fail."""
        raise OSError("secret text")


class Foreign(dict[str, Any]):
    """A mapping that holds something else."""

    def __getitem__(self, key: str) -> Any:
        """Something."""
        return "something else"


@both_ways
@pytest.mark.parametrize("mapping", [Broken(), Foreign()], ids=["broken", "foreign"])
def test_a_cache_that_fails_costs_no_result(run: Way, mapping: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    """The tool runs as without it, and the log says so without a word of its text."""
    with caplog.at_level(logging.WARNING, "langchain_autotools"):
        assert run(Counted().executor(cache=mapping), call("add", one=1))[0].message.content == "1"
    assert "the cache of a tool" in caplog.text and "secret" not in caplog.text


@both_ways
def test_a_tool_that_makes_its_own_call_does_not_wait_for_itself(run: Way) -> None:
    """A call inside the very same call runs; another one inside it is kept as any other."""
    kept: dict[str, Any] = {}
    depths: list[int] = []

    def look(place: str) -> str:
        """Look."""
        depths.append(1)
        return "seen" if len(depths) > 2 else executor.execute_all([call("look", place=place)])[0].text

    executor = ToolExecutor([look], policies={"look": ToolPolicy(cache=kept, timeout=20)})
    assert [one.message.content for one in run(executor, call("look", place="here"))] == ["seen"]
    assert len(depths) == 3


def test_a_flight_that_is_given_up_is_taken_over() -> None:
    """Who waits for a call that is cancelled with its own run makes it instead."""
    begun: list[int] = []

    async def look() -> str:
        """Look."""
        begun.append(1)
        await asyncio.sleep(60 if len(begun) == 1 else 0)
        return "seen"

    executor = ToolExecutor([look], policies={"look": ToolPolicy(cache={})})

    async def check() -> None:
        first = asyncio.ensure_future(executor.aexecute_all([call("look", "1")]))
        while not begun:
            await asyncio.sleep(0)
        second = asyncio.ensure_future(executor.aexecute_all([call("look", "2")]))
        await asyncio.sleep(0.01)
        first.cancel()
        assert [message.content for message in await asyncio.wait_for(second, 10)] == ["seen"]

    asyncio.run(check())
    assert len(begun) == 2


@both_ways
def test_who_waits_for_another_run_waits_no_longer_than_its_own_time(run: Way) -> None:
    """A deadline holds for it as for a call that runs."""
    begun, release = threading.Event(), threading.Event()

    def look() -> str:
        """Look."""
        begun.set()
        release.wait(10)
        return "seen"

    executor = ToolExecutor([look], policies={"look": ToolPolicy(cache={})})
    first = threading.Thread(target=executor.execute_all, args=([call("look", "1")],))
    first.start()
    begun.wait(10)
    (result,) = run(executor, call("look", "2"), deadline=0.05)
    release.set()
    first.join(10)
    assert "the time for this run is over" in error(result) and not result.executed


@both_ways
def test_a_cancelled_run_does_not_wait_for_anothers_call(run: Way) -> None:
    """The other run goes on, and keeps its result."""
    begun, release, cancel = threading.Event(), threading.Event(), threading.Event()
    kept: dict[str, Any] = {}

    def look() -> str:
        """Look."""
        begun.set()
        release.wait(10)
        return "seen"

    executor = ToolExecutor([look], policies={"look": ToolPolicy(cache=kept)})
    first = threading.Thread(target=executor.execute_all, args=([call("look", "1")],))
    first.start()
    begun.wait(10)
    threading.Timer(0.02, cancel.set).start()
    (result,) = run(executor, call("look", "2"), cancel=cancel)
    release.set()
    first.join(10)
    assert "cancelled" in error(result) and len(kept) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_waits_for_nothing_of_its_parent() -> None:
    """The call that runs in the parent never ends in the child."""
    mapping: dict[str, Any] = {}
    record = ToolCallRecord("1", "look", "{}", {})
    held = CachedCall(record, mapping, None)
    assert held.enter() is None
    child = os.fork()
    if child == 0:
        os._exit(0 if CachedCall(record, mapping, None).enter() is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    held.leave(None)


def test_what_acts_on_a_graph_is_not_kept() -> None:
    """A graph command is meant to happen each time."""
    kept: dict[str, Any] = {}
    types = pytest.importorskip("langgraph.types")
    runs: list[int] = []

    def move(call_id: Annotated[str, InjectedToolCallId]) -> Any:
        """Move."""
        runs.append(1)
        return types.Command(update={"messages": [ToolMessage("moved", tool_call_id=call_id)]})

    executor = ToolExecutor([move], policies={"move": ToolPolicy(cache=kept, cache_key=lambda args: "")})
    for number in "12":
        synchronously(executor, call("move", number))
    assert (len(runs), kept) == (2, {})


# ---------------------------------------------------------------------------------------------- the property


def tool_of(runs: Counter[int], *, asynchronous: bool) -> BaseTool:
    """A tool named `look` that counts its runs and takes a moment."""
    lock = threading.Lock()

    def look(number: int) -> str:
        """Look."""
        with lock:
            runs[number] += 1
        threading.Event().wait(0.001)
        return str(number)

    async def alook(number: int) -> str:
        """Look."""
        with lock:
            runs[number] += 1
        await asyncio.sleep(0.001)
        return str(number)

    kind: dict[str, Any] = {"coroutine": alook} if asynchronous else {"func": look}
    return StructuredTool.from_function(name="look", description="Look.", **kind)


@settings(max_examples=15, deadline=None)
@given(
    programs=st.lists(
        st.tuples(st.booleans(), st.booleans(), st.sampled_from([None, 1, 2]), st.lists(st.integers(0, 3), min_size=1, max_size=5)),
        min_size=1,
        max_size=4,
    )
)
def test_identical_calls_run_once_for_all_threads_and_loops(programs: list[tuple[bool, bool, int | None, list[int]]]) -> None:
    """Random programs in threads and event loops of their own, with synchronous and asynchronous tools, share one mapping."""
    runs: Counter[int] = Counter()
    kept: dict[str, Any] = {}
    found: dict[int, list[str]] = {}

    def program(place: int, way: Way, asynchronous: bool, limit: int | None, numbers: list[int]) -> None:
        policies = {"look": ToolPolicy(cache=kept)}
        executor = ToolExecutor([tool_of(runs, asynchronous=asynchronous)], policies=policies, max_concurrency=limit)
        results = way(executor, *(call("look", str(index), number=number) for index, number in enumerate(numbers)))
        assert [one.message.tool_call_id for one in results] == [str(index) for index in range(len(numbers))]
        found[place] = [str(one.message.content) for one in results]

    threads = [
        threading.Thread(target=program, args=(place, asynchronously if in_loop else synchronously, *rest))
        for place, (in_loop, *rest) in enumerate(programs)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == {place: [str(number) for number in numbers] for place, (*_, numbers) in enumerate(programs)}
    assert runs == Counter({number for *_, numbers in programs for number in numbers})
