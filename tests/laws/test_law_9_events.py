"""Law 9 for events: a reader hears of everything when it happens, on every wire and through chains; of results as calls end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda

from langchain_autotools import Agent, ToolContext, ToolPolicy, aevents, events
from langchain_autotools.chunks import new_chunk
from langchain_autotools.event_types import CallArgumentsDelta, CallProgress, CallResult, MessageDone, RunEvent, RunStarted, TextDelta
from langchain_autotools.testing import ScriptedChatModel
from tests.contract.wires import WIRES, Wire
from tests.laws.told import check_runs, of
from tests.support.http_server import Gate
from tests.support.script import Call, Turn

WAIT = 20
QUESTION = HumanMessage("How warm is it?")
CALLING = {"openai-chat": 3, "openai-responses": 2, "anthropic": 3}
"""The wires that bring the arguments of a call piece by piece, and the place in a reply after its first piece."""
SHAPES: dict[str, Callable[[Any], Any]] = {
    "model": lambda model: model,
    "text": lambda model: ChatPromptTemplate.from_messages([("human", "{question}")]) | model | StrOutputParser(),
    "json": lambda model: model | JsonOutputParser(),
    "function": lambda model: model | RunnableLambda(lambda message: message),
}
INPUTS = {"text": {"question": QUESTION.content}}
WAYS = ("events", "aevents")


def wires(names: Any) -> Any:
    """A parameter over wires."""
    return pytest.mark.parametrize("wire", [wire for wire in WIRES if wire.name in names], ids=lambda wire: wire.name)


def read(way: str, model: Any, shape: str, heard: Callable[[RunEvent], Any]) -> list[RunEvent]:
    """All events of a run, each shown to `heard` as it comes. Where nothing comes for long, the test ends."""
    chain, asked = SHAPES[shape](model), INPUTS.get(shape, [QUESTION])
    told: list[RunEvent] = []

    async def aread() -> None:
        stream = aevents(chain.astream(asked))
        async with asyncio.timeout(WAIT):
            async for event in stream:
                told.append(event)
                heard(event)

    if way == "aevents":
        asyncio.run(aread())
    else:
        for event in events(chain.stream(asked)):
            told.append(event)
            heard(event)
    return told


def look(city: str) -> str:
    """Look."""
    return f"21 °C in {city}"


class Opens:
    """Opens a gate of the server's when the reader has heard of something, and no earlier."""

    def __init__(self, gate: Gate, when: Callable[[RunEvent], bool]) -> None:
        self._gate = gate
        self._when = when
        self.heard = False

    def __call__(self, event: RunEvent) -> None:
        """Hear of an event."""
        if not self.heard and self._when(event):
            self.heard = True
            assert not self._gate.opened.is_set()
            self._gate.open()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", SHAPES)
@wires(CALLING)
def test_law_9_the_first_piece_of_arguments_is_heard_before_the_next_event_is_sent(wire: Wire, shape: str, way: str) -> None:
    """The server goes on only when the reader has the piece; all pieces together are what the model wrote."""
    gate = Gate()
    calling = Turn("", [Call("look", {"city": "Paris and Rome"})], holds={CALLING[wire.name]: gate})
    opens = Opens(gate, lambda event: isinstance(event, CallArgumentsDelta))
    with wire.serve([calling, Turn('{"degrees": 21}')]) as server, guarded(gate):
        told = read(way, wire.model(server, tools=[look]), shape, opens)
        assert server.rejections == []
    assert opens.heard
    check_runs(told)
    pieces = of(CallArgumentsDelta, told)
    assert "".join(piece.text for piece in pieces).replace(" ", "") == '{"city":"ParisandRome"}'
    assert {piece.call_id for piece in pieces} == {result.call_id for result in of(CallResult, told)}


class Declaring:
    """A model to which a tool is declared with each call: its calls are left to the caller."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def stream(self, asked: Any) -> Any:
        """The model's own stream."""
        return self._model.stream(asked, tools=[look])

    def astream(self, asked: Any) -> Any:
        """The same, asynchronously."""
        return self._model.astream(asked, tools=[look])


@pytest.mark.parametrize("way", WAYS)
@wires(CALLING)
def test_law_9_the_first_piece_is_heard_of_a_model_without_tools(wire: Wire, way: str) -> None:
    """The server goes on only when the reader has the piece, also where nothing runs the call."""
    gate = Gate()
    calling = Turn("", [Call("look", {"city": "Paris and Rome"})], holds={CALLING[wire.name]: gate})
    opens = Opens(gate, lambda event: isinstance(event, CallArgumentsDelta))
    with wire.serve([calling]) as server, guarded(gate):
        told = read(way, Declaring(wire.model(server)), "model", opens)
        assert server.rejections == []
    assert opens.heard
    assert "".join(piece.text for piece in of(CallArgumentsDelta, told)).replace(" ", "") == '{"city":"ParisandRome"}'


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", SHAPES)
@wires([wire.name for wire in WIRES])
def test_law_9_text_is_heard_before_the_next_event_is_sent(wire: Wire, shape: str, way: str) -> None:
    """Also in a later turn, and behind a function that wants the whole message."""
    gate = Gate()
    answer = Turn('{"degrees": 21}', characters=5, holds={3: gate})
    opens = Opens(gate, lambda event: isinstance(event, TextDelta) and '{"deg' in event.text)
    with wire.serve([Turn("", [Call("look", {"city": "Paris"})]), answer]) as server, guarded(gate):
        told = read(way, wire.model(server, tools=[look]), shape, opens)
        assert server.rejections == []
    assert opens.heard
    assert "".join(event.text for event in of(TextDelta, told)) == '{"degrees": 21}'


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", SHAPES)
def test_law_9_the_start_is_heard_before_anything_is_sent(shape: str, way: str) -> None:
    """The server says its first word only when the reader knows that the run has begun."""
    gate = Gate()
    opens = Opens(gate, lambda event: isinstance(event, RunStarted))
    (wire,) = (wire for wire in WIRES if wire.name == "openai-chat")
    with wire.serve([Turn('{"degrees": 21}', holds={0: gate})]) as server, guarded(gate):
        read(way, wire.model(server, tools=[look]), shape, opens)
    assert opens.heard


