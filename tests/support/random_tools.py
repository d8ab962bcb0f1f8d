"""The tools of random runs: quick and slow ones, ones that fail, report, end the run, or run a model of their own."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from langchain_core.tools import StructuredTool

from langchain_autotools import Agent, ToolContext, ToolPolicy, aevents, events
from tests.support.random_replies import BROKEN, RandomCall, random_text

PATIENCE = 0.2
"""How many seconds a slow tool waits for the quick one after which it ends, where that never runs."""
POLICIES = {name: ToolPolicy(progress=True) for name in ("count", "acount")}


class Around:
    """What the tools of one run share.

    Attributes:
        cancel: Ends the run.
        release: Ends the tools that wait for ever; is set when the run has ended.
    """

    def __init__(self) -> None:
        self.cancel = threading.Event()
        self.release = threading.Event()
        self._gates: dict[str, threading.Event] = {}
        self._lock = threading.Lock()

    def gate(self, name: str) -> threading.Event:
        """The event that a quick tool sets, and a slow one waits for."""
        with self._lock:
            return self._gates.setdefault(name, threading.Event())


def tools_of(around: Around, inner: Callable[[int], Any]) -> list[Any]:
    """The tools, ready for a model.

    Args:
        around: What they share.
        inner: Makes the model that a tool runs, of the number that the call says.
    """

    def fast(gate: str = "") -> str:
        """Be quick."""
        around.gate(gate).set()
        return f"fast {gate}"

    def slow(gate: str) -> str:
        """End after the quick one."""
        around.gate(gate).wait(PATIENCE)
        return f"slow {gate}"

    async def aslow(gate: str) -> str:
        """End after the quick one, on an event loop."""
        await asyncio.to_thread(around.gate(gate).wait, PATIENCE)
        return f"aslow {gate}"

    def stop() -> str:
        """Cancel the run."""
        around.cancel.set()
        return "stopped"

    def block() -> str:
        """Wait for ever."""
        around.release.wait(10)
        return "released"

    return [fast, slow, aslow, stop, block, *_alone(), *_nested(inner)]


def _alone() -> list[Any]:
    """Tools that know nothing of the run around them."""

    def fail(text: str) -> str:
        """Fail."""
        raise ValueError(text)

    def direct(text: str = "") -> str:
        """Answer for the model."""
        return f"direct {text}"

    def measure(text: str, context: ToolContext) -> str:
        """Report while it runs."""
        for half in ("one", "two"):
            context.report({half: text})
        return text

    async def ameasure(text: str, context: ToolContext) -> str:
        """Report while it runs, on an event loop."""
        context.report(text)
        await asyncio.sleep(0)
        context.report([text])
        return text

    def count(to: int) -> Iterator[int]:
        """Count."""
        yield from range(to)

    async def acount(to: int) -> AsyncIterator[int]:
        """Count, on an event loop."""
        for number in range(to):
            yield number

    return [fail, measure, ameasure, count, acount, StructuredTool.from_function(direct, return_direct=True)]


def _nested(inner: Callable[[int], Any]) -> list[Any]:
    """Tools that run a model of their own; its errors are their own."""

    def ask(seed: int, how: str = "invoke") -> str:
        """Ask a model."""
        model = inner(seed)
        if how == "stream":
            return "".join(chunk.text for chunk in model.stream("Go on."))
        if how == "events":
            stream = events(model.stream("Go on."))
            list(stream)
            return stream.message.text
        return Agent(model).run("Go on.").text if how == "agent" else str(model.invoke("Go on.").text)

    async def aask(seed: int, how: str = "invoke") -> str:
        """Ask a model, on an event loop."""
        model = inner(seed)
        if how == "stream":
            return "".join([chunk.text async for chunk in model.astream("Go on.")])
        if how == "events":
            stream = aevents(model.astream("Go on."))
            async for _ in stream:
                pass
            return stream.message.text
        if how == "agent":
            return (await Agent(model).arun("Go on.")).text
        return str((await model.ainvoke("Go on.")).text)

    return [ask, aask]


# ---------------------------------------------------------------------------------------------- calls of them

HOWS = ("invoke", "stream", "events", "agent")
CALLERS = ("theirs",)
"""Names of tools that are only declared."""


def random_calls(draw: random.Random, number: int, *, nested: bool, stops: bool) -> list[RandomCall]:
    """The calls of one turn, some with ids of the server's, some without, some with one that is there twice.

    Args:
        draw: What is drawn from.
        number: The number of the turn: what names its calls.
        nested: Whether tools that run a model of their own may be called.
        stops: Whether a tool may end the run.
    """
    calls: list[RandomCall] = []
    for position in range(draw.choice([1, 1, 2, 3])):
        calls += [] if len(calls) > position else _some_calls(draw, f"{number}.{position}", nested=nested, stops=stops)
    same = draw.random() < 0.1
    return [RandomCall(call.name, call.args, _id(draw, f"call_{number}_{place}", same=same)) for place, call in enumerate(calls)]


def _id(draw: random.Random, own: str, *, same: bool) -> str | None:
    return "call_same" if same else draw.choice([own, own, own, own, None, "", "null"])


def _some_calls(draw: random.Random, label: str, *, nested: bool, stops: bool) -> list[RandomCall]:
    """A call, or a slow one with the quick one that it waits for."""
    text, kind = random_text(draw, 2), draw.random()
    if kind < 0.2:
        return [RandomCall(draw.choice(["slow", "aslow"]), {"gate": label}), RandomCall("fast", {"gate": label})]
    if kind < 0.35:
        return [_failing_call(draw, text)]
    if kind < 0.5:
        return [RandomCall(draw.choice(["measure", "ameasure"]), {"text": text})]
    if kind < 0.6:
        return [RandomCall(draw.choice(["count", "acount"]), {"to": draw.randint(0, 3)})]
    if kind < 0.7:
        return [RandomCall(draw.choice(CALLERS), {"text": text})]
    if kind < 0.8 and nested:
        return [RandomCall(draw.choice(["ask", "aask"]), {"seed": draw.randint(0, 10**6), "how": draw.choice(HOWS)})]
    if kind < 0.83 and stops:
        return [RandomCall("stop", {})]
    return [RandomCall("direct", {"text": text}) if kind < 0.87 else RandomCall("fast", {"gate": f"{label}/{text}"})]


def _failing_call(draw: random.Random, text: str) -> RandomCall:
    kinds = [("fail", {"text": text}), ("nowhere", {"x": text}), ("measure", {"text": [1]}), ("fast", draw.choice(BROKEN))]
    name, args = draw.choice(kinds)
    return RandomCall(name, args)
