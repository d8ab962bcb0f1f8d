"""What wraps each planned call: in which order, in threads and in tasks, and what becomes of a call that is left."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from langchain_autotools import (
    ConfigurationError,
    RetryPolicy,
    ToolCallResult,
    ToolExecutor,
    ToolPolicy,
    new_messages,
    pending_calls,
    stop_reason,
)
from langchain_autotools.deadline import Cancel
from langchain_autotools.executor import AsyncToolCallBatch, ToolCallBatch
from langchain_autotools.executor.approvals import Reservation
from langchain_autotools.executor.plan import PlannedCall
from langchain_autotools.executor.steps import PENDING, Pause, Proceed, Steps, ends_as
from langchain_autotools.messages.calls import calls_of
from langchain_autotools.testing import ScriptedChatModel
from tests.support.calls import call

Batch = Callable[..., list[ToolCallResult]]


def in_threads(executor: ToolExecutor, calls: Any, **seams: Any) -> list[ToolCallResult]:
    """The results of calls in a synchronous batch, by the way in of a run."""
    return list(executor.batch(ToolCallBatch, calls, None, **seams))


def in_tasks(executor: ToolExecutor, calls: Any, **seams: Any) -> list[ToolCallResult]:
    """The same of an asynchronous batch."""

    async def run() -> list[ToolCallResult]:
        return [result async for result in executor.batch(AsyncToolCallBatch, calls, None, **seams)]

    return asyncio.run(run())


batches = pytest.mark.parametrize("batch", [in_threads, in_tasks])


class Diary:
    """Notes what happens around calls, and makes tools and wrappers that write into it."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, what: str) -> Any:
        """A wrapper that notes when it begins and what comes of the call."""

        def wrap(planned: PlannedCall, proceed: Proceed) -> Steps:
            self.lines.append(f"{what} {planned.call.name}")
            yield Pause(0)
            outcome = yield from proceed(planned)
            self.lines.append(f"{what}: {'left' if outcome is PENDING else outcome.content}")
            return outcome

        return wrap

    def look(self, at: str) -> str:
        """Look at something."""
        self.lines.append(f"look at {at}")
        return f"seen {at}"


class Store:
    """A store of claims that notes what it is asked."""

    def __init__(self, diary: Diary) -> None:
        self.lines = diary.lines

    def take(self, key: str) -> bool:
        """Take a call."""
        self.lines.append("take")
        return True

    def done(self, key: str, message: Any) -> None:
        """Keep a result."""
        self.lines.append("done")

    def release(self, key: str) -> None:
        """Give a call back."""
        self.lines.append("release")


def leave(planned: PlannedCall, proceed: Proceed) -> Steps:
    """A wrapper that leaves calls for later."""
    return ends_as(PENDING) if planned.call.args == {"at": "later"} else proceed(planned)


@batches
def test_a_wrapper_stands_around_each_planned_call(batch: Batch) -> None:
    """Around a call, and around each of those that a bundle has inside; its steps are carried out in threads and in tasks."""
    diary = Diary()
    parts = [{"recipient_name": "look", "parameters": {"at": at}} for at in ("Rome", "Oslo")]
    calls = [call("look", "1", at="Paris"), call("multi_tool_use.parallel", "2", tool_uses=parts)]
    first, second = batch(ToolExecutor([diary.look], parallel=False), calls, wrappers=[diary.note("around")])
    expected = [["around look", f"look at {at}", f"around: seen {at}"] for at in ("Paris", "Rome", "Oslo")]
    assert diary.lines == [line for lines in expected for line in lines]
    assert first.content == "seen Paris"
    assert [one.content for one in second.inner] == ["seen Rome", "seen Oslo"]


@batches
def test_the_order_around_a_call(batch: Batch) -> None:
    """What was decided is claimed first; then the journal's entry, the claim, handlers, and the policy's attempts, from the outside in."""
    diary = Diary()

    def fails_once(at: str) -> str:
        """Fail the first time."""
        diary.lines.append("attempt")
        if diary.lines.count("attempt") == 1:
            raise ConnectionError
        return "seen"

    policy = ToolPolicy(retry=RetryPolicy(attempts=2, wait_scale=0), retry_on=(ConnectionError,))
    options: dict[str, Any] = {
        "policies": {"fails_once": policy},
        "on_executing": lambda _: diary.lines.append("on_executing"),
        "approve": lambda pending: diary.lines.append("approve") or pending.approve(),
        "claim": Store(diary),
    }
    executor = ToolExecutor([fails_once], **options)
    message = AIMessage("", id="m", tool_calls=[call("fails_once", at="Rome")])
    reserve = Reservation(lambda count: diary.lines.append(f"reserve {count}") or [diary.note("entry")])  # type: ignore[func-returns-value]
    batch(executor, message, admissions=[reserve], wrappers=[diary.note("outer"), diary.note("inner")])
    inwards = ["entry fails_once", "take", "outer fails_once", "inner fails_once", "on_executing", "attempt", "attempt"]
    outwards = ["inner: seen", "outer: seen", "done", "entry: seen", "done"]
    assert diary.lines == ["approve", "take", "reserve 1", *inwards, *outwards]


