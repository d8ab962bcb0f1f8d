"""`cancel` ends a run from outside, whatever it waits for: a server, a retry, a tool. It returns with what it has."""

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage

from langchain_autotools import ChatOpenAI, new_messages
from langchain_autotools import stop_reason as said_by
from tests.support.endless import EndlessServer, Reply, ended, endless, head, silent
from tests.support.endless_chat import (
    CALL,
    CLASSES,
    Way,
    ainvoke,
    asks,
    astream,
    event,
    every_way,
    load_sdks,
    look,
    stop_reason,
    stream,
    streamed,
)

ENOUGH = 20.0
"""How long a test waits for what another thread does."""


class Switch:
    """What a run is cancelled by.

    Attributes:
        flag: What is given to the run.
        flip: Cancels it, from any thread.
    """

    def __init__(self, kind: str) -> None:
        event = asyncio.Event() if kind == "asyncio.Event" else threading.Event()
        self.flag: Any = event.is_set if kind == "function" else event
        self.flip = event.set


every_kind = pytest.mark.parametrize("kind", ["threading.Event", "asyncio.Event", "function"])


def model_of(server: EndlessServer, **more: Any) -> ChatOpenAI:
    """A model with a tool."""
    return ChatOpenAI(**{"model": "any", "base_url": f"{server.address}/v1", "api_key": "key", "tools": [look], **more})


def then(reply: Reply, do: Callable[[], Any]) -> Reply:
    """A reply, and what happens after its first piece was sent."""
    pieces = iter(reply)
    yield next(pieces)
    do()
    yield from pieces


@pytest.fixture(autouse=True, scope="module")
def _ready() -> None:
    """The SDKs are loaded."""
    load_sdks()


REPLIES: dict[str, Callable[[], Reply]] = {
    "a silent server": silent,
    "a silent body": lambda: silent(head()),
    "comments for ever": lambda: endless(head(), piece=b": keep-alive\n\n"),
    "an error body for ever": lambda: endless(head(400, "application/json"), piece=b"x"),
}


@every_way
@pytest.mark.parametrize("reply", REPLIES)
def test_a_run_that_waits_for_its_server_is_cancelled(way: Way, reply: str) -> None:
    """It returns with what it has, which is nothing; the connection is left, and there is no other request."""
    switch = Switch("threading.Event")
    with EndlessServer(lambda _: then(REPLIES[reply](), switch.flip)) as server:
        message, new = way(model_of(server), cancel=switch.flag)
        assert (stop_reason(message), message.text, new, server.requests) == ("cancelled", "", [], 1)
        assert server.left.wait(ENOUGH)


@every_way
@every_kind
def test_any_kind_of_flag_ends_a_silent_reply(way: Way, kind: str) -> None:
    """An event that another thread sets, of whatever kind, and a function that is asked again and again."""
    switch = Switch(kind)
    with EndlessServer(lambda _: then(silent(head()), switch.flip)) as server:
        message, new = way(model_of(server), cancel=switch.flag)
        assert (stop_reason(message), new) == ("cancelled", [])
        assert server.left.wait(ENOUGH)


async def test_an_event_of_the_runs_own_loop_ends_it() -> None:
    """One task cancels what another waits for."""
    flag = asyncio.Event()
    with EndlessServer(lambda _: silent(head())) as server:
        task = asyncio.create_task(model_of(server).ainvoke("Hi", cancel=flag))
        while not server.requests:
            await asyncio.sleep(0.01)
        flag.set()
        assert stop_reason(await task) == "cancelled"


async def test_an_event_that_another_loop_waits_for_is_looked_at_all_the_same() -> None:
    """The run cannot wait for it, but it can see that it is set."""
    flag, waits = asyncio.Event(), threading.Event()

    async def wait() -> None:
        asyncio.get_running_loop().call_soon(waits.set)
        await asyncio.wait_for(flag.wait(), ENOUGH)

    other = threading.Thread(target=lambda: asyncio.run(wait()))
    other.start()
    await asyncio.to_thread(waits.wait, ENOUGH)
    loop = flag._loop  # type: ignore[attr-defined]
    with EndlessServer(lambda _: then(silent(head()), lambda: loop.call_soon_threadsafe(flag.set))) as server:
        assert stop_reason(await model_of(server).ainvoke("Hi", cancel=flag)) == "cancelled"
    other.join(ENOUGH)


@every_way
@every_kind
def test_a_run_that_is_cancelled_before_it_starts_makes_no_request(way: Way, kind: str) -> None:
    """Nothing is sent, and nothing is new."""
    switch = Switch(kind)
    switch.flip()
    with EndlessServer(lambda _: silent()) as server:
        message, new = way(model_of(server), cancel=switch.flag)
        assert (stop_reason(message), message.text, new, server.requests) == ("cancelled", "", [], 0)


