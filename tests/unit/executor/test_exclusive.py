"""Calls that no other call of the same turn may run beside: they wait for those before them, those after them wait for them."""

import asyncio
import threading
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.tools import StructuredTool

from langchain_autotools import ToolExecutor, ToolPolicy
from tests.support.calls import Way, both_ways, call


class Ledger:
    """Tools that note which calls ran beside which."""

    def __init__(self) -> None:
        self.running: set[int] = set()
        self.beside: set[frozenset[int]] = set()
        self.order: list[int] = []
        self._lock = threading.Lock()

    def enter(self, number: int) -> None:
        """A call begins."""
        with self._lock:
            self.order.append(number)
            self.beside |= {frozenset({number, other}) for other in self.running}
            self.running.add(number)

    def leave(self, number: int) -> None:
        """A call ends."""
        with self._lock:
            self.running.discard(number)

    def tools(self, *, asynchronous: bool) -> list[StructuredTool]:
        """`pay` and `look`."""

        def note(number: int) -> str:
            """Note."""
            self.enter(number)
            time.sleep(0.001)
            self.leave(number)
            return str(number)

        async def anote(number: int) -> str:
            """Note."""
            self.enter(number)
            await asyncio.sleep(0.001)
            self.leave(number)
            return str(number)

        given_as: dict[str, Any] = {"coroutine": anote} if asynchronous else {"func": note}
        return [StructuredTool.from_function(name=name, description="Note.", **given_as) for name in ("pay", "look")]


def check(run: Way, names: list[str], *, asynchronous: bool, limit: int | None) -> Ledger:
    """Run calls of these tools; `pay` ran beside none, in call order, and each result is its own."""
    ledger = Ledger()
    executor = ToolExecutor(ledger.tools(asynchronous=asynchronous), policies={"pay": ToolPolicy(exclusive=True)}, max_concurrency=limit)
    results = run(executor, *(call(name, str(number), number=number) for number, name in enumerate(names)))
    assert [result.message.content for result in results] == [str(number) for number in range(len(names))]
    alone = {number for number, name in enumerate(names) if name == "pay"}
    assert not [pair for pair in ledger.beside if pair & alone]
    for number in alone:
        assert ledger.order.index(number) == number  # exactly those before it have run
    return ledger


@both_ways
@settings(max_examples=25, deadline=None)
@given(
    names=st.lists(st.sampled_from(["pay", "look"]), min_size=1, max_size=8),
    asynchronous=st.booleans(),
    limit=st.sampled_from([None, 1, 2, 3]),
)
def test_an_exclusive_call_runs_beside_no_other(run: Way, names: list[str], asynchronous: bool, limit: int | None) -> None:
    """Whatever calls are beside it, of whichever kind, however many may run at a time; none waits for ever."""
    check(run, names, asynchronous=asynchronous, limit=limit)


@both_ways
def test_the_other_calls_still_run_side_by_side(run: Way) -> None:
    """Those between two exclusive ones, too."""
    meeting = threading.Barrier(2, timeout=10)

    def look() -> str:
        """Look."""
        meeting.wait()
        return "seen"

    def pay() -> str:
        """Pay."""
        return "paid"

    executor = ToolExecutor([look, pay], policies={"pay": ToolPolicy(exclusive=True)})
    results = run(executor, *(call(name, str(number)) for number, name in enumerate(["pay", "look", "look", "pay", "look", "look"])))
    assert [result.message.content for result in results] == ["paid", "seen", "seen", "paid", "seen", "seen"]


@both_ways
def test_a_bundle_with_an_exclusive_call_is_exclusive(run: Way) -> None:
    """The call inside must not run beside one outside either."""
    ledger = Ledger()
    executor = ToolExecutor(ledger.tools(asynchronous=False), policies={"pay": ToolPolicy(exclusive=True)})
    uses = [{"recipient_name": name, "parameters": {"number": number}} for number, name in ((1, "look"), (2, "pay"))]
    run(executor, call("look", "a", number=0), call("multi_tool_use.parallel", "b", tool_uses=uses), call("look", "c", number=3))
    assert (ledger.beside, ledger.order) == (set(), [0, 1, 2, 3])


@both_ways
def test_few_threads_do_not_make_exclusive_calls_wait_for_ever(run: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one thread for all tools the calls run one after another."""
    monkeypatch.setattr(ToolExecutor, "max_threads", 1)
    check(run, ["look", "pay", "look", "look", "pay"], asynchronous=False, limit=None)


@both_ways
def test_what_ends_the_run_ends_the_waits_too(run: Way) -> None:
    """Neither the call that waits to be alone nor the one behind it runs."""
    ran: list[str] = []

    def look() -> str:
        """Look."""
        ran.append("look")
        raise KeyboardInterrupt

    def pay() -> str:
        """Pay."""
        ran.append("pay")
        return "paid"

    executor = ToolExecutor([look, pay], policies={"pay": ToolPolicy(exclusive=True)})
    with pytest.raises(KeyboardInterrupt):
        run(executor, call("look", "1"), call("pay", "2"), call("pay", "3"))
    assert ran == ["look"]


# ---------------------------------------------------------------------------------------------- threads that were given up


class Stuck:
    """A tool that holds its thread longer than its timeout, and one that notes what it ran beside."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.holding = False
        self.beside: list[bool] = []

    def hold(self) -> str:
        """Hold a thread."""
        self.holding = True
        self.release.wait(60)
        self.holding = False
        return "late"

    def pay(self) -> str:
        """Note what runs."""
        self.beside.append(self.holding)
        return "paid"

    def executor(self, alone: str, **policy: Any) -> ToolExecutor:
        """An executor with both; the one named runs alone."""
        policies = {"hold": ToolPolicy(timeout=0.05), "pay": ToolPolicy(**policy)}
        policies[alone] = ToolPolicy(exclusive=True).over(policies[alone])
        return ToolExecutor([self.hold, self.pay], policies=policies)


@both_ways
@pytest.mark.parametrize("alone", ["hold", "pay"])
def test_a_call_waits_for_a_thread_that_was_given_up(run: Way, alone: str) -> None:
    """It runs once that thread has ended: neither beside an exclusive call nor an exclusive call beside it."""
    stuck = Stuck()
    executor = stuck.executor(alone, timeout=60)

    def release(_: Any) -> None:
        threading.Timer(0.05, stuck.release.set).start()

    held, paid = run(executor, call("hold", "1"), call("pay", "2"), on_executed=release)
    assert held.message.status == "error" and paid.message.content == "paid"
    assert stuck.beside == [False]


@both_ways
@pytest.mark.parametrize(("policy", "limit", "said"), [
    ({"timeout": 0.05}, {}, "must run alone"),
    ({}, {}, "must run alone"),
    ({"timeout": 60}, {"deadline": 0.2}, "time for this run is over"),
    ({"timeout": 60}, {"cancel": True}, "cancelled"),
])  # fmt: skip
def test_a_thread_that_never_ends_is_not_waited_for_for_ever(run: Way, policy: Any, limit: dict[str, Any], said: str) -> None:
    """At most as long as the call, or else the one before it, may take, and never beyond the end of the run: then it has not run."""
    stuck = Stuck()
    if "cancel" in limit:
        limit = {"cancel": threading.Event()}
        threading.Timer(0.15, limit["cancel"].set).start()
    try:
        held, paid = run(stuck.executor("pay", **policy), call("hold", "1"), call("pay", "2"), **limit)
    finally:
        stuck.release.set()
    assert held.message.status == paid.message.status == "error"
    assert said in str(paid.message.content) and not paid.executed and stuck.beside == []
