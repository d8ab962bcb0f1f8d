"""A turn costs as many calls late in a conversation as early in it, over every wire, with calls that have ids and calls that have none."""

import asyncio
import gc
import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import langchain_core
import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from langchain_autotools import ToolContext, events, new_messages
from langchain_autotools.executor import user_functions
from langchain_autotools.testing import ScriptedChatModel
from tests.contract.wires import WIRES, Wire
from tests.support.counted import counting
from tests.support.http_server import Exchange, HttpReply
from tests.support.script import Call, Turn
from tests.test_costs import drain, in_one_piece

pytestmark = pytest.mark.house

EARLY = 10
ROOM = 1.02
"""The most that a late turn may cost of an early one. Today both cost the same."""
STYLES = {"ids": "standard", "no ids": "no_ids"}
ONE_OF_EACH = [wire for wire in WIRES if not wire.name.startswith("azure")]


def get_temperature(city: str) -> str:
    """Return the temperature of a city."""
    return f"{city}: 21 °C"


def past(turns: int) -> list[BaseMessage]:
    """A conversation with so many turns that called a tool, of any other vendor."""
    messages: list[BaseMessage] = [HumanMessage("Hello")]
    for turn in range(turns):
        call = {"name": "get_temperature", "args": {"city": str(turn)}, "id": f"call_{turn:024d}", "type": "tool_call"}
        messages += [AIMessage("", tool_calls=[call], id=f"m{turn}"), ToolMessage("21 °C", tool_call_id=call["id"], id=f"t{turn}")]
    return messages


def costs(wire: Wire, style: str, turns: int) -> list[Counter[str]]:
    """The calls of two runs that go on with a conversation of so many turns, one behind the other: of two turns, and of four."""
    asked = [0, 0]

    def script(_: Exchange) -> Turn:
        asked[0] += 1
        city = {"city": f"{asked[0]} {asked[1]}"}
        return Turn("Done.") if asked[0] > asked[1] else Turn("", [Call("get_temperature", city)], style=style)

    counted, history = [], past(turns)
    with wire.serve(script) as server:
        encode: Callable[..., HttpReply] = server.encode
        server.encode = lambda *given: in_one_piece(encode(*given))  # type: ignore[method-assign]
        more = {"prompt_caching": False} if wire.name == "anthropic" else {}
        model = wire.model(server, tools=[get_temperature], max_turns=None, no_progress=None, **more)
        for number in (2, 2, 4):
            asked[:] = 0, number
            history.append(HumanMessage("And now?"))
            calls: Counter[str] = Counter()
            user_functions._free.clear()
            gc.collect()
            with counting(calls, new_threads=True):
                history += [message for chunk in model.stream([*history]) for message in new_messages(chunk)]
            counted.append(calls)
    return counted[1:]


def in_every_style() -> Iterator[Any]:
    """The wires in every style of ids, by turns; the rest is `exhaustive`."""
    for number, (wire, style) in enumerate(itertools.product(ONE_OF_EACH, STYLES)):
        is_turn = number % len(STYLES) == number // len(STYLES) % len(STYLES)
        yield pytest.param(wire, style, id=f"{wire.name}-{style}", marks=[] if is_turn else [pytest.mark.exhaustive])


