"""Law 9, text leaves at once: a text chunk reaches the caller before the next event is read, or even sent."""

import asyncio
import itertools
import threading
from typing import Any

import pytest
from hypothesis import strategies as st
from langchain_core.callbacks import BaseCallbackHandler

from langchain_autotools import new_messages
from tests.laws.stories import Said, Script, good_calls, texts
from tests.laws.ways import LISTENERS, QUESTION, chat, law, serving, waited
from tests.laws.workshop import Workshop
from tests.support.http_server import Gate
from tests.support.script import Call, Turn

WAIT = 20


def gated(text: str, size: int) -> tuple[Said, list[tuple[str, Gate]]]:
    """A reply whose every event after a text waits for its gate, and what must have been seen before each opens."""
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    gates = [Gate() for _ in pieces]
    return Said(text, characters=size, holds={2 + number: gate for number, gate in enumerate(gates)}), list(zip(pieces, gates, strict=True))


@law(5)
def test_law_9_each_text_is_seen_before_the_next_event_is_sent(data: st.DataObject) -> None:
    """The server sends its next event only when the caller has the text before it; so in later turns, as blocks, whoever listens."""
    text = data.draw(texts.filter(bool))
    said, steps = gated(text, data.draw(st.integers(1, 4)))
    before = data.draw(
        st.lists(st.builds(Said, st.sampled_from(["", "Look."]), st.lists(good_calls(), min_size=1, max_size=2)), max_size=1)
    )
    fields = {"output_version": data.draw(st.sampled_from([None, "v1"])), "message_separator": data.draw(st.sampled_from([" | ", ""]))}
    callbacks = LISTENERS[data.draw(st.sampled_from(sorted(LISTENERS)))]()
    tools = Workshop().tools() if before else data.draw(st.sampled_from([(), Workshop().tools()]))
    with serving(Script([*before, said])) as server:
        model = chat(server, tools=tools, **fields)
        config = {"callbacks": callbacks}
        if data.draw(st.booleans()):
            waited(aseen(model.astream([QUESTION], config), steps))
        else:
            seen(model.stream([QUESTION], config), steps)


def seen(chunks: Any, steps: list[tuple[str, Gate]]) -> None:
    """Read on until each text has come, then let the server go on."""
    for text, gate in steps:
        assert any(chunk.text == text for chunk in chunks), text
        assert not gate.opened.is_set()
        gate.open()
    assert not "".join(chunk.text for chunk in chunks)


async def aseen(chunks: Any, steps: list[tuple[str, Gate]]) -> None:
    """The same, asynchronously."""
    for text, gate in steps:
        async with asyncio.timeout(WAIT):
            while (await anext(chunks)).text != text:
                pass
        gate.open()
    assert not "".join([chunk.text async for chunk in chunks])


def test_law_9_listeners_hear_a_token_before_the_next_is_sent() -> None:
    """A handler's token comes with its event, not with the end of the turn."""
    said, steps = gated("abcdef", 2)
    gates = dict(steps)

    class Opens(BaseCallbackHandler):
        raise_error = True

        def on_llm_new_token(self, token: str, **_: Any) -> None:
            if token in gates:
                gates[token].open()

    with serving(Script([said])) as server:
        model = chat(server, tools=Workshop().tools(), streaming=True)
        assert model.invoke([QUESTION], {"callbacks": [Opens()]}).text == "abcdef"


def test_law_9_a_result_is_seen_before_the_next_one_is_there() -> None:
    """A tool's result reaches the caller while the next tool still runs."""
    release = threading.Event()

    def first() -> str:
        """Be quick."""
        return "first"

    def second() -> str:
        """Wait until the caller has the first result."""
        assert release.wait(WAIT)
        return "second"

    with serving(Script([Turn("Look.", [Call("first"), Call("second")]), Turn("Done.")])) as server:
        brought = (message for chunk in chat(server, tools=[first, second]).stream([QUESTION]) for message in new_messages(chunk))
        assert [next(brought).text, next(brought).text] == ["Look.", "first"]
        release.set()
        assert [message.text for message in brought] == ["second", "Done."]


@pytest.mark.parametrize("way", ["stream", "astream"])
@pytest.mark.parametrize("listeners", sorted(LISTENERS))
def test_law_9_a_closed_stream_ends_the_connection_before_the_next_event(way: str, listeners: str) -> None:
    """The server waits with its next event; when the caller closes the stream, it sees the connection end instead."""
    for event, turns in itertools.product((2, 4), (0, 1)):
        gate = Gate()
        before = [Turn("Wait.", [Call("tell_time")])][:turns]
        with serving(Script([*before, Turn("abcdefghij", characters=2, holds={event: gate})])) as server:
            model = chat(server, tools=Workshop().tools())
            config = {"callbacks": LISTENERS[listeners]()}
            last = "abcdefghij"[2 * event - 4 : 2 * event - 2]
            if way == "stream":
                chunks = model.stream([QUESTION], config)
                assert any(chunk.text == last for chunk in chunks)
                chunks.close()
            else:
                waited(aleft(model.astream([QUESTION], config), last))
            held = server.exchanges[-1]
            assert held.disconnected.wait(WAIT)
            assert not held.finished.is_set() and not gate.opened.is_set()


async def aleft(chunks: Any, last: str) -> None:
    """Read up to a text, then close."""
    async with asyncio.timeout(WAIT):
        while (await anext(chunks)).text != last:
            pass
    await chunks.aclose()


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_law_9_a_closed_stream_cancels_the_tools_that_run(way: str) -> None:
    """Closed while tools run: the coroutine is cancelled, the thread is given up and reported, and nothing more is asked."""
    release, cancelled = threading.Event(), threading.Event()
    begun = threading.Barrier(3, timeout=WAIT)  # both tools and the test
    reported: list[str] = []

    def quick() -> str:
        """Be quick."""
        return "quick"

    async def coroutine() -> str:
        """Wait for ever."""
        try:
            await asyncio.to_thread(begun.wait)
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return "never"

    def thread() -> str:
        """Wait for the test."""
        begun.wait()
        release.wait(WAIT)
        return "late"

    calls = [Call("quick"), Call("coroutine"), Call("thread")]
    with serving(Script([Turn("Look.", calls)])) as server:
        model = chat(server, tools=[quick, coroutine, thread], on_executed=lambda result: reported.append(result.message.text))
        try:
            if way == "stream":
                chunks = model.stream([QUESTION])
                assert any(brings_result(chunk) for chunk in chunks)
                begun.wait()
                chunks.close()
            else:
                waited(aleft_with_result(model.astream([QUESTION]), begun))
            assert cancelled.wait(WAIT)
        finally:
            release.set()
        assert len(reported) == 3 and reported[0] == "quick"
        assert all("cancelled" in text for text in reported[1:])
        assert len(server.exchanges) == 1


def brings_result(chunk: Any) -> bool:
    """Whether a chunk brings the result of a call."""
    return any(message.type == "tool" for message in new_messages(chunk))


async def aleft_with_result(chunks: Any, begun: threading.Barrier) -> None:
    """Read up to the first result, wait until both tools run, then close."""
    async for chunk in chunks:
        if brings_result(chunk):
            break
    await asyncio.to_thread(begun.wait)
    await chunks.aclose()
