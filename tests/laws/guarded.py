"""Tools that note what runs, and calls of them under every spelling: what the tests of law 10 share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from langchain_autotools import ToolCallResult
from tests.support.script import Call

NAMES = ("danger", "get_wind", "look", "echo")
SPELLINGS: dict[str, Callable[[str], str]] = {
    "exact": str,
    "capitals": str.upper,
    "camel": lambda name: "".join(part.capitalize() for part in name.split("_")),
    "dashes": lambda name: name.replace("_", "-"),
    "prefix": lambda name: f"functions.{name}",
    "two prefixes": lambda name: f"functions.tools.{name}",
    "number": lambda name: f"{name}:0",
    "token": lambda name: f"{name}<|channel|>commentary",
    "suffix": lambda name: f"{name}_tool",
}
BUNDLE = "multi_tool_use.parallel"


class Guarded:
    """Tools that note each call that runs, and listeners that note what they are told of."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, int]] = []
        self.announced: list[tuple[str, int]] = []
        self.told: list[tuple[str, int]] = []
        self._lock = threading.Lock()

    def tools(self, names: Collection[str] = NAMES) -> dict[str, Callable[[int], str]]:
        """The tools by name."""
        return {name: self._tool(name) for name in names}

    def _tool(self, name: str) -> Callable[[int], str]:
        def tool(number: int) -> str:
            """Do something."""
            with self._lock:
                self.ran.append((name, number))
            return f"{name} {number}"

        return tool

    def executing(self, call: Any) -> None:
        """Note what is about to run."""
        self.announced.append((call.name, call.args["number"]))

    def executed(self, result: ToolCallResult) -> None:
        """Note what ran."""
        if result.executed:
            self.told.append((result.call.name, (result.call.args or {})["number"]))

    def listeners(self) -> dict[str, Any]:
        """As keywords of a run."""
        return {"on_executing": self.executing, "on_executed": self.executed}

    def check(self) -> None:
        """Each call that ran was announced and told of, once, under its tool's own name."""
        assert sorted(self.ran) == sorted(self.announced) == sorted(self.told)


@dataclass(frozen=True)
class Wanted:
    """A call that the server makes: several where it is a bundle.

    Attributes:
        names: The tools that are meant.
        numbers: Their arguments.
        spelling: How the names are written.
        bundled: Whether they come in one call.
    """

    names: tuple[str, ...]
    numbers: tuple[int, ...]
    spelling: str
    bundled: bool

    def meant(self) -> list[tuple[str, int]]:
        """What would run."""
        return list(zip(self.names, self.numbers, strict=True))

    def call(self, call_id: str | None = None) -> Call:
        """The call as the server writes it."""
        spelled = SPELLINGS[self.spelling]
        uses = [{"recipient_name": spelled(name), "parameters": {"number": number}} for name, number in self.meant()]
        if self.bundled:
            return Call(BUNDLE, {"tool_uses": uses}, call_id)
        return Call(spelled(self.names[0]), {"number": self.numbers[0]}, call_id)


@st.composite
def wanted(draw: st.DrawFn) -> Wanted:
    """Some call, under some spelling."""
    bundled = draw(st.booleans())
    count = draw(st.integers(1, 4)) if bundled else 1
    names = draw(st.lists(st.sampled_from(NAMES), min_size=count, max_size=count))
    numbers = draw(st.lists(st.integers(0, 9999), min_size=count, max_size=count))
    return Wanted(tuple(names), tuple(numbers), draw(st.sampled_from(sorted(SPELLINGS))), bundled)


def allowing(names: Collection[str], mode: str, kinds: Collection[str] = ()) -> dict[str, Any]:
    """The choice of these tools, and of these kinds of the vendor's own, and no others."""
    pointed: list[Any] = [{"type": "function", "function": {"name": name}} for name in sorted(names)]
    pointed += [{"type": kind} for kind in kinds]
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": pointed}}
