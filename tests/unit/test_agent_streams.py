"""Streams of an `Agent` that are left: they give way to the next question, and their requests are closed."""

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk
from pydantic import PrivateAttr

from langchain_autotools import Agent, ConfigurationError, aevents, events, new_messages, validate
from langchain_autotools.event_types import TextDelta
from langchain_autotools.testing import ScriptedChatModel
from tests.laws.stories import Script
from tests.laws.ways import chat, serving
from tests.support.http_server import Gate
from tests.support.script import Turn

CALLING = AIMessage("Let me look.", tool_calls=[{"id": "a", "name": "look", "args": {"at": "Rome"}}])


def look(at: str) -> str:
    """Look at a place."""
    return f"{at} is quiet"


class CountingModel(ScriptedChatModel):
    """A scripted model that knows how many of its replies are open."""

    _open: list[int] = PrivateAttr(default_factory=lambda: [0])

    @property
    def open_replies(self) -> int:
        """How many replies have begun and not ended."""
        return self._open[0]

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self._open[0] += 1
        try:
            yield
        finally:
            self._open[0] -= 1

    def raw_stream(self, *args: Any, **kwargs: Any) -> Iterator[AIMessage]:
        """As of the script, counted."""
        with self._counted():
            yield from super().raw_stream(*args, **kwargs)

    async def araw_stream(self, *args: Any, **kwargs: Any) -> AsyncIterator[AIMessage]:
        """As of the script, counted."""
        with self._counted():
            async for chunk in super().araw_stream(*args, **kwargs):
                yield chunk


def agent(*replies: Any, **kwargs: Any) -> Agent:
    """An agent whose model says these replies."""
    return Agent(CountingModel(replies=list(replies), tools=[look]), **kwargs)


def open_replies(one: Agent) -> int:
    """How many replies are open."""
    count: int = one.model.open_replies  # type: ignore[attr-defined]
    return count


