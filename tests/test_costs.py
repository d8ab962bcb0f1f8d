"""What a text chunk and a turn with tool calls cost: calls of the package's own functions, counted, not timed."""

import asyncio
import gc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from langchain_autotools import ChatAnthropic, ChatOpenAI, aevents, events
from langchain_autotools.executor.workers import threads
from tests.support.anthropic_server import AnthropicServer
from tests.support.counted import counting
from tests.support.http_server import Exchange, HttpReply
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Turn

CITIES = ("Rome", "Oslo", "Lima")
BY_CHANCE = {
    "/messages/memo.py:MessageMemo.put.<locals>.<lambda>",
    "/providers/_transport/drain.py:_Watched.end",
    "/providers/_transport/drain.py:_Watchdog._run.<locals>.<lambda>",
}
"""Called when a message dies, and by the thread that ends replies which nobody reads: no turn of its own."""
ATTEMPTS = 4
"""Calls that run side by side end in any order, and some orders cost a few calls more: the least of so many looks counts."""


class OpenAIInOnePiece(OpenAIServer):
    """Sends each reply in one piece: how often the network is read is no matter of chance."""

    def encode(self, exchange: Exchange, body: dict[str, Any], reply: Any) -> HttpReply:
        """Encode the reply as one piece."""
        return in_one_piece(super().encode(exchange, body, reply))


class AnthropicInOnePiece(AnthropicServer):
    """The same of Anthropic's wire."""

    def encode(self, exchange: Exchange, body: dict[str, Any], reply: Any) -> HttpReply:
        """Encode the reply as one piece."""
        return in_one_piece(super().encode(exchange, body, reply))


def in_one_piece(reply: HttpReply) -> HttpReply:
    """The same reply in one piece."""
    return replace(reply, parts=[b"".join(part for part in reply.parts if isinstance(part, bytes))], framing="length")


def get_temperature(city: str) -> str:
    """Return the temperature of a city."""
    return f"{city}: 21 °C"


async def drain(chunks: Any) -> int:
    """Read all chunks."""
    return len([chunk async for chunk in chunks])


WAYS: dict[str, Callable[[Any, asyncio.Runner], Any]] = {
    "invoke": lambda model, _: model.invoke("Hello"),
    "stream": lambda model, _: list(model.stream("Hello")),
    "events": lambda model, _: list(events(model.stream("Hello"))),
    "ainvoke": lambda model, runner: runner.run(model.ainvoke("Hello")),
    "astream": lambda model, runner: runner.run(drain(model.astream("Hello"))),
    "aevents": lambda model, runner: runner.run(drain(aevents(model.astream("Hello")))),
}
WIRES = {"chat completions": (OpenAIInOnePiece, ChatOpenAI), "Anthropic": (AnthropicInOnePiece, ChatAnthropic)}

TEXT_CHUNK = {
    ("chat completions", "plain", "stream"): 15,
    ("chat completions", "plain", "astream"): 15,
    ("chat completions", "plain", "events"): 23,
    ("chat completions", "with tools", "stream"): 20,
    ("chat completions", "with tools", "astream"): 23,
    ("chat completions", "with tools", "events"): 24,
    ("Anthropic", "plain", "stream"): 15,
    ("Anthropic", "plain", "astream"): 15,
    ("Anthropic", "with tools", "stream"): 24,
    ("Anthropic", "with tools", "astream"): 27,
}
"""The most calls for one text chunk, as counted with Python 3.11; newer ones make no frames of comprehensions."""

TOOL_TURN = {
    ("chat completions", 1, "invoke"): 981.5,
    ("chat completions", 1, "stream"): 1000.5,
    ("chat completions", 1, "events"): 1317.5,
    ("chat completions", 1, "ainvoke"): 1037.5,
    ("chat completions", 1, "astream"): 1071.5,
    ("chat completions", 2, "invoke"): 1312.5,
    ("chat completions", 2, "stream"): 1392.5,
    ("chat completions", 2, "ainvoke"): 1380.5,
    ("chat completions", 2, "astream"): 1475.5,
    ("Anthropic", 1, "stream"): 1040.0,
    ("Anthropic", 1, "astream"): 1114.0,
}
"""The most calls for one turn with this number of tool calls, likewise: request, reply, calls, results, and the look at the history."""
ROOM = {"events": 10}
"""What the seams have added to a turn, by the way to run (below one in a hundred); to be won back."""