@every_way
def test_a_retry_is_not_waited_for(way: Way) -> None:
    """A server that asks for a minute gets no second request."""
    switch = Switch("threading.Event")

    def answer(_: int) -> Reply:
        threading.Timer(0.1, switch.flip).start()
        return ended(429, {"error": {"message": "slow down", "type": "rate_limit"}}, retry_after="59")

    with EndlessServer(answer) as server:
        message, new = way(model_of(server), cancel=switch.flag)
        assert (stop_reason(message), new, server.requests) == ("cancelled", [], 1)


TALKS = [head(), event({"role": "assistant", "content": "Let me "}), event({"content": "see"}), event({"tool_calls": [CALL]})]


@every_kind
def test_a_stream_is_stopped_from_another_thread(kind: str) -> None:
    """Closing its generator cannot do it while it waits; what it had said is a message of its own, without calls."""
    switch = Switch(kind)
    with EndlessServer(lambda _: endless(*TALKS, piece=b": \n\n")) as server:
        chunks = model_of(server).stream("Hi", cancel=switch.flag)
        taken: list[Any] = []

        def take() -> None:
            for chunk in chunks:
                taken.append(chunk)

        reader = threading.Thread(target=take)
        reader.start()
        while "see" not in "".join(chunk.text for chunk in taken):
            assert reader.is_alive()
        while not chunks.gi_running:  # type: ignore[attr-defined]
            assert reader.is_alive()
        with pytest.raises(ValueError, match="generator already executing"):
            chunks.close()
        switch.flip()
        reader.join(ENOUGH)
        assert not reader.is_alive()
        assert stop_reason(taken[-1]) == "cancelled"
        new = [message for chunk in taken for message in new_messages(chunk)]
        assert [(type(one), one.text, one.tool_calls, one.invalid_tool_calls) for one in new] == [(AIMessage, "Let me see", [], [])]
        assert server.left.wait(ENOUGH)


@streamed
def test_a_run_is_cancelled_between_two_chunks(way: Way) -> None:
    """The caller's own loop may do it too: no further chunk of the reply is read, and the run still says how it ended."""
    flag = threading.Event()
    with EndlessServer(lambda _: endless(*TALKS[:2], piece=event({"content": "and "}))) as server:
        model = model_of(server)
        if way is stream:
            chunks = []
            for chunk in model.stream("Hi", cancel=flag):
                chunks.append(chunk)
                flag.set()
        else:
            chunks = asyncio.run(_until_first(model, flag))
        assert stop_reason(chunks[-1]) == "cancelled"
        assert "".join(chunk.text for chunk in chunks) == "Let me "
        assert [message.text for chunk in chunks for message in new_messages(chunk)] == ["Let me "]
        assert server.left.wait(ENOUGH)


async def _until_first(model: Any, flag: threading.Event) -> list[Any]:
    """All chunks of a run that is cancelled at its first one."""
    chunks = []
    async for chunk in model.astream("Hi", cancel=flag):
        chunks.append(chunk)
        flag.set()
    return chunks


@every_way
@pytest.mark.parametrize("on_limit", ["answer", "return", "raise"])
def test_what_had_completed_is_kept_and_no_request_follows(way: Way, on_limit: str) -> None:
    """It is no limit: nothing is raised, and no last answer asked for, also where a limit is reached at the same time."""
    flag = threading.Event()

    def look() -> str:
        """Look."""
        flag.set()
        return "seen"

    with EndlessServer(lambda _: asks(way, "look")) as server:
        message, new = way(model_of(server, tools=[look], max_turns=1, on_limit=on_limit), cancel=flag)
        assert stop_reason(message) == "cancelled"
        assert [type(one) for one in new] == [AIMessage, ToolMessage]
        assert server.requests == 1


@every_way
@pytest.mark.parametrize("parallel", [True, False])
def test_running_tools_end(way: Way, parallel: bool, caplog: pytest.LogCaptureFixture) -> None:
    """A thread is given up with a warning, an asynchronous tool is cancelled, what has not begun does not run; each call is answered,
    and the listener hears of every result."""
    release, lingers, looked, flag = threading.Event(), threading.Event(), threading.Event(), threading.Event()
    stopped: list[str] = []
    heard: list[str] = []

    def look() -> str:
        """Look."""
        looked.set()
        return "seen"

    def block() -> str:
        """Block, when the others have come as far as they can."""
        lingers.wait(ENOUGH)
        looked.wait(ENOUGH)
        flag.set()
        release.wait(ENOUGH)
        return "late"

    async def linger() -> str:
        """Linger; where nothing runs beside it, it is what is cancelled."""
        lingers.set()
        if not parallel:
            flag.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            stopped.append("linger")
            raise
        return "late"

    try:
        with EndlessServer(lambda _: asks(way, "linger", "block", "look")) as server, caplog.at_level(logging.WARNING):
            model = model_of(server, tools=[block, linger, look], parallel=parallel)
            message, new = way(model, cancel=flag, on_executed=lambda result: heard.append(result.call.id))
            assert (stop_reason(message), server.requests) == ("cancelled", 1)
    finally:
        release.set()
    assert [one.tool_call_id for one in new[1:]] == ["call_0", "call_1", "call_2"] == sorted(heard)
    assert "cancelled before it finished" in new[1].content and stopped == ["linger"]
    if parallel:
        assert "cancelled before it finished" in new[2].content and new[3].content == "seen"
    else:
        assert all("cancelled before it ran" in one.content for one in new[2:]) and not looked.is_set()
    assert ("tool block is given up" in caplog.text) is parallel


