"""`deadline` bounds a run in wall time, whatever the server does: retries, open replies, running tools."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage

from langchain_autotools import ChatOpenAI, LimitReachedError, new_messages
from langchain_autotools.deadline import Deadline
from langchain_autotools.providers._transport.timeouts import opened_in_time
from tests.support.at_once import at_once, with_time_for_it
from tests.support.endless import REPLIES, EndlessServer, ended, endless, head, silent
from tests.support.endless_chat import (
    CALL,
    CLASSES,
    Way,
    ainvoke,
    asks,
    astream,
    event,
    every_way,
    invoke,
    load_sdks,
    look,
    stop_reason,
    stream,
)

SECONDS = 1.0
ENOUGH = 20.0
"""A run that ends within this time, where its server never would, was ended by its deadline: machines are slow at times."""


def model_of(server: EndlessServer, **more: Any) -> ChatOpenAI:
    """A model with a tool and a deadline."""
    fields = {"model": "any", "base_url": f"{server.address}/v1", "api_key": "key", "tools": [look], "deadline": SECONDS}
    return ChatOpenAI(**{**fields, **more})


@pytest.fixture(autouse=True, scope="module")
def _ready() -> None:
    """The SDKs are loaded."""
    load_sdks()


@pytest.fixture(autouse=True)
def _ends_in_time() -> Iterator[None]:
    """Every test here ends, and soon."""
    started = time.monotonic()
    yield
    assert time.monotonic() - started < ENOUGH


EVERY_WAY = (invoke, stream, ainvoke, astream)
STREAMED = (stream, astream)


@every_way
def test_a_server_that_never_ends_its_reply_does_not_outlive_the_deadline(way: Way) -> None:
    """Whatever it sends meanwhile."""
    at_once({words: partial(outlives_no_deadline, way, reply) for words, reply in REPLIES.items()})


def outlives_no_deadline(way: Way, reply: Callable[[], Any]) -> None:
    """The run returns with what it has, which is nothing; the connection is left."""
    with EndlessServer(lambda _: reply()) as server:
        message, new = way(model_of(server))
        assert (stop_reason(message), message.text, new) == ("deadline", "", [])
        assert server.requests <= 1  # none where the machine is too slow to send one in time
        assert not server.requests or server.left.wait(ENOUGH)


@every_way
def test_a_wait_that_would_pass_the_deadline_is_not_begun(way: Way) -> None:
    """A server that asks for more time than there is gets no second request."""
    refusal = {"error": {"message": "slow down", "type": "rate_limit"}}
    with EndlessServer(lambda _: ended(429, refusal, retry_after="30")) as server:
        message, new = way(model_of(server, deadline=15))
        assert (stop_reason(message), new, server.requests) == ("deadline", [], 1)


def test_the_text_that_was_delivered_is_kept() -> None:
    """A reply that is cut leaves a message of its text, without calls, and goes back to the model as such."""
    at_once({way.__name__: partial(with_time_for_it, partial(keeps_the_text, way), 0.4, 2, 8) for way in STREAMED})


def keeps_the_text(way: Way, seconds: float) -> None:
    """A run whose reply begins with text, and whose call is never whole."""
    pieces = [head(), event({"role": "assistant", "content": "Let me "}), event({"content": "see"})]
    with EndlessServer(lambda _: endless(*pieces, event({"tool_calls": [CALL]}), piece=b": \n\n")) as server:
        message, new = way(model_of(server, deadline=seconds))
        assert stop_reason(message) == "deadline"
        assert message.text == "Let me see"
        assert [(type(one), one.text, one.tool_calls, one.invalid_tool_calls) for one in new] == [(AIMessage, "Let me see", [], [])]


def test_a_text_without_end_is_cut() -> None:
    """Also a reply that never stops saying something."""
    at_once({way.__name__: partial(with_time_for_it, partial(cuts_the_text, way), 0.4, 2, 8) for way in STREAMED})


def cuts_the_text(way: Way, seconds: float) -> None:
    """A run whose reply is text for ever."""
    with EndlessServer(lambda _: endless(head(), piece=event({"content": "and "}))) as server:
        message, new = way(model_of(server, deadline=seconds))
        assert stop_reason(message) == "deadline"
        assert message.text == new[0].text != ""
        assert server.left.wait(ENOUGH)


def test_what_had_completed_is_kept_and_there_is_no_last_request() -> None:
    """The first turn and its result are there; `answer` acts as `return`, `raise` raises with them."""
    cases = [(way, on_limit) for way in EVERY_WAY for on_limit in ("answer", "raise")]
    checks = {f"{way.__name__} {on_limit}": partial(keeps_what_had_completed, way, on_limit) for way, on_limit in cases}
    at_once({words: partial(with_time_for_it, check, 0.6, 3, 9) for words, check in checks.items()})


def keeps_what_had_completed(way: Way, on_limit: str, seconds: float) -> None:
    """A run that ends in its second turn."""
    first = asks(way, "look")
    with EndlessServer(lambda number: first if number == 0 else silent()) as server:
        model = model_of(server, deadline=seconds, on_limit=on_limit)
        if on_limit == "answer":
            message, new = way(model)
            assert stop_reason(message) == "deadline"
            assert [type(one) for one in new] == [AIMessage, ToolMessage]
        else:
            with pytest.raises(LimitReachedError) as caught:
                way(model)
            assert caught.value.stop_reason == "deadline"
            assert way in (stream, astream) or [type(one) for one in new_messages(caught.value)] == [AIMessage, ToolMessage]
        assert server.requests == 2


def test_running_tools_end_with_the_deadline(caplog: pytest.LogCaptureFixture) -> None:
    """A thread is given up with a warning, an asynchronous tool is cancelled, each call is answered, no request follows."""
    cases = [(way, parallel) for way in EVERY_WAY for parallel in (True, False)]

    def end(seconds: float) -> None:
        caplog.clear()
        at_once({f"{way.__name__} {parallel}": partial(ends_running_tools, way, parallel, seconds) for way, parallel in cases})
        assert caplog.text.count("tool block is given up") == len(EVERY_WAY)  # where one call runs after another it has not begun

    with caplog.at_level(logging.WARNING, "langchain_autotools"):
        with_time_for_it(end, 1.2, 5)


def ends_running_tools(way: Way, parallel: bool, seconds: float) -> None:
    """A run whose tools do not end."""
    release, cancelled = threading.Event(), threading.Event()

    def block() -> str:
        """Block."""
        release.wait(60)
        return "late"

    async def linger() -> str:
        """Linger."""
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return "late"

    first = asks(way, "linger", "block", "look")
    try:
        with EndlessServer(lambda _: first) as server:
            message, new = way(model_of(server, tools=[block, linger, look], parallel=parallel, deadline=seconds))
            assert (stop_reason(message), server.requests) == ("deadline", 1)
            assert [getattr(one, "status", None) for one in new] == [None, "error", "error", "success" if parallel else "error"]
            assert all("time for this run is over" in str(one.content) for one in new[1:] if one.status == "error")
            assert cancelled.wait(ENOUGH)
    finally:
        release.set()


def test_every_wire_ends_with_the_deadline() -> None:
    """Wires of other SDKs and of none: a reply of nothing but white space."""
    cases = [(cls, way) for cls in CLASSES[1:] for way in (stream, ainvoke)]
    at_once({f"{cls.__name__} {way.__name__}": partial(ends_with_the_deadline, cls, way) for cls, way in cases})


def ends_with_the_deadline(chat_model: Any, way: Way) -> None:
    """A run of a class over such a reply."""
    with EndlessServer(lambda _: endless(head(), piece=b"\n")) as server:
        message, new = way(chat_model(model="any", base_url=server.address, tools=[look], api_key="key", deadline=SECONDS))
        assert (stop_reason(message), new, server.requests <= 1) == ("deadline", [], True)
        assert not server.requests or server.left.wait(ENOUGH)


async def test_a_cancellation_of_the_callers_stays_one() -> None:
    """Whoever cancels a run with a deadline is not told that it ended."""
    with EndlessServer(lambda _: silent()) as server:
        task = asyncio.create_task(model_of(server, deadline=60).ainvoke("Hi"))
        while not server.requests:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await model_of(server, deadline=60).ainvoke("Hi")


def test_runs_at_once_have_their_own_deadlines() -> None:
    """Of runs of one model that are on their way together, each ends at its own time."""
    with EndlessServer(lambda _: silent()) as server:
        model = model_of(server, deadline=60)
        ends: dict[float, Any] = {}
        late = threading.Thread(target=lambda: ends.__setitem__(1.5, model.invoke("Hi", deadline=1.5)))
        late.start()
        assert stop_reason(model.invoke("Hi", deadline=0.1)) == "deadline"
        assert not ends
        late.join(ENOUGH)
        assert stop_reason(ends[1.5]) == "deadline"


def test_a_reply_that_is_left_at_its_first_chunk_is_closed() -> None:
    """Its connection is not kept until somebody happens to forget it."""
    closed: list[bool] = []

    def chunks() -> Generator[int, None, None]:
        try:
            yield from (1, 2)
        finally:
            closed.append(True)

    opened = chunks()
    begun, rest = opened_in_time(lambda: ([next(opened)], opened), Deadline(60))
    assert (begun, closed) == ([1], [])
    rest.close()
    assert closed == [True]
