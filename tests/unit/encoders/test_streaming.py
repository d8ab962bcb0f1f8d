"""The driver of all encoders: bytes of events, the end of the events with that of the bytes, heartbeats, errors."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator

import pytest
from langchain_core.exceptions import ModelRateLimitError

from langchain_autotools import ConfigurationError
from langchain_autotools.encoders.streaming import Failure, encoded
from langchain_autotools.event_types import RunEvent, RunStarted, TextDelta

HELLO = TextDelta(run_id="r", message_id="m", text="hello")


class Words:
    """Writes the text of events, one line each."""

    heartbeat = b"...\n"

    def encode(self, event: RunEvent) -> bytes:
        """A line of a text; nothing of other events."""
        return f"{event.text}\n".encode() if isinstance(event, TextDelta) else b""

    def end(self) -> bytes:
        """The last line."""
        return b"end\n"

    def fail(self, failure: Failure) -> bytes:
        """What failed, in a line."""
        return f"{failure}\n".encode()


class Told:
    """Events, one after another, that say whether they were closed."""

    def __init__(self, *events: object) -> None:
        self.events = events
        self.closed = asyncio.Event()
        self.read = 0

    def sync(self) -> Iterator[RunEvent]:
        """Them, one after another."""
        try:
            for event in self.events:
                self.read += 1
                if isinstance(event, BaseException):
                    raise event
                yield event  # type: ignore[misc]
        finally:
            self.closed.set()

    async def apart(self) -> AsyncIterator[RunEvent]:
        """The same; at an `asyncio.Event` they wait for it."""
        try:
            for event in self.events:
                self.read += 1
                if isinstance(event, asyncio.Event):
                    await event.wait()
                elif isinstance(event, BaseException):
                    raise event
                else:
                    yield event  # type: ignore[misc]
        finally:
            self.closed.set()


async def bytes_of(told: Told, way: str, *, details: bool = False) -> list[bytes]:
    """What an encoder makes of events that are read in one of the two ways."""
    if way == "sync":
        return list(encoded(told.sync(), Words(), details=details))
    return [data async for data in encoded(told.apart(), Words(), details=details)]


both = pytest.mark.parametrize("way", ["sync", "async"])


@both
async def test_events_become_bytes_as_they_come_and_then_the_end(way: str) -> None:
    """What an event is nothing of in the protocol is not sent; after the last event comes the protocol's end."""
    told = Told(RunStarted(run_id="r", name="m"), HELLO, HELLO)
    assert await bytes_of(told, way) == [b"hello\n", b"hello\n", b"end\n"]
    assert told.closed.is_set()


@both
async def test_an_exception_becomes_its_class_and_a_plain_sentence(way: str, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing of its text is sent unless that is asked for; it is logged, and the bytes end as if all were well."""
    with caplog.at_level(logging.ERROR, "langchain_autotools"):
        sent = await bytes_of(Told(HELLO, KeyError("secret")), way)
    assert sent == [b"hello\n", f"{Failure('KeyError', 'The run failed.', False)}\n".encode()]
    assert [record.exc_info is not None for record in caplog.records] == [True]
    assert b"secret" in (await bytes_of(Told(KeyError("secret")), way, details=True))[0]


@both
async def test_a_failure_says_whether_to_try_again(way: str) -> None:
    """Where the vendor's answer is one that may change, the sentence says so."""
    assert b"may succeed later" in (await bytes_of(Told(ModelRateLimitError("busy")), way))[0]


@both
async def test_what_is_no_event_is_refused_in_words(way: str) -> None:
    """Giving an encoder the chunks of a model's stream is a mistake that is easily made."""
    assert b"aevents(model.astream(...))" in (await bytes_of(Told("chunk"), way, details=True))[0]


async def test_closing_the_bytes_closes_the_events() -> None:
    """A client that goes away ends the run: while an event is awaited, and between two."""
    told = Told(HELLO, HELLO)
    stream = encoded(told.sync(), Words())
    assert next(stream) == b"hello\n"
    stream.close()
    assert told.closed.is_set()

    told = Told(HELLO, asyncio.Event())
    astream = encoded(told.apart(), Words())
    assert await anext(astream) == b"hello\n"
    await astream.aclose()
    assert told.closed.is_set()


async def test_a_reader_that_is_cancelled_closes_the_events() -> None:
    """A server cancels the task that sends a response when its client has gone."""
    told = Told(HELLO, asyncio.Event())
    astream = encoded(told.apart(), Words())
    await anext(astream)
    task = asyncio.ensure_future(anext(astream))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert told.closed.is_set()


async def test_heartbeats_come_while_nothing_happens() -> None:
    """Until the next event; what the event's step waits for goes on all the while."""
    come = asyncio.Event()
    astream = encoded(Told(come, HELLO).apart(), Words(), heartbeat=0.001)
    assert [await anext(astream), await anext(astream)] == [b"...\n"] * 2
    come.set()
    rest = [data async for data in astream]
    assert rest[-2:] == [b"hello\n", b"end\n"]
    assert set(rest[:-2]) <= {b"...\n"}


async def test_events_are_read_and_closed_in_one_task() -> None:
    """What an event waits for may be bound to its task, as the sessions of MCP servers are."""
    tasks = set()

    async def events() -> AsyncIterator[RunEvent]:
        try:
            for _ in range(3):
                tasks.add(asyncio.current_task())
                yield HELLO
        finally:
            tasks.add(asyncio.current_task())

    astream = encoded(events(), Words())
    await asyncio.create_task(anext(astream))  # type: ignore[arg-type]
    await asyncio.create_task(anext(astream))  # type: ignore[arg-type]
    await astream.aclose()
    assert len(tasks) == 1


async def test_a_slow_reader_holds_the_events_back() -> None:
    """A client that does not read does not make the server keep the whole run; all of it comes in the end."""
    told = Told(*[HELLO] * 1000)
    astream = encoded(told.apart(), Words())
    await anext(astream)
    for _ in range(2000):
        await asyncio.sleep(0)
    assert told.read < 200
    assert len([data async for data in astream]) == 1000


@pytest.mark.parametrize("events", [None, 3, "text"])
def test_what_are_no_events_is_refused_at_once(events: object) -> None:
    """Before a response has begun."""
    with pytest.raises(ConfigurationError, match="events"):
        encoded(events, Words())  # type: ignore[call-overload]


@pytest.mark.parametrize("seconds", [0, -1, True, "1"])
def test_a_heartbeat_is_a_number_of_seconds(seconds: object) -> None:
    """Anything else is refused."""
    with pytest.raises(ConfigurationError, match="heartbeat"):
        encoded([HELLO], Words(), heartbeat=seconds)  # type: ignore[call-overload]
