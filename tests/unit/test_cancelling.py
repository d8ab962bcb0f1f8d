"""`cancel` of a run: models of one's own, runs inside runs, calls that wait for the caller, and where it has no effect."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage

from langchain_autotools import ChatOpenAI, ConfigurationError, ToolsAndMessagesMixin, deadline, new_messages, stop_reason
from langchain_autotools.deadline import Cancel, Deadline, DeadlinePassed
from langchain_autotools.testing import ScriptedChatModel
from tests.laws.ways import WAYS, After, run

LOOK = {"name": "look", "args": {}, "id": "1"}


def look() -> str:
    """Look."""
    return "seen"


def reason(message: Any) -> Any:
    """Why a run ended."""
    return message.response_metadata["autotools"]["stop_reason"]


class Talker(ToolsAndMessagesMixin, BaseChatModel):
    """Says a word again and again."""

    @property
    def _llm_type(self) -> str:
        return "talker"

    def raw_stream(self, messages: Any, stop: Any = None, **kwargs: Any) -> Iterator[AIMessageChunk]:
        """Talk."""
        while True:
            yield AIMessageChunk(content="word ")


class AsyncTalker(Talker):
    """The same without threads."""

    async def araw_stream(self, messages: Any, stop: Any = None, **kwargs: Any) -> AsyncIterator[AIMessageChunk]:
        """Talk once, then be silent."""
        yield AIMessageChunk(content="word ")
        await asyncio.sleep(3600)


class Around(Talker):
    """A model that asks another one."""

    inner: Any = None
    cancel_inner: Any = None

    def raw_stream(self, messages: Any, stop: Any = None, **kwargs: Any) -> Iterator[AIMessageChunk]:
        """Hand on what the other one says."""
        yield from (AIMessageChunk(content=chunk.text) for chunk in self.inner.stream(messages, cancel=self.cancel_inner))


def test_a_stream_of_ones_own_is_looked_at_between_chunks() -> None:
    """A synchronous `raw_stream` is asked for no chunk after that, and what it said is kept."""
    ran = run("stream", Talker(tools=[look]), "Hi", cancel=After(4))
    assert reason(ran.message) == "cancelled"
    assert [message.text for message in ran.new] == [ran.message.text if ran.message else None] == ["word word word word "]


@pytest.mark.parametrize("tools", [[look], []], ids=["tools", "no tools"])
def test_a_reply_of_ones_own_is_looked_at_between_chunks_where_it_leaves_whole(tools: list[Any]) -> None:
    """`invoke` asks a synchronous `raw_stream` for no chunk after that either, and keeps what it said."""
    ran = run("invoke", Talker(tools=tools), "Hi", cancel=After(4))
    assert (stop_reason(ran.message), [message.text for message in ran.new]) == ("cancelled", [ran.message.text])
    assert set(ran.message.text.split()) == {"word"}


async def test_an_asynchronous_stream_of_ones_own_is_cancelled() -> None:
    """Also one that is silent."""
    flag = asyncio.Event()
    new = []
    async for chunk in AsyncTalker(tools=[look]).astream("Hi", cancel=flag):
        new += new_messages(chunk)
        asyncio.get_running_loop().call_soon(flag.set)
    assert [message.text for message in new] == ["word "]


@pytest.mark.parametrize(("outer", "inner"), [(4, None), (4, 99), (None, 2)])
def test_either_of_two_flags_ends_a_run_inside_a_run(outer: int | None, inner: int | None) -> None:
    """The run around is cancelled by its own flag only; one that ends inside is an answer to it."""
    flags = [None if times is None else After(times) for times in (outer, inner)]
    ran = run("stream", Around(tools=[look], inner=Talker(tools=[look]), cancel_inner=flags[1]), "Hi", cancel=flags[0])
    assert reason(ran.message) == ("complete" if outer is None else "cancelled")
    assert 0 < ran.new[0].text.count("word") <= 4


@pytest.mark.parametrize("way", WAYS)
def test_a_deadline_and_a_flag_each_end_the_run_by_its_own_name(way: str) -> None:
    """Whichever comes first."""
    model = ScriptedChatModel(replies=["Done."], tools=[look])
    assert reason(run(way, model, "Hi", deadline=1e-9, cancel=threading.Event()).message) == "deadline"
    assert reason(run(way, model, "Hi", deadline=60, cancel=lambda: True).message) == "cancelled"


@pytest.mark.parametrize("way", WAYS)
def test_a_reply_that_is_whole_counts(way: str) -> None:
    """Who cancels after the last word has cancelled nothing."""
    flag = threading.Event()

    def say(*_: Any, **__: Any) -> AIMessage:
        flag.set()
        return AIMessage("Done.")

    ran = run(way, ScriptedChatModel(replies=say, tools=[look]), "Hi", cancel=flag)
    assert (reason(ran.message), ran.new[0].text) == ("complete" if "stream" not in way else reason(ran.message), "Done.")


@pytest.mark.parametrize("way", WAYS)
def test_calls_that_wait_for_the_caller_stay_his(way: str) -> None:
    """Those beside them are answered; the run says that it was cancelled."""
    flag = threading.Event()

    def halt() -> str:
        """Cancel."""
        flag.set()
        return "halted"

    calls = [{"name": name, "args": {}, "id": name} for name in ("halt", "look")]
    model = ScriptedChatModel(replies=[AIMessage("", tool_calls=calls)], tools=[halt]).bind_tools([look])
    ran = run(way, model, "Hi", cancel=flag)
    assert ran.message is not None
    assert (reason(ran.message), [call["id"] for call in ran.message.tool_calls]) == ("cancelled", ["look"])
    assert [message.type for message in ran.new] == ["ai", "tool"]
    flag.clear()
    none = ScriptedChatModel(replies=[AIMessage("", tool_calls=calls[1:])], tools=[halt]).bind_tools([look])
    assert reason(run(way, none, "Hi", cancel=flag).message) == "calls_pending"


def test_a_resumed_run_is_cancelled_too() -> None:
    """The calls that were decided are answered, and do not run."""
    ran: list[int] = []

    def note() -> str:
        """Note."""
        ran.append(1)
        return "noted"

    history = [HumanMessage("Hi"), AIMessage("", tool_calls=[{"name": "note", "args": {}, "id": "a"}])]
    message = ScriptedChatModel(replies=["Never."], tools=[note]).resume(history, True, cancel=lambda: True)
    assert (reason(message), ran) == ("cancelled", [])
    assert ["cancelled before it ran" in str(one.content) for one in new_messages(message)] == [True]


def test_event_streams_are_cancelled() -> None:
    """The v3 events of a run are those of a run that is cancelled."""
    stream = Talker(tools=[look]).stream_events("Hi", version="v3", cancel=After(3))
    assert reason(stream.output) == "cancelled"


@pytest.mark.parametrize("way", WAYS)
def test_a_batch_of_runs_is_cancelled_by_one_flag(way: str) -> None:
    """`batch` gives the keyword to each of its runs."""
    model = ScriptedChatModel(replies=["Done."] * 2, tools=[look])
    many = asyncio.run(model.abatch(["a", "b"], cancel=lambda: True)) if "a" in way[:1] else model.batch(["a", "b"], cancel=lambda: True)
    assert [reason(message) for message in many] == ["cancelled"] * 2


def test_it_belongs_to_one_call() -> None:
    """The constructor refuses it by name; `generate` makes a turn that nothing can end; a misspelt one is noticed."""
    with pytest.raises(ConfigurationError, match="no argument 'cancel': it belongs to one call: give it to invoke, stream"):
        ChatOpenAI(model="any", cancel=threading.Event())
    model = ScriptedChatModel(replies=["Done."], tools=[look])
    for tools in ([look], None):
        with pytest.raises(ConfigurationError, match="cancel is for invoke, stream"):
            ScriptedChatModel(replies=["Done."], tools=tools).generate([[HumanMessage("Hi")]], cancel=threading.Event())
        with pytest.raises(ConfigurationError, match="cancel must be"):
            ScriptedChatModel(replies=["Done."], tools=tools).invoke("Hi", cancel=3)
    with pytest.raises(ConfigurationError, match="did you mean 'cancel'"):
        model.invoke("Hi", cancl=threading.Event())
    assert reason(model.invoke("Hi", cancel=None)) == "complete"
    assert reason(model.bind(cancel=lambda: True).invoke("Hi")) == "cancelled"


def test_another_kind_of_event_is_told_what_to_give() -> None:
    """Of it the function that says whether it is set."""

    class Other:
        def is_set(self) -> bool:
            return True

    model = ScriptedChatModel(replies=["Done."], tools=[look])
    with pytest.raises(ConfigurationError, match="of another kind of event, its is_set"):
        model.invoke("Hi", cancel=Other())
    assert reason(model.invoke("Hi", cancel=Other().is_set)) == "cancelled"


def test_a_wait_is_left_when_it_is_cancelled() -> None:
    """Sleeping and waiting for something else both end."""
    cancel = Cancel(After(1))
    with pytest.raises(DeadlinePassed, match="cancelled"):
        cancel.sleep(59)
    cancel = Cancel(After(1), seconds=60)
    cancel.wait(threading.Event())
    assert cancel.passed() is cancel and cancel.reason == "cancelled"
    with pytest.raises(DeadlinePassed, match="deadline"):
        Deadline(0.01).sleep(59)


def test_a_deadline_inside_a_cancelled_run_comes_with_it() -> None:
    """It names the run around as the one that is over."""
    outer = Cancel(After(0))
    with outer.in_sight():
        inner = Deadline(60)
        assert inner.passed() is outer
    assert Deadline(60).passed() is None


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("tools", [[look], None], ids=["with tools", "without"])
def test_who_cannot_cancel_pays_nothing(way: str, tools: Any) -> None:
    """Nothing of what cancels is entered by a run without a flag."""
    entered: list[str] = []

    def note(frame: Any, event: str, _: Any) -> None:
        name = frame.f_code.co_qualname.partition(".")[0]
        if event == "call" and frame.f_code.co_filename == deadline.__file__ and name in ("Cancel", "deadline_of", "checked_cancel"):
            entered.append(name)

    model = ScriptedChatModel(replies=[*([AIMessage("", tool_calls=[LOOK])] if tools else []), "Done."], tools=tools)
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        ran = run(way, model, "Hi") if not way.startswith("a") else None
        if ran is None:
            asyncio.run(_ended(way, model))
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert entered == []


async def _ended(way: str, model: Any) -> None:
    """Run to the end."""
    if way == "ainvoke":
        await model.ainvoke("Hi")
    else:
        assert [chunk async for chunk in model.astream("Hi")]