@dataclass
class Shop:
    """Servers and models, each made once, and the event loop that all asynchronous clients belong to."""

    stack: ExitStack
    runner: asyncio.Runner
    script: Callable[[Exchange], Turn] = field(default=lambda _: Turn())
    models: dict[tuple[str, bool], Any] = field(default_factory=dict)

    def model(self, wire: str, tools: bool) -> Any:
        """Return the model of this wire, with a tool or without."""
        if (wire, tools) not in self.models:
            server_class, model_class = WIRES[wire]
            server = self.stack.enter_context(server_class(lambda exchange: self.script(exchange)))
            more: dict[str, Any] = {"tools": [get_temperature]} if tools else {}
            more |= {"prompt_caching": False} if wire == "Anthropic" else {}
            self.models[wire, tools] = model_class(model="m", api_key="key", base_url=server.url, **more)
        return self.models[wire, tools]

    def count(self, model: Any, way: str, scripts: list[Callable[[Exchange], Turn]]) -> list[Counter[str]]:
        """Return the calls of one run of each script; the model has been made and has run once before."""
        counts = []
        calls: Counter[str] = Counter()
        threads._free.clear()  # what runs in the threads of other tests is not counted
        gc.collect()
        with counting(calls, new_threads=True):
            for script in [scripts[-1], *scripts]:
                calls.clear()
                self.script = script
                WAYS[way](model, self.runner)
                counts.append(Counter({name: number for name, number in calls.items() if name not in BY_CHANCE}))
        return counts[1:]


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    """The servers and models of this module."""
    with ExitStack() as stack:
        yield Shop(stack, stack.enter_context(asyncio.Runner()))


def text(chunks: int) -> Callable[[Exchange], Turn]:
    """A script: one answer of so many chunks."""
    return lambda _: Turn("word! " * chunks)


def turns(number: int, calls: int) -> Callable[[Exchange], Turn]:
    """A script: so many turns with tool calls, then an answer."""

    def reply(exchange: Exchange) -> Turn:
        turn = sum(message["role"] == "assistant" for message in exchange.json["messages"])
        asked = [Call("get_temperature", {"city": f"{city} {turn}"}) for city in CITIES[:calls]]
        return Turn("Done.") if turn == number else Turn("", asked)

    return reply


def assert_at_most(bound: float, unit: str, look: Callable[[], tuple[Counter[str], Counter[str]]], units: int) -> None:
    """Raise where a run costs more than the other by more than the bound for each of the units that it has more."""
    for _ in range(ATTEMPTS):
        few, many = look()
        more = {name: (many[name] - few[name]) / units for name in few | many if many[name] != few[name]}
        calls = sum(more.values())
        if calls <= bound:
            return
    listed = "\n".join(f"{number:8.2f}  {name}" for name, number in sorted(more.items(), key=lambda item: -item[1])[:60])
    pytest.fail(f"{calls:.2f} calls for each {unit}, {calls - bound:.2f} more than the bound of {bound}:\n{listed}", pytrace=False)


@pytest.mark.parametrize(("wire", "tools", "way"), TEXT_CHUNK)
def test_a_text_chunk_costs_no_more_calls(shop: Shop, wire: str, tools: str, way: str) -> None:
    """For one more text chunk no more of the package's functions are called than the bound."""
    model = shop.model(wire, tools == "with tools")

    def look() -> tuple[Counter[str], Counter[str]]:
        few, many = shop.count(model, way, [text(10), text(30)])
        return few, many

    assert_at_most(TEXT_CHUNK[wire, tools, way], "text chunk", look, 20)


@pytest.mark.parametrize(("wire", "calls", "way"), TOOL_TURN)
def test_a_turn_with_tool_calls_costs_no_more_calls(shop: Shop, wire: str, calls: int, way: str) -> None:
    """For one more turn with tool calls no more of the package's functions are called than the bound."""
    model = shop.model(wire, True)

    def look() -> tuple[Counter[str], Counter[str]]:
        few, many = shop.count(model, way, [turns(2, calls), turns(4, calls)])
        return few, many

    assert_at_most(TOOL_TURN[wire, calls, way] + ROOM.get(way, 0), "turn", look, 2)