@batches
def test_a_call_that_a_wrapper_leaves_has_no_result(batch: Batch) -> None:
    """Its siblings have theirs; the journal's entry gets `LEFT`, and a claim that was taken is given back."""
    diary = Diary()
    executor = ToolExecutor([diary.look], approve=lambda pending: pending.approve(), claim=Store(diary), max_concurrency=1)
    message = AIMessage("", id="m", tool_calls=[call("look", "1", at="later"), call("look", "2", at="Oslo")])
    reserve = Reservation(lambda count: [diary.note("entry") for _ in range(count)])
    results = batch(executor, message, admissions=[reserve], wrappers=[leave])
    assert [result.tool_call_id for result in results] == ["2"]
    assert diary.lines[:5] == ["take", "entry look", "take", "release", "entry: left"]
    assert diary.lines[5:] == ["entry look", "take", "look at Oslo", "done", "entry: seen Oslo", "release"]


@batches
@pytest.mark.parametrize("parallel", [False, True])
def test_the_last_call_may_be_left(batch: Batch, parallel: bool) -> None:
    """Nobody waits for a result that does not come; side by side and one after another."""
    executor = ToolExecutor([Diary().look], parallel=parallel)
    assert [one.content for one in batch(executor, [call("look", "1", at="Oslo"), call("look", "2", at="later")], wrappers=[leave])] == [
        "seen Oslo"
    ]
    assert batch(executor, [call("look", "1", at="later")], wrappers=[leave]) == []


@batches
def test_a_bundle_is_left_as_a_whole_or_answered(batch: Batch) -> None:
    """Before anything inside has run nothing of it runs; after that the call that is left is answered with that."""
    diary = Diary()

    def bundle(*places: str) -> dict[str, Any]:
        parts = [{"recipient_name": "look", "parameters": {"at": at}} for at in places]
        return call("multi_tool_use.parallel", "b", tool_uses=parts)

    executor = ToolExecutor([diary.look])
    assert batch(executor, [bundle("later", "Rome")], wrappers=[leave]) == []
    assert diary.lines == []
    (result,) = batch(executor, [bundle("Rome", "later")], wrappers=[leave])
    assert diary.lines == ["look at Rome"]
    assert [one.success for one in result.inner] == [True, False]
    assert "waits for approval" in str(result.inner[1].content)


def divert(planned: PlannedCall, proceed: Proceed) -> Steps:
    """A wrapper that writes other arguments."""
    return proceed(replace(planned, call=replace(planned.call, args={"at": "Eve"})))


@batches
def test_what_is_changed_after_its_approval_waits(batch: Batch) -> None:
    """A wrapper writes other arguments: a call that the rule concerns pends with them, any other one runs with them."""
    diary = Diary()
    rule = {"requires_approval": lambda one: one.args["at"] == "Anna", "approve": lambda pending: pending.approve()}
    message = AIMessage("", id="m", tool_calls=[call("look", "1", at="Anna"), call("look", "2", at="Bert")])
    results = batch(ToolExecutor([diary.look], **rule), message, wrappers=[divert])  # type: ignore[arg-type]
    assert [(result.tool_call_id, result.success) for result in results] == [("1", False), ("2", True)]
    (pending,) = pending_calls([message, *(result.message for result in results)])
    assert (pending.id, pending.args, pending.kind, pending.changed) == ("1", {"at": "Eve"}, "approval", True)
    concerned = ToolExecutor([diary.look], requires_approval=lambda one: one.args["at"] == "Eve")
    results = batch(concerned, message, wrappers=[divert])
    assert [one.args for one in pending_calls([message, *(result.message for result in results)])] == [{"at": "Eve"}, {"at": "Eve"}]
    assert diary.lines == ["look at Eve"]


