"""Listeners do not outlast the end of what they listen to: a deadline, or a cancellation."""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_autotools import ToolCallResult, ToolContext, ToolExecutor, stop_reason
from langchain_autotools.executor import batch
from langchain_autotools.testing import ScriptedChatModel
from tests.laws.ways import WAYS, run
from tests.support.calls import call

ASKS = AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "1"}, {"name": "look", "args": {}, "id": "2"}])
KINDS = ("on_executing", "on_executed", "on_progress")


@pytest.fixture(autouse=True)
def _short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is at work at the end has a moment, not a second."""
    monkeypatch.setattr(batch, "GRACE_SECONDS", 0.02)


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Lets what is stuck go on, at the end of the test."""
    made = threading.Event()
    yield made
    made.set()


class Desk:
    """A tool, and a listener that is stuck in its first call."""

    def __init__(self, release: threading.Event, stop: Callable[[], None] = lambda: None) -> None:
        self.looked = 0
        self.heard: list[Any] = []
        self._release = release
        self._stop = stop

    def look(self, context: ToolContext) -> str:
        """Look."""
        self.looked += 1
        context.report("looking")
        return "seen"

    def stuck(self, *values: Any) -> None:
        """Never end, the first time."""
        self.heard.append(values)
        self._stop()
        if len(self.heard) == 1:
            self._release.wait(60)

    async def astuck(self, *values: Any) -> None:
        """The same, asynchronously."""
        self.heard.append(values)
        self._stop()
        if len(self.heard) == 1:
            await asyncio.sleep(60)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("end", ["deadline", "cancelled"])
@pytest.mark.parametrize(
    ("way", "parallel"),
    [
        ("invoke", True),
        ("astream", True),
        *(pytest.param(way, parallel, marks=pytest.mark.exhaustive) for way in WAYS for parallel in (True, False)),
    ],
)
def test_a_listener_that_is_stuck_is_not_waited_for(
    way: str, kind: str, end: str, parallel: bool, release: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    """The run ends, every call has its answer, and a warning says so. A call whose `on_executing` has not ended does not run."""
    flag = threading.Event()
    limit: dict[str, Any] = {"deadline": 0.1} if end == "deadline" else {"cancel": flag}
    desk = Desk(release, flag.set)
    listener = desk.astuck if way.startswith("a") else desk.stuck
    model = ScriptedChatModel(tools=[desk.look], replies=["Done."], parallel=parallel)
    with caplog.at_level(logging.WARNING):
        ran = run(way, model, [HumanMessage("Hi"), ASKS], resume=True, **limit, **{kind: listener})
    assert stop_reason(ran.message) == end
    assert [one.tool_call_id for one in ran.new if isinstance(one, ToolMessage)] == ["1", "2"]
    assert end == "cancelled" or not desk.heard or "not waited for" in caplog.text  # a slow machine may come too late to call it
    if kind == "on_executing" and not parallel:
        assert desk.looked == 0


@pytest.mark.parametrize("way", ["execute_all", "aexecute_all"])
def test_an_executor_alone_does_not_wait_for_it_either(way: str, release: threading.Event) -> None:
    """Its `deadline` and `cancel` bound the listeners of a single turn, an asynchronous one of a synchronous caller too."""
    desk = Desk(release)
    executor = ToolExecutor([desk.look], on_executed=desk.astuck)
    made: Any = getattr(executor, way)(ASKS, deadline=0.1)
    messages = asyncio.run(made) if way == "aexecute_all" else made
    assert [message.tool_call_id for message in messages] == ["1", "2"]


@pytest.mark.parametrize("way", WAYS)
def test_a_quick_listener_hears_of_every_result(way: str, release: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of those that the deadline has ended, each once."""
    monkeypatch.setattr(batch, "GRACE_SECONDS", 20.0)
    heard: list[str] = []

    def block() -> str:
        """Block."""
        release.wait(60)
        return "late"

    def executed(result: ToolCallResult) -> None:
        heard.append(result.call.id)

    model = ScriptedChatModel(tools={"look": block}, on_executed=executed)
    assert stop_reason(run(way, model, [HumanMessage("Hi"), ASKS], resume=True, deadline=0.1).message) == "deadline"
    assert sorted(heard) == ["1", "2"]


@pytest.mark.parametrize("limit", [{}, {"deadline": 60}, {"cancel": lambda: False}])
def test_listeners_are_called_one_at_a_time_in_the_context_of_their_call(limit: dict[str, Any]) -> None:
    """Whether anything may end the batch or not; what one raises ends it."""
    busy, most, order = 0, 0, []

    def note(*values: Any) -> None:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        order.append(values)
        busy -= 1

    calls = [call("look", number=number) for number in range(20)]
    executor = ToolExecutor({"look": lambda number: number}, on_executing=note, on_executed=note)
    assert len(list(executor.stream(calls, **limit))) == 20
    assert (most, len(order)) == (1, 40)

    def refuse(_: Any) -> None:
        raise PermissionError("not now")

    with pytest.raises(PermissionError, match="not now"):
        list(executor.stream(calls[:1], on_executing=refuse, **limit))