@every_way
def test_what_a_function_raises_ends_the_run(way: Way) -> None:
    """Its error comes out of the run, with what had completed."""
    asked: list[int] = []

    def look() -> str:
        """Look."""
        asked.append(1)
        return "seen"

    def broken() -> bool:
        if asked:
            raise LookupError("no such run")
        return False

    with EndlessServer(lambda _: asks(way, "look")) as server:
        with pytest.raises(LookupError, match="no such run") as caught:
            way(model_of(server, tools=[look]), cancel=broken)
        assert way in (stream, astream) or [type(one) for one in new_messages(caught.value)] == [AIMessage, ToolMessage]
        assert server.requests == 1


@pytest.mark.parametrize("chat_model", CLASSES[1:], ids=lambda one: one.__name__)
@pytest.mark.parametrize("way", [stream, ainvoke])
def test_every_wire_can_be_cancelled(chat_model: Any, way: Way) -> None:
    """Wires of other SDKs and of none: a reply of nothing but white space."""
    flag = threading.Event()
    with EndlessServer(lambda _: then(endless(head(), piece=b"\n"), flag.set)) as server:
        message, new = way(chat_model(model="any", base_url=server.address, tools=[look], api_key="key"), cancel=flag)
        assert (stop_reason(message), new, server.requests) == ("cancelled", [], 1)
        assert server.left.wait(ENOUGH)


@every_way
def test_a_model_that_a_tool_asks_ends_with_the_run_around_it(way: Way) -> None:
    """The tool's thread cannot be stopped, but what it waits for is."""
    flag = threading.Event()
    with EndlessServer(lambda _: then(silent(head()), flag.set)) as inner, EndlessServer(lambda _: asks(way, "ask")) as outer:
        helper = model_of(inner)

        def ask() -> str:
            """Ask."""
            return helper.invoke("Hi").text

        message, new = way(model_of(outer, tools=[ask]), cancel=flag)
        assert (stop_reason(message), outer.requests) == ("cancelled", 1)
        assert "cancelled" in new[-1].content
        assert inner.left.wait(ENOUGH)


@pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke", "astream"])
@every_kind
def test_a_model_without_tools_of_its_own_is_cancelled_too(way: str, kind: str) -> None:
    """Its message holds what had come, and says so by its finish reason, as of any reply that broke off."""
    switch = Switch(kind)
    reply: Callable[[], Reply] = lambda: endless(*TALKS[:3], piece=b": \n\n")  # noqa: E731
    with EndlessServer(lambda _: reply() if "stream" in way else then(silent(head()), switch.flip)) as server:
        model = model_of(server, tools=None)
        if way == "invoke":
            new: list[Any] = [model.invoke("Hi", cancel=switch.flag)]
        elif way == "ainvoke":
            new = [asyncio.run(model.ainvoke("Hi", cancel=switch.flag))]
        else:
            new = _said_before(switch, model) if way == "stream" else asyncio.run(_asaid_before(switch, model))
        [message] = new
        assert type(message) is AIMessage
        assert (message.text, message.response_metadata["finish_reason"]) == ("Let me see" if "stream" in way else "", "cancelled")
        assert message.id and said_by(message) == "cancelled" and server.left.wait(ENOUGH)


def _said_before(switch: Switch, model: Any) -> list[Any]:
    """The new messages of a stream that is cancelled when it has said all that it will."""
    new = []
    for chunk in model.stream("Hi", cancel=switch.flag):
        new += new_messages(chunk)
        if "see" in chunk.text:
            switch.flip()
    return new


async def _asaid_before(switch: Switch, model: Any) -> list[Any]:
    """The same, asynchronously."""
    new = []
    async for chunk in model.astream("Hi", cancel=switch.flag):
        new += new_messages(chunk)
        if "see" in chunk.text:
            switch.flip()
    return new


async def test_a_cancellation_of_the_callers_task_stays_one() -> None:
    """Whoever cancels the task of a run that could be cancelled otherwise gets asyncio's own error."""
    with EndlessServer(lambda _: silent()) as server:
        task = asyncio.create_task(model_of(server).ainvoke("Hi", cancel=threading.Event()))
        while not server.requests:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


def test_runs_at_once_are_cancelled_each_by_its_own_flag() -> None:
    """Of two runs of one model, one ends and one goes on until it is cancelled too."""
    first, second = threading.Event(), threading.Event()
    with EndlessServer(lambda _: silent(head())) as server:
        model, ends = model_of(server), {}
        other = threading.Thread(target=lambda: ends.__setitem__("second", model.invoke("Hi", cancel=second)))
        other.start()
        first.set()
        assert stop_reason(model.invoke("Hi", cancel=first)) == "cancelled"
        assert not ends
        second.set()
        other.join(ENOUGH)
        assert stop_reason(ends["second"]) == "cancelled"
