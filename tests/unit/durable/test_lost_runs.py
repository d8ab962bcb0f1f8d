"""What an execution does whose run another one has taken over while it was slow."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from dbos import DBOS
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import tool

from langchain_autotools import stop_reason
from langchain_autotools.durable import DurableModel
from langchain_autotools.durable.engine import engine, outside
from tests.support.durable import Life, answered, asks, contents


@contextmanager
def client_of(chat: DurableModel) -> Iterator[Callable[[], AIMessage]]:
    """A client that waits in a thread of its own for the run `one`, and what it got."""
    got: list[AIMessage] = []
    thread = threading.Thread(target=lambda: got.append(chat.invoke("Go", run_id="one")))
    thread.start()

    def answer() -> AIMessage:
        thread.join(30)
        return got[0]

    yield answer


def test_text_of_an_execution_that_has_lost_its_run_is_left_unwritten(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """It writes nothing more, raises in no thread, and its client gets the answer of the execution that has the run now."""
    raised: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    lives, slow, lost = [], threading.Event(), threading.Event()

    def reply(messages: list[BaseMessage], **_: Any) -> Iterator[str]:
        lives.append(1)
        first = len(lives) == 1
        yield "late" if first else "soon"
        if first:
            slow.set()
            assert lost.wait(30)
            yield " and later"
            time.sleep(0.3)  # the writer writes
            yield " still"

    chat = life.model(reply)
    life.begin()
    with client_of(chat) as answer:
        assert slow.wait(30)
        outside(DBOS.resume_workflow, "one")
        assert chat.result("one").text == "soon"
        lost.set()
        assert (answer().text, len(lives)) == ("soon", 2)
    assert raised == []
    assert " still" not in life.dump() and " and later" not in life.dump()


def test_cancel_ends_the_execution_that_has_the_run_now(life: Life) -> None:
    """Also where an earlier one in the same worker has noticed since that the run is not its own any more."""
    running, asked, lost = threading.Event(), threading.Event(), threading.Event()

    @tool
    def pay(who: str) -> str:
        """Pay somebody."""
        running.set()
        assert lost.wait(30)
        return f"paid {who}"

    def talk() -> Iterator[str]:
        asked.set()
        for _ in range(200):
            yield "and "
            time.sleep(0.05)

    chat = life.model(lambda messages, **_: talk() if answered(messages) else asks(("pay", {"who": "alice"})), [pay])
    life.begin()
    with client_of(chat) as answer:
        assert running.wait(30)
        outside(DBOS.resume_workflow, "one")
        assert asked.wait(30)
        lost.set()
        until = time.monotonic() + 2
        while "one" in engine.cancelled and time.monotonic() < until:
            time.sleep(0.02)
        chat.cancel("one")
        run = answer()
    assert stop_reason(run) == "cancelled"
    assert "interrupted, outcome unknown" in contents(run)[1]