@contextmanager
def guarded(gate: Gate) -> Iterator[None]:
    """Opens a gate after a long time, so that a test that waits for it fails."""
    timer = threading.Timer(WAIT, gate.open)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


# ---------------------------------------------------------------------------------------------- tools


def calling(*names: str) -> list[dict[str, Any]]:
    """Calls without arguments, in one reply."""
    return [{"index": place, "id": f"call_{place}", "function": {"name": name, "arguments": "{}"}} for place, name in enumerate(names)]


def scripted(tools: list[Any], *names: str, **fields: Any) -> ScriptedChatModel:
    """A model that calls tools of these names, and then gives an answer that is JSON."""
    return ScriptedChatModel(tools=tools, replies=[[calling(*names)], '{"degrees": 21}'], **fields)


class Slow:
    """Tools that end when the reader has heard of something; in a thread, or on an event loop."""

    def __init__(self) -> None:
        self.heard = threading.Event()

    def slow(self) -> str:
        """End when the reader has heard."""
        return "in time" if self.heard.wait(WAIT) else "too late"

    async def aslow(self) -> str:
        """End when the reader has heard."""
        return await asyncio.to_thread(self.slow)

    def report(self, context: ToolContext) -> str:
        """Report, and end when the reader has heard."""
        context.report("half")
        return self.slow()

    async def areport(self, context: ToolContext) -> str:
        """Report, and end when the reader has heard."""
        context.report("half")
        return await self.aslow()

    def yields(self) -> Iterator[str]:
        """Yield, and end when the reader has heard."""
        yield "half"
        yield self.slow()


def quick() -> str:
    """Be quick."""
    return "quick"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["slow", "aslow"])
def test_law_9_results_are_heard_in_the_order_in_which_calls_end(name: str, shape: str, way: str) -> None:
    """A slow first call does not hide a quick second one; the messages keep the order of the calls."""
    tools = Slow()

    def heard(event: RunEvent) -> None:
        if isinstance(event, CallResult) and event.index == 1:
            tools.heard.set()

    told = read(way, scripted([getattr(tools, name), quick], name, "quick"), shape, heard)
    check_runs(told)
    assert [(one.index, one.message.content) for one in of(CallResult, told)] == [(1, "quick"), (0, "in time")]
    assert [one.message.content for one in of(MessageDone, told)][1:3] == ["in time", "quick"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["report", "areport", "yields"])
def test_law_9_progress_is_heard_while_the_tool_runs(name: str, shape: str, way: str) -> None:
    """The tool ends only when the reader has heard what it reported."""
    tools = Slow()

    def heard(event: RunEvent) -> None:
        if isinstance(event, CallProgress):
            tools.heard.set()

    told = read(way, scripted([getattr(tools, name)], name, default_policy=ToolPolicy(progress=True)), shape, heard)
    assert [one.message.content for one in of(CallResult, told)] == ["in time"]
    assert of(CallProgress, told)[0].value == "half"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("how", ["invoke", "stream", "ainvoke", "astream", "agent", "events"])
def test_law_9_a_run_inside_a_tool_is_heard_while_the_tool_runs(how: str, way: str) -> None:
    """Its model goes on only when the reader has heard of its first piece of text."""
    tools = Slow()

    def heard(event: RunEvent) -> None:
        if isinstance(event, TextDelta) and event.text == "Hm. ":
            tools.heard.set()

    told = read(way, scripted([asking(Waiting(replies=(), tools=[quick], heard=tools.heard), how)], "ask"), "model", heard)
    check_runs(told)
    assert [one.message.content for one in of(CallResult, told)] == ["Hm. in time"]
    (inner,) = {(one.parent_run_id, one.parent_call_id) for one in told} - {(None, None)}
    assert inner == (told[0].run_id, "call_0")


class Waiting(ScriptedChatModel):
    """A model that goes on when the reader has heard of its first piece."""

    heard: Any = None

    def raw_stream(self, messages: Any, stop: Any = None, **kwargs: Any) -> Any:
        """Two pieces."""
        yield new_chunk("Hm. ", {}, None)
        yield new_chunk("in time" if self.heard.wait(WAIT) else "too late", {}, None)

    async def araw_stream(self, messages: Any, stop: Any = None, **kwargs: Any) -> Any:
        """Two pieces."""
        yield new_chunk("Hm. ", {}, None)
        yield new_chunk("in time" if await asyncio.to_thread(self.heard.wait, WAIT) else "too late", {}, None)


def asking(model: Any, how: str) -> Any:
    """A tool that runs a model, in the named way."""

    def ask() -> str:
        """Ask."""
        if how == "invoke":
            return str(model.invoke("Go on.").text)
        if how == "agent":
            return Agent(model).run("Go on.").text
        if how == "stream":
            return "".join(chunk.text for chunk in model.stream("Go on."))
        stream = events(model.stream("Go on."))
        return "".join(event.text for event in stream if isinstance(event, TextDelta))

    async def aask() -> str:
        """Ask."""
        if how == "ainvoke":
            return str((await model.ainvoke("Go on.")).text)
        return "".join([chunk.text async for chunk in model.astream("Go on.")])

    if how.startswith("a") and how != "agent":
        aask.__name__ = "ask"
        return aask
    return ask