@batches
def test_a_changed_call_inside_a_bundle_is_answered(batch: Batch) -> None:
    """A bundle has one result, and cannot wait for a call inside: that one is answered, and the others run."""
    diary = Diary()
    parts = [{"recipient_name": "look", "parameters": {"at": at}} for at in ("Anna", "Bert")]
    bundle = call("multi_tool_use.parallel", "b", tool_uses=parts)
    executor = ToolExecutor([diary.look], requires_approval=lambda one: one.args["at"] == "Eve")

    def divert_anna(planned: PlannedCall, proceed: Proceed) -> Steps:
        return divert(planned, proceed) if planned.call.args == {"at": "Anna"} else proceed(planned)

    message = AIMessage("", id="m", tool_calls=[bundle])
    (result,) = batch(executor, message, wrappers=[divert_anna])
    assert [one.success for one in result.inner] == [False, True] and "needs an approval" in str(result.content)
    assert (diary.lines, pending_calls([message, result.message])) == (["look at Bert"], [])


@batches
@pytest.mark.parametrize("key", [None, "secret"])
def test_a_changed_call_runs_once_as_it_was_approved(batch: Batch, key: str | None) -> None:
    """It is claimed when it runs, and its result names the arguments; a changed record or a second decision is refused."""
    diary = Diary()
    executor = ToolExecutor([diary.look], requires_approval=True, claim=Store(diary), approval_key=key)
    asked = AIMessage("", id="m", tool_calls=[call("look", "1", at="Anna")])
    rules = executor.approvals
    assert rules is not None
    message = rules.recorded(asked, rules.judge(calls_of(asked), executor.prepared.arguments_of, in_order=False))
    decisions = [one.approve() for one in pending_calls(message)]
    (waits,) = batch(executor, message, wrappers=[divert], messages=[message], decisions=decisions)
    history = [message, waits.message]
    (pending,) = pending_calls(history)
    with pytest.raises(ConfigurationError, match="two decisions"):
        batch(executor, message, messages=history, decisions=[pending.approve(), pending.reject()])
    forged = waits.message.model_copy(deep=True)
    entry = forged.response_metadata["autotools"]["open_run"]["calls"][0]
    entry["args"]["at"] = "Mallory"
    with pytest.raises(ConfigurationError, match="is not the one that was made"):
        batch(executor, message, messages=[message, forged], decisions=[one.approve() for one in pending_calls([message, forged])])
    assert diary.lines == ["take", "take", "done", "release"]
    (result,) = batch(executor, message, wrappers=[divert], messages=history, decisions=[pending.approve()])
    assert diary.lines == ["take", "take", "done", "release", "take", "take", "look at Eve", "done", "done"]
    assert "It ran with" in str(result.content) and "seen Eve" in str(result.content)
    (denied,) = batch(executor, message, wrappers=[divert], messages=history, decisions=[pending.reject("no")])
    assert (denied.success, "no" in str(denied.content), diary.lines.count("look at Eve")) == (False, True, 1)


@batches
def test_a_wrapper_cannot_swallow_the_end_of_its_batch(batch: Batch) -> None:
    """The batch is cancelled while `on_executing` is told of a call: `except Exception` around the call makes no result of that."""
    cancelled = threading.Event()
    swallowed: list[BaseException] = []

    def swallow(planned: PlannedCall, proceed: Proceed) -> Steps:
        try:
            return (yield from proceed(planned))
        except Exception as error:
            swallowed.append(error)
            raise

    async def cancel(_: object) -> None:
        cancelled.set()
        await asyncio.Event().wait()

    diary = Diary()
    (result,) = batch(ToolExecutor([diary.look], on_executing=cancel), [call("look", at="Rome")], end=Cancel(cancelled), wrappers=[swallow])
    assert isinstance(result.error, asyncio.CancelledError)
    assert diary.lines == swallowed == []


class Leaving(ToolExecutor):
    """An executor whose batches leave calls for later."""

    def batch(self, *args: Any, **options: Any) -> Any:
        """Add a wrapper."""
        return super().batch(*args, **{**options, "wrappers": [leave]})


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_run_ends_with_the_call_that_was_left(way: str) -> None:
    """It stays pending in the message of the run, like a call that nobody has decided about; the results beside it are there."""
    reply = AIMessage("", tool_calls=[call("look", "1", at="later"), call("look", "2", at="Oslo")])
    model = ScriptedChatModel(tools=Leaving([Diary().look]), replies=[reply, "Never."])
    answer = model.invoke("Look.") if way == "invoke" else asyncio.run(model.ainvoke("Look."))
    assert stop_reason(answer) == "calls_pending"
    assert [one["id"] for one in answer.tool_calls] == ["1"]
    assert [one.text for one in new_messages(answer)[1:]] == ["seen Oslo"]
    assert pending_calls(answer)
