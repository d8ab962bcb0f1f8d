"""Tools that note what they ran, for random conversations."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool

from tests.laws.stories import canonical


class Workshop:
    """The tools of one conversation.

    Args:
        delays: What the delays of slow tools are drawn from; None for no delays.

    Attributes:
        ran: Which tools ran, with which arguments.
    """

    def __init__(self, delays: random.Random | None = None) -> None:
        self.ran: list[tuple[str, str]] = []
        self._delays = delays
        self._lock = threading.Lock()

    @property
    def sorted(self) -> list[tuple[str, str]]:
        """What ran, in an order that does not depend on time."""
        with self._lock:
            return sorted(self.ran)

    def _note(self, name: str, **args: Any) -> None:
        with self._lock:
            self.ran.append((name, canonical(args)))

    def _delay(self) -> None:
        if self._delays is not None:
            with self._lock:
                seconds = self._delays.random() / 300
            time.sleep(seconds)

    def tools(self) -> list[Any]:
        """The tools, ready for a model."""

        def echo(text: str) -> str:
            """Repeat a text."""
            self._note("echo", text=text)
            self._delay()
            return f"heard {text}"

        def add(a: int, b: int) -> int:
            """Add two numbers."""
            self._note("add", a=a, b=b)
            self._delay()
            return a + b

        def tell_time() -> str:
            """Tell the time."""
            self._note("tell_time")
            return "12:00"

        def say_nothing() -> str:
            """Say nothing."""
            self._note("say_nothing")
            return ""

        def slow(number: int) -> str:
            """Take some time."""
            self._note("slow", number=number)
            self._delay()
            return f"slow {number}"

        async def only_async(number: int) -> str:
            """Run on an event loop only."""
            self._note("only_async", number=number)
            return f"only_async {number}"

        def break_down(why: str) -> str:
            """Fail."""
            self._note("break_down", why=why)
            raise ValueError(why)

        return [echo, tell_time, only_async, *map(_as_tool, (add, say_nothing, slow, break_down)), self.anything()]

    def anything(self) -> BaseTool:
        """The tool that takes any arguments, ready for a model."""

        def anything(**args: Any) -> str:
            self._note("anything", **args)
            return canonical(args)

        schema = {"type": "object", "properties": {}, "additionalProperties": True}
        return StructuredTool.from_function(anything, name="anything", description="Take anything.", args_schema=schema)


_TOOLS: dict[str, StructuredTool] = {}


def _as_tool(function: Any) -> BaseTool:
    """The function as a tool of LangChain's, whose schema is made once for all workshops."""
    name = function.__name__
    if name not in _TOOLS:
        _TOOLS[name] = StructuredTool.from_function(function)
    return _TOOLS[name].model_copy(update={"func": function})
