"""`deadline` and models of one's own: what is checked between chunks, what is cancelled, runs inside runs."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage

from langchain_autotools import ToolExecutor, ToolsAndMessagesMixin, new_messages
from langchain_autotools.testing import ScriptedChatModel
from tests.support.at_once import at_once


def look() -> str:
    """Look."""
    return "seen"


class Talker(ToolsAndMessagesMixin, BaseChatModel):
    """Says a word again and again, for longer than any test lasts."""

    pause: float = 0.02

    @property
    def _llm_type(self) -> str:
        return "talker"

    def raw_stream(self, messages: Any, stop: Any = None, **kwargs: Any) -> Iterator[AIMessageChunk]:
        """Talk."""
        for _ in range(100_000):
            yield AIMessageChunk(content="word ")
            time.sleep(self.pause)


class AsyncTalker(Talker):
    """The same without threads."""

    async def araw_stream(self, messages: Any, stop: Any = None, **kwargs: Any) -> AsyncIterator[AIMessageChunk]:
        """Talk once, then be silent."""
        yield AIMessageChunk(content="word ")
        await asyncio.sleep(3600)


def ended(message: Any) -> tuple[str, str]:
    """The stop reason, and the text of the last message."""
    new = new_messages(message)
    return message.response_metadata["autotools"]["stop_reason"], new[-1].text if new else ""


def test_a_stream_of_ones_own_is_checked_between_chunks() -> None:
    """A synchronous `raw_stream` is asked for no chunk after the deadline; what it said is kept."""
    chunks = list(Talker(tools=[look]).stream("Hi", deadline=1.0))
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    reason, text = ended(whole)
    assert reason == "deadline"
    assert text == whole.text != ""


async def test_an_asynchronous_stream_of_ones_own_is_cancelled() -> None:
    """Also one that is silent."""
    chunks = [chunk async for chunk in AsyncTalker(tools=[look]).astream("Hi", deadline=1.0)]
    assert [message.text for chunk in chunks for message in new_messages(chunk)] == ["word "]


def test_what_came_too_late_is_kept() -> None:
    """The text of a late reply is the run's, which ends as `deadline`; its calls are answered and do not run."""

    def slowly(*_: Any, **__: Any) -> AIMessage:
        time.sleep(0.3)
        return AIMessage("Let me look.", tool_calls=[{"name": "look", "args": {}, "id": "1"}])

    message = ScriptedChatModel(replies=slowly, tools=[look]).invoke("Hi", deadline=0.1)
    first, result = new_messages(message)
    assert message.response_metadata["autotools"]["stop_reason"] == "deadline"
    assert first.text == "Let me look."
    assert isinstance(result, ToolMessage)
    assert result.status == "error"
    done = ScriptedChatModel(replies=lambda *_, **__: time.sleep(0.3) or "Done.", tools=[look]).invoke("Hi", deadline=0.1)
    assert ended(done) == ("deadline", "Done.")


class Around(Talker):
    """A model that asks another one."""

    inner: Any = None

    def raw_stream(self, messages: Any, stop: Any = None, **kwargs: Any) -> Iterator[AIMessageChunk]:
        """Hand on what the other one says."""
        yield from (AIMessageChunk(content=chunk.text) for chunk in self.inner.stream(messages))


def test_the_earlier_of_two_deadlines_ends_a_run_inside_a_run() -> None:
    """The run around is cut by its own deadline only; one that ends inside is an answer to it."""
    cases = [(1.0, 60.0, "deadline"), (60.0, 1.0, "complete"), (1.0, None, "deadline")]
    at_once({str(case): partial(ends_with_the_earlier, *case) for case in cases})


def ends_with_the_earlier(outer: float, inner: float | None, reason: str) -> None:
    """A run inside a run."""
    model = Around(tools=[look], inner=Talker(tools=[look], deadline=inner))
    chunks = list(model.stream("Hi", deadline=outer))
    assert chunks[-1].response_metadata["autotools"]["stop_reason"] == reason
    assert new_messages(chunks[-2])[0].text.startswith("word ")


def test_event_streams_end_with_the_deadline() -> None:
    """The v3 events of a run are those of a run that ends in time."""
    stream = Talker(tools=[look]).stream_events("Hi", version="v3", deadline=0.3)
    assert ended(stream.output)[0] == "deadline"


def test_calls_that_have_to_wait_for_others_do_not_run_after_the_deadline() -> None:
    """An executor on its own takes a deadline too; every call is answered, and the callback hears of those that ran."""
    ran: list[str] = []
    release = threading.Event()

    def block(name: str) -> str:
        """Block."""
        ran.append(name)
        release.wait(60)
        return name

    calls = [{"name": "block", "args": {"name": name}, "id": name} for name in "abc"]
    begun: list[str] = []
    executor = ToolExecutor([block], max_concurrency=1, on_executing=lambda call: begun.append(call.id))
    messages = executor.execute_all(calls, deadline=0.3)
    release.set()
    assert ran == begun == ["a"]
    assert ["stopped: the time" in str(one.content) for one in messages] == [True, False, False]
    assert ["Not run: the time" in str(one.content) for one in messages] == [False, True, True]


def test_calls_that_a_tool_executes_end_at_the_deadline_of_the_run_around_it() -> None:
    """A tool waits for an executor of its own, which waits for a coroutine: that is cancelled, and the tool goes on."""
    ended = threading.Event()

    async def never() -> str:
        """Wait for ever."""
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    inner = ToolExecutor([never])

    def work() -> list[str]:
        """Execute a call."""
        return [message.text for message in inner.execute_all([{"id": "1", "name": "never", "args": {}}])]

    call = AIMessage("", tool_calls=[{"id": "0", "name": "work", "args": {}}])
    run = ScriptedChatModel(tools=[work], replies=[call, "Never."], deadline=0.5).invoke("Work.")
    assert "the time for this run is over" in new_messages(run)[1].text
    assert ended.wait(20)
