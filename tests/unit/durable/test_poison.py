"""A run that ends its worker: what counts against it, how it ends, and that others like it begin one at a time."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from langchain_core.messages import BaseMessage
from langchain_core.tools import tool

from langchain_autotools import new_messages, stop_reason
from langchain_autotools.durable import DurableModel, RunFailedError, launch
from langchain_autotools.durable.engine import engine
from langchain_autotools.durable.workers import Execution, Turnstile, WorkerEndingError
from langchain_autotools.errors import ConfigurationError
from langchain_autotools.event_types import RunEvent, RunFailed
from tests.support.durable import Life, answered, asks, crash, double

GIVEN_UP = r"the run was given up: in {} executions, one after the other, its worker fell silent .*\(the last one was worker of "


def until(holds: Callable[[], Any]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


def has_died(done: list[Any], times: int) -> Callable[[], bool]:
    """Whether something was done so often, and the execution that did it last is over."""
    return lambda: len(done) == times and not engine.cancelled


def end_of(chat: DurableModel, run_id: str) -> RunEvent:
    """The last event of a run that has failed."""
    told = []
    with pytest.raises(RunFailedError):
        for event in chat.events(run_id, timeout=30):
            told.append(event)
    return told[-1]


def test_a_run_whose_model_ends_its_worker_is_given_up(life: Life) -> None:
    """After so many executions it fails with the reason, for who waits and for readers of its events, and no further request is made."""
    asked = []

    def reply(messages: list[BaseMessage], **_: Any) -> Any:
        asked.append(1)
        crash()

    chat = life.model(reply)
    life.silent_executions = 1
    life.begin()
    with pytest.raises(RunFailedError):
        chat.invoke("Go", run_id="one")
    life.again_after_silence()
    with pytest.raises(RunFailedError, match=GIVEN_UP.format(1)):
        chat.result("one")
    end = end_of(chat, "one")
    assert isinstance(end, RunFailed) and "given up" in str(end.error) and len(asked) == 1


def test_what_a_run_that_is_given_up_had_made_is_kept(life: Life) -> None:
    """A tool that may run again ends the worker: the conversation has what came before, the reason, and goes on with the next message.

    The first execution had recorded something, and does not count.
    """
    ran = []

    @tool
    def look(place: str) -> str:
        """Look."""
        ran.append(place)
        crash()

    def reply(messages: list[BaseMessage], **_: Any) -> Any:
        if messages[-1].text == "And now?":
            return "You asked twice."
        return asks(("double", {"number": 1})) if not answered(messages) else asks(("look", {"place": "Rome"}), text="Let me look.")

    chats = life.conversations(reply, [look, double], rerun=["look"])
    life.silent_executions = 1
    life.begin()
    sent = chats.send("one", "Go")
    for number in (1, 2):
        until(has_died(ran, number))
        life.again_after_silence()
    with pytest.raises(RunFailedError, match=GIVEN_UP.format(1)) as failed:
        chats.result(sent, timeout=30)
    assert [message.text for message in new_messages(failed.value)][:3] == ["", "2", "Let me look."]
    assert chats.result(chats.send("one", "And now?"), timeout=30).text == "You asked twice." and len(ran) == 2


def test_an_execution_that_shutdown_left_does_not_count(life: Life) -> None:
    """A worker that is stopped in a long request was not silent: the run goes on."""
    asked: list[int] = []
    over = threading.Event()

    def reply(messages: list[BaseMessage], **_: Any) -> Iterator[str]:
        asked.append(1)
        if len(asked) == 1:
            over.wait(30)
        yield "Done."

    chat = life.model(reply)
    life.silent_executions = 1
    life.begin()
    client = threading.Thread(target=lambda: chat.invoke("Go", run_id="one"))
    client.start()
    until(lambda: asked)
    life.again()
    assert stop_reason(chat.result("one")) == "complete" and len(asked) == 2
    over.set()
    client.join(30)


def test_runs_under_suspicion_begin_one_at_a_time(life: Life) -> None:
    """Of runs that died in their first request one makes its own at a time, until it has recorded it. A new run does not wait."""
    asked: list[str] = []
    goes_on = threading.Semaphore(0)

    def reply(messages: list[BaseMessage], **_: Any) -> Any:
        asked.append(messages[0].text)
        if len(asked) <= 3:
            crash()
        if messages[0].text != "new":
            assert goes_on.acquire(timeout=30)
        return "Done."

    chat = life.model(reply)
    life.begin()
    for name in "abc":
        with pytest.raises(RunFailedError):
            chat.invoke(name, run_id=name)
    life.again_after_silence()
    for number in (4, 5, 6):
        until(lambda number=number: len(asked) >= number)
        if number == 4:
            assert chat.invoke("new", run_id="new").text == "Done."
            assert asked.pop() == "new" and len(asked) == 4
        assert len(asked) == number
        goes_on.release()
    assert [chat.result(name).text for name in "abc"] == ["Done."] * 3 and sorted(asked[3:]) == list("abc")


def test_a_cancelled_run_does_not_wait_for_another_one_under_suspicion() -> None:
    """It begins nothing; and where the worker shuts down, what waits has not begun."""
    turnstile = Turnstile()
    inside, cancelled, waits = (Execution(name, turnstile, {}) for name in ("inside", "cancelled", "waits"))
    turnstile.enter(inside)
    cancelled.cancelled.set()
    turnstile.enter(cancelled)
    turnstile.leave(cancelled)
    ended: list[type[BaseException]] = []

    def wait() -> None:
        try:
            turnstile.enter(waits)
        except WorkerEndingError:
            ended.append(WorkerEndingError)

    thread = threading.Thread(target=wait)
    thread.start()
    assert thread.is_alive()
    turnstile.close()
    thread.join(30)
    assert ended == [WorkerEndingError]


@pytest.mark.parametrize("limit", [0, -1, 2.5, True, None])
def test_a_limit_that_is_none_is_refused(life: Life, limit: Any) -> None:
    """It is a number from 1 on."""
    with pytest.raises(ConfigurationError, match="max_silent_executions"):
        launch(life.url, max_silent_executions=limit)
