"""Clients that follow a conversation: they come back with any header, and lose nothing where a process shuts down."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from langchain_core.tools import tool

from langchain_autotools.durable import shutdown
from langchain_autotools.encoders import sse
from langchain_autotools.errors import ConfigurationError, EventsInterruptedError
from langchain_autotools.event_types import CallReady, RunEnded
from tests.support.durable import Life, answered, asks, counting
from tests.support.statements import statements


@pytest.mark.parametrize("header", [None, "", "1", "x", "9-1", "0-0", "٣-1", "9" * 400])
def test_a_client_that_comes_back_with_anything_is_answered(life: Life, header: str | None) -> None:
    """A header that is no position of the conversation counts as none; one that is goes before what the address says."""
    chats = life.conversations(counting)
    first, second = chats.send("alice", "Hello"), chats.send("alice", "Bye")
    told = list(chats.events("alice"))
    assert list(chats.events("alice", last_event_id=header)) == told
    of_second = [event for event in told if event.run_id == second.run_id]
    assert list(chats.events("alice", last_event_id=header, after=second.position)) == of_second
    assert list(chats.events("alice", last_event_id=told[-2].position, after=first.position)) == told[-1:]


@pytest.mark.parametrize("after", ["x", "1", 7])
def test_what_is_no_position_is_refused_at_the_call(life: Life, after: Any) -> None:
    """Both ways, before anything is read: the server can still answer with an error. A header does not make up for it."""
    chats = life.conversations(counting)
    for events in (chats.events, chats.aevents):
        with pytest.raises(ConfigurationError, match="position"):
            events("alice", after=after, last_event_id="1-1")


@pytest.mark.parametrize("asynchronous", [False, True])
def test_readers_that_wait_are_told_that_their_process_shuts_down(life: Life, asynchronous: bool) -> None:
    """They can be answered by another process: frames end without a last one, which would make a page stop coming back."""
    chats, waits, frames = life.conversations(counting), threading.Event(), []

    def take(frame: bytes) -> None:
        frames.append(frame.partition(b"\n")[0].decode())
        if frames[-1] == "event: run_end":
            waits.set()

    def read() -> None:
        for frame in sse(chats.events("alice", follow=True)):
            take(frame)
        with pytest.raises(EventsInterruptedError):
            list(told)

    async def aread() -> None:
        async for frame in sse(chats.aevents("alice", follow=True), heartbeat=None):
            take(frame)

    chats.result(chats.send("alice", "Hello"))
    told = chats.events("alice", follow=True)
    reader = threading.Thread(target=(lambda: asyncio.run(aread())) if asynchronous else read)
    reader.start()
    assert waits.wait(20)
    shutdown()
    reader.join(20)
    assert not reader.is_alive()
    assert frames[-1] == "event: run_end"


def test_followers_who_wait_share_each_look_into_the_database(life: Life) -> None:
    """While no run is new, looks ask for nothing else; now and then one asks for all. Each follower has their own conversation."""
    chats, count = life.conversations(counting), 20

    async def first(number: int) -> str:
        async for event in chats.aevents(f"chat {number}", follow=True):
            if isinstance(event, RunEnded):
                return event.run_id
        return ""

    async def all_of_them() -> list[str]:
        tasks = [asyncio.create_task(first(number)) for number in range(count)]
        with statements("") as looks:
            while not any(one.count("?") >= 2 * count for one in looks):  # all follow: of each the run and the mark of its end
                await asyncio.sleep(0.01)
            looks.clear()
            while len([one for one in looks if "created_at DESC" in one]) < 6:
                await asyncio.sleep(0.01)
            asked = [one for one in looks if "workflow_uuid IN (?" in one]
        assert len(asked) in (1, 2) and all(one.count("?") >= count for one in asked)
        sent = [await chats.asend(f"chat {number}", "Hello") for number in range(count)]
        assert await asyncio.gather(*tasks) == [one.run_id for one in sent]
        return [one.run_id for one in sent]

    assert len(set(asyncio.run(all_of_them()))) == count


def test_readers_of_one_run_share_what_is_read_of_it(life: Life) -> None:
    """However many read a run while it is written, its rows are read once, also for one who comes later."""
    goes_on = threading.Event()

    @tool
    def wait() -> str:
        """Wait."""
        return str(goes_on.wait(60))

    chats = life.conversations(lambda messages, **_: "Yes." if answered(messages) else asks(("wait", {}), text="Let me see."), [wait])
    sent = chats.send("alice", "Hello")
    next(one for one in chats.events("alice") if isinstance(one, CallReady))
    with ThreadPoolExecutor(8) as pool:
        with statements("") as made:
            readers = [pool.submit(lambda: list(chats.events("alice", after=sent.position, timeout=60))) for _ in range(8)]
            while sum("streams" in one for one in made) < 3:
                time.sleep(0.01)
            late = [pool.submit(lambda: list(chats.events("alice", after=sent.position, timeout=60)))]
            goes_on.set()
            told = [one.result() for one in (*readers, *late)]
    assert all(one == told[0] for one in told) and isinstance(told[0][-1], RunEnded)
    assert not any("JOIN" in one and "streams" in one for one in made)  # as a reader who is alone with a run would ask
    assert sum("FROM" in one and "streams" in one for one in made) <= sum("workflow_uuid IN" in one for one in made)