@pytest.mark.parametrize("turn", [100, pytest.param(400, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize(("wire", "style"), list(in_every_style()))
def test_a_late_turn_costs_as_many_calls_as_an_early_one(wire: Wire, style: str, turn: int) -> None:
    """Calls of the package's functions at turn 10 and at a late one: of a turn inside a run, and of a whole run of the conversation."""
    (early, longer), (late, longest) = (costs(wire, STYLES[style], turns) for turns in (EARLY, turn))
    grown = {name: (early[name], late[name]) for name in early | late if early[name] != late[name]}
    assert late.total() <= early.total() * ROOM, grown
    first, last = longer.total() - early.total(), longest.total() - late.total()
    assert first > 1000
    assert last <= first * ROOM


WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "invoke": lambda model, history: model.invoke(history),
    "stream": lambda model, history: list(model.stream(history)),
    "ainvoke": lambda model, history: asyncio.run(model.ainvoke(history)),
}


# ---------------------------------------------------------------------------------------------- turns of one run


class Watcher(BaseCallbackHandler):
    """Watches a run, and takes messages as they are."""

    def on_chat_model_start(self, serialized: Any, messages: list[list[BaseMessage]], **_: Any) -> None:
        """Take them."""


WATCHED: Any = {"callbacks": [Watcher()]}
WAYS_OF_RUNS: dict[str, Callable[[Any], Any]] = {
    "stream": lambda model: list(model.stream("Hello")),
    "invoke": lambda model: model.invoke("Hello"),
    "astream": lambda model: asyncio.run(drain(model.astream("Hello"))),
    "ainvoke": lambda model: asyncio.run(model.ainvoke("Hello")),
    "events": lambda model: list(events(model.stream("Hello"))),
    "stream, watched": lambda model: list(model.stream("Hello", WATCHED)),
    "astream, watched": lambda model: asyncio.run(drain(model.astream("Hello", WATCHED))),
    "invoke, watched": lambda model: model.invoke("Hello", WATCHED),
}


def inside(wire: Wire, style: str, run: Callable[[Any], Any], early: int, late: int, **settings: Any) -> tuple[Counter[str], Counter[str]]:
    """The calls of ten early turns of a run, and of ten late ones: of every function, and of built-in ones where the package calls them."""
    calls: Counter[str] = Counter()
    before: list[Counter[str]] = []

    def script(_: Exchange) -> Turn:
        before.append(calls.copy())
        return Turn("Done.") if len(before) > late else Turn("", [Call("get_temperature", {"city": str(len(before))})], style=style)

    with wire.serve(script) as server:
        encode: Callable[..., HttpReply] = server.encode
        server.encode = lambda *given: in_one_piece(encode(*given))  # type: ignore[method-assign]
        more = {"prompt_caching": False} if wire.name == "anthropic" else {}
        model = wire.model(server, **{"tools": [get_temperature], "max_turns": None, **more, **settings})
        gc.collect()
        with counting(calls, package="", builtins=True):
            run(model)
    assert len(before) == late + 1
    return before[early] - before[early - 10], before[late] - before[late - 10]


def runs() -> Iterator[Any]:
    """Every wire in one way, with a style of ids by turns; every way of it, and longer runs, are `further`."""
    for row, wire in enumerate(ONE_OF_EACH):
        for place, way in enumerate(WAYS_OF_RUNS):
            style = [*STYLES][(row + place) % 2]
            name = f"{wire.name}-{way}-{style}"
            if place == 2 * row % 7:
                yield pytest.param(wire, way, style, 20, 70, id=f"{name}-70")
            yield pytest.param(wire, way, style, 50, 200, id=f"{name}-200", marks=pytest.mark.further)


@pytest.mark.parametrize(("wire", "way", "style", "early", "late"), list(runs()))
def test_a_late_turn_of_a_run_takes_as_many_calls_as_an_early_one(wire: Wire, way: str, style: str, early: int, late: int) -> None:
    """Whatever the wire and the way: of a longer run only the bytes of a request are more, and what core's own built-in calls copy."""
    first, last = inside(wire, STYLES[style], WAYS_OF_RUNS[way], early, late)
    assert first.total() > 10_000
    assert last.total() <= first.total() * ROOM, last - first


def look_up(city: str, context: ToolContext) -> str:
    """Look up a city; it sees the conversation."""
    return f"{city}: {len(context.messages)}"


CONTROLLED: dict[str, Any] = {
    "limits": {
        **{"max_tool_calls": 10_000, "token_budget": 10**9, "context_window": 10**9, "no_progress": 3, "stop_when": lambda _: False},
        **{"max_cost": 1000, "prices": {"any": {"input_mtok": 1, "output_mtok": 1}}},
    },
    "approval": {"requires_approval": lambda _: False, "before_turn": lambda _: None},
    "fallbacks": {"fallbacks": [ScriptedChatModel(replies=["Done."])]},
    "context": {"tools": [tool("get_temperature")(look_up)]},
}


@pytest.mark.parametrize("control", CONTROLLED)
def test_what_controls_a_run_takes_as_many_calls_in_a_late_turn(control: str) -> None:
    """Limits, prices, approvals, hooks, another model in reserve, and tools that see the conversation."""
    first, last = inside(ONE_OF_EACH[0], "standard", WAYS_OF_RUNS["stream"], 20, 70, **CONTROLLED[control])
    assert last.total() <= first.total() * ROOM, last - first


def test_what_follows_a_stored_response_takes_as_many_calls_in_a_late_turn() -> None:
    """Where the vendor keeps the history, what it has is not encoded again."""
    wire = next(wire for wire in ONE_OF_EACH if wire.name == "openai-responses")
    first, last = inside(wire, "standard", WAYS_OF_RUNS["stream"], 20, 70, use_previous_response_id=True)
    assert last.total() <= first.total() * ROOM, last - first


# ---------------------------------------------------------------------------------------------- core


@pytest.mark.parametrize("way", WAYS)
def test_core_calls_no_function_for_a_message_of_the_history(way: str) -> None:
    """A run of a long conversation takes as many calls of LangChain's core as one of a short conversation."""
    core = str(Path(langchain_core.__file__).parent)

    def counted(turns: int) -> Counter[str]:
        model = ScriptedChatModel(tools=[get_temperature], replies=lambda _messages, **_: "Done.")
        calls: Counter[str] = Counter()
        history = [*past(turns), HumanMessage("And now?")]
        for _ in range(2):  # the first time some things are made once
            calls.clear()
            with counting(calls, new_threads=True, package=core):
                WAYS[way](model, history)
        return calls

    early, late = counted(EARLY), counted(100)
    assert early.total() > 100
    assert late == early