@pytest.fixture(autouse=True)
def without_garbage_collector() -> Iterator[None]:
    """What is closed is closed without its help."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def begin(stream: Any) -> None:
    """Read until a reply is open."""
    assert next(chunk.text for chunk in stream if chunk.text)


async def abegin(stream: Any) -> None:
    """Read until a reply is open."""
    async for chunk in stream:
        if chunk.text:
            return


@pytest.mark.parametrize("dropped", [False, True])
@pytest.mark.parametrize("next_way", ["run", "run_stream", "arun", "arun_stream"])
@pytest.mark.parametrize("left_way", ["run_stream", "arun_stream", "events", "aevents"])
def test_the_next_question_closes_a_stream_that_was_left(left_way: str, next_way: str, dropped: bool) -> None:
    """Held or dropped, read on one event loop or none: the next question is answered, and no reply is open."""
    one = agent("Not so quick.", "All quiet.")

    async def ask() -> None:
        held: Any = await left(one, left_way)
        if dropped:
            del held
        await asked(one, next_way)
        for _ in range(10):  # what belongs to the loop is closed on the loop
            await asyncio.sleep(0)
        assert open_replies(one) == 0

    asyncio.run(ask())
    assert [message.text for message in one.history] == ["Second?", "All quiet."]
    assert not validate(one.history)


async def left(one: Agent, way: str) -> Any:
    """A stream of a question, or of its events, that is not read on."""
    stream: Any
    match way:
        case "run_stream":
            begin(stream := one.run_stream("First?"))
        case "arun_stream":
            await abegin(stream := one.arun_stream("First?"))
        case "events":
            stream = events(one.run_stream("First?"))
            assert any(isinstance(event, TextDelta) for event in stream)
        case _:
            stream = aevents(one.arun_stream("First?"))
            async for event in stream:
                if isinstance(event, TextDelta):
                    break
    assert open_replies(one) == 1
    return stream


async def asked(one: Agent, way: str) -> None:
    """Ask the next question."""
    match way:
        case "run":
            one.run("Second?")
        case "arun":
            await one.arun("Second?")
        case "run_stream":
            assert list(one.run_stream("Second?"))
        case _:
            assert [chunk async for chunk in one.arun_stream("Second?")]


@pytest.mark.parametrize("way", ["run_stream", "arun_stream"])
def test_who_reads_on_after_the_next_question_is_told(way: str) -> None:
    """A stream that gave way does not end as if its answer were whole."""
    one = agent("Not so quick.", "All quiet.")

    async def ask() -> None:
        stream: Any = getattr(one, way)("First?")
        await abegin(stream) if way == "arun_stream" else begin(stream)
        await one.arun("Second?")
        with pytest.raises(ConfigurationError, match="asked the next question"):
            await anext(stream) if way == "arun_stream" else next(stream)

    asyncio.run(ask())


def test_what_was_completed_before_the_next_question_is_in_its_request() -> None:
    """The stream that gives way leaves its messages in the conversation, in order."""
    one = agent(CALLING, "Not so quick.", "All quiet.")
    stream = one.run_stream("First?")
    for chunk in stream:
        if any(message.type == "tool" for message in new_messages(chunk)):
            break
    one.run("Second?")
    assert [message.type for message in one.history] == ["human", "ai", "tool", "human", "ai"]
    assert [message.type for message in one.model.requests[-1].messages] == ["human", "ai", "tool", "human"]  # type: ignore[attr-defined]


def test_calls_that_a_stream_left_open_are_answered_in_the_conversation() -> None:
    """What the model is told of them is in the history: it is valid, and the next request says the same."""
    one = agent(CALLING, "All quiet.")
    stream = one.run_stream("First?")
    for chunk in stream:
        if any(message.type == "ai" for message in new_messages(chunk)):
            break
    result = one.run("Second?")
    assert [message.type for message in one.history] == ["human", "ai", "tool", "human", "ai"]
    assert "no result was recorded" in one.history[2].text and one.history[2].id
    assert list(one.model.requests[-1].messages) == one.history[:-1]  # type: ignore[attr-defined]
    assert [message.type for message in result.messages] == ["human", "ai"] and not validate(one.history)


def test_a_stream_that_is_being_read_does_not_give_way() -> None:
    """Between two threads, or from inside a tool of its own run, the next question is refused, and the answer goes on."""
    refused: list[str] = []

    def ask_again(at: str) -> str:
        with pytest.raises(ConfigurationError, match="answering already") as error:
            one.run("Second?")
        refused.append(str(error.value))
        return at

    one = Agent(ScriptedChatModel(replies=[CALLING, "All quiet."], tools={"look": ask_again}))
    assert list(one.run_stream("First?"))
    assert len(refused) == 1 and [message.type for message in one.history] == ["human", "ai", "tool", "ai"]


@pytest.mark.parametrize("way", ["run_stream", "arun_stream", "events", "aevents"])
def test_the_next_question_closes_the_connection_of_a_stream_that_was_left(way: str) -> None:
    """The server is in the middle of its reply, and sees the connection end before it answers the next question."""
    gate = Gate()
    with serving(Script([Turn("abcdefghij", characters=2, holds={3: gate}), Turn("All quiet.")])) as server:
        one = Agent(chat(server, tools=[look]))

        async def ask() -> None:
            stream = await reading(one, way)
            assert (await one.arun("Second?") if way.startswith("a") else one.run("Second?")).text == "All quiet."
            del stream

        asyncio.run(ask())
        assert server.exchanges[0].disconnected.wait(20) and not server.exchanges[0].finished.is_set()
    assert not gate.opened.is_set() and [message.text for message in one.history] == ["Second?", "All quiet."]


async def reading(one: Agent, way: str) -> Any:
    """A stream of a question, or of its events, of which the first text was read."""
    stream: Any
    if way in ("run_stream", "events"):
        stream = one.run_stream("First?") if way == "run_stream" else events(one.run_stream("First?"))
        assert next(part for part in stream if getattr(part, "text", ""))
        return stream
    stream = one.arun_stream("First?") if way == "arun_stream" else aevents(one.arun_stream("First?"))
    async for part in stream:
        if getattr(part, "text", ""):
            break
    return stream


@pytest.mark.parametrize("way", ["run_stream", "arun_stream", "events", "aevents"])
def test_a_stream_is_a_context_manager(way: str) -> None:
    """At the end of the block it is closed, and its reply with it."""
    one = agent("Not so quick.")

    async def read() -> None:
        if way.startswith("a"):
            given: Any = one.arun_stream("First?")
            async with aevents(given) if way == "aevents" else given as stream:
                async for _ in stream:
                    if open_replies(one):
                        break
        else:
            given = one.run_stream("First?")
            with events(given) if way == "events" else given as stream:
                assert any(open_replies(one) for _ in stream)
        assert open_replies(one) == 0

    asyncio.run(read())


@pytest.mark.parametrize("by", ["break", "raise"])
def test_a_stream_that_is_dropped_is_closed_at_once(by: str) -> None:
    """Nothing refers to it in a circle: its reply ends with the loop that read it."""
    one = agent("Not so quick.")
    try:
        for chunk in one.run_stream("First?"):
            if chunk.text and by == "raise":
                raise LookupError
            if chunk.text:
                break
    except LookupError:
        pass
    assert open_replies(one) == 0


def test_a_stream_read_on_an_event_loop_of_another_thread_gives_way() -> None:
    """The next question comes at once; the loop of the stream closes its reply."""
    one = agent("Not so quick.", "All quiet.")
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        stream = one.arun_stream("First?")
        asyncio.run_coroutine_threadsafe(abegin(stream), loop).result(20)
        assert open_replies(one) == 1
        assert one.run("Second?").text == "All quiet."
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0.05), loop).result(20)
        assert open_replies(one) == 0
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(20)
        loop.close()


async def test_a_stream_that_is_being_closed_is_waited_for() -> None:
    """The next question comes while another task closes the stream; a close that fails, as it is being read, changes nothing."""
    hang, begun = asyncio.Event(), asyncio.Event()

    async def wait(at: str) -> str:
        """Wait for the test."""
        begun.set()
        await hang.wait()
        return at

    one = Agent(CountingModel(replies=["Not so quick.", CALLING, "Done.", "All quiet."], tools={"look": wait}))
    await abegin(stream := one.arun_stream("First?"))
    closing = asyncio.ensure_future(stream.aclose())
    await asyncio.sleep(0)
    reading = asyncio.ensure_future(asked(one, "arun_stream"))
    await begun.wait()
    assert closing.done() and open_replies(one) == 0
    hang.set()
    await reading
    assert one.history[-1].text == "Done."


async def test_a_stream_that_is_read_in_another_task_refuses_to_be_closed() -> None:
    """The reader goes on, and the next question is refused as before."""
    hang, begun = asyncio.Event(), asyncio.Event()

    async def wait(at: str) -> str:
        """Wait for the test."""
        begun.set()
        await hang.wait()
        return at

    one = Agent(CountingModel(replies=[CALLING, "Done."], tools={"look": wait}))
    stream = one.arun_stream("First?")

    async def read() -> list[AIMessageChunk]:
        return [chunk async for chunk in stream]

    reading = asyncio.ensure_future(read())
    await begun.wait()
    with pytest.raises(RuntimeError, match="already running"):
        await stream.aclose()
    with pytest.raises(ConfigurationError, match="answering already"):
        await one.arun("Second?")
    hang.set()
    assert await reading and stream.result.text.endswith("Done.")
