"""What a chunk and a turn with tool calls cost: calls of the package's own functions, counted, not timed."""

import asyncio
import gc
import queue
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pytest

from langchain_autotools import ChatAnthropic, ChatOpenAI, aevents, events
from tests.costs import ATTEMPTS, EVERY_WAY, PATHS, ROWS, Chunks, chunks, counted, more_of, path_of, stored
from tests.support.anthropic_server import AnthropicServer
from tests.support.http_server import Exchange, HttpReply
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Turn

pytestmark = pytest.mark.house

CITIES = ("Rome", "Oslo", "Lima")


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

    def count(self, model: Any, way: str, script: Callable[[Exchange], Turn]) -> Counter[str]:
        """Return the calls of a run of a script; the model has been made and has run once before."""
        self.script = script
        WAYS[way](model, self.runner)
        gc.collect()
        return counted(lambda: WAYS[way](model, self.runner))


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    """The servers and models of this module."""
    with ExitStack() as stack:
        yield Shop(stack, stack.enter_context(asyncio.Runner()))


def turns(number: int, calls: int) -> Callable[[Exchange], Turn]:
    """A script: so many turns with tool calls, then an answer."""

    def reply(exchange: Exchange) -> Turn:
        turn = sum(message["role"] == "assistant" for message in exchange.json["messages"])
        asked = [Call("get_temperature", {"city": f"{city} {turn}"}) for city in CITIES[:calls]]
        return Turn("Done.") if turn == number else Turn("", asked)

    return reply


def assert_at_most(bound: float, unit: str, look: Callable[[], dict[str, float]], *, least: float = 0) -> None:
    """Raise if a unit costs more calls than the bound, or fewer than what the bound is kept in step with.

    Args:
        bound: The bound.
        unit: What costs them.
        look: Counts the calls by function.
        least: The fewest calls that the bound is still true of.
    """
    for _ in range(ATTEMPTS):
        more = look()
        calls = sum(more.values())
        if calls <= bound:
            break
    listed = "\n".join(f"{number:8.2f}  {name}" for name, number in sorted(more.items(), key=lambda item: -item[1])[:60])
    if calls > bound:
        pytest.fail(f"{calls:.2f} calls for each {unit}, {calls - bound:.2f} more than the bound of {bound}:\n{listed}", pytrace=False)
    if calls < least:
        pytest.fail(f"{calls:.2f} calls for each {unit}: python -m tests.costs --write stores that instead of {bound}", pytrace=False)


@pytest.fixture(scope="module")
def costs() -> Iterator[Chunks]:
    """What counts the calls of chunks, for all of this module."""
    with chunks() as made:
        yield made


HALF = 0.5
"""The tables have whole calls; what a run does once is a little more or less at times, spread over its chunks."""
STORED = stored(sys.version_info[:2])
DEFAULT = ["stream", "a handler", "events", "astream", "an inline tracer"]
"""The ways that the default suite looks at, by turns; the others are `exhaustive`."""


def _params() -> Iterator[Any]:
    """Each wire in each way; the next wire takes the other half of the default ways by default."""
    for place, wire in enumerate(PATHS):
        for way in EVERY_WAY:
            later = [] if way in DEFAULT[place % 2 :: 2] else [pytest.mark.further] if way in DEFAULT else [pytest.mark.exhaustive]
            yield pytest.param(wire, way, id=f"{wire}-{way}", marks=later)


@pytest.mark.skipif(not STORED, reason="no table is stored for this version of Python")
@pytest.mark.parametrize(("wire", "way"), list(_params()))
def test_a_chunk_costs_the_calls_that_are_stored(costs: Chunks, wire: str, way: str) -> None:
    """For one more chunk of text, of reasoning or of arguments no more of the package's functions are called than the table says."""
    for row in ROWS:
        if row[1] == wire:
            known = STORED[row, way]
            assert_at_most(known + HALF, f"chunk ({', '.join(row)}, {way})", partial(costs.calls, row, way), least=known - 1)


def test_the_tables_have_every_row_and_way() -> None:
    """Each stored table counts the same chunks, in the same ways."""
    known = {(row, way) for row in ROWS for way in EVERY_WAY}
    for path in path_of((3, 11)).parent.glob("costs_*.csv"):
        version = tuple(map(int, path.stem.removeprefix("costs_").split(".")))
        assert stored((version[0], version[1])).keys() == known


@pytest.mark.parametrize(("wire", "calls", "way"), TOOL_TURN)
def test_a_turn_with_tool_calls_costs_no_more_calls(shop: Shop, wire: str, calls: int, way: str) -> None:
    """For one more turn with tool calls no more of the package's functions are called than the bound."""
    model = shop.model(wire, True)

    def look() -> dict[str, float]:
        few, many = (shop.count(model, way, turns(number, calls)) for number in (2, 4))
        return more_of(few, many, 2)

    assert_at_most(TOOL_TURN[wire, calls, way] + ROOM.get(way, 0), "turn", look)


WITH_INBOX = {
    "/run/inbox.py:Inbox.__init__",
    "/run/inbox.py:Inbox.check",
    "/run/inbox.py:Inbox.take",
    "/run/inbox.py:_is_plain_method",
    "/run/loop.py:_Run._goes_on",
    "/run/loop.py:_Run._join",
    "/run/loop.py:_Run._take_messages",
    "/run/settings.py:_inbox",
}
"""What a run with an empty inbox calls besides, but for comprehensions, which are calls before Python 3.12."""
LOOKS_AGAIN = {"/run/loop.py:Progress.reached", "/run/loop.py:Progress.overdue", "/deadline.py:Deadline.is_set"}
"""What it calls once more: after the last reply it looks whether another turn may follow."""


@pytest.mark.parametrize("way", WAYS)
def test_a_run_without_an_inbox_enters_nothing_of_it(shop: Shop, way: str) -> None:
    """Nor with `inbox=None`; an empty queue adds its reading, and no more."""
    model = shop.model("chat completions", True)
    for _ in range(ATTEMPTS):
        without = shop.count(model, way, turns(2, 1))
        none, empty = (shop.count(model.bind(inbox=inbox), way, turns(2, 1)) for inbox in (None, queue.Queue[Any]()))
        more = {name for name in empty if empty[name] > none[name] and not name.endswith(("<listcomp>", "<setcomp>", "<genexpr>"))}
        if more - LOOKS_AGAIN == WITH_INBOX:
            break
    assert not WITH_INBOX & (without.keys() | none.keys())
    assert more - LOOKS_AGAIN == WITH_INBOX
