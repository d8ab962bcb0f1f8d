"""Clients that follow a conversation: they come back with any header, and lose nothing where a process shuts down."""

import asyncio
import threading
from typing import Any

import pytest

pytest.importorskip("dbos", reason="needs the extra `durable`")

from langchain_autotools.durable import shutdown
from langchain_autotools.encoders import sse
from langchain_autotools.errors import ConfigurationError, EventsInterruptedError
from tests.support.durable import Life, counting


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
